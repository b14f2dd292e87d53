/** What observers see, and what survives a restart. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { newestEventAt } from "../../../src/sandbox/state/Journal.ts"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, field, inProcess, textField } from "../server/Caller.ts"

const truth = Effect.flatMap(Sandbox, (sandbox) => sandbox.truth)

describe("the truth", () => {
  it.effect("names every rule that the caller broke, and nothing if there is none", () =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const start = (words: string, customer_id: string, external_execution_id: string) =>
        caller.start(`queue-0+run-0+${words}`, { customer_id, external_execution_id })
      const good = yield* start("ok", "c-good", "1")
      yield* caller.read(textField(good, "execution_id"))
      yield* caller.results(textField(good, "session_id"))
      yield* caller.remove(textField(good, "execution_id"))
      expect((yield* truth).ruleBreaks).toEqual([])

      const rejected = yield* start("end-BLOCKED_USER", "c-bad", "2")
      yield* start("end-BLOCKED_USER", "c-bad", "3")
      yield* caller.read(textField(rejected, "execution_id"))
      yield* start("end-BLOCKED_USER", "c-bad", "4")
      const blind = yield* start("ok", "c-blind", "5")
      yield* caller.results(textField(blind, "session_id"))
      yield* caller.results(textField(blind, "session_id"))
      yield* caller.remove(textField(blind, "execution_id"))
      const foreign = yield* start("foreign-60", "c-foreign", "6")
      yield* caller.abort(textField(foreign, "execution_id"))
      const breaks = (yield* truth).ruleBreaks.map(({ rule, customer_id, answer_read }) =>
        [rule, customer_id, answer_read].filter((part) => part !== undefined),
      )
      expect(breaks.sort()).toEqual([
        ["deleted_before_final_state_read", "c-blind"],
        ["foreign_run_touched", "c-foreign"],
        ["rejected_login_repeated", "c-bad", false],
        ["rejected_login_repeated", "c-bad", true],
        ["results_read_too_soon", "c-blind"],
      ])
    }).pipe(Effect.provide(inProcess({ seed: 7 }))),
  )

  it.effect("records every start with its outcome, and when the source judged the login", () =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const first = yield* caller.start("queue-10+run-20", { external_execution_id: "x" })
      yield* TestClock.adjust(1_000)
      yield* caller.start("ok", { external_execution_id: "x" })
      yield* caller.start("ok", { engine_reference: "sandbox-maintenance:website" })
      const seen = yield* truth
      const execution_id = field(first, "execution_id")
      const about = {
        application: "65f0c0ffee00000000000001",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
      }
      expect(seen.starts).toEqual([
        { at: 0, ...about, external_execution_id: "x", outcome: "accepted", execution_id },
        { at: 1_000, ...about, external_execution_id: "x", outcome: "conflict", execution_id },
        { at: 1_000, ...about, engine_reference: "sandbox-maintenance:website", outcome: "unavailable" },
      ])
      expect(seen.executions.map(({ login, closes_at }) => [login, closes_at])).toEqual([
        [{ at: 12_000, verdict: "AUTH_OK" }, 30_000],
      ])
    }).pipe(Effect.provide(inProcess({ seed: 7 }))),
  )
})

describe("the journal", () => {
  const folder = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "nightjar-sandbox-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true })),
  )

  it.effect(
    "lets executions in flight survive a restart, without a parameter, a secret or a ticket in it",
    () =>
      Effect.gen(function* () {
        const journal = join(yield* folder, "journal.ndjson")
        const session = inProcess({ seed: 7, journal })
        const id = yield* Effect.gen(function* () {
          const caller = yield* Caller
          const started = yield* caller.start("queue-10+run-10+challenge-canary1", {
            parameters: { username: "queue-10+run-10+challenge-canary1", password: "canary2" },
            base_configurations: { customer_interaction_available: true, tokenized_access: true },
          })
          yield* caller.start("ok", { customer_id: "c-2", parameters: { username: "canary3", password: "" } })
          yield* TestClock.adjust(12_000)
          yield* caller.resume(textField(started, "execution_id"), { code: "canary1" })
          const text = readFileSync(journal, "utf8")
          for (const canary of ["canary", textField(started, "ticket"), "sandbox-app"]) {
            expect(text).not.toContain(canary)
          }
          return textField(started, "execution_id")
        }).pipe(Effect.provide(session))
        expect([statSync(journal).mode & 0o777, yield* newestEventAt(journal)]).toEqual([0o600, 13_000])

        writeFileSync(journal, `${readFileSync(journal, "utf8")}{"_tag":"Abor`)
        yield* Effect.gen(function* () {
          const caller = yield* Caller
          yield* TestClock.adjust(1_000)
          expect(field(yield* caller.read(id), "status_reason")).toBe("RUNNING")
          yield* caller.abort(id)
        }).pipe(Effect.provide(session))
        yield* Effect.gen(function* () {
          const caller = yield* Caller
          expect(field(yield* caller.read(id), "status_reason")).toBe("CLIENT_CANCELLED")
        }).pipe(Effect.provide(session))
      }).pipe(Effect.scoped),
  )

  it.effect("that is damaged in the middle is refused by name", () =>
    Effect.gen(function* () {
      const journal = join(yield* folder, "journal.ndjson")
      writeFileSync(journal, "{}\n")
      const failure = yield* Effect.flip(Effect.provide(truth, Sandbox.layer({ seed: 7, journal })))
      expect([failure._tag, failure.path]).toEqual(["JournalFailed", journal])
      expect(yield* newestEventAt(`${journal}.absent`)).toBeUndefined()
    }).pipe(Effect.scoped),
  )
})
