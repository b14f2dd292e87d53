/**
 * From the facts of a run to its state: a pure fold, one fact after another in the ledger's order, whatever
 * their clocks said. A state is never changed: further facts create a new one, which shares what they do
 * not affect.
 */
import { Struct } from "effect"
import type { AttemptState, Deletion, RunState, Stages, TaskState } from "./RunState.ts"
import type { At, BodiesLost, Fact, Pruned, Recorded, StartIntended, TaskPlanned } from "./Fact.ts"
import type { RunEnded, RunHeld, RunPublished, RunStarted } from "./RunFacts.ts"
import { given } from "../base/Schemas.ts"
import { formerOf, loginKeysOf } from "../privacy/Fingerprint.ts"
import { builtInSources, withEarlier } from "../service/FlowResults.ts"
import type { SessionId } from "../service/Ids.ts"

/** The stored token that logs in, and what it does not cover; both absent if there is nothing to say. */
export const tokenUse = ({ token_id, outside }: Pick<AttemptState, "token_id" | "outside">) =>
  given({ token_id, outside })

/** The login as it was sent; that somebody wrote it out matters only before it is. */
const ofRequest = ({ fingerprint, login, ...intended }: typeof StartIntended.Type) => ({
  ...loginKeysOf({
    fingerprint,
    account: login && { ...login, former: formerOf(login, login.former ?? []), isByHand: false },
  }),
  ...Struct.pick(intended, ["token_id", "outside", "holds_account", "worker", "max_wait"]),
  ...Struct.pick(intended, ["results_off", "service"]),
})

const newAttempt = (intended: typeof StartIntended.Type, at: number): AttemptState => ({
  ...Struct.pick(intended, ["attempt", "external_execution_id"]),
  ...ofRequest(intended),
  intended_at: at,
  probed: false,
  orphanSuspected: false,
  drained: false,
})

/** Sent once more. Until its own answer is known, it may have had an effect, whatever an earlier one said. */
const startAgain = (
  { results_off, ...attempt }: AttemptState,
  { results_off: isOffNow, ...intended }: typeof StartIntended.Type,
): AttemptState => ({
  ...Struct.omit(attempt, ["answer", "account", "token_id", "outside", "holds_account", "worker", "service"]),
  ...ofRequest(intended),
  // Either request may be the one that ran.
  ...given({ results_off: results_off && isOffNow }),
  probed: attempt.probed || intended.probe,
})

/** So many ids of one session are remembered: a service that gives it a new one each time is not followed. */
const sessionsBeforeMax = 3

/** Once a session is known, it stays known, and so does what it was called before. */
const calledSession = (
  { session_id: before, sessions_before = [] }: AttemptState,
  session_id: SessionId | undefined = before,
): Pick<AttemptState, "session_id" | "sessions_before"> => {
  if (before === undefined || session_id === before) return { session_id }
  const others = [before, ...sessions_before.filter((id) => id !== session_id && id !== before)]
  return { session_id, sessions_before: others.slice(0, sessionsBeforeMax) }
}

/** The result of a poll. */
const told = (
  attempt: AttemptState,
  fact: Extract<Fact, { _tag: "AttemptObserved" | "AttemptClosed" }>,
): AttemptState => ({
  ...attempt,
  status_code: fact.status_code,
  status_reason: fact.status_reason,
  authentication_status: fact.authentication_status,
  ...calledSession(attempt, fact.session_id),
})

