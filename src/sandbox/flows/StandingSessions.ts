/**
 * Sessions that exist without anybody using a widget, so that a client that pulls sessions has some to
 * pull: every ObjectId that begins with `5e55000000000000` is one of application sandbox-app-1, and its
 * last eight hex digits choose the script of what happens in it. Seconds of a script count from the first
 * read of the session; negative ones are before it.
 */
import { Struct } from "effect"
import { consentDocuments, defaultSignature, usualBrowser } from "../data/Documents.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import { endOf, planTimeline, readBehaviour, readerOf, type Words } from "../executions/Behaviour.ts"
import { askedFeatures, planResults } from "../executions/PlanResults.ts"
import type { FlowPlan, FlowSessionCreated, FlowSourcePlan, FlowStep, TakenStep } from "../state/FlowMoves.ts"
import { recordsCustomerOf, type FlowInput } from "../state/FlowTimeline.ts"
import { fingerprint, seeded, type Draw } from "../state/Reading.ts"
import { firstApplication } from "../state/SandboxState.ts"

type ScriptStep =
  | readonly [seconds: number, name: "start" | "consent" | "leave" | "cancel" | "client-cancel"]
  | readonly [seconds: number, name: "connect", engine_reference: string, words: string]

interface StandingScript {
  readonly name: string
  readonly meaning: string
  /** Words of the session itself. */
  readonly words?: string
  readonly steps: ReadonlyArray<ScriptStep>
}

const taxes = "es-tax-agency:website"
const work = "es-social-security:website"
const university = "es-university:website"
const traffic = "es-traffic:website"

const quick = "queue-1+run-30"

/** Started and consented, and what follows. */
const begun = (
  startsAt: number,
  consentsAt: number,
  ...rest: ReadonlyArray<ScriptStep>
): ReadonlyArray<ScriptStep> => [[startsAt, "start"], [consentsAt, "consent"], ...rest]

/** Quick sources connected one after another, and left, long before the first read. */
const over = (...sources: ReadonlyArray<readonly [engine: string, words?: string]>) =>
  begun(
    -900,
    -870,
    ...sources.map(
      ([engine, words = "ok"], index) => [-840 + index * 20, "connect", engine, `${quick}+${words}`] as const,
    ),
    [-700, "leave"],
  )

