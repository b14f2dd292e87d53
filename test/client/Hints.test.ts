/** The board between webhooks and those who look: one slot per watch, nothing kept of what nobody watches. */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Hints, makeHintBoard } from "../../src/client/Hints.ts"
import type { HintWatch } from "../../src/client/Hints.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const naming = (...texts: ReadonlyArray<string>) => ({ texts: new Set(texts), dateMs: undefined })
const about = (engine_reference: string | undefined, ...ids: ReadonlyArray<string | undefined>) => ({
  engine_reference: engine_reference === undefined ? undefined : anId(engine_reference),
  ids: ids.map((one) => (one === undefined ? undefined : anId(one))),
})
/** One look at a time, by somebody who is told this. */
const look = (watch: HintWatch, told: "nothing" | "news" | "end", first = false) => {
  const hinted = watch.beginLook(0)
  watch.endLook({ hinted, first, told })
  return hinted
}

describe("a watch", () => {
  effect("gets hints for any of its ids, even one learnt later, until it polls", function* () {
    const board = makeHintBoard()
    const watch = yield* board.source.watch(about("bank", "e-1", undefined))
    const other = yield* board.source.watch(about("bank", "e-2"))
    board.offer(naming("s-1"))
    assert.isFalse(watch.isHinted())
    watch.learn("s-1")
    for (const id of ["e-1", "s-1"]) {
      board.offer(naming("x", id))
      board.offer(naming(id))
      assert.deepStrictEqual([watch.isHinted(), other.isHinted()], [true, false])
      assert.deepStrictEqual([look(watch, "nothing"), look(watch, "nothing")], [true, false])
    }
  })

  effect("keeps a hint that arrives during a poll for the next poll", function* () {
    const board = makeHintBoard()
    const watch = yield* board.source.watch(about("bank", "e-1"))
    watch.beginLook(0)
    board.offer(naming("e-1"))
    watch.endLook({ hinted: false, first: false, told: "nothing" })
    assert.isTrue(look(watch, "nothing"))
  })

  effect("is never named by an empty string, nor by anything once its scope is closed", function* () {
    const board = makeHintBoard()
    const gone = yield* Effect.scoped(board.source.watch(about("bank", "e-1", "")))
    const watch = yield* board.source.watch(about("bank", ""))
    board.offer(naming("e-1", ""))
    assert.deepStrictEqual([gone.isHinted(), watch.isHinted()], [false, false])
  })

  effect("rests until its time, a hint, or the end of trust in its engine, whichever is first", function* () {
    const board = makeHintBoard()
    const watch = yield* board.source.watch(about("bank", "e-1"))
    const neighbour = yield* board.source.watch(about("bank", "e-2"))
    const elsewhere = yield* board.source.watch(about("tax", "e-3"))
    const rested = (one: HintWatch) =>
      Effect.gen(function* () {
        const since = yield* Clock.currentTimeMillis
        yield* one.rest(60_000)
        return (yield* Clock.currentTimeMillis) - since
      })
    const first = yield* Effect.forkChild(rested(watch))
    yield* TestClock.adjust("10 seconds")
    board.offer(naming("e-1"))
    assert.strictEqual(yield* Fiber.join(first), 10_000)
    look(watch, "news")
    assert.deepStrictEqual(
      [watch.isTrusted(), neighbour.isTrusted(), elsewhere.isTrusted()],
      [true, true, false],
    )
    const second = yield* Effect.forkChild(rested(watch))
    const third = yield* Effect.forkChild(rested(elsewhere))
    yield* TestClock.adjust("20 seconds")
    look(neighbour, "end")
    assert.deepStrictEqual([yield* Fiber.join(second), watch.isTrusted()], [20_000, false])
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* Fiber.join(third), 60_000)
  })
})

describe("without webhooks", () => {
  effect("there are no hints, and a wait is a sleep", function* () {
    const source = yield* Hints
    const watch = yield* source.watch(about("bank", "e-1"))
    assert.deepStrictEqual(
      [source.on, watch.isHinted(), look(watch, "news"), watch.isTrusted()],
      [false, false, false, false],
    )
  })
})
