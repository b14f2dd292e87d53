/**
 * A job as the other rooms see it: every default filled in, every customer bound to its engines, every
 * secret still a reference or already redacted. `LoadJob.ts` turns a file into one.
 */
import type { Place, Problem } from "../base/DurableFile.ts"
import { suggestion } from "../base/Text.ts"
import type { ResultsSource } from "../service/FlowResults.ts"
import { accessKey, sessionKey, type Access, type CustomerId, type SessionId } from "../service/Ids.ts"
import type { Feature } from "../service/Vocabulary.ts"
import type { ParameterSource, SecretReference } from "./Scalars.ts"
import type { Settings, notifyEvents } from "./Settings.ts"

/** A feature code outside section 2.1 is accepted, as a string; `configurations` is sent as it is. */
export interface JobFeature {
  readonly code: Feature | (string & {})
  readonly configurations: Readonly<Record<string, unknown>> | undefined
}

/** One customer on one engine, with everything a start needs except its secrets. */
export interface Assignment extends Access {
  readonly features: ReadonlyArray<JobFeature>
  readonly configurations: Readonly<Record<string, unknown>>
  readonly hooks_extra_data: Readonly<Record<string, string>>
  readonly login: Login
  /** Where the assignment is defined, for messages: `jobs/demo.yaml:12:5` or `customers.csv:7`. */
  readonly source: string
}

export type Login =
  | {
      readonly _tag: "Parameters"
      readonly parameters: Readonly<Record<string, ParameterSource>>
      readonly tokenized_access: boolean
    }
  | { readonly _tag: "Token"; readonly name: string }

export type ServiceTarget =
  | {
      readonly _tag: "Remote"
      readonly base_url: string
      readonly flows_url: string
      readonly attachments_url: string
      readonly app_secret: SecretReference
      /** TLS without checking who the other side is: only if the job says so explicitly. */
      readonly accept_any_certificate?: true
    }
  | {
      readonly _tag: "Embedded"
      readonly seed: number
      /** How many seconds pass in the service per real second. */
      readonly speed: number
      readonly faults: string | undefined
      readonly reading?: string | undefined
    }

/** What a service is known by, in the ledger and where its tokens are kept: a host, without any secret. */
export const serviceNameOf = (target: ServiceTarget): string =>
  target._tag === "Embedded" ? "sandbox" : new URL(target.base_url).origin

/** One pair of `hooks_extra_data` as written in the file, to compare with secrets that are resolved later. */
export interface HookPair {
  readonly key: string
  readonly value: string
  readonly key_place: Place
  readonly place: Place
}

export type NotifyEvent = (typeof notifyEvents)[number]

interface Notified {
  readonly name: string
  readonly on: ReadonlyArray<NotifyEvent>
}

/** Who is told of a run; `name` is its place in the job. A mail server's address has the login in it. */
export type Receiver =
  | (Notified & {
      readonly _tag: "Url"
      readonly address: SecretReference
      readonly format: "json" | "slack"
    })
  | { readonly _tag: "Ping"; readonly name: string; readonly address: SecretReference }
  | (Notified & {
      readonly _tag: "Email"
      readonly address: SecretReference
      readonly from: string
      readonly to: ReadonlyArray<string>
    })
  | (Notified & { readonly _tag: "Command"; readonly argv: ReadonlyArray<string> })

/** Where logs, metrics and traces of a run go; every run keeps its metrics in its own folder too. */
export interface Telemetry {
  readonly otlp?: SecretReference | string
  readonly headers?: SecretReference
  readonly prometheus?: string
  /** Whether spans and logs may name customers, tasks, executions and sessions. */
  readonly customer_ids: boolean
}

export interface SqlFile {
  /** The file's name without `.sql`. */
  readonly name: string
  readonly sql: string
  /** Where it was read; not of one that is kept beside the tables. */
  readonly path?: string
}

/** What a new version of the tables must pass to become current. Shares are from 0 to 1, ages are days. */
export interface Gates extends Omit<NonNullable<Settings["gates"]>, "tests"> {
  readonly tests: ReadonlyArray<SqlFile>
}

/**
 * How old the data of a customer, engine and feature may get, in days; one limit at least. Engines have the
 * job's limits where they have none of their own.
 */
export type Freshness = NonNullable<Settings["freshness"]>

/** Settings that a job has in another form, or by another name; all others are in it as they are written. */
export const notAsWritten = [
  "name",
  "service",
  "after",
  "replaces",
  "engines",
  "customers",
  "sessions",
  "output",
  "notify",
  "telemetry",
  "schemas",
  "gates",
  "freshness",
  "models",
  "tokens",
  "pseudonyms",
] as const

type Further = Omit<Settings, (typeof notAsWritten)[number]>
type AsWritten = {
  readonly [Key in keyof Further]: Further[Key] | (undefined extends Further[Key] ? undefined : never)
}

