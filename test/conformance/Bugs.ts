/**
 * The bug of every row of the inventory: the small change to a source that the row's tests must notice. Bugs
 * are written down by hand in `bugs/*.yaml`, one file for each part of the inventory; a change names a text
 * that stands exactly once in its file, so that a source which moves on says so instead of hiding its bug.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { parse } from "yaml"
import { inventoryParts } from "./Inventory.ts"
import { plantAll } from "./PlantText.ts"
import type { Change } from "./PlantText.ts"

export interface Bug {
  readonly id: string
  readonly changes: ReadonlyArray<Change>
}

const changeFields = { in: Schema.String, replace: Schema.String, by: Schema.String }
const Pair = Schema.Tuple([Schema.String, Schema.String])

/**
 * `rows`: what is replaced and by what, row by row, in one file. `each`: one change for many rows, in which
 * `{}` is the last word of the row's id and `{of}` the one before it. `row`: one row whose bug takes several
 * changes.
 */
const Entry = Schema.Union([
  Schema.Struct({ in: Schema.String, rows: Schema.Record(Schema.String, Pair) }),
  Schema.Struct({ ...changeFields, each: Schema.Array(Schema.String) }),
  Schema.Struct({ row: Schema.String, changes: Schema.Array(Schema.Struct(changeFields)) }),
])
const decodeEntries = Schema.decodeUnknownSync(Schema.Array(Entry), { onExcessProperty: "error" })

/** `field engine.name` gives `name` and `engine`, `startExecution 401` gives `401` and `startExecution`. */
const wordsOf = (id: string) => {
  const [word = id, of = ""] = id.split(/[ .]/).toReversed()
  return { word, of }
}

const bugsOf = (entry: typeof Entry.Type): ReadonlyArray<Bug> => {
  if ("row" in entry) return [{ id: entry.row, changes: entry.changes }]
  if ("rows" in entry) {
    return Object.entries(entry.rows).map(([id, [replace, by]]) => ({
      id,
      changes: [{ in: entry.in, replace, by }],
    }))
  }
  return entry.each.map((id) => {
    const { word, of } = wordsOf(id)
    const filled = (text: string) => text.replaceAll("{}", word).replaceAll("{of}", of)
    return { id, changes: [{ in: filled(entry.in), replace: filled(entry.replace), by: filled(entry.by) }] }
  })
}

export const decodeBugs = (document: unknown): ReadonlyArray<Bug> => decodeEntries(document).flatMap(bugsOf)

const pathOf = (name: string) => fileURLToPath(new URL(`./bugs/${name}.yaml`, import.meta.url))
const read = (name: string): unknown => parse(readFileSync(pathOf(name), "utf8"), { uniqueKeys: true })

export const readBugs = (): ReadonlyArray<Bug> =>
  inventoryParts.flatMap((part) => decodeBugs(read(part) ?? []))

/** Rows whose bug no test notices, each with the reason why that is accepted. */
export const readAccepted = (): Readonly<Record<string, string>> =>
  Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.String))(read("accepted") ?? {})

const sourceAt = (path: string): string | undefined => {
  try {
    return readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8")
  } catch {
    return undefined
  }
}

const misfitIn = ({ id, changes }: Bug, file: string, text: string | undefined): ReadonlyArray<string> => {
  if (text === undefined) return [`the bug of [${id}] is for ${file}, which is not there`]
  const planted = plantAll(text, file, changes)
  if (planted === undefined) return [`the bug of [${id}] replaces what is not exactly once in ${file}`]
  return planted === text ? [`the bug of [${id}] changes nothing in ${file}`] : []
}

/** What keeps a bug from being planted, one line each; empty when every change fits its source. */
export const misfits = (
  bugs: ReadonlyArray<Bug>,
  source: (path: string) => string | undefined = sourceAt,
): ReadonlyArray<string> =>
  bugs.flatMap((bug) =>
    [...new Set(bug.changes.map((change) => change.in))].flatMap((file) => misfitIn(bug, file, source(file))),
  )
