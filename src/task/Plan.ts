/**
 * What a run will start and what it will not, decided before anything starts: pure. `nightjar plan` shows
 * exactly this, and `nightjar run` executes exactly this. Every assignment becomes one task or one verdict,
 * in the order of the assignments; tasks that must not be in flight together are listed.
 */
import { Redacted } from "effect"
import { given } from "../base/Schemas.ts"
import { isoDay, sumOf } from "../base/Text.ts"
import type { EngineFinding } from "../client/EngineForms.ts"
import { namesSecret } from "../jobs/HooksData.ts"
import type { Assignment, Job } from "../jobs/Job.ts"
import { subjectOf, type RunState, type TaskState } from "../ledger/RunState.ts"
import { keyedPlace } from "../privacy/Fingerprint.ts"
import type { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { TaskId, accessKey, customerKey, sessionKey } from "../service/Ids.ts"
import type { CustomerId, EngineReference, RunId, SessionId } from "../service/Ids.ts"
import { isWrittenOut, planAssignment, seeEngine } from "./Assignment.ts"
import type { FittedAssignment, Grounds, Task, TaskVerdict } from "./Assignment.ts"
import type { EndingToken, StoredToken } from "../tokens/StoredToken.ts"
import { daysLeft, endsSoon, expiredToken, type TokenShelf } from "../tokens/TokenLogin.ts"

/** A flow session that a customer ran alone: only read, nothing is executed. */
export interface SessionTask {
  readonly task_id: TaskId
  readonly session_id: SessionId
  readonly customer_id?: CustomerId | undefined
}

/** The same warning for many assignments is shown once. */
export interface PlanWarning {
  readonly engine_reference: EngineReference
  readonly message: string
  /** Where it appears first, and how many assignments it concerns. */
  readonly source: string
  readonly count: number
}

/** Tasks that run one after the other. */
export interface Conflict {
  readonly why: "same_customer_and_engine" | "same_customer_and_source" | "same_credentials"
  readonly task_ids: ReadonlyArray<TaskId>
}

export interface Plan {
  readonly run_id: RunId
  readonly tasks: ReadonlyArray<Task>
  /** Never started. */
  readonly settled: ReadonlyArray<TaskVerdict>
  readonly sessions: ReadonlyArray<SessionTask>
  readonly warnings: ReadonlyArray<PlanWarning>
  /** Tokens that log in here and expire within 14 days. */
  readonly expiring: ReadonlyArray<EndingToken>
  /** Tokens that have expired, of tasks that log in with their parameters instead. */
  readonly expired: ReadonlyArray<EndingToken>
  readonly conflicts: ReadonlyArray<Conflict>
}

export interface PlanInput {
  readonly fitted: ReadonlyArray<FittedAssignment>
  readonly sessions: Job["sessions"]
  /** An engine that is missing here counts as one that cannot be reached now. */
  readonly engines: ReadonlyMap<string, EngineFinding>
  readonly grounds: Grounds
}

const unseen: EngineFinding = { _tag: "Unavailable" }

export const planTasks = ({ fitted, sessions, engines, grounds }: PlanInput): Plan => {
  const { run_id, tokens } = grounds
  const tasks: Array<Task> = []
  const settled: Array<TaskVerdict> = []
  const warnings: Array<Omit<PlanWarning, "count">> = []
  for (const { assignment, login, fit } of fitted) {
    const { engine_reference, source } = assignment
    const finding = engines.get(engine_reference) ?? unseen
    const decision = planAssignment(assignment, login, seeEngine(finding, fit), grounds)
    if (decision._tag === "Task") tasks.push(decision.task)
    else settled.push(decision.verdict)
    const ofEngine = finding._tag === "Known" ? finding.engine.warnings : []
    for (const message of [...decision.warnings, ...ofEngine])
      warnings.push({ engine_reference, message, source })
  }
  const expiring = tasks.flatMap((task) => expiringToken(task, tokens))
  for (const { token, source } of expiring)
    warnings.push({
      engine_reference: token.engine_reference,
      message: tellExpiring(token, tokens.now),
      source,
    })
  const conflicts = findConflicts(tasks)
  return {
    run_id,
    tasks,
    settled,
    sessions: sessions.map((session) => planSession(run_id, session)),
    warnings: alikeOnce(warnings),
    expiring: expiring.map(({ task_id, token }) => ({ task_id, token })),
    expired: tasks.flatMap((task) => {
      const token = expiredToken(tokens, task)
      return token === undefined ? [] : [{ task_id: task.task_id, token }]
    }),
    conflicts,
  }
}

const expiringToken = ({ task_id, source, start: { login } }: Task, { now }: TokenShelf) =>
  login._tag === "Token" && endsSoon(login.token, now) ? [{ task_id, source, token: login.token }] : []

const tellExpiring = (token: StoredToken, now: number): string =>
  `its stored token expires on ${isoDay(token.expires_at)}, in ${daysLeft(token, now)} days`

const planSession = (run_id: RunId, { session_id, customer_id }: Job["sessions"][number]): SessionTask => {
  const task_id = TaskId.make(`${run_id}/${sessionKey({ session_id })}`)
  return { task_id, session_id, ...given({ customer_id }) }
}

/** By engine, each in the order in which it came up first. */
const alikeOnce = (warnings: ReadonlyArray<Omit<PlanWarning, "count">>): ReadonlyArray<PlanWarning> =>
  [...Map.groupBy(warnings, ({ engine_reference }) => engine_reference).values()]
    .flatMap((ofEngine) => [...Map.groupBy(ofEngine, ({ message }) => message).values()])
    .flatMap((same) => same.slice(0, 1).map((first) => ({ ...first, count: same.length })))

/** How many secrets of logins are written out in files; undefined if none. */
export const writtenOutIn = ({ warnings }: Pick<Plan, "warnings">): number | undefined =>
  sumOf(warnings.filter(({ message }) => isWrittenOut(message)).map(({ count }) => count)) || undefined

type ConflictingTask = Pick<Task, "task_id" | "customer_id" | "engine_reference" | "account">

export const findConflicts = (all: ReadonlyArray<ConflictingTask>): ReadonlyArray<Conflict> => {
  const alike = (keyOf: (task: ConflictingTask) => string) =>
    [...Map.groupBy(all, keyOf).values()].filter(({ length }) => length > 1)
  const sameCustomer = alike(customerKey).map((own): Conflict => {
    const isOneEngine = own.every(({ engine_reference }) => engine_reference === own[0]?.engine_reference)
    return { why: isOneEngine ? "same_customer_and_engine" : "same_customer_and_source", ...idsOf(own) }
  })
  const told = new Set(sameCustomer.map(({ task_ids }) => task_ids.join("\n")))
  const sameLogin = alike(({ account }) => account.account)
    .map((own): Conflict => ({ why: "same_credentials", ...idsOf(own) }))
    .filter(({ task_ids }) => !told.has(task_ids.join("\n")))
  return [...sameCustomer, ...sameLogin]
}

const idsOf = (tasks: ReadonlyArray<ConflictingTask>) => ({ task_ids: tasks.map(({ task_id }) => task_id) })

// In which order tasks come: pure. Those that earlier runs had no time for come first, in the order in which
// they were left: a night that is always too short works through all customers in turn.

const isCarried = ({ settled, attempts }: TaskState): boolean => {
  if (settled?.fact.outcome !== "unfinished") return false
  const { reason } = settled.fact
  return reason === "DEADLINE_REACHED" || reason === "RUN_DRAINED" || attempts.at(-1)?.abort === "deadline"
}

/** The subjects (`subjectOf`) that come first, next one first; `runs` are earlier ones, the oldest first. */
export const carriedOver = (runs: ReadonlyArray<RunState>): ReadonlyArray<string> => {
  const carried = new Set<string>()
  for (const run of runs)
    for (const task of run.tasks.values()) {
      const subject = subjectOf(task)
      carried.delete(subject)
      if (isCarried(task)) carried.add(subject)
    }
  return [...carried]
}

/** Those of the subjects that come first, in their order, then the others in theirs. */
export const inLine = <A>(
  all: ReadonlyArray<A>,
  nameOf: (one: A) => string,
  first: ReadonlyArray<string>,
): ReadonlyArray<A> => {
  const places = new Map(first.map((subject, place) => [subject, place]))
  const placeOf = (one: A) => places.get(nameOf(one)) ?? first.length
  return all.toSorted((a, b) => placeOf(a) - placeOf(b))
}

/** The keyed hash with which nobody but the output folder finds an order again. */
interface OrderedBy {
  readonly key: Uint8Array
  /** Each run has another order, so that nobody is always the last one. */
  readonly run_id: RunId
}

const inKeyedOrder = <A>(all: ReadonlyArray<A>, nameOf: (one: A) => string, { key, run_id }: OrderedBy) =>
  all
    .map((one) => ({ one, place: keyedPlace(key, run_id, nameOf(one)) }))
    .toSorted((a, b) => (a.place < b.place ? -1 : 1))
    .map(({ one }) => one)

/**
 * What a job names, in the order in which it is started, read and deleted: its own, unless the tables have
 * pseudonyms. Their times, and the features that the service repeats, would tell a reader of the job file
 * whose rows they are.
 */
export const namedInOrder = (
  { assignments, sessions, pseudonyms }: Pick<Job, "assignments" | "sessions" | "pseudonyms">,
  by: OrderedBy,
): Pick<Job, "assignments" | "sessions"> => {
  if (pseudonyms === undefined) return { assignments, sessions }
  const alike = assignments.map((one) => ({
    ...one,
    features: one.features.toSorted((a, b) => (a.code < b.code ? -1 : 1)),
  }))
  return {
    assignments: inKeyedOrder(alike, accessKey, by),
    sessions: inKeyedOrder(sessions, sessionKey, by),
  }
}

// The values that a job logs in with, registered as secrets before the first call to the service, so that an
// echo is blanked; and the names in the job, which are no secrets even if somebody logs in with one.

/** A key of a mapping may be a value with a misplaced colon: only what looks like a name is one. */
const isName = (name: string): boolean => /^[A-Za-z][\w.-]{0,63}$/.test(name)

const namesOf = ({ customer_id, engine_reference, features, configurations, login }: Assignment) => [
  customer_id,
  engine_reference,
  ...features.flatMap((feature) => [feature.code, ...Object.keys(feature.configurations ?? {})]),
  ...Object.keys(configurations),
  ...(login._tag === "Token" ? [login.name] : Object.keys(login.parameters).filter(isName)),
]

/** References are registered when they are resolved; this covers the values in the job and its files. */
export const holdLogins = (
  known: KnownSecrets,
  { name, sources }: Pick<Job, "name" | "sources">,
  assignments: ReadonlyArray<Assignment>,
): void => {
  known.name([name, ...sources.flatMap((source) => [source.name, source.final, ...source.records])])
  for (const assignment of assignments) {
    known.name(namesOf(assignment))
    if (assignment.login._tag === "Token") continue
    for (const [parameter, source] of Object.entries(assignment.login.parameters))
      if (source._tag === "Literal") known.hold(source.value, namesSecret(parameter) ? "password" : "login")
  }
}

/** The forms say which fields are passwords, in addition to what a field's name says. */
export const holdPasswords = (
  known: KnownSecrets,
  assignments: ReadonlyArray<Assignment>,
  engines: ReadonlyMap<string, EngineFinding>,
): void => {
  for (const { engine_reference, login } of assignments) {
    const finding = engines.get(engine_reference)
    if (finding?._tag !== "Known" || login._tag === "Token") continue
    for (const [parameter, source] of Object.entries(login.parameters))
      if (source._tag === "Literal" && finding.engine.secret.has(parameter))
        known.hold(Redacted.value(source.value), "password")
  }
}
