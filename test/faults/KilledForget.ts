/**
 * `nightjar forget` in a real process that is killed with SIGKILL, also within SQLite's own writes: at each kill the
 * tables can be read, and the same command finishes the removal as if nothing had happened (promise 15).
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb, type Json } from "../../src/base/DuckDb.ts"
import { literal } from "../../src/base/DuckDbFailed.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { seeded } from "../../src/sandbox/state/Reading.ts"
import { callsIn, judgeFolder, nightjar, tellEnd, tracing, type Campaign, type Verdict } from "./Campaign.ts"
import { killAgain, killAt } from "./KilledProcess.ts"
import { hasStrace, type Moment } from "./KillMoments.ts"
import type { ProcessEnd } from "./NightjarCommand.ts"
import { brokenDatabase, readTables, type Tables } from "./PublishedTables.ts"
import { differingDatabases } from "./SameTables.ts"

/** With records, with documents, with two engines, with a rejected login. */
const customers = ["c-01", "c-07", "c-09", "c-03"] as const

/** What a removal changes, in its order. */
const watchedFiles = [
  "forgetting.json",
  "ledger.sqlite-wal",
  "ledger.sqlite",
  "attachments",
  "published/held",
  "published/previous",
  "nightjar.duckdb.build",
  "tables/manifest.next.json",
  "nightjar.duckdb",
  "tables/manifest.json",
  "tokens.sqlite",
] as const

/** An undisturbed removal: how long it takes, how often it makes each call, and what it leaves. */
interface Removal {
  readonly place: Place
  readonly customer: string
  readonly elapsedMs: number
  readonly calls: ReadonlyMap<string, number>
  readonly tables: Tables
  /** Of all runs: logs, summaries, reports. */
  readonly files: ReadonlyArray<string>
  /** Ids and values that only this customer has. */
  readonly theirs: ReadonlyArray<string>
}

interface Place {
  readonly campaign: Campaign
  /** The output folder that the command is given. */
  readonly template: string
  /** Where its copies are made. */
  readonly folder: string
}

const copyOf = ({ template, folder }: Place, name: string): string => {
  const output = join(folder, name)
  rmSync(output, { recursive: true, force: true })
  cpSync(template, output, { recursive: true })
  return output
}

const forget = ({ campaign }: Place, customer: string, output: string, prefix?: ReadonlyArray<string>) =>
  nightjar(campaign, ["forget", customer, "--yes", "--here-only", "--output", output], {}, prefix)

/** Returns what tries one removal, by its seed. */
export const openRemovals = async (campaign: Campaign): Promise<(seed: number) => Promise<Verdict>> => {
  const folder = join(campaign.folder, "removals")
  const template = join(folder, "template")
  const { output } = await campaign.undisturbed("quick")
  cpSync(output, template, { recursive: true })
  furnish(template)
  const place: Place = { campaign, template, folder }
  const undisturbed = new Map<string, Promise<Removal>>()
  return (seed) => {
    const customer = customers[seed % customers.length] ?? customers[0]
    const known = undisturbed.get(customer) ?? liveRemoval(place, customer)
    undisturbed.set(customer, known)
    return known.then((removal) => killRemoval(removal, seed))
  }
}

/** What these nights do not leave by themselves. */
const furnish = (output: string): void => {
  mkdirSync(join(output, "published/held"), { recursive: true })
  cpSync(join(output, "nightjar.duckdb"), join(output, "published/held/nightly.2026-01-01.duckdb"))
  const tokens = openTokenDatabase(join(output, "tokens.sqlite"))
  for (const customer of [...customers, "c-02"])
    tokens
      .prepare(
        `INSERT INTO tokens (service, name, token_id, customer_id, engine_reference, features, exchanged_at, expires_at)
          VALUES ('s', ?, ?, ?, 'e', '[]', 1, 2)`,
      )
      .run(`${customer}/e`, `token-of-${customer}`, customer)
  tokens.close()
}