/** The number of a script is its position. */
const scripts: Readonly<Record<string, Omit<StandingScript, "name">>> = {
  completed: {
    meaning: "completed: taxes, work history and studies, a consent with documents, and an attachment",
    steps: over([taxes, "records-9"], [work, "records-6+attach-1"], [university]),
  },
  partial: {
    meaning:
      "partial: one source reads for 4 more minutes and gains records; for 2 more it shows a record that " +
      "the final results do not have and lacks one that they have",
    steps: begun(
      -300,
      -285,
      [-280, "connect", university, `${quick}+records-4`],
      [-270, "connect", work, "queue-0+run-510+records-20+late-120"],
      [-200, "leave"],
    ),
  },
  unstarted: { meaning: "created, never started by the customer: 412", steps: [] },
  failed: { meaning: "failed: the only source returned nothing", steps: over([taxes, "end-FAILED"]) },
  customer_cancelled: {
    meaning: "the customer cancelled while a source was being read: the records read so far remain",
    steps: begun(-600, -580, [-560, "connect", taxes, "queue-0+run-100+records-10"], [-500, "cancel"]),
  },
  timed_out: {
    meaning: "timed out: the customer gave consent and never came back",
    steps: begun(-7200, -7170),
  },
  locked: {
    meaning: "locked for 30 seconds after the first read (504); then like 0",
    words: "locked-930",
    steps: over([taxes, "records-9"], [work, "records-6"]),
  },
  never_final: {
    meaning: "partial forever: is_closed never becomes true",
    steps: over([taxes, "records-5+neverfinal"]),
  },
  company: {
    meaning: "completed: the customer is a company",
    words: "company",
    steps: over([taxes, "records-6"]),
  },
  client_cancelled: {
    meaning: "the client cancelled before the customer connected a source",
    steps: begun(-600, -580, [-500, "client-cancel"]),
  },
  system_cancelled: {
    meaning: "the platform cancelled while a source was being read",
    words: "system-120",
    steps: begun(-600, -580, [-560, "connect", taxes, "queue-0+run-300+records-9"]),
  },
  misconfigured: {
    meaning: "ended with CONFIGURATION_ERROR as soon as it was started",
    words: "broken",
    steps: [[-600, "start"]],
  },
  no_consent: {
    meaning: "completed, without a consent in its results",
    words: "noconsent",
    steps: over([traffic, "records-5"]),
  },
  documents: {
    meaning: "completed, with five attachments and those of the work history",
    steps: over([work, "records-4+attach-5"]),
  },
  odd: {
    meaning: "completed, with records that break their schema or are of an unknown family",
    steps: over([taxes, "records-4+odd"]),
  },
  large: {
    meaning: "completed with 12,000 records: every read holds the lock for 12 seconds (504)",
    steps: over([taxes, "records-12000"]),
  },
  live: {
    meaning:
      "the customer is at the consent form at the first read, consents after 60 seconds, connects " +
      "after 90, leaves after 150; final after about 5 minutes",
    steps: begun(-30, 60, [90, "connect", taxes, "queue-10+run-200+records-8"], [150, "leave"]),
  },
  second_login: {
    meaning: "completed: the first login was refused, the second one succeeded",
    steps: over([taxes, "heal-1-INCORRECT_CREDENTIALS"], [university], [taxes, "records-5"]),
  },
  empty: { meaning: "completed without any records", steps: over([taxes, "records-0"]) },
  every_family: {
    meaning: "completed: records of all features",
    steps: over(
      ["sandbox-tax:website", "records-45"],
      ["es-bank:api", "records-60"],
      ["cloud-hosting:api", "records-6"],
      ["es-utility:mobile", "records-8"],
    ),
  },
  refused: {
    meaning: "failed: the source refused the login, and the customer left",
    steps: over([taxes, "end-BLOCKED_USER"]),
  },
  abandoned: {
    meaning:
      "completed: the customer never closed the widget, which gave up half an hour after the last record",
    words: "idle-1800",
    steps: begun(-7200, -7170, [-7150, "connect", university, `${quick}+records-4`]),
  },
}
export const standingScripts: ReadonlyArray<StandingScript> = Object.entries(scripts).map(
  ([name, script]) => ({ name, ...script }),
)

// Without a script the seed decides. Most complete; some are still being read at the first read.

export const publicSources = [taxes, work, university, traffic] as const

const drawSources = (draw: Draw): ReadonlyArray<string> => {
  const first = draw.int(0, publicSources.length - 1)
  return Array.from(
    { length: draw.int(1, 3) },
    (_, index) => publicSources[(first + index) % publicSources.length] ?? "",
  )
}

const connections = (draw: Draw, from: number, ends: string): ReadonlyArray<ScriptStep> =>
  drawSources(draw).map((engine, index) => {
    const late = draw.chance(0.3) ? `+late-${draw.int(5, 300)}` : ""
    const documents = draw.chance(0.2) ? `+attach-${draw.int(1, 3)}` : ""
    const words = `queue-${draw.int(0, 20)}+run-${draw.int(10, 400)}${late}${documents}${ends}`
    return [from + index * 15, "connect", engine, words] as const
  })

/** Started this long before the first read, and left before every source of a slow one is done. */
const walked = (draw: Draw, ago: number, ends = "", last: "leave" | "cancel" = "leave") =>
  begun(-ago, 20 - ago, ...connections(draw, 40 - ago, ends), [100 - ago, last])

type Kind = readonly [
  weight: number,
  name: string,
  meaning: string,
  steps: (draw: Draw) => ReadonlyArray<ScriptStep>,
]
const unstarted: Kind = [4, "drawn_unstarted", "never started", () => []]

