/** A hand-written night: facts and bodies of a few tasks, landed and told to a ledger as the pipeline does it. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Stream, type Scope } from "effect"
import { DuckDb, type Connection } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { Landing, type BodyMeta, type LandedBody } from "../../src/landing/Landing.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { openStore, type PublisherOptions } from "../../src/tables/OpenStore.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { verify } from "../../src/tables/Verify.ts"
import { folder } from "../harness/Folder.ts"
import { anId } from "../harness/Id.ts"
import { live, withLayer, type Failure } from "../harness/Steps.ts"

export { folder }

export const schemasFolder = new URL("../../schemas/records", import.meta.url).pathname
/** Profiles with one list: a night of few tables is published sooner. */
const fewSchemas = new URL("schemas", import.meta.url).pathname
export const engine = "es-tax-agency:website"

export const publisherOptions = (root: string) => ({
  root,
  schemasFolder: fewSchemas,
  share: "none" as const,
  toolVersion: "0.1.0",
})

export const foundation = (root: string) =>
  Layer.mergeAll(
    Ledger.layer({ path: join(root, "ledger.sqlite") }),
    LandingFiles.layer({ root }),
    DuckDb.layer,
    NodeFileSystem.layer,
  )

/** With the record schemas of the program, as in a folder that a command works on. */
export const builtInOptions = (root: string) => ({ ...publisherOptions(root), schemasFolder })

/** `calls` are those of everything that writes, but for the ledger, which SQLite writes. */
export const layers = (root: string, more: Partial<PublisherOptions> = {}, calls: FileCalls = machineCalls) =>
  PublisherDuckDb.layer({ ...publisherOptions(root), ...more }).pipe(
    Layer.provideMerge(foundation(root)),
    Layer.provide(Layer.succeed(FileCalls, calls)),
  )

export const builtInLayers = (root: string) => layers(root, { schemasFolder })

type Services = Layer.Success<ReturnType<typeof layers>> | Scope.Scope

/** Tests that begin with such a folder, each with all that a publication needs. */
export const liveIn =
  (
    begun: Effect.Effect<string, never, Scope.Scope> = folder,
    layersIn: (root: string) => ReturnType<typeof layers> = layers,
  ) =>
  (
    title: string,
    steps: (root: string) => Generator<Effect.Effect<unknown, Failure, Services>, void, never>,
  ) =>
    live(title, function* () {
      const root = yield* begun
      yield* Effect.scoped(Effect.gen(() => steps(root))).pipe(Effect.provide(layersIn(root)))
    })

/** Tests that need nothing but DuckDB. */
export const { live: liveDuckDb, effect: effectDuckDb } = withLayer(DuckDb.layer)

const encoder = new TextEncoder()
const at = Date.parse("2026-11-20T02:00:00Z")

const land = Effect.fnUntraced(function* (
  meta: Omit<BodyMeta, "http_status" | "received_at">,
  body: unknown,
) {
  const landing = yield* Landing
  const text = typeof body === "string" ? body : JSON.stringify(body)
  const bytes = body instanceof Uint8Array ? body : encoder.encode(text)
  return yield* landing.land({ ...meta, http_status: 200, received_at: at }, bytes)
})

/** Flips a bit of a landed body. */
export const damageBody = (root: string, run_id: string, { segment, offset }: LandedBody["ref"]): void => {
  const path = join(root, "landing", run_id, segment)
  const bytes = readFileSync(path)
  bytes[offset + 20]! ^= 1
  writeFileSync(path, bytes)
}

export const append = (facts: ReadonlyArray<Fact>) => Effect.flatMap(Ledger, (ledger) => ledger.append(facts))

export const profileOf = (name: string) => ({
  product: "customer_information",
  sub_family: "customer_information:user_profile",
  fetch_date: "2026-11-20T03:04:05Z",
  type: "person",
  name,
  identification_numbers: [],
  gender: "female",
  civil_status: "single",
  emails: [`${name}@example.test`],
  phones: [],
  addresses: [],
})

export const account = { product: "accounts", sub_family: "bank:account", balance: "1.10" }

export const stateOf = (id: string, customer_id: string, rest: object = {}) => ({
  execution_id: anId(`e-${id}`),
  session_id: anId(`s-${id}`),
  app_id: "app",
  customer_id,
  external_execution_id: `x-${id}`,
  engine_reference: engine,
  status_code: "COMPLETED",
  status_reason: "COMPLETED",
  authentication_status: "AUTH_OK",
  is_closed: true,
  products_count: { "customer_information:user_profile@customer_information": 1, odd: 0 },
  end_hook: "skipped",
  warnings_count: 1,
  errors_count: "none",
  date_created: "2026-11-20T01:00:00Z",
  execution_time: 1.5,
  features: [{ code: "customer_information_read", status_reason: "FEATURE_COMPLETED", status_message: null }],
  messages: [{ date: "2026-11-20T01:00:01Z", type: "info", id: "m-1", loc: ["a", 1], message: "slow today" }],
  parameters_errors: [{ loc: ["nif"], msg: "bad", type: "format", input: "the secret", ctx: { n: 1 } }],
  flavour: "new",
  ...rest,
})

