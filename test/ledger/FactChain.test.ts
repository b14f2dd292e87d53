/** Facts that are not what was written: every flipped bit of the file is found, or changes nothing that is read. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { seeded } from "../../src/sandbox/state/Reading.ts"
import { changeFile } from "./CountedReads.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { folder } from "../harness/Folder.ts"
import { aFact } from "../harness/Facts.ts"

const run_id = anId("job.2026-11-21")
const task = (n: number) => ({ run_id, task_id: anId(`${run_id}/c-${n}/bank`) })
const facts: ReadonlyArray<Fact> = [
  { _tag: "RunStarted", run_id, job: "job", job_path: "j", run_date: "2026-11-21", tool_version: "0" },
  ...Array.from({ length: 20 }, (_, n): Fact => aFact("TaskPlanned", { ...task(n), customer_id: `c-${n}` })),
  aFact("CredentialRejected", { ...task(1), customer_id: "c-1", engine_reference: "bank" }),
  { _tag: "CredentialReleased", fingerprint: "f-2" },
]

const at = (path: string, readOnly = false) => Layer.fresh(Ledger.layer({ path, readOnly }))
const form = { engine_reference: anId("bank"), fetched_at: 1, body: '{"a":1}' }

const written = Effect.fnUntraced(function* (path: string) {
  yield* Effect.provide(
    Effect.gen(function* () {
      const ledger = yield* Ledger
      for (const fact of facts) yield* ledger.append([fact])
      yield* ledger.cacheForm(form)
      yield* ledger.fingerprintKey
    }),
    at(path),
  )
})

/** Everything that a night reads; a cached form that is gone is only asked for again. */
const read = Effect.gen(function* () {
  const ledger = yield* Ledger
  const cached = yield* ledger.cachedForm(anId("bank"))
  return JSON.stringify([
    yield* ledger.facts(run_id),
    yield* ledger.byHand,
    yield* ledger.runs,
    yield* ledger.accounts,
    Buffer.from(yield* ledger.fingerprintKey).toString("hex"),
    cached === undefined || JSON.stringify(cached) === JSON.stringify(form),
  ])
})
const problems = Effect.flatMap(Ledger, (ledger) => ledger.problems)

describe("a changed ledger", () => {
  effect(
    "is reported with the fact that has changed since it was written, and read no further",
    function* () {
      const path = join(yield* folder, "ledger.sqlite")
      yield* written(path)
      const changes = [
        "UPDATE facts SET body = replace(body, 'c-3', 'c-4') WHERE seq = 5",
        "UPDATE facts SET at = at + 1 WHERE seq = 5",
        "UPDATE facts SET tag = 'TaskPlanneD' WHERE seq = 5",
        "UPDATE facts SET task_id = NULL WHERE seq = 5",
        "UPDATE facts SET chain = NULL WHERE seq = 5",
        "UPDATE facts SET chain = upper(chain) WHERE seq = 5",
      ]
      for (const change of changes) {
        const copy = `${path}.copy`
        copyFileSync(path, copy)
        changeFile(copy, change)
        const [found] = yield* Effect.provide(problems, at(copy, true))
        expect([change, found]).toEqual([change, "fact 5 has changed since it was written"])
        const refused = yield* Effect.flip(Effect.provide(read, at(copy)))
        expect([refused.message, refused.damaged]).toEqual(["fact 5 has changed since it was written", true])
        const state = Effect.flatMap(Ledger, (ledger) => ledger.state(run_id))
        expect(yield* Effect.flip(Effect.provide(state, at(copy)))).toEqual(refused)
      }
    },
  )

  effect(
    "names the account of which a row has changed, and sends nothing on the strength of it",
    function* () {
      const path = join(yield* folder, "ledger.sqlite")
      yield* written(path)
      const changes: ReadonlyArray<readonly [string, boolean]> = [
        [`UPDATE accounts SET state = replace(state, '"counts":true', '"counts":false')`, true],
        ["UPDATE accounts SET state = '{}'", true],
        ["UPDATE accounts SET sha256 = randomblob(32)", true],
        // By its names a login finds its account: without them, it would look like one never sent before.
        ["DELETE FROM account_names", false],
        ["UPDATE account_names SET name = upper(name)", false],
      ]
      for (const [change, isRefused] of changes) {
        const copy = `${path}.copy`
        copyFileSync(path, copy)
        changeFile(copy, change)
        expect([change, yield* Effect.provide(problems, at(copy, true))]).toEqual([
          change,
          ["what is known of an account has changed since it was written"],
        ])
        const asked = Effect.flatMap(Ledger, (ledger) => ledger.accounts)
        const isDamaged = Exit.isFailure(yield* Effect.exit(Effect.provide(asked, at(copy))))
        expect([change, isDamaged]).toEqual([change, isRefused])
      }
    },
  )

  effect("shows that a fact was removed, and that the key was changed", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    yield* written(path)
    changeFile(
      path,
      "DELETE FROM facts WHERE seq = 7",
      "UPDATE keys SET value = randomblob(32) WHERE name = 'fingerprint'",
    )
    expect(yield* Effect.provide(problems, at(path, true))).toEqual([
      "the key for logins and external ids has changed since it was written",
      "fact 7 is missing",
    ])
    const key = Effect.flatMap(Ledger, (ledger) => ledger.fingerprintKey)
    const refused = yield* Effect.flip(Effect.provide(key, at(path)))
    expect(refused.damaged).toBe(true)
    expect((yield* Effect.flip(Effect.provide(read, at(path)))).message).toBe(
      "fact 8 has changed since it was written",
    )
  })

  // `NIGHTJAR_FUZZ_RUNS` tries more of them.
  const flipsMax = Number(process.env["NIGHTJAR_FUZZ_RUNS"] ?? 50)
  effect("shows every flipped bit that a reader could see", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    yield* written(path)
    const whole = readFileSync(path)
    const before = yield* Effect.provide(read, at(path, true))
    const draw = seeded("bits", 1)
    const unnoticed: Array<number> = []
    for (let flips = 0; flips < flipsMax; flips++) {
      const bit = draw.int(0, whole.length * 8 - 1)
      const bytes = Buffer.from(whole)
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      const copy = `${path}.${flips}`
      writeFileSync(copy, bytes)
      const found = yield* Effect.exit(Effect.provide(problems, at(copy, true)))
      const isTold = Exit.isFailure(found)
        ? JSON.stringify(found.cause).includes("LedgerFailed")
        : found.value.length > 0
      const after = yield* Effect.exit(Effect.provide(read, at(copy, true)))
      if (!isTold && !(Exit.isSuccess(after) && after.value === before)) unnoticed.push(bit)
      rmSync(copy)
    }
    expect(unnoticed).toEqual([])
  })
})

