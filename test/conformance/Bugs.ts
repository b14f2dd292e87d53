/**
 * The bug of every row of the inventory: the small change to a source that the row's tests must notice. Bugs
 * are written down by hand in `bugs/*.yaml`, one file for each part of the inventory; a change names a text
 * that stands exactly once in its file, so that a source which moves on says so instead of hiding its bug.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { parse } from "yaml"
import { inventoryParts, readInventory } from "./Inventory.ts"
import { plantAll, type Change } from "./PlantText.ts"

export interface Bug extends Change {
  readonly id: string
}

/** Source by source, and in it row by row: what is replaced, and by what. */
const Entry = Schema.Record(
  Schema.String,
  Schema.Record(Schema.String, Schema.Tuple([Schema.String, Schema.String])),
)
const decodeEntries = Schema.decodeUnknownSync(Schema.Array(Entry))

/** `field engine.name` gives `name` and `engine`, `startExecution 401` gives `401` and `startExecution`. */
const fill = (text: string, id: string): string => {
  const [word = id, of = ""] = id.split(/[ .]/).toReversed()
  return text.replaceAll("{}", word).replaceAll("{of}", of)
}

const isMeant = (pattern: string, id: string): boolean => {
  const [head = "", tail = ""] = pattern.split("*")
  return id.startsWith(head) && id.endsWith(tail)
}

/**
 * A `*` stands for whatever makes it one of these ids that has no bug of its own; the first that fits counts. In such a
 * bug `{}` is the last word of the row's id and `{of}` the one before it.
 */
export const decodeBugs = (document: unknown, ids: ReadonlyArray<string>): ReadonlyArray<Bug> => {
  const bugs = decodeEntries(document).flatMap((entry) =>
    Object.entries(entry).flatMap(([file, rows]) =>
      Object.entries(rows).map(([id, [replace, by]]) => ({ id, in: file, replace, by })),
    ),
  )
  const named = bugs.filter(({ id }) => !id.includes("*"))
  const own = new Set(named.map(({ id }) => id))
  const others = ids.flatMap((id) => {
    const bug = own.has(id) ? undefined : bugs.find((one) => one.id.includes("*") && isMeant(one.id, id))
    return bug === undefined ? [] : [{ ...bug, id, replace: fill(bug.replace, id), by: fill(bug.by, id) }]
  })
  return [...named, ...others]
}

const pathOf = (name: string) => fileURLToPath(new URL(`./bugs/${name}.yaml`, import.meta.url))
const read = (name: string): unknown => parse(readFileSync(pathOf(name), "utf8"), { uniqueKeys: true })

export const readBugs = (): ReadonlyArray<Bug> => {
  const inventory = readInventory()
  return inventoryParts.flatMap((part) =>
    decodeBugs(
      read(part),
      inventory.flatMap((row) => (row.part === part ? [row.id] : [])),
    ),
  )
}

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

/** What keeps a bug from being planted, one line each; empty when every change fits its source. */
export const misfits = (
  bugs: ReadonlyArray<Bug>,
  source: (path: string) => string | undefined = sourceAt,
): ReadonlyArray<string> =>
  bugs.flatMap((bug) => {
    const text = source(bug.in)
    if (text === undefined) return [`the bug of [${bug.id}] is for ${bug.in}, which is not there`]
    const planted = plantAll(text, bug.in, [bug])
    if (planted === undefined)
      return [`the bug of [${bug.id}] replaces what is not exactly once in ${bug.in}`]
    return planted === text ? [`the bug of [${bug.id}] changes nothing in ${bug.in}`] : []
  })
