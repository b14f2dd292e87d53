/**
 * What becomes of one assignment: a task that may be started, or a verdict that ends it before anything
 * starts, with the reason and who has to act. Pure. The checks are in the order in which a person would
 * have to act.
 */
import { Array as Arr, Effect, Redacted, Result, type Duration } from "effect"
import { given } from "../base/Schemas.ts"
import { FormCache } from "../client/EngineForms.ts"
import type { EngineFinding, Fit, FitCase, KnownEngine, SeenEngine } from "../client/EngineForms.ts"
import { checkAllSettings } from "../client/FitForms.ts"
import { cutSaid, type Findings, type Issue } from "../client/Parameters.ts"
import { isSameText, tellLoginId } from "../jobs/Assignments.ts"
import { checkHooks, keysOf, makeSecretFinder, namesSecret, secretsOfLogin } from "../jobs/HooksData.ts"
import type { Assignment, Job, JobFeature } from "../jobs/Job.ts"
import { JobInvalid, makeFindings } from "../jobs/Problem.ts"
import { keyOfReference, type ParameterSource, type SecretReference } from "../jobs/Scalars.ts"
import { Secrets, resolveReference, type SecretUnavailable } from "../jobs/Secrets.ts"
import { holdOf, type AccountBook, type Moment } from "../ledger/Accounts.ts"
import { fingerprintLogin, writtenKey, type AccountKeys } from "../privacy/Fingerprint.ts"
import { beforeStart, type Reason, type Verdict } from "../service/Ends.ts"
import { isEncrypted } from "../service/Execution.ts"
import { TaskId, type Access, type EngineReference, type RunId } from "../service/Ids.ts"
import { accountOf, holdText, isLasting, verdictOfHold } from "./LoginHold.ts"
import * as Tokens from "../tokens/TokenLogin.ts"
import type { TaskLogin, TokenShelf } from "../tokens/TokenLogin.ts"

// Warnings of a plan about a login that may still be sent: a secret written in a file, an id that is the
// login itself. Field names only, never a value.

const writtenOut = "is a secret written out in a file: use env:, file: or exec:"
export const isWrittenOut = (caution: string): boolean => caution.endsWith(writtenOut)

const cautionsOf = (
  { customer_id, login }: Assignment,
  resolved: ResolvedLogin,
  finding: EngineFinding,
): ReadonlyArray<string> => {
  if (login._tag === "Token") return []
  const secret = finding._tag === "Known" ? finding.engine.secret : undefined
  const values = resolved._tag === "Resolved" ? Redacted.value(resolved.parameters) : {}
  return Object.entries(login.parameters).flatMap(([name, source]) => {
    // A literal id was reported when the job was loaded, with its place.
    if (source._tag === "Reference")
      return Object.hasOwn(values, name) && isSameText(customer_id, values[name]) ? [tellLoginId(name)] : []
    if (source.isVariable === true) return []
    return secret?.has(name) === true && !isEncrypted(Redacted.value(source.value))
      ? [`${name} ${writtenOut}`]
      : []
  })
}

export interface Task extends Access {
  readonly task_id: TaskId
  /** Empty: the engine runs its defaults. */
  readonly features: ReadonlyArray<JobFeature>
  /** Requested features that the engine does not offer: it would silently drop them (section 4.1). */
  readonly lacking: ReadonlyArray<string>
  /** Requested features that the token does not cover: they are not asked for. */
  readonly outside: ReadonlyArray<string>
  /** What a start sends besides ids, features and the job's own settings. */
  readonly start: {
    readonly login: TaskLogin
    readonly configurations: Readonly<Record<string, unknown>>
    readonly hooks_extra_data: Readonly<Record<string, string>>
  }
  /** No command gives a value of its login: it changes only if a person changes it. */
  readonly isByHand: boolean
  /** Of its parameters before they fit a form; absent without parameters. */
  readonly written?: string
  readonly fingerprint: string
  /** The account that the login opens. */
  readonly account: AccountKeys
  readonly availability: "ready" | "unavailable"
  readonly expected: Duration.Duration
  /** Where the assignment is defined, for messages. */
  readonly source: string
}

/** A task before its engine was seen; every task begins as one. */
type UnfittedTask = Omit<Task, "lacking" | "fingerprint" | "account" | "availability">

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
  /** The time of the decision (milliseconds). */
  readonly moment: Moment
  readonly expected: (engine_reference: EngineReference) => Duration.Duration
  readonly tokens: TokenShelf
}

