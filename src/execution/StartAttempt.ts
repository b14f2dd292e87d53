/**
 * Starts one execution (section 4.1): the intent exactly when the request is sent, the answer after it, one
 * probe if the answer was lost. A request that was sent is never abandoned, so an interrupted run does not
 * lose its answer.
 */
import { Duration, Effect } from "effect"
import { Service } from "../client/Service.ts"
import type { CallFailure, StartAnswer, StartCall } from "../client/Service.ts"
import { retrySchedule } from "../foundation/Waits.ts"
import type { Fact } from "../ledger/Fact.ts"
import { Ledger, LedgerFailed, append } from "../ledger/Ledger.ts"
import { foreign, isOurs, readStart } from "./Attempt.ts"
import type { Conflict, Started } from "./Attempt.ts"
import { attemptKeys } from "../ledger/FactKeys.ts"
import { landBody, observed } from "./AttemptOrder.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import { keepTicket } from "../tokens/ExchangeTicket.ts"
import { handleAnswer, refuseUnusable } from "./Quarantine.ts"
import { lookWaits } from "../scheduling/Polling.ts"

/** The result of one start. `probe`: an earlier request was lost; this is the result of its probe. */
export type StartResult = Exclude<Started, { readonly answer: "unusable" }> & { readonly probe: boolean }

/**
 * How long a lost start gets to arrive before it is sent again with the same external id. While its run is
 * open, the probe finds it whenever it arrives; a short run must not be over by then, or its login would
 * run twice.
 */
const probeAfter = Duration.seconds(1)
const identifyTriesMax = 4

/** Section 4.1. Sends the start, and once more as a probe if its answer is lost. */
export const startAttempt = Effect.fn("StartAttempt.start")(function* (
  order: AttemptOrder,
  call: StartCall,
  asProbe: boolean,
) {
  for (let probe = asProbe; ; probe = true) {
    const started = yield* sendStart(order, call, probe)
    if (started.answer !== "lost" || probe) return { ...started, probe } satisfies StartResult as StartResult
    yield* Effect.sleep(probeAfter)
  }
})

/** A defect of ours counts as an answer: the request may have been sent, and is not sent again. */
const sendStart = (order: AttemptOrder, call: StartCall, probe: boolean) => {
  const withDefect: ReadonlyArray<Fact> = [
    { _tag: "StartAnswered", ...attemptKeys(order), answer: "unusable" },
  ]
  const about = { what: "start", ...order, withDefect }
  return Effect.uninterruptible(handleAnswer(about, sendOnce(order, call, probe)))
}

const sendOnce = Effect.fnUntraced(function* (order: AttemptOrder, call: StartCall, probe: boolean) {
  const service = yield* Service
  const { external_execution_id } = order
  const login = {
    ...(order.fingerprint === undefined ? {} : { fingerprint: order.fingerprint }),
    ...(order.account === undefined ? {} : { account: order.account }),
    ...(order.token_id === undefined ? {} : { token_id: order.token_id }),
  }
  const ledger = yield* Ledger
  // Only now: a start that still waits for its turn has not been sent, and if the process dies then,
  // nothing is lost.
  const leaving = ledger.append([
    { _tag: "StartIntended", ...attemptKeys(order), external_execution_id, ...login, probe },
  ])
  const answer = yield* service.startExecution(call, leaving).pipe(
    Effect.catchIf(
      (failure): failure is CallFailure => !(failure instanceof LedgerFailed),
      (failure): Effect.Effect<StartAnswer | CallFailure> => Effect.succeed(failure),
    ),
  )
  const withToken = call.login._tag === "Token"
  const read = readStart({ external_execution_id, withToken }, answer)
  const started = yield* claim(order, read.answer === "conflict" ? yield* identify(order, read) : read)
  const ofTicket = "execution_id" in started ? yield* keepTicket(order, call, answer, started) : []
  yield* append(...startFacts(order, started, probe), ...ofTicket)
  if (started.answer === "unusable") {
    yield* refuseUnusable({ what: "start", ...order }, answer, started.http_status)
    return yield* Effect.die(new Error("an answer that cannot be used has no body"))
  }
  if ("body" in answer && started.answer !== "foreign" && started.answer !== "taken") {
    const http_status =
      answer._tag === "Accepted" ? 202 : answer._tag === "Refused" ? answer.http_status : 409
    const { execution_id, session_id } = answer.view
    yield* landBody(order, answer.body, { kind: "start", http_status, execution_id, session_id })
  }
  return started
})

/** Decision 2: a 409 is about our own run only if the state of that execution says so. */
const identify = Effect.fnUntraced(function* (
  order: AttemptOrder,
  found: Conflict,
): Effect.fn.Return<Started, never, Service> {
  const service = yield* Service
  const { execution_id } = found
  const retries = retrySchedule(lookWaits(order.polling), { triesMax: () => identifyTriesMax })
  const answer = yield* Effect.option(Effect.retry(service.readExecution(execution_id), retries))
  if (answer._tag === "None" || !isOurs(answer.value, order)) return foreign
  const { view: seen } = answer.value
  const session_id = seen.session_id ?? found.session_id
  return { answer: "adopted", http_status: 409, execution_id, session_id, seen }
})

/** An execution belongs to one attempt: an attempt that is answered with another attempt's id has none. */
const claim = Effect.fnUntraced(function* (
  { task_id, attempt }: AttemptOrder,
  started: Started,
): Effect.fn.Return<Started, LedgerFailed, Ledger> {
  if (!("execution_id" in started)) return started
  const ledger = yield* Ledger
  const { execution_id, http_status } = started
  if (yield* ledger.claim({ execution_id, task_id, attempt })) return started
  return { answer: "taken", http_status }
})

const startFacts = (order: AttemptOrder, started: Started, probe: boolean): ReadonlyArray<Fact> => {
  const { answer, http_status } = started
  const answered: Fact = {
    _tag: "StartAnswered",
    ...attemptKeys(order),
    answer,
    ...(http_status === undefined ? {} : { http_status }),
    ...("status_reason" in started ? { status_reason: started.status_reason } : {}),
    ...("execution_id" in started ? { execution_id: started.execution_id } : {}),
    ...("session_id" in started && started.session_id !== undefined
      ? { session_id: started.session_id }
      : {}),
  }
  // A refusal that it showed counts, whatever becomes of the execution and of this process.
  if ("seen" in started && started.seen !== undefined)
    return [answered, observed(order, started, started.seen)]
  if (answer !== "accepted" || !probe) return [answered]
  // The first request may have run without our knowledge.
  const { external_execution_id } = order
  return [answered, { _tag: "OrphanSuspected", ...attemptKeys(order), external_execution_id }]
}
