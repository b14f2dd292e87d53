/**
 * How a command ends: its exit code, and for people what happened, what was kept and what to do next. Every
 * error that a command can fail with is named here; whatever is not is a defect of the program, told without
 * its data.
 */
import { Effect, Schema } from "effect"
import { CliError } from "effect/cli"

export const exitCodes = {
  ok: 0,
  defect: 1,
  usage: 2,
  peopleMustAct: 3,
  leftovers: 4,
  locked: 5,
  refused: 6,
  interrupted: 130,
  terminated: 143,
} as const

/** A command is over with an exit code other than 0; everything worth saying is said. */
export class Ended extends Schema.TaggedError<Ended>()("Ended", { exit_code: Schema.Int }) {}

/** Wrong usage, job file or settings: nothing was started. */
export class UsageRefused extends Schema.TaggedError<UsageRefused>()("UsageRefused", {
  message: Schema.String,
}) {}

/** The output folder cannot be made or written. */
export class OutputUnusable extends Schema.TaggedError<OutputUnusable>()("OutputUnusable", {
  message: Schema.String,
}) {}

/** Something that this command needs is not there. */
export class NothingThere extends Schema.TaggedError<NothingThere>()("NothingThere", {
  message: Schema.String,
}) {}

export const endWith = (exit_code: number) =>
  exit_code === 0 ? Effect.void : Effect.fail(new Ended({ exit_code }))

export interface Ending {
  readonly exit_code: number
  /** For stderr; empty when everything is said already. */
  readonly lines: ReadonlyArray<string>
}

const kept = "What was landed and recorded is kept, nothing unpublished was deleted at the service"
const resume = "`nightjar run` resumes from there"

const told = (exit_code: number, what: string, next: string): Ending => ({
  exit_code,
  lines: [`nightjar: ${firstLine(what)}`, ...(next === "" ? [] : [next])],
})

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? text

const messageOf = (error: object): string =>
  "message" in error && typeof error.message === "string" && error.message !== ""
    ? error.message
    : "no reason given"

type Teller = (message: string, error: object) => Ending

