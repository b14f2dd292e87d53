/**
 * The behaviour words: what a caller writes into `username` (joined by `+`) to decide what happens to an
 * execution. One table documents every word for README and help; `readBehaviour` turns a text into what the
 * words ask for. Unknown words mean nothing, so any other text is a login that succeeds.
 */
import { given } from "../../base/Schemas.ts"
import { fingerprint, seeded } from "../state/Reading.ts"
import { isOpenReason, statusCodeOf, type AuthenticationStatus, type Timeline } from "../state/Timeline.ts"
import { featureStatusReasons, statusReasons } from "../../service/Vocabulary.ts"
import type { FeatureStatusReason, StatusReason } from "../../service/Vocabulary.ts"

type Times = "queueMs" | "runMs" | "asyncMs" | "cancelMs" | "expireMs" | "lateMs" | "foreignMs" | "lockedMs"
type Flags = "partial" | "neverFinal" | "odd" | "company" | "parted" | "unreadable" | "sessionToken"
interface Asked
  extends
    Record<Times | "unstoppableMs" | "records" | "documents", number>,
    Record<Flags, boolean>,
    Record<"heal" | "turn", { readonly runs: number; readonly reason: StatusReason }>,
    Record<"challengeCode" | "askedBy", string> {
  readonly end: StatusReason
  readonly featureEnd: FeatureStatusReason
  readonly challengeReason: "MFA_REQUIRED" | "INPUT_REQUIRED"
  readonly session: "unknown" | "unstarted"
}

/** What the words of one login ask for; the seed decides what is absent. Durations in milliseconds. */
export type Behaviour = Readonly<Partial<Asked>>

const reasons: ReadonlySet<string> = new Set(statusReasons)
const isReason = (word: string): word is StatusReason => reasons.has(word)

/** 2.4: the outcomes that are not final yet, by the reason of the execution. */
export const openOutcomes: Readonly<Partial<Record<StatusReason, FeatureStatusReason>>> = {
  ACCEPTED: "FEATURE_ACCEPTED",
  WAITING: "FEATURE_WAITING",
  RUNNING: "FEATURE_RUNNING",
  ASYNC_WAIT: "FEATURE_ASYNC_WAIT",
  MFA_REQUIRED: "FEATURE_ACTION_REQUIRED",
  INPUT_REQUIRED: "FEATURE_ACTION_REQUIRED",
}
export const isOpenOutcome = (outcome: FeatureStatusReason): boolean =>
  Object.values(openOutcomes).includes(outcome)
const readOutcome = (name: string): Behaviour => {
  const featureEnd = featureStatusReasons.find((known) => known === name || known === `FEATURE_${name}`)
  return featureEnd === undefined ? {} : { featureEnd }
}

/** No word accepts more than ten years: times must stay valid JavaScript dates. */
const foreverMs = 10 * 365 * 24 * 3_600_000
/** A body is one string, and a string has a maximum length. */
const recordsMax = 400_000
const documentsMax = 1_000

const seconds = (digits: string): number | undefined =>
  /^\d+(\.\d{1,3})?$/.test(digits) ? Math.min(Math.round(Number(digits) * 1000), foreverMs) : undefined
const count = (digits: string, max: number): number | undefined =>
  /^\d+$/.test(digits) ? Math.min(Number(digits), max) : undefined

const changing =
  (key: "heal" | "turn") =>
  (argument: string): Behaviour => {
    const [, runs, reason] = /^(\d{1,6})-([A-Z0-9_]+)$/.exec(argument) ?? []
    return runs !== undefined && reason !== undefined && isReason(reason)
      ? { [key]: { runs: Number(runs), reason } }
      : {}
  }

const timed = (key: Extract<keyof Behaviour, `${string}Ms`>) => (argument: string) =>
  given({ [key]: seconds(argument) })
const counted = (key: "records" | "documents", max: number) => (argument: string) =>
  given({ [key]: count(argument, max) })

const text =
  (key: "askedBy" | "challengeCode", more: Behaviour = {}) =>
  (argument: string) =>
    argument === "" ? {} : { [key]: argument, ...more }

/** Every word, how it is read, and what it means: what it asks for, or what its argument makes of it. */
export type Words<Asked> = ReadonlyArray<
  readonly [word: string, read: Asked | ((argument: string) => Asked), meaning: string]
>