export const begin = (run_id: string, run_date: string): Fact => ({
  _tag: "RunStarted",
  run_id: anId(run_id),
  job: "nightly",
  job_path: "jobs/nightly.yaml",
  run_date,
  tool_version: "0.1.0",
})

/** One task that was accepted, closed, pulled and settled; `id` names its execution and session. */
export const succeed = Effect.fnUntraced(function* (
  run_name: string,
  id: string,
  customer_id: string,
  results: unknown,
  state: unknown = stateOf(id, customer_id),
) {
  const run_id = anId(run_name)
  const task = { run_id, task_id: anId(`${run_id}/${customer_id}/${engine}`) }
  const execution = { execution_id: anId(`e-${id}`), session_id: anId(`s-${id}`) }
  const meta = {
    ...task,
    ...execution,
    attempt: 1,
    customer_id: anId(customer_id),
    engine_reference: anId(engine),
  }
  const landedState = yield* land({ ...meta, kind: "state" }, state)
  const landedResults = yield* land({ ...meta, kind: "results" }, results)
  yield* append([
    {
      _tag: "TaskPlanned",
      ...task,
      customer_id: anId(customer_id),
      engine_reference: anId(engine),
      features: ["customer_information_read"],
    },
    { _tag: "StartIntended", ...task, attempt: 1, external_execution_id: `x-${id}`, probe: false },
    { _tag: "StartAnswered", ...task, attempt: 1, answer: "accepted", http_status: 202, ...execution },
    {
      _tag: "AttemptClosed",
      ...task,
      attempt: 1,
      ...execution,
      status_code: "COMPLETED",
      status_reason: "COMPLETED",
      landed: landedState,
    },
    {
      _tag: "ResultsRead",
      ...task,
      ...execution,
      http_status: 200,
      kind: "results",
      is_closed: true,
      landed: landedResults,
    },
    { _tag: "TaskSettled", ...task, outcome: "succeeded", reason: "COMPLETED", who_acts: "nobody" },
  ])
})

/** The results of a session that the job lists for this customer. */
export const readListed = Effect.fnUntraced(function* (
  run_name: string,
  session: string,
  customer: string,
  results: unknown,
) {
  const run_id = anId(run_name)
  const [session_id, customer_id] = [anId(session), anId(customer)]
  const task = { run_id, task_id: anId(`${run_id}/session/${session}`), session_id }
  const landed = yield* land({ ...task, customer_id, kind: "results" }, results)
  yield* append([
    { _tag: "TaskPlanned", ...task, customer_id, features: [] },
    { _tag: "ResultsRead", ...task, http_status: 200, kind: "results", is_closed: true, landed },
    {
      _tag: "TaskSettled",
      run_id,
      task_id: task.task_id,
      outcome: "succeeded",
      reason: "COMPLETED",
      who_acts: "nobody",
    },
  ])
})

export const resultsOf = (...data: ReadonlyArray<unknown>) => ({
  data,
  retrieved_features: ["customer_information_read"],
  is_closed: true,
  result: "COMPLETED",
  screen: "es-public-administration:bye:completed",
  hint: 7,
  consent: {
    accepted_date: "2026-11-19T10:00:00Z",
    user_ip: "192.0.2.1",
    accepted_documents: { "../d'1": { version: "1", hash: "h", signature_metadata: { k: 1 } } },
  },
})

/** Publishes a run, and tells the ledger. */
export const publish = Effect.fnUntraced(function* (run_name: string) {
  const run_id = anId(run_name)
  const published = yield* Effect.flatMap(Publisher, (publisher) => publisher.publish(run_id))
  const { version, receipts } = published
  yield* append([{ _tag: "RunPublished", run_id, version, receipts }])
  return published
})

/** A published run of the job with one task of c-1, and these records. */
export const liveNight = Effect.fnUntraced(function* (
  run_name: string,
  id: string,
  ...data: ReadonlyArray<unknown>
) {
  yield* append([begin(run_name, run_name.slice("nightly.".length))])
  yield* succeed(run_name, id, "c-1", resultsOf(...data))
  return yield* publish(run_name)
})

/** Everything that an execution of `succeed` counted is proved to have been here. */
export const drained = (run_name: string, id: string, customer_id: string) => {
  const run_id = anId(run_name)
  const task_id = anId(`${run_id}/${customer_id}/${engine}`)
  const execution_id = anId(`e-${id}`)
  const proof = { basis: "counted" as const, families: [] }
  return append([{ _tag: "AttemptDrained", run_id, task_id, attempt: 1, execution_id, proof }])
}

