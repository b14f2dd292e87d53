/**
 * The published database, opened for reading: every command that looks into the tables uses it. No statement
 * can open a file, not even this one or its log.
 */
import { existsSync } from "node:fs"
import { Effect } from "effect"
import type { Connection } from "../base/DuckDb.ts"
import { Wiring } from "./Wiring.ts"

/** Undefined, without `use`, if nothing is published in the folder yet. */
export const withPublished = Effect.fnUntraced(function* <A, E, R>(
  output: string,
  use: (connection: Connection) => Effect.Effect<A, E, R>,
) {
  const path = `${output}/nightjar.duckdb`
  if (!existsSync(path)) return undefined
  const wiring = yield* Wiring
  return yield* Effect.gen(function* () {
    const { DuckDb } = yield* Effect.promise(() => import("../base/DuckDb.ts"))
    const database = yield* DuckDb
    return yield* use(yield* database.open({ path, access: "read-only", files: "none" }))
  }).pipe(Effect.scoped, Effect.provide(wiring.database))
})
