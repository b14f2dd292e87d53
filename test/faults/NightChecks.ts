/**
 * What must hold of a disturbed night besides its tables, judged by what the service really saw and by the ledger:
 * nothing is deleted before it is published, every execution is deleted at the end, no start and no rejected login
 * is repeated.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Schema } from "effect"
import { Fact } from "../../src/ledger/Fact.ts"
import type { ExecutionSeen, Truth } from "../../src/sandbox/admin/Truth.ts"
import { publishedExecutions } from "./PublishedTables.ts"

const decodeFact = Schema.decodeUnknownSync(Schema.fromJsonString(Fact))

/** Facts of one job, in order. */
export const factsOf = (output: string, job: string): ReadonlyArray<Fact> => {
  if (!existsSync(join(output, "ledger.sqlite"))) return []
  const ledger = new DatabaseSync(join(output, "ledger.sqlite"), { readOnly: true, timeout: 10_000 })
  try {
    return ledger
      .prepare("SELECT body FROM facts WHERE run_id LIKE ? ORDER BY seq")
      .all(`${job}.%`)
      .map((row) => decodeFact(row["body"]))
  } finally {
    ledger.close()
  }
}

const unknown: ReadonlySet<string> = new Set(["START_UNKNOWN", "LOGIN_UNPROVEN"])

/** Tasks for which the ledger says that an execution may have been lost from sight. */
export const orphanedTasks = (facts: ReadonlyArray<Fact>): ReadonlySet<string> =>
  new Set(
    facts.flatMap((fact) => {
      if (fact._tag === "OrphanSuspected") return [fact.task_id]
      const isUnknown = fact._tag === "TaskSettled" && unknown.has(fact.reason)
      return isUnknown ? [fact.task_id] : []
    }),
  )

/** Tasks that ended as START_UNKNOWN although the service never had a start of theirs. */
export const unknownByMistake = (truth: Truth, facts: ReadonlyArray<Fact>): ReadonlyArray<string> => {
  const ran = new Set(truth.executions.map(({ external_execution_id }) => external_execution_id))
  const external = new Map(
    facts.flatMap((fact) =>
      fact._tag === "StartIntended" ? [[fact.task_id, fact.external_execution_id] as const] : [],
    ),
  )
  return facts.flatMap((fact) =>
    fact._tag === "TaskSettled" && fact.reason === "START_UNKNOWN" && !ran.has(external.get(fact.task_id))
      ? [`${fact.task_id} is START_UNKNOWN, and the service never had its start`]
      : [],
  )
}

/** Promise 5, at any moment: what the service deleted stands in the database that is published now. */
export const deletedTooSoon = async (output: string, truth: Truth): Promise<ReadonlyArray<string>> => {
  const deleted = truth.executions.filter(({ deleted_at }) => deleted_at !== undefined)
  if (deleted.length === 0) return []
  const published = await publishedExecutions(output)
  return deleted
    .filter(({ execution_id }) => !published.has(execution_id))
    .map(({ execution_id, customer_id }) => `${customer_id}: ${execution_id} is deleted but not published`)
}

/** In the ledger, every deletion comes after a publication that names its execution. */
const unreceipted = (facts: ReadonlyArray<Fact>): ReadonlyArray<string> => {
  const receipts = new Set<string>()
  const complaints: Array<string> = []
  for (const fact of facts) {
    if (fact._tag === "RunPublished")
      fact.receipts.forEach(({ execution_id, landed_sha256 }) =>
        receipts.add(`${execution_id} ${landed_sha256}`),
      )
    if (fact._tag === "DeleteIntended" && !receipts.has(`${fact.execution_id} ${fact.landed_sha256}`))
      complaints.push(`${fact.execution_id} was to be deleted without a publication's receipt`)
  }
  return complaints
}

const overlap = (executions: ReadonlyArray<ExecutionSeen>): boolean => {
  const sorted = executions.toSorted((a, b) => a.started_at - b.started_at)
  return sorted.some((one, index) => (sorted[index + 1]?.started_at ?? Infinity) < one.closes_at)
}

/** Promises 1 and 3 with the service as witness. */
const repeatedStarts = (truth: Truth, orphaned: ReadonlySet<string>): ReadonlyArray<string> => {
  const complaints: Array<string> = []
  const byTask = Map.groupBy(truth.executions, (one) => `${one.customer_id}/${one.engine_reference}`)
  for (const [task, executions] of byTask)
    if (overlap(executions)) complaints.push(`${task}: two executions were open at once`)
  for (const [external, executions] of Map.groupBy(truth.executions, (one) => one.external_execution_id)) {
    const task = `${executions[0]?.customer_id}/${executions[0]?.engine_reference}`
    const isOrphaned = [...orphaned].some((task_id) => task_id.endsWith(`/${task}`))
    if (executions.length > (isOrphaned ? 2 : 1))
      complaints.push(`${task}: ${external} was accepted ${executions.length} times`)
  }
  return complaints
}

/** Only what the ledger calls a possible orphan may stay at the service, and what was counted but cannot be read. */
const leftAtService = (truth: Truth, facts: ReadonlyArray<Fact>): ReadonlyArray<string> => {
  const suspected = new Set(
    facts.flatMap((fact) => (fact._tag === "OrphanSuspected" ? [fact.external_execution_id] : [])),
  )
  const kept = new Set(
    facts.flatMap((fact) =>
      fact._tag === "TaskSettled" && fact.reason === "RECORDS_UNREACHABLE" ? [fact.task_id] : [],
    ),
  )
  const closed = facts.filter((fact) => fact._tag === "AttemptClosed")
  const known = new Set<string>(closed.map(({ execution_id }) => execution_id))
  const unreachable = new Set<string>(
    closed.filter(({ task_id }) => kept.has(task_id)).map(({ execution_id }) => execution_id),
  )
  return truth.executions
    .filter(({ deleted_at }) => deleted_at === undefined)
    .filter(({ execution_id }) => !unreachable.has(execution_id))
    .filter((one) => known.has(one.execution_id) || !suspected.has(one.external_execution_id ?? ""))
    .map(({ execution_id, customer_id }) => `${customer_id}: ${execution_id} was never deleted`)
}

const brokenRules = (truth: Truth): ReadonlyArray<string> =>
  truth.ruleBreaks
    // Sent again before its refusal could be read: nobody could know.
    .filter(({ rule, answer_read }) => rule !== "rejected_login_repeated" || answer_read === true)
    .map(({ rule, customer_id }) => `the service saw ${rule} of ${customer_id}`)

/** After the night's end. */
export const brokenPromises = (truth: Truth, facts: ReadonlyArray<Fact>): ReadonlyArray<string> => [
  ...unreceipted(facts),
  ...repeatedStarts(truth, orphanedTasks(facts)),
  ...leftAtService(truth, facts),
  ...brokenRules(truth),
]