const words: Words<Behaviour> = [
  ["ok", {}, "succeeds; any unknown word means the same"],
  ["queue-N", timed("queueMs"), "N seconds in the queue"],
  ["run-N", timed("runMs"), "N seconds of work, login included"],
  ["async-N", timed("asyncMs"), "N seconds of ASYNC_WAIT in the middle of the work"],
  [
    "end-REASON",
    (reason) => (isReason(reason) ? { end: reason } : {}),
    "ends with this status_reason (section 3.1) and its family; a reason that does not end an execution " +
      "(RUNNING, ASYNC_WAIT …) leaves it open, but execution_timeout still limits the active work",
  ],
  [
    "challenge-CODE",
    text("challengeCode", { challengeReason: "MFA_REQUIRED" }),
    "the login waits for a second factor until `code` is answered with CODE; three wrong answers end it " +
      "with INCORRECT_MFA; without customer_interaction_available it ends with " +
      "CUSTOMER_INTERVENTION_REQUIRED",
  ],
  [
    "input-CODE",
    text("challengeCode", { challengeReason: "INPUT_REQUIRED" }),
    "like challenge-CODE, but with INPUT_REQUIRED and a form with two fields: `delivery` (sms, app or " +
      "post) and `code`",
  ],
  [
    "by-FEATURE",
    text("askedBy"),
    "the challenge comes from this feature (its `producer`) after the login is accepted, or never if the " +
      "feature is not read; until the answer, this feature and later ones have no records",
  ],
  [
    "cancel-N",
    timed("cancelMs"),
    "the customer cancels N seconds after a challenge: ABORTED / USER_CANCELLED",
  ],
  ["expire-N", timed("expireMs"), "N seconds to answer a challenge (default 120)"],
  [
    "records-N",
    counted("records", recordsMax),
    `N records in total (${recordsMax} at most), spread evenly over the features`,
  ],
  [
    "partial",
    { partial: true },
    "ends with PARTIAL: the last feature fails, or a single feature is half read",
  ],
  [
    "feature-REASON",
    readOutcome,
    "the last feature's outcome is FEATURE_REASON (section 2.4); the run ends with PARTIAL (with FAILED " +
      "if it is the only feature) unless another word sets the end; an outcome that is not final is shown " +
      "while the run is working",
  ],
  ["heal-K-REASON", changing("heal"), "the first K runs of this customer and engine end with REASON"],
  [
    "turn-K-REASON",
    changing("turn"),
    "the first K runs of this customer and engine follow the other words, later ones end with REASON",
  ],
  ["noflow", { session: "unknown" }, "products are counted, but the flow session answers 404"],
  ["unstarted", { session: "unstarted" }, "products are counted, but the flow session answers 412"],
  ["neverfinal", { neverFinal: true }, "the results never become final (is_closed stays false)"],
  [
    "late-N",
    timed("lateMs"),
    "the results become final N seconds after the execution closes; until then, they have one record " +
      "that the final results do not have, and lack one that the final results have",
  ],
  [
    "attach-N",
    counted("documents", documentsMax),
    `the results name N documents (${documentsMax} at most), which can be downloaded`,
  ],
  [
    "odd",
    { odd: true },
    "one record breaks its schema, one is of an unknown family, and one has a number beyond 2^53",
  ],
  ["company", { company: true }, "the customer is a company, whatever the seed"],
  [
    "foreign-N",
    timed("foreignMs"),
    "somebody else's run of this customer and engine is in flight for N seconds after the first " +
      "start: starts answer 409 with its ids and its external id",
  ],
  [
    "parted",
    { parted: true },
    "the engine is gone when a challenge is answered: 503, and the run ends with ENGINE_UNAVAILABLE",
  ],
  ["session-token", { sessionToken: true }, "the start answers with a session_token, which has no use"],
  ["unstoppable-N", timed("unstoppableMs"), "abort answers 409 for N seconds after the start"],
  [
    "t10n-exception",
    { unreadable: true },
    "the token from this run's ticket cannot be read: a run with that token closes at once " +
      "with T10N_EXCEPTION",
  ],
  ["locked-N", timed("lockedMs"), "flow results answer 504 for N seconds after the execution closes"],
]
/** For help. */
export const behaviourWords = words.map(([word, , meaning]) => ({ word, meaning }))

/** Reads words joined by `+`. Unknown ones mean nothing; if a word appears twice, the last one counts. */
export const readerOf = <Asked extends object>(known: Words<Asked>) => {
  // By the whole word, or by what comes before its argument.
  const reads = new Map(
    known.map(([word, read]) => [typeof read === "function" ? (word.split("-")[0] ?? "") : word, read]),
  )
  const readWord = (word: string): Asked | undefined => {
    const whole = reads.get(word)
    if (typeof whole !== "function" && whole !== undefined) return whole
    const [name = "", ...argument] = word.split("-")
    const read = argument.length === 0 ? undefined : reads.get(name)
    return typeof read === "function" ? read(argument.join("-")) : undefined
  }
  return (text: string): Partial<Asked> =>
    Object.assign({}, ...text.split("+", 64).map((word) => readWord(word.trim())))
}
export const readBehaviour: (text: string) => Behaviour = readerOf(words)

// What a login does not say is drawn from the seed: minutes to hours, as in a real night.

const secondMs = 1_000
const minuteMs = 60_000

interface TimelineInput {
  readonly seed: number
  readonly application: string
  readonly customer_id: string
  readonly engine_reference: string
  /** How many runs of this customer on this engine came before. */
  readonly ordinal: number
  readonly behaviour: Behaviour
  readonly interaction: boolean
  readonly timeoutMs: number
  /** The features that will be read; absent if no word is about them. */
  readonly asked?: ReadonlyArray<string>
}

