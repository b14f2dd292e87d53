/**
 * Landed bodies that were damaged or removed before they were published: what the service still has of them
 * is read again, without a login. The state is landed at once; the results follow as those of any execution
 * that is closed and not read yet.
 */
import { Clock, Effect } from "effect"
import { given } from "../base/Schemas.ts"
import { retryCall } from "../client/Pacing.ts"
import { Service } from "../client/Service.ts"
import { Landing } from "../landing/Landing.ts"
import type { AttemptKept, BodiesLost, LandedRef } from "../ledger/Fact.ts"
import { append } from "../ledger/Ledger.ts"
import { isElsewhere, type ClosedAttempt, type RunState, type TaskState } from "../ledger/RunState.ts"
import { isAddressable } from "../service/FlowResults.ts"
import { isStranger, readState } from "./Attempt.ts"

const triesMax = 6

interface Lost {
  readonly task: TaskState
  /** Undefined of a session that its customer ran alone. */
  readonly attempt: ClosedAttempt | undefined
  readonly bodies: ReadonlyArray<LandedRef>
}

/** `here`: the service, as `serviceNameOf` names it. Returns whether there is anything to read again. */
export const readLostAgain = Effect.fn("LostBodies.readAgain")(function* (
  run: RunState,
  here: string,
  all: ReadonlyArray<Lost>,
) {
  const found = yield* Effect.forEach(all, ({ task, attempt, bodies }) =>
    attempt === undefined
      ? sessionAgain(run, task, bodies)
      : executionAgain(run, here, task, attempt, bodies),
  )
  return found.includes(true)
})

/** Its results are read again with the run's tasks: here only whether the service still has any. */
const sessionAgain = Effect.fnUntraced(function* (
  { started: { run_id }, sources }: RunState,
  { planned: { task_id, session_id } }: TaskState,
  bodies: ReadonlyArray<LandedRef>,
) {
  const ids = { session_id, execution_id: undefined }
  const source = sources.find((one) => one.enabled && isAddressable(one, ids))
  if (source === undefined) return false
  const service = yield* Service
  const answer = yield* Effect.option(retryCall(service.readResults(source, ids), { triesMax }))
  if (answer._tag === "None" || answer.value._tag !== "Results") return false
  yield* append({ _tag: "BodiesLost", run_id, task_id, bodies })
  return true
})

const executionAgain = Effect.fnUntraced(function* (
  { started }: RunState,
  here: string,
  task: TaskState,
  { attempt, closed, ...last }: ClosedAttempt,
  bodies: ReadonlyArray<LandedRef>,
) {
  const { execution_id, session_id } = closed.fact
  const { task_id, customer_id, engine_reference } = task.planned
  if (customer_id === undefined || engine_reference === undefined) return false
  if (isElsewhere(started, last, here)) return false
  const service = yield* Service
  const reading = yield* Effect.option(retryCall(service.readExecution(execution_id), { triesMax }))
  if (reading._tag === "None" || !("body" in reading.value)) return false
  const { external_execution_id } = last
  const ours = { external_execution_id, customer_id, engine_reference, execution_id }
  const answer = reading.value
  if (readState(answer)._tag !== "Closed" || isStranger(answer, ours)) return false
  const keys = { run_id: started.run_id, task_id, attempt, execution_id }
  const meta = { ...keys, customer_id, engine_reference, ...given({ session_id }) }
  const received_at = Math.trunc(yield* Clock.currentTimeMillis)
  const landed = yield* (yield* Landing).land(
    { kind: "state", http_status: 200, received_at, ...meta },
    answer.body.bytes,
  )
  const fact: typeof BodiesLost.Type = { _tag: "BodiesLost", ...keys, bodies, landed }
  const kept: typeof AttemptKept.Type = {
    _tag: "AttemptKept",
    ...keys,
    reason: "RECORDS_SHORT",
    families: [],
    message: "its landed bodies were lost",
  }
  // The newest execution of a task gives it its verdict; an earlier one is read beside it.
  const isNewest = task.attempts.at(-1)?.attempt === attempt
  yield* append(fact, ...(isNewest ? [] : [kept]))
  return true
})
