/** What is known of a job before it starts: whom its earlier runs left open. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Job } from "../../src/jobs/Job.ts"
import { append, Ledger } from "../../src/ledger/Ledger.ts"
import { touchesOf } from "../../src/run/JobTurns.ts"
import { takeTurns } from "../../src/task/SideBySide.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"
import { customer, jobOf } from "../harness/SmallNights.ts"

const { effect } = withLayer(Ledger.layer({ path: ":memory:" }))

/** Whether the second of two jobs waits for the first. */
const waits = (first: Job, second: Job) =>
  Effect.map(Effect.forEach([first, second], touchesOf), (touches) => takeTurns(touches)[1]!.waits.length > 0)

effect("two jobs are not side by side while one has somebody open whom the other names", function* () {
  const run_id = anId("a.2026-11-20")
  const gone = { customer_id: anId("c-gone"), engine_reference: anId("sandbox-tax:website") }
  const task_id = anId(`${run_id}/c-gone/sandbox-tax:website`)
  const begun = { _tag: "RunStarted", run_id, job: "a", job_path: "a.yaml" } as const
  const sent = { run_id, task_id, attempt: 1, external_execution_id: "x", probe: false }
  const one = { ...jobOf([customer("c-a", "ok")]), name: "a" }
  const other = customer("c-1", "ok")
  const named: Job = { ...jobOf([{ ...other, ...gone }]), name: "b" }
  const elsewhere: Job = { ...jobOf([other]), name: "b" }
  const ofBoth = Effect.forEach([named, elsewhere], (job) => waits(one, job))
  const before = yield* ofBoth
  yield* append(
    { ...begun, run_date: "2026-11-20", tool_version: "test" },
    { _tag: "TaskPlanned", run_id, task_id, ...gone, features: [] },
    { _tag: "StartIntended", ...sent },
  )
  const open = yield* ofBoth
  yield* append(
    { _tag: "RunEnded", run_id, exit_code: 0, leftovers: false },
    { _tag: "OutcomePublished", run_id },
  )
  expect({ before, open, ended: yield* ofBoth }).toEqual({
    before: [false, false],
    open: [true, false],
    ended: [false, false],
  })
})