const liveRemoval = async (place: Place, customer: string): Promise<Removal> => {
  const output = copyOf(place, `undisturbed-${customer}`)
  const before = await readTables(output)
  const theirs = valuesOf(before, customer)
  const found = await tracesIn(output, customer, theirs)
  if (found.length < 10) throw new Error(`${customer} is in ${found.length} files only`)
  const end = await forget(place, customer, output).ended
  if (end.code !== 0) throw new Error(`the undisturbed removal failed: ${tellEnd(end)}`)
  const { elapsedMs } = end
  const left = { tables: await readTables(output), files: filesIn(output) }
  // The rest is judged after each kill.
  const complaints = lostRows(before, { customer, ...left })
  if (complaints.length > 0)
    throw new Error(`the undisturbed removal of ${customer} is wrong: ${complaints.join("\n")}`)
  rmSync(output, { recursive: true, force: true })
  return { place, customer, theirs, ...left, elapsedMs, calls: await countCalls(place, customer) }
}

/** How often a removal makes each call; nothing where strace is not to be had. */
const countCalls = async (place: Place, customer: string): Promise<Removal["calls"]> => {
  if (!hasStrace || !place.campaign.aimAtCalls) return new Map()
  const output = copyOf(place, `calls-${customer}`)
  const log = `${output}.log`
  await forget(place, customer, output, tracing(log)).ended
  rmSync(output, { recursive: true, force: true })
  return callsIn(log)
}

const drawMoments = (seed: number, redrawn: number, { elapsedMs, calls }: Removal): ReadonlyArray<Moment> => {
  const draw = seeded("removals", seed, redrawn)
  return Array.from({ length: draw.int(1, 2) }, (): Moment => {
    const which = draw.unit() * (calls.size === 0 ? 0.5 : 1)
    if (which < 0.2) return { _tag: "Elapsed", ms: draw.int(0, Math.round(elapsedMs)) }
    if (which < 0.5)
      return { _tag: "File", path: draw.pick(watchedFiles), laterMs: draw.chance(0.3) ? 0 : draw.int(1, 60) }
    const [name, count] = [...calls][draw.int(0, calls.size - 1)] ?? ["fsync", 1]
    return { _tag: "SystemCall", name, nth: draw.int(1, count) }
  })
}

/** Moments that all came too late are drawn again. */
const killRemoval = (removal: Removal, seed: number): Promise<Verdict> =>
  killAgain(async (redrawn) => {
    const { place, customer } = removal
    const output = copyOf(place, `removal-${seed}`)
    const { story, complaints, kills, end } = await killAt(drawMoments(seed, redrawn, removal), {
      output,
      start: (prefix) => forget(place, customer, output, prefix),
      judgeKill: () => brokenDatabase(output),
    })
    if (!isFinished(end, output)) complaints.push(`it ended with ${tellEnd(end)}`)
    complaints.push(...(await judgeEnd(output, removal)))
    if (complaints.length === 0) rmSync(output, { recursive: true, force: true })
    return { name: `removal ${seed}`, story: `${customer}, ${story()}`, complaints, kills }
  })

const filesIn = (output: string) => filesBelow(join(output, "runs"))

/** Killed after its last step, it has nothing left to find. */
const isFinished = ({ code, stderr }: ProcessEnd, output: string): boolean =>
  code === 0 ||
  (code === 2 && stderr.includes("[customer-unknown]") && !existsSync(join(output, "forgetting.json")))

const judgeEnd = async (
  output: string,
  { place, customer, theirs, tables, files }: Removal,
): Promise<ReadonlyArray<string>> => [
  ...(await judgeFolder({ campaign: place.campaign, output })),
  ...(await tracesIn(output, customer, theirs)).map((path) => `${path} still names ${customer}`),
  ...files.filter((path) => !existsSync(join(output, "runs", path))).map((path) => `runs/${path} is gone`),
  ...differingDatabases(tables, await readTables(output), "unlike after an undisturbed removal"),
]

