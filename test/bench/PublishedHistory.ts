/**
 * An output folder with many published nights, made quickly: one night is landed and published by the program, and its
 * Parquet files are written again by DuckDB for each further night, with other runs, dates and ids. Ledger and manifest
 * know every night.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import type { Connection } from "../../src/base/DuckDb.ts"
import { identifier, literal } from "../../src/base/DuckDbFailed.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { filesOf, layoutOf, manifestText, readManifest } from "../../src/tables/Manifest.ts"
import type { Manifest, ManifestFile } from "../../src/tables/Manifest.ts"
import { append, begin, profileOf, publish, resultsOf, stateOf, succeed } from "../tables/night.ts"
import { anId } from "../harness/Id.ts"

const product = "customer_information"
const recordsEach = 5

const recordsOf = (n: number, run: string): ReadonlyArray<object> => [
  {
    ...profileOf(`María José ${n}`),
    identification_numbers: [
      { type: "es:dni", value: `${10_000_000 + n}X`, validated: true, country: "ES" },
      { type: "es:ssn", value: `28${n}`, validated: false },
    ],
    phones: [`+346${10_000_000 + n}`, `+349${10_000_000 + n}`],
    addresses: [
      { title: "home", street: `Calle Mayor ${n % 200}`, city: "Madrid", zip_code: `28${n % 999}` },
    ],
  },
  ...Array.from({ length: recordsEach - 1 }, (_, each) => ({
    product: "accounts",
    sub_family: "bank:account",
    iban: `ES${n}-${each}`,
    balance: `${(n * 7_919 + each * run.length) % 100_000}.10`,
  })),
]

const dateOf = (night: number): string =>
  new Date(Date.UTC(2025, 0, 1 + night)).toISOString().slice(0, "2025-01-01".length)
export const runOf = (night: number): string => `nightly.${dateOf(night)}`

/** One night of this many customers and five records each, landed and told to the ledger. */
export const liveNight = Effect.fnUntraced(function* (night: number, customers: number) {
  const run = runOf(night)
  yield* append([begin(run, dateOf(night))])
  const numbers = Array.from({ length: customers }, (_, n) => n)
  const products_count = {
    [`${product}:user_profile@${product}`]: 1,
    "bank:account@accounts": recordsEach - 1,
  }
  yield* Effect.forEach(
    numbers,
    (n) => {
      const [id, customer] = [`${night}-${n}`, `c-${n}`]
      const body = resultsOf(...recordsOf(n, run))
      return succeed(run, id, customer, body, stateOf(id, customer, { products_count }))
    },
    { concurrency: 64, discard: true },
  )
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
  const other: Readonly<Record<string, string>> = {
    run_id: literal(runOf(night)),
    run_date: `DATE ${literal(dateOf(night))}`,
    sequence: String(night),
    ...Object.fromEntries(ids.map((id) => [id, `${id} || '.${night}'`])),
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
    const path = `tables/${table}/run_date=${dateOf(night)}/${runOf(night)}-v1.parquet`
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
  customers: number,
) {
  const layout = layoutOf(root)
  if (readManifest(layout.manifest) === undefined) {
    yield* liveNight(0, customers)
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
