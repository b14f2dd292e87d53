/**
 * From the facts of a run to its state: a pure fold, one fact after the other in the ledger's order, whatever
 * their clocks said.
 */
import { builtInSources, withEarlier } from "../contract/ResultsSource.ts"
import { emptyAttempt, foldAttempt } from "./AttemptFold.ts"
import { foldDeletion } from "./Deletion.ts"
import type { Fact, Recorded, RunStarted, TaskPlanned } from "./Fact.ts"
import type { At, RunState, TaskDraft } from "./RunState.ts"

/** Folds the facts of one run; undefined when they hold no beginning. */
export const foldRun = (facts: Iterable<Recorded>): RunState | undefined => {
  let started: At<typeof RunStarted.Type> | undefined
  let published: RunState["published"]
  let ended: RunState["ended"]
  let sources = builtInSources
  const tasks = new Map<string, TaskDraft>()
  for (const { seq, at, fact } of facts) {
    if (fact._tag === "RunStarted") started = { seq, at, fact }
    else if (fact._tag === "RunPublished") published = { seq, at, fact }
    else if (fact._tag === "RunEnded") {
      const { exit_code, leftovers, kept = 0 } = fact
      ended = { at, exit_code, leftovers, kept }
    } else if (fact._tag === "ResultsSourcesSet") sources = withEarlier(fact.sources, sources)
    else if (fact._tag === "RunResumed") ended = undefined
    else if (fact._tag === "TaskPlanned") planTask(tasks, fact, at)
    else if ("task_id" in fact) {
      const task = tasks.get(fact.task_id)
      if (task !== undefined) foldTask(task, fact, { seq, at })
    }
  }
  if (started === undefined) return undefined
  const { seq: sequence, at: started_at, fact } = started
  return { started: fact, started_at, sequence, tasks, sources, published, ended }
}

const planTask = (tasks: Map<string, TaskDraft>, fact: typeof TaskPlanned.Type, at: number) => {
  const known = tasks.get(fact.task_id)
  if (known !== undefined) known.planned = fact
  else
    tasks.set(fact.task_id, {
      planned: fact,
      planned_at: at,
      attempts: [],
      results: [],
      attachments: [],
      settled: undefined,
      attemptsBefore: 0,
    })
}

const foldTask = (task: TaskDraft, fact: Fact, place: { readonly seq: number; readonly at: number }) => {
  const { at } = place
  switch (fact._tag) {
    case "StartIntended": {
      const last = task.attempts.at(-1)
      if (last?.attempt === fact.attempt) {
        // Until its own answer is known, this request may have had an effect, whatever an earlier one was
        // told.
        last.answer = undefined
        last.fingerprint = fact.fingerprint
        if (fact.token_id === undefined) delete last.token_id
        else last.token_id = fact.token_id
        last.probed = last.probed || fact.probe
      } else task.attempts.push(emptyAttempt(fact, at))
      task.settled = undefined
      return
    }
    case "ResultsRead":
      task.results.push({ ...place, fact })
      return
    case "AttachmentRead":
      task.attachments = task.attachments.filter(
        (known) => known.session_id !== fact.session_id || known.attachment_id !== fact.attachment_id,
      )
      task.attachments.push(fact)
      return
    case "AnswerRefused":
      task.refused = [...(task.refused ?? []), fact]
      return
    case "TicketDropped":
    case "TokenStored":
    case "TokenExpiring":
    case "TokenDropped":
      task.tokens = [...(task.tokens ?? []), fact]
      return
    case "TaskSettled":
      task.settled = { ...place, fact }
      task.attemptsBefore = task.attempts.length
      return
    case "DeleteIntended":
    case "DeleteAnswered": {
      const attempt = task.attempts.find((candidate) => candidate.execution_id === fact.execution_id)
      if (attempt !== undefined) attempt.deletion = foldDeletion(attempt.deletion, fact, at)
      return
    }
    default:
      // An end that came after the last verdict is owed a verdict of its own.
      if (fact._tag === "AttemptClosed") task.settled = undefined
      if ("attempt" in fact) foldAttempt(task, fact, place)
  }
}
