/**
 * An output folder with many published nights, made quickly: one night is landed and published by the program, and its
 * Parquet files are written again by DuckDB for each further night, with other runs, dates and ids, and other content in
 * a few records. Ledger and manifest know every night.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Layer } from "effect"
import { DuckDb, type Connection } from "../../src/base/DuckDb.ts"
import { identifier, literal } from "../../src/base/DuckDbFailed.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { filesOf, layoutOf, manifestText, readManifest } from "../../src/tables/Manifest.ts"
import type { Manifest, ManifestFile } from "../../src/tables/Manifest.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import {
  append,
  begin,
  builtInOptions,
  foundation,
  publish,
  resultsOf,
  stateOf,
  succeed,
} from "../tables/night.ts"
import { anId } from "../harness/Id.ts"

/** How many customers a night has, and how many records each of them. */
export interface NightSize {
  readonly customers: number
  readonly each: number
}

const text = (name: string) => `  ${name}: { type: VARCHAR, comment: A text. }`
const schema = `
table: movements
comment: What was booked, one row each.
product: accounts
sub_families: ["bank:movement"]
features: [customer_information_read]
key: [reference]
columns:
  reference: { type: VARCHAR, required: true, comment: The number of the booking. }
  number: { type: INTEGER, required: true, comment: Its place among all. }
  booked: { type: DATE, required: true, comment: When it was booked. }
  amount: { type: "DECIMAL(18,2)", required: true, comment: How much. }
  balance: { type: "DECIMAL(18,2)", comment: How much was there then. }
  settled: { type: BOOLEAN, comment: Whether it is done. }
  fetch_date: { type: TIMESTAMPTZ, required: true, comment: When the source was read. }
${["account", "currency", "kind", "counterparty", "description", "branch", "channel", "note"].map(text).join("\n")}
fetched: [fetch_date]
`

export const historyOptions = (root: string) => ({
  ...builtInOptions(root),
  ownSchemas: join(dirname(root), "schemas"),
  parquet: ["current", "history"] as const,
})

/** Everything that publishes in the folder; the schema of the records stands beside it. */
export const historyLayers = (root: string) => {
  const { ownSchemas } = historyOptions(root)
  mkdirSync(ownSchemas, { recursive: true })
  writeFileSync(join(ownSchemas, "movements.yaml"), schema)
  return PublisherDuckDb.layer(historyOptions(root)).pipe(Layer.provideMerge(foundation(root)))
}

/** One record in so many has other content in a night, and its former one again in the next. */
const changedEach = 200
const changesIn = (night: number, each: number) => (row: number) => night > 0 && row % each === night % each

const dateOf = (night: number): string =>
  new Date(Date.UTC(2025, 0, 1 + night)).toISOString().slice(0, "2025-01-01".length)
export const runOf = (night: number): string => `nightly.${dateOf(night)}`

const recordOf = (row: number, night: number, isChanged: boolean): object => ({
  product: "accounts",
  sub_family: "bank:movement",
  fetch_date: `${dateOf(night)}T03:04:05Z`,
  reference: `M-${row}`,
  number: row,
  booked: dateOf(-(row % 700)),
  amount: `${(row * 7_919) % 100_000}.10`,
  balance: `${(row * 104_729) % 1_000_000}.55`,
  settled: row % 9 > 0,
  account: `ES${(row * 15_485_863) % 1_000_000_007}`,
  currency: "EUR",
  kind: ["transfer", "card", "direct debit"][row % 3],
  counterparty: `Company ${(row * 31) % 4_001} S.L.`,
  description: isChanged ? `corrected in ${night}` : `Payment ${(row * 17) % 9_973}`,
  branch: `${row % 300}`,
  channel: row % 2 === 0 ? "web" : "app",
})

/** A run of these customers, landed and told to the ledger. */
const liveRun = Effect.fnUntraced(function* (
  run: string,
  night: number,
  { customers, each }: NightSize,
  isChanged: (row: number) => boolean,
) {
  const products_count = { "bank:movement@accounts": each }
  yield* Effect.forEach(
    Array.from({ length: customers }, (_, n) => n),
    (n) => {
      const [id, customer] = [`${run}-${n}`, `c-${n}`]
      const rows = Array.from({ length: each }, (_, k) => n * each + k)
      const body = resultsOf(...rows.map((row) => recordOf(row, night, isChanged(row))))
      return succeed(run, id, customer, body, stateOf(id, customer, { products_count }))
    },
    { concurrency: 64, discard: true },
  )
})

/** One night, landed and told to the ledger. */
export const liveNight = Effect.fnUntraced(function* (night: number, size: NightSize) {
  yield* append([begin(runOf(night), dateOf(night))])
  yield* liveRun(runOf(night), night, size, changesIn(night, changedEach))
})

