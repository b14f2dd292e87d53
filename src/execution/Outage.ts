/**
 * An engine that takes no start (503, or in maintenance) is one matter for all its tasks: it is closed for
 * all of them, looked at again at growing intervals, and given up for all of them at once when it stayed away
 * for `max_wait` or until the deadline.
 */
import { Clock, Effect, Random } from "effect"
import { retryWaitMs } from "../scheduling/Polling.ts"
import { candidateOf, release, settleWaiting } from "./Night.ts"
import type { Book, Night } from "./Night.ts"
import { tell } from "./Progress.ts"

/**
 * Since when (milliseconds), and how often it was found so; starts that were under way together count once.
 */
export interface Outage {
  readonly since: number
  readonly findings: number
}

/** A task found its engine away: it gives its slot back and waits with all the others of that engine. */
export const noteUnavailable = Effect.fnUntraced(function* (
  night: Night,
  book: Book,
  retry_after_ms: number | undefined,
) {
  const { task_id, engine_reference } = book.work
  const { schedule, rules } = night
  const now = yield* Clock.currentTimeMillis
  const closedUntil = schedule.closedUntil(engine_reference)
  const known = night.outages.get(engine_reference) ?? { since: now, findings: 0 }
  const isNews = closedUntil <= now
  const outage = isNews ? { ...known, findings: known.findings + 1 } : known
  night.outages.set(engine_reference, outage)
  const wait = retryWaitMs(rules.retry, outage.findings, yield* Random.next)
  const until = Math.max(isNews ? now + wait : closedUntil, now + (retry_after_ms ?? 0))
  const engineLastAt = Math.min(outage.since + rules.max_wait_ms, rules.deadlineAt ?? Infinity)
  const lastAt = Math.min(engineLastAt, (book.deferredSince ?? now) + rules.max_wait_ms)
  if (until <= lastAt) {
    schedule.closeEngine(engine_reference, until)
    schedule.add(candidateOf(book))
    yield* tell({ _tag: "Waiting", task_id, why: "ENGINE_UNAVAILABLE", until })
  } else {
    const waiting = until > engineLastAt ? schedule.drain(engine_reference) : []
    yield* settleWaiting(night, [candidateOf(book), ...waiting], "ENGINE_UNAVAILABLE")
  }
  yield* release(night, task_id)
})
