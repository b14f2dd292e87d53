/**
 * `nightjar pseudonyms [NAME]`: who is who in the published tables. Nothing is stored for it: the customers
 * are those of the ledger, and the key is where the job says.
 */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { openedLedger, publishedKey, requireLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { Wiring } from "../Wiring.ts"

const inLedger = Effect.fnUntraced(function* (output: string) {
  const wiring = yield* Wiring
  const read = Effect.flatMap(openedLedger, (ledger) => ledger.customers)
  return yield* Effect.provide(read, wiring.ledger(output, "read-only"))
})

export const pseudonyms = Command.make(
  "pseudonyms",
  {
    name: Argument.String("NAME").pipe(
      Argument.withDescription("A customer's id or a pseudonym (default: all)"),
      Argument.optional,
    ),
    value: optionalFlag("value", "TEXT", "The pseudonym of this value of a chosen column"),
    json: jsonFlag,
  },
  Effect.fn("Pseudonyms.handle")(function* ({ name, value, json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const key = yield* publishedKey(output)
    if (key === undefined) return yield* refuse("pseudonyms-none", { output })
    if (Option.isSome(value)) {
      const pseudonym = key.pseudonymOf("value", value.value)
      return yield* json ? sayJson({ pseudonym }) : say(pseudonym)
    }
    const all = (yield* inLedger(output)).map((customer_id) => ({
      customer_id,
      pseudonym: key.pseudonymOf("customer_id", customer_id),
    }))
    const chosen = all.filter(
      ({ customer_id, pseudonym }) =>
        Option.isNone(name) || name.value === customer_id || name.value === pseudonym,
    )
    if (chosen.length === 0 && Option.isSome(name)) return yield* refuse("pseudonym-unknown")
    if (json) return yield* sayJson(chosen)
    const { out } = yield* Output
    const rows = chosen.map(({ customer_id, pseudonym }) => [customer_id, pseudonym])
    yield* say(table(["customer", "pseudonym"], rows, { width: out.width }))
  }),
).pipe(
  Command.withDescription(
    "Shows which customer each pseudonym stands for\n\n" +
      "For tables of a job with `pseudonyms`. The customers are those of the ledger,\n" +
      "and the key is where the job says: whoever holds only the tables has neither.",
  ),
  Command.withShortDescription("Shows which customer each pseudonym stands for"),
  Command.withExamples([
    { command: "nightjar pseudonyms c-0001", description: "What the tables call a customer" },
    { command: "nightjar pseudonyms --value ES9121000418450200051332", description: "A value of a column" },
  ]),
)
