/**
 * Job files: from YAML to `Job`, or every error at once as `file:line:column: message`. Nothing is resolved
 * here: secrets stay references, literals are redacted immediately, and no message repeats a value.
 */
import { dirname } from "node:path"
import { Duration, Effect, Predicate, Schema, SchemaAST, Struct } from "effect"
import { readTextFile, topOf, type Place } from "../base/DurableFile.ts"
import { given, missingKey } from "../base/Schemas.ts"
import { counted } from "../base/Text.ts"
import * as Assignments from "./Assignments.ts"
import { bindRow, warnOfId, type Item } from "./Assignments.ts"
import { readCustomersFile, type CustomerRow } from "./CustomersFile.ts"
import * as Env from "./EnvFile.ts"
import { readFreshness, readOwnSql } from "./Gates.ts"
import { checkHooks, hookPairs, keysOf, secretsOfLogin } from "./HooksData.ts"
import { notAsWritten, type HookPair, type Job, type ServiceTarget } from "./Job.ts"
import { readReceivers, readTelemetry } from "./Notify.ts"
import { JobInvalid, decodePart, makeFindings, readDocument, unknownKey, variablesIn } from "./Problem.ts"
import type { Context } from "./Problem.ts"
import { loadResultsSources } from "./ResultsSources.ts"
import {
  beside,
  parseReference,
  parseServiceUrl,
  parseUrlBeside,
  pathRule,
  serviceUrlRule,
} from "./Scalars.ts"
import type { SecretReference } from "./Scalars.ts"
import { Sandbox, type Service } from "./ServiceSettings.ts"
import { JobFile, type Settings } from "./Settings.ts"
import { isInsideSize } from "../privacy/KnownSecrets.ts"
import { CustomerId, SessionId } from "../service/Ids.ts"

// NIGHTJAR_BASE_URL, NIGHTJAR_FLOWS_URL and NIGHTJAR_APP_SECRET override what the file says; the first turns
// `service: sandbox` into a remote one.

type Entry = typeof Service.Type
type RemoteEntry = Exclude<Entry, "sandbox">

const overrides = {
  base_url: "NIGHTJAR_BASE_URL",
  flows_url: "NIGHTJAR_FLOWS_URL",
  app_secret: "NIGHTJAR_APP_SECRET",
} as const

interface Surroundings {
  readonly environment: ReadonlyMap<string, string>
  readonly folder: string
}

const plainSandbox: typeof Sandbox.Type = Schema.decodeUnknownSync(Sandbox)({})

const embedded = (entry: Entry, folder: string): ServiceTarget => {
  const { faults, reading, ...clock } = (entry === "sandbox" ? undefined : entry.sandbox) ?? plainSandbox
  const file = (path: string | undefined) => (path === undefined ? undefined : beside(folder, path))
  return { _tag: "Embedded", ...clock, faults: file(faults), reading: file(reading) }
}