/** The same night again for a few customers: one record in ten is another one. */
export const liveRerun = Effect.fnUntraced(function* (night: number, size: NightSize) {
  const run = `${runOf(night)}.2`
  const started = begin(run, dateOf(night))
  yield* append([{ ...started, parent: runOf(night) } as typeof started])
  yield* liveRun(run, night + 1, size, changesIn(night + 1, 10))
  return run
})

/** The end of a night that left nothing at the service, with its outcome published, as every night ends. */
export const endNight = (night: number) =>
  append([
    { _tag: "RunEnded", run_id: anId(runOf(night)), exit_code: 0, leftovers: false },
    { _tag: "OutcomePublished", run_id: anId(runOf(night)) },
  ])

const ids = ["task_id", "execution_id", "session_id", "external_execution_id"]

/** The rows of a file of night 0 as those of another night. */
const rowsOfNight = Effect.fnUntraced(function* (connection: Connection, path: string, night: number) {
  const source = `read_parquet(${literal(path)}, hive_partitioning = false)`
  const columns = (yield* connection.columnTypes(`SELECT * FROM ${source}`)).map(({ name }) => name)
  const isChanged = `number % ${changedEach} = ${night % changedEach}`
  const other: Readonly<Record<string, string>> = {
    run_id: literal(runOf(night)),
    run_date: `DATE ${literal(dateOf(night))}`,
    sequence: String(night),
    ...Object.fromEntries(
      ids.map((id) => [id, `replace(${id}, ${literal(runOf(0))}, ${literal(runOf(night))})`]),
    ),
    ...(columns.includes("number") && {
      description: `CASE WHEN ${isChanged} THEN 'corrected in ${night}' ELSE description END`,
      content_id: `CASE WHEN ${isChanged} THEN md5('${night} ' || number) ELSE content_id END`,
      fetch_date: `TIMESTAMPTZ '${dateOf(night)} 03:04:05+00'`,
    }),
  }
  const chosen = columns.map((name) => (name in other ? `${other[name]} AS ${name}` : identifier(name)))
  return `SELECT ${chosen.join(", ")} FROM ${source}`
})

const writeNight = Effect.fnUntraced(function* (
  connection: Connection,
  root: string,
  template: ReadonlyArray<ManifestFile>,
  night: number,
) {
  const files: Array<ManifestFile> = []
  for (const { table, path: from, rows } of template) {
    const path = from.replaceAll(dateOf(0), dateOf(night))
    const place = join(root, path)
    if (!existsSync(place)) {
      mkdirSync(dirname(place), { recursive: true })
      const sql = yield* rowsOfNight(connection, join(root, from), night)
      yield* connection.run(`COPY (${sql}) TO ${literal(`${place}.tmp`)} (FORMAT parquet, COMPRESSION zstd)`)
      renameSync(`${place}.tmp`, place)
    }
    const bytes = readFileSync(place)
    files.push({ table, path, rows, bytes: bytes.length, sha256: sha256Hex(bytes) })
  }
  return files
})

/** Nights up to this many are published in the folder; the database is left to be built. */
export const makeHistory = Effect.fn("Bench.makeHistory")(function* (
  root: string,
  nights: number,
  size: NightSize,
) {
  const layout = layoutOf(root)
  if (readManifest(layout.manifest) === undefined) {
    yield* liveNight(0, size)
    yield* publish(runOf(0))
    yield* endNight(0)
  }
  const manifest = readManifest(layout.manifest)
  if (manifest === undefined) throw new Error("nothing was published")
  const first = manifest.runs[runOf(0)]
  if (first === undefined) throw new Error("the first night is gone")
  const runs: Record<string, Manifest["runs"][string]> = { ...manifest.runs }
  const duckdb = yield* DuckDb
  const connection = yield* duckdb.open({ path: ":memory:", access: "read-write" })
  for (let night = 1; night < nights; night++) {
    if (runs[runOf(night)] !== undefined) continue
    const files = yield* writeNight(connection, root, first.files, night)
    yield* append([begin(runOf(night), dateOf(night))])
    yield* endNight(night)
    runs[runOf(night)] = { ...first, run_date: dateOf(night), files }
  }
  const whole: Manifest = { version: manifest.version + 1, amends: false, runs }
  writeFileSync(
    layout.manifest,
    manifestText({ ...whole, ...(manifest.schemas === undefined ? {} : { schemas: manifest.schemas }) }),
  )
  rmSync(layout.database, { force: true })
  return filesOf(whole).reduce((sum, { rows }) => sum + rows, 0)
}, Effect.scoped)