const foldAttempt = (
  attempt: AttemptState,
  fact: Extract<Fact, { attempt: number }>,
  place: { readonly seq: number; readonly at: number },
): AttemptState => {
  switch (fact._tag) {
    case "StartAnswered": {
      const { answer, execution_id, session_id } = fact
      // A request has one answer: earlier versions also wrote one for a probe that was never sent.
      if (attempt.answer !== undefined) return attempt
      const answered = { ...attempt, answer: fact }
      return answer === "accepted" || answer === "adopted"
        ? { ...answered, accepted_at: place.at, execution_id, ...calledSession(attempt, session_id) }
        : answered
    }
    case "OrphanSuspected":
      return { ...attempt, orphanSuspected: true }
    case "AttemptDrained": {
      const { kept: _, ...rest } = attempt
      return { ...rest, drained: true, ...given({ proof: fact.proof }) }
    }
    case "AttemptDisowned":
      return { ...attempt, disowned: true }
    case "AttemptFound":
      return { ...attempt, service: fact.service }
    case "AttemptKept":
      // The newest fact counts: an execution that is kept after all no longer counts as drained.
      return { ...attempt, kept: fact, drained: false }
    case "AttemptObserved":
      return { ...told(attempt, fact), seen_at: place.at }
    case "AbortIntended":
      // Another one, by a later process, shows no more than the first.
      return { ...attempt, ...(attempt.abort === undefined && { seen_at: place.at }), abort: fact.why }
    case "AttemptClosed":
      return { ...told(attempt, fact), closed: { ...place, fact } }
    default:
      return attempt
  }
}

const foldDeletion = (
  before: Deletion | undefined,
  fact: Extract<Fact, { _tag: "DeleteIntended" | "DeleteAnswered" }>,
  at: number,
): Deletion =>
  fact._tag === "DeleteIntended"
    ? { asked_at: at, landed_sha256: fact.landed_sha256, outcome: "pending" }
    : {
        asked_at: before?.asked_at ?? at,
        landed_sha256: before?.landed_sha256 ?? "",
        http_status: fact.http_status,
        ...given({ deleted_at: fact.outcome === "pending" ? undefined : at }),
        outcome: fact.outcome,
      }

/** Folds the facts of one run that follow `before`; undefined if they contain no beginning. */
export const foldRun = (facts: Iterable<Recorded>, before?: RunState): RunState | undefined => {
  let started: At<typeof RunStarted.Type> | undefined = before && {
    seq: before.sequence,
    at: before.started_at,
    fact: before.started,
  }
  let published = before?.published
  let held: At<typeof RunHeld.Type> | undefined = before?.held
  let interim: RunState["interim"] = before?.interim
  let accepted = before?.accepted
  let forgotten = before?.forgotten
  let ended = before?.ended
  let stages = before?.stages ?? {}
  let sources = before?.sources ?? builtInSources
  let newest = before?.newest ?? 0
  const tasks = new Map(before?.tasks)
  for (const { seq, at, fact } of facts) {
    newest = seq
    stages = foldStages(stages, { at, fact }, ended !== undefined)
    if (fact._tag === "RunStarted") started = { seq, at: fact.began_at ?? at, fact }
    else if (fact._tag === "RunPublished") {
      const { receipts, ...told } = fact
      published = { seq, at, fact: told }
      for (const [task_id, task] of withReceipts(tasks, receipts)) tasks.set(task_id, task)
      held = undefined
      interim = undefined
    } else if (fact._tag === "InterimPublished") interim = { seq, at, fact }
    else if (fact._tag === "RunHeld") {
      held = { seq, at, fact }
      interim = undefined
    } else if (fact._tag === "RunAccepted") accepted = true
    else if (fact._tag === "FactForgotten") forgotten = true
    else if (fact._tag === "OutcomePublished") accepted = undefined
    else if (fact._tag === "RunEnded") ended = endedBy(ended, at, fact)
    else if (fact._tag === "ResultsSourcesSet") sources = withEarlier(fact.sources, sources)
    else if (fact._tag === "RunResumed") ended = undefined
    else if (fact._tag === "TaskPlanned") tasks.set(fact.task_id, planTask(tasks.get(fact.task_id), fact, at))
    else if ("task_id" in fact && fact.task_id !== undefined) {
      const task = tasks.get(fact.task_id)
      if (task !== undefined) tasks.set(fact.task_id, evolve(task, { seq, at, fact }))
    }
  }
  if (started === undefined) return undefined
  const { seq: sequence, at: started_at, fact } = started
  const gated = given({ held, interim, accepted, forgotten })
  return { started: fact, started_at, sequence, newest, tasks, sources, published, ...gated, stages, ended }
}

