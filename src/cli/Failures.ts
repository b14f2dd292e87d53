/**
 * How a command ends: exit code, what happened, what was kept, what to do next. Every error that a program
 * can fail with has its message here, or nothing compiles; any other is a defect, reported without its data.
 */
import { readFileSync } from "node:fs"
import { Cause, Context, Duration, Effect, Exit, Fiber, Runtime, Schema, Struct } from "effect"
import { CliError } from "effect/cli"
import type { DuckDbFailed } from "../base/DuckDbFailed.ts"
import type { FolderLocked } from "../base/FolderLock.ts"
import { counted } from "../base/Text.ts"
import type { LandingDamaged, LandingFailed } from "../landing/Landing.ts"
import type { LedgerFailed } from "../ledger/Ledger.ts"
import { afterwards, happened, isMessageId, messageOf, told, withId } from "../messages/Catalogue.ts"
import type { MessageId, ValuesOf } from "../messages/Catalogue.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import type { Left } from "../messages/Message.ts"
import { processSecrets } from "../privacy/KnownSecrets.ts"
import { forTerminal } from "../report/TextTable.ts"
import type { ReplacedElsewhere, TooFewCustomers } from "../run/ChooseNight.ts"
import type { JournalInUse, SeedChanged } from "../sandbox/state/Journal.ts"
import type { PublishFailed } from "../tables/Publisher.ts"
import type { TokenStoreRefused } from "../tokens/StoredToken.ts"

const Package = Schema.Struct({ name: Schema.Literal("nightjar"), version: Schema.String })
const readPackage = Schema.decodeUnknownSync(Schema.fromJsonString(Package))

/** From the program's package: the bundle is in dist/, the sources in src/cli/, which are below it. */
const readVersion = (): string => {
  for (const above of ["../package.json", "../../package.json"]) {
    try {
      return readPackage(readFileSync(new URL(above, import.meta.url), "utf8")).version
    } catch {
      continue
    }
  }
  return "0.0.0"
}

/** Every run records it. */
export const toolVersion: string = readVersion()

/** A command ended with an exit code other than 0; everything worth saying has been printed. */
export class Ended extends Schema.TaggedError<Ended>()("Ended", { exit_code: Schema.Int }) {}

/** Not a union of hundreds, which takes every command longer to make. */
const OfCatalogue = Schema.String.pipe(Schema.refine(isMessageId))

export class Refused extends Schema.TaggedError<Refused>()("Refused", {
  id: OfCatalogue,
  message: Schema.String,
}) {}

export const refuse = <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>) =>
  new Refused({ id, message: happened(id, ...values) })

export const refuseUnknown = (names: ReadonlyArray<string>) =>
  names.length === 0 ? Effect.void : Effect.fail(refuse("name-unknown", { detail: names.join("; ") }))

export const endWith = (exit_code: number) =>
  exit_code === 0 ? Effect.void : Effect.fail(new Ended({ exit_code }))

export interface Ending {
  readonly exit_code: number
  /** For stderr; empty if everything has been printed already. */
  readonly lines: ReadonlyArray<string>
}

/** The whole error message: its line with the id, then what was kept and what to do next. */
export const endingFor = <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>): Ending => ({
  exit_code: messageOf(id).exit_code ?? exitCodes.usage,
  lines: [`nightjar: ${told(id, ...values)}`, afterwards(id)],
})

const detailOf = ({ message }: { readonly message: string }) => ({
  detail: message === "" ? "no reason given" : message,
})

const problemsEnding =
  (id: "job-invalid" | "faults-invalid" | "reading-invalid" | "record-schema-invalid") =>
  ({ message }: { readonly message: string }): Ending => {
    const lines = message.split("\n")
    const ending = endingFor(id, { problems: counted(lines.length, "problem") })
    return { ...ending, lines: [...lines, ...ending.lines] }
  }

/** DuckDB's first line, and the one that names what there is instead of a name that it does not know. */
const withCandidates = (text: string): string => {
  const [first = "", ...others] = text.split("\n")
  const candidates = others.find((line) => /^(?:Candidate|Did you mean)/.test(line))
  return candidates === undefined ? first : `${first} ${candidates}`
}

