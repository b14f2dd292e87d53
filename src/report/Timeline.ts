/**
 * Facts as lines for people: what was decided and what happened, each with its time. Pure; every fact has
 * its sentence, and none contains a value of a parameter.
 */
import { sourceNameOf } from "../service/FlowResults.ts"
import type { AttemptDrained, Fact, Recorded, RunNews, RunSteered, Trouble } from "../ledger/Fact.ts"
import { actionNeeded } from "../service/EndTable.ts"
import { actingOf } from "../service/Ends.ts"
import { counted as times, isoDay, isoTime, sumOf } from "../base/Text.ts"

export const renderRecorded = ({ at, fact }: Recorded): string =>
  `${isoTime(at).slice(0, 19).replace("T", " ")}  ${sentence(fact)}`

const maybe = (text: string, value: string | number | undefined): string =>
  value === undefined ? "" : text.replace("%", () => String(value))

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

const proofs = {
  counted: ": all counted records are here",
  final: ": its results are marked as final",
  unwanted: ": the job asks for no results",
} as const

const verdicts = {
  not_sent: "no login was made",
  unproven: "it is not known how its login ended: it counts as one that may have failed",
  away: "its engine says that it is away; until a login is accepted, it counts as one that may have failed",
  neutral: "it is not known how its login ended; it no longer counts",
  good: "the source accepted its login",
} as const

