/**
 * Suites of the service. Its clock begins on the morning of 2026-11-21, outside of every maintenance window.
 * Both ways to reach the service run the same routes and codecs, so most suites run in the caller's own fiber;
 * those about secrets, bodies and sockets run through a real server too.
 */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { inProcess, overHttp } from "./Caller.ts"
import type { Caller, Reach } from "./Caller.ts"

export const morning = Date.UTC(2026, 10, 21, 9)

export type Told = (title: string, body: Effect.Effect<void, never, Caller | Sandbox>) => void

const toldOver =
  (reach: Reach): Told =>
  (title, body) =>
    it.effect(title, () =>
      Effect.andThen(TestClock.setTime(morning), body).pipe(Effect.provide(reach({ seed: 7 }))),
    )

export const ofTheService = (subject: string, suite: (told: Told) => void): void => {
  describe(subject, () => suite(toldOver(inProcess)))
}

export const inBothWays = (subject: string, suite: (told: Told) => void): void => {
  describe(`${subject}, in-process`, () => suite(toldOver(inProcess)))
  describe(`${subject}, over HTTP`, () => suite(toldOver(overHttp)))
}
