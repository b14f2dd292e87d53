/** What commands write: exact into a pipe, harmless on a terminal. */
import { spawn } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, PlatformError, Ref, Sink, Stdio, Stream } from "effect"
import { lastWordsOf, refuse } from "../../src/cli/Failures.ts"
import { Output, note, say, sayJson, sayPainted, writeOut } from "../../src/cli/Output.ts"
import { NightLog } from "../../src/cli/RunReport.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { KnownSecrets, makeKnownSecrets, processSecrets } from "../../src/privacy/KnownSecrets.ts"
import { paint } from "../../src/report/RenderSummary.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { effect, live } from "../harness/Steps.ts"
import { said } from "../service/Said.ts"
import { aFact } from "../harness/Facts.ts"

const hostile = "a\u001b]0;owned\u0007\u009b2J\u202e\rb"

/** Everything that a program wrote to both streams. */
const written = <E>(program: Effect.Effect<unknown, E, Stdio.Stdio | Output>, isTerminal: boolean) =>
  Effect.gen(function* () {
    const texts: Array<string> = []
    const sink = () =>
      Sink.forEach((chunk: string | Uint8Array) => Effect.sync(() => void texts.push(String(chunk))))
    const terminal = Effect.succeed(isTerminal)
    const streams = { stdout: sink, stderr: sink, stdoutIsTerminal: terminal, stderrIsTerminal: terminal }
    yield* Effect.provide(program, Output.layer(false).pipe(Layer.provideMerge(Stdio.layerTest(streams))))
    return texts.join("")
  })

const everything = Effect.all([
  writeOut(Stream.make(`id,name\r\n1,"${hostile}"\r\n`)),
  sayPainted(paint({ width: 80, colour: true }, "bold", hostile)),
  sayJson({ hostile }),
  note(hostile),
])

describe("the output of a command", () => {
  effect("is exact in a pipe, including every control character of a value", function* () {
    const bold = `\u001b[1m${hostile}\u001b[0m`
    expect(yield* written(everything, false)).toBe(
      `id,name\r\n1,"${hostile}"\r\n${bold}\n${JSON.stringify({ hostile }, null, 2)}\n${hostile}\n`,
    )
  })

  effect("shows a terminal no control characters except line ends and this program's colours", function* () {
    const shown = "a\\u001b]0;owned\\u0007\\u009b2J\\u202e\\u000db"
    const json = `{\n  "hostile": "${shown.replace("\\u000d", "\\r")}"\n}`
    expect(yield* written(everything, true)).toBe(
      `id,name\r\n1,"${shown}"\r\n\u001b[1m${shown}\u001b[0m\n${json}\n${shown}\n`,
    )
  })

  effect(
    "goes on without what it could not print, and remembers why unless the reader has gone",
    function* () {
      const lostTo = Effect.fnUntraced(function* (code: string) {
        const cause = Object.assign(new Error("no room"), { code })
        const sink = Sink.fail(
          PlatformError.systemError({ module: "Stdio", method: "stdout", _tag: "Unknown", cause }),
        )
        const streams = Stdio.layerTest({ stdout: () => sink })
        const lost = Effect.flatMap(Output, (output) => Ref.get(output.lost))
        return yield* Effect.andThen(say("a"), lost).pipe(
          Effect.provide(Output.layer(false).pipe(Layer.provideMerge(streams))),
        )
      })
      expect([yield* lostTo("EPIPE"), yield* lostTo("ENOSPC")]).toEqual([undefined, "no room"])
    },
  )

  live("is whole for a reader of a pipe that is slower than the program [output slow reader]", function* () {
    // The pipe takes 64 KiB, and nothing is read from it before all was written.
    const program = `
      import { NodeServices } from "@effect/platform-node"
      import { Effect, Stdio, Stream } from "effect"
      import { runProcess } from "./src/cli/Failures.ts"
      const rows = Stream.make("a".repeat(60_000), "b".repeat(9_000))
      const print = Effect.flatMap(Stdio.Stdio, (stdio) => Stream.run(rows, stdio.stdout()))
      const done = Effect.sync(() => process.stderr.write("written"))
      runProcess(Effect.provide(Effect.andThen(print, done), NodeServices.layer))`
    const go = join(folder, "go")
    const shell = 'mkfifo "$0"; "$1" --input-type=module -e "$2" | { read -r _ < "$0"; wc -c; }'
    const child = spawn("sh", ["-c", shell, go, process.execPath, program], {
      stdio: ["ignore", "pipe", "pipe"],
    })
    child.stderr.once("data", () => writeFileSync(go, "\n"))
    expect(Number(yield* Effect.promise(() => text(child.stdout)))).toBe(69_000)
  })

  effect("takes no colour from a value, although it is spelled like one of ours", function* () {
    expect(yield* written(say("\u001b[32msucceeded\u001b[0m"), true)).toBe("\\u001b[32msucceeded\\u001b[0m\n")
  })
})

// What is shown and logged is cleaned at the last moment too, wherever a secret may have come from.

const secret = 'shown-canary"7+'
const known = makeKnownSecrets()
known.hold(secret, "password")
const folder = sharedFolder()

const shownBy = <E>(work: Effect.Effect<unknown, E, Stdio.Stdio | Output>) =>
  Effect.provideService(written(work, false), KnownSecrets, known)

describe("the output of commands", () => {
  effect("holds no secret, as text or as JSON, in values or in keys", function* () {
    assert.strictEqual(yield* shownBy(say(`a ${secret}`)), "a [blanked]\n")
    assert.strictEqual(yield* shownBy(note(`a ${encodeURIComponent(secret)}`)), "a [blanked]\n")
    assert.deepStrictEqual(
      JSON.parse(yield* shownBy(sayJson([{ a: `x ${secret}`, [secret]: 7, b: undefined }]))),
      [{ a: "x [blanked]", "[blanked]": 7 }],
    )
  })

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

effect("a line of the run's log holds no secret, whatever the fact says", function* () {
  const logged = NightLog.layer(folder, "none").pipe(
    Layer.provide(Ledger.layerOver(openLedger({ path: ":memory:" }))),
  )
  const fact = aFact("TaskSettled", {
    run_id: "job.2026-11-20",
    task_id: "t",
    reason: said(secret),
    message: `${secret} 1 of 2`,
  })
  yield* Effect.flatMap(Ledger, ({ append }) => append([fact])).pipe(
    Effect.provide(logged),
    Effect.provideService(KnownSecrets, known),
  )
  const { reason, message } = JSON.parse(
    readFileSync(join(folder, "runs", fact.run_id, "log.ndjson"), "utf8"),
  )
  assert.deepStrictEqual({ reason, message }, { reason: "[blanked]", message: "[blanked] 1 of 2" })
})
