/**
 * The behaviour words: what a caller writes into `username` (joined by `+`) to say what happens to an
 * execution. One table documents every word for README and help; `readBehaviour` turns a text into what the
 * words ask for. Words that it does not know mean nothing, so that any text is a login that goes well.
 */
import { featureStatusReasons, statusReasons } from "../../contract/Vocabulary.ts"
import type { FeatureStatusReason, StatusReason } from "../../contract/Vocabulary.ts"

/** `own` words are additions of this service to those that the product's contract names. */
export const behaviourWords = [
  { word: "ok", own: false, meaning: "goes well; any unknown word means the same" },
  { word: "queue-N", own: false, meaning: "N seconds in the queue" },
  { word: "run-N", own: false, meaning: "N seconds of work, login included" },
  { word: "async-N", own: false, meaning: "N seconds of ASYNC_WAIT in the middle of the work" },
  {
    word: "end-REASON",
    own: false,
    meaning:
      "ends with that status_reason of section 3.1 and its family; a reason that does not end an execution " +
      "(RUNNING, ASYNC_WAIT …) never closes by itself, but execution_timeout still counts active work",
  },
  {
    word: "challenge-CODE",
    own: false,
    meaning:
      "the login stops for a second factor until CODE is answered in `code`; three wrong answers end it " +
      "with INCORRECT_MFA; without customer_interaction_available it ends with " +
      "CUSTOMER_INTERVENTION_REQUIRED",
  },
  {
    word: "input-CODE",
    own: true,
    meaning:
      "as challenge-CODE, but with INPUT_REQUIRED and a form of two fields: `delivery` (sms, app or post) " +
      "and `code`",
  },
  {
    word: "by-FEATURE",
    own: true,
    meaning:
      "the challenge comes from that feature once the login was accepted (its `producer`), and not at all " +
      "where the feature is not read; nothing of it and of later features is there before the answer",
  },
  {
    word: "cancel-N",
    own: true,
    meaning: "the person cancels N seconds after a challenge was raised: ABORTED / USER_CANCELLED",
  },
  { word: "expire-N", own: false, meaning: "N seconds to answer a challenge; else 120" },
  {
    word: "records-N",
    own: false,
    meaning: "N records in all, dealt to the features in turn",
  },
  {
    word: "partial",
    own: false,
    meaning: "ends with PARTIAL: the last feature fails, or half of the only one is there",
  },
  {
    word: "feature-REASON",
    own: true,
    meaning:
      "the last feature's outcome is FEATURE_REASON of section 2.4; the run ends with PARTIAL (with FAILED " +
      "where it is the only one) unless another end is said; an outcome that does not end it is shown " +
      "while the run works",
  },
  {
    word: "heal-K-REASON",
    own: true,
    meaning: "the first K runs of that customer and engine end with REASON",
  },
  {
    word: "turn-K-REASON",
    own: true,
    meaning:
      "the first K runs of that customer and engine are as the other words say, later ones end with REASON",
  },
  { word: "noflow", own: true, meaning: "products are counted, but the flow session answers 404" },
  { word: "unstarted", own: true, meaning: "products are counted, but the flow session answers 412" },
  { word: "neverfinal", own: true, meaning: "the results never become final (is_closed stays false)" },
  {
    word: "late-N",
    own: true,
    meaning:
      "the results become final N seconds after the execution closed; until then one record is there that " +
      "the final body no longer has, and one of the final body is missing",
  },
  { word: "attach-N", own: true, meaning: "N documents are referenced in the results and can be downloaded" },
  {
    word: "odd",
    own: true,
    meaning: "one record breaks its schema, one is of an unknown family and one holds a number beyond 2^53",
  },
  { word: "company", own: true, meaning: "the customer is a company, whatever the seed says" },
  {
    word: "foreign-N",
    own: true,
    meaning:
      "somebody else's run of that customer and engine is in flight for the N seconds after the first " +
      "start: starts answer 409 with its ids and its external id",
  },
  {
    word: "parted",
    own: true,
    meaning: "the engine is gone when a challenge is answered: 503, and the run ends with ENGINE_UNAVAILABLE",
  },
  { word: "session-token", own: true, meaning: "the start answers with a session_token, good for nothing" },
  { word: "unstoppable-N", own: true, meaning: "abort answers 409 in the N seconds after the start" },
  {
    word: "t10n-exception",
    own: true,
    meaning:
      "what the exchange of this run's ticket stores is unreadable: a run with that token closes at once " +
      "with T10N_EXCEPTION",
  },
  {
    word: "locked-N",
    own: true,
    meaning: "flow results answer 504 in the N seconds after the execution closed",
  },
] as const

