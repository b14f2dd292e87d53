/** What outlives the service: nothing that a caller was told becomes untrue by a restart. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { newestEventAt } from "../../../src/sandbox/state/Journal.ts"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, field, inProcess, textField } from "./Caller.ts"

const journalIn = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "nightjar-state-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true })),
  ),
  (folder) => join(folder, "state.ndjson"),
)
const linesOf = (path: string) => readFileSync(path, "utf8").split("\n")
const failureWith = (journal: string) =>
  Effect.map(
    Effect.flip(Effect.provide(Sandbox, Sandbox.layer({ seed: 7, journal }))),
    ({ message }) => message,
  )

describe("the state file", () => {
  it.effect("keeps executions, conflicts, sessions and what was read from them", () =>
    Effect.gen(function* () {
      const journal = yield* journalIn
      const service = () => inProcess({ seed: 7, journal })
      const [open, closed] = yield* Effect.gen(function* () {
        const caller = yield* Caller
        const running = yield* caller.start("queue-10+run-50", { external_execution_id: "x-1" })
        const over = yield* caller.start("queue-0+run-0+records-4", { customer_id: "c-2" })
        yield* caller.read(textField(over, "execution_id"))
        yield* caller.results(textField(over, "session_id"))
        return [running, over] as const
      }).pipe(Effect.provide(service()))
      yield* TestClock.adjust(1_000)
      yield* Effect.gen(function* () {
        const caller = yield* Caller
        const conflict = yield* caller.start("ok", { external_execution_id: "x-1" })
        expect([conflict.status, field(conflict, "execution_id")]).toEqual([409, field(open, "execution_id")])
        // A second after the read before the restart: still within five seconds.
        expect((yield* caller.results(textField(closed, "session_id"))).status).toBe(429)
        yield* TestClock.adjust(60_000)
        expect((yield* caller.results(textField(closed, "session_id"))).status).toBe(200)
        expect(field(yield* caller.read(textField(open, "execution_id")), "status_reason")).toBe("COMPLETED")
        const seen = (yield* (yield* Sandbox).truth).executions
        expect(
          seen.map(({ final_state_read_at, results_reads }) => [final_state_read_at, results_reads.length]),
        ).toEqual([
          [61_000, 0],
          [0, 2],
        ])
      }).pipe(Effect.provide(service()))
    }),
  )

  it.effect("holds a time later than any answer, so that a restart takes nothing back", () =>
    Effect.gen(function* () {
      const journal = yield* journalIn
      yield* Effect.gen(function* () {
        const caller = yield* Caller
        const started = yield* caller.start("queue-10+run-20")
        yield* TestClock.adjust(12_000)
        // A read is no event, and yet the caller knows now that the run is under way.
        expect(field(yield* caller.read(textField(started, "execution_id")), "status_reason")).toBe("RUNNING")
        expect(yield* newestEventAt(journal)).toBeGreaterThan(12_000)
        const before = linesOf(journal).length
        for (let n = 0; n < 50; n += 1) {
          yield* TestClock.adjust(10)
          yield* caller.read(textField(started, "execution_id"))
        }
        // And many reads within a second write nothing more.
        expect(linesOf(journal).length).toBe(before)
      }).pipe(Effect.provide(inProcess({ seed: 7, journal })))
    }),
  )

  it.effect("loses a last line that was cut short, and nothing else", () =>
    Effect.gen(function* () {
      const journal = yield* journalIn
      const started = yield* Effect.flatMap(Caller, (caller) => caller.start("queue-60")).pipe(
        Effect.provide(inProcess({ seed: 7, journal })),
      )
      const whole = readFileSync(journal, "utf8")
      for (const torn of [
        '{"_tag":"Aborted","at":1',
        '{"_tag":"Aborted","at":1,"execution_id":"é'.slice(0, -1),
        "\u0000",
      ]) {
        writeFileSync(journal, whole + torn)
        const read = Effect.flatMap(Caller, (caller) => caller.read(textField(started, "execution_id")))
        expect((yield* Effect.provide(read, inProcess({ seed: 7, journal }))).status).toBe(202)
        expect(readFileSync(journal, "utf8").startsWith(whole)).toBe(true)
        expect(
          linesOf(journal)
            .slice(0, -1)
            .map((line) => JSON.parse(line) as unknown),
        ).not.toEqual([])
      }
    }),
  )

  it.effect("with a damaged line is refused by its number, whole and without repeating the line", () =>
    Effect.gen(function* () {
      const journal = yield* journalIn
      yield* Effect.flatMap(Caller, (caller) => caller.start("queue-60")).pipe(
        Effect.provide(inProcess({ seed: 7, journal })),
      )
      const lines = linesOf(journal).slice(0, -1)
      for (const [damage, number] of [
        ['{"_tag":"Aborted","at":1', lines.length + 1],
        ["canary", lines.length + 1],
        ['{"_tag":"Exploded","at":1}', lines.length + 1],
      ] as const) {
        const text = [...lines, damage, ...lines, ""].join("\n")
        writeFileSync(journal, text)
        expect(yield* failureWith(journal)).toBe(`${journal}: line ${number} is not an event of this service`)
        expect(readFileSync(journal, "utf8")).toBe(text)
      }
    }),
  )

  it.effect("is closed to others, even if it was open to them before", () =>
    Effect.gen(function* () {
      const journal = yield* journalIn
      writeFileSync(journal, "")
      chmodSync(journal, 0o644)
      yield* Effect.provide(Sandbox, Sandbox.layer({ seed: 7, journal }))
      expect(statSync(journal).mode & 0o777).toBe(0o600)
    }),
  )

  it.effect("that cannot be created is reported by name", () =>
    Effect.gen(function* () {
      const journal = join(yield* journalIn, "nowhere", "state.ndjson")
      expect(yield* failureWith(journal)).toMatch(
        /nowhere\/state\.ndjson: cannot open: no such file or directory \(ENOENT\)$/,
      )
      expect(existsSync(journal)).toBe(false)
    }),
  )
})
