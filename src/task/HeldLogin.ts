/**
 * Whether the login of a task may be sent now, as the ledger knows its account and this run its engine. Asked
 * before each start and before each probe, and once more in the transaction that writes its intent.
 */
import { Clock, Duration, Effect } from "effect"
import { Service } from "../client/Service.ts"
import { cutText } from "../service/BodyBounds.ts"
import { own, type Verdict } from "../service/Ends.ts"
import { holdOf, isNextTheLast, type Account, type Hold } from "../ledger/Accounts.ts"
import { append, Ledger } from "../ledger/Ledger.ts"
import { isOfWholeJob } from "../ledger/WholeNight.ts"
import { conflictKeys } from "../service/Execution.ts"
import { accessOf } from "../service/Ids.ts"
import { loginKeysOf } from "../privacy/Fingerprint.ts"
import { observed, type AttemptOrder } from "./AttemptOrder.ts"
import { busyText, holdText, chanceOf, isLasting, thirdText, verdictOfHold } from "./LoginHold.ts"
import { isStranger, readState } from "./Attempt.ts"
import { isGone, missedAgain } from "./FollowAttempt.ts"
import { candidateOf, taskOf, type Night, type Row, type Sighting } from "./Night.ts"
import type { LeftRunning, StartAct } from "./Next.ts"
import { SlotsBeside } from "./SharedSlots.ts"
import { intentOf, judgeFound, LoginOvertaken, Worker } from "./StartAttempt.ts"

export type Held =
  | { readonly _tag: "Ended"; readonly verdict: Verdict }
  /** Until then (milliseconds); without it, as for somebody else's run. */
  | { readonly _tag: "Waits"; readonly until?: number }

/** Undefined if it may be sent, as far as is known before its turn comes. */
export const heldLogin = Effect.fnUntraced(function* (night: Night, row: Row, act: StartAct) {
  const { account } = row.keys
  row.risks = undefined
  if (account === undefined) return undefined
  const now = yield* Clock.currentTimeMillis
  const hold = holdNow(night, row, act, yield* (yield* Ledger).accountsOf(account), now)
  if (hold === undefined) return undefined
  const { customer_id } = row.work
  if (isLasting(hold)) return ended({ ...verdictOfHold(hold), message: cutText(holdText(hold, customer_id)) })
  if (hold.why === "busy") return yield* waitOthers(night, hold, now)
  const held = thirdLogin(night, row, hold, act.probe, now)
  if (held === undefined) row.risks = hold.why
  return held
})

/** Looks at what other runs left open and is in its way; undefined once all of it is over. */
export const heldByLeft = Effect.fnUntraced(function* (night: Night, row: Row, { probe }: StartAct) {
  const keys = new Set(probe ? [] : conflictKeys(candidateOf(row)))
  let held: Held | undefined
  for (const [one, seen] of night.left)
    if (conflictKeys(one).some((key) => keys.has(key)))
      if (yield* isStillOpen(night, one, seen)) held = { _tag: "Waits" }
      else night.left.delete(one)
  return held
})

/** One look, and what it says of the login as facts; its results are read when its own run is collected. */
const isStillOpen = Effect.fnUntraced(function* (night: Night, one: LeftRunning, seen: Sighting) {
  const { run_id, task_id, attempt: left } = one
  const { attempt, execution_id, session_id, external_execution_id } = left
  const order = { run_id, task_id, attempt, ...accessOf(one), ...loginKeysOf(left), said: () => seen.said }
  const answer = yield* Effect.option((yield* Service).readExecution(execution_id))
  if (answer._tag === "None" || isStranger(answer.value, { ...order, external_execution_id, execution_id }))
    return true
  const now = yield* Clock.currentTimeMillis
  const looked = readState(answer.value)
  if (looked._tag === "Working") {
    const fact = observed(order, { execution_id, session_id }, looked.view)
    seen.said = fact.authentication_status
    yield* append(fact)
  }
  seen.gone = looked._tag === "Gone" ? missedAgain(seen.gone, now) : undefined
  // To another job, with a secret of its own, the service says of each of these that there is no such one.
  const isOwn = one.job === night.run.started.job
  if (seen.gone !== undefined && !(isOwn && isGone(seen.gone, night.rules.polling, now))) return true
  const judged = judgeFound(order, execution_id, seen.said, answer.value)
  if (judged !== undefined) yield* append(...judged)
  return judged === undefined
})

