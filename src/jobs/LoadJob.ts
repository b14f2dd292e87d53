/**
 * Job files: from YAML to `Job`, or every error at once as `file:line:column: message`. Nothing is resolved
 * here and no network is used: secrets stay references, literals are redacted immediately, and no message
 * repeats a value.
 */
import { dirname, isAbsolute, join } from "node:path"
import { Duration, Effect, Predicate } from "effect"
import { readTextFile } from "../base/DurableFile.ts"
import type { Problem } from "../base/DurableFile.ts"
import { counted } from "../base/Text.ts"
import * as Assignments from "./Assignments.ts"
import { warnOfResemblance } from "./Assignments.ts"
import { bindRow } from "./BindRow.ts"
import { makeCells, readCustomersFile } from "./CustomersFile.ts"
import { defaults } from "./Defaults.ts"
import { bindVariables, checkLoginsFile, makeEnvironment, readVariables } from "./EnvFile.ts"
import type { Environment } from "./EnvFile.ts"
import { readFreshness } from "./Freshness.ts"
import { readOwnSql } from "./Gates.ts"
import { checkHooks, hookPairs, keysOf, secretsOfLogin } from "./HooksData.ts"
import type { HookPair, Job, SecretReference } from "./Job.ts"
import * as Shape from "./JobFile.ts"
import { decodeParts } from "./JobParts.ts"
import type { Parts } from "./JobParts.ts"
import type { MinCustomers } from "./NightShape.ts"
import { alarmPlacesOf, readReceivers } from "./Notify.ts"
import { JobInvalid, makeFindings, readDocument, variablesIn } from "./Problem.ts"
import type { Context } from "./Problem.ts"
import { parseReference } from "./Reference.ts"
import { loadResultsSources } from "./ResultsSources.ts"
import { overrides, resolveTarget } from "./Target.ts"
import { readTelemetry } from "./Telemetry.ts"
import { isInsideSize } from "../privacy/KnownSecrets.ts"
import { CustomerId, SessionId } from "../service/Ids.ts"

// Refuses a job with too few customers before anything starts: an export that came back empty, or was cut
// off, must not pass for a quiet night.

/** Both forms of `min_customers` as one. */
export const fewestCustomers = (
  written: typeof MinCustomers.Type | undefined,
): Exclude<typeof MinCustomers.Type, number> =>
  typeof written === "number" ? { number: written } : (written ?? {})

export const checkNumberOfCustomers = (
  { document, findings }: Context,
  { assignments, sessions }: Pick<Job, "assignments" | "sessions">,
  customersMin: number | undefined,
): void => {
  // A customer with a mistake is missing from the assignments until it is corrected.
  if (findings.errors().length > 0) return
  const customers = new Set(assignments.map(({ customer_id }) => customer_id)).size
  if (customersMin !== undefined && customers < customersMin)
    findings.error(
      document.place(["min_customers"]),
      `the job has ${counted(customers, "customer")}, and \`min_customers\` is ${customersMin}`,
    )
  else if (customers === 0 && sessions.length === 0)
    findings.error(
      document.place(["customers"]),
      "the job has no customers and no sessions: there is nothing to run",
    )
}

// The keys that the program itself uses, as a job names them: of the token store, and of the pseudonyms in
// the published tables, with what a job must not be called if its tables may not name a customer.

/** A run's id begins with the job's name and is published: it may contain no customer's id. */
const checkName = (
  { document, findings }: Context,
  name: string | undefined,
  customers: ReadonlyArray<string>,
): void => {
  const isIn = (id: string) => isInsideSize(id) && name?.includes(id.toLowerCase()) === true
  if (customers.some(isIn))
    findings.error(
      document.place(["name"]),
      "the name contains the id of a customer, and with `pseudonyms` the tables must not: every run_id " +
        "begins with it. Rename the job",
    )
}

/** The keys that the program itself uses: of the token store and of the pseudonyms. */
export const readKeys = (
  context: Context,
  { name, tokens, pseudonyms: written }: Pick<Parts, "name" | "tokens" | "pseudonyms">,
  folder: string,
  named: Pick<Job, "assignments" | "sessions">,
): Pick<Job, "tokens_key" | "pseudonyms"> => {
  const tokens_key = tokens === undefined ? undefined : parseReference(tokens.key, folder)
  const key = written === undefined ? undefined : parseReference(written.key, folder)
  if (written === undefined || key === undefined) return { tokens_key }
  const customers = [...named.assignments, ...named.sessions].flatMap(({ customer_id }) => customer_id ?? [])
  checkName(context, name, customers)
  const place = context.document.place(["pseudonyms"], "key")
  return { tokens_key, pseudonyms: { key, columns: written.columns ?? {}, place } }
}

export interface LoadedJob {
  readonly job: Job
  readonly warnings: ReadonlyArray<Problem>
}

/** Twice the size of 300,000 customers written in the job; more of them belong in a file of customers. */
const bytesMax = 64_000_000

