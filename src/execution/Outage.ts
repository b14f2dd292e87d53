/**
 * An engine that refuses starts (503, or in maintenance) is one problem for all its tasks: it is closed for
 * all of them, checked again at growing intervals, and given up for all of them at once if it is away until
 * `max_wait` or the deadline. A single answer that asks for more time than there is gives up only its own
 * task.
 */
import { Clock, Duration, Effect, Random } from "effect"
import type { EngineReference } from "../contract/Ids.ts"
import { waitMs } from "../foundation/Waits.ts"
import { attemptWaits } from "../scheduling/Polling.ts"
import { candidateOf, release, settleWaiting } from "./Night.ts"
import type { Book, Night } from "./Night.ts"
import { tell } from "./Progress.ts"
import { began, ended } from "./Troubles.ts"

const awayText = (asked: Duration.Duration): string =>
  `no execution can be started${Duration.isZero(asked) ? "" : `; it asks to wait ${Duration.format(asked)}`}`

/** The engine takes starts again. */
export const noteAvailable = (night: Night, engine_reference: EngineReference): void => {
  const known = night.outages.get(engine_reference)
  if (known === undefined) return
  night.outages.delete(engine_reference)
  const { since, findings } = known
  night.troubles.news.push(
    ended(night.run_id, "engine", { since, failures: findings, engine: engine_reference }),
  )
}

/** A task found its engine away: it releases its slot and waits with all other tasks of that engine. */
export const noteUnavailable = Effect.fnUntraced(function* (
  night: Night,
  book: Book,
  /** Since when the task waits, and how long the engine asks it to. */
  { since, asked }: { readonly since: number; readonly asked: Duration.Duration },
) {
  const { task_id, engine_reference } = book.work
  const { schedule, rules } = night
  const now = yield* Clock.currentTimeMillis
  const closedUntil = schedule.closedUntil(engine_reference)
  const known = night.outages.get(engine_reference) ?? { since: now, findings: 0, isPutOff: false }
  const isNews = closedUntil <= now
  const maxWaitMs = Duration.toMillis(rules.max_wait)
  const askedUntil = now + Duration.toMillis(asked)
  const engineLastAt = Math.min(known.since + maxWaitMs, rules.deadlineAt ?? Infinity)
  const asksTooMuch = askedUntil > engineLastAt
  const findings = isNews ? known.findings + 1 : known.findings
  if (known.findings === 0)
    night.troubles.news.push(
      began(night.run_id, "engine", { since: now, message: awayText(asked), engine: engine_reference }),
    )
  night.outages.set(engine_reference, { ...known, findings, isPutOff: known.isPutOff || asksTooMuch })
  const wait = waitMs(attemptWaits(rules.retry), findings, yield* Random.next)
  const nextAt = isNews ? now + wait : closedUntil
  const until = Math.max(nextAt, askedUntil)
  const lastAt = Math.min(engineLastAt, since + maxWaitMs)
  if (until <= lastAt) {
    schedule.closeEngine(engine_reference, until)
    schedule.add(candidateOf(book))
    yield* tell({ _tag: "Waiting", task_id, why: "ENGINE_UNAVAILABLE", until })
  } else {
    const isAlone = asksTooMuch && !known.isPutOff && nextAt <= engineLastAt
    if (isAlone) schedule.closeEngine(engine_reference, nextAt)
    const waiting = until > engineLastAt && !isAlone ? schedule.drain(engine_reference) : []
    yield* settleWaiting(night, [candidateOf(book), ...waiting], "ENGINE_UNAVAILABLE")
  }
  yield* release(night, task_id)
})
