/**
 * Job files as commands use them: all are loaded before anything is done with one, and every problem is told
 * at once.
 */
import { realpathSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, Option } from "effect"
import { Flag, type Command } from "effect/cli"
import { counted } from "../base/Text.ts"
import { orderProblems, sessionWarnings, subjectsOf, type Job } from "../jobs/Job.ts"
import type { JobUse } from "../jobs/LoadJob.ts"
import { renderProblem, topOf, type Problem } from "../base/DurableFile.ts"
import { EnvFileFlag, note, only, severalFlag, unknownNames, warn } from "./Output.ts"
import { refuse, refuseUnknown } from "./Failures.ts"
import { Wiring } from "./Wiring.ts"

export interface CheckedJob {
  readonly path: string
  readonly job: Job | undefined
  readonly errors: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<Problem>
}

const problemsIn = Effect.match({
  onSuccess: (): ReadonlyArray<Problem> => [],
  onFailure: ({ problems }: { readonly problems: ReadonlyArray<Problem> }) => problems,
})

const problemsOfService = Effect.fnUntraced(function* ({ service }: Job) {
  if (service._tag !== "Embedded") return []
  const { readFaults, readReading } = yield* Effect.promise(
    () => import("../sandbox/readings/SettingFiles.ts"),
  )
  const { faults, reading } = service
  return [
    ...(faults === undefined ? [] : yield* problemsIn(readFaults(faults))),
    ...(reading === undefined ? [] : yield* problemsIn(readReading(reading))),
  ]
})

const problemsOfSchemas = Effect.fnUntraced(function* ({ schemas }: Job) {
  if (schemas === undefined) return []
  const { readOwnSchemas } = yield* Effect.promise(() => import("../records/SchemasInForce.ts"))
  return yield* problemsIn(readOwnSchemas(join(schemas, "records")))
})

/** The families whose tables a job has; none where a schema is wrong, which is told as such. */
const familiesOf = Effect.fnUntraced(function* (job: Job, { recordSchemas }: Wiring["Service"]) {
  const { listedSchemas } = yield* Effect.promise(() => import("../records/SchemasInForce.ts"))
  const { readingsOf } = yield* Effect.promise(() => import("./ReadingsOfJob.ts"))
  const own = job.schemas === undefined ? undefined : join(job.schemas, "records")
  const listed = yield* Effect.option(listedSchemas({ package: recordSchemas, own }, readingsOf(job)))
  if (Option.isNone(listed)) return undefined
  return [...listed.value.schemas, ...listed.value.readings].map(({ family }) => family)
})

/** Columns that the job chose for pseudonyms and that cannot have them, each by name. */
const problemsOfPseudonyms = Effect.fnUntraced(function* (job: Job) {
  const { pseudonyms } = job
  if (pseudonyms === undefined) return []
  const wiring = Option.getOrUndefined(yield* Effect.serviceOption(Wiring))
  const families = wiring && (yield* familiesOf(job, wiring))
  if (families === undefined) return []
  const { columnTroubles } = yield* Effect.promise(() => import("../tables/Treatments.ts"))
  const { readingTables } = yield* Effect.promise(() => import("../jobs/Settings.ts"))
  const readings: ReadonlyArray<string> = readingTables
  return columnTroubles(pseudonyms.columns, families).map(({ table, column, why }): Problem => {
    const name = column === undefined ? table : `${table}.${column}`
    const advice =
      column === undefined && readings.includes(table) ? "; `record_schemas` has to name ours" : ""
    const place = pseudonyms.places.get(name) ?? topOf(job.path)
    return { ...place, message: `\`pseudonyms.columns\`: ${name}: ${why}${advice}` }
  })
})

const withErrors = <E, R>(
  checked: CheckedJob,
  problemsOf: (job: Job) => Effect.Effect<ReadonlyArray<Problem>, E, R>,
): Effect.Effect<CheckedJob, E, R> =>
  checked.job === undefined
    ? Effect.succeed(checked)
    : Effect.map(problemsOf(checked.job), (errors) =>
        errors.length === 0 ? checked : { ...checked, job: undefined, errors },
      )

const problemsOfFiles = Effect.fnUntraced(function* (job: Job) {
  return [
    ...(yield* problemsOfService(job)),
    ...(yield* problemsOfSchemas(job)),
    ...(yield* problemsOfPseudonyms(job)),
  ]
})

/** The same file under whatever path; a path that leads nowhere is its own. */
const fileOf = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

const eachOnce = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const files = new Map<string, string>()
  for (const path of paths) {
    const first = files.get(fileOf(path))
    if (first === undefined) files.set(fileOf(path), path)
    else yield* warn("job-given-twice", { first })
  }
  return [...files.values()]
})

/** What the jobs say of each other, beside what is wrong with each. */
const withOrder = (checked: ReadonlyArray<CheckedJob>): ReadonlyArray<CheckedJob> => {
  const jobs = readableJobs(checked)
  const found = orderProblems(jobs)
  const others = [...found.warnings, ...sessionWarnings(jobs)]
  const of = (problems: ReadonlyArray<Problem>, path: string) => problems.filter(({ file }) => file === path)
  return checked.map((one) => {
    const errors = of(found.errors, one.path)
    const warnings = [...one.warnings, ...of(others, one.path)]
    return errors.length === 0 ? { ...one, warnings } : { ...one, job: undefined, errors, warnings }
  })
}

