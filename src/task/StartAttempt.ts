/**
 * Starts one execution (section 4.1): the intent exactly when the request is sent, the answer after it, and
 * what it says of the login. A request that was sent is never abandoned, so an interrupted run does not
 * lose its answer.
 */
import { Context, Data, Duration, Effect, Option, Result, Struct } from "effect"
import { given } from "../base/Schemas.ts"
import { retrySchedule } from "../base/Time.ts"
import { isAvailable } from "../client/EngineForms.ts"
import { lookWaits } from "../client/Polling.ts"
import { Service } from "../client/Service.ts"
import type { CallFailure, StartAnswer, StartCall, StateAnswer } from "../client/Service.ts"
import type { LoginVerdict } from "../ledger/Accounts.ts"
import type { AttemptClosed, Fact, StartIntended } from "../ledger/Fact.ts"
import { attemptKeys, taskKeys, type AttemptKeys } from "../ledger/FactKeys.ts"
import { tokenUse } from "../ledger/FoldRun.ts"
import { Ledger, LedgerFailed, append } from "../ledger/Ledger.ts"
import type { CredentialRejected, LoginJudged } from "../ledger/LoginFacts.ts"
import { keptKeys, type LoginKeys } from "../privacy/Fingerprint.ts"
import { endOfAttempt, isAccepted, refusalOf, toldOfLogin, type Reason } from "../service/Ends.ts"
import { accessOf, type Access, type EngineReference, type ExecutionId } from "../service/Ids.ts"
import { isOurs, readStart, readState, type Asked, type Conflict, type Started } from "./Attempt.ts"
import { landBody, observed, type AttemptOrder } from "./AttemptOrder.ts"
import { handleAnswer, refuseUnusable } from "./Quarantine.ts"
import { isCallFailure } from "./Troubles.ts"
import { keepTicket } from "../tokens/ExchangeTicket.ts"

// What is learnt of a login, as facts: pure. They are written with the answer or the closing that tells it;
// without any of them, the login counts as one that may have failed.

/** Whose login it is, and which attempt sent it. */
export type LoginOrder = AttemptKeys & Access & LoginKeys

export type JudgedLogin = typeof CredentialRejected.Type | typeof LoginJudged.Type

/** The account as the facts of a login name it. */
const sentKeys = ({ account: keys }: LoginKeys): Pick<typeof StartIntended.Type, "login"> => {
  if (keys === undefined) return {}
  return { login: { ...keptKeys(keys), ...given({ former: keys.absorbs }) } }
}

const judged = (order: LoginOrder, verdict: LoginVerdict, answer?: string): ReadonlyArray<JudgedLogin> => {
  const { account: keys, fingerprint } = order
  if (keys === undefined) return []
  const { account, password } = keys
  const login = { account, password, ...given({ fingerprint }) }
  return [{ _tag: "LoginJudged", ...attemptKeys(order), ...login, verdict, ...given({ said: answer }) }]
}

const rejected = (order: LoginOrder, reason: string): ReadonlyArray<JudgedLogin> => {
  const { fingerprint, attempt: of_attempt } = order
  if (fingerprint === undefined) return []
  const of = { ...taskKeys(order), of_attempt, fingerprint, ...sentKeys(order), ...accessOf(order) }
  return [{ _tag: "CredentialRejected", ...of, reason }]
}

const said = (http_status: number | undefined): string =>
  http_status === undefined ? "no answer" : String(http_status)

/**
 * Of a start that was accepted, its execution will tell, unless the answer itself says that the login was
 * refused: that counts at once and until it is released, whatever the execution says, if it is found at all.
 */
const judgeStart = (order: AttemptOrder, started: Started, isProbe: boolean): ReadonlyArray<JudgedLogin> => {
  switch (started.answer) {
    case "accepted": {
      const refusal = refusalOf(started.seen?.authentication_status)
      return refusal === undefined ? [] : rejected(order, refusal)
    }
    case "adopted":
      // The probe created nothing: what it found is the execution of the request before.
      return isProbe ? judged(order, "not_sent") : []
    case "foreign":
      return judged(order, "not_sent")
    case "not_created":
      // What the page of an engine says is no proof: after three in a row, its account is not tried again.
      return started.isEngineAway ? judged(order, "away", said(503)) : judged(order, "not_sent")
    case "refused":
      return started.login === "rejected"
        ? rejected(order, started.status_reason)
        : judged(order, started.login, said(started.http_status))
    case "taken":
    case "unusable":
    case "lost":
      return judged(order, "unproven", said(started.http_status))
  }
}