/** The engine, and what its forms say about this task. */
type Seen =
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
  const found = findLogin(assignment, login, grounds.tokens)
  if (found._tag === "Refused") return settle(subject, beforeStart(found.reason), found.message)
  const task: UnfittedTask = {
    ...subject,
    outside: [],
    start: { login: found, configurations, hooks_extra_data },
    isByHand:
      assignment.login._tag === "Parameters" && !Object.values(assignment.login.parameters).some(isCommand),
    ...(login._tag === "Resolved"
      ? { written: writtenKey(grounds.key, assignment, Redacted.value(login.parameters)) }
      : {}),
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
      outside: [...task.outside, ...(asked?.outside ?? [])],
      start: { ...task.start, login },
      fingerprint,
      account,
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
  const token = login.tokenized_access ? Tokens.keptToken(grounds.tokens, task, fingerprint) : undefined
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
  const refuse = (reason: Reason, message: string) => settle(subject, beforeStart(reason), message)
  switch (finding._tag) {
    case "Unknown":
      return refuse("ENGINE_UNKNOWN", "the service has no such engine: see `nightjar engines list`")
    case "Unreadable":
      return refuse("UNEXPECTED_ANSWER", `${finding.detail}; ${noLogin}`)
    case "Unusable":
      return refuse("ANSWER_UNUSABLE", `the engine's form cannot be used (${finding.why}); ${noLogin}`)
    case "Unavailable":
      return undefined
    case "Known":
      return finding.engine.details.action_required_frequency === "always"
        ? refuse("CUSTOMER_INTERVENTION_REQUIRED", "this engine needs a person in every run")
        : undefined
  }
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

// The assignments of a plan checked against the forms of their engines, grouped by engine. If an engine's
// forms turn out to be unusable only while values are checked, all its assignments get that result.

/** An assignment with what is known of its login and, if its engine was seen, of its form. */
export interface FittedAssignment {
  readonly assignment: Assignment
  readonly login: ResolvedLogin
  fit: Fit | undefined
}

/** `logins` are those of the assignments, in the same order. */
export const fitAssignments = Effect.fn("Planning.fitAssignments")(function* (
  assignments: ReadonlyArray<Assignment>,
  logins: ReadonlyArray<ResolvedLogin>,
  found: ReadonlyMap<string, EngineFinding>,
) {
  const forms = yield* FormCache
  const engines = new Map(found)
  const fitted = Arr.zipWith(assignments, logins, (assignment, login): FittedAssignment => ({
    assignment,
    login,
    fit: undefined,
  }))
  for (const [reference, own] of Map.groupBy(fitted, ({ assignment }) => assignment.engine_reference)) {
    const finding = found.get(reference)
    if (finding?._tag !== "Known") continue
    const cases = own.map(({ assignment, login }) =>
      caseOf(assignment, login._tag === "Resolved" ? login.parameters : undefined),
    )
    const answer = yield* forms.fit(finding.engine, cases)
    if ("why" in answer) engines.set(reference, answer)
    else own.forEach((one, index) => (one.fit = answer[index]))
  }
  return { engines, fitted }
})

const caseOf = (
  { features, configurations }: Pick<Assignment, "features" | "configurations">,
  parameters: FitCase["parameters"],
): FitCase => ({ features, configurations, ...given({ parameters }) })

/** A task that is about to start and the engine as it is now. */
export const fitTask = Effect.fn("Planning.fitTask")(function* ({
  engine_reference,
  features,
  start: { configurations, login },
}: Task) {
  const forms = yield* FormCache
  const finding = yield* forms.look(engine_reference)
  if (finding._tag !== "Known") return seeEngine(finding, undefined)
  const parameters = login._tag === "Parameters" ? login.parameters : undefined
  const answer = yield* forms.fit(finding.engine, [caseOf({ features, configurations }, parameters)])
  return "why" in answer ? seeEngine(answer, undefined) : seeEngine(finding, answer[0])
})

// The login parameters of a job's assignments with their secrets resolved, each reference once however many
// customers share it. A secret that cannot be resolved affects only the assignments that need it; messages
// name the reference, never a value.

export type ResolvedLogin =
  | { readonly _tag: "Resolved"; readonly parameters: Redacted.Redacted<Readonly<Record<string, unknown>>> }
  /** As in `password: env:C0001_PASSWORD: the environment has no such variable`. */
  | { readonly _tag: "Unresolved"; readonly missing: ReadonlyArray<string> }
  /** The login is a stored token. */
  | { readonly _tag: "NoParameters" }

const concurrency = 16

type Answer = Result.Result<Redacted.Redacted<string>, SecretUnavailable>

/** What every reference of some assignments resolves to. */
export type ResolvedReferences = (reference: SecretReference) => Answer | undefined

/** Each distinct reference is resolved once. */
export const resolveReferences = Effect.fn("Planning.resolveReferences")(function* (
  assignments: ReadonlyArray<Assignment>,
) {
  const { resolve } = yield* Secrets
  const distinct = new Map<string, SecretReference>()
  for (const { login } of assignments) {
    if (login._tag !== "Parameters") continue
    for (const source of Object.values(login.parameters)) {
      if (source._tag === "Reference") distinct.set(keyOfReference(source.reference), source.reference)
    }
  }
  const found = yield* Effect.forEach(
    distinct,
    ([key, reference]) => Effect.map(Effect.result(resolve(reference)), (answer) => [key, answer] as const),
    { concurrency },
  )
  const secrets: ReadonlyMap<string, Answer> = new Map(found)
  return ((reference) =>
    secrets.get(keyOfReference(reference))) satisfies ResolvedReferences as ResolvedReferences
})

/** The assignment without the parameters that only a command knows. */
export const withoutCommands = (assignment: Assignment): Assignment => {
  const { login } = assignment
  if (login._tag === "Token") return assignment
  const parameters = Object.entries(login.parameters).filter(([, source]) => !isCommand(source))
  return { ...assignment, login: { ...login, parameters: Object.fromEntries(parameters) } }
}

const isCommand = (source: ParameterSource): boolean =>
  source._tag === "Reference" && source.reference._tag === "Exec"

export const assembleLogin = ({ login }: Assignment, resolved: ResolvedReferences): ResolvedLogin => {
  if (login._tag === "Token") return { _tag: "NoParameters" }
  const missing: Array<string> = []
  const values = Object.entries(login.parameters).map(([name, source]) => {
    if (source._tag === "Literal") return [name, Redacted.value(source.value)] as const
    const answer = resolved(source.reference)
    if (answer !== undefined && Result.isSuccess(answer))
      return [name, Redacted.value(answer.success)] as const
    missing.push(`${name}: ${answer?.failure.message ?? "was not resolved"}`)
    return [name, undefined] as const
  })
  return missing.length > 0
    ? { _tag: "Unresolved", missing }
    : { _tag: "Resolved", parameters: Redacted.make(Object.fromEntries(values)) }
}

// The pairs of `hooks_extra_data` compared with every secret of a job, once all of them are resolved and
// the forms say which fields are passwords: loading could not know this. Nothing is started for a job that
// would send a secret into webhook addresses.

/** The password fields of an engine's form, in addition to what a field's name says. */
const isSecretOn = (finding: EngineFinding | undefined) => (name: string) =>
  namesSecret(name) || (finding?._tag === "Known" && finding.engine.secret.has(name))

type CheckedJob = Pick<Job, "assignments" | "hooks" | "service" | "tokens_key" | "pseudonyms">
type Engines = ReadonlyMap<string, EngineFinding>

/** Fails with JobInvalid. Anything merely suspicious was reported when the job was loaded. */
const checkPairs = Effect.fnUntraced(function* (
  job: CheckedJob,
  resolved: ResolvedReferences,
  engines: Engines,
) {
  const keys = yield* Effect.forEach(keysOf(job), ({ reference, whose }) =>
    Effect.map(resolveReference(reference), (value) => ({
      value: Redacted.value(value),
      whose,
      kept: "password" as const,
    })),
  )
  const valueOf = (reference: SecretReference): unknown => {
    const answer = resolved(reference)
    return answer !== undefined && Result.isSuccess(answer) ? Redacted.value(answer.success) : undefined
  }
  const secrets = job.assignments.flatMap((assignment) =>
    secretsOfLogin(assignment, valueOf, isSecretOn(engines.get(assignment.engine_reference))),
  )
  const findings = makeFindings()
  checkHooks(job.hooks, [...secrets, ...keys], findings)
  const problems = findings.errors()
  if (problems.length > 0) return yield* new JobInvalid({ problems, warnings: [] })
})

/** If the job has pairs, a plan has to know all of its secrets: any of them may appear there. */
export const assignmentsBehind = (
  job: Pick<CheckedJob, "assignments" | "hooks">,
  assignments: ReadonlyArray<Assignment>,
): ReadonlyArray<Assignment> => (job.hooks.length > 0 ? job.assignments : assignments)

/** The logins of `assignments`, in the same order, once their references are resolved. */
export const checkedLogins = Effect.fn("Planning.checkedLogins")(function* (
  job: CheckedJob,
  assignments: ReadonlyArray<Assignment>,
  engines: Engines,
  resolved: ResolvedReferences,
) {
  if (job.hooks.length > 0) yield* checkPairs(job, resolved, engines)
  return assignments.map((assignment) => assembleLogin(assignment, resolved))
})

/** Whether a login opened only now, such as a stored token's key, appears in the pairs of its start. */
export const holdsSecret = (
  hooks_extra_data: Readonly<Record<string, string>>,
  secrets: ReadonlyArray<string>,
): boolean => {
  const pairs = Object.entries(hooks_extra_data).flat()
  const find = makeSecretFinder(secrets.map((value) => ({ value, whose: "", kept: "password" as const })))
  return pairs.some((text) => find(text).length > 0)
}
