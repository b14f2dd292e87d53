/**
 * What becomes of one assignment: a task that may be started, or a verdict that ends it before anything
 * starts, with the reason and who has to act. Pure. The order of the checks is the order in which a person
 * would have to act.
 */
import { Redacted } from "effect"
import { statusReasonsByCode } from "../contract/Vocabulary.ts"
import type { Assignment, JobFeature } from "../jobs/Job.ts"
import type { CredentialRejected, Outcome, WhoActs } from "../ledger/Fact.ts"
import type { RecordedAs } from "../ledger/Ledger.ts"
import type { CompiledEngine, EngineFinding } from "./EngineForms.ts"
import { checkSettings } from "./FeatureSettings.ts"
import { fingerprintLogin } from "./Fingerprint.ts"
import type { ResolvedLogin } from "./Logins.ts"
import { checkValues, fitParameters } from "./Parameters.ts"
import type { Findings, Issue } from "./Parameters.ts"

export interface Task {
  readonly task_id: string
  readonly customer_id: string
  readonly engine_reference: string
  /** Empty: the engine runs its defaults. */
  readonly features: ReadonlyArray<JobFeature>
  /** Requested features that the engine does not offer: it would drop them without a word (section 4.1). */
  readonly lacking: ReadonlyArray<string>
  /** What a start sends beside ids, features and the job's own settings. */
  readonly start: {
    readonly parameters: Redacted.Redacted<Readonly<Record<string, unknown>>>
    readonly configurations: Readonly<Record<string, unknown>>
    readonly hooks_extra_data: Readonly<Record<string, string>>
    readonly tokenized_access: boolean
  }
  readonly fingerprint: string
  /** False while no form was ever seen: `refitTask` before the start. */
  readonly fitted: boolean
  readonly availability: "ready" | "unavailable"
  readonly expected_ms: number
  /** Where the assignment stands, for messages. */
  readonly source: string
}

/** What a task is before its engine was seen; every task is one. */
export type UnfittedTask = Omit<Task, "lacking" | "fingerprint" | "fitted" | "availability">

/** An end before any start. */
export interface TaskVerdict {
  readonly task_id: string
  readonly customer_id: string
  readonly engine_reference: string
  readonly features: ReadonlyArray<JobFeature>
  readonly fingerprint?: string
  readonly outcome: Outcome
  readonly reason: string
  readonly who_acts: WhoActs
  /** For people; holds no value of a parameter. */
  readonly message: string
}

export type Decision = { readonly warnings: ReadonlyArray<string> } & (
  | { readonly _tag: "Task"; readonly task: Task }
  | { readonly _tag: "Settled"; readonly verdict: TaskVerdict }
)

export type Rejections = ReadonlyMap<string, RecordedAs<typeof CredentialRejected.Type>>

/** What every decision of a run shares. */
export interface Grounds {
  readonly run_id: string
  readonly key: Uint8Array
  readonly rejections: Rejections
  readonly expectedMs: (engine_reference: string) => number
}

export const planAssignment = (
  assignment: Assignment,
  login: ResolvedLogin,
  finding: EngineFinding,
  grounds: Grounds,
): Decision => {
  const { customer_id, engine_reference, features, configurations, hooks_extra_data, source } = assignment
  const task_id = `${grounds.run_id}/${customer_id}/${engine_reference}`
  const subject = { task_id, customer_id, engine_reference, features }
  if (
    assignment.login._tag === "Token" ||
    assignment.login.tokenized_access ||
    login._tag === "NoParameters"
  ) {
    return settle(subject, ends.tokens, "logins by token are not supported: give parameters instead")
  }
  const refusal = refuseEngine(subject, finding)
  if (refusal !== undefined) return refusal
  if (login._tag === "Unresolved") {
    return settle(subject, ends.secret, `cannot be resolved: ${login.missing.join(", ")}`)
  }
  const task: UnfittedTask = {
    ...subject,
    start: { parameters: login.parameters, configurations, hooks_extra_data, tokenized_access: false },
    expected_ms: grounds.expectedMs(engine_reference),
    source,
  }
  const decision = refitTask(task, finding, grounds)
  if (finding._tag !== "Known") return decision
  const literal = literalSecrets(assignment, finding.engine)
  return literal.length === 0 ? decision : { ...decision, warnings: [...literal, ...decision.warnings] }
}

/**
 * Decides again about a task whose engine was seen meanwhile. Fitting what is fitted already changes
 * nothing.
 */