/** The run of `begin` has ended. */
export const ends = (run: string, more: Partial<Extract<Fact, { _tag: "RunEnded" }>> = {}) =>
  append([
    { _tag: "RunEnded", run_id: anId(run), exit_code: 0, leftovers: false, kept: 0, ...more },
    { _tag: "OutcomePublished", run_id: anId(run) },
  ])

export const taskOf = (run: string, customer = "c-1") => ({
  run_id: anId(run),
  task_id: anId(`${run}/${customer}/${engine}`),
})

/** The service has deleted an execution of `succeed`. */
export const deletes = (run: string, id: string, landed_sha256 = "", customer?: string) => {
  const execution = { ...taskOf(run, customer), execution_id: anId(`e-${id}`) }
  return append([
    { _tag: "DeleteIntended", ...execution, landed_sha256 },
    { _tag: "DeleteAnswered", ...execution, http_status: 204, outcome: "deleted" },
  ])
}

/** A document of its session was downloaded; to where. */
export const document = Effect.fnUntraced(function* (
  run: string,
  id: string,
  attachment_id: string,
  text: string,
  customer?: string,
) {
  const landing = yield* Landing
  const landed = yield* landing.landAttachment(Stream.make(encoder.encode(text)))
  const read = { attachment_id, media_type: "application/pdf", status: "downloaded" as const, ...landed }
  yield* append([{ _tag: "AttachmentRead", ...taskOf(run, customer), session_id: anId(`s-${id}`), ...read }])
  return landed.path
})

export const storeOf = (root: string) => openStore(publisherOptions(root))
export const problemsIn = (root: string) => Effect.flatMap(storeOf(root), verify)

/** The published database, until the scope ends. */
export const opened = (root: string) =>
  Effect.flatMap(DuckDb, ({ open }) => open({ path: join(root, "nightjar.duckdb"), access: "read-only" }))

/** All rows of a published table. */
export const rowsOf = Effect.fnUntraced(function* (root: string, sql: string) {
  return yield* (yield* opened(root)).rows(sql)
}, Effect.scoped)

/** The names of all published profiles, in their order. */
export const namesIn = (root: string) =>
  Effect.map(rowsOf(root, "SELECT name FROM nights.customer_profiles ORDER BY name"), (rows) =>
    rows.map(({ name }) => String(name)),
  )

/** What can be read in a database, as SQL names it: the tables of `ops`, and all views. */
export const relationsIn = (connection: Connection) =>
  Effect.map(
    connection.rows(`SELECT schema_name || '.' || table_name AS name FROM duckdb_tables() WHERE schema_name = 'ops'
      UNION ALL SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL`),
    (rows) => rows.map(({ name }) => String(name)),
  )

/** The name of every table, those that are nobody's to read too, and the path of every Parquet file. */
export const sourcesIn = Effect.fnUntraced(function* (root: string, connection: Connection) {
  const tables = yield* connection.rows(
    "SELECT schema_name || '.' || table_name AS name FROM duckdb_tables() ORDER BY ALL",
  )
  const files = filesBelow(join(root, "tables")).filter((path) => path.endsWith(".parquet"))
  return [
    ...tables.map(({ name }) => [String(name), String(name)] as const),
    ...files.map((path) => [path, `read_parquet(${literal(join(root, "tables", path))})`] as const),
  ]
})

/** Those in which a run's rows about tasks are not in the order of customer and task; who has none is last. */
export const unsortedIn = Effect.fnUntraced(function* (root: string) {
  const connection = yield* opened(root)
  const sources = yield* sourcesIn(root, connection)
  const files = sources.flatMap(([path]) =>
    path.endsWith(".parquet") ? [literal(join(root, "tables", path))] : [],
  )
  const told = "FILTER (name IN ('customer_id', 'task_id')) = 2"
  const about = yield* connection.rows(`SELECT file_name AS place FROM parquet_schema([${files.join(", ")}])
      GROUP BY ALL HAVING count(*) ${told}
    UNION ALL SELECT schema_name || '.' || table_name AS place FROM (SELECT *, column_name AS name FROM duckdb_columns())
      GROUP BY ALL HAVING count(*) ${told}`)
  const places = new Set(about.map(({ place }) => String(place)))
  const rows = yield* connection.rows(
    sources
      .filter(([name]) => places.has(name) || places.has(join(root, "tables", name)))
      .map(([name, source]) => `SELECT ${literal(name)} AS name, run_id, customer_id, task_id FROM ${source}`)
      .join(" UNION ALL "),
  )
  const unsorted: Array<string> = []
  for (const [place, own] of Map.groupBy(rows, ({ name, run_id }) => `${name}: ${run_id}`)) {
    const keys = own.map(({ customer_id, task_id }) => `${customer_id ?? "~"} ${task_id}`)
    if (keys.join("\n") !== keys.toSorted().join("\n")) unsorted.push(place)
  }
  return unsorted
}, Effect.scoped)
