/**
 * Starts one execution (section 4.1): the intent when the request leaves and not earlier, the answer after
 * it, one probe where the answer was lost. A request that has left is never abandoned, so that an interrupted
 * night does not lose its answer.
 */
import { Clock, Duration, Effect } from "effect"
import { Service } from "../client/Service.ts"
import type { CallFailure, StartAnswer, StartCall } from "../client/Service.ts"
import { retrySchedule } from "../foundation/Waits.ts"
import type { Fact } from "../ledger/Fact.ts"
import { Ledger, LedgerFailed, append } from "../ledger/Ledger.ts"
import { isOurs, readStart } from "./Attempt.ts"
import type { Started } from "./Attempt.ts"
import { attemptKeys, landBody } from "./AttemptOrder.ts"
import type { AttemptOrder } from "./AttemptOrder.ts"
import { keepTicket } from "../tokens/ExchangeTicket.ts"
import { handleAnswer, refuseUnusable } from "./Quarantine.ts"
import { lookWaits } from "../scheduling/Polling.ts"

export type StartResult =
  | {
      readonly _tag: "Open"
      readonly execution_id: string
      readonly session_id: string | undefined
      readonly accepted_at: number
    }
  | {
      /** Nothing of ours is in flight; the same attempt is started again later, as a probe if one is owed. */
      readonly _tag: "Deferred"
      readonly why: "foreign" | "engine_unavailable" | "not_created"
      readonly probe: boolean
      readonly retry_after: Duration.Duration | undefined
    }
  | {
      readonly _tag: "NeverStarted"
      readonly status_reason: string
      readonly http_status: number
      /** An earlier request of the attempt was lost; the refusal is that of its probe. */
      readonly probed: boolean
    }
  | { readonly _tag: "StartUnknown" }
  /** Answered with the id of another attempt's execution, which stays that attempt's. */
  | { readonly _tag: "NotOurs" }

/**
 * A lost start gets this long to arrive before it is asked for with the same external id. While it is open
 * the probe finds it, whenever it comes; a short run must not be over by then, or its login runs twice.
 */
const probeAfter = Duration.seconds(1)
const identifyTriesMax = 4

/** Section 4.1. Sends the start, and once more as a probe where its answer is lost. */
export const startAttempt = Effect.fn("StartAttempt.start")(function* (
  order: AttemptOrder,
  call: StartCall,
  asProbe: boolean,
) {
  for (let probe = asProbe; ; probe = true) {
    const started = yield* sendStart(order, call, probe)
    if (started._tag !== "Lost") return yield* settleStart(probe, started)
    if (probe) return { _tag: "StartUnknown" } satisfies StartResult
    yield* Effect.sleep(probeAfter)
  }
})

/** A defect of ours counts as an answer: the request may have left, and is not sent again. */
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
    ...(order.token_id === undefined ? {} : { token_id: order.token_id }),
  }
  const ledger = yield* Ledger
  // Only now: a start that still waits for its turn has not left, and whoever dies then has lost nothing.
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
  const read = readStart({ external_execution_id, probe, withToken }, answer)
  const started = yield* claim(order, read._tag === "Identify" ? yield* identify(order, read) : read)
  const ofTicket = started._tag === "Open" ? yield* keepTicket(order, call, answer, started) : []
  yield* append(...startFacts(order, started), ...ofTicket)
  if (started._tag === "Unusable") yield* refuseUnusable({ what: "start", ...order }, answer)
  if ("body" in answer && started._tag !== "Foreign" && started._tag !== "Taken") {
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
  found: Extract<Started, { _tag: "Identify" }>,
): Effect.fn.Return<Started, never, Service> {
  const service = yield* Service
  const retries = retrySchedule(lookWaits(order.polling), { triesMax: () => identifyTriesMax })
  const answer = yield* Effect.option(Effect.retry(service.readExecution(found.execution_id), retries))
  if (answer._tag === "None" || !isOurs(answer.value, order)) return { _tag: "Foreign" }
  const session_id = "view" in answer.value ? answer.value.view.session_id : undefined
  return {
    _tag: "Open",
    how: "adopted",
    execution_id: found.execution_id,
    session_id: session_id ?? found.session_id,
    orphanSuspected: false,
  }
})

/** An execution belongs to one attempt: who is answered with the id of another's has none. */
const claim = Effect.fnUntraced(function* (
  { task_id, attempt }: AttemptOrder,
  started: Started,
): Effect.fn.Return<Started, LedgerFailed, Ledger> {
  if (started._tag !== "Open") return started
  const ledger = yield* Ledger
  const { execution_id, how } = started
  if (yield* ledger.claim({ execution_id, task_id, attempt })) return started
  return { _tag: "Taken", http_status: how === "accepted" ? 202 : 409 }
})

const startFacts = (order: AttemptOrder, started: Started): ReadonlyArray<Fact> => {
  const answered = { _tag: "StartAnswered", ...attemptKeys(order) } as const
  switch (started._tag) {
    case "Open": {
      const { how, execution_id, session_id } = started
      const fact: Fact = {
        ...answered,
        answer: how,
        http_status: how === "accepted" ? 202 : 409,
        execution_id,
        ...(session_id === undefined ? {} : { session_id }),
      }
      const { external_execution_id } = order
      return started.orphanSuspected
        ? [fact, { _tag: "OrphanSuspected", ...attemptKeys(order), external_execution_id }]
        : [fact]
    }
    case "NeverStarted":
      return [
        {
          ...answered,
          answer: "refused",
          http_status: started.http_status,
          status_reason: started.status_reason,
        },
      ]
    case "EngineUnavailable":
      return [{ ...answered, answer: "not_created", http_status: 503 }]
    case "NotCreated":
      return [
        {
          ...answered,
          answer: "not_created",
          ...(started.http_status === undefined ? {} : { http_status: started.http_status }),
        },
      ]
    case "Lost":
      return [
        {
          ...answered,
          answer: "lost",
          ...(started.http_status === undefined ? {} : { http_status: started.http_status }),
        },
      ]
    case "Taken":
      return [{ ...answered, answer: "taken", http_status: started.http_status }]
    case "Unusable":
      return [{ ...answered, answer: "unusable", http_status: started.http_status }]
    case "Foreign":
    case "Identify":
      return [{ ...answered, answer: "foreign", http_status: 409 }]
  }
}

const settleStart = Effect.fnUntraced(function* (
  probe: boolean,
  started: Exclude<Started, { _tag: "Lost" }>,
): Effect.fn.Return<StartResult> {
  const deferred = (
    why: Extract<StartResult, { _tag: "Deferred" }>["why"],
    retry_after?: Duration.Duration,
  ): StartResult => ({
    _tag: "Deferred",
    why,
    probe,
    retry_after,
  })
  switch (started._tag) {
    case "Open": {
      const { execution_id, session_id } = started
      return { _tag: "Open", execution_id, session_id, accepted_at: yield* Clock.currentTimeMillis }
    }
    case "NeverStarted":
      return {
        _tag: "NeverStarted",
        status_reason: started.status_reason,
        http_status: started.http_status,
        probed: probe,
      }
    case "EngineUnavailable":
      return deferred("engine_unavailable", started.retry_after)
    case "NotCreated":
      return deferred("not_created", started.retry_after)
    case "Taken":
      return { _tag: "NotOurs" }
    case "Foreign":
    case "Identify":
      return deferred("foreign")
    case "Unusable":
      // Its body was refused before: nothing comes here.
      return yield* Effect.die(new Error("an answer that cannot be used was taken for one"))
  }
})
