/**
 * Which facts of a run are log records elsewhere, how grave they are, and their words: those that a person
 * on call reads. The run's own `log.ndjson` has all of them, with the names of customers.
 */
import type { LogLevel } from "effect"
import type { Fact } from "../ledger/Fact.ts"
import { listedReason } from "./Words.ts"

export interface LogRecord {
  readonly level: Extract<LogLevel.LogLevel, "Info" | "Warn" | "Error">
  /** The record's `event.name`. */
  readonly event: string
  readonly body: string
  readonly values: Readonly<Record<string, string | number>>
}

const record = (
  level: LogRecord["level"],
  event: string,
  body: string,
  values: LogRecord["values"] = {},
): LogRecord => ({ level, event: `nightjar.${event}`, body, values })

const troubles = {
  silent: "the service gives no usable answer",
  throttled: "the service asks for fewer calls",
  engine: "an engine is unavailable",
} as const

type FactOf<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>

const ofTrouble = (fact: FactOf<"TroubleBegan" | "TroubleEnded">): LogRecord => {
  const { trouble, engine_reference } = fact
  const engine = engine_reference === undefined ? {} : { "nightjar.engine": engine_reference }
  const values = { "nightjar.trouble": trouble, ...engine }
  return fact._tag === "TroubleBegan"
    ? record("Warn", "trouble.began", `Trouble began: ${troubles[trouble]}.`, values)
    : record("Info", "trouble.ended", `Trouble ended: ${troubles[trouble]}.`, values)
}

const ofSettled = ({ outcome, reason: said, who_acts }: FactOf<"TaskSettled">): LogRecord => {
  const reason = listedReason(said)
  const isFine = outcome === "succeeded" || outcome === "skipped"
  const values = { "nightjar.outcome": outcome, "nightjar.reason": reason, "nightjar.who_acts": who_acts }
  return record(isFine ? "Info" : "Warn", "task.ended", `A task ended: ${outcome}, ${reason}.`, values)
}

/** The words are ours alone: nothing in them comes from the service or from a customer. */
export const recordOf = (fact: Fact): LogRecord | undefined => {
  switch (fact._tag) {
    case "RunStarted":
      return record("Info", "run.started", "The run started.", { "nightjar.version": fact.tool_version })
    case "RunResumed":
      return record("Info", "run.resumed", "The run was resumed.")
    case "RunSteered":
      return record("Info", "run.steered", `The operator asked: ${fact.order}.`)
    case "RunPublished":
      return record("Info", "run.published", `Version ${fact.version} of the tables was published.`)
    case "InterimPublished":
      return record(
        "Info",
        "run.published_meanwhile",
        `Version ${fact.version} of the tables was published while the run goes on.`,
      )
    case "InterimRefused":
      return record("Warn", "run.not_published_meanwhile", "Nothing was published while the run goes on.")
    case "RunHeld":
      return record("Warn", "run.held", "The run is held back: its tables did not pass the gates of the job.")
    case "RunAccepted":
      return record("Info", "run.accepted", "A person let the run through.")
    case "RunEnded": {
      const { exit_code } = fact
      const values = { "nightjar.run.exit_code": exit_code }
      return record(
        exit_code === 0 ? "Info" : "Warn",
        "run.ended",
        `The run ended with exit code ${exit_code}.`,
        values,
      )
    }
    case "TroubleBegan":
    case "TroubleEnded":
      return ofTrouble(fact)
    case "TaskSettled":
      return ofSettled(fact)
    case "CredentialRejected":
      return record("Warn", "login.rejected", "A source rejected a login: it is not sent again.", {
        "nightjar.engine": fact.engine_reference,
        "nightjar.reason": listedReason(fact.reason),
      })
    case "AttemptKept":
      return record("Warn", "execution.kept", `An execution is kept at the service: ${fact.reason}.`)
    case "AnswerRefused":
      return record("Error", "answer.unusable", "An answer of the service could not be used.")
    case "OrphanSuspected":
      return record("Warn", "start.repeated", "A start whose answer was lost may have run twice.")
    default:
      return undefined
  }
}