const proven = (proof: (typeof AttemptDrained.Type)["proof"]): string => {
  if (proof === undefined) return ""
  const records = sumOf(proof.families.map(({ landed: count }) => count))
  return `${proofs[proof.basis]}${proof.basis === "unwanted" ? "" : ` (${records} records)`}`
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

const whose = (fact: Trouble): string =>
  fact.trouble === "engine" ? `engine ${fact.engine_reference}` : "the service"
const since = (fact: Trouble): string => `since ${fact.since.slice(11, 19)}`
const began = { silent: "given no usable answer", throttled: "asked for fewer calls", engine: "been down" }
const passed = {
  silent: "answers again",
  throttled: "accepts all calls again",
  engine: "is available again",
}

type Sentences = { readonly [Tag in Fact["_tag"]]: (fact: Extract<Fact, { _tag: Tag }>) => string }

/** What each fact says. Those of an attempt follow its number. */
const sentences: Sentences = {
  RunStarted: (fact) =>
    `run ${fact.run_id} of ${fact.job_path} began${maybe(", a rerun of %", fact.parent)}` +
    (fact.part === undefined ? "" : ", a part of the job"),
  ResultsSourcesSet: ({ sources }) => {
    const asked = sources.filter(({ enabled }) => enabled).map(({ name }) => name)
    return `results are read from ${asked.join(", ") || "nowhere"}`
  },
  RunResumed: ({ run_id }) => `run ${run_id} was resumed`,
  RunSteered: steered,
  TroubleBegan: (fact) => `${whose(fact)} has ${began[fact.trouble]} ${since(fact)}: ${fact.message}`,
  TroubleEnded: (fact) =>
    `${whose(fact)} ${passed[fact.trouble]} (trouble ${since(fact)}, ${times(fact.failures, "failed call")})`,
  InterimPublished: ({ tasks, of, version }) =>
    `${tasks} of ${times(of, "task")} published as version ${version} while the run continues`,
  InterimRefused: ({ message }) => `nothing was published while the run continues: ${message}`,
  TaskWaits: ({ until, reason }) =>
    `waits until ${until.slice(0, 19).replace("T", " ")} and is tried again: ${reason}`,
  TaskPlanned: ({ features, fingerprint }) =>
    `planned: ${features.join(", ") || "the engine's default features"}` +
    maybe("; login %", short(fingerprint)),
  ResultsRead: (fact) => {
    const { session_id, asked_as, http_status, is_closed } = fact
    const state = is_closed ? "final" : "not final"
    const said = http_status === 200 ? `read (200, ${state})` : `requested: answered ${http_status}`
    const session = `${session_id}${maybe(", asked for as %,", asked_as)}`
    return `${sourceNameOf(fact)} of session ${session} ${said}${landed(fact.landed)}`
  },
  AnswerRefused: (fact) => `the answer (${fact.what}) cannot be used: ${fact.why}${landed(fact.landed)}`,
  AttachmentRead: ({ attachment_id, status, bytes, path }) =>
    `attachment ${attachment_id}: ${status}${maybe(", % bytes", bytes)}${maybe(", %", path)}`,
  TaskSettled: (fact) =>
    `settled: ${fact.outcome}, ${fact.reason}, ${actionNeeded[actingOf(fact)]}${maybe(": %", fact.message)}`,
  CredentialRejected: ({ fingerprint, reason }) =>
    `login ${short(fingerprint)} was rejected with ${reason}; it is sent again only once it is released`,
  CredentialReleased: ({ fingerprint, account, because }) =>
    `login ${short(fingerprint ?? account ?? "")} was released${because === undefined ? "" : `: ${because}`}`,
  LoginAccepted: () => "the source accepted this login; earlier rejections no longer hold the account",
  LoginJudged: (fact) => `${verdicts[fact.verdict]}${maybe(" (answer: %)", fact.said)}`,
  TokenStored: ({ name, features, expires_at }) =>
    `token ${name} stored for ${features.join(", ")}; expires on ${isoDay(expires_at)}`,
  TokenExpiring: ({ name, expires_at }) => `token ${name} expires on ${isoDay(expires_at)}`,
  TokenDropped: ({ name, reason }) =>
    reason === "EXPIRED"
      ? `token ${name} is not used: it has expired by this machine's clock`
      : `token ${name} is no longer used: ${reason}`,
  TokenRevoked: ({ name }) => `token ${name} was revoked by hand`,
  RunPublished: ({ version }) => `published as version ${version}`,
  RunHeld: ({ gates }) => `held back: ${gates.map(({ gate, found }) => `${gate}: ${found}`).join("; ")}`,
  RunAccepted: () => "a person accepted the version that was held back",
  OutcomePublished: () => "the outcome is published",
  DeleteIntended: ({ execution_id, landed_sha256 }) =>
    `delete execution ${execution_id} at the service; landed under ${short(landed_sha256)}`,
  DeleteAnswered: ({ execution_id, outcome, http_status }) =>
    `execution ${execution_id}: ${outcome} (${http_status})`,
  RunEnded: ({ exit_code, leftovers }) =>
    `run ended with exit code ${exit_code}${leftovers ? "; something is left at the service" : ""}`,
  LandingPruned: ({ run_id, bytes }) => `the landed bodies of ${run_id} were removed by age, ${bytes} bytes`,
  AttachmentsPruned: ({ run_id, bytes }) => `the documents of ${run_id} were removed by age, ${bytes} bytes`,
  FactsArchived: ({ run_id, file }) => `the facts of ${run_id} were moved to ledger-archive/${file}`,
  FactForgotten: ({ receipt }) => `a fact about a customer who was removed: receipt ${receipt}`,
  CustomerForgotten: ({ runs, receipt }) =>
    `a customer was removed from ${times(runs, "run")}: receipt ${receipt}`,
  ForgetFinished: ({ receipt }) => `the removal with the receipt ${receipt} is finished`,
  StartIntended: ({ probe, token_id, outside, external_execution_id }) => {
    const what = probe ? "sends a start again whose answer was lost" : "start"
    const without = maybe(", which does not cover %", outside?.join(", "))
    return `${what}${maybe(", with token %", token_id)}${without}, external id ${external_execution_id}`
  },
  StartAnswered: ({ answer, http_status, status_reason, execution_id, session_id }) => {
    const ids = `${maybe("; execution %", execution_id)}${maybe(", session %", session_id)}`
    return `${startAnswers[answer]}${maybe(" (%)", http_status)}${maybe(", %", status_reason)}${ids}`
  },
  TicketIssued: () => "a ticket was issued; it is exchanged once the login has succeeded",
  TicketDropped: ({ reason }) => `the ticket was not exchanged for a token: ${reason}`,
  OrphanSuspected: () => "an earlier start may have run without our knowledge (possible orphan)",
  AttemptObserved: ({ status_code, status_reason, authentication_status }) =>
    `${status_code} / ${status_reason}${maybe(", login %", authentication_status)}`,
  AbortIntended: ({ why }) => `abort, because ${abortCauses[why]}`,
  AttemptDrained: ({ proof }) => `everything in the execution is landed${proven(proof)}`,
  AttemptFound: ({ execution_id, service }) =>
    `${service} shows execution ${execution_id} as ours: the service has moved there`,
  BodiesLost: ({ bodies, execution_id }) =>
    `${times(bodies.length, "landed body", "landed bodies")} lost here: ` +
    `the ${execution_id === undefined ? "session" : "execution"} is read again`,
  AttemptDisowned: ({ execution_id }) =>
    `execution ${execution_id} belongs to somebody else's run; it was not touched`,
  AttemptKept: ({ reason, message }) => `kept at the service, ${reason}: ${message}`,
  AttemptClosed: (fact) => {
    const end = `${fact.status_code} / ${fact.status_reason}`
    return `closed with ${end}${counted(fact.products_count)}${landed(fact.landed)}`
  },
}

/** Each sentence takes the facts of its own tag; only a table of them cannot say so. */
const said = (fact: Fact): string => (sentences[fact._tag] as (fact: Fact) => string)(fact)

const sentence = (fact: Fact): string =>
  "attempt" in fact ? `attempt ${fact.attempt}: ${said(fact)}` : said(fact)

/** For a line on its own, such as one on stderr. */
export const runFactText = (fact: RunNews): string => said(fact)

const short = (hex: string | undefined): string | undefined => hex?.slice(0, 12)

const landed = (
  ref: { readonly segment: string; readonly offset: number; readonly bytes: number } | undefined,
) => (ref === undefined ? "" : `; ${ref.bytes} bytes landed in ${ref.segment} at ${ref.offset}`)

const counted = (products: Readonly<Record<string, number>> | undefined): string => {
  if (products === undefined) return ", products not counted"
  return `, ${sumOf(Object.values(products).map((count) => Math.max(0, count)))} products counted`
}

/** The tasks that an id names among these facts: a task, a customer, an execution or a session. */
export const tasksNamedIn = (facts: ReadonlyArray<Recorded>, id: string): ReadonlySet<string> => {
  const named = new Set<string>()
  for (const { fact } of facts) {
    if (!("task_id" in fact)) continue
    const isTask = fact.task_id === id || (fact._tag === "TaskPlanned" && fact.customer_id === id)
    const isExecution = "execution_id" in fact && fact.execution_id === id
    const isSession = "session_id" in fact && fact.session_id === id
    if (isTask || isExecution || isSession) named.add(fact.task_id)
  }
  return named
}
