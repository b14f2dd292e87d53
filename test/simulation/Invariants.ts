/**
 * What must hold after every simulated night (promises 1 to 5, 10, 12 and 14), judged by an observer who knows what the
 * service really did, what the ledger says and what was published when. Pure: a night in, its violations out.
 */
import type { PublishedBody } from "./SimulatedPublisher.ts"
import type { ExecutionSeen } from "../../src/sandbox/admin/Truth.ts"
import { runsOf, violationsBeside, type Violation } from "./InvariantsBeside.ts"
import { neighbourApplication } from "./Neighbour.ts"
import type { NightOutcome } from "./SimulatedNight.ts"
import { anId } from "../harness/Id.ts"

const ours = (night: NightOutcome): ReadonlyArray<ExecutionSeen> =>
  night.truth.executions.filter(
    (execution) => !execution.foreign && execution.application !== neighbourApplication,
  )

const groupBy = <T>(values: Iterable<T>, keyOf: (value: T) => string | undefined) =>
  [...Map.groupBy(values, keyOf)].flatMap(([key, group]) =>
    key === undefined ? [] : [[key, group] as const],
  )

/** Intervals in which executions were open at the service, that share a key and overlap. */
const overlaps = (executions: Iterable<ExecutionSeen>): boolean => {
  const sorted = [...executions].toSorted((a, b) => a.started_at - b.started_at)
  return sorted.some((execution, index) => {
    const next = sorted[index + 1]
    return next !== undefined && next.started_at < execution.closes_at
  })
}

/** 1: an answered start is never repeated; a lost one is probed once, and a second execution is recorded. */
const startsOnce = (night: NightOutcome): ReadonlyArray<Violation> => {
  const suspected = new Set(
    night.facts.flatMap(({ fact }) => (fact._tag === "OrphanSuspected" ? [fact.external_execution_id] : [])),
  )
  const violations: Array<Violation> = []
  for (const [external, executions] of groupBy(ours(night), (one) => one.external_execution_id)) {
    if (executions.length > 2)
      violations.push({ promise: 1, what: `${external} was accepted ${executions.length} times` })
    if (executions.length === 2 && !suspected.has(external) && !isUnknown(night, external))
      violations.push({ promise: 1, what: `${external} ran twice and no orphan is recorded` })
    if (overlaps(executions)) violations.push({ promise: 1, what: `${external} was open twice at once` })
  }
  return [...violations, ...answeredOnce(night)]
}

/** Both answers were lost: the second execution is as unknown as the first, and the verdict says so. */
const isUnknown = (night: NightOutcome, external: string): boolean =>
  runsOf(night).some((run) =>
    [...run.tasks.values()].some(
      (task) =>
        task.attempts.some((attempt) => attempt.external_execution_id === external && attempt.probed) &&
        ["START_UNKNOWN", "LOGIN_UNPROVEN"].includes(task.settled?.fact.reason ?? ""),
    ),
  )

const answeredOnce = (night: NightOutcome): ReadonlyArray<Violation> => {
  const answered = new Set<string>()
  const violations: Array<Violation> = []
  for (const { fact } of night.facts) {
    if (fact._tag === "StartAnswered" && (fact.answer === "accepted" || fact.answer === "adopted"))
      answered.add(`${fact.task_id}#${fact.attempt}`)
    if (fact._tag === "StartIntended" && answered.has(`${fact.task_id}#${fact.attempt}`))
      violations.push({
        promise: 1,
        what: `${fact.task_id} attempt ${fact.attempt} was started again after its answer`,
      })
  }
  return violations
}

/** 2: somebody else's executions are never touched, and nobody else's calls reach ours. */
const foreignUntouched = (night: NightOutcome): ReadonlyArray<Violation> => [
  ...night.truth.ruleBreaks
    .filter(({ rule }) => rule === "foreign_run_touched")
    .map((broken) => ({ promise: 2, what: `foreign execution ${broken.execution_id} was touched` })),
  ...night.neighbourComplaints.map((what) => ({ promise: 2, what })),
  ...unintended(night),
]

/** What was aborted or deleted at the service, and of which the ledger has no intent. */
const unintended = (night: NightOutcome): ReadonlyArray<Violation> => {
  const intended = new Set(
    night.facts.flatMap(({ fact }) =>
      fact._tag === "AbortIntended" || fact._tag === "DeleteIntended"
        ? [`${fact._tag} ${fact.execution_id}`]
        : [],
    ),
  )
  return ours(night).flatMap(({ execution_id, aborted_at, deleted_at }) => [
    ...(aborted_at !== undefined && !intended.has(`AbortIntended ${execution_id}`)
      ? [{ promise: 2, what: `${execution_id} was aborted without an intent` }]
      : []),
    ...(deleted_at !== undefined && !intended.has(`DeleteIntended ${execution_id}`)
      ? [{ promise: 2, what: `${execution_id} was deleted without an intent` }]
      : []),
  ])
}

