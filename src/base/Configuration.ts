/**
 * The settings every database of ours is opened with: closed to the network, bounded, in UTC. Nothing is ever
 * downloaded: json, parquet and icu are built in, and a query that needs more fails instead.
 */

export interface DuckDbLimits {
  /** Threads of one database; a run's own writers take 1, so that the machine stays usable. */
  readonly threads?: number
  /** DuckDB's own spelling, such as `1GB`. */
  readonly memoryLimit?: string
  /**
   * The files that SQL can open; all if it is not said. `own`: the database's, its log and what does not fit
   * into memory. `none`: not even those, since `COPY … TO` would write over the database although it was
   * opened read-only; what does not fit into memory fails. Neither can change a setting.
   */
  readonly files?: "own" | "none"
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
  ...(limits.files === "none" ? { temp_directory: "" } : {}),
  ...(limits.files === undefined ? {} : { enable_external_access: "false" }),
})

/**
 * What can only be set once the database is open and there is a connection: it holds for all of its
 * connections. The last one closes the others.
 */
export const settingsOnceOpen = (limits: DuckDbLimits): ReadonlyArray<string> => [
  "SET GLOBAL TimeZone = 'UTC'",
  ...(limits.files === "none" ? ["SET GLOBAL disabled_filesystems = 'LocalFileSystem'"] : []),
  ...(limits.files === undefined ? [] : ["SET GLOBAL lock_configuration = true"]),
]