describe("a ledger of a version without a chain", () => {
  effect("is read as it is, and chained when it is next opened for writing", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    yield* written(path)
    const whole = yield* Effect.provide(read, at(path, true))
    changeFile(
      path,
      "ALTER TABLE facts DROP COLUMN chain",
      "ALTER TABLE engine_forms DROP COLUMN sha256",
      "DELETE FROM keys WHERE name = 'fingerprint.sha256'",
    )
    expect(yield* Effect.provide(read, at(path, true))).toBe(whole)
    expect(yield* Effect.provide(problems, at(path, true))).toEqual([])
    const append = Effect.flatMap(Ledger, (ledger) => ledger.append([{ _tag: "RunResumed", run_id }]))
    yield* Effect.provide(append, at(path))
    expect(yield* Effect.provide(problems, at(path, true))).toEqual([])
    const cached = Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.cacheForm(form)
      return yield* ledger.cachedForm(anId("bank"))
    })
    expect(yield* Effect.provide(cached, at(path))).toEqual(form)
    const changed = openLedger({ path })
    changed.exec("UPDATE facts SET at = at + 1 WHERE seq = 3")
    changed.close()
    expect(yield* Effect.provide(problems, at(path, true))).toEqual([
      "fact 3 has changed since it was written",
    ])
  })

  effect("is read as far as it goes if one of its facts was missing before it was chained", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    yield* written(path)
    changeFile(path, "ALTER TABLE facts DROP COLUMN chain; DELETE FROM facts WHERE seq = 7")
    expect(yield* Effect.provide(problems, at(path))).toEqual(["fact 7 is missing"])
    const kept = Effect.flatMap(Ledger, (ledger) => ledger.facts(run_id))
    expect((yield* Effect.provide(kept, at(path))).map(({ seq }) => seq)).toEqual(
      facts.flatMap((fact, index) => ("run_id" in fact && index !== 6 ? [index + 1] : [])),
    )
  })

  effect("stays one chain when two processes add to it in turn", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    yield* written(path)
    const one = Ledger.layer({ path })
    const append = Effect.flatMap(Ledger, (ledger) => ledger.append([{ _tag: "RunResumed", run_id }]))
    const turns = Effect.gen(function* () {
      for (let turn = 0; turn < 5; turn++) {
        yield* append
        yield* Effect.provide(append, at(path))
      }
      return yield* problems
    })
    expect(yield* Effect.provide(turns, one)).toEqual([])
  })
})
