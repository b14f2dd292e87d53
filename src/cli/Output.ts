/**
 * Where commands write: results to stdout, everything else to stderr. If a reader goes away (`| head`), the
 * run continues: it must not die because nobody reads its output.
 */
import { Context, Effect, Layer, PlatformError, Stdio, Stream } from "effect"
import type { Style } from "../report/RenderSummary.ts"
import { told } from "../messages/Catalogue.ts"
import type { MessageId, ValuesOf } from "../messages/Catalogue.ts"
import { cleanValue } from "../privacy/CleanBody.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { forTerminal } from "../report/TextTable.ts"

export interface OutputValues {
  readonly out: Style
  readonly err: Style & { readonly isTerminal: boolean }
}

/** How stdout and stderr look: their widths, and whether to use colours. */
export class Output extends Context.Service<Output, OutputValues>()("nightjar/cli/Output") {
  static readonly layer = (noColor: boolean) =>
    Layer.effect(
      Output,
      Effect.gen(function* () {
        const stdio = yield* Stdio.Stdio
        const style = (stream: NodeJS.WriteStream, isTerminal: boolean): Style => ({
          width: isTerminal ? Math.max(20, stream.columns || 80) : Number.POSITIVE_INFINITY,
          colour: isTerminal && !noColor,
        })
        const errIsTerminal = yield* stdio.stderrIsTerminal
        return Output.of({
          out: style(process.stdout, yield* stdio.stdoutIsTerminal),
          err: { ...style(process.stderr, errIsTerminal), isTerminal: errIsTerminal },
        })
      }),
    )
}

/**
 * Writes chunks to stdout with back-pressure; stops early and quietly if the reader has gone. A terminal
 * gets text without control characters; `painted` text keeps this program's colours.
 */
export const writeOut = <E, R>(chunks: Stream.Stream<string | Uint8Array, E, R>, painted = false) =>
  Effect.gen(function* () {
    const stdio = yield* Stdio.Stdio
    const sink = stdio.stdout()
    const shown = (chunk: string | Uint8Array) =>
      typeof chunk === "string" ? forTerminal(chunk, painted) : chunk
    const written = (yield* stdio.stdoutIsTerminal) ? Stream.map(chunks, shown) : chunks
    return yield* Stream.run(written, sink).pipe(Effect.catchIf(isGone, () => Effect.void))
  })

const isGone = (error: unknown): error is PlatformError.PlatformError =>
  error instanceof PlatformError.PlatformError

const sayText = Effect.fnUntraced(function* (text: string, painted: boolean) {
  const { clean } = yield* KnownSecrets
  yield* writeOut(Stream.make(`${clean(text, "own")}\n`), painted)
})

/** What a terminal shows is copied into tickets and mails, so it contains no secret of this process. */
export const say = (text: string) => sayText(text, false)
/** Of a text that this program coloured, after it cleaned every value in it. */
export const sayPainted = (text: string) => sayText(text, true)
export const sayJson = Effect.fnUntraced(function* (value: unknown) {
  const known = yield* KnownSecrets
  const plain: unknown = JSON.parse(JSON.stringify(value) ?? "null")
  yield* writeOut(Stream.make(`${JSON.stringify(cleanValue(plain, known, "own"), null, 2)}\n`))
})

/** A warning, with the id that `nightjar explain` accepts. */
export const warn = <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>) =>
  note(`warning: ${told(id, ...values)}`)

/** A line on stderr. */
export const note = Effect.fnUntraced(function* (text: string) {
  const stdio = yield* Stdio.Stdio
  const { clean } = yield* KnownSecrets
  const cleaned = clean(text, "own")
  const shown = (yield* stdio.stderrIsTerminal) ? forTerminal(cleaned, false) : cleaned
  yield* Effect.ignore(Stream.run(Stream.make(`${shown}\n`), stdio.stderr()))
})
