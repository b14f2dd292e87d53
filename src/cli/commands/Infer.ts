/**
 * `nightjar infer`: drafts a record schema for each family that has none, from its records in the published
 * tables. Writes to stdout and changes nothing: whoever takes a draft puts it into the job's `schemas`.
 */
import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { counted, suggestion } from "../../base/Text.ts"
import { jsonFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { familiesOf, policyOf } from "../LookAtFolder.ts"
import { note, say, sayJson, warn } from "../Output.ts"
import { withPublished } from "../PublishedDatabase.ts"
import { basesOf, inferDrafts, looseKinds } from "../InferDrafts.ts"

const named = (name: Option.Option<string>, value: string) => Option.isNone(name) || name.value === value

export const infer = Command.make(
  "infer",
  {
    product: optionalFlag("product", "PRODUCT", "Only records of this product"),
    subFamily: optionalFlag("sub-family", "SUB_FAMILY", "Only records of this sub_family"),
    json: jsonFlag,
  },
  Effect.fn("Infer.handle")(function* ({ product, subFamily, json }) {
    const output = yield* outputFolder
    if ((yield* policyOf(output)) !== undefined) return yield* refuse("records-withheld")
    const families = yield* familiesOf(output)
    const found = yield* withPublished(
      output,
      Effect.fnUntraced(function* (connection) {
        const kinds = yield* looseKinds(connection)
        const chosen = kinds.filter(
          (each) => named(product, each.product) && named(subFamily, each.sub_family),
        )
        if (chosen.length === 0 && kinds.length > 0) {
          const isProduct = Option.isSome(product) && kinds.every((each) => each.product !== product.value)
          const wanted = isProduct ? product.value : Option.getOrElse(subFamily, () => "")
          const known = new Set(kinds.map((each) => (isProduct ? each.product : each.sub_family)))
          return yield* refuse("family-unknown", { suggestion: suggestion(wanted, [...known]) })
        }
        const { bases, waiting } = basesOf(chosen, families)
        return { drafts: yield* inferDrafts(connection, bases, families), waiting }
      }),
    )
    if (found === undefined) return yield* refuse("nothing-published", { output })
    const { drafts, waiting } = found
    if (waiting > 0) yield* warn("records-have-schema", { records: counted(waiting, "record") })
    if (drafts.length === 0) yield* note("There is nothing to draft: every record has a table of its own.")
    if (json) return yield* sayJson(drafts)
    for (const [index, { yaml }] of drafts.entries())
      yield* say(`${index === 0 ? "" : "---\n"}${yaml.trimEnd()}`)
    if (drafts.length > 0)
      yield* note(
        `${counted(drafts.length, "draft")}. Put each in a file of its own in records/ of the job's ` +
          "`schemas` folder; --product and --sub-family choose one.",
      )
  }),
).pipe(
  Command.withDescription("Drafts a record schema for each family that has none"),
  Command.withExamples([
    {
      command: "nightjar infer --product accounts > schemas/records/accounts.yaml",
      description: "A draft to complete, for a job with `schemas: ./schemas`",
    },
  ]),
)
