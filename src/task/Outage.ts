/**
 * An engine that refuses starts (503, or in maintenance), or whose starts come to nothing, is one problem for
 * all its tasks: it is closed for all of them, tried again at growing intervals by one account at a time, and
 * given up for all of them at once if that goes on until `max_wait` or the deadline. A single answer that
 * asks for more time than there is gives up only its own task.
 */
import { Clock, Duration, Effect, Queue, Random } from "effect"
import type { EngineReference } from "../service/Ids.ts"
import { waitMs } from "../base/Time.ts"
import { attemptWaits } from "../client/Polling.ts"
import { candidateOf, leave, release, settleWaiting, type Night, type Row } from "./Night.ts"
import { tell } from "./Progress.ts"
import { began, ended } from "./Troubles.ts"

const awayText = (asked: Duration.Duration): string =>
  `no execution can be started${Duration.isZero(asked) ? "" : `; it asks to wait ${Duration.format(asked)}`}`

const accountOf = ({ keys }: Row): string | undefined => keys.account?.account

/** The answer to its start is known, or nothing was sent: another one may be. */
export const noteAnswered = Effect.fnUntraced(function* (night: Night, row: Row) {
  if (!row.isAwaited) return
  row.isAwaited = false
  night.breaker.answered(row.work.engine_reference)
  yield* Queue.offer(night.poke, undefined)
})

/** The engine accepts starts. */
export const noteAvailable = Effect.fnUntraced(function* (night: Night, row: Row) {
  const { engine_reference } = row.work
  const doubt = night.breaker.accepted(engine_reference, accountOf(row), yield* Clock.currentTimeMillis)
  if (doubt === undefined) return
  const { since, findings } = doubt
  const about = { since, failures: findings, engine: engine_reference }
  night.troubles = ended(night.troubles, "engine", about)
})

/** Until when the engine is closed now, and when it is given up for all its tasks (milliseconds). */
const closeEngine = Effect.fnUntraced(function* (
  night: Night,
  engine: EngineReference,
  asked: Duration.Duration,
) {
  const { schedule, rules, breaker } = night
  const now = yield* Clock.currentTimeMillis
  const closedUntil = schedule.closedUntil(engine)
  const doubt = breaker.noteDoubt(engine, now)
  const isNews = closedUntil <= now
  if (doubt.findings === 0)
    night.troubles = began(night.troubles, "engine", { since: now, message: awayText(asked), engine })
  if (isNews) doubt.findings += 1
  const wait = waitMs(attemptWaits(rules.retry), doubt.findings, yield* Random.next)
  const nextAt = isNews ? now + wait : closedUntil
  const engineLastAt = Math.min(doubt.since + Duration.toMillis(rules.max_wait), rules.deadlineAt ?? Infinity)
  return { doubt, nextAt, until: Math.max(nextAt, now + Duration.toMillis(asked)), engineLastAt }
})

/** A start came to nothing that is known: if the engine is in doubt now, it gets no other one for a while. */
export const noteFailed = Effect.fnUntraced(function* (night: Night, row: Row, isProbe: boolean) {
  const { engine_reference } = row.work
  const { breaker, schedule } = night
  if (!breaker.failed(engine_reference, accountOf(row), yield* Clock.currentTimeMillis)) return
  // Nobody else could try it instead: the sooner its probe, the sooner a short execution is found.
  if (!isProbe && schedule.waitingOn(engine_reference) === 0) return
  for (const engine of new Set([engine_reference, ...breaker.inTrouble()])) {
    const { until, engineLastAt } = yield* closeEngine(night, engine, Duration.zero)
    if (until <= engineLastAt) schedule.closeEngine(engine, until)
    else yield* settleWaiting(night, schedule.drain(engine), "ENGINE_UNAVAILABLE")
  }
})

interface Unavailable {
  /** Since when the task waits, and how long the engine asks it to. */
  readonly since: number
  readonly asked: Duration.Duration
  /** What its page answered, if it showed no form. */
  readonly detail: string | undefined
  readonly isProbe: boolean
}

/** A task found its engine away: it releases its slot and waits with all other tasks of that engine. */
export const noteUnavailable = Effect.fnUntraced(function* (
  night: Night,
  row: Row,
  { since, asked, detail, isProbe }: Unavailable,
) {
  const { task_id, engine_reference } = row.work
  const { schedule, rules } = night
  const { doubt, nextAt, until, engineLastAt } = yield* closeEngine(night, engine_reference, asked)
  const { isPutOff } = doubt
  const asksTooMuch = until > nextAt && until > engineLastAt
  doubt.isPutOff = isPutOff || asksTooMuch
  const lastAt = Math.min(engineLastAt, since + Duration.toMillis(rules.max_wait))
  if (until <= lastAt) {
    schedule.closeEngine(engine_reference, until)
    yield* tell({ _tag: "Waiting", task_id, why: "ENGINE_UNAVAILABLE", until })
    if (isProbe) return schedule.owe(candidateOf(row), until)
    schedule.add(candidateOf(row))
    return yield* release(night, task_id)
  }
  const isAlone = asksTooMuch && !isPutOff && nextAt <= engineLastAt
  if (isAlone) schedule.closeEngine(engine_reference, nextAt)
  const waiting = until > engineLastAt && !isAlone ? schedule.drain(engine_reference) : []
  yield* settleWaiting(night, [candidateOf(row), ...waiting], "ENGINE_UNAVAILABLE", detail)
  yield* leave(night, row)
})