/** `isKnown`: the service still knows the execution. */
export const judgeEnd = (
  order: LoginOrder,
  closed: typeof AttemptClosed.Type,
  isKnown: boolean,
): ReadonlyArray<JudgedLogin> => {
  // Whether and why it was aborted does not matter for the login.
  const { rejection } = endOfAttempt(closed, undefined)
  if (rejection !== undefined) return rejected(order, rejection)
  if (isAccepted(closed)) return judged(order, "good")
  const { authentication_status, status_code } = closed
  if (!isKnown) return judged(order, "unproven", "404")
  const isWell = status_code === "COMPLETED" || status_code === "PARTIAL"
  return judged(order, isWell && authentication_status === undefined ? "good" : "neutral")
}

/** Of an execution that is somebody else's: nothing of it is read, and nobody knows whether ours ran. */
export const judgeDisowned = (order: LoginOrder): ReadonlyArray<JudgedLogin> =>
  judged(order, "unproven", "NOT_OURS" satisfies Reason)

/** The end of an execution that the service does not find any more. */
export const gone = { status_code: "UNKNOWN", status_reason: "EXECUTION_GONE" satisfies Reason }

/**
 * Of an execution that was found, or no longer found, after its attempt was given up; undefined while it is
 * open. `before`: what the states that were read until then said of its login.
 */
export const judgeFound = (
  order: LoginOrder,
  execution_id: ExecutionId,
  before: string | undefined,
  answer: StateAnswer,
): ReadonlyArray<JudgedLogin> | undefined => {
  const looked = readState(answer)
  if (looked._tag !== "Closed" && looked._tag !== "Gone") return undefined
  const isKnown = looked._tag === "Closed"
  const { status_code, status_reason } = isKnown ? looked : gone
  const login = given({ authentication_status: isKnown ? toldOfLogin(before, looked.view) : before })
  const closed = { ...attemptKeys(order), execution_id, status_code, status_reason, ...login }
  return judgeEnd(order, { _tag: "AttemptClosed", ...closed }, isKnown)
}

export type StartResult = Exclude<Started, { readonly answer: "unusable" }>

const identifyTriesMax = 4

/** The process that sends the starts, for people; undefined where nobody has to know. */
export const Worker = Context.Reference<string | undefined>("nightjar/execution/Worker", {
  defaultValue: () => undefined,
})

/** Written just before a start leaves: a start that still waits for its turn has not been sent. */
export const intentOf = (
  order: AttemptOrder,
  probe: boolean,
  holdsAccount: boolean,
  worker: string | undefined,
): typeof StartIntended.Type => {
  const { external_execution_id, fingerprint, results_off, service } = order
  return {
    _tag: "StartIntended",
    ...attemptKeys(order),
    external_execution_id,
    ...accessOf(order),
    ...given({ fingerprint }),
    ...sentKeys(order),
    ...tokenUse(order),
    probe,
    max_wait: Math.trunc(Duration.toMillis(order.max_wait)),
    ...(holdsAccount ? { holds_account: true } : {}),
    ...given({ worker, results_off, service }),
  }
}

/** Its account has changed since it was asked about: nothing was written, and nothing leaves. */
export class LoginOvertaken extends Data.TaggedError("LoginOvertaken") {}

/** Writes the intent, and answers the order as it has it; where it fails, nothing leaves. */
type Begin = Effect.Effect<AttemptOrder, LedgerFailed | LoginOvertaken, Ledger>

/**
 * Section 4.1. Sends the start; `probe`: once more, because the answer to it was lost. A defect of ours
 * counts as an answer: the request may have been sent, and is not sent again.
 */
export const startAttempt = Effect.fn("StartAttempt.start")(function* (
  order: AttemptOrder,
  call: StartCall,
  probe: boolean,
  begin: Begin,
) {
  const withDefect: ReadonlyArray<Fact> = [
    { _tag: "StartAnswered", ...attemptKeys(order), answer: "unusable" },
    ...judgeStart(order, { answer: "lost", http_status: undefined }, probe),
  ]
  return yield* handleAnswer({ what: "start", ...order, withDefect }, sendOnce(order, call, probe, begin))
}, Effect.uninterruptible)

