/**
 * Where commands write: results to stdout, everything else to stderr. If a reader goes away (`| head`), the
 * run continues.
 */
import { fstatSync } from "node:fs"
import { resolve } from "node:path"
import { Config, Context, Effect, Layer, Option, PlatformError, Ref, Sink, Stdio, Stream } from "effect"
import { Argument, Flag, GlobalFlag } from "effect/cli"
import { codeOf, machineCalls } from "../base/DurableFile.ts"
import { suggestion, wordsOf } from "../base/Text.ts"
import { cutText } from "../service/BodyBounds.ts"
import { told, type MessageId, type ValuesOf } from "../messages/Catalogue.ts"
import { cleanValue } from "../privacy/CleanBody.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import type { Style } from "../report/RenderSummary.ts"
import { forTerminal } from "../report/TextTable.ts"

/** How stdout and stderr look: their widths, and whether to use colours. */
export class Output extends Context.Service<
  Output,
  {
    readonly out: Style
    readonly err: Style & { readonly isTerminal: boolean }
    /** Why something that was to be printed could not be; a night goes on without it. */
    readonly lost: Ref.Ref<string | undefined>
  }
>()("nightjar/cli/Output") {
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
          lost: yield* Ref.make<string | undefined>(undefined),
        })
      }),
    )
}

const isToFile = (): boolean => {
  try {
    return fstatSync(1).isFile()
  } catch {
    return false
  }
}

/** Of this process. Of a chunk that a full disk takes in part, Node's own stream to a file loses the rest. */
export const wholeStdio = Layer.effect(
  Stdio.Stdio,
  Effect.map(Stdio.Stdio, (stdio) => {
    if (!isToFile()) return stdio
    const failure = (cause: unknown) =>
      PlatformError.systemError({ module: "Stdio", method: "stdout", _tag: "Unknown", cause })
    const writeAll = (chunk: string | Uint8Array): void => {
      const bytes = Buffer.from(chunk)
      for (let from = 0; from < bytes.length;) from += machineCalls.write(1, bytes, from)
    }
    const write = (chunk: string | Uint8Array) => Effect.try({ try: () => writeAll(chunk), catch: failure })
    return Stdio.Stdio.of({ ...stdio, stdout: () => Sink.forEach(write) })
  }),
)

/** Stops quietly if the reader has gone, remembers other failures; a terminal gets no control characters. */
export const writeOut = <E, R>(chunks: Stream.Stream<string | Uint8Array, E, R>, painted = false) =>
  Effect.gen(function* () {
    const stdio = yield* Stdio.Stdio
    const sink = stdio.stdout()
    const shown = (chunk: string | Uint8Array) =>
      typeof chunk === "string" ? forTerminal(chunk, painted) : chunk
    const written = (yield* stdio.stdoutIsTerminal) ? Stream.map(chunks, shown) : chunks
    const { lost } = yield* Output
    return yield* Stream.run(written, sink).pipe(
      Effect.catchIf(isOfOutput, ({ reason: { cause } }) => {
        const isGone = ["EPIPE", "ERR_STREAM_DESTROYED"].includes(codeOf(cause))
        return isGone ? Effect.void : Ref.set(lost, wordsOf(cause))
      }),
    )
  })

const isOfOutput = (error: unknown): error is PlatformError.PlatformError =>
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

export const warn = <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>) =>
  note(`warning: ${told(id, ...values)}`)

export const note = Effect.fnUntraced(function* (text: string) {
  const stdio = yield* Stdio.Stdio
  const { clean } = yield* KnownSecrets
  const cleaned = clean(text, "own")
  const shown = (yield* stdio.stderrIsTerminal) ? forTerminal(cleaned, false) : cleaned
  yield* Effect.ignore(Stream.run(Stream.make(`${shown}\n`), stdio.stderr()))
})

// What the environment says about commands; flags take precedence. Variables about a job's service are read
// when the job is loaded.

const text = (name: string) =>
  Config.option(Config.String(name)).pipe(
    Config.map((value) => Option.getOrUndefined(Option.filter(value, (one) => one !== ""))),
  )

