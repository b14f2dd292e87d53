/**
 * One contestant of `npm run bench -- data` in a process of its own, so that its peak memory is its own: prints what it
 * took as a line of JSON. `prepare` writes what the others read.
 */
import { createReadStream, createWriteStream, mkdirSync } from "node:fs"
import { join } from "node:path"
import { finished } from "node:stream/promises"
import { createInterface } from "node:readline"
import { DuckDBInstance, type DuckDBAppender } from "@duckdb/node-api"
import { Effect, Schema } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { append, begin, builtInLayers, publish, stateOf, succeed } from "../tables/night.ts"
import { profile, resultsBody, rowsOfProfiles } from "./ProfileBodies.ts"
import { cpuMs, measureSteps, peakMb } from "./StepUsage.ts"

const [name = "", folder = "", count = "0"] = process.argv.slice(2)
const profiles = Number(count)
const run = "nightly.2026-11-20"
const output = join(folder, "output")
const lines = join(folder, "bodies.ndjson")
/** A source has one or two profiles of a customer; the others stand for its accounts, movements and bills. */
const profilesEach = 100

const bodyOf = (n: number) =>
  resultsBody(
    Array.from({ length: Math.min(profilesEach, profiles - n * profilesEach) }, (_, each) =>
      profile(n * profilesEach + each),
    ),
  )
const bodies = Math.ceil(profiles / profilesEach)

/** The same bodies as landed ones of a night that is not published yet, and as a file of lines. */
const prepare = async (): Promise<void> => {
  mkdirSync(output, { recursive: true })
  const file = createWriteStream(lines)
  const night = Effect.gen(function* () {
    yield* append([begin(run, run.slice("nightly.".length))])
    yield* Effect.forEach(
      Array.from({ length: bodies }, (_, n) => n),
      (n) => {
        const body = bodyOf(n)
        file.write(`${JSON.stringify(body)}\n`)
        const [id, customer] = [String(n), `c-${n}`]
        const products_count = {
          "customer_information:user_profile@customer_information": body.data.length,
        }
        return succeed(run, id, customer, body, stateOf(id, customer, { products_count }))
      },
      { concurrency: 64, discard: true },
    )
  })
  await Effect.runPromise(Effect.provide(night, builtInLayers(output)))
  await finished(file.end())
}

interface Took {
  /** Until the records are in Parquet files, and until they are in a database too; seconds. */
  readonly parquet: number | undefined
  readonly database: number
  /** CPU time of all threads until they are in a database; seconds. */
  readonly cpu: number
  readonly rows: Readonly<Record<string, number>>
}

const seconds = (from: number): number => (performance.now() - from) / 1_000
const cpuSeconds = (from: number): number => (cpuMs() - from) / 1_000

const countRows = async (path: string): Promise<Readonly<Record<string, number>>> => {
  const count = Effect.gen(function* () {
    const duckdb = yield* DuckDb
    const connection = yield* duckdb.open({ path, access: "read-only" })
    const rows: Record<string, number> = {}
    for (const table of Object.keys(rowsOfProfiles(0)))
      rows[table] = Number((yield* connection.rows(`SELECT count(*) AS n FROM ${table}`))[0]?.["n"])
    return rows
  })
  return Effect.runPromise(Effect.provide(Effect.scoped(count), DuckDb.layer))
}

/** The whole way of a night: read, checked, normalised, children apart, Parquet, database, manifest, synced. */
const ours = async (): Promise<Took> => {
  const [from, cpuFrom] = [performance.now(), cpuMs()]
  const { steps } = await Effect.runPromise(Effect.provide(measureSteps(publish(run)), builtInLayers(output)))
  const [database, cpu] = [seconds(from), cpuSeconds(cpuFrom)]
  const staged = steps.find(({ name: step }) => step === "Publishing.stageRun")
  return {
    parquet: staged === undefined ? undefined : staged.elapsedMs / 1_000,
    database,
    cpu,
    rows: await countRows(join(output, "nightjar.duckdb")),
  }
}

const lists = ["identification_numbers", "emails", "phones", "addresses"]

/** The tables of profiles, each row with its key, as DuckDB's own SQL takes them from `records`. */
const peerTables: Readonly<Record<string, string>> = {
  customer_profiles: `SELECT record_id, md5(record::VARCHAR) AS content_id, record.* EXCLUDE (${lists.join(", ")}) FROM records`,
  ...Object.fromEntries(
    lists.map((list) => [
      list,
      `SELECT record_id, generate_subscripts(record.${list}, 1) AS position, unnest(record.${list}) AS item FROM records`,
    ]),
  ),
}

/** What DuckDB alone needs for the same tables: nothing checked, nothing kept that does not fit, no history. */
const limit = async (): Promise<Took> => {
  const instance = await DuckDBInstance.create(join(folder, "limit.duckdb"))
  const connection = await instance.connect()
  const [from, cpuFrom] = [performance.now(), cpuMs()]
  await connection.run(
    `CREATE TEMP TABLE records AS SELECT row_number() OVER () AS record_id, record
     FROM (SELECT unnest(data) AS record FROM read_json('${lines}', format = 'newline_delimited'))`,
  )
  const fileOf = (table: string): string => join(folder, `limit-${table}.parquet`)
  for (const [table, rows] of Object.entries(peerTables))
    await connection.run(`COPY (${rows}) TO '${fileOf(table)}' (FORMAT parquet, COMPRESSION zstd)`)
  const parquet = seconds(from)
  for (const table of Object.keys(peerTables))
    await connection.run(`CREATE TABLE ${table} AS FROM read_parquet('${fileOf(table)}')`)
  await connection.run("CHECKPOINT")
  const [database, cpu] = [seconds(from), cpuSeconds(cpuFrom)]
  connection.closeSync()
  instance.closeSync()
  return { parquet, database, cpu, rows: await countRows(join(folder, "limit.duckdb")) }
}

