/**
 * From the facts of a run to its state: a pure fold, one fact after another in the ledger's order, whatever
 * their clocks said. A state is never changed: further facts create a new one, which shares what they do
 * not affect.
 */
import { builtInSources, withEarlier } from "../service/ResultsSource.ts"
import { emptyAttempt, foldAttempt, startAgain } from "./AttemptFold.ts"
import { foldDeletion } from "./Deletion.ts"
import type { Fact, Recorded, TaskPlanned } from "./Fact.ts"
import type { RunEnded, RunHeld, RunStarted } from "./RunFacts.ts"
import type { At, AttemptState, RunState, Stages, TaskState } from "./RunState.ts"

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
  let ended = before?.ended
  let stages = before?.stages ?? {}
  let sources = before?.sources ?? builtInSources
  let newest = before?.newest ?? 0
  const tasks = new Map(before?.tasks)
  for (const { seq, at, fact } of facts) {
    newest = seq
    stages = foldStages(stages, { at, fact }, ended !== undefined)
    if (fact._tag === "RunStarted") started = { seq, at, fact }
    else if (fact._tag === "RunPublished") {
      published = { seq, at, fact }
      held = undefined
      interim = undefined
    } else if (fact._tag === "InterimPublished") interim = { seq, at, fact }
    else if (fact._tag === "RunHeld") {
      held = { seq, at, fact }
      interim = undefined
    } else if (fact._tag === "RunAccepted") accepted = true
    else if (fact._tag === "OutcomePublished") accepted = undefined
    else if (fact._tag === "RunEnded") ended = endedBy(ended, { at, fact })
    else if (fact._tag === "ResultsSourcesSet") sources = withEarlier(fact.sources, sources)
    else if (fact._tag === "RunResumed") ended = undefined
    else if (fact._tag === "TaskPlanned") tasks.set(fact.task_id, planTask(tasks.get(fact.task_id), fact, at))
    else if ("task_id" in fact && fact.task_id !== undefined) {
      const task = tasks.get(fact.task_id)
      if (task !== undefined) tasks.set(fact.task_id, foldTask(task, fact, { seq, at }))
    }
  }
  if (started === undefined) return undefined
  const { seq: sequence, at: started_at, fact } = started
  const gated = {
    ...(held === undefined ? {} : { held }),
    ...(interim === undefined ? {} : { interim }),
    ...(accepted === undefined ? {} : { accepted }),
  }
  return { started: fact, started_at, sequence, newest, tasks, sources, published, ...gated, stages, ended }
}

/** What a run that ended before only adds later, when it is collected, does not move its end. */
export const endedBy = (
  before: RunState["ended"],
  { at, fact: { exit_code, leftovers, kept = 0, changes } }: Omit<At<typeof RunEnded.Type>, "seq">,
): RunState["ended"] => ({
  at: before?.at ?? at,
  exit_code,
  leftovers,
  kept,
  ...(changes === undefined ? {} : { changes }),
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

const planTask = (known: TaskState | undefined, planned: typeof TaskPlanned.Type, at: number): TaskState =>
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

const foldTask = (
  task: TaskState,
  fact: Fact,
  place: { readonly seq: number; readonly at: number },
): TaskState => {
  const { attempts } = task
  switch (fact._tag) {
    case "StartIntended": {
      const last = attempts.at(-1)
      return {
        ...task,
        attempts:
          last?.attempt === fact.attempt
            ? attempts.with(-1, startAgain(last, fact))
            : [...attempts, emptyAttempt(fact, place.at)],
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
    case "TaskSettled":
      return { ...task, settled: { ...place, fact }, attemptsBefore: attempts.length }
    case "DeleteIntended":
    case "DeleteAnswered": {
      const index = attempts.findIndex(({ execution_id }) => execution_id === fact.execution_id)
      return withAttempt(task, index, (attempt) => ({
        ...attempt,
        deletion: foldDeletion(attempt.deletion, fact, place.at),
      }))
    }
    case "LoginJudged":
      return task
    default: {
      if (!("attempt" in fact)) return task
      const index = attempts.findIndex(({ attempt }) => attempt === fact.attempt)
      const folded = withAttempt(task, index, (attempt) => foldAttempt(attempt, fact, place))
      // An end that came after the last verdict needs a verdict of its own.
      return fact._tag === "AttemptClosed" ? { ...folded, settled: undefined } : folded
    }
  }
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
