/**
 * Keeps the record schemas in force beside the tables, under `schemas/`: one file per table and text,
 * written once and never changed. The manifest names the versions of a publication and of each run, so that
 * tables can be read, checked and derived again when a schema has changed or is gone from its folder.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { keptName, keptOf } from "../records/SchemasInForce.ts"
import { filesBelow, fileStep } from "./OutputFiles.ts"
import type { Store } from "./Store.ts"
import { temporary } from "./Store.ts"

/** Version by table. */
type Versions = Readonly<Record<string, number>>

const newestVersions = (folder: string): Map<string, number> => {
  const newest = new Map<string, number>()
  for (const { table, version } of filesBelow(folder).flatMap((name) => keptOf(name) ?? []))
    newest.set(table, Math.max(version, newest.get(table) ?? 0))
  return newest
}

/** Writes every text that is not the newest of its table, and returns the versions in force. */
export const keepSchemas = ({ layout, files, modes, schemas }: Store) =>
  fileStep((): Versions => {
    const newest = newestVersions(layout.schemas)
    files.makeFolder(layout.schemas, modes.folder)
    const inForce = [...schemas.texts].map(([table, text]) => {
      const version = newest.get(table) ?? 0
      const path = join(layout.schemas, keptName(table, version))
      if (version > 0 && existsSync(path) && readFileSync(path, "utf8") === text)
        return [table, version] as const
      const next = join(layout.schemas, keptName(table, version + 1))
      files.replace(next, text, modes.file, temporary(next))
      return [table, version + 1] as const
    })
    return Object.fromEntries(inForce)
  })

/** Whether a run was derived with other schemas than those in force; unknown for runs of older versions. */
export const isOfOtherSchemas = (run: { readonly schemas?: Versions }, inForce: Versions | undefined) => {
  const { schemas } = run
  if (schemas === undefined || inForce === undefined) return false
  const tables = new Set([...Object.keys(schemas), ...Object.keys(inForce)])
  return [...tables].some((table) => schemas[table] !== inForce[table])
}

/** Whether each table that a run could have rows in has the schema that it had then; others came since. */
export const keepsItsSchemas = (run: { readonly schemas?: Versions }, inForce: Versions | undefined) =>
  inForce === undefined ||
  Object.entries(run.schemas ?? {}).every(([table, version]) => inForce[table] === version)
