/**
 * Replaces a database file by a new version: completely or not at all. Readers that have the old file open
 * keep their view of it. The steps are ordered so that a crash at any of them leaves either the old or the
 * new version.
 */
import { closeSync, existsSync, openSync, readSync } from "node:fs"
import { dirname } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import { Effect } from "effect"
import { durableFiles } from "./DurableFile.ts"
import { closedConfiguration } from "./Configuration.ts"
import { failureOf } from "./DuckDbFailed.ts"

/** Empties the write-ahead log into the file and closes it; DuckDB removes the log on closing. */
const checkpoint = async (path: string): Promise<void> => {
  const instance = await DuckDBInstance.create(path, closedConfiguration({ threads: 1 }))
  try {
    const connection = await instance.connect()
    try {
      await connection.run("FORCE CHECKPOINT")
    } finally {
      connection.closeSync()
    }
  } finally {
    instance.closeSync()
  }
}

/** Whether the file says that it is a database: these bytes follow the checksum of its first block. */
const isDatabase = (path: string): boolean => {
  const bytes = Buffer.alloc(12)
  const file = openSync(path, "r")
  try {
    readSync(file, bytes)
  } finally {
    closeSync(file)
  }
  return bytes.toString("latin1", 8) === "DUCK"
}

/** `mode` is that of the final file: 0600, or 0640 if the job shares its tables. */
export const swapFiles = Effect.fnUntraced(function* (buildPath: string, finalPath: string, mode: number) {
  const files = yield* durableFiles
  const failed = (cause: unknown) => failureOf(`swap ${buildPath} -> ${finalPath}`, cause)
  // Opening a path that does not exist would create and publish an empty database.
  if (!existsSync(buildPath)) return yield* failed(new Error("there is no file to publish"))
  if (!(yield* Effect.try({ try: () => isDatabase(buildPath), catch: failed })))
    return yield* failed(new Error("it is no database"))
  // A database whose log remains is incomplete without it, and the log does not travel with a rename.
  // One that was closed has none: opening it once more would cost as much as a small night's rows.
  const log = `${buildPath}.wal`
  if (existsSync(log)) yield* Effect.tryPromise({ try: () => checkpoint(buildPath), catch: failed })
  if (existsSync(log)) return yield* failed(new Error("a write-ahead log remains after the checkpoint"))
  yield* Effect.mapError(files.settle(buildPath, mode), failed)
  yield* Effect.try({
    try: () => {
      // A log beside the final name belongs to the old version and must never be replayed into the new one.
      files.remove(`${finalPath}.wal`)
      files.rename(buildPath, finalPath)
      files.syncFolder(dirname(finalPath))
    },
    catch: failed,
  })
})