/** 3: one execution in flight per customer and engine. */
const oneInFlight = (night: NightOutcome): ReadonlyArray<Violation> =>
  [...groupBy(ours(night), (one) => `${one.customer_id}/${one.engine_reference}`)]
    .filter(([, executions]) => overlaps(executions))
    .map(([key]) => ({ promise: 3, what: `${key} had two executions in flight` }))

/** 4: a rejected login is not repeated once its answer was read. */
const rejectedOnce = (night: NightOutcome): ReadonlyArray<Violation> => {
  const rejectedAt = new Map<string, number>()
  const violations: Array<Violation> = []
  for (const { seq, fact } of night.facts) {
    if (fact._tag === "CredentialRejected") rejectedAt.set(fact.fingerprint, seq)
    if (fact._tag !== "StartIntended" || fact.fingerprint === undefined) continue
    if (rejectedAt.has(fact.fingerprint))
      violations.push({ promise: 4, what: `${fact.task_id} sent a rejected login again` })
  }
  // The service's own view: a login that was refused, and whose refusal reached our ledger, came back.
  const known = new Set(
    night.facts.flatMap(({ fact }) => (fact._tag === "AttemptClosed" ? [fact.execution_id] : [])),
  )
  const executions = [...ours(night)].toSorted((a, b) => a.started_at - b.started_at)
  for (const [, same] of groupBy(executions, (one) => one.login_key)) {
    const first = same.findIndex(
      (one) => one.login !== undefined && isRefusal(one.login.verdict) && one.login.at < one.closes_at + 1,
    )
    const refused = same[first]
    const again =
      first < 0
        ? undefined
        : same.slice(first + 1).find((one) => one.started_at > (refused?.closes_at ?? Infinity))
    if (
      refused !== undefined &&
      again !== undefined &&
      known.has(anId(refused.execution_id)) &&
      wasRead(night, refused, again)
    )
      violations.push({
        promise: 4,
        what: `${again.customer_id} repeated the login that ${refused.execution_id} was refused`,
      })
  }
  return violations
}

const isRefusal = (verdict: string): boolean => verdict !== "AUTH_OK" && verdict !== "not-performed"

const wasRead = (night: NightOutcome, refused: ExecutionSeen, again: ExecutionSeen): boolean => {
  const closed = night.facts.find(
    ({ fact }) => fact._tag === "AttemptClosed" && fact.execution_id === refused.execution_id,
  )
  const intended = night.facts.findLast(
    ({ fact }) => fact._tag === "StartIntended" && fact.external_execution_id === again.external_execution_id,
  )
  return closed !== undefined && intended !== undefined && closed.seq < intended.seq
}

/** 3: one execution in flight per token. */
const oneInFlightPerToken = (night: NightOutcome): ReadonlyArray<Violation> => {
  const byId = new Map(night.truth.executions.map((execution) => [execution.execution_id, execution]))
  return night.truth.tokens
    .filter(({ runs }) => overlaps(runs.flatMap((id) => byId.get(id) ?? [])))
    .map(({ token_id }) => ({ promise: 3, what: `token ${token_id} had two executions in flight` }))
}

/** A ticket is sent in once, and once more where that answer was lost. */
const exchangesMax = 2
const ticketsSpentOnce = (night: NightOutcome): ReadonlyArray<Violation> =>
  [...night.heard.exchanges]
    .filter(([, times]) => times > exchangesMax)
    .map(([execution_id, times]) => ({
      promise: 1,
      what: `the ticket of ${execution_id} was sent ${times} times`,
    }))

/** 12: no ticket and no token_key in the ledger or in a landed body. */
const secretsKept = (night: NightOutcome): ReadonlyArray<Violation> => {
  const { secrets } = night.heard
  if (secrets.size === 0) return []
  const utf8 = new TextDecoder()
  const bodies = [...night.landing.bodies.values()].flat()
  const texts = [
    ...night.facts.map(({ fact }) => JSON.stringify(fact)),
    ...bodies.map(({ meta, bytes }) => `${JSON.stringify(meta)} ${utf8.decode(bytes)}`),
  ]
  const all = texts.join("\n")
  return [...secrets].some((secret) => all.includes(secret))
    ? [{ promise: 12, what: "a ticket or a token_key is in the ledger or in a landed body" }]
    : []
}

