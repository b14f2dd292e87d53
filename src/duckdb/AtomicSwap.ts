/**
 * A new version of a database file takes the old one's place: whole or not at all. Readers that have the old
 * file open keep their view of it. The steps are ordered so that a crash at any of them leaves the old or the
 * new version.
 */
import { existsSync } from "node:fs"
import { chmod, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import { closedConfiguration } from "./Configuration.ts"

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

const sync = async (path: string): Promise<void> => {
  const handle = await open(path, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * `mode` is that of the final file: 0600, or 0640 where the job shares its tables. Rejects with what failed.
 */
export const swapFiles = async (buildPath: string, finalPath: string, mode: number): Promise<void> => {
  // Opening a path that does not exist would create and publish an empty database.
  if (!existsSync(buildPath)) throw new Error("there is no file to publish")
  await checkpoint(buildPath)
  // A database whose log remains is incomplete without it, and the log does not travel with a rename.
  if (existsSync(`${buildPath}.wal`)) throw new Error("a write-ahead log remains after the checkpoint")
  await chmod(buildPath, mode)
  await sync(buildPath)
  // A log beside the final name belongs to the version that goes; it must never be replayed into the new one.
  await rm(`${finalPath}.wal`, { force: true })
  await rename(buildPath, finalPath)
  await sync(dirname(finalPath))
}
