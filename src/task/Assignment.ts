/**
 * What becomes of one assignment: a task that may be started, or a verdict that ends it before anything
 * starts, with the reason and who has to act. Pure. The checks are in the order in which a person would
 * have to act.
 */
import type { Duration } from "effect"
import { Redacted } from "effect"
import { TaskId } from "../service/Ids.ts"
import type { Access, EngineReference, RunId } from "../service/Ids.ts"
import { beforeStart } from "../service/Ends.ts"
import type { Reason, Verdict } from "../service/Ends.ts"
import type { Assignment, JobFeature } from "../jobs/Job.ts"
import { holdOf } from "../ledger/Accounts.ts"
import type { AccountBook, Moment } from "../ledger/Accounts.ts"
import { cautionsOf } from "./Cautions.ts"
import type { EngineFinding, Fit, KnownEngine, SeenEngine } from "../client/EngineForms.ts"
import { checkAllSettings } from "../client/FitForms.ts"
import { fingerprintLogin } from "../privacy/Fingerprint.ts"
import type { AccountKeys } from "../privacy/Fingerprint.ts"
import { accountOf, holdText, isLasting, verdictOfHold } from "./LoginHold.ts"
import type { ResolvedLogin } from "./Logins.ts"
import { cutSaid } from "../client/Parameters.ts"
import type { Findings, Issue } from "../client/Parameters.ts"
import * as Tokens from "../tokens/TokenLogin.ts"
import type { TaskLogin, TokenShelf } from "../tokens/TokenLogin.ts"

export interface Task extends Access {
  readonly task_id: TaskId
  /** Empty: the engine runs its defaults. */
  readonly features: ReadonlyArray<JobFeature>
  /** Requested features that the engine does not offer: it would silently drop them (section 4.1). */
  readonly lacking: ReadonlyArray<string>
  /** What a start sends besides ids, features and the job's own settings. */
  readonly start: {
    readonly login: TaskLogin
    readonly configurations: Readonly<Record<string, unknown>>
    readonly hooks_extra_data: Readonly<Record<string, string>>
  }
  /** No command gives a value of its login: it changes only if a person changes it. */
  readonly isByHand: boolean
  readonly fingerprint: string
  /** The account that the login opens. */
  readonly account: AccountKeys
  /** False while no form has been seen: `refitTask` before the start. */
  readonly fitted: boolean
  readonly availability: "ready" | "unavailable"
  readonly expected: Duration.Duration
  /** Where the assignment is defined, for messages. */
  readonly source: string
}

/** A task before its engine was seen; every task begins as one. */
export type UnfittedTask = Omit<Task, "lacking" | "fingerprint" | "account" | "fitted" | "availability">

/** An end before any start. */
export interface TaskVerdict extends Access, Verdict {
  readonly task_id: TaskId
  readonly features: ReadonlyArray<JobFeature>
  readonly fingerprint?: string
  readonly message: string
}

export type Decision = { readonly warnings: ReadonlyArray<string> } & (
  | { readonly _tag: "Task"; readonly task: Task }
  | { readonly _tag: "Settled"; readonly verdict: TaskVerdict }
)

/** What every decision of a run shares. */
export interface Grounds {
  readonly run_id: RunId
  readonly key: Uint8Array
  readonly accounts: AccountBook
  /** The time of the decision (milliseconds), and how long an execution may be open unseen. */
  readonly moment: Moment
  readonly expected: (engine_reference: EngineReference) => Duration.Duration
  /** Absent if the job has no token store. */
  readonly tokens?: TokenShelf
}

/** The engine, and what its forms say about this task. */
export type Seen =
  | { readonly finding: KnownEngine; readonly fit: Fit }
  | { readonly finding: Exclude<EngineFinding, KnownEngine>; readonly fit?: undefined }

/** Without a fit, nothing is known about the forms: the engine is checked again before a start. */
export const seeEngine = (finding: EngineFinding, fit: Fit | undefined): Seen => {
  if (finding._tag !== "Known") return { finding }
  return fit === undefined ? { finding: { _tag: "Unavailable" } } : { finding, fit }
}

