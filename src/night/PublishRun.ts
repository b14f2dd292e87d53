/**
 * The stage in which a run's landed bodies become tables: what was published, and what had to be left out of
 * it, are facts; an execution whose body was left out stays at the service.
 */
import { Effect } from "effect"
import type { RunId } from "../contract/Ids.ts"
import { tell } from "../execution/Progress.ts"
import type { Fact } from "../ledger/Fact.ts"
import type { LeftOutBody } from "../ledger/LeftOutBody.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import { Publisher } from "../publishing/Publisher.ts"

/** The state of a run that must be in the ledger. */
export const runIn = Effect.fnUntraced(function* (ledger: Ledger["Service"], run_id: RunId) {
  const state = yield* ledger.state(run_id)
  return state ?? (yield* Effect.die(new Error(`the ledger has no run ${run_id}`)))
})

export const publishStage = Effect.fnUntraced(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const publisher = yield* Publisher
  yield* tell({ _tag: "Stage", run_id, stage: "publishing" })
  const { version, receipts, left_out, ...notes } = yield* publisher.publish(run_id)
  const { misfits, rejected, unfit = [], gone = [], without = [] } = notes
  const published: Fact = {
    _tag: "RunPublished",
    run_id,
    version,
    receipts,
    ...(without.length === 0 ? {} : { without }),
    ...(left_out.length === 0 ? {} : { left_out }),
    ...(misfits.length === 0 ? {} : { misfits }),
    ...(rejected.length === 0 ? {} : { rejected }),
    ...(unfit.length === 0 ? {} : { unfit }),
    ...(gone.length === 0 ? {} : { gone }),
  }
  yield* ledger.append([published, ...keptFacts(yield* runIn(ledger, run_id), left_out)])
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