/** The tasks that change: each attempt has its receipt of the newest publication, or none. */
const withReceipts = (
  tasks: ReadonlyMap<string, TaskState>,
  receipts: (typeof RunPublished.Type)["receipts"],
): ReadonlyArray<readonly [string, TaskState]> => {
  const whole = new Map(
    receipts.flatMap((one) => (one.whole === true ? [[one.execution_id, one.landed_sha256] as const] : [])),
  )
  const found = ({ execution_id }: AttemptState) => execution_id && whole.get(execution_id)
  return [...tasks].flatMap(([task_id, task]) => {
    if (task.attempts.every((attempt) => attempt.receipt === found(attempt))) return []
    const attempts = task.attempts.map((attempt) => {
      const { receipt: _, ...rest } = attempt
      return { ...rest, ...given({ receipt: found(attempt) }) }
    })
    return [[task_id, { ...task, attempts }] as const]
  })
}

/** What a run that ended before only adds later, when it is collected, does not move its end. */
const endedBy = (before: RunState["ended"], at: number, fact: typeof RunEnded.Type): RunState["ended"] => ({
  at: before?.at ?? at,
  kept: 0,
  ...Struct.omit(fact, ["_tag", "run_id"]),
})

const foldStages = (
  stages: Stages,
  { at, fact }: { readonly at: number; readonly fact: Fact },
  isOver: boolean,
): Stages => {
  if (fact._tag === "RunResumed") return { ...stages, resumed: at }
  if (isOver) return fact._tag === "RunPublished" ? { ...stages, collected: at } : stages
  if (fact._tag === "TaskSettled") return { ...stages, executed: at }
  if (fact._tag === "RunPublished") return { ...stages, published: at }
  return fact._tag === "DeleteAnswered" ? { ...stages, deleted: at } : stages
}

export const planTask = (
  known: TaskState | undefined,
  planned: typeof TaskPlanned.Type,
  at: number,
): TaskState =>
  known === undefined
    ? {
        planned,
        planned_at: at,
        attempts: [],
        results: [],
        attachments: [],
        settled: undefined,
        attemptsBefore: 0,
      }
    : { ...known, planned }

/**
 * The only way in which a task changes, but for its receipts: in the process that works on it, and for
 * whoever reads its facts.
 */
export const evolve = (task: TaskState, { fact, ...place }: Recorded): TaskState => {
  const { attempts } = task
  switch (fact._tag) {
    case "StartIntended": {
      const last = attempts.at(-1)
      return {
        ...withoutWait(task),
        attempts:
          last?.attempt === fact.attempt
            ? attempts.with(-1, startAgain(last, fact))
            : [...attempts, newAttempt(fact, place.at)],
        settled: undefined,
      }
    }
    case "ResultsRead":
      return { ...task, results: [...task.results, { ...place, fact }] }
    case "AttachmentRead": {
      const others = task.attachments.filter(
        (known) => known.session_id !== fact.session_id || known.attachment_id !== fact.attachment_id,
      )
      return { ...task, attachments: [...others, fact] }
    }
    case "AnswerRefused":
      return { ...task, refused: [...(task.refused ?? []), fact] }
    case "TicketDropped":
    case "TokenStored":
    case "TokenExpiring":
    case "TokenDropped":
      return { ...task, tokens: [...(task.tokens ?? []), fact] }
    case "TaskSettled": {
      // A refused start may have been asked to wait: a resumed run obeys. After an end the wait was ours.
      const isPutOff = fact.outcome === "unfinished" && attempts.at(-1)?.closed === undefined
      return {
        ...(isPutOff ? task : withoutWait(task)),
        settled: { ...place, fact },
        attemptsBefore: attempts.length,
      }
    }
    case "TaskWaits": {
      if (task.settled !== undefined && task.settled.fact.outcome !== "unfinished") return task
      const waits = { until: Date.parse(fact.until), at: place.at, ...given({ isAsked: fact.asked }) }
      // After an end, the next attempt is promised instead of a verdict.
      const counted = Math.min(task.attemptsBefore, attempts.length - 1)
      return attempts.at(-1)?.closed === undefined
        ? { ...task, waits }
        : { ...task, waits, settled: undefined, attemptsBefore: counted }
    }
    case "DeleteIntended":
    case "DeleteAnswered": {
      const index = attempts.findIndex(({ execution_id }) => execution_id === fact.execution_id)
      return withAttempt(task, index, (attempt) => ({
        ...attempt,
        deletion: foldDeletion(attempt.deletion, fact, place.at),
      }))
    }
    case "BodiesLost":
      return readAnew(task, fact, place)
    case "LoginJudged":
      return task
    default: {
      if (!("attempt" in fact)) return task
      const index = attempts.findIndex(({ attempt }) => attempt === fact.attempt)
      const folded = withAttempt(task, index, (attempt) => foldAttempt(attempt, fact, place))
      if (fact._tag !== "AttemptClosed") return folded
      // An end that came after the last verdict needs a verdict of its own, and counts for it.
      const attemptsBefore = Math.min(task.attemptsBefore, index < 0 ? Infinity : index)
      return { ...folded, settled: undefined, attemptsBefore }
    }
  }
}

