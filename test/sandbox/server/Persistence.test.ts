/** What outlives the service: nothing that a caller was told becomes untrue by a restart. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { newestEventAt } from "../../../src/sandbox/state/Journal.ts"
import { faultyCalls, refusal, withCalls } from "../../base/FaultyCalls.ts"
import { Caller, field, inProcess, overHttp, morning, person, sealed, textField, truth } from "./Caller.ts"
import { folder } from "../../harness/Folder.ts"
import { effect } from "../../harness/Steps.ts"

const journalIn = Effect.map(folder, (path) => join(path, "state.ndjson"))
const linesOf = (path: string) => readFileSync(path, "utf8").split("\n")
const failureWith = (journal: string) =>
  Effect.map(
    Effect.flip(Effect.provide(Sandbox, Sandbox.layer({ seed: 7, journal }))),
    ({ message }) => message,
  )

describe("the state file", () => {
  effect("keeps executions, conflicts, sessions and what was read from them", function* () {
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
      const seen = (yield* truth).executions
      expect(
        seen.map(({ final_state_read_at, results_reads }) => [final_state_read_at, results_reads.length]),
      ).toEqual([
        [61_000, 0],
        [0, 2],
      ])
    }).pipe(Effect.provide(service()))
  })

  effect("holds a time later than any answer, so that a restart takes nothing back", function* () {
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
  })

  effect("loses a last line that was cut short, and nothing else", function* () {
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
      for (const line of linesOf(journal).slice(0, -1)) JSON.parse(line)
    }
  })

  effect("with a damaged line is refused by its number, whole and without repeating the line", function* () {
    const journal = yield* journalIn
    yield* Effect.flatMap(Caller, (caller) => caller.start("queue-60")).pipe(
      Effect.provide(inProcess({ seed: 7, journal })),
    )
    const lines = linesOf(journal).slice(0, -1)
    for (const damage of ['{"_tag":"Aborted","at":1', "canary", '{"_tag":"Exploded","at":1}']) {
      const text = [...lines, damage, ...lines, ""].join("\n")
      writeFileSync(journal, text)
      const problem = `line ${lines.length + 1} is not an event of this service`
      expect(yield* failureWith(journal)).toBe(`${journal}: ${problem}`)
      expect(readFileSync(journal, "utf8")).toBe(text)
    }
  })

  effect("[state seed] is of one seed for good, which a start without one continues with", function* () {
    const journal = yield* journalIn
    const seedOf = (seed?: number) =>
      Effect.map(Sandbox, ({ core }) => core.seed).pipe(
        Effect.provide(Sandbox.layer({ seed, journal, keepsSeed: true })),
        Effect.catch(({ message }) => Effect.succeed(message)),
      )
    expect([yield* seedOf(7), yield* seedOf(), yield* seedOf(8), yield* seedOf(7)]).toEqual([
      7,
      7,
      `${journal} was begun with seed 7`,
      7,
    ])
  })

  effect("is closed to others, even if it was open to them before", function* () {
    const journal = yield* journalIn
    writeFileSync(journal, "")
    chmodSync(journal, 0o644)
    yield* Effect.provide(Sandbox, Sandbox.layer({ seed: 7, journal }))
    expect(statSync(journal).mode & 0o777).toBe(0o600)
  })

  effect("that is not there yet has no newest time", function* () {
    expect(yield* newestEventAt(yield* journalIn)).toBeUndefined()
  })

  effect("that cannot be created is reported by name", function* () {
    const journal = join(yield* journalIn, "nowhere", "state.ndjson")
    expect(yield* failureWith(journal)).toMatch(
      /nowhere\/state\.ndjson: cannot open: no such file or directory \(ENOENT\)$/,
    )
    expect(existsSync(journal)).toBe(false)
  })
})

// The journal's lines are there whole or not at all, whatever the disk takes at once.

effect("what a full disk refuses did not happen, and no half of it is kept", function* () {
  const journal = yield* journalIn
  const disk = { isFull: false }
  const { calls } = faultyCalls({
    writeBytesMax: 10,
    refuse: (name, nth) =>
      disk.isFull && name === "write" && nth % 3 === 0 ? refusal("ENOSPC", name) : undefined,
  })
  const statuses: Array<number> = []
  yield* Effect.gen(function* () {
    const caller = yield* Caller
    for (const isFull of [false, true, false]) {
      disk.isFull = isFull
      statuses.push((yield* caller.start("queue-60", { customer_id: `c-${statuses.length}` })).status)
    }
    expect([statuses, (yield* truth).executions.length]).toEqual([[202, 500, 202], 2])
  }).pipe(Effect.provide(overHttp({ seed: 7, journal })), withCalls(calls), Effect.provide(Logger.layer([])))
  const kept = Effect.map(truth, ({ executions }) => executions.map(({ customer_id }) => customer_id))
  expect(yield* Effect.provide(kept, inProcess({ seed: 7, journal }))).toEqual(["c-0", "c-2"])
  expect(readFileSync(journal, "utf8").endsWith("}\n")).toBe(true)
})

// A restart forgets nothing of what a start decided: settings, moved dates, protected fields, challenges of
// features and answers to them; and the file holds no value that came encrypted (sections 2.4, 4.1 and 5).

const canary = "canary-of-a-password"
const readings = {
  engine_reference: "es-bank:api",
  features: [
    {
      code: "accounts_read",
      configurations: { from_date: "5 years ago", limits_behaviour: "adapt", read_transactions: true },
    },
    { code: "cards_read", configurations: { filter_by_type: ["financial_card:credit"] } },
  ],
}
const words = [
  "queue-0+run-10+records-4",
  "queue-0+run-10+records-4+feature-DISABLED",
  "queue-0+run-10+records-4+input-4711+by-cards_read+expire-600",
  "queue-0+run-10+challenge-4711+cancel-30",
  "queue-0+run-10+challenge-4711+expire-600",
]

effect("what a start decided survives a restart, and no decrypted value is written", function* () {
  const journal = yield* journalIn
  const service = () => inProcess({ seed: 7, journal })
  const lookAt = (ids: ReadonlyArray<readonly [string, string]>) =>
    Effect.flatMap(Caller, (caller) =>
      Effect.forEach(ids, ([execution, session]) =>
        Effect.all([caller.read(execution), caller.results(session)]),
      ),
    )
  yield* TestClock.setTime(morning)
  const [ids, before] = yield* Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* Effect.forEach(words, (said, index) =>
      caller.start("", {
        ...readings,
        ...person,
        customer_id: `c-${index}`,
        parameters: { username: sealed(said), password: sealed(canary) },
      }),
    )
    yield* TestClock.adjust(6_000)
    const last = textField(started[4], "execution_id")
    expect((yield* caller.resume(last, { kode: "4711" })).status).toBe(202)
    yield* TestClock.adjust(1_000)
    const known = started.map(
      (answer) => [textField(answer, "execution_id"), textField(answer, "session_id")] as const,
    )
    return [known, yield* lookAt(known)] as const
  }).pipe(Effect.provide(service()))
  const statuses = before.map(([state, results]) => `${state.status} ${results.status}`)
  expect(statuses).toEqual(["202 200", "202 200", "423 200", "423 412", "423 412"])
  yield* TestClock.adjust(60_000)
  const [undisturbed, again] = [
    yield* lookAt(ids).pipe(Effect.provide(service())),
    yield* TestClock.adjust(6_000).pipe(Effect.andThen(lookAt(ids)), Effect.provide(service())),
  ]
  const reasons = undisturbed.map(([state]) => textField(state, "status_reason"))
  expect(reasons).toEqual(["COMPLETED", "PARTIAL", "undefined", "USER_CANCELLED", "undefined"])
  expect(again).toEqual(undisturbed)
  expect(undisturbed[0]?.[0].text).toContain("feature.dates_adapted")
  expect(undisturbed[4]?.[0].text).toContain("payload_errors")
  expect(undisturbed[2]?.[0].text).toContain('"producer":"cards_read"')
  expect(readFileSync(journal, "utf8")).not.toContain(canary)
})
