/**
 * Tests whose body is a list of steps: `effect` in virtual time, `live` on the machine's clock, `effect.each` for each
 * of some cases. What a test acquires is released at its end; a step that fails fails the test.
 */
import { it } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"

export type Failure = NonNullable<unknown> | null | void
type Steps<R, Case extends ReadonlyArray<unknown> = []> = (
  ...one: Case
) => Generator<Effect.Effect<unknown, Failure, R>, void, never>

/** The same two, with this layer built anew for each test. */
export const withLayer = <R, E>(layer: Layer.Layer<R, E, Scope.Scope>) => {
  const test = (run: typeof it.effect) => {
    const once = (title: string, steps: Steps<R | Scope.Scope>, timeout?: number) =>
      run(title, () => Effect.provide(Effect.gen(steps), layer), timeout)
    const each =
      <T>(cases: ReadonlyArray<T>) =>
      (title: string, steps: Steps<R | Scope.Scope, [one: T]>) =>
        run.each(cases)(title, (one) =>
          Effect.provide(
            Effect.gen(() => steps(one)),
            layer,
          ),
        )
    return Object.assign(once, { each })
  }
  return { effect: test(it.effect), live: test(it.live) }
}

export const { effect, live } = withLayer(Layer.empty)
