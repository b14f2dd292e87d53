/**
 * Tests whose body is a list of steps: `effect` in virtual time, `live` on the machine's clock. What a test
 * acquires is released at its end; a step that fails fails the test.
 */
import { it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { Scope } from "effect"

type Failure = NonNullable<unknown> | null | void
type Steps<R> = () => Generator<Effect.Effect<unknown, Failure, R>, void, never>

/** The same two, with this layer built anew for each test. */
export const withLayer = <R, E>(layer: Layer.Layer<R, E, Scope.Scope>) => {
  const test = (run: typeof it.effect) => (title: string, steps: Steps<R | Scope.Scope>, timeout?: number) =>
    run(title, () => Effect.provide(Effect.gen(steps), layer), timeout)
  return { effect: test(it.effect), live: test(it.live) }
}

export const { effect, live } = withLayer(Layer.empty)
