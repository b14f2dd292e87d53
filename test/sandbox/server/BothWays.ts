/**
 * A suite told once and run against both ways to reach the embedded service: in the caller's own fiber and
 * through a real server. Its clock begins on the morning of 2026-11-21, outside of every maintenance window.
 */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { inProcess, overHttp } from "./Caller.ts"
import type { Caller } from "./Caller.ts"

export const morning = Date.UTC(2026, 10, 21, 9)

export type Told = (title: string, body: Effect.Effect<void, never, Caller | Sandbox>) => void

export const inBothWays = (subject: string, suite: (told: Told) => void): void => {
  for (const [name, reach] of [
    ["in-process", inProcess],
    ["over HTTP", overHttp],
  ] as const) {
    describe(`${subject}, ${name}`, () =>
      suite((title, body) =>
        it.effect(title, () =>
          Effect.andThen(TestClock.setTime(morning), body).pipe(Effect.provide(reach({ seed: 7 }))),
        ),
      ))
  }
}
