/**
 * The behaviour words: what a caller writes into `username` (joined by `+`) to say what happens to an
 * execution. One table documents every word for README and help; `readBehaviour` turns a text into what the
 * words ask for. Words that it does not know mean nothing, so that any text is a login that goes well.
 */
import { statusReasons } from "../contract/Vocabulary.ts"
import type { StatusReason } from "../contract/Vocabulary.ts"

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
      "ends with that status_reason of section 3.1, its family with it; a reason that is no end (RUNNING, " +
      "ASYNC_WAIT …) never closes by itself, but execution_timeout still counts active work",
  },
  {
    word: "challenge-CODE",
    own: false,
    meaning:
      "the login stops for a second factor until CODE is answered in `code`; three wrong answers end it " +
      "with INCORRECT_MFA; without customer_interaction_available it ends with " +
      "CUSTOMER_INTERVENTION_REQUIRED",
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
    word: "heal-K-REASON",
    own: true,
    meaning: "the first K runs of that customer and engine end with REASON",
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
  { word: "unstoppable-N", own: true, meaning: "abort answers 409 in the N seconds after the start" },
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
  readonly expireMs?: number
  readonly records?: number
  readonly partial?: boolean
  readonly heal?: { readonly runs: number; readonly reason: StatusReason }
  readonly session?: "unknown" | "unstarted"
  readonly neverFinal?: boolean
  readonly lateMs?: number
  readonly documents?: number
  readonly odd?: boolean
  readonly foreignMs?: number
  readonly unstoppableMs?: number
  readonly parted?: boolean
  readonly lockedMs?: number
}

const reasons: ReadonlySet<string> = new Set(statusReasons)
const isReason = (text: string): text is StatusReason => reasons.has(text)

/** No word asks for more than ten years: times stay dates that JavaScript can write. */
export const foreverMs = 10 * 365 * 24 * 3_600_000
/** A body is one string, and a string has its limit. */
const recordsMax = 400_000
const documentsMax = 1_000

const seconds = (text: string): number | undefined =>
  /^\d{1,12}(\.\d{1,3})?$/.test(text) ? Math.min(Math.round(Number(text) * 1000), foreverMs) : undefined
const count = (text: string, max: number): number | undefined =>
  /^\d{1,12}$/.test(text) ? Math.min(Number(text), max) : undefined

const healing = (text: string): Behaviour => {
  const [, runs, reason] = /^(\d{1,6})-([A-Z0-9_]+)$/.exec(text) ?? []
  return runs !== undefined && reason !== undefined && isReason(reason)
    ? { heal: { runs: Number(runs), reason } }
    : {}
}

const timed = (key: "queueMs" | "runMs" | "asyncMs" | "expireMs" | "lateMs" | TimedOwn) => (text: string) => {
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
  late: timed("lateMs"),
  foreign: timed("foreignMs"),
  unstoppable: timed("unstoppableMs"),
  locked: timed("lockedMs"),
  records: counted("records", recordsMax),
  attach: counted("documents", documentsMax),
  end: (text) => (isReason(text) ? { end: text } : {}),
  challenge: (text) => (text === "" ? {} : { challengeCode: text }),
  heal: healing,
}
const alone: Readonly<Record<string, Behaviour>> = {
  partial: { partial: true },
  noflow: { session: "unknown" },
  unstarted: { session: "unstarted" },
  neverfinal: { neverFinal: true },
  odd: { odd: true },
  parted: { parted: true },
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
