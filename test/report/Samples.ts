/**
 * Runs in miniature for the report's tests: facts in order, a second apart, folded by the ledger's own fold.
 */
import { expect } from "vitest"
import type { Outcome, WhoActs } from "../../src/service/EndTable.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import type { EnginePicture, NightPicture } from "../../src/task/NightPicture.ts"
import type { News } from "../../src/report/Changes.ts"
import type { RunEnding } from "../../src/report/Notice.ts"
import { said } from "../service/Said.ts"
import { anId } from "../harness/Id.ts"
import { aFact, runStarted } from "../harness/Facts.ts"

export const run_id = anId("demo.2026-11-21")
export const startAt = Date.UTC(2026, 10, 21, 2, 0, 0)

export const started: Fact = runStarted(run_id, { job_path: "jobs/demo.yaml" })

export const idOf = (customer_id: string, engine = "bank:website") =>
  anId(`${run_id}/${customer_id}/${engine}`)

export const planned = (customer_id: string, engine_reference = "bank:website"): Fact =>
  aFact("TaskPlanned", {
    run_id,
    task_id: idOf(customer_id, engine_reference),
    customer_id,
    engine_reference,
    features: ["accounts_read"],
  })

export const settled = (
  customer_id: string,
  outcome: Outcome,
  reason: string,
  who_acts: WhoActs,
  more: { readonly message?: string } = {},
): Fact =>
  aFact("TaskSettled", {
    run_id,
    task_id: idOf(customer_id),
    outcome,
    reason: said(reason),
    who_acts,
    ...(more.message === undefined ? {} : { message: more.message }),
  })

export const landed = { segment: "segment-000001.njl", offset: 0, bytes: 10, sha256: "aa" }

/** An execution from its intent to its closing. */
export const executed = (
  customer_id: string,
  products_count: Readonly<Record<string, number>>,
): Array<Fact> => {
  const attempt = { run_id, task_id: idOf(customer_id), attempt: 1 }
  const execution_id = anId(`e-${customer_id}`)
  return [
    { _tag: "StartIntended", ...attempt, external_execution_id: "nj-1", probe: false },
    aFact("StartAnswered", { ...attempt, http_status: 202, execution_id, session_id: "s" }),
    aFact("AttemptClosed", { ...attempt, execution_id, products_count, landed }),
  ]
}

export const deleted = (customer_id: string): ReadonlyArray<Fact> => {
  const about = { run_id, task_id: idOf(customer_id), execution_id: anId(`e-${customer_id}`) }
  return [
    { _tag: "DeleteIntended", ...about, landed_sha256: "bb" },
    { _tag: "DeleteAnswered", ...about, http_status: 204, outcome: "deleted" },
  ]
}

export const recorded = (facts: ReadonlyArray<Fact>) =>
  facts.map((fact, index) => ({ seq: index + 1, at: startAt + index * 1_000, fact }))

export const runOf = (...facts: ReadonlyArray<Fact>): RunState => {
  const run = foldRun(recorded([started, ...facts]))
  expect(run).toBeDefined()
  if (run === undefined) throw new Error("the facts hold no beginning")
  return run
}

/** How a running night looks, with nothing to do but what is given. */
export const engineRow = (engine_reference: string, more: Partial<EnginePicture> = {}): EnginePicture => ({
  engine_reference,
  tasks: 0,
  queued: 0,
  waiting: { time: 0, engine: 0, conflict: 0 },
  running: 0,
  done: { succeeded: 0, partial: 0, failed: 0, skipped: 0, unfinished: 0 },
  per_hour: 0,
  ...more,
})
export const pictureOf = (of: string, more: Partial<NightPicture> = {}): NightPicture => ({
  run_id: of,
  at: 2_000,
  began_at: 1_000,
  stage: "executing",
  state: "running",
  service: {},
  limits: { max_in_flight: 10, per_engine: 10 },
  job_limits: { max_in_flight: 10, per_engine: 10 },
  total: engineRow("total"),
  engines: [],
  ...more,
})

/** What a run has to tell, by its news. */
export const news = (reason: string, outcome: News["outcome"], count = 1): News => ({
  reason,
  outcome,
  who_acts: "customer",
  count,
})
export const ending = (exit_code: number, more: Partial<RunEnding> = {}): RunEnding => ({
  job: "nightly",
  exit_code,
  summary: undefined,
  recovered: false,
  news: [],
  ...more,
})
