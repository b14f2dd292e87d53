/**
 * Names for people: `nightjar documents` copies each downloaded document under one, in
 * `documents/<customer>/` of the output folder, and what has its name keeps it; `nightjar pseudonyms [NAME]`
 * says who is who in the published tables, from the customers of the ledger and the key that the job names.
 * /
 */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { counted } from "../../base/Text.ts"
import { jsonFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { openedLedger, publishedKey, requireLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { nameDocumentsIn } from "../PruneJobs.ts"
import { holdOutput, shareOf } from "../RunFolder.ts"
import { Wiring } from "../Wiring.ts"
import type { NamedDocuments, NamingFailed } from "../../folder/NamedDocuments.ts"
import { table } from "../../report/TextTable.ts"

const refusalOf = (path: string, { message, foreign }: NamingFailed) =>
  foreign === undefined
    ? refuse("documents-stopped", { why: message })
    : refuse("documents-not-ours", { path, entries: foreign })

const tell = (path: string, { documents, customers, added, removed, gone }: NamedDocuments): string => {
  const of = `${counted(documents, "document")} of ${counted(customers, "customer")}`
  const what = `${path}: ${of}, ${added} new, ${removed} removed.`
  return gone === 0 ? what : `${what} No longer here, by age or loss: ${counted(gone, "document")}.`
}

export const documents = Command.make(
  "documents",
  { json: jsonFlag },
  Effect.fn("Documents.handle")(function* ({ json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const path = resolve(output, "documents")
    const named = yield* Effect.gen(function* () {
      yield* holdOutput(output, [shareOf(output)])
      return yield* nameDocumentsIn(output)
    }).pipe(
      Effect.scoped,
      Effect.catchTag("NamingFailed", (failure: NamingFailed) => Effect.fail(refusalOf(path, failure))),
    )
    if (named === undefined) return yield* refuse("nothing-published", { output })
    yield* json ? sayJson({ path, ...named }) : say(tell(path, named))
  }),
).pipe(
  Command.withDescription(
    "Copies each downloaded document to documents/<customer>/, named for people\n\n" +
      "A name is the date of the first run that downloaded the document, the engine,\n" +
      "the title, and digits of the content's SHA-256, which distinguish documents with\n" +
      "the same title. A document keeps the name it was first given; one that a\n" +
      "customer received twice is copied once. With `output: { documents: by_name }` in\n" +
      "a job, each of its runs does this at its end. `retain` and `forget` remove the\n" +
      "copies with their documents; a backup leaves them out, and this command makes\n" +
      "them again.",
  ),
  Command.withShortDescription("Copies documents under names for people"),
  Command.withExamples([{ command: "nightjar documents", description: "New documents of all customers" }]),
)

// `nightjar pseudonyms [NAME]`: who is who in the published tables. Nothing is stored for it: the customers
// are those of the ledger, and the key is where the job says.

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
