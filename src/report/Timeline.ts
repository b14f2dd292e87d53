/**
 * Facts as lines for people: what was decided and what happened, each with its time. Pure; every fact has
 * its sentence, and none contains a value of a parameter.
 */
import { sourceNameOf } from "../service/FlowResults.ts"
import type { AttemptDrained, Fact, Recorded, RunNews, RunSteered, Trouble } from "../ledger/Fact.ts"
import { actionNeeded } from "../service/EndTable.ts"
import { actingOf } from "../service/Ends.ts"
import { counted as times } from "../base/Text.ts"
import { loginText } from "./Logins.ts"
import { dayOf } from "../tokens/TokenLogin.ts"

export const renderRecorded = ({ at, fact }: Recorded): string =>
  `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}  ${sentence(fact)}`

const maybe = (text: string, value: string | number | undefined): string =>
  value === undefined ? "" : text.replace("%", String(value))

const leftBehind = "; something is left at the service"

const startAnswers = {
  accepted: "the service accepted the start",
  adopted: "our own execution was found at the service and taken over",
  refused: "the service refused the start",
  not_created: "the start was refused; nothing was created",
  foreign: "somebody else's run is still open",
  taken: "the start was answered with the id of another task's execution",
  unusable: "the start was answered, and the answer cannot be used",
  lost: "the answer to the start was lost",
} as const

const abortCauses = {
  challenge: "the source asks for a person, and nobody can answer at night",
  max_wait: "max_wait was reached",
  deadline: "the deadline passed",
} as const

const sentence = (fact: Fact): string => {
  if ("attempt" in fact) return `attempt ${fact.attempt}: ${ofAttempt(fact)}`
  switch (fact._tag) {
    case "RunStarted":
      return `run ${fact.run_id} of ${fact.job_path} began${maybe(", a rerun of %", fact.parent)}`
    case "ResultsSourcesSet": {
      const asked = fact.sources.filter(({ enabled }) => enabled).map(({ name }) => name)
      return `results are read from ${asked.join(", ") || "nowhere"}`
    }
    case "RunResumed":
      return `run ${fact.run_id} was resumed`
    case "RunSteered":
    case "TroubleBegan":
    case "TroubleEnded":
    case "InterimPublished":
    case "InterimRefused":
      return runFactText(fact)
    case "TaskWaits":
      return `waits until ${fact.until.slice(0, 19).replace("T", " ")} and is tried again: ${fact.reason}`
    case "TaskPlanned": {
      const features = fact.features.join(", ") || "the engine's default features"
      return `planned: ${features}${maybe("; login %", short(fact.fingerprint))}`
    }
    case "ResultsRead": {
      const { session_id, http_status, is_closed } = fact
      const state = is_closed ? "final" : "not final"
      const said = http_status === 200 ? `read (200, ${state})` : `requested: answered ${http_status}`
      return `${sourceNameOf(fact)} of session ${session_id} ${said}${landed(fact.landed)}`
    }
    case "AnswerRefused":
      return `the answer (${fact.what}) cannot be used: ${fact.why}${landed(fact.landed)}`
    case "AttachmentRead": {
      const { attachment_id, status, bytes, path } = fact
      return `attachment ${attachment_id}: ${status}${maybe(", % bytes", bytes)}${maybe(", %", path)}`
    }
    case "TaskSettled": {
      const { outcome, reason, message } = fact
      return `settled: ${outcome}, ${reason}, ${actionNeeded[actingOf(fact)]}${maybe(": %", message)}`
    }
    case "CredentialRejected":
    case "CredentialReleased":
    case "LoginAccepted":
      return loginText(fact)
    case "TokenStored":
      return `token ${fact.name} stored for ${fact.features.join(", ")}; expires on ${dayOf(fact.expires_at)}`
    case "TokenExpiring":
      return `token ${fact.name} expires on ${dayOf(fact.expires_at)}`
    case "TokenDropped":
      return `token ${fact.name} is no longer used: ${fact.reason}`
    case "TokenRevoked":
      return `token ${fact.name} was revoked by hand`
    case "RunPublished":
    case "RunHeld":
    case "RunAccepted":
    case "OutcomePublished":
      return publication(fact)
    case "DeleteIntended":
    case "DeleteAnswered":
      return deletion(fact)
    case "RunEnded":
      return `run ended with exit code ${fact.exit_code}${fact.leftovers ? leftBehind : ""}`
    case "LandingPruned":
    case "AttachmentsPruned":
    case "FactsArchived":
    case "FactForgotten":
    case "CustomerForgotten":
    case "ForgetFinished":
      return removal(fact)
  }
}

