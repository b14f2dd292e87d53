/** What is known of a job before it starts: its logins as far as they can be known, and what it left open. */
import { describe, expect } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import type { Job } from "../../src/jobs/Job.ts"
import type { ParameterSource } from "../../src/jobs/Scalars.ts"
import { secretsOf } from "../harness/SecretsMemory.ts"
import { append, Ledger } from "../../src/ledger/Ledger.ts"
import { touchesOf } from "../../src/run/JobTurns.ts"
import { takeTurns } from "../../src/task/SideBySide.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"
import { customer, jobOf } from "../harness/SmallNights.ts"

const literal = (value: unknown): ParameterSource => ({ _tag: "Literal", value: Redacted.make(value) })
const variable: ParameterSource = { _tag: "Reference", reference: { _tag: "Env", name: "PIN" } }
const absent: ParameterSource = { _tag: "Reference", reference: { _tag: "Env", name: "ABSENT" } }
const printed: ParameterSource = { _tag: "Reference", reference: { _tag: "Exec", command: "exit 1" } }

/** A job with one customer who logs in with these parameters, or with a stored token. */
const jobWith = (name: string, parameters: Readonly<Record<string, ParameterSource>> | string): Job => {
  const one = customer(`c-${name}`, "ok")
  const login =
    typeof parameters === "string"
      ? ({ _tag: "Token", name: parameters } as const)
      : ({ _tag: "Parameters", parameters, tokenized_access: false } as const)
  return { ...jobOf([{ ...one, login }]), name }
}

const { effect } = withLayer(
  Layer.merge(Ledger.layer({ path: ":memory:" }), secretsOf(new Map([["env:PIN", "1234"]]))),
)

/** Whether the second of two jobs waits for the first. */
const waits = (first: Job, second: Job) =>
  Effect.map(Effect.forEach([first, second], touchesOf), (touches) => takeTurns(touches)[1]!.waits.length > 0)

describe("two jobs", () => {
  effect("may share a login that is written in another way, or not known before it is sent", function* () {
    const pin = jobWith("a", { user: literal("u"), pin: literal(1234) })
    const others = {
      text: { user: literal("u"), pin: literal("1234") },
      variable: { user: literal("u"), pin: variable },
      command: { user: literal("u"), pin: printed },
      unresolved: { user: literal("u"), pin: absent },
      otherPin: { user: literal("u"), pin: literal(1235) },
      otherUser: { user: literal("v"), pin: printed },
    }
    const found: Array<readonly [string, boolean]> = []
    for (const [name, parameters] of Object.entries(others))
      found.push([name, yield* waits(pin, jobWith("b", parameters))])
    found.push(["token", yield* waits(pin, jobWith("b", "kept"))])
    expect(Object.fromEntries(found)).toEqual({
      text: true,
      variable: true,
      command: true,
      unresolved: true,
      otherPin: false,
      otherUser: false,
      token: true,
    })
  })

  effect("are not side by side while one has somebody open whom the other may name", function* () {
    const run_id = anId("a.2026-11-20")
    const gone = { customer_id: anId("c-gone"), engine_reference: anId("sandbox-tax:website") }
    const task_id = anId(`${run_id}/c-gone/sandbox-tax:website`)
    const begun = { _tag: "RunStarted", run_id, job: "a", job_path: "a.yaml" } as const
    const sent = { run_id, task_id, attempt: 1, external_execution_id: "x", probe: false }
    const one = jobWith("a", { user: literal("a") })
    const other = customer("c-1", "ok")
    const named: Job = { ...jobOf([{ ...other, ...gone }]), name: "b" }
    const anybody: Job = { ...jobOf([{ ...other, engine_reference: gone.engine_reference }]), name: "b" }
    const elsewhere: Job = { ...jobOf([other]), name: "b" }
    const jobs = [named, anybody, elsewhere]
    const before = yield* Effect.forEach(jobs, (job) => waits(one, job))
    yield* append(
      { ...begun, run_date: "2026-11-20", tool_version: "test" },
      { _tag: "TaskPlanned", run_id, task_id, ...gone, features: [] },
      { _tag: "StartIntended", ...sent },
    )
    const open = yield* Effect.forEach(jobs, (job) => waits(one, job))
    yield* append(
      { _tag: "RunEnded", run_id, exit_code: 0, leftovers: false },
      { _tag: "OutcomePublished", run_id },
    )
    const ended = yield* Effect.forEach(jobs, (job) => waits(one, job))
    expect({ before, open, ended }).toEqual({
      before: [false, false, false],
      open: [true, true, false],
      ended: [false, false, false],
    })
  })
})
