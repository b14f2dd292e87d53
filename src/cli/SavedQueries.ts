/**
 * The queries that come with the program: one SQL file each, in `schemas/queries`, whose first line says in
 * a comment what it answers. `nightjar query @NAME` runs one.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { suggestion } from "../base/Nearest.ts"
import { refuse } from "./Failures.ts"
import { Wiring } from "./Wiring.ts"

export interface SavedQuery {
  readonly name: string
  readonly description: string
  readonly sql: string
}

/** In the order of their names. */
export const readSavedQueries = (packageFolder: string): ReadonlyArray<SavedQuery> => {
  const folder = join(packageFolder, "schemas/queries")
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(folder, file), "utf8")
      const [first = "", ...rest] = text.split("\n")
      const description = first.replace(/^--\s*/, "")
      return { name: file.slice(0, -".sql".length), description, sql: rest.join("\n") }
    })
}

export const savedQueries = Effect.map(Wiring, ({ packageFolder }) => readSavedQueries(packageFolder))

/** `@missing` -> its SQL; any other text is SQL already. */
export const sqlOf = Effect.fnUntraced(function* (text: string) {
  if (!text.startsWith("@")) return text
  const saved = yield* savedQueries
  const found = saved.find(({ name }) => `@${name}` === text)
  if (found !== undefined) return found.sql
  const names = saved.map(({ name }) => `@${name}`)
  return yield* refuse("saved-query-unknown", { suggestion: suggestion(text, names) })
})