export interface Job extends AsWritten, Omit<Settings["output"], "delta"> {
  readonly name: string
  /** The file's path as given, for messages and for `rerun`. */
  readonly path: string
  readonly env_file?: string
  readonly service: ServiceTarget
  /** Jobs that this one follows if they are given together, and where that is written; absent if none. */
  readonly after?: ReadonlyArray<{ readonly job: string; readonly place: Place }>
  /** Jobs whose place it takes; absent if the file names none. */
  readonly replaces?: ReadonlyArray<string>
  /** The folder with the job's own record schemas, in `records/`, and results sources. */
  readonly schemas?: string
  readonly gates?: Gates
  readonly freshness?: Freshness
  readonly models?: ReadonlyArray<SqlFile>
  readonly notify: ReadonlyArray<Receiver>
  /** Where the job says what, by the name of a receiver, `telemetry.otlp` or `telemetry.headers`. */
  readonly alarmPlaces?: ReadonlyMap<string, Place>
  /** Without it nothing is measured and nothing leaves. */
  readonly telemetry?: Telemetry
  readonly assignments: ReadonlyArray<Assignment>
  /** The built-in ones first, as changed by the job's folder; then its own, by name. */
  readonly sources: ReadonlyArray<ResultsSource>
  readonly hooks: ReadonlyArray<HookPair>
  readonly tokens_key: SecretReference | undefined
  /** What the tables have in place of the customers; without it, their ids and all values as they are. */
  readonly pseudonyms?: {
    readonly key: SecretReference
    /** By record table. */
    readonly columns: Readonly<Record<string, ReadonlyArray<string>>>
    /** Where the job names each table and `table.column`: checked once the record schemas are read. */
    readonly places: ReadonlyMap<string, Place>
  }
  readonly sessions: ReadonlyArray<{
    readonly session_id: SessionId
    readonly customer_id: CustomerId | undefined
    readonly place: Place
  }>
}

// Which embedded services are one: runs of such jobs share it, with its clock, and only they can go on beside
// each other.

/** What a job names, as `subjectOf` names tasks. */
export const subjectsOf = ({ assignments, sessions }: Pick<Job, "assignments" | "sessions">) =>
  new Set([...assignments.map(accessKey), ...sessions.map(sessionKey)])

export type Embedded = Extract<ServiceTarget, { _tag: "Embedded" }>

const nameMax = 64

/** The name under which `acquaint` runs one assignment of a job. */
export const acquaintName = (job: string): string => `acquaint-${job}`.slice(0, nameMax)
/** The same of a job's name in SQL. */
export const acquaintNameSql = (job: string): string => `left('acquaint-' || ${job}, ${nameMax})`

export const embeddedKey = ({ seed, speed, faults, reading }: Embedded): string =>
  JSON.stringify([seed, speed, faults, reading])

// The order of jobs that are given together: each comes after those that it names in `after`, else where it
// was given. A circle is a problem of the file; a job that is not given has nothing to be waited for.

export type OrderedJob = Pick<Job, "name" | "after">

/** The jobs of a circle that leads back to where it began; undefined if there is none. */
const circleFrom = (
  first: OrderedJob,
  jobs: ReadonlyMap<string, OrderedJob>,
): ReadonlyArray<OrderedJob> | undefined => {
  const seen = new Set<string>()
  const lines: Array<ReadonlyArray<OrderedJob>> = [[first]]
  for (let line = lines.pop(); line !== undefined; line = lines.pop())
    for (const { job } of line.at(-1)?.after ?? []) {
      if (job === first.name) return line
      const next = jobs.get(job)
      if (next === undefined || seen.has(job)) continue
      seen.add(job)
      lines.push([...line, next])
    }
  return undefined
}

/** What is wrong with the `after` of jobs that are given together; each circle is told once. */
export const orderProblems = (given: ReadonlyArray<OrderedJob>) => {
  const jobs = new Map(given.map((job) => [job.name, job]))
  const errors: Array<Problem> = []
  const warnings: Array<Problem> = []
  const told = new Set<string>()
  for (const job of given) {
    const circle = told.has(job.name) ? undefined : circleFrom(job, jobs)
    if (circle !== undefined) {
      for (const { name } of circle) told.add(name)
      const next = circle[1]?.name ?? job.name
      const place = job.after?.find((one) => one.job === next)?.place
      const names = [...circle.map(({ name }) => `\`${name}\``), `\`${job.name}\``].join(" after ")
      if (place !== undefined) errors.push({ ...place, message: `a job would wait for itself: ${names}` })
    }
    if (given.length > 1)
      for (const { job: name, place } of job.after ?? []) {
        if (jobs.has(name)) continue
        const hint = suggestion(name, [...jobs.keys()])
        warnings.push({
          ...place,
          message: `no job of this name was given, so there is nothing to wait for${hint}`,
        })
      }
  }
  return { errors, warnings }
}

/** At each session that an earlier one of these jobs lists for another customer. */
export const sessionWarnings = (
  given: ReadonlyArray<Pick<Job, "name" | "sessions">>,
): ReadonlyArray<Problem> => {
  const listed = new Map<SessionId, { readonly job: string; readonly whose: CustomerId | undefined }>()
  return given.flatMap(({ name, sessions }) =>
    sessions.flatMap(({ session_id, customer_id, place }): ReadonlyArray<Problem> => {
      const first = listed.get(session_id) ?? { job: name, whose: customer_id }
      listed.set(session_id, first)
      if (first.whose === customer_id) return []
      const message =
        `the job \`${first.job}\` lists this session for another customer, so its records would be in the ` +
        "tables twice: list it in one job, with its own customer"
      return [{ ...place, message }]
    }),
  )
}

/** The jobs without a circle, each behind those that it names; else in the order in which they were given. */
export const inOrder = <J extends OrderedJob>(given: ReadonlyArray<J>): ReadonlyArray<J> => {
  const names = new Set(given.map(({ name }) => name))
  const placed = new Set<string>()
  const order: Array<J> = []
  let left = given
  while (left.length > 0) {
    // The first one that can: a job that was given early keeps its place before those that merely may.
    const next =
      left.find(({ after = [] }) => after.every(({ job }) => placed.has(job) || !names.has(job))) ?? left[0]!
    placed.add(next.name)
    order.push(next)
    left = left.filter((one) => one !== next)
  }
  return order
}