export const planAssignment = (
  assignment: Assignment,
  login: ResolvedLogin,
  seen: Seen,
  grounds: Grounds,
): Decision => {
  const { finding } = seen
  const { customer_id, engine_reference, features, configurations, hooks_extra_data, source } = assignment
  const task_id = TaskId.make(`${grounds.run_id}/${customer_id}/${engine_reference}`)
  const subject = { task_id, customer_id, engine_reference, features }
  const refusal = refuseEngine(subject, finding)
  if (refusal !== undefined) return refusal
  const found = findLogin(assignment, login, grounds.tokens ?? Tokens.closedShelf)
  if (found._tag === "Refused") return settle(subject, beforeStart(found.reason), found.message)
  const task: UnfittedTask = {
    ...subject,
    start: { login: found, configurations, hooks_extra_data },
    isByHand:
      assignment.login._tag === "Parameters" &&
      !Object.values(assignment.login.parameters).some(
        (one) => one._tag === "Reference" && one.reference._tag === "Exec",
      ),
    expected: grounds.expected(engine_reference),
    source,
  }
  const decision = refitTask(task, seen, grounds)
  const cautions = cautionsOf(assignment, login, finding)
  return cautions.length === 0 ? decision : { ...decision, warnings: [...cautions, ...decision.warnings] }
}

/** Decides again about a task whose engine has been seen meanwhile. Fitting again changes nothing. */
export const refitTask = (task: UnfittedTask, { finding, fit }: Seen, grounds: Grounds): Decision => {
  const { task_id, customer_id, engine_reference, features } = task
  const subject = { task_id, customer_id, engine_reference, features }
  const refusal = refuseEngine(subject, finding)
  if (refusal !== undefined) return refusal
  const engine = finding._tag === "Known" ? finding.engine : undefined
  const { configurations } = task.start
  const settings = fit?.settings ?? checkAllSettings({ features, configurations })
  const warnings = settings.warnings.map(tell)
  if (settings.errors.length > 0) {
    return settle(subject, beforeStart("BAD_CONFIGURATIONS"), tellAll(settings.errors), warnings)
  }
  const { login, fingerprint, found } = fitLogin(task, fit?.login, grounds)
  const account = accountOf(task, login, { engine, fingerprint, ...grounds })
  const known = { ...subject, fingerprint }
  warnings.push(...found.warnings.map(tell))
  if (found.errors.length > 0)
    return settle(known, beforeStart("INCORRECT_PARAMETERS_FORMAT"), tellAll(found.errors), warnings)
  const hold = holdOf(grounds.accounts.of(account), account, grounds.moment)
  if (hold !== undefined && isLasting(hold))
    return settle(known, verdictOfHold(hold), holdText(hold, customer_id), warnings)
  const asked = login._tag === "Token" ? Tokens.narrowFeatures(features, login.token) : undefined
  if (asked !== undefined) {
    warnings.push(...asked.outside.map(tellOutside))
    if (asked.features.length === 0 && features.length > 0)
      return settle(known, beforeStart("TOKEN_FEATURES"), noFeatureLeft, warnings)
  }
  const wanted = asked?.features ?? features
  const lacking = engine === undefined ? [] : lackingFeatures(wanted, engine)
  return {
    _tag: "Task",
    warnings: [
      ...warnings,
      ...lacking.map((code) => `${code} is not offered by this engine: it would return no data`),
    ],
    task: {
      ...task,
      features: wanted,
      lacking,
      start: { ...task.start, login },
      fingerprint,
      account,
      fitted: engine !== undefined,
      availability: finding._tag === "Known" && finding.available ? "ready" : "unavailable",
    },
  }
}

type Found = TaskLogin | { readonly _tag: "Refused"; readonly reason: Reason; readonly message: string }

