/**
 * The settings every database of ours is opened with: closed to the network, bounded, in UTC. Nothing is ever
 * downloaded: json, parquet and icu are built in, and a query that needs more fails instead.
 */

export interface DuckDbLimits {
  /** Threads of one database; a run's own writers take 1, so that the machine stays usable. */
  readonly threads?: number
  /** DuckDB's own spelling, such as `1GB`. */
  readonly memoryLimit?: string
  /** False closes all files but the database itself to SQL (no COPY, no read_parquet, no ATTACH). */
  readonly externalAccess?: boolean
  /** Where DuckDB may put what does not fit into memory. */
  readonly temporaryFolder?: string
}

export const closedConfiguration = (limits: DuckDbLimits): Record<string, string> => ({
  threads: String(limits.threads ?? 2),
  autoinstall_known_extensions: "false",
  autoload_known_extensions: "false",
  allow_community_extensions: "false",
  // An explicit INSTALL must not reach the network either: it looks in a folder that does not exist.
  custom_extension_repository: "/nonexistent",
  // Freed memory goes back to the system at once; otherwise the allocator keeps up to twice the memory limit.
  allocator_bulk_deallocation_flush_threshold: "1MB",
  // A Parquet file is read once or twice: what a cache of them would keep is memory that others need.
  enable_external_file_cache: "false",
  ...(limits.memoryLimit === undefined ? {} : { memory_limit: limits.memoryLimit }),
  ...(limits.temporaryFolder === undefined ? {} : { temp_directory: limits.temporaryFolder }),
  ...(limits.externalAccess === false ? { enable_external_access: "false" } : {}),
})

/** icu's settings exist only once there is a connection. */
export const sessionSettings = "SET TimeZone = 'UTC'"
