/**
 * Carries out what `next` says for one task, act after act, until it waits for a slot or has its verdict; and
 * the longest of these acts, its start. What follows an execution that is closed is in `FinishTask.ts`.
 */
import { Clock, Duration, Effect, Exit, Queue, Random, Result, Scope } from "effect"
import { given } from "../base/Schemas.ts"
import { Hints, withHintPair } from "../client/Hints.ts"
import { waitMs } from "../base/Time.ts"
import { attemptWaits } from "../client/Polling.ts"
import type { Candidate } from "../service/Execution.ts"
import { own, verdictOfRefusal } from "../service/Ends.ts"
import { tokenUse } from "../ledger/FoldRun.ts"
import { append } from "../ledger/Ledger.ts"
import type { AttemptState, OpenAttempt } from "../ledger/RunState.ts"
import { finish } from "./FinishTask.ts"
import { openWatch, pollOnce } from "./FollowAttempt.ts"
import { beginStart, heldByLeft, heldLogin, type Held } from "./HeldLogin.ts"
import { dueOf } from "./LookTurns.ts"
import { isHere, movedVerdict } from "./MovedService.ts"
import { asksTooMuch, isTokenRefused, lastStartAt, startsAt, verdictLeft, type StartAct } from "./Next.ts"
import {
  candidateOf,
  leave,
  nextOf,
  noteWait,
  orderOf,
  release,
  rest,
  settle,
  settleWaiting,
  stir,
  taskOf,
  waitFact,
} from "./Night.ts"
import type { Failure, Needs, Night, Row } from "./Night.ts"
import { noteAnswered, noteAvailable, noteFailed, noteUnavailable } from "./Outage.ts"
import { AnswerUnusable } from "./Quarantine.ts"
import { askEngine, startAttempt, type StartResult } from "./StartAttempt.ts"
import { dropToken, tokenEndOfRefusal } from "../tokens/TokenLogin.ts"

const notQueued = Effect.die("a task without a preparation is never queued")

/** From wherever its facts left it. */
export const proceed = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
): Effect.fn.Return<void, Failure | AnswerUnusable, Needs> {
  for (;;) {
    const act = nextOf(night, row)
    switch (act._tag) {
      case "Done":
        return yield* leave(night, row)
      case "Settle":
        yield* settle(night, row.work.task_id, act.verdict)
        break
      case "Refuse":
        yield* settleRefusal(night, row, act)
        break
      case "Unusable":
        return yield* unusableStart
      case "Start":
        return yield* enqueue(night, row, act)
      case "Follow": {
        if (!(yield* isHere(night, row, act.last))) {
          yield* settle(night, row.work.task_id, movedVerdict(night, act.last))
          break
        }
        const watch = yield* watched(night, row, act.last)
        const due = dueOf(watch)
        if (due > (yield* Clock.currentTimeMillis)) return rest(night, row, due)
        const left = yield* pollOnce(watch, night.heads)
        if (left !== undefined) yield* settle(night, row.work.task_id, left)
        if (left !== undefined || watch.isClosed) yield* unwatch(row)
        break
      }
      case "Read":
        yield* release(night, row.work.task_id)
        yield* finish(night, row, act.last)
    }
  }
})

/** What this process remembers of its execution, from the moment that it follows it. */
const watched = Effect.fnUntraced(function* (night: Night, row: Row, last: OpenAttempt) {
  if (row.watching !== undefined) return row.watching.watch
  const scope = yield* Scope.fork(night.scope)
  const watch = yield* Scope.provide(openWatch(orderOf(night, row, last.attempt), last), scope)
  row.watching = { watch, scope }
  watch.hints.onStir(() => stir(night, row))
  return watch
})

const unwatch = Effect.fnUntraced(function* (row: Row) {
  if (row.watching !== undefined) yield* Scope.close(row.watching.scope, Exit.void)
  row.watching = undefined
})

/** An earlier process read the answer to the start, and died before it could settle the task. */
const unusableStart = Effect.fail(
  new AnswerUnusable({ what: "start", why: "an earlier process could not use it" }),
)

/** A probe waits in its slot: what it looks for may be running with this customer and this login. */
const enqueue = Effect.fnUntraced(function* (night: Night, row: Row, { probe }: StartAct) {
  const { work } = row
  if (work.prepare === undefined) {
    yield* settle(night, work.task_id, verdictLeft(taskOf(night, row)) ?? own("NIGHT_OVER"))
    return yield* leave(night, row)
  }
  const now = yield* Clock.currentTimeMillis
  // What put it off may be known only from the facts of an earlier process, or of an earlier run.
  const task = taskOf(night, row)
  const until = startsAt(work, task, now)
  if (until > lastStartAt(night.rules, now)) {
    yield* settle(night, work.task_id, verdictLeft(task) ?? asksTooMuch(until))
    return yield* leave(night, row)
  }
  yield* putOff(night, row, probe ? Math.max(row.probeAt, until) : until, probe)
})