const publication = (
  fact: Extract<Fact, { _tag: "RunPublished" | "RunHeld" | "RunAccepted" | "OutcomePublished" }>,
): string => {
  switch (fact._tag) {
    case "RunPublished":
      return `published as version ${fact.version}`
    case "RunHeld":
      return `held back: ${fact.gates.map(({ gate, found }) => `${gate}: ${found}`).join("; ")}`
    case "RunAccepted":
      return "a person accepted the version that was held back"
    case "OutcomePublished":
      return "the outcome is published"
  }
}

const deletion = (fact: Extract<Fact, { _tag: "DeleteIntended" | "DeleteAnswered" }>): string =>
  fact._tag === "DeleteIntended"
    ? `delete execution ${fact.execution_id} at the service; landed under ${short(fact.landed_sha256)}`
    : `execution ${fact.execution_id}: ${fact.outcome} (${fact.http_status})`

type Removal = Extract<
  Fact,
  {
    _tag:
      | "LandingPruned"
      | "AttachmentsPruned"
      | "FactsArchived"
      | "FactForgotten"
      | "CustomerForgotten"
      | "ForgetFinished"
  }
>

const removal = (fact: Removal): string => {
  switch (fact._tag) {
    case "LandingPruned":
      return `the landed bodies of ${fact.run_id} were removed by age, ${fact.bytes} bytes`
    case "AttachmentsPruned":
      return `the documents of ${fact.run_id} were removed by age, ${fact.bytes} bytes`
    case "FactsArchived":
      return `the facts of ${fact.run_id} were moved to ledger-archive/${fact.file}`
    case "FactForgotten":
      return `a fact about a customer who was removed: receipt ${fact.receipt}`
    case "CustomerForgotten":
      return `a customer was removed from ${times(fact.runs, "run")}: receipt ${fact.receipt}`
    case "ForgetFinished":
      return `the removal with the receipt ${fact.receipt} is finished`
  }
}

const steered = ({ order, because, ...limits }: typeof RunSteered.Type): string => {
  switch (order) {
    case "pause":
      return "the run was paused: it starts nothing until it is resumed"
    case "resume":
      return "the run was resumed after a pause"
    case "drain":
      return because === undefined
        ? "the run is drained: it starts nothing more"
        : "the run is drained, because its pause took too long: it starts nothing more"
    case "limit":
      return `the limits are now ${limits.max_in_flight} in flight and ${limits.per_engine} per engine`
  }
}

const trouble = (fact: Trouble): string => {
  const who = fact.trouble === "engine" ? `engine ${fact.engine_reference}` : "the service"
  const since = `since ${fact.since.slice(11, 19)}`
  if (fact._tag === "TroubleBegan") {
    const what = { silent: "given no usable answer", throttled: "asked for fewer calls", engine: "been down" }
    return `${who} has ${what[fact.trouble]} ${since}: ${fact.message}`
  }
  const what = { silent: "answers again", throttled: "accepts all calls again", engine: "is available again" }
  return `${who} ${what[fact.trouble]} (trouble ${since}, ${times(fact.failures, "failed call")})`
}

const interim = (fact: Extract<Fact, { _tag: "InterimPublished" | "InterimRefused" }>): string =>
  fact._tag === "InterimPublished"
    ? `${fact.tasks} of ${times(fact.of, "task")} published as version ${fact.version} while the run goes on`
    : `nothing was published while the run goes on: ${fact.message}`

