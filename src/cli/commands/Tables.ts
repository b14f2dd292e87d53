/**
 * `nightjar tables [TABLE]`: the data dictionary: every published table and view with its columns, from the
 * same source as the database's comments; before anything is published, with the program's own schemas.
 */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { suggestion } from "../../foundation/Nearest.ts"
import { table, wrap } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { familiesOf } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"

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
    const all = dataDictionary(yield* familiesOf(yield* outputFolder))
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