/** Undefined after its errors went to the findings. */
const resolveTarget = (
  context: Context,
  entry: Entry | undefined,
  { environment, folder }: Surroundings,
): ServiceTarget | undefined => {
  const { document, findings } = context
  const replaced = (key: keyof typeof overrides) => environment.get(overrides[key]) || undefined
  if (entry === undefined && replaced("base_url") === undefined) {
    findings.error(document.place(["service"]), missingKey("service"))
    return undefined
  }
  const written: RemoteEntry = entry === undefined || entry === "sandbox" ? {} : entry
  if (written.sandbox !== undefined) refuseBoth(context, written)
  if (replaced("base_url") === undefined && (entry === "sandbox" || written.sandbox !== undefined)) {
    return embedded(entry ?? "sandbox", folder)
  }
  const address = (
    key: "base_url" | "flows_url",
    rule: string,
    parse: (value: string) => string | undefined,
  ): string | undefined => {
    const value = replaced(key) ?? written[key]
    const url = value === undefined ? undefined : parse(value)
    if (value === undefined) findings.error(document.place(["service", key]), missing(key))
    else if (url === undefined) {
      findings.error(document.place(["service"]), `${overrides[key]}: expected ${rule}`)
    }
    return url
  }
  const secret = (): SecretReference | undefined => {
    if (replaced("app_secret") !== undefined) return { _tag: "Env", name: overrides.app_secret }
    if (written.app_secret !== undefined) return parseReference(written.app_secret, folder)
    findings.error(document.place(["service", "app_secret"]), missing("app_secret"))
    return undefined
  }
  const base_url = address("base_url", serviceUrlRule, parseServiceUrl)
  // Without its host, a path means nothing; a problem with the host is already reported.
  const beside = (value: string) => parseUrlBeside(base_url ?? "https://host.invalid", value)
  const flows_url = address("flows_url", serviceUrlRule + pathRule, beside)
  const app_secret = secret()
  if (base_url === undefined || flows_url === undefined || app_secret === undefined) return undefined
  const attachments = written.attachments_url
  const attachments_url = attachments === undefined ? flows_url : beside(attachments)
  if (written.accept_any_certificate === true)
    findings.warn(document.place(["service", "accept_any_certificate"], "key"), anyCertificate)
  return {
    _tag: "Remote",
    base_url,
    flows_url,
    attachments_url: attachments_url ?? flows_url,
    app_secret,
    ...(written.accept_any_certificate === true ? { accept_any_certificate: true } : {}),
  }
}

const missing = (key: keyof typeof overrides): string =>
  `${missingKey(key)}, and ${overrides[key]} is not set either`

const anyCertificate =
  "certificates are not checked: whoever answers at these addresses receives the application secret and " +
  "every login. To trust an authority of your own, name its file in NODE_EXTRA_CA_CERTS instead"

const refuseBoth = ({ document, findings }: Context, written: RemoteEntry): void => {
  for (const key of Object.keys(written)) {
    if (key === "sandbox") continue
    findings.error(
      document.place(["service", key], "key"),
      `\`${key}\` belongs to a remote service, and \`sandbox\` is not one: keep either`,
    )
  }
}

// Refuses a job with too few customers before anything starts: an export that came back empty, or was cut
// off, must not pass for a quiet night.

