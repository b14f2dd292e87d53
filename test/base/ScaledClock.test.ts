/** A clock that runs ahead of the machine's, which here is one that the test moves. */
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, overHttp, textField } from "../sandbox/server/Caller.ts"
import { ScaledClock } from "../../src/base/Time.ts"
import { effect } from "../harness/Steps.ts"

effect("shows its origin, runs at its speed and shortens sleeps accordingly", function* () {
  yield* TestClock.setTime(5_000_000)
  const scaled = ScaledClock.layer({ speed: 300, originMs: 1_000 })
  const times: Array<number> = []
  const look = Effect.map(Clock.currentTimeMillis, (now) => void times.push(now))
  const sleeper = yield* Effect.forkChild(
    look.pipe(Effect.andThen(Effect.sleep("5 minutes")), Effect.andThen(look), Effect.provide(scaled)),
  )
  yield* TestClock.adjust(999)
  expect(times).toEqual([1_000])
  yield* TestClock.adjust(1)
  yield* Fiber.join(sleeper)
  expect(times).toEqual([1_000, 301_000])
})

it.effect("drives a whole server: its times are the scaled ones", () =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* caller.start("queue-60+run-60")
    yield* TestClock.adjust(400)
    const state = yield* caller.read(textField(started, "execution_id"))
    expect([state.status, field(state, "date_created"), field(state, "date_ended")]).toEqual([
      200,
      "2026-11-21T00:00:00.000Z",
      "2026-11-21T00:02:00.000Z",
    ])
  }).pipe(
    Effect.provide(
      overHttp({ seed: 7 }).pipe(
        Layer.provide(ScaledClock.layer({ speed: 300, originMs: Date.UTC(2026, 10, 21) })),
      ),
    ),
  ),
)
