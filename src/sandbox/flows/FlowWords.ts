/**
 * The behaviour words of a flow session: what the code that creates one through the widget writes into
 * `behaviour` (joined by `+`). What happens to a source is set in its login, with the words of executions.
 */
import type { FlowPlan } from "../state/FlowEvent.ts"

export const sessionWords = [
  {
    word: "idle-N",
    meaning: "the widget gives up after N seconds without customer activity (default 1800)",
  },
  { word: "locked-N", meaning: "flow results answer 504 for N seconds after the customer starts" },
  { word: "system-N", meaning: "the platform cancels the session N seconds after the customer starts" },
  {
    word: "broken",
    meaning: "the session is misconfigured: it ends with CONFIGURATION_ERROR when it is started",
  },
  { word: "noconsent", meaning: "the session asks for no consent, and its results show none" },
  { word: "company", meaning: "the customer is a company" },
] as const

const idleMs = 30 * 60_000
const secondsMax = 10 * 365 * 24 * 3600

const unsaid: FlowPlan = { idleMs, lockedMs: 0, broken: false, asksConsent: true, company: false }

const alone: ReadonlyMap<string, Partial<FlowPlan>> = new Map([
  ["broken", { broken: true }],
  ["noconsent", { asksConsent: false }],
  ["company", { company: true }],
])
const timed: ReadonlyMap<string, keyof FlowPlan> = new Map([
  ["idle", "idleMs"],
  ["locked", "lockedMs"],
  ["system", "systemMs"],
] as const)

const readWord = (word: string): Partial<FlowPlan> => {
  const [, name = "", seconds = ""] = /^([a-z]+)-(\d{1,9})$/.exec(word) ?? []
  const key = timed.get(name)
  if (key !== undefined) return { [key]: Math.min(Number(seconds), secondsMax) * 1000 }
  return alone.get(word) ?? {}
}

/** Unknown words mean nothing; if a word appears twice, the last one counts. */
export const readFlowPlan = (text: string): FlowPlan =>
  text
    .split("+")
    .slice(0, 64)
    .reduce<FlowPlan>((plan, word) => ({ ...plan, ...readWord(word.trim()) }), unsaid)