/** By `_tag`, so that no command has to load the rooms whose errors it never meets. */
const tellers: Readonly<Record<string, Teller>> = {
  Ended: (_, error) => ({
    exit_code:
      "exit_code" in error && typeof error.exit_code === "number" ? error.exit_code : exitCodes.defect,
    lines: [],
  }),
  UsageRefused: (message) => told(exitCodes.usage, message, ""),
  NothingThere: (message) => told(exitCodes.usage, message, ""),
  JobInvalid: (message) => ({
    exit_code: exitCodes.usage,
    lines: [
      ...message.split("\n"),
      // What loading finds is told there; this is what only the resolved secrets show.
      "Nothing was started. Correct the job file; `nightjar plan` checks it with its secrets.",
    ],
  }),
  FaultsInvalid: (message) => ({
    exit_code: exitCodes.usage,
    lines: [...message.split("\n"), "Nothing was started. `nightjar sandbox --help` shows what a fault is."],
  }),
  ReadingInvalid: (message) => ({
    exit_code: exitCodes.usage,
    lines: [
      ...message.split("\n"),
      "Nothing was started. `nightjar sandbox --help` lists the keys of a reading.",
    ],
  }),
  SecretUnavailable: (message) =>
    told(exitCodes.usage, message, "Nothing was started. Set it where the reference points, then run again."),
  TokenStoreRefused: (message) =>
    told(exitCodes.usage, message, "Nothing was started. `nightjar tokens list` shows what is stored."),
  ServiceSettingsRefused: (message) =>
    told(
      exitCodes.usage,
      message,
      "Nothing was started and nothing was sent. Correct the service's settings.",
    ),
  ReceiverRefused: (message) =>
    told(exitCodes.usage, message, "Nothing was started. Give another port; 0 takes any free one."),
  FolderLocked: (message) =>
    told(
      exitCodes.locked,
      message,
      "Nothing was started here. Wait for it to end, or give --output another folder.",
    ),
  ServiceRefused: (message) => told(exitCodes.refused, message, serviceNext),
  CatalogueFailed: (message) => told(exitCodes.refused, message, serviceNext),
  SecretRefused: (message) => told(exitCodes.refused, message, serviceNext),
  NotSent: (message) => told(exitCodes.refused, message, serviceNext),
  AnswerLost: (message) => told(exitCodes.refused, message, serviceNext),
  Throttled: (message) => told(exitCodes.refused, message, serviceNext),
  UnexpectedAnswer: (message) => told(exitCodes.refused, message, serviceNext),
  JournalFailed: (message) =>
    told(
      exitCodes.refused,
      `the embedded service's journal cannot be used: ${message}`,
      "Nothing was started. Make it readable and writable, or move a damaged one away.",
    ),
  JournalInUse: (message) =>
    told(exitCodes.locked, message, "Nothing was started. Wait for it to end, or give --state another file."),
  ServeError: () =>
    told(
      exitCodes.refused,
      "the server cannot listen there",
      "Give --port another number; 0 takes any free one.",
    ),
  LedgerFailed: (message, error) =>
    "damaged" in error && error.damaged === true
      ? told(exitCodes.usage, `the ledger is damaged: ${message}`, ledgerNext)
      : stopped(`the ledger cannot be read or written: ${message}`),
  OutputUnusable: (message) => stopped(message),
  LandingFailed: (message, error) => stopped(`a body could not be landed: ${message}${pathOf(error)}`),
  LandingDamaged: (message, error) => damage(`a landed body is damaged: ${message}${pathOf(error)}`),
  PublishFailed: (message, error) =>
    ("damaged" in error && error.damaged === true ? damage : stopped)(
      `the tables could not be published: ${message}`,
    ),
  RecordSchemaInvalid: (message) => ({
    exit_code: exitCodes.usage,
    lines: [...message.split("\n"), "Nothing was started. Correct the record schema."],
  }),
  DuckDbFailed: (message) => told(exitCodes.usage, `the query failed: ${message}`, ""),
}

const serviceNext =
  "Nothing was started. `nightjar doctor JOB` checks address, secret and network; then run again."

const ledgerNext =
  "Nothing further was started, and what was landed is kept. Put a copy of ledger.sqlite back; " +
  "`nightjar verify` says what else it finds."

const stopped = (what: string): Ending =>
  told(
    exitCodes.leftovers,
    what,
    `${kept}. Check free space and permissions of the output folder; then ${resume}.`,
  )

const damage = (what: string): Ending =>
  told(
    exitCodes.leftovers,
    what,
    "The tables published before stand, and nothing unpublished was deleted at the service. " +
      "No further run mends what is damaged: `nightjar doctor` and `nightjar verify` name it; " +
      "put back a copy of what they name, then `nightjar repair` derives the rest again.",
  )

const pathOf = (error: object): string =>
  "path" in error && typeof error.path === "string" ? ` (${error.path})` : ""

/** undefined: nobody expected this error, so that it is a defect. */
export const endingOf = (error: unknown): Ending | undefined => {
  if (typeof error !== "object" || error === null) return undefined
  if (CliError.isCliError(error)) return { exit_code: exitCodes.usage, lines: [] }
  if (!("_tag" in error) || typeof error._tag !== "string") return undefined
  if (!Object.hasOwn(tellers, error._tag)) return undefined
  return tellers[error._tag]?.(messageOf(error), error)
}

/** A defect, in one line; its data may hold anything, so that only its kind and place are told. */
export const defectEnding = (defect: unknown): Ending => ({
  exit_code: exitCodes.defect,
  lines: [
    `nightjar: a defect of the program (${defect instanceof Error ? defect.name : typeof defect})`,
    `What was recorded is kept; ${resume}. Please report it with what --log-level debug prints.`,
  ],
})