/** By `_tag`, so that no command loads rooms of other errors; a message's detail is the error's text. */
const endings = {
  AnswerLost: "service-unavailable",
  CatalogueFailed: "service-unavailable",
  JournalFailed: "journal-unusable",
  LockFailed: "lock-unusable",
  NotSent: "service-unavailable",
  PseudonymsRefused: "pseudonyms-refused",
  ReceiverRefused: "webhooks-unavailable",
  SecretRefused: "service-unavailable",
  SecretUnavailable: "secret-unavailable",
  ServiceRefused: "service-unavailable",
  ServiceSettingsRefused: "service-settings-invalid",
  Throttled: "service-unavailable",
  UnexpectedAnswer: "service-unavailable",
  FaultsInvalid: problemsEnding("faults-invalid"),
  JobInvalid: problemsEnding("job-invalid"),
  ReadingInvalid: problemsEnding("reading-invalid"),
  RecordSchemaInvalid: problemsEnding("record-schema-invalid"),
  Ended: ({ exit_code }: Ended): Ending => ({ exit_code, lines: [] }),
  Refused: ({ id, message }: Refused): Ending => ({
    exit_code: messageOf(id).exit_code ?? exitCodes.usage,
    lines: [`nightjar: ${withId(id, message)}`, afterwards(id)],
  }),
  TooFewCustomers: ({ customers, before, run_id, share }: TooFewCustomers) =>
    endingFor("customers-missing", {
      customers: counted(customers, "customer"),
      run_id,
      before: counted(before, "customer"),
      share: `${Math.round(share * 100)}%`,
    }),
  ReplacedElsewhere: ({ job, run_id, there, here }: ReplacedElsewhere) =>
    endingFor("job-replaced-elsewhere", { job, run_id, there, here }),
  FolderLocked: ({ holder }: FolderLocked) => endingFor("output-locked", { holder }),
  SeedChanged: ({ path, seed }: SeedChanged) => endingFor("journal-seed", { path, seed }),
  JournalInUse: ({ path }: JournalInUse) => endingFor("journal-locked", { path }),
  ServeError: () => endingFor("port-unavailable"),
  LedgerFailed: (error: LedgerFailed) => {
    if (error.written_by !== undefined)
      return endingFor("ledger-newer", { ...detailOf(error), version: toolVersion })
    const [unusable, damaged] =
      error.isTokens === true
        ? (["token-store-unusable", "token-store-damaged"] as const)
        : (["ledger-unusable", "ledger-damaged"] as const)
    return endingFor(error.damaged === true ? damaged : unusable, detailOf(error))
  },
  TokenStoreRefused: (error: TokenStoreRefused) =>
    endingFor(error.damaged === true ? "token-store-damaged" : "token-store-refused", detailOf(error)),
  LandingFailed: (error: LandingFailed) =>
    endingFor("landing-failed", { ...detailOf(error), path: error.path }),
  LandingDamaged: (error: LandingDamaged) =>
    endingFor("landing-damaged", { ...detailOf(error), path: error.path }),
  PublishFailed: (error: PublishFailed) =>
    endingFor(error.damaged === true ? "publishing-damaged" : "publishing-failed", detailOf(error)),
  DuckDbFailed: ({ message }: DuckDbFailed) =>
    endingFor(message.includes("Could not set lock on file") ? "database-in-use" : "query-failed", {
      detail: withCandidates(message),
    }),
} as const

type Endings = typeof endings
type Told<Tag extends keyof Endings> = Endings[Tag] extends (error: infer E) => Ending ? E : unknown

export type Failure = {
  readonly [Tag in keyof Endings]: Told<Tag> & { readonly _tag: Tag; readonly message: string }
}[keyof Endings]

const isFailure = (error: object): error is Failure =>
  "_tag" in error && typeof error._tag === "string" && Object.hasOwn(endings, error._tag)

/** Undefined: nobody expected this error, so it is a defect. */
export const endingOf = (error: unknown): Ending | undefined => {
  if (typeof error !== "object" || error === null) return undefined
  if (CliError.isCliError(error)) return { exit_code: exitCodes.usage, lines: [] }
  if (!isFailure(error)) return undefined
  const ending = endings[error._tag]
  return typeof ending === "string" ? endingFor(ending, detailOf(error)) : ending(error as never)
}

/** A defect, in one line; its data may contain anything, so only its kind and place are shown. */
export const defectEnding = (thrown: unknown): Ending =>
  endingFor("defect", { kind: thrown instanceof Error ? thrown.name : typeof thrown })

class Leaves extends Context.Service<Leaves, Left>()("nightjar/cli/Leaves") {}

/** Whatever stops this work is told with what it leaves; inner work has already said it for itself. */
export const leaving =
  (left: Left) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.catchCause(work, (cause) => Effect.failCause(Cause.annotate(cause, Context.make(Leaves, left))))

const endingAsOfRun = <E>(cause: Cause.Cause<E>): Ending => {
  const failure = cause.reasons.find(Cause.isFailReason)
  if (failure !== undefined) return endingOf(failure.error) ?? defectEnding(failure.error)
  return defectEnding(Cause.squash(cause))
}

/** What a program or a night failed with; a failure that nobody expected is a defect. */
export const endingOfCause = <E>(cause: Cause.Cause<E>): Ending => {
  const ending = endingAsOfRun(cause)
  const left = Context.getOrUndefined(Cause.annotations(cause), Leaves)
  const id = left && messageIn(ending)
  const first = id && messageOf(id).first
  if (left === undefined || first === undefined) return ending
  return { ...ending, lines: [...ending.lines.slice(0, -1), `${left.kept} ${first} ${left.next}`] }
}