const checkNumberOfCustomers = (
  { document, findings }: Context,
  { assignments, sessions }: Pick<Job, "assignments" | "sessions">,
  written: Settings["min_customers"],
  use: JobUse | undefined,
): void => {
  // A customer with a mistake is missing from the assignments until it is corrected.
  if (use === "rules" || findings.errors().length > 0) return
  const customersMin = use === "part" ? undefined : typeof written === "object" ? written.number : written
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

const readKeys = (
  context: Context,
  { name, tokens, pseudonyms: written }: Pick<Settings, "tokens" | "pseudonyms"> & Pick<Parts, "name">,
  folder: string,
  named: Pick<Job, "assignments" | "sessions">,
): Pick<Job, "tokens_key" | "pseudonyms"> => {
  const tokens_key = tokens === undefined ? undefined : parseReference(tokens.key, folder)
  const key = written === undefined ? undefined : parseReference(written.key, folder)
  if (written === undefined || key === undefined) return { tokens_key }
  const customers = [...named.assignments, ...named.sessions].flatMap(({ customer_id }) => customer_id ?? [])
  checkName(context, name, customers)
  const columns = written.columns ?? {}
  return { tokens_key, pseudonyms: { key, columns, places: placesOfColumns(context.document, columns) } }
}

const placesOfColumns = (
  document: Context["document"],
  columns: NonNullable<Job["pseudonyms"]>["columns"],
): NonNullable<Job["pseudonyms"]>["places"] =>
  new Map(
    Object.entries(columns).flatMap(([table, names]) => [
      [table, document.place(["pseudonyms", "columns", table], "key")] as const,
      ...names.map(
        (name, index) =>
          [`${table}.${name}`, document.place(["pseudonyms", "columns", table, index])] as const,
      ),
    ]),
  )

/** Twice the size of 300,000 customers written in the job; more of them belong in a file of customers. */
const bytesMax = 64_000_000

type ItemsOf<A> = [A] extends [ReadonlyArray<infer I> | undefined]
  ? ReadonlyArray<Item<I>> | Extract<A, undefined>
  : A
type Further = Omit<Settings, "name">

/** The settings of a file, with defaults; each item of a list keeps its index there. */
type Parts = Partial<Pick<Settings, "name">> & { readonly [Key in keyof Further]: ItemsOf<Further[Key]> }

const { name: _, ...furtherFields } = JobFile.fields
/** Of a file that says nothing; its lists are empty. */
const absent: object = Schema.decodeUnknownSync(Schema.Struct(furtherFields))({})

/** Each part and each item of a list is decoded on its own, so that one mistake does not hide the others. */
const decodeParts = (context: Context, root: Readonly<Record<string, unknown>>): Parts => {
  const { document, findings } = context
  const known = Object.keys(JobFile.fields)
  for (const key of Object.keys(root))
    if (!known.includes(key)) findings.error(document.place([key], "key"), unknownKey(key, known))
  if (!Object.hasOwn(root, "name")) findings.error(document.place([]), missingKey("name"))
  const itemsOf = (key: string, item: SchemaAST.AST | undefined): ReadonlyArray<Item<unknown>> => {
    const schema = Schema.make<Schema.ConstraintDecoder<unknown>>(item ?? Schema.Unknown.ast)
    const items = decodePart(context, Schema.Array(Schema.Unknown), root[key], [key]) ?? []
    return items.flatMap((written, index) => {
      if (findings.isFull()) return []
      const value = decodePart(context, schema, written, [key, index])
      return value === undefined ? [] : [{ index, value }]
    })
  }
  const parts = Object.entries(JobFile.fields).flatMap(([key, field]) => {
    if (!Object.hasOwn(root, key)) return []
    const { ast } = field
    const value = SchemaAST.isArrays(ast)
      ? itemsOf(key, ast.rest[0])
      : decodePart<Schema.ConstraintDecoder<unknown>>(context, field, root[key], [key])
    return value === undefined ? [] : [[key, value] as const]
  })
  // Each value is of its key's type; only a loop cannot say so.
  return { ...absent, ...Object.fromEntries(parts) } as Parts
}

const readSource = (path: string) =>
  readTextFile(path, bytesMax).pipe(
    Effect.mapError((reason) => {
      const message = `the job file cannot be read (${reason})`
      return new JobInvalid({ problems: [{ ...topOf(path), message }], warnings: [] })
    }),
  )

const deltaGone =
  "`delta` no longer has an effect, and no Delta logs are written: Spark and others read the Parquet " +
  "files, tables/<table>/**/*.parquet"

const deletedUnread =
  "no results are read, neither flow results nor those of other endpoints, and executions are deleted at " +
  "the service all the same; `after_export: keep` leaves them there"

/** One of two lengths may be the default, which nobody has written. */
const checkLengths = (
  { document, findings }: Context,
  section: string,
  [[less, short], [more, long]]: readonly [
    readonly [string, Duration.Duration],
    readonly [string, Duration.Duration],
  ],
): void => {
  if (!Duration.isGreaterThan(short, long)) return
  const isWritten = (key: string) => document.written([section, key]) !== undefined
  const told = (key: string, length: Duration.Duration) =>
    `\`${key}\` (${Duration.format(length)}${isWritten(key) ? "" : " unless it is written"})`
  const place = document.place([section, isWritten(less) ? less : more])
  findings.error(place, `${told(less, short)} is longer than ${told(more, long)}`)
}

const checkSettings = (context: Context, parts: Parts): void => {
  const { document, findings } = context
  const { polling, retry, output } = parts
  if (!parts.flow_results.enabled && parts.after_export === "delete")
    findings.warn(document.place(["flow_results", "enabled"]), deletedUnread)
  if (output.delta !== undefined) findings.warn(document.place(["output", "delta"], "key"), deltaGone)
  checkLengths(context, "polling", [
    ["min", polling.min],
    ["max", polling.max],
  ])
  checkLengths(context, "retry", [
    ["base", retry.base],
    ["max", retry.max],
  ])
  for (const { index, value } of parts.replaces ?? [])
    if (value === parts.name)
      findings.error(document.place(["replaces", index]), `a job would take its own place: \`${value}\``)
}

const readRenamed = ({ document }: Context, parts: Parts, folder: string) => {
  const { after, output, replaces, schemas } = parts
  const jobs = after.map(({ index, value }) => ({ job: value, place: document.place(["after", index]) }))
  return {
    ...Struct.omit(output, ["delta"]),
    ...given({
      after: jobs.length === 0 ? undefined : jobs,
      replaces: replaces?.map(({ value }) => value),
      schemas: schemas && beside(folder, schemas),
    }),
  }
}

const bindCustomers = Effect.fnUntraced(function* (
  context: Context,
  parts: Parts,
  {
    folder,
    service,
    ...named
  }: Pick<Assignments.Surroundings, "folder" | "hasTokens" | "namesEngines"> & {
    readonly service: Job["service"] | undefined
  },
) {
  const surroundings: Assignments.Surroundings = {
    context,
    folder,
    engines: Assignments.readJobEngines(context, parts.engines),
    ...named,
    assignments: [],
    places: new Map(),
    tokens: new Map(),
  }
  for (const item of parts.customers) {
    if (context.findings.isFull()) break
    if (!Assignments.checkCustomer(context, item)) continue
    const { id, from, references, tokenized_access, features_column, token_column } = item.value
    if (from === undefined) {
      if (id !== undefined) Assignments.bindInline(surroundings, { ...item, value: { ...item.value, id } })
      continue
    }
    const { findings } = context
    const placeOf = (key: string) => context.document.place(["customers", item.index, key])
    const path = beside(folder, from)
    const onRow = (row: CustomerRow) => bindRow(surroundings, row, tokenized_access ?? false)
    const hasLogins = yield* readCustomersFile(
      { path, references, folder, features_column, token_column, findings, onRow },
      placeOf("from"),
      placeOf(references === undefined ? "from" : "references"),
    )
    // The logins of the embedded service open nothing.
    if (hasLogins && service?._tag !== "Embedded") yield* Env.checkLoginsFile(path, findings)
  }
  return surroundings.assignments
})

const readSessions = (context: Context, items: Parts["sessions"]): Job["sessions"] => {
  const { document, findings } = context
  const seen = new Set<string>()
  return items.map(({ index, value }) => {
    const written = Predicate.isString(value) ? { id: value } : value
    const place = document.place(["sessions", index])
    if (seen.has(written.id)) findings.error(place, "this session is already listed")
    seen.add(written.id)
    if (written.customer !== undefined) warnOfId(context, written.customer, place)
    const { customer } = written
    const customer_id = customer === undefined ? undefined : CustomerId.make(customer)
    return { session_id: SessionId.make(written.id), customer_id, place }
  })
}

const enginesOf = ({ engines }: Parts, assignments: Job["assignments"]): ReadonlySet<string> =>
  new Set([
    ...engines.map(({ value }) => (Predicate.isString(value) ? value : value.reference)),
    ...assignments.map(({ engine_reference }) => engine_reference),
  ])

/** With literals and variables, which are known here; a plan compares files and commands. */
const checkHooksNow = Effect.fnUntraced(function* (
  { findings }: Context,
  pairs: ReadonlyArray<HookPair>,
  assignments: Job["assignments"],
  keys: ReturnType<typeof keysOf>,
  lookUp: Env.Environment["lookUp"],
) {
  if (pairs.length === 0) return
  const references = [...Env.referencesOf({ assignments }), ...keys.map(({ reference }) => reference)]
  const environment = yield* lookUp(Env.variableNames(references))
  const valueOf = (one: SecretReference) => (one._tag === "Env" ? environment.get(one.name) : undefined)
  const secrets = assignments.flatMap((assignment) => secretsOfLogin(assignment, valueOf))
  const ours = keys.map(({ reference, whose }) => ({
    value: valueOf(reference),
    whose,
    kept: "password" as const,
  }))
  checkHooks(pairs, [...secrets, ...ours], findings)
})

/** A part of a job needs fewer than `min_customers`, which its nights need; its rules apply without any. */
export type JobUse = "part" | "rules"

/**
 * References and files in it are relative to its folder. `envFile`: the file of variables, if not the `.env`
 * there.
 */
export const loadJob = Effect.fn("LoadJob.loadJob")(function* (path: string, envFile?: string, use?: JobUse) {
  const source = yield* readSource(path)
  const findings = makeFindings()
  const folder = dirname(path)
  const variables = yield* Env.readVariables({ folder, given: envFile }, findings)
  const known = Env.makeEnvironment(variables)
  const asked = [...variablesIn(source), ...Object.values(overrides)]
  const environment = yield* known.lookUpTexts(asked, findings)
  const document = readDocument({ file: path, source, schema: JobFile.ast, environment, findings })
  const context: Context = { document, findings }
  const invalid = () => new JobInvalid({ problems: findings.errors(), warnings: findings.warnings() })
  const { root } = document
  if (root === undefined) return yield* invalid()
  if (!Predicate.isObject(root)) {
    findings.error(document.place([]), "a job file is a mapping of keys to values")
    return yield* invalid()
  }
  const parts = decodeParts(context, root)
  checkSettings(context, parts)
  const service =
    parts.service === undefined && Object.hasOwn(root, "service")
      ? undefined
      : resolveTarget(context, parts.service, { environment, folder })
  const alarmPlaces = new Map<string, Place>()
  const notify = readReceivers(context, parts.notify, folder, parts, alarmPlaces)
  const assignments = yield* bindCustomers(context, parts, {
    folder,
    service,
    hasTokens: Object.hasOwn(root, "tokens"),
    namesEngines: Array.isArray(root["engines"])
      ? root["engines"].length > 0
      : Object.hasOwn(root, "engines"),
  })
  const sessions = readSessions(context, parts.sessions)
  const sources = yield* loadResultsSources(
    { findings, folder, environmentOf: (text) => known.lookUpTexts(variablesIn(text), findings) },
    parts.schemas,
    document.place(["schemas"]),
  )
  const ownSql = yield* readOwnSql(context, folder, parts)
  const freshness = readFreshness(context, parts.freshness, enginesOf(parts, assignments))
  checkNumberOfCustomers(context, { assignments, sessions }, parts.min_customers, use)
  const keys = readKeys(context, parts, folder, { assignments, sessions })
  const hooks = hookPairs(context, parts.engines, parts.customers)
  yield* checkHooksNow(context, hooks, assignments, keysOf({ service, ...keys }), known.lookUp)
  const { name, telemetry } = parts
  if (findings.errors().length > 0 || name === undefined || service === undefined) return yield* invalid()
  const job: Job = {
    ...Struct.omit(parts, notAsWritten),
    ...readRenamed(context, parts, folder),
    ...ownSql,
    ...freshness,
    ...keys,
    ...(telemetry && { telemetry: readTelemetry(context, telemetry, folder, alarmPlaces) }),
    ...(alarmPlaces.size > 0 && { alarmPlaces }),
    name,
    path,
    service,
    notify,
    assignments,
    sources,
    hooks,
    sessions,
  }
  const warnings = findings.warnings()
  const bound = yield* Env.bindVariables(job, known, envFile !== undefined).pipe(
    Effect.mapError((problem) => new JobInvalid({ problems: [problem], warnings })),
  )
  return { job: bound, warnings }
})