const text = Schema.NullOr(Schema.String)
const Profile = Schema.Struct({
  fetch_date: Schema.String,
  type: Schema.String,
  name: text,
  name_extra: text,
  alias: text,
  birth_date: text,
  birth_country: text,
  nationality_country: text,
  residence_country: text,
  gender: Schema.String,
  civil_status: Schema.String,
  number_of_children: Schema.NullOr(Schema.Int),
  language: text,
  member_since: text,
  identification_numbers: Schema.Array(
    Schema.Struct({
      type: Schema.String,
      value: Schema.String,
      validated: Schema.Boolean,
      country: Schema.optionalKey(text),
      valid_until: Schema.optionalKey(text),
    }),
  ),
  emails: Schema.Array(Schema.String),
  phones: Schema.Array(Schema.String),
  addresses: Schema.Array(Schema.Record(Schema.String, text)),
})
const decodeBody = Schema.decodeUnknownSync(Schema.Struct({ data: Schema.Array(Profile) }))

const scriptTables = {
  customer_profiles: `id INTEGER, fetch_date VARCHAR, type VARCHAR, name VARCHAR, name_extra VARCHAR, alias VARCHAR,
    birth_date VARCHAR, birth_country VARCHAR, nationality_country VARCHAR, residence_country VARCHAR, gender VARCHAR,
    civil_status VARCHAR, language VARCHAR, member_since VARCHAR, number_of_children INTEGER`,
  identification_numbers:
    "id INTEGER, type VARCHAR, value VARCHAR, country VARCHAR, valid_until VARCHAR, validated BOOLEAN",
  emails: "id INTEGER, email VARCHAR",
  phones: "id INTEGER, phone VARCHAR",
  addresses: `id INTEGER, title VARCHAR, street VARCHAR, street_extra VARCHAR, municipality VARCHAR, city VARCHAR,
    state VARCHAR, country VARCHAR, zip_code VARCHAR`,
}

const addTexts = (to: DuckDBAppender, texts: ReadonlyArray<string | null | undefined>): void => {
  for (const value of texts)
    if (value === null || value === undefined) to.appendNull()
    else to.appendVarchar(value)
}

/** What a user would write in an afternoon: parsed, checked by a schema library, appended row by row. */
const script = async (): Promise<Took> => {
  const instance = await DuckDBInstance.create(join(folder, "script.duckdb"))
  const connection = await instance.connect()
  const [from, cpuFrom] = [performance.now(), cpuMs()]
  for (const [table, columns] of Object.entries(scriptTables))
    await connection.run(`CREATE TABLE ${table} (${columns})`)
  const to = {
    customer_profiles: await connection.createAppender("customer_profiles"),
    identification_numbers: await connection.createAppender("identification_numbers"),
    emails: await connection.createAppender("emails"),
    phones: await connection.createAppender("phones"),
    addresses: await connection.createAppender("addresses"),
  }
  let id = 0
  for await (const line of createInterface(createReadStream(lines)))
    for (const one of decodeBody(JSON.parse(line)).data) {
      id += 1
      to.customer_profiles.appendInteger(id)
      addTexts(to.customer_profiles, [one.fetch_date, one.type, one.name, one.name_extra, one.alias])
      addTexts(to.customer_profiles, [one.birth_date, one.birth_country, one.nationality_country])
      addTexts(to.customer_profiles, [one.residence_country, one.gender, one.civil_status])
      addTexts(to.customer_profiles, [one.language, one.member_since])
      if (one.number_of_children === null) to.customer_profiles.appendNull()
      else to.customer_profiles.appendInteger(one.number_of_children)
      to.customer_profiles.endRow()
      for (const number of one.identification_numbers) {
        to.identification_numbers.appendInteger(id)
        addTexts(to.identification_numbers, [number.type, number.value, number.country, number.valid_until])
        to.identification_numbers.appendBoolean(number.validated)
        to.identification_numbers.endRow()
      }
      for (const [appender, values] of [
        [to.emails, one.emails],
        [to.phones, one.phones],
      ] as const)
        for (const value of values) {
          appender.appendInteger(id)
          appender.appendVarchar(value)
          appender.endRow()
        }
      for (const {
        title,
        street,
        street_extra,
        municipality,
        city,
        state,
        country,
        zip_code,
      } of one.addresses) {
        to.addresses.appendInteger(id)
        addTexts(to.addresses, [title, street, street_extra, municipality, city, state, country, zip_code])
        to.addresses.endRow()
      }
    }
  for (const appender of Object.values(to)) appender.closeSync()
  await connection.run("CHECKPOINT")
  const [database, cpu] = [seconds(from), cpuSeconds(cpuFrom)]
  connection.closeSync()
  instance.closeSync()
  return { parquet: undefined, database, cpu, rows: await countRows(join(folder, "script.duckdb")) }
}

const contestants: Readonly<Record<string, () => Promise<Took>>> = { ours, limit, script }

if (name === "prepare") await prepare()
else console.log(JSON.stringify({ ...(await contestants[name]?.()), peak_mb: peakMb() }))