const findLogin = (assignment: Assignment, login: ResolvedLogin, shelf: TokenShelf): Found => {
  if (assignment.login._tag === "Token") {
    const named = Tokens.namedToken(shelf, assignment.login.name, assignment)
    return "token" in named ? { _tag: "Token", token: named.token } : { _tag: "Refused", ...named }
  }
  const { tokenized_access } = assignment.login
  if (tokenized_access && !shelf.isOpen) return { _tag: "Refused", ...Tokens.noStore }
  if (login._tag === "Resolved") return { _tag: "Parameters", parameters: login.parameters, tokenized_access }
  // A customer with a token no longer needs parameters.
  const token = tokenized_access ? Tokens.keptToken(shelf, assignment, undefined) : undefined
  if (token !== undefined) return { _tag: "Token", token }
  const missing = login._tag === "Unresolved" ? login.missing.join(", ") : "the job gives no parameters"
  return { _tag: "Refused", reason: "SECRET_UNAVAILABLE", message: `cannot be resolved: ${missing}` }
}

const nothingFound: Findings = { errors: [], warnings: [] }

/** The login as it will be sent: parameters that fit the form, or the token that was made with them. */
const fitLogin = (task: UnfittedTask, fitted: Fit["login"], grounds: Grounds) => {
  const { login } = task.start
  if (login._tag === "Token")
    return { login, fingerprint: Tokens.tokenFingerprint(grounds.key, login.token), found: nothingFound }
  const parameters = fitted?.parameters ?? login.parameters
  const fingerprint = fingerprintLogin(grounds.key, task.engine_reference, Redacted.value(parameters))
  const token = login.tokenized_access
    ? Tokens.keptToken(grounds.tokens ?? Tokens.closedShelf, task, fingerprint)
    : undefined
  if (token === undefined)
    return { login: { ...login, parameters }, fingerprint, found: fitted ?? nothingFound }
  // A login that is not known to be a different one counts as this one: if the token was refused, it is not
  // sent either.
  const ofToken: TaskLogin = { _tag: "Token", token: { ...token, fingerprint }, parameters }
  return { login: ofToken, fingerprint, found: nothingFound }
}

const tellOutside = (code: string): string =>
  `${code} is outside the token's features and is not asked for; a new token could include it`
const noFeatureLeft =
  "the token covers none of the features: revoke it with `nightjar tokens revoke`, then log in with " +
  "parameters again"

type Subject = Pick<TaskVerdict, "task_id" | "customer_id" | "engine_reference" | "features" | "fingerprint">

const settle = (
  subject: Subject,
  end: Verdict,
  message: string,
  warnings: ReadonlyArray<string> = [],
): Decision => ({ _tag: "Settled", warnings, verdict: { ...subject, ...end, message } })

const noLogin = "no login is sent without its form: report this to the service's support"

const refuseEngine = (subject: Subject, finding: EngineFinding): Decision | undefined => {
  if (finding._tag === "Unknown") {
    return settle(
      subject,
      beforeStart("ENGINE_UNKNOWN"),
      "the service has no such engine: see `nightjar engines list`",
    )
  }
  if (finding._tag === "Unreadable") {
    return settle(subject, beforeStart("UNEXPECTED_ANSWER"), `${finding.detail}; ${noLogin}`)
  }
  if (finding._tag === "Unusable") {
    const message = `the engine's form cannot be used (${finding.why}); ${noLogin}`
    return settle(subject, beforeStart("ANSWER_UNUSABLE"), message)
  }
  if (finding._tag === "Known" && finding.engine.details.action_required_frequency === "always") {
    const message = "this engine needs a person in every run"
    return settle(subject, beforeStart("CUSTOMER_INTERVENTION_REQUIRED"), message)
  }
  return undefined
}

const tell = ({ loc, message }: Issue): string =>
  loc.length === 0 ? message : `${cutSaid(loc.join("."))} ${message}`

const toldMax = 20
const tellAll = (issues: ReadonlyArray<Issue>): string => {
  const told = issues.slice(0, toldMax).map(tell).join("; ")
  return issues.length > toldMax ? `${told}; and ${issues.length - toldMax} more` : told
}

const lackingFeatures = (
  features: ReadonlyArray<JobFeature>,
  { details }: SeenEngine,
): ReadonlyArray<string> => {
  const offered = new Set(details.features.map(({ code }) => code))
  return features.flatMap(({ code }) => (offered.has(code) ? [] : [code]))
}