export const refitTask = (task: UnfittedTask, finding: EngineFinding, grounds: Grounds): Decision => {
  const { task_id, customer_id, engine_reference, features } = task
  const subject = { task_id, customer_id, engine_reference, features }
  const refusal = refuseEngine(subject, finding)
  if (refusal !== undefined) return refusal
  const engine = finding._tag === "Known" ? finding.engine : undefined
  const settings = checkAllSettings(task, engine)
  const warnings = settings.warnings.map(tell)
  if (settings.errors.length > 0) {
    return settle(subject, ends.settings, tellAll(settings.errors), warnings)
  }
  const fitted = engine === undefined ? undefined : fitParameters(engine.parameters, task.start.parameters)
  const parameters = fitted?.parameters ?? task.start.parameters
  const fingerprint = fingerprintLogin(grounds.key, engine_reference, Redacted.value(parameters))
  const known = { ...subject, fingerprint }
  if (fitted !== undefined) {
    warnings.push(...fitted.warnings.map(tell))
    if (fitted.errors.length > 0) {
      return settle(known, ends.parameters, tellAll(fitted.errors), warnings)
    }
  }
  const rejected = grounds.rejections.get(fingerprint)
  if (rejected !== undefined) return settleRejected(known, rejected, warnings)
  if (engine !== undefined) warnings.push(...engine.parameters.warnings, ...engine.configurations.warnings)
  const lacking = engine === undefined ? [] : lackingFeatures(features, engine)
  return {
    _tag: "Task",
    warnings: [
      ...warnings,
      ...lacking.map((code) => `${code} is not offered by this engine: it would bring no data`),
    ],
    task: {
      ...task,
      lacking,
      start: { ...task.start, parameters },
      fingerprint,
      fitted: engine !== undefined,
      availability: finding._tag === "Known" && finding.available ? "ready" : "unavailable",
    },
  }
}

type Subject = Pick<TaskVerdict, "task_id" | "customer_id" | "engine_reference" | "features" | "fingerprint">

interface End {
  readonly outcome: Outcome
  readonly reason: string
  readonly who_acts: WhoActs
}

/** The ends before a start, as the table of ends has them. */
const ends = {
  engineUnknown: { outcome: "skipped", reason: "ENGINE_UNKNOWN", who_acts: "engineer" },
  personNeeded: { outcome: "skipped", reason: "CUSTOMER_INTERVENTION_REQUIRED", who_acts: "engineer" },
  tokens: { outcome: "failed", reason: "TOKENS_UNSUPPORTED", who_acts: "engineer" },
  secret: { outcome: "failed", reason: "SECRET_UNAVAILABLE", who_acts: "engineer" },
  settings: { outcome: "failed", reason: "BAD_CONFIGURATIONS", who_acts: "engineer" },
  parameters: { outcome: "failed", reason: "INCORRECT_PARAMETERS_FORMAT", who_acts: "engineer" },
} as const satisfies Readonly<Record<string, End>>

const settle = (
  subject: Subject,
  end: End,
  message: string,
  warnings: ReadonlyArray<string> = [],
): Decision => ({ _tag: "Settled", warnings, verdict: { ...subject, ...end, message } })

const refuseEngine = (subject: Subject, finding: EngineFinding): Decision | undefined => {
  if (finding._tag === "Unknown") {
    return settle(
      subject,
      ends.engineUnknown,
      "the service knows no such engine: see `nightjar engines list`",
    )
  }
  if (finding._tag === "Known" && finding.engine.details.action_required_frequency === "always") {
    return settle(subject, ends.personNeeded, "this engine needs a person at every run")
  }
  return undefined
}

const authErrors: ReadonlySet<string> = new Set(statusReasonsByCode.AUTH_ERROR)

const settleRejected = (
  subject: Subject & { readonly fingerprint: string },
  { at, fact }: RecordedAs<typeof CredentialRejected.Type>,
  warnings: ReadonlyArray<string>,
): Decision => {
  const whose = fact.customer_id === subject.customer_id ? "" : ` (then under customer ${fact.customer_id})`
  const message =
    `these credentials were rejected with ${fact.reason} at ${new Date(at).toISOString()}${whose} ` +
    `and are not sent again unchanged; \`nightjar credentials release ${subject.fingerprint}\` allows it`
  const who_acts = authErrors.has(fact.reason) ? "customer" : "engineer"
  return settle(subject, { outcome: "failed", reason: fact.reason, who_acts }, message, warnings)
}

const tell = ({ loc, message }: Issue): string => (loc.length === 0 ? message : `${loc.join(".")} ${message}`)

const toldMax = 20
const tellAll = (issues: ReadonlyArray<Issue>): string => {
  const told = issues.slice(0, toldMax).map(tell).join("; ")
  return issues.length > toldMax ? `${told}; and ${issues.length - toldMax} more` : told
}

const checkAllSettings = (
  { features, start }: UnfittedTask,
  engine: CompiledEngine | undefined,
): Findings => {
  const found = features.map(({ code, configurations }) =>
    checkSettings(
      code,
      configurations,
      configurations === undefined ? undefined : engine?.features.get(code)?.configurations,
    ),
  )
  if (engine !== undefined) {
    const { errors, warnings } = checkValues(engine.configurations, start.configurations)
    const under = ({ loc, message }: Issue): Issue => ({ loc: ["configurations", ...loc], message })
    found.push({ errors: errors.map(under), warnings: warnings.map(under) })
  }
  return {
    errors: found.flatMap(({ errors }) => errors),
    warnings: found.flatMap(({ warnings }) => warnings),
  }
}

const lackingFeatures = (
  features: ReadonlyArray<JobFeature>,
  engine: CompiledEngine,
): ReadonlyArray<string> => features.flatMap(({ code }) => (engine.features.has(code) ? [] : [code]))

const literalSecrets = ({ login }: Assignment, engine: CompiledEngine): ReadonlyArray<string> =>
  login._tag === "Token"
    ? []
    : Object.entries(login.parameters).flatMap(([name, source]) =>
        source._tag === "Literal" && engine.parameters.secret.has(name)
          ? [`${name} is a secret written out in a file: use env:, file: or exec:`]
          : [],
      )