type Row = Readonly<Record<string, Json>>
const isOf = (row: Row, customer: string, executions: ReadonlySet<Json>): boolean =>
  row["customer_id"] === customer ||
  String(row["task_id"] ?? "").includes(`/${customer}/`) ||
  executions.has(row["execution_id"] ?? "none")

const executionsOf = (tables: Tables, customer: string): ReadonlySet<Json> =>
  new Set(
    (tables.get("ops.executions")?.rows ?? [])
      .filter((row) => row["customer_id"] === customer)
      .map((row) => row["execution_id"] ?? "none"),
  )

/** Rows of others that are gone; `runs` counts tasks. */
const lostRows = (
  before: Tables,
  { customer, tables }: Pick<Removal, "customer" | "tables">,
): ReadonlyArray<string> => {
  const executions = executionsOf(before, customer)
  return [...before].flatMap(([name, { rows }]) => {
    const left = new Set(tables.get(name)?.rows.map((row) => JSON.stringify(row)))
    const lost = rows.filter((row) => !isOf(row, customer, executions) && !left.has(JSON.stringify(row)))
    return name === "ops.runs" || lost.length === 0 ? [] : [`${name} lost ${lost.length} rows of others`]
  })
}

const valueLengthMin = 10
const valuesMax = 80
/** Times, numbers, and the service's own words for how something ended. */
const isWord = /^[\d.,:TZ+-]+$|^[A-Z_]+$/

/** Texts that stand in this customer's rows alone, also as a part of a longer one: ids and what records say. */
const valuesOf = (tables: Tables, customer: string): ReadonlyArray<string> => {
  const executions = executionsOf(tables, customer)
  const [theirs, others] = [new Set<string>(), new Set<string>()]
  for (const { rows } of tables.values())
    for (const row of rows) {
      const to = isOf(row, customer, executions) ? theirs : others
      for (const [column, value] of Object.entries(row))
        if (typeof value === "string" && column !== "fingerprint") to.add(value)
    }
  const elsewhere = Array.from(others).join("\n")
  return [...theirs]
    .filter((value) => value.length >= valueLengthMin && !isWord.test(value) && !elsewhere.includes(value))
    .slice(0, valuesMax)
}

/** Files that still name the customer: by their bytes, and what is compressed by its rows. */
const tracesIn = (output: string, customer: string, theirs: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const duckdb = yield* DuckDb
    const id = new RegExp(`(?<![A-Za-z0-9_-])${customer}(?![A-Za-z0-9_-])`)
    const { rows } = yield* duckdb.open({ path: ":memory:", access: "read-write", threads: 1 })
    const found: Array<string> = []
    for (const path of filesBelow(output)) {
      const texts = [path, readFileSync(join(output, path), "latin1")]
      if (path.endsWith(".parquet"))
        texts.push(JSON.stringify(yield* rows(`SELECT * FROM read_parquet(${literal(join(output, path))})`)))
      if (path.endsWith(".duckdb")) texts.push(yield* databaseText(join(output, path)))
      const trace = theirs.find((value) => texts.some((text) => text.includes(value)))
      if (trace !== undefined) found.push(`${path} (${trace})`)
      else if (texts.some((text) => id.test(text))) found.push(path)
    }
    return found as ReadonlyArray<string>
  }).pipe(Effect.scoped, Effect.provide(DuckDb.layer), Effect.runPromise)

const databaseText = Effect.fnUntraced(function* (path: string) {
  const duckdb = yield* DuckDb
  const { rows } = yield* duckdb.open({ path, access: "read-only", threads: 1 })
  const texts: Array<string> = []
  for (const { name } of yield* rows("SELECT schema_name || '.' || table_name AS name FROM duckdb_tables()"))
    texts.push(JSON.stringify(yield* rows(`SELECT * FROM ${String(name)}`)))
  return texts.join("\n")
}, Effect.scoped)
