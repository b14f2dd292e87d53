/**
 * `nightjar documents`: gives each downloaded document a name for people, in `documents/<customer>/` of the
 * output folder. What has its name keeps it, so the command may be repeated at any time.
 */
import { resolve } from "node:path"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { counted } from "../../base/Text.ts"
import type { NamedDocuments, NamingFailed } from "../../folder/NamedDocuments.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { holdOutput, shareOf } from "../RunFolder.ts"
import { requireLedger } from "../LookAtFolder.ts"
import { nameDocumentsIn } from "../PruneJobs.ts"
import { say, sayJson } from "../Output.ts"

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