const read = Config.all({
  output: text("NIGHTJAR_OUTPUT"),
  base_url: text("NIGHTJAR_BASE_URL"),
  flows_url: text("NIGHTJAR_FLOWS_URL"),
  app_secret: text("NIGHTJAR_APP_SECRET"),
  noColor: text("NO_COLOR"),
  term: text("TERM"),
  npmScript: text("npm_lifecycle_event"),
}).pipe(
  Config.map(({ output, base_url, flows_url, app_secret, noColor, term, npmScript }) => ({
    output: output ?? "output",
    base_url,
    flows_url,
    /** Its value is read only when a request needs it. */
    hasAppSecret: app_secret !== undefined,
    /** NO_COLOR counts whatever its value. */
    noColor: noColor !== undefined || term === "dumb",
    /** How the user runs this program: by its name, or through npm in a checkout. */
    invocation: npmScript === undefined ? "nightjar" : "npm run -s nightjar --",
  })),
)

export class Settings extends Context.Service<Settings, Config.Success<typeof read>>()(
  "nightjar/cli/Settings",
) {
  static readonly layer = Layer.effect(Settings, Effect.orDie(read))
}

/** The value has to be `expected`, which is said of any other. */
export const only = <A>(holds: (value: A) => boolean, expected: string) => Flag.filter(holds, () => expected)

export const OutputFlag = GlobalFlag.Setting("output")({
  flag: Flag.String("output").pipe(
    Flag.withMetavar("DIR"),
    Flag.withDescription("The output folder (default: NIGHTJAR_OUTPUT, or output)"),
    only((path) => path !== "", "a folder's name"),
    Flag.optional,
  ),
})

export const EnvFileFlag = GlobalFlag.Setting("env-file")({
  flag: Flag.String("env-file").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("Variables of the job (default: .env beside the job)"),
    Flag.optional,
  ),
})

/** Given or not; there is no `--no-` form of it. */
export const switchFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withoutNegation, Flag.withDescription(description), Flag.withDefault(false))

export const optionalFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

/** The first choice is the default. */
export const choiceFlag = <const Choice extends string>(
  name: string,
  choices: readonly [Choice, ...ReadonlyArray<Choice>],
  description: string,
) =>
  Flag.Literals(name, choices).pipe(Flag.withDescription(description), Flag.withDefault<Choice>(choices[0]))

export const severalFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(`${description} (repeatable)`),
    Flag.between(0, 1_000),
  )

export const jobFlags = severalFlag("job", "FILE", "Where a job file is now, if it was moved")

/** What was given with flags and is not known, as it was given; such a name would silently select nothing. */
export const unknownNames = (
  run_id: string,
  flags: Readonly<Record<string, readonly [given: ReadonlyArray<string>, known: ReadonlyArray<unknown>]>>,
): ReadonlyArray<string> =>
  Object.entries(flags).flatMap(([flag, [given, names]]) => {
    const known = [...new Set(names)].filter((name) => typeof name === "string")
    return given
      .filter((name) => !known.includes(name))
      .map((name) => `--${flag} ${cutText(name, 80)} in ${run_id}${suggestion(name, known)}`)
  })

export const NoProgressFlag = GlobalFlag.Setting("no-progress")({
  flag: switchFlag("no-progress", "Show no progress on stderr"),
})

export const outputFolder = Effect.gen(function* () {
  const { output } = yield* Settings
  return Option.getOrElse(yield* OutputFlag, () => output)
})

/** The folder as commands for people name it; undefined if it is the one that they mean without a name. */
export const namedOutput = (output: string): string | undefined =>
  output === "output" ? undefined : resolve(output)

export const jsonFlag = switchFlag("json", "Print JSON")

export const argument = (name: string, description: string) =>
  Argument.String(name).pipe(Argument.withDescription(description))

export const optionalArgument = (name: string, description: string) =>
  Argument.optional(argument(name, description))

export const severalArguments = (name: string, description: string, min = 0) =>
  Argument.variadic(argument(name, description), { min })

export const jobArguments = severalArguments("JOB", "A job file, such as jobs/demo.yaml", 1)

export const runArgument = optionalArgument("RUN", "A run_id (default: the newest run)")
