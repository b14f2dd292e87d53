/** What commands write: exact into a pipe, harmless on a terminal. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Sink, Stdio, Stream } from "effect"
import { note, say, sayJson, sayPainted, writeOut } from "../../src/cli/Output.ts"
import { paint } from "../../src/report/RenderSummary.ts"

const hostile = "a\u001b]0;owned\u0007\u009b2J\u202e\rb"

/** Everything that a program wrote to both streams. */
const written = <E>(program: Effect.Effect<unknown, E, Stdio.Stdio>, isTerminal: boolean) =>
  Effect.gen(function* () {
    const texts: Array<string> = []
    const sink = () =>
      Sink.forEach((chunk: string | Uint8Array) => Effect.sync(() => void texts.push(String(chunk))))
    const terminal = Effect.succeed(isTerminal)
    const streams = { stdout: sink, stderr: sink, stdoutIsTerminal: terminal, stderrIsTerminal: terminal }
    yield* Effect.provide(program, Stdio.layerTest(streams))
    return texts.join("")
  })

const everything = Effect.all([
  writeOut(Stream.make(`id,name\r\n1,"${hostile}"\r\n`)),
  sayPainted(paint({ width: 80, colour: true }, "bold", hostile)),
  sayJson({ hostile }),
  note(hostile),
])

describe("the output of a command", () => {
  it.effect("is exact in a pipe, including every control character of a value", () =>
    Effect.gen(function* () {
      const bold = `\u001b[1m${hostile}\u001b[0m`
      expect(yield* written(everything, false)).toBe(
        `id,name\r\n1,"${hostile}"\r\n${bold}\n${JSON.stringify({ hostile }, null, 2)}\n${hostile}\n`,
      )
    }),
  )

  it.effect("shows a terminal no control characters except line ends and this program's colours", () =>
    Effect.gen(function* () {
      const shown = "a\\u001b]0;owned\\u0007\\u009b2J\\u202e\\u000db"
      const json = `{\n  "hostile": "${shown.replace("\\u000d", "\\r")}"\n}`
      expect(yield* written(everything, true)).toBe(
        `id,name\r\n1,"${shown}"\r\n\u001b[1m${shown}\u001b[0m\n${json}\n${shown}\n`,
      )
    }),
  )

  it.effect("takes no colour from a value, although it is spelled like one of ours", () =>
    Effect.gen(function* () {
      expect(yield* written(say("\u001b[32msucceeded\u001b[0m"), true)).toBe(
        "\\u001b[32msucceeded\\u001b[0m\n",
      )
    }),
  )
})