/** Not sent before that time; a probe keeps its slot until then. */
const putOff = Effect.fnUntraced(function* (night: Night, row: Row, until: number, isProbe: boolean) {
  if (isProbe) night.schedule.owe(candidateOf(row), until)
  else night.schedule.add(candidateOf(row), until)
  yield* isProbe ? Queue.offer(night.poke, undefined) : release(night, row.work.task_id)
})

/** Begins one attempt in the slot that was taken for it. */
export const startTask = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
  candidate: Candidate,
): Effect.fn.Return<void, Failure | AnswerUnusable, Needs> {
  const { work } = row
  const act = nextOf(night, row)
  if (act._tag !== "Start") return yield* proceed(night, row)
  const prepared = yield* work.prepare ?? notQueued
  if (prepared._tag === "Verdict") {
    // A start that was never answered may be running, whatever happens to a further one.
    const left = act.probe ? verdictLeft(taskOf(night, row)) : undefined
    yield* settle(night, work.task_id, left ?? prepared.verdict)
    return yield* leave(night, row)
  }
  if (prepared._tag === "Unavailable")
    return yield* defer(night, row, "engine_unavailable", prepared.retry_after, prepared.detail)
  const { withParameters, token, outside } = prepared
  const instead = act.byParameters ? withParameters : undefined
  const refused = taskOf(night, row)?.attempts.at(-1)
  // There are no parameters to send instead of the token.
  if (instead === undefined && token !== undefined && refused !== undefined && isTokenRefused(refused)) {
    const { status_reason = "UNEXPECTED_ANSWER" } = refused.answer ?? {}
    yield* settleRefusal(night, row, { last: refused, status_reason })
    return yield* leave(night, row)
  }
  row.keys = prepared.keys
  row.tokenUse = tokenUse({ ...(instead === undefined ? token : {}), ...(outside && { outside }) })
  const { fingerprint, account } = candidateOf(row)
  if (!act.probe && (fingerprint !== candidate.fingerprint || account !== candidate.account)) {
    // Only now is it known which account this is: it queues again, so that two of its logins never run at
    // once.
    yield* release(night, candidate.task_id)
    return night.schedule.add(candidateOf(row))
  }
  const held = (yield* heldByLeft(night, row, act)) ?? (yield* heldLogin(night, row, act))
  if (held !== undefined) return yield* obeyHold(night, row, act, held)
  const overAt = (yield* Clock.currentTimeMillis) + Duration.toMillis(work.needs ?? Duration.zero)
  if (!act.probe && overAt > (night.rules.deadlineAt ?? Infinity)) {
    yield* settle(night, work.task_id, verdictLeft(taskOf(night, row)) ?? own("DEADLINE_REACHED"))
    return yield* leave(night, row)
  }
  // Harmless, and asked before each login that may come to nothing.
  const isDoubtful = act.probe || night.breaker.isInDoubt(work.engine_reference)
  if (isDoubtful && (yield* askEngine(work.engine_reference)) !== true)
    return yield* defer(night, row, "engine_unavailable")
  const order = orderOf(night, row, act.attempt)
  const hints = yield* Hints
  const parts = instead ?? prepared.call
  const { external_execution_id } = order
  const pairs = hints.on ? withHintPair(parts.hooks_extra_data) : parts.hooks_extra_data
  const call = { ...parts, external_execution_id, hooks_extra_data: pairs }
  const begin = beginStart(night, row, act, order)
  const started = yield* Effect.result(startAttempt(order, call, act.probe, begin))
  if (Result.isSuccess(started)) return yield* afterStart(night, row, candidate, started.success, act.probe)
  if (started.failure._tag !== "LoginOvertaken") return yield* started.failure
  yield* startTask(night, row, candidate)
})

/** The login may not be sent now: the task waits, or has its verdict. */
const obeyHold = Effect.fnUntraced(function* (night: Night, row: Row, { probe }: StartAct, held: Held) {
  const { task_id } = row.work
  if (held._tag === "Ended") {
    // A start that may be running unseen stays unknown, whatever is in the way of its probe.
    const left = verdictLeft(taskOf(night, row)) ?? held.verdict
    yield* settle(night, task_id, left.reason === held.verdict.reason ? held.verdict : left)
    return yield* leave(night, row)
  }
  if (held.until === undefined) return yield* defer(night, row, "foreign")
  yield* putOff(night, row, held.until, probe)
})

