/** Runs of a job, told by how they went, for tests that look at several runs at once. */
import type { Outcome } from "../../src/service/EndTable.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { said } from "../service/Said.ts"
import { anId } from "../harness/Id.ts"
import { aFact, runStarted } from "../harness/Facts.ts"

export interface Told {
  readonly job?: string
  readonly run_date?: string
  readonly parent?: string
  /** By customers; `session/s-1` is a session. Undefined where the task is still in progress. */
  readonly tasks?: Readonly<Record<string, Outcome | undefined>>
  /** Undefined where the run has not ended. */
  readonly exit_code?: number
  readonly leftovers?: boolean
  readonly isHeld?: boolean
  /** Customers with a body that is missing from the tables. */
  readonly left_out?: ReadonlyArray<string>
  /** Its publication says whether data is older than `error_after`; undefined where it says nothing. */
  readonly isTooOld?: boolean
}

/** The runs of one night, from 1. */
export const idOf = (number: number, run_date = "2026-11-21") =>
  anId(number === 1 ? `job.${run_date}` : `job.${run_date}.${number}`)

const plannedOf = (subject: string) =>
  subject.startsWith("session/")
    ? { session_id: anId(subject.slice("session/".length)), customer_id: anId("c-of-a-session") }
    : { customer_id: anId(subject), engine_reference: anId("bank") }

/** The facts that a ledger has of such a run. */
export const factsOf = (
  number: number,
  { tasks = {}, exit_code, leftovers = false, isHeld = false, left_out = [], ...more }: Told,
): ReadonlyArray<Fact> => {
  const { job = "job", run_date = "2026-11-21", parent, isTooOld } = more
  const run_id = idOf(number, run_date)
  const task = (subject: string) => ({ run_id, task_id: anId(`${run_id}/${subject}/bank`) })
  const bodies = left_out.map((customer) => ({
    ...task(customer),
    execution_id: anId(`e-${customer}`),
    where: "segment-1",
    reason: "it cannot be read",
  }))
  const stale =
    isTooOld === true
      ? { stale: { failed: { days: 7, count: 1, examples: ["c-1 bank accounts_read"] } } }
      : {}
  return [
    runStarted(run_id, { job, run_date, parent }),
    ...Object.keys(tasks).map((subject): Fact =>
      aFact("TaskPlanned", { ...task(subject), ...plannedOf(subject) }),
    ),
    ...Object.entries(tasks).flatMap(([subject, outcome]): ReadonlyArray<Fact> =>
      outcome === undefined
        ? []
        : [{ _tag: "TaskSettled", ...task(subject), outcome, reason: said("R"), who_acts: "nobody" }],
    ),
    ...(left_out.length > 0 || isTooOld !== undefined
      ? [{ _tag: "RunPublished", run_id, version: 1, receipts: [], left_out: bodies, ...stale } as const]
      : []),
    ...(isHeld ? [{ _tag: "RunHeld", run_id, database: "held", gates: [] } as const] : []),
    ...(exit_code === undefined
      ? []
      : [
          { _tag: "RunEnded", run_id, exit_code, leftovers } as const,
          { _tag: "OutcomePublished", run_id } as const,
        ]),
  ]
}