/** 5: nothing is deleted before it is durable, verified and published. */
const deletedSafely = (night: NightOutcome): ReadonlyArray<Violation> => {
  const violations: Array<Violation> = []
  for (const execution of ours(night)) {
    const { deleted_at, execution_id } = execution
    if (deleted_at === undefined) continue
    const version = night.published.versions.findLast(
      ({ at, executions }) => at <= deleted_at && executions.has(execution_id),
    )
    if (version === undefined) {
      violations.push({
        promise: 5,
        what: `${execution_id} was deleted and no version published before holds it`,
      })
      continue
    }
    const bodies = night.landing.bodies.get(version.run_id) ?? []
    const state = bodies.some(
      ({ meta, synced }) => synced && meta.kind === "state" && meta.execution_id === execution_id,
    )
    if (!state)
      violations.push({ promise: 5, what: `${execution_id} was deleted and its last state is not landed` })
    if (!hasFinalResults(night, execution, deleted_at))
      violations.push({
        promise: 5,
        what: `${execution_id} was deleted and its final results are not published`,
      })
  }
  return violations
}

/**
 * All that the execution had retrieved, by the service's own truth, is in a version before the deletion, and no flow
 * results were taken for final that were not.
 */
const hasFinalResults = (night: NightOutcome, execution: ExecutionSeen, deleted_at: number): boolean => {
  const { session_id, retrieved = {} } = execution
  const answers = execution.results_reads.filter((reading) => reading.at <= deleted_at)
  if (answers.length > 0 && !answers.some((reading) => reading.is_closed)) return false
  const isHeld = (bodies: ReadonlyArray<PublishedBody>, family: string, count: number) =>
    bodies.some((body) => body.session_id === session_id && (body.held.get(family) ?? 0) >= count)
  return night.published.versions.some(
    ({ at, bodies }) =>
      at <= deleted_at &&
      Object.entries(retrieved).every(([family, count]) => count === 0 || isHeld(bodies, family, count)),
  )
}

/** 5, by the service's own account: nothing was deleted of which no answer had carried every record. */
const deletedRead = (night: NightOutcome): ReadonlyArray<Violation> =>
  night.truth.ruleBreaks
    .filter(({ rule, application }) => rule === "deleted_unread" && application !== neighbourApplication)
    .map(({ execution_id }) => ({ promise: 5, what: `${execution_id} was deleted unread` }))

/** 14: every record of the newest body of each session is somewhere in the tables. */
const recordsPlaced = (night: NightOutcome): ReadonlyArray<Violation> =>
  night.published.versions
    .flatMap(({ bodies }) => bodies)
    .filter(({ found, placed }) => found !== placed)
    .map(({ session_id, found, placed }) => ({
      promise: 14,
      what: `session ${session_id} holds ${found} records, ${placed} rows`,
    }))

/** The manners of the service: no session is read too fast, and no Retry-After is cut short. */
const mannersKept = (night: NightOutcome): ReadonlyArray<Violation> => {
  const broken = night.truth.ruleBreaks.filter(
    ({ rule, application }) =>
      application !== neighbourApplication &&
      (rule === "results_read_too_soon" || rule === "deleted_before_final_state_read"),
  )
  const whats = broken.map(({ rule, execution_id }) => `${rule}: ${execution_id}`)
  const early = night.tooSoon.map((request) => `asked before its Retry-After was over: ${request}`)
  return [...whats, ...early].map((what) => ({ promise: 10, what }))
}

/** A run that is over has a verdict for every task. */
const nightEnds = (night: NightOutcome): ReadonlyArray<Violation> => {
  if (night.exitCodes.length === 0) return [{ promise: 6, what: "no process finished the run" }]
  return runsOf(night).flatMap((run) =>
    [...run.tasks.values()]
      .filter((task) => task.settled === undefined)
      .map((task) => ({ promise: 6, what: `${task.planned.task_id} has no verdict` })),
  )
}

/** The promises that these observers watch over. */
export const promisesObserved: ReadonlyArray<number> = [1, 2, 3, 4, 5, 6, 10, 12, 14]

export const violationsOf = (night: NightOutcome): ReadonlyArray<Violation> => [
  ...startsOnce(night),
  ...foreignUntouched(night),
  ...oneInFlight(night),
  ...oneInFlightPerToken(night),
  ...ticketsSpentOnce(night),
  ...secretsKept(night),
  ...rejectedOnce(night),
  ...deletedSafely(night),
  ...deletedRead(night),
  ...recordsPlaced(night),
  ...mannersKept(night),
  ...nightEnds(night),
  ...violationsBeside(night),
]
