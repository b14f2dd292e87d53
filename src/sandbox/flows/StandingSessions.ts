/**
 * Sessions that exist without anybody using a widget, so that a client that pulls sessions has some to
 * pull: every ObjectId that begins with `5e55000000000000` is one of application sandbox-app-1, and its
 * last eight hex digits choose the script of what happens in it. Seconds of a script count from the first
 * read of the session; negative ones are before it.
 */
import { Struct } from "effect"
import { consentDocuments, defaultSignature } from "../data/Documents.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import { endOf, planTimeline, readBehaviour } from "../executions/Behaviour.ts"
import { askedFeatures, planResults } from "../executions/PlanResults.ts"
import type { FlowPlan, FlowSessionCreated, FlowSourcePlan, FlowStep, TakenStep } from "../state/FlowMoves.ts"
import { recordsCustomerOf } from "../state/FlowTimeline.ts"
import { fingerprint, seeded, type Draw } from "../state/Reading.ts"
import { firstApplication } from "../state/SandboxState.ts"

type ScriptStep =
  | readonly [seconds: number, name: "start" | "consent" | "leave" | "cancel" | "client-cancel"]
  | readonly [seconds: number, name: "connect", engine_reference: string, words: string]

const at = (...step: ScriptStep): ScriptStep => step

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

/** Started and consented, the sources connected one after another, and left, long before the first read. */
const over = (
  ...sources: ReadonlyArray<readonly [engine: string, words: string]>
): ReadonlyArray<ScriptStep> => [
  at(-900, "start"),
  at(-870, "consent"),
  ...sources.map(([engine, words], index) => [-840 + index * 20, "connect", engine, words] as const),
  at(-700, "leave"),
]

const quick = "queue-1+run-30"