export const checkJobs = Effect.fnUntraced(function* (given: ReadonlyArray<string>, use?: JobUse) {
  const paths = yield* eachOnce(given)
  const { loadJob } = yield* Effect.promise(() => import("../jobs/LoadJob.ts"))
  const envFile = Option.getOrUndefined(Option.flatten(yield* Effect.serviceOption(EnvFileFlag)))
  const checked = yield* Effect.forEach(paths, (path) =>
    loadJob(path, envFile, use).pipe(
      Effect.match({
        onSuccess: ({ job, warnings }): CheckedJob => ({ path, job, errors: [], warnings }),
        onFailure: ({ problems: errors, warnings }): CheckedJob => ({
          path,
          job: undefined,
          errors,
          warnings,
        }),
      }),
      Effect.flatMap((one) => withErrors(one, problemsOfFiles)),
    ),
  )
  return withOrder(checked)
})

/** Models and tests of gates that were written for tables of an earlier version. */
const problemsOfSql = Effect.fnUntraced(function* (job: Job) {
  const { models = [], gates } = job
  const tests = gates?.tests ?? []
  if (models.length + tests.length === 0) return []
  const wiring = yield* Wiring
  const families = yield* familiesOf(job, wiring)
  if (families === undefined) return []
  const { outdatedSql } = yield* Effect.promise(() => import("../tables/Models.ts"))
  return yield* Effect.provide(outdatedSql({ families }, models, tests), wiring.database)
})

/** For what starts a night, or says what would be started: the jobs' own SQL is tried, too. */
export const withSql = (checked: ReadonlyArray<CheckedJob>) =>
  Effect.forEach(checked, (one) => withErrors(one, problemsOfSql))

/** Prints warnings and errors of job files to stderr, each with its place only; returns the errors. */
export const tellProblems = Effect.fnUntraced(function* (checked: ReadonlyArray<CheckedJob>) {
  for (const warning of checked.flatMap(({ warnings }) => warnings))
    yield* note(`warning: ${renderProblem(warning)}`)
  const errors = checked.flatMap((one) => one.errors)
  for (const error of errors) yield* note(renderProblem(error))
  return errors.length
})

export const readableJobs = (checked: ReadonlyArray<CheckedJob>): ReadonlyArray<Job> =>
  checked.flatMap(({ job }) => (job === undefined ? [] : [job]))

/** The jobs, or exit code 2 after every problem was printed. */
export const loadJobs = (paths: ReadonlyArray<string>, use?: JobUse) =>
  Effect.flatMap(checkJobs(paths, use), takeJobs)

export const loadNights = (paths: ReadonlyArray<string>, isPart: boolean) =>
  checkJobs(paths, isPart ? "part" : undefined).pipe(Effect.flatMap(withSql), Effect.flatMap(takeJobs))

const onlyOf = ([job]: ReadonlyArray<Job>): Job => job satisfies Job | undefined as Job

export const loadOne = (path: string) => Effect.map(loadJobs([path]), onlyOf)

export const loadNight = (path: string, isPart: boolean) => Effect.map(loadNights([path], isPart), onlyOf)

export const takeJobs = Effect.fnUntraced(function* (checked: ReadonlyArray<CheckedJob>) {
  const errors = yield* tellProblems(checked)
  if (errors > 0) return yield* refuse("job-invalid", { problems: counted(errors, "problem") })
  const jobs = readableJobs(checked)
  const names = new Map<string, string>()
  for (const { name, path } of jobs) {
    const other = names.get(name)
    if (other !== undefined) return yield* refuse("job-name-taken", { path, other, name })
    names.set(name, path)
  }
  return jobs
})

// A part of a job, as `run` and `plan` take it: some of its customers, on all their engines. Its run is not
// the night of the job, so that nobody is told of it but whoever started it.

export const partFlags = {
  customers: severalFlag("customer", "ID", "A part of the job: only this customer"),
  first: Flag.Int("first").pipe(
    Flag.withMetavar("N"),
    Flag.withDescription("A part of the job: only its first N customers"),
    only((first) => first > 0, "a number of customers, from 1"),
    Flag.optional,
  ),
}

type Part = Command.Command.Config.InferValue<typeof partFlags>

export const isPartial = ({ customers, first }: Part): boolean => customers.length > 0 || Option.isSome(first)

/** The tasks of the part, as `subjectOf` names them; customers come in the order of the job. */
export const subjectsOfPart = (
  { assignments, sessions }: Pick<Job, "assignments" | "sessions">,
  { customers, first }: Part,
): ReadonlySet<string> => {
  const named = [...new Set([...assignments, ...sessions].map(({ customer_id }) => customer_id))]
  const meant = named.filter((id) => id !== undefined && (customers.length === 0 || customers.includes(id)))
  const chosen = new Set(meant.slice(0, Option.getOrUndefined(first)))
  return subjectsOf({
    assignments: assignments.filter(({ customer_id }) => chosen.has(customer_id)),
    sessions: sessions.filter(({ customer_id }) => chosen.has(customer_id)),
  })
}

/** By job, what its part asks for; undefined if all of it is meant. */
export const partsOf = Effect.fnUntraced(function* (jobs: ReadonlyArray<Job>, part: Part) {
  if (!isPartial(part)) return undefined
  const unknown = jobs.flatMap(({ name, assignments, sessions }) =>
    unknownNames(`job ${name}`, {
      customer: [part.customers, [...assignments, ...sessions].map(({ customer_id }) => customer_id)],
    }),
  )
  yield* refuseUnknown(unknown)
  return new Map(jobs.map((job) => [job.name, subjectsOfPart(job, part)]))
})

/** The job as a part of it is run: its receivers hear of nights only. */
export const untold = (job: Job): Job => ({ ...job, notify: [] })