/** The login has no verdict if the run ends before its source gave one. */
const endsBeforeVerdict: ReadonlySet<StatusReason> = new Set<StatusReason>([
  "CUSTOMER_INTERVENTION_REQUIRED",
  "ACTION_TIMEOUT",
  "ACCEPTED",
  "WAITING",
  "MFA_REQUIRED",
  "INPUT_REQUIRED",
])

const loginVerdictOf = (end: StatusReason): AuthenticationStatus => {
  const code = statusCodeOf(end)
  if (code === "AUTH_ERROR" || code === "UNHANDLED_AUTH_ERROR") return end as AuthenticationStatus
  if (code === "CONFIGURATION_ERROR" || endsBeforeVerdict.has(end)) return "not-performed"
  return code === "TEMPORARY_ERROR" && end !== "INTERNAL_ERROR" ? "not-performed" : "AUTH_OK"
}

/** How the run ends by its words, including healing. */
export const endOf = (behaviour: Behaviour, ordinal: number, features = 2): StatusReason => {
  const { heal, turn, end, partial, featureEnd } = behaviour
  if (heal !== undefined && ordinal < heal.runs) return heal.reason
  if (turn !== undefined && ordinal >= turn.runs) return turn.reason
  if (end !== undefined) return end
  if (featureEnd === undefined || featureEnd === "FEATURE_COMPLETED" || isOpenOutcome(featureEnd)) {
    return partial === true ? "PARTIAL" : "COMPLETED"
  }
  return features === 1 && featureEnd !== "FEATURE_PARTIAL" ? "FAILED" : "PARTIAL"
}

/** Keyed by the sandbox's seed, so that a timeline does not reveal the answer that it waits for. */
export const challengeHash = (seed: number, code: string): string => fingerprint("challenge", seed, code)

/** Section 4.1: without a person up to three hours in the queue; with one, its turn comes within seconds. */
const seededDurations = (input: TimelineInput) => {
  const { seed, application, customer_id, engine_reference, ordinal } = input
  const draw = seeded("timeline", seed, application, customer_id, engine_reference, ordinal)
  const night = minuteMs + Math.floor(draw.unit() ** 2.5 * 178 * minuteMs)
  const day = draw.int(1, 30) * secondMs
  const runMs = draw.int(60, 540) * secondMs
  const asyncMs = draw.chance(0.12) ? draw.int(5, 45) * minuteMs : 0
  return { queueMs: input.interaction ? day : night, runMs, asyncMs }
}

const challengeOf = (input: TimelineInput, end: StatusReason): Timeline["challenge"] => {
  const expireMs = input.behaviour.expireMs ?? 2 * minuteMs
  const { challengeCode, challengeReason = "MFA_REQUIRED", askedBy, cancelMs } = input.behaviour
  if (askedBy !== undefined && input.asked?.includes(askedBy) !== true) return undefined
  const more = { expireMs, ...given({ producer: askedBy, cancelMs }) }
  if (challengeCode !== undefined) {
    return { codeHash: challengeHash(input.seed, challengeCode), reason: challengeReason, ...more }
  }
  // A run that asks forever: no answer has this hash.
  return end === "MFA_REQUIRED" || end === "INPUT_REQUIRED"
    ? { codeHash: "unanswerable", reason: end, ...more }
    : undefined
}

export const planTimeline = (input: TimelineInput): Timeline => {
  const end = endOf(input.behaviour, input.ordinal, input.asked?.length)
  const login = loginVerdictOf(end)
  const unsaid = seededDurations(input)
  const runMs = input.behaviour.runMs ?? unsaid.runMs
  // A word that sets a time sets all of it: nothing is added to a run that a test depends on.
  const quiet = input.behaviour.runMs !== undefined || input.behaviour.queueMs !== undefined
  const warmMs = login === "AUTH_OK" ? Math.min(Math.floor(runMs / 10), 5 * secondMs) : runMs
  const challenge = challengeOf(input, end)
  return {
    queueMs: end === "ACCEPTED" ? foreverMs : (input.behaviour.queueMs ?? unsaid.queueMs),
    warmMs: end === "WAITING" ? foreverMs : warmMs,
    workMs: end === "RUNNING" ? foreverMs : runMs - Math.min(warmMs, runMs),
    asyncMs: end === "ASYNC_WAIT" ? foreverMs : (input.behaviour.asyncMs ?? (quiet ? 0 : unsaid.asyncMs)),
    timeoutMs: input.timeoutMs,
    login,
    end: isOpenReason(end) ? "COMPLETED" : end,
    interaction: input.interaction,
    stillborn: false,
    ...given({ challenge }),
    unstoppableMs: input.behaviour.unstoppableMs ?? 0,
    parts: input.behaviour.parted ?? false,
  }
}

const nothingDone = { queueMs: 0, warmMs: 0, workMs: 0, asyncMs: 0, unstoppableMs: 0, parts: false }

/** The life of a run that is refused because of its parameters, their encryption or its configurations. */
export const stillbornTimeline = (end: StatusReason, timeoutMs: number): Timeline => ({
  ...nothingDone,
  timeoutMs,
  login: "not-performed",
  end,
  interaction: false,
  stillborn: true,
})