/** Weights are out of a hundred. */
const kinds: ReadonlyArray<Kind> = [
  [60, "drawn_completed", "completed", (draw) => walked(draw, draw.int(900, 90_000))],
  [20, "drawn_partial", "partial, then final", (draw) => walked(draw, draw.int(110, 200))],
  unstarted,
  [
    6,
    "drawn_failed",
    "failed",
    (draw) => walked(draw, draw.int(900, 9_000), `+end-${draw.pick(["FAILED", "BLOCKED_USER", "TIMEOUT"])}`),
  ],
  [
    5,
    "drawn_cancelled",
    "cancelled by the customer",
    (draw) => walked(draw, draw.int(300, 9_000), "", "cancel"),
  ],
  [5, "drawn_timed_out", "timed out", (draw) => [[-draw.int(3_600, 90_000), "start"]]],
]

const drawScript = (seed: number, number: number): StandingScript => {
  const draw = seeded("standing-session", seed, number)
  let left = draw.unit() * kinds.reduce((total, [weight]) => total + weight, 0)
  const [, name, meaning, steps] = kinds.find(([weight]) => (left -= weight) < 0) ?? unstarted
  const words = draw.chance(0.1) ? "company" : ""
  return { name, meaning, words, steps: steps(draw) }
}

const idleMs = 30 * 60_000
const secondsMax = 10 * 365 * 24 * 3600

const unsaid: FlowPlan = { idleMs, lockedMs: 0, broken: false, asksConsent: true, company: false }

const timed = (key: "idleMs" | "lockedMs" | "systemMs") => (seconds: string) =>
  /^\d{1,9}$/.test(seconds) ? { [key]: Math.min(Number(seconds), secondsMax) * 1000 } : {}

/** Every word of a session. */
export const sessionWords: Words<Partial<FlowPlan>> = [
  ["idle-N", timed("idleMs"), "the widget gives up after N seconds without customer activity (default 1800)"],
  ["locked-N", timed("lockedMs"), "flow results answer 504 for N seconds after the customer starts"],
  ["system-N", timed("systemMs"), "the platform cancels the session N seconds after the customer starts"],
  [
    "broken",
    { broken: true },
    "the session is misconfigured: it ends with CONFIGURATION_ERROR when it is started",
  ],
  ["noconsent", { asksConsent: false }, "the session asks for no consent, and its results show none"],
  ["company", { company: true }, "the customer is a company"],
]

const readWords = readerOf(sessionWords)
export const readFlowPlan = (text: string): FlowPlan => ({ ...unsaid, ...readWords(text) })

const words = sessionWords.map(([word, , meaning]) => `  ${word.padEnd(12)}${meaning}`).join("\n")
const standing = standingScripts
  .map(({ meaning }, number) => `  ${number.toString(16).padStart(8, "0")}  ${meaning}`)
  .join("\n")

export const sessionHelp = `{flows_url}/es-public-administration/v1/widget drives flow sessions:
POST creates one ({"customer_id": …, "features": […], "behaviour": …}, all optional), GET /SESSION shows
it, and POST /SESSION/STEP takes a step: start, consent, connect, answer, leave, cancel, client-cancel.
\`behaviour\` takes words joined by +:

${words}

sandbox-app-1 has sessions already, whose id is 5e55000000000000 and eight of these hex digits:

${standing}
  from 00000100 on, decided by the seed`

// A connected source follows the words and seed of an execution; a person is there, so it begins at once.

interface SourceInput {
  readonly seed: number
  /** When the customer connects it. */
  readonly at: number
  readonly created: FlowSessionCreated
  readonly engine: EngineDefinition
  readonly features: ReadonlyArray<string>
  readonly words: string
  /** How many times this session connected this engine before. */
  readonly ordinal: number
}

/** Section 8: the default of `execution_timeout`. */
const timeoutMs = 1_200_000

