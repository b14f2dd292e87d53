/**
 * `nightjar tables [TABLE]`: the data dictionary: every published table and view with its columns, from the
 * same source as the database's comments, then the models of jobs; before anything is published, with the
 * program's own schemas.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { suggestion } from "../../foundation/Nearest.ts"
import { table, wrap } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { familiesOf } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { Wiring } from "../Wiring.ts"

/** Models of jobs in the published database; none before anything is published. */
const modelsIn = Effect.fnUntraced(function* (output: string, known: ReadonlySet<string>) {
  const { database } = yield* Wiring
  const path = join(output, "nightjar.duckdb")
  if (!existsSync(path)) return []
  const { publishedModels } = yield* Effect.promise(() => import("../../publishing/Models.ts"))
  return yield* Effect.provide(publishedModels(path, known), database)
})

export const tables = Command.make(
  "tables",
  {
    name: Argument.String("TABLE").pipe(
      Argument.withDescription("One table (default: all of them)"),
      Argument.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn("Tables.handle")(function* ({ name, json }) {
    const { dataDictionary } = yield* Effect.promise(() => import("../../publishing/DataDictionary.ts"))
    const output = yield* outputFolder
    const own = dataDictionary(yield* familiesOf(output))
    const all = [...own, ...(yield* modelsIn(output, new Set(own.map((one) => one.name))))]
    const chosen = all.filter((one) => Option.isNone(name) || one.name === name.value)
    if (chosen.length === 0 && Option.isSome(name)) {
      const names = all.map((one) => one.name)
      return yield* refuse("table-unknown", { suggestion: suggestion(name.value, names) })
    }
    if (json) return yield* sayJson(chosen)
    const { out } = yield* Output
    for (const one of chosen) {
      yield* say(wrap(`${one.name} (${one.kind}): ${one.comment}`, out.width))
      if (one.kind !== "table" && Option.isNone(name)) continue
      const rows = one.columns.map((column) => ["", column.name, column.type, column.comment])
      yield* say(`${table(["", "column", "type", "meaning"], rows, { width: out.width })}\n`)
    }
  }),
).pipe(Command.withDescription("Describes every published table and view"))