/** Which message an ending is, for those who are told of it without its values; its first line names it. */
export const messageIn = ({ lines }: Ending): MessageId | undefined =>
  lines.map((line) => /\[([a-z-]+)\]$/.exec(line)?.[1]).find((id) => id !== undefined && isMessageId(id))

/** Why something failed that only costs a warning: what happened, without what was kept and what to do. */
export const reasonOfCause = (cause: Cause.Cause<unknown>): string =>
  endingOfCause(cause).lines[0]?.replace(/^nightjar: /, "") ?? "no reason given"

/** What a signal leaves of a command that is no run. */
export const interruptedText = ({ kept, next }: Left): string =>
  `${told("command-interrupted")}\n${kept} ${next}`

const signalCodes = {
  SIGINT: exitCodes.interrupted,
  SIGTERM: exitCodes.terminated,
  SIGHUP: exitCodes.hungUp,
}
type Signal = keyof typeof signalCodes

/**
 * Waits end at once, a start that was sent gets its answer, a publication finishes its last step; whatever is
 * still running then is cut off, as by a crash.
 */
const stopWithin = Duration.seconds(20)

const endingOfExit = <A, E>(exit: Exit.Exit<A, E>): Ending => {
  if (Exit.isSuccess(exit)) return { exit_code: exitCodes.ok, lines: [] }
  if (Cause.hasInterruptsOnly(exit.cause)) return { exit_code: exitCodes.interrupted, lines: [] }
  return endingOfCause(exit.cause)
}

/** For a stack trace. The flag is parsed inside the program, which may have ended before it was. */
const asksForStacks = (args: ReadonlyArray<string>): boolean =>
  /(?:^| )--log-level[= ](?:debug|trace|all)(?: |$)/.test(args.join(" "))

/** A write into a closed pipe must not end a run; it concerns the writer, not the process. */
const ignoreClosedPipes = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined)
}

const quit = (exit_code: number): void => {
  const { lines } = endingFor("stop-forced", { seconds: Duration.toSeconds(stopWithin) })
  process.stderr.write(`${lines.join("\n")}\n`)
  process.exit(exit_code)
}

/** Nothing after a signal. An error may quote anything: its input, an answer. */
export const lastWordsOf = <A, E>(
  exit: Exit.Exit<A, E>,
  { isSignalled, withStack }: { readonly isSignalled: boolean; readonly withStack: boolean },
): string => {
  const { lines } = isSignalled ? { lines: [] } : endingOfExit(exit)
  const stack = Exit.isFailure(exit) && withStack ? [Cause.pretty(exit.cause)] : []
  return processSecrets.clean([...lines, ...stack].map((line) => `${line}\n`).join(""), "own")
}

/** Without a listener, SIGUSR1 opens Node's debugger in a process that holds every password. */
const refuseDebugger = (): void => void process.on("SIGUSR1", () => undefined)

/** What a slow reader of a pipe has not taken yet would be lost; one that has gone takes nothing. */
const flush = (stream: NodeJS.WriteStream, last = ""): Promise<void> =>
  new Promise((resolve) => stream.write(last, () => resolve()))

/** Runs the program to its end and exits with the program's exit code; a second SIGINT quits at once. */
export const runProcess = (program: Effect.Effect<void, Failure | CliError.CliError>): void => {
  ignoreClosedPipes()
  refuseDebugger()
  let signalled: Signal | undefined
  Runtime.makeRunMain(({ fiber }) => {
    const stop = (signal: Signal) => {
      if (signalled !== undefined) {
        if (signal === "SIGINT") process.exit(exitCodes.interrupted)
        return
      }
      signalled = signal
      Effect.runFork(Fiber.interrupt(fiber))
      const quits = Effect.sync(() => quit(signalCodes[signal]))
      Effect.runFork(Effect.delay(quits, stopWithin))
    }
    for (const signal of Struct.keys(signalCodes)) process.on(signal, () => stop(signal))
    fiber.addObserver((exit) => {
      const isSignalled = signalled !== undefined
      const words = lastWordsOf(exit, { isSignalled, withStack: asksForStacks(process.argv) })
      const code = signalled === undefined ? endingOfExit(exit).exit_code : signalCodes[signalled]
      const last = process.stderr.isTTY ? forTerminal(words, false) : words
      void Promise.all([flush(process.stdout), flush(process.stderr, last)]).then(() => process.exit(code))
    })
  })(program, { disableErrorReporting: true })
}

/** What a check found. Whatever is not in order has a message of the catalogue, which says what mends it. */
export interface Finding {
  readonly verdict: "ok" | "warning" | "failed"
  readonly says: string
  readonly id?: MessageId
}

export const ok = (says: string): Finding => ({ verdict: "ok", says })

const found =
  (verdict: "warning" | "failed") =>
  <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>): Finding => ({
    verdict,
    says: happened(id, ...values),
    id,
  })
export const warning = found("warning")
export const failed = found("failed")
