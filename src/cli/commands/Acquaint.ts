/**
 * `acquaint JOB`, day one at a real service: one customer on one engine, one login, one execution, every call
 * recorded and compared with the contract. Nothing is deleted unless requested and proved.
 */
import { join } from "node:path"
import { Effect, Exit, Layer, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { helped } from "../CommandRow.ts"
import { NoProgressFlag, jsonFlag, note, optionalFlag, outputFolder, switchFlag } from "../Output.ts"
import { endWith } from "../Failures.ts"
import type { Assignment, Job } from "../../jobs/Job.ts"
import { toldWhole } from "../../messages/Catalogue.ts"
import { loadJobs } from "../Jobs.ts"
import { holdOutput } from "../OutputFolder.ts"
import { Wiring } from "../Wiring.ts"
import {
  chooseAssignment,
  acquaintedNight,
  cutDown,
  recorderFor,
  acquaintFolder,
  claimSchemas,
  writeCalls,
  tellRun,
} from "../acquaint/AcquaintRun.ts"
import { ProgressDisplay } from "../ProgressDisplay.ts"

const flags = {
  job: Argument.String("JOB").pipe(Argument.withDescription("A job file, such as jobs/demo.yaml")),
  customer: optionalFlag("customer", "ID", "The customer; required if the job has several"),
  engine: optionalFlag("engine", "REF", "The engine; required if that customer has several"),
  write: optionalFlag("write", "DIR", "Folder for results sources (default: beside the calls)"),
  probeConflict: switchFlag("probe-conflict", "Send the start twice to see the 409 (may log in twice)"),
  acceptUncounted: switchFlag("accept-uncounted", "Write sources that allow deletion without a count"),
  remove: switchFlag("delete", "Delete the execution once all of it has been read"),
  json: jsonFlag,
}

type Flags = {
  readonly write: Option.Option<string>
  readonly probeConflict: boolean
  readonly acceptUncounted: boolean
  readonly remove: boolean
  readonly json: boolean
}

export const acquaint = Command.make(
  "acquaint",
  flags,
  Effect.fn("Acquaint.handle")(function* ({ job: path, customer, engine, ...options }) {
    const output = yield* outputFolder
    const [whole] = yield* loadJobs([path])
    if (whole === undefined) return
    const assignment = yield* chooseAssignment(whole, customer, engine)
    const told = yield* acquainted({ whole, assignment, output, options })
    yield* endWith(told)
  }),
).pipe(
  helped({
    more: `
      For the first day: runs one customer on one engine, records every call (shapes only: no values of records, no
      secrets), compares each answer with the reference, and writes the reading and the results sources that fit. It
      logs in once, starts one execution, asks for no ticket and deletes nothing unless --delete is given. Exit code 0:
      every answer fits, and a run with the written sources loses nothing; 3: something does not fit, or a person has
      to act; 4: the execution did not end in time.`,
    examples: { "nightjar acquaint jobs/demo.yaml --customer c-003": "Against the embedded service" },
  }),
)

const acquainted = Effect.fnUntraced(function* (input: {
  readonly whole: Job
  readonly assignment: Assignment
  readonly output: string
  readonly options: Flags
}) {
  const { whole, assignment, output, options } = input
  const wiring = yield* Wiring
  const silent = yield* NoProgressFlag
  const job = cutDown(whole, assignment, options.remove)
  const recorder = recorderFor(job, options.probeConflict)
  const folder = acquaintFolder(output, assignment.customer_id, assignment.engine_reference)
  const own = join(folder, "schemas")
  const schemas = Option.getOrElse(options.write, () => own)
  const night = Effect.gen(function* () {
    yield* holdOutput(output, [job.share])
    yield* claimSchemas(schemas, schemas === own)
    const services = Layer.merge(ProgressDisplay.layer(!silent), wiring.night(job, output, recorder.through))
    return yield* Effect.provide(acquaintedNight({ job, whole, output, recorder }), services)
  })
  const ran = yield* Effect.scoped(night).pipe(
    Effect.onInterrupt(() => note(toldWhole("acquaint-interrupted"))),
    // If the secret was refused or a wait was cut off, the recorded calls are useful too.
    Effect.onExit((exit) =>
      Exit.isFailure(exit) && recorder.calls.length > 0
        ? Effect.andThen(
            writeCalls(folder, recorder.calls),
            note(`The calls so far are in ${folder}/calls.ndjson.`),
          )
        : Effect.void,
    ),
  )
  return yield* tellRun({ ...options, ran, whole, assignment, recorder, folder, schemas })
})