const sendOnce = Effect.fnUntraced(function* (
  given: AttemptOrder,
  call: StartCall,
  probe: boolean,
  begin: Begin,
) {
  const service = yield* Service
  let begun: AttemptOrder | undefined
  const ledger = yield* Ledger
  const leaving = Effect.provideService(
    Effect.map(begin, (intended) => void (begun = intended)),
    Ledger,
    ledger,
  )
  const answer = yield* service
    .startExecution(call, leaving)
    .pipe(Effect.catchIf(isCallFailure, (failure) => Effect.succeed(failure)))
  const hasLeft = begun !== undefined
  const order = begun ?? given
  const { external_execution_id } = order
  const withToken = call.login._tag === "Token"
  const read = readStart({ external_execution_id, withToken }, answer, yield* askAbout(order, answer))
  // What was held back says nothing of the request before it, which may have been lost, nor of its login.
  if (!hasLeft && read.answer === "not_created") return read
  const started = yield* claim(order, read.answer === "conflict" ? yield* identify(order, read) : read)
  const ofTicket = "execution_id" in started ? yield* keepTicket(order, call, answer, started) : []
  yield* append(...startFacts(order, started, probe), ...judgeStart(order, started, probe), ...ofTicket)
  if (started.answer === "unusable") {
    yield* refuseUnusable({ what: "start", ...order }, answer, started.http_status)
    return yield* Effect.die(new Error("an answer that cannot be used has no body"))
  }
  if ("body" in answer && started.answer !== "foreign" && started.answer !== "taken") {
    const http_status = answer._tag === "AlreadyExecuting" ? 409 : answer.http_status
    const { execution_id, session_id } = answer.view
    yield* landBody(order, answer.body, { kind: "start", http_status, execution_id, session_id })
  }
  return started
})

/**
 * A 503 is no lost answer if the engine's page says that it is away while the service answers: a gateway
 * answers 503 after a start was passed on, too. A 401 or 403 counts only if a read is refused as well.
 */
const askAbout = Effect.fnUntraced(function* (
  { engine_reference }: AttemptOrder,
  answer: StartAnswer | CallFailure,
): Effect.fn.Return<Asked, never, Service> {
  const service = yield* Service
  const of = { isEngineAway: false, isSecretRefused: false }
  if (answer._tag === "SecretRefused") {
    const listed = yield* Effect.result(service.listEngines)
    return { ...of, isSecretRefused: Result.isFailure(listed) && listed.failure._tag === "SecretRefused" }
  }
  if (answer._tag !== "EngineUnavailable") return of
  if ((yield* askEngine(engine_reference)) !== false) return of
  return { ...of, isEngineAway: Result.isSuccess(yield* Effect.result(service.listEngines)) }
})

/** Whether the engine's own page says that it can be used; undefined if it says nothing at all. */
export const askEngine = Effect.fnUntraced(function* (engine_reference: EngineReference) {
  const service = yield* Service
  const page = yield* Effect.option(service.showEngine(engine_reference))
  if (Option.isNone(page)) return undefined
  // 4.9: 503 with a `detail`, or details that say so (2.2).
  if (page.value._tag === "Engine") return isAvailable(page.value.engine)
  return page.value._tag === "EngineUnavailable" && page.value.detail !== undefined ? false : undefined
})

/** Decision 2: it is our own run only if the state of that execution says so. */
const identify = Effect.fnUntraced(function* (
  order: AttemptOrder,
  found: Conflict,
): Effect.fn.Return<Started, never, Service> {
  const service = yield* Service
  const { execution_id } = found
  const retries = retrySchedule(lookWaits(order.polling), { triesMax: () => identifyTriesMax })
  const answer = yield* Effect.option(Effect.retry(service.readExecution(execution_id), retries))
  if (answer._tag === "None" || !isOurs(answer.value, order)) return found.otherwise
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
    ...given({ http_status }),
    ...("status_reason" in started ? given(Struct.pick(started, ["status_reason", "said"])) : {}),
    ...("execution_id" in started ? given(Struct.pick(started, ["execution_id", "session_id"])) : {}),
    ...("execution_id" in started ? given({ account: order.account?.account }) : {}),
  }
  // A refusal that it showed counts, whatever becomes of the execution and of this process.
  const seen = "seen" in started && started.seen !== undefined ? [observed(order, started, started.seen)] : []
  if (answer !== "accepted" || !probe) return [answered, ...seen]
  // The first request may have run without our knowledge.
  const { external_execution_id } = order
  return [answered, ...seen, { _tag: "OrphanSuspected", ...attemptKeys(order), external_execution_id }]
}
