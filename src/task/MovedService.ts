/**
 * What was started at another service than the one that the job names now. Nobody knows whether that is the
 * same one under a new address: only a state that is read here, and names the execution as ours, shows it.
 * Until then nothing of it is believed, read, aborted or deleted here.
 */
import { Effect } from "effect"
import { given } from "../base/Schemas.ts"
import { retryCall } from "../client/Pacing.ts"
import { Service } from "../client/Service.ts"
import { attemptKeys, type AttemptKeys } from "../ledger/FactKeys.ts"
import { append } from "../ledger/Ledger.ts"
import type { LeftElsewhere } from "../ledger/RunFacts.ts"
import { isElsewhere, remainsAny, serviceOf, type AttemptState, type RunState } from "../ledger/RunState.ts"
import { own, type Verdict } from "../service/Ends.ts"
import type { ExecutionId } from "../service/Ids.ts"
import { isOurs, type RunIdentity } from "./Attempt.ts"
import { answeredBy, answerOf } from "./Ending.ts"
import type { Night, Row } from "./Night.ts"
import { isCallFailure } from "./Troubles.ts"

/** An execution that was started elsewhere, and how its state would name it. */
export interface Sought extends AttemptKeys, RunIdentity {
  readonly execution_id: ExecutionId
  /** Where it is looked for. */
  readonly service: string
}

/** Undefined if it is known to be at this service, or if nobody knows where it was started. */
export const soughtOf = (
  started: RunState["started"],
  task: Pick<RunIdentity, "customer_id" | "engine_reference"> & Pick<AttemptKeys, "task_id">,
  attempt: AttemptState,
  here: string,
): Sought | undefined => {
  const { execution_id, external_execution_id } = attempt
  if (execution_id === undefined || !isElsewhere(started, attempt, here)) return undefined
  const { task_id, customer_id, engine_reference } = task
  const keys = { run_id: started.run_id, task_id, attempt: attempt.attempt }
  return { ...keys, customer_id, engine_reference, external_execution_id, execution_id, service: here }
}

/** How often its state is asked for; whoever gives up leaves it for the next run. */
const triesMax = 6

/** Once it is found, it is at this service: as for one that was started here, all is believed. */
export const findHere = Effect.fn("MovedService.find")(function* (sought: Sought, untilAt?: number) {
  const { execution_id, service: here } = sought
  const service = yield* Service
  const reading = retryCall(service.readExecution(execution_id), { triesMax, ...given({ untilAt }) })
  const answer = yield* answerOf(answeredBy(reading, untilAt ?? Infinity))
  if (isCallFailure(answer)) return "unanswered"
  if (!isOurs(answer, sought)) return "not_found"
  yield* append({ _tag: "AttemptFound", ...attemptKeys(sought), execution_id, service: here })
  return "found"
})

/** Whether this process may go on with the execution. */
export const isHere = Effect.fnUntraced(function* (night: Night, { work }: Row, attempt: AttemptState) {
  const sought = soughtOf(night.run.started, work, attempt, night.rules.service)
  return sought === undefined || (yield* findHere(sought)) === "found"
})

/** Where it was started, and that it was not found. */
export const movedText = ({ run, rules }: Pick<Night, "run" | "rules">, attempt: AttemptState): string =>
  `it was started at ${serviceOf(run.started, attempt)}, and ${rules.service} did not show it`

export const movedVerdict = (night: Night, attempt: AttemptState): Verdict => ({
  ...own("SERVICE_MOVED"),
  message: movedText(night, attempt),
})

/** Executions of a run that are not done with, by the other services that they were started at. */
export const leftElsewhere = (
  { started, tasks }: RunState,
  here: string,
  after_export: "delete" | "keep",
): ReadonlyArray<LeftElsewhere> => {
  const deleted = after_export === "delete" ? (["due", "asked"] as const) : []
  const left = [...tasks.values()]
    .flatMap(({ attempts }) => attempts)
    .filter((one) => remainsAny(one, "open", "unread", "kept", ...deleted) && isElsewhere(started, one, here))
  const { run_id } = started
  return [...Map.groupBy(left, (attempt) => serviceOf(started, attempt) ?? "")].map(([service, own]) => ({
    run_id,
    service,
    executions: own.length,
  }))
}