export const planSource = (input: SourceInput): FlowSourcePlan => {
  const { seed, at, created, engine, features, words, ordinal } = input
  const behaviour = readBehaviour(words)
  const customer_id = recordsCustomerOf(created)
  const engine_reference = engine.reference
  const asked = askedFeatures(engine, { customer_id, engine_reference, parameters: {}, features })
  const about = { seed, customer_id, engine_reference, ordinal, behaviour }
  const results = planResults({ ...about, at, asked, end: endOf(behaviour, ordinal) })
  return {
    source_id: fingerprint("flow-source", created.session_id, engine_reference, ordinal).slice(0, 16),
    engine_reference,
    timeline: planTimeline({ ...about, application: created.application, interaction: true, timeoutMs }),
    results: created.plan.company ? { ...results, company: true } : results,
  }
}

/** The features that these engines offer, each once. */
export const featuresOf = (references: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(references.flatMap((reference) => findEngine(reference)?.features ?? [])),
]

const standingPrefix = "5e55000000000000"
/** From here on, the seed chooses. Lower numbers without a script are sessions that do not exist. */
export const firstDrawnScript = 256

type StandingSessionId = `${typeof standingPrefix}${string}`

/** The id of a standing session, for jobs and simulations: 0 to 4294967295. */
export const standingSessionId = (script: number): StandingSessionId =>
  `${standingPrefix}${Math.trunc(script).toString(16).padStart(8, "0").slice(-8)}`

const numberOf = (session_id: string): number | undefined =>
  session_id.startsWith(standingPrefix) && /^[0-9a-f]{24}$/.test(session_id)
    ? Number.parseInt(session_id.slice(standingPrefix.length), 16)
    : undefined

/** What kind of session an id names under a seed; undefined if it is not a standing session. */
export const standingScriptOf = (seed: number, session_id: string): StandingScript | undefined => {
  const number = numberOf(session_id)
  if (number === undefined) return undefined
  return number < firstDrawnScript ? standingScripts[number] : drawScript(seed, number)
}

/** `ordinal`: how many steps before this one connected the same engine. */
const planStep = (
  { seed, at, created, ordinal }: Pick<SourceInput, "seed" | "at" | "created" | "ordinal">,
  [, name, what = "", words = ""]: ScriptStep,
): FlowStep | undefined => {
  switch (name) {
    case "start":
      return { _tag: name, user_ip: "198.51.100.7", ...usualBrowser }
    case "consent": {
      const documents = consentDocuments.map((document) => ({
        ...Struct.pick(document, ["document_id", "version", "hash"]),
        ...defaultSignature,
      }))
      return { _tag: name, features: created.features, documents }
    }
    case "connect": {
      const engine = findEngine(what)
      if (engine === undefined) return undefined
      const source = planSource({ seed, at, created, engine, features: created.features, words, ordinal })
      return { _tag: name, source }
    }
    default:
      return { _tag: name }
  }
}

/** How long before the customer's first step the client created the session. */
const aheadMs = 60_000

/** The session with this id as of its first read, at `at`; undefined if there is none. */
export const planStanding = (seed: number, at: number, session_id: string): FlowInput | undefined => {
  const script = standingScriptOf(seed, session_id)
  if (script === undefined) return undefined
  const engines = script.steps.flatMap(([, , engine = []]) => engine)
  const startsAt = at + (script.steps[0]?.[0] ?? 0) * 1000
  const created: FlowSessionCreated = {
    _tag: "FlowSessionCreated",
    at: Math.min(at, startsAt) - aheadMs,
    application: firstApplication.app_id,
    session_id,
    customer_id: `standing-${numberOf(session_id) ?? 0}`,
    features: featuresOf(engines.length === 0 ? ["sandbox-tax:website"] : engines),
    plan: readFlowPlan(script.words ?? ""),
  }
  const steps = script.steps.flatMap((planned, index): ReadonlyArray<TakenStep> => {
    const stepAt = at + planned[0] * 1000
    const ordinal = script.steps.slice(0, index).filter(([, , engine]) => engine === planned[2]).length
    const step = planStep({ seed, at: stepAt, created, ordinal }, planned)
    return step === undefined ? [] : [{ at: stepAt, step }]
  })
  return { created, steps }
}
