/**
 * The stage in which a run's landed bodies become tables: what was published, what had to be left out of it,
 * and what a gate held back, are facts; an execution whose body was left out stays at the service.
 */
import { Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import { tell } from "../task/Progress.ts"
import type { Fact } from "../ledger/Fact.ts"
import type { LeftOutBody } from "../ledger/LeftOutBody.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunPublished } from "../ledger/RunFacts.ts"
import type { RunState } from "../ledger/RunState.ts"
import { Publisher } from "../tables/Publisher.ts"
import type { Released } from "../tables/Publisher.ts"

/** The state of a run that must be in the ledger. */
export const runIn = Effect.fnUntraced(function* (ledger: Ledger["Service"], run_id: RunId) {
  const state = yield* ledger.state(run_id)
  return state ?? (yield* Effect.die(new Error(`the ledger has no run ${run_id}`)))
})

/**
 * Returns earlier runs that a gate had held back and that this version contains: their deletions and their
 * end are still to come.
 */
export const publishStage = Effect.fnUntraced(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const publisher = yield* Publisher
  yield* tell({ _tag: "Stage", run_id, stage: "publishing" })
  const published = yield* publisher
    .publish(run_id)
    .pipe(
      Effect.catchTag("PublicationHeld", ({ database, gates }) =>
        Effect.as(ledger.append([{ _tag: "RunHeld", run_id, database, gates }]), undefined),
      ),
    )
  if (published === undefined) return []
  const {
    version,
    unfit = [],
    gone = [],
    models = [],
    delta = [],
    without = [],
    stale,
    released = [],
  } = published
  const own: Fact = {
    ...publishedFact(run_id, version, published),
    ...(without.length === 0 ? {} : { without }),
    ...(unfit.length === 0 ? {} : { unfit }),
    ...(models.length === 0 ? {} : { models }),
    ...(gone.length === 0 ? {} : { gone }),
    ...(delta.length === 0 ? {} : { delta }),
    ...(stale === undefined ? {} : { stale }),
  }
  const facts: Array<Fact> = [own, ...keptFacts(yield* runIn(ledger, run_id), published.left_out)]
  for (const one of released)
    facts.push(
      publishedFact(one.run_id, version, one),
      ...keptFacts(yield* runIn(ledger, one.run_id), one.left_out),
    )
  // Together: a run of which this is recorded never lacks the runs that became current with it.
  yield* ledger.append(facts)
  return released.map((one) => one.run_id)
})

const publishedFact = (
  run_id: RunId,
  version: number,
  { receipts, left_out, delivered, engines, misfits, rejected, other }: Omit<Released, "run_id">,
): typeof RunPublished.Type => ({
  _tag: "RunPublished",
  run_id,
  version,
  receipts,
  ...(left_out.length === 0 ? {} : { left_out }),
  ...(delivered.length === 0 ? {} : { delivered }),
  ...(engines === undefined ? {} : { engines }),
  ...(misfits.length === 0 ? {} : { misfits }),
  ...(rejected.length === 0 ? {} : { rejected }),
  other,
})

/** An execution with a body that could not be published stays at the service, whatever was proved before. */
const keptFacts = (
  { started: { run_id }, tasks }: RunState,
  left_out: ReadonlyArray<LeftOutBody>,
): ReadonlyArray<Fact> =>
  [...new Map(left_out.map((one) => [one.execution_id, one])).values()].flatMap(
    (one): ReadonlyArray<Fact> => {
      const { task_id, execution_id, where, reason } = one
      const of = tasks.get(task_id)?.attempts.find((one) => one.execution_id === execution_id)
      if (of?.closed === undefined || execution_id === undefined || !of.drained) return []
      const message = `landing/${run_id}/${where} is not in the tables: ${reason}`
      const ids = { run_id, task_id, attempt: of.attempt, execution_id }
      return [{ _tag: "AttemptKept", ...ids, reason: "ANSWER_UNUSABLE", families: [], message }]
    },
  )