/** As if the results of the execution or session had never been read; the newest one decides its task. */
const readAnew = (
  task: TaskState,
  fact: typeof BodiesLost.Type,
  place: { readonly seq: number; readonly at: number },
): TaskState => {
  const index = task.attempts.findIndex(({ attempt }) => attempt === fact.attempt)
  const isOther = (one: { readonly execution_id?: string }) => one.execution_id !== fact.execution_id
  const unread: TaskState = {
    ...withAttempt(task, index, (attempt) => {
      const { closed, receipt: _, proof: _proof, kept: _kept, ...rest } = attempt
      if (closed === undefined || fact.landed === undefined) return attempt
      return { ...rest, closed: { ...place, fact: { ...closed.fact, landed: fact.landed } }, drained: false }
    }),
    results: task.results.filter((read) => isOther(read.fact)),
    ...given({ refused: task.refused?.filter(isOther) }),
    lost: [...(task.lost ?? []), ...fact.bodies],
  }
  if (index < task.attempts.length - 1) return unread
  return {
    ...withoutWait(unread),
    settled: undefined,
    attemptsBefore: Math.min(task.attemptsBefore, Math.max(0, index)),
  }
}

const withoutWait = (task: TaskState): TaskState => {
  const { waits: _, ...rest } = task
  return rest
}

/** A fact about an unknown attempt changes nothing. */
const withAttempt = (
  task: TaskState,
  index: number,
  change: (attempt: AttemptState) => AttemptState,
): TaskState => {
  const attempt = task.attempts[index]
  return attempt === undefined ? task : { ...task, attempts: task.attempts.with(index, change(attempt)) }
}

/** A run from outside; `ended` is undefined until its end is published. */
export interface RunHeader extends At<typeof RunStarted.Type> {
  readonly ended: RunState["ended"]
  /** When something was last added to it: its end, or what was collected after that. */
  readonly newest_at: number
}

export const foldHeaders = (rows: ReadonlyArray<Recorded>): ReadonlyArray<RunHeader> => {
  const headers = new Map<string, RunHeader>()
  const ends = new Map<string, RunHeader["ended"]>()
  for (const { seq, at, fact } of rows) {
    if (fact._tag === "RunStarted")
      headers.set(fact.run_id, { seq, at, fact, ended: undefined, newest_at: at })
    else if (fact._tag === "RunEnded") ends.set(fact.run_id, endedBy(ends.get(fact.run_id), at, fact))
    else if (fact._tag === "RunResumed" || fact._tag === "OutcomePublished") {
      const header = headers.get(fact.run_id)
      if (header === undefined) continue
      if (fact._tag === "RunResumed") ends.delete(fact.run_id)
      headers.set(fact.run_id, { ...header, ended: ends.get(fact.run_id), newest_at: at })
    }
  }
  return [...headers.values()]
}

export const foldPruned = (rows: ReadonlyArray<Recorded>): Pruned => {
  const [landing, attachments] = [new Map<string, number>(), new Map<string, number>()]
  for (const { at, fact } of rows)
    if (fact._tag === "LandingPruned") landing.set(fact.run_id, at)
    else if (fact._tag === "AttachmentsPruned") attachments.set(fact.run_id, at)
  return { landing, attachments }
}