/** What the words of one login ask for; what is absent the seed decides. Durations in milliseconds. */
export interface Behaviour {
  readonly queueMs?: number
  readonly runMs?: number
  readonly asyncMs?: number
  readonly end?: StatusReason
  readonly challengeCode?: string
  readonly challengeReason?: "MFA_REQUIRED" | "INPUT_REQUIRED"
  readonly askedBy?: string
  readonly cancelMs?: number
  readonly featureEnd?: FeatureStatusReason
  readonly sessionToken?: boolean
  readonly expireMs?: number
  readonly records?: number
  readonly partial?: boolean
  readonly heal?: { readonly runs: number; readonly reason: StatusReason }
  readonly turn?: { readonly runs: number; readonly reason: StatusReason }
  readonly session?: "unknown" | "unstarted"
  readonly neverFinal?: boolean
  readonly lateMs?: number
  readonly documents?: number
  readonly odd?: boolean
  readonly company?: boolean
  readonly foreignMs?: number
  readonly unstoppableMs?: number
  readonly parted?: boolean
  readonly lockedMs?: number
  readonly unreadable?: boolean
}

const reasons: ReadonlySet<string> = new Set(statusReasons)
const isReason = (text: string): text is StatusReason => reasons.has(text)

const openOutcomes: ReadonlySet<FeatureStatusReason> = new Set<FeatureStatusReason>([
  "FEATURE_ACCEPTED",
  "FEATURE_WAITING",
  "FEATURE_RUNNING",
  "FEATURE_ASYNC_WAIT",
  "FEATURE_ACTION_REQUIRED",
])
/** 2.4: an outcome that is none yet. */
export const isOpenOutcome = (outcome: FeatureStatusReason): boolean => openOutcomes.has(outcome)
const readOutcome = (text: string): Behaviour => {
  const featureEnd = featureStatusReasons.find((known) => known === text || known === `FEATURE_${text}`)
  return featureEnd === undefined ? {} : { featureEnd }
}

/** No word asks for more than ten years: times stay dates that JavaScript can write. */
export const foreverMs = 10 * 365 * 24 * 3_600_000
/** A body is one string, and a string has its limit. */
const recordsMax = 400_000
const documentsMax = 1_000

const seconds = (text: string): number | undefined =>
  /^\d{1,12}(\.\d{1,3})?$/.test(text) ? Math.min(Math.round(Number(text) * 1000), foreverMs) : undefined
const count = (text: string, max: number): number | undefined =>
  /^\d{1,12}$/.test(text) ? Math.min(Number(text), max) : undefined

const changing =
  (key: "heal" | "turn") =>
  (text: string): Behaviour => {
    const [, runs, reason] = /^(\d{1,6})-([A-Z0-9_]+)$/.exec(text) ?? []
    return runs !== undefined && reason !== undefined && isReason(reason)
      ? { [key]: { runs: Number(runs), reason } }
      : {}
  }

const timed =
  (key: "queueMs" | "runMs" | "asyncMs" | "expireMs" | "cancelMs" | "lateMs" | TimedOwn) =>
  (text: string) => {
    const ms = seconds(text)
    return ms === undefined ? {} : { [key]: ms }
  }
type TimedOwn = "foreignMs" | "unstoppableMs" | "lockedMs"
const counted = (key: "records" | "documents", max: number) => (text: string) => {
  const n = count(text, max)
  return n === undefined ? {} : { [key]: n }
}

const withArgument: Readonly<Record<string, (argument: string) => Behaviour>> = {
  queue: timed("queueMs"),
  run: timed("runMs"),
  async: timed("asyncMs"),
  expire: timed("expireMs"),
  cancel: timed("cancelMs"),
  late: timed("lateMs"),
  foreign: timed("foreignMs"),
  unstoppable: timed("unstoppableMs"),
  locked: timed("lockedMs"),
  records: counted("records", recordsMax),
  attach: counted("documents", documentsMax),
  end: (text) => (isReason(text) ? { end: text } : {}),
  challenge: (text) => (text === "" ? {} : { challengeCode: text, challengeReason: "MFA_REQUIRED" }),
  input: (text) => (text === "" ? {} : { challengeCode: text, challengeReason: "INPUT_REQUIRED" }),
  by: (text) => (text === "" ? {} : { askedBy: text }),
  feature: readOutcome,
  heal: changing("heal"),
  turn: changing("turn"),
}
const alone: Readonly<Record<string, Behaviour>> = {
  partial: { partial: true },
  noflow: { session: "unknown" },
  unstarted: { session: "unstarted" },
  neverfinal: { neverFinal: true },
  odd: { odd: true },
  company: { company: true },
  parted: { parted: true },
  "session-token": { sessionToken: true },
  "t10n-exception": { unreadable: true },
}

const readWord = (word: string): Behaviour => {
  if (Object.hasOwn(alone, word)) return alone[word] ?? {}
  const dash = word.indexOf("-")
  if (dash < 0) return {}
  const name = word.slice(0, dash)
  return Object.hasOwn(withArgument, name) ? (withArgument[name]?.(word.slice(dash + 1)) ?? {}) : {}
}

/** A word said twice counts as last said. */
export const readBehaviour = (text: string): Behaviour =>
  text
    .split("+")
    .slice(0, 64)
    .reduce<Behaviour>((behaviour, word) => ({ ...behaviour, ...readWord(word.trim()) }), {})