/** The number of a script is its position. */
const scripts: Readonly<Record<string, Omit<StandingScript, "name">>> = {
  completed: {
    meaning: "completed: taxes, work history and studies, a consent with documents, and an attachment",
    steps: over([taxes, `${quick}+records-9`], [work, `${quick}+records-6+attach-1`], [university, quick]),
  },
  partial: {
    meaning:
      "partial: one source reads for 4 more minutes and gains records; for 2 more it shows a record that " +
      "the final results do not have and lacks one that they have",
    steps: [
      at(-300, "start"),
      at(-285, "consent"),
      at(-280, "connect", university, `${quick}+records-4`),
      at(-270, "connect", work, "queue-0+run-510+records-20+late-120"),
      at(-200, "leave"),
    ],
  },
  unstarted: { meaning: "created, never started by the customer: 412", steps: [] },
  failed: {
    meaning: "failed: the only source returned nothing",
    steps: over([taxes, `${quick}+end-FAILED`]),
  },
  customer_cancelled: {
    meaning: "the customer cancelled while a source was being read: the records read so far remain",
    steps: [
      at(-600, "start"),
      at(-580, "consent"),
      at(-560, "connect", taxes, "queue-0+run-100+records-10"),
      at(-500, "cancel"),
    ],
  },
  timed_out: {
    meaning: "timed out: the customer gave consent and never came back",
    steps: [at(-7200, "start"), at(-7170, "consent")],
  },
  locked: {
    meaning: "locked for 30 seconds after the first read (504); then like 0",
    words: "locked-930",
    steps: over([taxes, `${quick}+records-9`], [work, `${quick}+records-6`]),
  },
  never_final: {
    meaning: "partial forever: is_closed never becomes true",
    steps: over([taxes, `${quick}+records-5+neverfinal`]),
  },
  company: {
    meaning: "completed: the customer is a company",
    words: "company",
    steps: over([taxes, `${quick}+records-6`]),
  },
  client_cancelled: {
    meaning: "the client cancelled before the customer connected a source",
    steps: [at(-600, "start"), at(-580, "consent"), at(-500, "client-cancel")],
  },
  system_cancelled: {
    meaning: "the platform cancelled while a source was being read",
    words: "system-120",
    steps: [at(-600, "start"), at(-580, "consent"), at(-560, "connect", taxes, "queue-0+run-300+records-9")],
  },
  misconfigured: {
    meaning: "ended with CONFIGURATION_ERROR as soon as it was started",
    words: "broken",
    steps: [at(-600, "start")],
  },
  no_consent: {
    meaning: "completed, without a consent in its results",
    words: "noconsent",
    steps: over([traffic, `${quick}+records-5`]),
  },
  documents: {
    meaning: "completed, with five attachments and those of the work history",
    steps: over([work, `${quick}+records-4+attach-5`]),
  },
  odd: {
    meaning: "completed, with records that break their schema or are of an unknown family",
    steps: over([taxes, `${quick}+records-4+odd`]),
  },
  large: {
    meaning: "completed with 12,000 records: every read holds the lock for 12 seconds (504)",
    steps: over([taxes, `${quick}+records-12000`]),
  },
  live: {
    meaning:
      "the customer is at the consent form at the first read, consents after 60 seconds, connects " +
      "after 90, leaves after 150; final after about 5 minutes",
    steps: [
      at(-30, "start"),
      at(60, "consent"),
      at(90, "connect", taxes, "queue-10+run-200+records-8"),
      at(150, "leave"),
    ],
  },
  second_login: {
    meaning: "completed: the first login was refused, the second one succeeded",
    steps: over(
      [taxes, `${quick}+heal-1-INCORRECT_CREDENTIALS`],
      [university, quick],
      [taxes, `${quick}+records-5`],
    ),
  },
  empty: {
    meaning: "completed without any records",
    steps: over([taxes, `${quick}+records-0`]),
  },
  every_family: {
    meaning: "completed: records of all features",
    steps: over(
      ["sandbox-tax:website", `${quick}+records-45`],
      ["es-bank:api", `${quick}+records-60`],
      ["cloud-hosting:api", `${quick}+records-6`],
      ["es-utility:mobile", `${quick}+records-8`],
    ),
  },
  refused: {
    meaning: "failed: the source refused the login, and the customer left",
    steps: over([taxes, `${quick}+end-BLOCKED_USER`]),
  },
  abandoned: {
    meaning:
      "completed: the customer never closed the widget, which gave up half an hour after the last record",
    words: "idle-1800",
    steps: [at(-7200, "start"), at(-7170, "consent"), at(-7150, "connect", university, `${quick}+records-4`)],
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
const walked = (
  draw: Draw,
  ago: number,
  ends = "",
  last: "leave" | "cancel" = "leave",
): ReadonlyArray<ScriptStep> => [
  [-ago, "start"],
  [-ago + 20, "consent"],
  ...connections(draw, -ago + 40, ends),
  [-ago + 100, last],
]

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

/** Every word of a session, what it means, and what it changes: a time in seconds, or the plan itself. */
export const sessionWords: ReadonlyArray<
  readonly [word: string, read: keyof FlowPlan | Partial<FlowPlan>, meaning: string]
> = [
  ["idle-N", "idleMs", "the widget gives up after N seconds without customer activity (default 1800)"],
  ["locked-N", "lockedMs", "flow results answer 504 for N seconds after the customer starts"],
  ["system-N", "systemMs", "the platform cancels the session N seconds after the customer starts"],
  [
    "broken",
    { broken: true },
    "the session is misconfigured: it ends with CONFIGURATION_ERROR when it is started",
  ],
  ["noconsent", { asksConsent: false }, "the session asks for no consent, and its results show none"],
  ["company", { company: true }, "the customer is a company"],
]

const readWord = (word: string): Partial<FlowPlan> => {
  const seconds = /(?<=^[a-z]+-)\d{1,9}$/.exec(word)?.[0]
  const shown = seconds === undefined ? word : word.replace(seconds, "N")
  const read = sessionWords.find(([known]) => known === shown)?.[1]
  if (typeof read === "object") return read
  return read === undefined || seconds === undefined
    ? {}
    : { [read]: Math.min(Number(seconds), secondsMax) * 1000 }
}

/** Unknown words mean nothing; if a word appears twice, the last one counts. */
export const readFlowPlan = (text: string): FlowPlan =>
  text
    .split("+")
    .slice(0, 64)
    .reduce<FlowPlan>((plan, word) => ({ ...plan, ...readWord(word.trim()) }), unsaid)

const words = sessionWords.map(([word, , meaning]) => `  ${word.padEnd(12)}${meaning}`).join("\n")
const standing = standingScripts
  .map(({ meaning }, number) => `  ${number.toString(16).padStart(8, "0")}  ${meaning}`)
  .join("\n")

export const sessionHelp = `{flows_url}/es-public-administration/v1/widget drives flow sessions:
POST creates one ({"customer_id": …, "features": […], "behaviour": …}, all optional), GET /SESSION shows
it, and POST /SESSION/STEP takes a step: start, consent, connect, answer, leave, cancel, client-cancel.
\`behaviour\` takes words joined by +:

${words}

Sessions whose id is 5e55000000000000 and eight of these hex digits already exist:

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

const scriptOf = (seed: number, number: number): StandingScript | undefined =>
  number < firstDrawnScript ? standingScripts[number] : drawScript(seed, number)

/** What kind of session an id names under a seed; undefined if it is not a standing session. */
export const standingScriptOf = (seed: number, session_id: string): StandingScript | undefined => {
  const number = numberOf(session_id)
  return number === undefined ? undefined : scriptOf(seed, number)
}

interface Planning {
  readonly seed: number
  readonly created: FlowSessionCreated
  readonly connections: Map<string, number>
}

const planStep = (
  { seed, created, connections }: Planning,
  at: number,
  [, name, what = "", words = ""]: StandingScript["steps"][number],
) => {
  switch (name) {
    case "start":
      return {
        _tag: name,
        user_ip: "198.51.100.7",
        user_agent: "Mozilla/5.0 (X11; Linux x86_64) Sandbox/1.0",
        origin: "https://widget.sandbox.invalid",
      } satisfies FlowStep
    case "consent": {
      const documents = consentDocuments.map((document) => ({
        ...Struct.pick(document, ["document_id", "version", "hash"]),
        ...defaultSignature,
      }))
      return { _tag: name, features: created.features, documents } satisfies FlowStep
    }
    case "connect": {
      const engine = findEngine(what)
      if (engine === undefined) return undefined
      const ordinal = connections.get(what) ?? 0
      connections.set(what, ordinal + 1)
      const source = planSource({ seed, at, created, engine, features: created.features, words, ordinal })
      return { _tag: name, source } satisfies FlowStep
    }
    default:
      return { _tag: name } satisfies FlowStep
  }
}

interface StandingPlan {
  readonly created: FlowSessionCreated
  readonly steps: ReadonlyArray<TakenStep>
}

/** How long before the customer's first step the client created the session. */
const aheadMs = 60_000

/** The session with this id as of its first read, at `at`; undefined if there is none. */
export const planStanding = (seed: number, at: number, session_id: string): StandingPlan | undefined => {
  const script = standingScriptOf(seed, session_id)
  if (script === undefined) return undefined
  const engines = script.steps.flatMap(([, name, what]) =>
    name === "connect" && what !== undefined ? [what] : [],
  )
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
  const planning: Planning = { seed, created, connections: new Map() }
  const steps = script.steps.flatMap((planned): ReadonlyArray<TakenStep> => {
    const stepAt = at + planned[0] * 1000
    const step = planStep(planning, stepAt, planned)
    return step === undefined ? [] : [{ at: stepAt, step }]
  })
  return { created, steps }
}