const holdNow = (
  { run_id }: Night,
  { keys, work }: Row,
  { attempt }: StartAct,
  accounts: ReadonlyArray<Account>,
  now: number,
): Hold | undefined => {
  const self = { run_id, task_id: work.task_id, attempt }
  return keys.account === undefined ? undefined : holdOf(accounts, keys.account, { now, self })
}

/**
 * Writes the intent just before the request leaves, if its account still is as `heldLogin` found it: two
 * channels may log in to one account with different fields, which no schedule can see.
 */
export const beginStart = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
  act: StartAct,
  order: AttemptOrder,
) {
  const ledger = yield* Ledger
  const worker = yield* Worker
  const now = yield* Clock.currentTimeMillis
  const begun = yield* ledger.decide(({ ofLogin }) => {
    const accounts = order.account === undefined ? [] : ofLogin(order.account)
    const hold = holdNow(night, row, act, accounts, now)
    if (hold !== undefined && hold.why !== row.risks) return { facts: [], answer: undefined }
    const own = absorbing(order, accounts)
    const holdsAccount = order.account !== undefined && isNextTheLast(accounts, order.account)
    return { facts: [intentOf(own, act.probe, holdsAccount, worker)], answer: own }
  })
  if (begun === undefined) return yield* new LoginOvertaken()
  row.keys = loginKeysOf(begun)
  return begun
})

/** What an earlier version filed under other names is its account's from now on. */
const absorbing = (order: AttemptOrder, accounts: ReadonlyArray<Account>): AttemptOrder => {
  const absorbs = accounts.flatMap(({ identity, former }) => (identity.length === 0 ? former : []))
  const { account } = order
  return account === undefined || absorbs.length === 0
    ? order
    : { ...order, account: { ...account, absorbs } }
}

/** Another login of the account is waited for as long as this run, or one beside it, has executions open. */
const waitOthers = Effect.fnUntraced(function* (
  { active, restingCount }: Night,
  { until, isUnknown }: Extract<Hold, { readonly why: "busy" }>,
  now: number,
) {
  const beside = yield* SlotsBeside
  const isWorthIt = active + restingCount > 1 || beside?.areOpen(now) === true
  if (isWorthIt) return { _tag: "Waits" } satisfies Held as Held
  return ended(isUnknown ? { ...own("START_UNKNOWN"), message: busyText(until) } : own("ALREADY_EXECUTING"))
})

const ended = (verdict: Verdict): Held => ({ _tag: "Ended", verdict })

/** How long a third login waits until the engine is asked again whether it accepts others. */
const thirdWaitMs = Duration.toMillis("1 minute")

/** It is risked only where others pass, or by one account where nobody else is left to show it. */
const thirdLogin = (
  night: Night,
  row: Row,
  hold: Extract<Hold, { readonly why: "third" }>,
  probe: boolean,
  now: number,
): Held | undefined => {
  const { breaker, schedule, run, run_id, rules } = night
  const { engine_reference } = row.work
  const account = row.keys.account?.account
  const chance = chanceOf(hold, { run_id, isWhole: isOfWholeJob(run.started) })
  const isEngineAway = taskOf(night, row)?.attempts.at(-1)?.answer?.http_status === 503
  const reason = isEngineAway ? "ENGINE_UNAVAILABLE" : "START_UNKNOWN"
  const kept = ended({ ...own(reason), message: thirdText, not_before: "next_date" })
  if (chance === "not_tonight") return kept
  if (breaker.isWell(engine_reference, account, now)) return undefined
  const third = { candidate: candidateOf(row), mayLead: !probe && chance === "alone" }
  const waiting = schedule.hopefulOn(engine_reference).filter((other) => other.account !== account)
  const turn = breaker.turnOfThird(third, waiting)
  if (turn === "goes") return undefined
  if (turn === "stays") return kept
  const lastAt = (row.deferredSince ??= now) + Duration.toMillis(rules.max_wait)
  if (now >= lastAt) return breaker.hasPassed(engine_reference, account) ? undefined : kept
  breaker.noteThird(third)
  return { _tag: "Waits", until: Math.min(now + thirdWaitMs, lastAt) }
}