const readSource = (path: string) =>
  readTextFile(path, bytesMax).pipe(
    Effect.mapError((reason) => {
      const message = `the job file cannot be read (${reason})`
      return new JobInvalid({ problems: [{ file: path, line: 1, column: 1, message }], warnings: [] })
    }),
  )

const deltaGone =
  "`delta` no longer has an effect, and no Delta logs are written: Spark and others read the Parquet " +
  "files, tables/<table>/**/*.parquet"

const durationOr = (otherwise: Duration.Input, written = Duration.fromInputUnsafe(otherwise)) => written

/** Everything that needs no other part, with defaults filled in. */
const readSettings = (context: Context, parts: Parts) => {
  const { execution, concurrency, polling, retry, flow_results } = parts
  const { document, findings } = context
  const after = parts.after.map(({ index, value }) => ({
    job: value,
    place: document.place(["after", index]),
  }))
  const settings = {
    ...(after.length === 0 ? {} : { after }),
    execution: {
      execution_timeout: durationOr(defaults.execution_timeout, execution.execution_timeout),
      unlock_protected_data: execution.unlock_protected_data ?? false,
      max_wait: durationOr(defaults.max_wait, execution.max_wait),
    },
    concurrency: {
      max_in_flight: concurrency.max_in_flight ?? defaults.max_in_flight,
      per_engine: concurrency.per_engine ?? defaults.per_engine,
    },
    polling: {
      min: durationOr(defaults.polling_min, polling.min),
      max: durationOr(defaults.polling_max, polling.max),
    },
    retry: {
      max_attempts: retry.max_attempts ?? defaults.max_attempts,
      base: durationOr(defaults.retry_base, retry.base),
      max: durationOr(defaults.retry_max, retry.max),
    },
    flow_results: {
      enabled: flow_results.enabled ?? true,
      min_interval: durationOr(defaults.min_interval, flow_results.min_interval),
      wait_final: durationOr(defaults.wait_final, flow_results.wait_final),
      attachments: flow_results.attachments ?? true,
    },
    deadline: parts.deadline,
    on_deadline: parts.on_deadline ?? defaults.on_deadline,
    night: parts.night,
    timezone: parts.timezone,
    after_export: parts.after_export ?? defaults.after_export,
    share: parts.output.share ?? defaults.share,
    ...(parts.output.documents === "by_name" ? { namesDocuments: true as const } : {}),
    exit_on: parts.exit_on ?? defaults.exit_on,
    ...(parts.retain === undefined ? {} : { retain: parts.retain }),
    ...(parts.publish === undefined ? {} : { publishEvery: parts.publish.every }),
  }
  if (parts.output.delta !== undefined) findings.warn(document.place(["output", "delta"], "key"), deltaGone)
  if (Duration.isGreaterThan(settings.polling.min, settings.polling.max)) {
    findings.error(document.place(["polling", "min"]), `\`min\` is longer than \`max\``)
  }
  if (Duration.isGreaterThan(settings.retry.base, settings.retry.max)) {
    findings.error(document.place(["retry", "base"]), `\`base\` is longer than \`max\``)
  }
  return settings
}

const bindCustomers = Effect.fnUntraced(function* (
  context: Context,
  parts: Parts,
  { folder, service }: { readonly folder: string; readonly service: Job["service"] | undefined },
) {
  const binding = Assignments.emptyBinding()
  const surroundings: Assignments.Surroundings = {
    context,
    folder,
    engines: Assignments.readJobEngines(context, parts.engines),
    namesEngines: parts.namesEngines,
    hasTokens: parts.has("tokens"),
  }
  for (const item of parts.customers) {
    if (context.findings.isFull()) break
    if (!Assignments.checkCustomer(context, item)) continue
    const { id, from, references, tokenized_access, features_column, token_column } = item.value
    if (from === undefined) {
      if (id !== undefined)
        Assignments.bindInline(surroundings, binding, { ...item, value: { ...item.value, id } })
      continue
    }
    const { findings, document } = context
    const fromPlace = document.place([
      "customers",
      item.index,
      references === undefined ? "from" : "references",
    ])
    const path = isAbsolute(from) ? from : join(folder, from)
    const cells = makeCells({ references, folder, findings, from: fromPlace })
    yield* readCustomersFile(
      {
        path,
        cells,
        features_column,
        token_column,
        findings,
        onRow: (row) => bindRow(surroundings, binding, row, tokenized_access ?? false),
      },
      document.place(["customers", item.index, "from"]),
    )
    // The logins of the embedded service open nothing.
    if (cells.hasLogins() && service?._tag !== "Embedded") yield* checkLoginsFile(path, findings)
  }
  return binding.assignments
})

const readSessions = (context: Context, items: Parts["sessions"]): Job["sessions"] => {
  const { document, findings } = context
  const seen = new Set<string>()
  return items.map(({ index, value }) => {
    const written = Predicate.isString(value) ? { id: value } : value
    const place = document.place(["sessions", index])
    if (seen.has(written.id)) findings.error(place, "this session is already listed")
    seen.add(written.id)
    if (written.customer !== undefined) warnOfResemblance(context, written.customer, place)
    const { customer } = written
    const customer_id = customer === undefined ? undefined : CustomerId.make(customer)
    return { session_id: SessionId.make(written.id), customer_id }
  })
}

