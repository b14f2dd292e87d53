/**
 * `nightjar forget CUSTOMER`: removes a customer from the output folder and from the service, with a receipt
 * that does not say who it was.
 */
import { Effect, Layer } from "effect"
import { Argument, Command } from "effect/cli"
import { resolve } from "node:path"
import { CustomerId } from "../../service/Ids.ts"
import type { RunId } from "../../service/Ids.ts"
import { counted } from "../../base/Text.ts"
import type { ForgetFailed, ForgetPlan, Remaining } from "../../folder/Forget.ts"
import type { NamesLeft } from "../../folder/Mentions.ts"
import type { ForgetCounts } from "../../ledger/Fact.ts"
import type { Store } from "../../tables/Store.ts"
import { jobFlags, jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { refuse, toolVersion } from "../Failures.ts"
import {
  deleteRemote,
  jobsOf,
  leftOf,
  leftText,
  mayRemain,
  remainingText,
  remoteOf,
  requireJobs,
  withRemaining,
} from "../ForgetRemote.ts"
import type { Remote } from "../ForgetRemote.ts"
import { holdOutput, shareOf } from "../RunFolder.ts"
import { openedStoreWithKey, requireLedger } from "../LookAtFolder.ts"
import { note, say, sayJson, warn } from "../Output.ts"
import { keepUnpruned } from "../PruneJobs.ts"
import { Wiring } from "../Wiring.ts"
import { planForget, keepPlan } from "../../folder/Forget.ts"
import { namesLeft } from "../../folder/Mentions.ts"
import { rewriteReport } from "../RunReport.ts"

const refusalOf = ({ message, isOther }: ForgetFailed) =>
  isOther === true ? refuse("forget-other") : refuse("forget-stopped", { why: message })

const inFolder = Effect.fnUntraced(function* <A, E, R>(output: string, work: Effect.Effect<A, E, R>) {
  const wiring = yield* Wiring
  return yield* Effect.provide(work, Layer.mergeAll(wiring.database, wiring.ledger(output, "read-write")))
})

const keeping = Effect.promise(() => import("../../folder/Forget.ts"))

const tellNames = Effect.fnUntraced(function* ({ jobs, jobPaths, folder, models }: NamesLeft) {
  for (const name of jobs) yield* warn("customer-in-job-name", { name })
  for (const path of jobPaths) yield* warn("customer-in-job-path", { path })
  if (folder !== undefined) yield* warn("customer-in-folder-name", { path: folder })
  for (const { job, name } of models) yield* warn("customer-in-model", { job, name })
})

/** What is here and what is at the service, before anything is removed. */
const lookFor = Effect.fnUntraced(function* (output: string, customer_id: CustomerId) {
  const { checkWhole } = yield* keeping
  const store = yield* openedStoreWithKey(output, shareOf(output))
  return yield* inFolder(
    output,
    Effect.gen(function* () {
      yield* checkWhole(store)
      const plan = yield* planForget(store, customer_id)
      if (plan === undefined) return yield* refuse("customer-unknown", { output })
      yield* tellNames(yield* namesLeft(store, customer_id))
      const remote = yield* remoteOf(output, plan)
      return { store, plan: withRemaining(plan, remote), remote }
    }),
  )
})

/** Deletes at the service; what is left there afterwards ends the command, unless it may stay. */
const clearService = Effect.fnUntraced(function* (
  output: string,
  { store, plan, remote }: { readonly store: Store; readonly plan: ForgetPlan; readonly remote: Remote },
  given: ReadonlyArray<string>,
  isHereOnly: boolean,
) {
  const jobs = yield* jobsOf(remote, given)
  for (const job of jobs)
    if (job.assignments.some(({ customer_id }) => customer_id === plan.customer_id))
      yield* warn("customer-still-in-job", { path: job.path })
  const isDue = !isHereOnly && leftOf(remote) > 0
  if (isDue) yield* requireJobs(remote, jobs)
  // The intent: from here on the same command continues, whatever happens.
  yield* keepPlan(store, plan)
  if (!isDue) return { plan, remote }
  yield* deleteRemote(output, remote, jobs)
  const after = yield* inFolder(output, remoteOf(output, plan))
  if (leftOf(after) > 0) return yield* refuse("forget-pending", { left: leftText(after) })
  return { plan: withRemaining(plan, after), remote: after }
})

interface Choice {
  readonly jobs: ReadonlyArray<string>
  readonly hereOnly: boolean
  readonly json: boolean
}

const forgets = Effect.fnUntraced(function* (
  output: string,
  customer_id: CustomerId,
  { jobs, hereOnly, json }: Choice,
) {
  const found = yield* lookFor(output, customer_id)
  const { store } = found
  const { plan: cleared, remote } = yield* clearService(output, found, jobs, hereOnly)
  const { deleted, given_up } = remote
  const { remaining: may_remain = [] } = cleared
  const counts: ForgetCounts = { ...found.plan.counts, deleted, given_up, left_at_service: leftOf(remote) }
  const plan: ForgetPlan = { ...cleared, counts }
  yield* tellRemaining(may_remain, json)
  const { forget: forgetIn } = yield* keeping
  const share = shareOf(output)
  const rewrite = (run_id: RunId) => rewriteReport({ output, run_id, share })
  const result = yield* inFolder(output, forgetIn(store, plan, toolVersion, rewrite))
  return { receipt: plan.receipt, ...counts, ...result, may_remain }
})

/** Before anything is removed here; beside JSON on stderr, which is there if the command is cut off. */
const tellRemaining = Effect.fnUntraced(function* (remaining: ReadonlyArray<Remaining>, isJson = false) {
  const text = remainingText(remaining).join("\n")
  if (text !== "") yield* isJson ? note(text) : say(text)
})

const tokensToo = "executions or tokens"

const lines = (counts: ForgetCounts): ReadonlyArray<string> => [
  `  runs          ${counted(counts.runs, "run")}, ${counted(counts.facts, "fact")} of the ledger`,
  `  landing       ${counted(counts.bodies, "body", "bodies")}`,
  `  documents     ${counted(counts.documents, "document")}`,
  `  tables        ${counted(counts.rows, "row")}`,
  `  held back     ${counted(counts.held, "version")}`,
  `  token store   ${counted(counts.tokens, "token or ticket", "tokens and tickets")}`,
  `  recordings    ${counted(counts.recordings, "recording")}`,
]

const elsewhere =
  "Not touched: copies that `nightjar backup` made, files that were exported, the job's own files, and\n" +
  "what records of other customers say."

const tellFound = Effect.fnUntraced(function* (plan: ForgetPlan, remote: Remote, isHereOnly: boolean) {
  yield* say(["This would be removed:", ...lines(plan.counts)].join("\n"))
  if (leftOf(remote) > 0 && !isHereOnly) yield* say(`Deleted at the service first: ${leftText(remote)}.`)
  yield* tellRemaining(mayRemain(plan, isHereOnly))
  yield* say(elsewhere)
})

type Result = ForgetCounts & { readonly receipt: string; readonly version: number }

const tell = Effect.fnUntraced(function* (result: Result) {
  yield* say(["Removed:", ...lines(result)].join("\n"))
  if (result.deleted > 0)
    yield* say(`The service no longer has ${counted(result.deleted, "execution")} of the customer.`)
  if (result.given_up > 0)
    yield* say(`Of ${counted(result.given_up, "execution")} not all was proved to be here: it is given up.`)
  if (result.left_at_service > 0)
    yield* say(`Left at the service: ${counted(result.left_at_service, "execution or token", tokensToo)}.`)
  if (result.held > 0)
    yield* say("What a gate holds back is derived again by the next run of its job, or by `nightjar accept`.")
  if (result.logins_kept > 0)
    yield* say(
      `Still counted, by keyed fingerprint: ${counted(result.logins_kept, "rejected or unproven login")}.`,
    )
  yield* say(elsewhere)
  yield* say(`Receipt: ${result.receipt}, in the ledger and without the customer's id.`)
})

export const forget = Command.make(
  "forget",
  {
    customer: Argument.String("CUSTOMER").pipe(Argument.withDescription("The customer's id, whole")),
    yes: switchFlag("yes", "Remove it; without this, nothing is removed"),
    dryRun: switchFlag("dry-run", "Show what would be removed"),
    jobs: jobFlags,
    hereOnly: switchFlag("here-only", "Leave what is at the service"),
    json: jsonFlag,
  },
  Effect.fn("Forget.handle")(function* ({ customer, yes, dryRun, jobs, hereOnly, json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    if (!yes && !dryRun) return yield* refuse("forget-unconfirmed")
    const customer_id = CustomerId.make(customer)
    const held = Effect.gen(function* () {
      yield* holdOutput(output, [shareOf(output)])
      yield* keepUnpruned(output)
      if (!dryRun)
        return { forgotten: yield* forgets(resolve(output), customer_id, { jobs, hereOnly, json }) }
      const { plan, remote } = yield* lookFor(output, customer_id)
      return { found: { plan, remote } }
    })
    const done = yield* held.pipe(
      Effect.scoped,
      Effect.catchTag("ForgetFailed", (failure: ForgetFailed) => Effect.fail(refusalOf(failure))),
    )
    if (done.found !== undefined) {
      const { plan, remote } = done.found
      if (json)
        return yield* sayJson({
          ...plan.counts,
          at_service: leftOf(remote),
          may_remain: mayRemain(plan, hereOnly),
        })
      return yield* tellFound(plan, remote, hereOnly)
    }
    if (json) return yield* sayJson(done.forgotten)
    yield* tell(done.forgotten)
  }),
).pipe(
  Command.withDescription(
    "Removes a customer from the output folder and from the service\n\n" +
      "From landing, documents, the tables of every version, the ledger, the token\n" +
      "store, logs, summaries, reports and recordings. Executions and tokens at the\n" +
      "service are deleted first, also those of which not all is proved to be here.\n" +
      "What may remain there all the same (starts whose answer is not known) is named\n" +
      "first, with external ids, engines and times: afterwards nothing here names it.\n" +
      "The receipt says what was removed, and not whose it was. A rejected login\n" +
      "stays rejected. If it is interrupted, the same command finishes it.",
  ),
  Command.withShortDescription("Removes a customer everywhere, with a receipt"),
  Command.withExamples([
    { command: "nightjar forget c-0001 --dry-run", description: "What would be removed" },
    { command: "nightjar forget c-0001 --yes", description: "Remove it" },
  ]),
)