/** For a line on its own, such as one on stderr. */
export const runFactText = (fact: RunNews): string => {
  switch (fact._tag) {
    case "RunSteered":
      return steered(fact)
    case "InterimPublished":
    case "InterimRefused":
      return interim(fact)
    default:
      return trouble(fact)
  }
}

const proofs = {
  counted: ": all counted records are here",
  final: ": its results are marked as final",
  unwanted: ": the job asks for no results",
} as const

const proven = (proof: (typeof AttemptDrained.Type)["proof"]): string => {
  if (proof === undefined) return ""
  const records = proof.families.reduce((sum, { landed: count }) => sum + count, 0)
  return `${proofs[proof.basis]}${proof.basis === "unwanted" ? "" : ` (${records} records)`}`
}

const ofAttempt = (fact: Extract<Fact, { readonly attempt: number }>): string => {
  switch (fact._tag) {
    case "LoginJudged":
      return loginText(fact)
    case "StartIntended": {
      const what = fact.probe ? "sends a start again whose answer was lost" : "start"
      const how = maybe(", with token %", fact.token_id)
      return `${what}${how}, external id ${fact.external_execution_id}`
    }
    case "StartAnswered": {
      const { answer, http_status, status_reason, execution_id, session_id } = fact
      const ids = `${maybe("; execution %", execution_id)}${maybe(", session %", session_id)}`
      return `${startAnswers[answer]}${maybe(" (%)", http_status)}${maybe(", %", status_reason)}${ids}`
    }
    case "TicketIssued":
      return "a ticket was issued; it is exchanged once the login has succeeded"
    case "TicketDropped":
      return `the ticket was not exchanged for a token: ${fact.reason}`
    case "OrphanSuspected":
      return "an earlier start may have run without our knowledge (possible orphan)"
    case "AttemptObserved": {
      const { status_code, status_reason, authentication_status } = fact
      return `${status_code} / ${status_reason}${maybe(", login %", authentication_status)}`
    }
    case "AbortIntended":
      return `abort, because ${abortCauses[fact.why]}`
    case "AttemptDrained":
      return `everything in the execution is landed${proven(fact.proof)}`
    case "AttemptDisowned":
      return `execution ${fact.execution_id} belongs to somebody else's run; it was not touched`
    case "AttemptKept":
      return `kept at the service, ${fact.reason}: ${fact.message}`
    case "AttemptClosed": {
      const end = `${fact.status_code} / ${fact.status_reason}`
      return `closed with ${end}${counted(fact.products_count)}${landed(fact.landed)}`
    }
  }
}

const short = (hex: string | undefined): string | undefined => hex?.slice(0, 12)

const landed = (
  ref: { readonly segment: string; readonly offset: number; readonly bytes: number } | undefined,
) => (ref === undefined ? "" : `; ${ref.bytes} bytes landed in ${ref.segment} at ${ref.offset}`)

const counted = (products: Readonly<Record<string, number>> | undefined): string => {
  if (products === undefined) return ", products not counted"
  const total = Object.values(products).reduce((sum, count) => sum + Math.max(0, count), 0)
  return `, ${total} products counted`
}

/** Whether a fact is about this execution or session. */
export const concerns = (fact: Fact, id: string): boolean =>
  ("execution_id" in fact && fact.execution_id === id) || ("session_id" in fact && fact.session_id === id)

/**
 * Facts of the tasks that an id names: a task, a customer, an execution or a session. Empty if it names none.
 */
export const factsAbout = (
  facts: ReadonlyArray<Recorded>,
  id: string,
): ReadonlyMap<string, ReadonlyArray<Recorded>> => {
  const named = new Set<string>()
  for (const { fact } of facts) {
    if (!("task_id" in fact)) continue
    const isTask = fact.task_id === id || (fact._tag === "TaskPlanned" && fact.customer_id === id)
    if (isTask || concerns(fact, id)) named.add(fact.task_id)
  }
  const found = new Map<string, Array<Recorded>>([...named].map((task_id) => [task_id, []]))
  for (const recorded of facts)
    if ("task_id" in recorded.fact) found.get(recorded.fact.task_id)?.push(recorded)
  return found
}
