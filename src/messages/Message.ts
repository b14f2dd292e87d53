/**
 * What a message consists of: what happened, what was kept, what to do next. Errors end a command and carry
 * its exit code; warnings do not change it; findings are what `verify`, `repair` and `doctor` report. An id
 * is a few words, like the rule names of linters: it can be understood where it is printed, and a new
 * message needs no free number.
 */
import { exitCodes } from "./ExitCodes.ts"

export interface Message {
  readonly kind: "error" | "warning" | "finding"
  /** For errors only. */
  readonly exit_code?: number
  /** One clause without a full stop; `{name}` stands for a value. */
  readonly happened: string
  readonly kept: string
  readonly next: string
  /** Where `kept` and the rest of `next` are about a run: what has to be done first, whatever was stopped. */
  readonly first?: string
}

/** What a command that is no run leaves when it is stopped, and what to do then; whole sentences. */
export interface Left {
  readonly kept: string
  readonly next: string
}

const nothingStarted = "Nothing was started."
const nothingChanged = "Nothing was changed."
const landedKept =
  "Everything landed and recorded is kept; only what was already published was deleted at the service."
const runContinues = "The run continues, and its exit code does not change."

/** A message that ends the command; the texts keep their exact types, so that their values can be checked. */
const ends =
  (exit_code: number, kept: string) =>
  <const Happened extends string>(happened: Happened, next: string, keptHere = kept) =>
    ({ kind: "error", exit_code, happened, kept: keptHere, next }) as const

/** Exit code 2: wrong usage, job file or settings. */
export const refusal = ends(exitCodes.usage, nothingStarted)
/** The same, by what was not done. */
export const nothing = {
  changed: ends(exitCodes.usage, nothingChanged),
  written: ends(exitCodes.usage, "Nothing was written."),
  sent: ends(exitCodes.usage, "Nothing was sent."),
  read: ends(exitCodes.usage, "Nothing was read."),
  copied: ends(exitCodes.usage, "Nothing was copied."),
  removed: ends(exitCodes.usage, "Nothing was removed."),
  released: ends(exitCodes.usage, "Nothing was released."),
  published: ends(exitCodes.usage, "The tables were not changed."),
  subscribed: ends(exitCodes.usage, "No subscription was changed."),
}
/** Exit code 3: a person has to act. */
export const needsPerson = ends(exitCodes.peopleMustAct, nothingStarted)
/** Exit code 4: the machine or the disk stopped the work, which can be finished later. */
export const stopped = <const Happened extends string>(happened: Happened, next: string, kept: string) =>
  ({ kind: "error", exit_code: exitCodes.leftovers, happened, kept, next }) as const

/** The same for what may stop a run and any other command, which has its own words for what it leaves. */
const stopsAny =
  (exit_code: number) =>
  <const Happened extends string>(
    happened: Happened,
    { first, ofRun }: { readonly first: string; readonly ofRun: string },
    kept = landedKept,
  ) =>
    ({ kind: "error", exit_code, happened, kept, next: `${first} ${ofRun}`, first }) as const

export const stoppedRun = stopsAny(exitCodes.leftovers)
/** Exit code 5. */
export const locked = ends(exitCodes.locked, nothingStarted)
/** Exit code 6: the service refuses the secret or cannot be reached. */
export const unserved = ends(exitCodes.refused, nothingStarted)
/** Exit code 1. */
export const defect = stopsAny(exitCodes.defect)
/** Exit code 129, 130 or 143. */
export const interruption = ends(exitCodes.interrupted, "What was recorded before is kept.")

export const warning = <const Happened extends string>(
  happened: Happened,
  next: string,
  kept = runContinues,
) => ({ kind: "warning", happened, kept, next }) as const

export const finding = <const Happened extends string>(
  happened: Happened,
  next: string,
  kept = nothingChanged,
) => ({ kind: "finding", happened, kept, next }) as const
