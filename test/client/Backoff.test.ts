import { assert, describe, expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { callWaits, retryCall, type RetryOptions } from "../../src/client/Pacing.ts"
import { AnswerLost, NotSent, SecretRefused, Throttled, UnexpectedAnswer } from "../../src/client/Service.ts"
import type { CallFailure } from "../../src/client/Service.ts"
import { waitMs } from "../../src/base/Time.ts"
import { effect } from "../harness/Steps.ts"

const message = "m"
const failures = {
  NotSent: new NotSent({ message }),
  AnswerLost: new AnswerLost({ message }),
  Throttled: new Throttled({ http_status: 429, message }),
  SecretRefused: new SecretRefused({ http_status: 401, message }),
  UnexpectedAnswer: new UnexpectedAnswer({ http_status: 418, message }),
} satisfies Record<string, CallFailure>

/** Fails a call as often as it is made; says how often that was, with what it ended and when. */
const tries = (failure: CallFailure, options: RetryOptions) =>
  Effect.gen(function* () {
    let count = 0
    const call = Effect.suspend(() => {
      count++
      return Effect.fail(failure)
    })
    const fiber = yield* Effect.forkChild(Effect.flip(retryCall(call, options)))
    yield* TestClock.adjust("2 hours")
    return [count, yield* Fiber.join(fiber)] as const
  })

describe("waits between tries", () => {
  it("grow from one second to one minute, with full jitter", () => {
    expect([1, 2, 3, 6, 7, 8, 50].map((n) => waitMs(callWaits, n, 0))).toStrictEqual([
      1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000,
    ])
    assert.isBelow(waitMs(callWaits, 9, 0.999_999), 1)
  })
})

describe("repeated calls", () => {
  const countsOf = (options: RetryOptions) =>
    Effect.forEach(Object.values(failures), (failure) =>
      Effect.map(tries(failure, options), ([count, last]) => [count, last === failure]),
    )
  const counted = (...counts: ReadonlyArray<number>) => counts.map((count) => [count, true])

  effect("what a retry can fix is tried as often as allowed, the rest twice", function* () {
    assert.deepStrictEqual(yield* countsOf({ triesMax: 5 }), counted(5, 5, 5, 2, 2))
  })

  const asking = (ms: number) =>
    new Throttled({ http_status: 429, retry_after: Duration.millis(ms), message })

  effect("a wait that would end after the named moment is not begun", function* () {
    const asked = asking(600_000)
    const untilAt = (yield* Clock.currentTimeMillis) + 900_000
    assert.deepStrictEqual(yield* tries(asked, { triesMax: 50, untilAt }), [2, asked])
  })

  effect("end if the service asks for more than ten minutes: the wait is reported instead", function* () {
    for (const [askedMs, calls] of [
      [600_000, 3],
      [600_001, 1],
      [99_999_999_000, 1],
    ] as const)
      assert.deepStrictEqual(yield* tries(asking(askedMs), { triesMax: 3 }), [calls, asking(askedMs)])
  })
})