/** Those that the job lists, and those that its customers name. */
const enginesOf = ({ engines }: Parts, assignments: Job["assignments"]): ReadonlySet<string> =>
  new Set([
    ...engines.map(({ value }) => (Predicate.isString(value) ? value : value.reference)),
    ...assignments.map(({ engine_reference }) => engine_reference),
  ])

/**
 * Compares the pairs with the values known here: values written in the job, and environment variables.
 * Files and commands are compared when a plan is made.
 */
const checkHooksNow = Effect.fnUntraced(function* (
  { findings }: Context,
  pairs: ReadonlyArray<HookPair>,
  assignments: Job["assignments"],
  keys: ReturnType<typeof keysOf>,
  lookUp: Environment["lookUp"],
) {
  if (pairs.length === 0) return
  const sources = assignments.flatMap(({ login }) =>
    login._tag === "Token" ? [] : Object.values(login.parameters),
  )
  const references = [
    ...sources.flatMap((source) => (source._tag === "Reference" ? [source.reference] : [])),
    ...keys.map(({ reference }) => reference),
  ]
  const names = references.flatMap((one) => (one._tag === "Env" ? [one.name] : []))
  const environment = yield* lookUp(new Set(names))
  const valueOf = (one: SecretReference) => (one._tag === "Env" ? environment.get(one.name) : undefined)
  const secrets = assignments.flatMap((assignment) => secretsOfLogin(assignment, valueOf))
  const ours = keys.map(({ reference, whose }) => ({
    value: valueOf(reference),
    whose,
    kept: "password" as const,
  }))
  checkHooks(pairs, [...secrets, ...ours], findings)
})

/**
 * A file's path as given; references and files in it are relative to its folder. `envFile`: the file of
 * variables, if it is not the `.env` in that folder.
 */
export const loadJob = Effect.fn("LoadJob.loadJob")(function* (path: string, envFile?: string) {
  const source = yield* readSource(path)
  const findings = makeFindings()
  const folder = dirname(path)
  const variables = yield* readVariables({ folder, given: envFile }, findings)
  const known = makeEnvironment(variables)
  const environment = yield* known.lookUp([...variablesIn(source), ...Object.values(overrides)])
  const schema = Shape.JobFile.ast
  const document = readDocument({ file: path, source, schema, environment, findings })
  const context: Context = { document, findings }
  const invalid = () => new JobInvalid({ problems: findings.errors(), warnings: findings.warnings() })
  const { root } = document
  if (root === undefined) return yield* invalid()
  if (!Predicate.isObject(root)) {
    findings.error(document.place([]), "a job file is a mapping of keys to values")
    return yield* invalid()
  }
  const parts = decodeParts(context, root)
  const { schemas, record_schemas, telemetry } = parts
  const service =
    parts.service === undefined && parts.has("service")
      ? undefined
      : resolveTarget(context, parts.service, { environment, folder })
  const settings = readSettings(context, parts)
  const notify = readReceivers(context, parts.notify, folder, settings)
  const assignments = yield* bindCustomers(context, parts, { folder, service })
  const sessions = readSessions(context, parts.sessions)
  const sources = yield* loadResultsSources(
    { findings, folder, environmentOf: (text) => known.lookUp(variablesIn(text)) },
    parts.schemas,
    document.place(["schemas"]),
  )
  const ownSql = yield* readOwnSql(context, folder, parts)
  const freshness = readFreshness(context, parts.freshness, enginesOf(parts, assignments))
  const { number: customersMin, of_last_night } = fewestCustomers(parts.min_customers)
  checkNumberOfCustomers(context, { assignments, sessions }, customersMin)
  const keys = readKeys(context, parts, folder, { assignments, sessions })
  const hooks = hookPairs(context, parts.engines, parts.customers)
  yield* checkHooksNow(context, hooks, assignments, keysOf({ service, ...keys }), known.lookUp)
  if (findings.errors().length > 0 || parts.name === undefined || service === undefined)
    return yield* invalid()
  const job: Job = {
    name: parts.name,
    path,
    service,
    ...settings,
    ...(of_last_night === undefined ? {} : { customersShareMin: Number.parseInt(of_last_night, 10) / 100 }),
    ...(schemas === undefined ? {} : { schemas: isAbsolute(schemas) ? schemas : join(folder, schemas) }),
    ...(record_schemas === undefined ? {} : { record_schemas }),
    ...ownSql,
    ...freshness,
    notify,
    ...alarmPlacesOf(context, notify, telemetry !== undefined),
    ...(telemetry === undefined ? {} : { telemetry: readTelemetry(telemetry, folder) }),
    assignments,
    sources,
    hooks,
    ...keys,
    sessions,
  }
  const warnings = findings.warnings()
  const bound = yield* bindVariables(job, known, envFile !== undefined).pipe(
    Effect.mapError((problem) => new JobInvalid({ problems: [problem], warnings })),
  )
  return { job: bound, warnings } satisfies LoadedJob as LoadedJob
})