/** What the answer says of the engine and of waiting; what it says of the task, its facts say. */
const afterStart = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
  candidate: Candidate,
  result: StartResult,
  isProbe: boolean,
) {
  switch (result.answer) {
    case "accepted":
    case "adopted":
      row.deferredSince = undefined
      row.deferrals = 0
      yield* noteAvailable(night, row)
      yield* noteAnswered(night, row)
      return yield* proceed(night, row)
    case "not_created":
    case "foreign": {
      // Nothing of ours is in flight; the same attempt is started again later, as a probe if one is owed.
      if (result.answer === "foreign") {
        row.conflicts += 1
        return yield* defer(night, row, "foreign")
      }
      if (result.isSecretRefused === true) return yield* stopStarts(night, row)
      if (!result.isEngineAway) return yield* defer(night, row, "not_created", result.retry_after)
      const { account, engine_reference } = candidateOf(row)
      const now = yield* Clock.currentTimeMillis
      night.breaker.refused(engine_reference, account, now)
      const { retry_after } = result
      if (retry_after !== undefined) {
        const until = now + Duration.toMillis(retry_after)
        const wait = { reason: deferredReasons.engine_unavailable, until, isAsked: true }
        yield* append(waitFact(night, row.work.task_id, wait))
      }
      return yield* defer(night, row, "engine_unavailable", retry_after)
    }
    case "refused": {
      if (result.login === "unproven") yield* noteFailed(night, row, isProbe)
      // With parameters instead of its token, it goes on in its slot: nothing ran, and no login was tried.
      const again = nextOf(night, row)._tag === "Start"
      return yield* again ? startTask(night, row, candidate) : proceed(night, row)
    }
    case "taken":
    case "lost":
      yield* noteFailed(night, row, isProbe)
      row.probeAt = (yield* Clock.currentTimeMillis) + probeAfterMs
      return yield* proceed(night, row)
  }
})

/**
 * A lost start gets this long to arrive before it is sent again with the same external id: a short run must
 * not be over by then, or its login would run twice.
 */
const probeAfterMs = 1_000

/** No start is sent any more in this run: every one of them would be refused. */
const stopStarts = Effect.fnUntraced(function* (night: Night, row: Row) {
  const waiting = night.schedule.drain()
  yield* settleWaiting(night, [candidateOf(row), ...waiting], "SECRET_REFUSED")
  yield* leave(night, row)
})

const settleRefusal = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
  { last, status_reason }: { readonly last: AttemptState; readonly status_reason: string },
) {
  const tokenEnd = tokenEndOfRefusal(status_reason)
  if (last.token_id !== undefined && tokenEnd !== undefined)
    yield* dropToken(orderOf(night, row, last.attempt), last.token_id, tokenEnd)
  const message = last.answer?.said
  yield* settle(night, row.work.task_id, { ...verdictOfRefusal(status_reason), ...given({ message }) })
})

const deferredReasons = {
  foreign: "ALREADY_EXECUTING",
  engine_unavailable: "ENGINE_UNAVAILABLE",
  not_created: "SERVICE_UNREACHABLE",
} as const

/** Starts of a task in a night that may be answered that a run of somebody else is in their way. */
const conflictsMax = 20

/** The first half of them come as all that is put off; the others are spread over the time that is left. */
const conflictWaitMs = (conflicts: number, leftMs: number): number => {
  if (conflicts >= conflictsMax) return Infinity
  return conflicts > conflictsMax / 2 ? leftMs / (conflictsMax + 1 - conflicts) : 0
}

const askedText = (asked: Duration.Duration): string => {
  const seconds = Duration.seconds(Math.ceil(Duration.toSeconds(asked)))
  return `the service asked to wait ${Duration.format(seconds)}`
}

/** Queues the same attempt for later, as long as the task may wait. */
const defer = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
  why: keyof typeof deferredReasons,
  asked: Duration.Duration = Duration.zero,
  detail?: string,
) {
  const { task_id } = row.work
  const now = yield* Clock.currentTimeMillis
  const since = (row.deferredSince ??= now)
  const act = nextOf(night, row)
  const isProbe = act._tag === "Start" && act.probe
  if (why === "engine_unavailable")
    return yield* noteUnavailable(night, row, { since, asked, detail, isProbe })
  row.deferrals += 1
  const lastAt = lastStartAt(night.rules, since)
  const usual = waitMs(attemptWaits(night.rules.retry), row.deferrals, yield* Random.next, asked)
  const wait = Math.max(usual, conflictWaitMs(row.conflicts, lastAt - now))
  const until = Math.trunc(now + wait)
  const noted = { reason: deferredReasons[why], until, isAsked: !Duration.isZero(asked) }
  if (until > lastAt) {
    const verdict = own(isProbe ? "START_UNKNOWN" : deferredReasons[why])
    const whenAsked = { ...verdict, message: askedText(asked) }
    const told = wait === Duration.toMillis(asked) ? whenAsked : verdict
    yield* settle(night, task_id, told, noted.isAsked ? [waitFact(night, task_id, noted)] : [])
    return yield* leave(night, row)
  }
  yield* noteWait(night, task_id, noted)
  yield* putOff(night, row, until, isProbe)
})
