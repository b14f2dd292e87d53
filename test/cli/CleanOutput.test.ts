/** What is shown and logged is cleaned at the last moment too, wherever a secret may have come from. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Sink, Stdio, Stream } from "effect"
import { lastWordsOf, refuse } from "../../src/cli/Failures.ts"
import { NightLog } from "../../src/cli/RunReport.ts"
import { note, say, sayJson } from "../../src/cli/Output.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { said } from "../service/Said.ts"
import { KnownSecrets, makeKnownSecrets, processSecrets } from "../../src/privacy/KnownSecrets.ts"
import { anId } from "../harness/Id.ts"

const secret = 'shown-canary"7+'
const known = makeKnownSecrets()
known.hold(secret, "password")
const folder = mkdtempSync(join(tmpdir(), "clean-output-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const shownBy = <A, E>(work: Effect.Effect<A, E, Stdio.Stdio>) =>
  Effect.gen(function* () {
    const shown: Array<string> = []
    const sink = () =>
      Sink.forEach((chunk: string | Uint8Array) => Effect.sync(() => shown.push(String(chunk))))
    const stdio = Stdio.layerTest({ stdout: sink, stderr: sink, stdin: Stream.empty })
    yield* work.pipe(Effect.provide(stdio), Effect.provideService(KnownSecrets, known))
    return shown.join("")
  })

describe("the output of commands", () => {
  it.effect("holds no secret, as text or as JSON, in values or in keys", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* shownBy(say(`a ${secret}`)), "a [blanked]\n")
      assert.strictEqual(yield* shownBy(note(`a ${encodeURIComponent(secret)}`)), "a [blanked]\n")
      assert.deepStrictEqual(
        JSON.parse(yield* shownBy(sayJson([{ a: `x ${secret}`, [secret]: 7, b: undefined }]))),
        [{ a: "x [blanked]", "[blanked]": 7 }],
      )
    }),
  )

  it("contains none at the end either, with or without a stack trace", () => {
    processSecrets.hold(secret, "process")
    const exit = Exit.fail(refuse("output-not-a-folder", { output: secret }))
    assert.strictEqual(
      lastWordsOf(exit, { isSignalled: false, withStack: false }),
      "nightjar: [blanked] is not a folder [output-not-a-folder]\n" +
        "Nothing was changed. Give --output a folder that is empty or does not exist yet.\n",
    )
    const stack = lastWordsOf(exit, { isSignalled: true, withStack: true })
    assert.match(stack, /^Refused: \[blanked\] is not a folder\n/)
    assert.notInclude(stack, secret)
  })
})

describe("a line of the run's log", () => {
  it.effect("holds no secret, whatever the fact says", () =>
    Effect.gen(function* () {
      const logged = NightLog.layer(folder, "none").pipe(
        Layer.provide(Ledger.layerOver(openLedger({ path: ":memory:" }))),
      )
      const fact = {
        _tag: "TaskSettled",
        run_id: anId("job.2026-11-20"),
        task_id: anId("t"),
        outcome: "failed",
        reason: said(secret),
        who_acts: "engineer",
        message: `${secret} 1 of 2`,
      } as const
      yield* Effect.flatMap(Ledger, ({ append }) => append([fact])).pipe(
        Effect.provide(logged),
        Effect.provideService(KnownSecrets, known),
      )
      const { reason, message } = JSON.parse(
        readFileSync(join(folder, "runs", fact.run_id, "log.ndjson"), "utf8"),
      )
      assert.deepStrictEqual({ reason, message }, { reason: "[blanked]", message: "[blanked] 1 of 2" })
    }),
  )
})
