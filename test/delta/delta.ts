/**
 * `npm run delta -- --reader FOLDER`: nights of the demo whose job asks for Delta logs, and after each of them, after
 * rollback, a changed schema, a removed customer and a checkpoint, every table as an independent reader sees it
 * through its log, by both of its ways, compared with the database, row by row and value by value. The reader is the
 * package chdb (ClickHouse, embedded), installed in FOLDER by whoever asks: it is too large to be a dependency.
 * Exits 1 where a table differs.
 */
import { execFileSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { DuckDBInstance } from "@duckdb/node-api"
import { command } from "../acceptance/BuiltCommand.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { figuresLine } from "../promises/Figure.ts"
import { snapshotOf } from "../tables/DeltaReplay.ts"

const { values } = parseArgs({
  options: { reader: { type: "string" }, json: { type: "boolean", default: false } },
})
if (values.reader === undefined || !existsSync(join(values.reader, "node_modules/chdb"))) {
  console.error("The reader is missing: `npm install --prefix FOLDER chdb@3.4.0`, then `--reader FOLDER`.")
  process.exit(2)
}
const reader = resolve(values.reader)
const folder = mkdtempSync(join(tmpdir(), "nightjar-delta-"))
const output = join(folder, "output")
const program = fileURLToPath(new URL("Chdb.mjs", import.meta.url))
const jobs = fileURLToPath(new URL("../../jobs", import.meta.url))

const nightjar = (...args: ReadonlyArray<string>): void => {
  try {
    execFileSync(process.execPath, [command, ...args, "--output", output, "--no-progress"], {
      cwd: folder,
      env: { ...plainEnvironment },
      stdio: "pipe",
    })
  } catch (cause) {
    const { status, stderr } = cause as { readonly status: number | null; readonly stderr: Buffer }
    // The demo ends with 4 by design, and a run with trouble with 3.
    if (status !== 3 && status !== 4)
      throw new Error(`nightjar ${args.join(" ")}: exit ${status}: ${String(stderr)}`)
  }
}

const accounts = (columns: Readonly<Record<string, string>>): void => {
  mkdirSync(join(folder, "schemas/records"), { recursive: true })
  const lines = Object.entries(columns).map(
    ([name, type]) => `  ${name}: { type: "${type}", comment: A field. }\n`,
  )
  writeFileSync(
    join(folder, "schemas/records/bank_accounts.yaml"),
    `table: bank_accounts\ncomment: Accounts.\nproduct: accounts\n` +
      `sub_families: ["account:savings", "account:checking"]\nfeatures: [accounts_read]\ncolumns:\n${lines.join("")}`,
  )
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
const found: Array<string> = []
let compared = 0
let rowsCompared = 0

const asked = async (sql: string): Promise<ReadonlyArray<ReadonlyArray<unknown>>> => {
  const instance = await DuckDBInstance.create(":memory:")
  const connection = await instance.connect()
  await connection.run(
    `SET TimeZone = 'UTC'; ATTACH ${quoted(join(output, "nightjar.duckdb"))} AS n (READ_ONLY)`,
  )
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson()
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

interface Asked {
  readonly table: string
  /** Of the log; the newest one if it is not given. */
  readonly version?: number
  /** Which rows of the database are meant. */
  readonly where?: string
}

/** How the reader's answer differs from the database; it has no NULL for lists, so that one is empty there. */
const difference = async (answer: string, { table, where = "true" }: Asked): Promise<string | undefined> => {
  if (!existsSync(answer)) return "could not be read"
  const columns = await asked(
    `SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = 'n' AND table_name = ${quoted(table)}`,
  )
  const select = columns.map(([name, type]) => {
    const text = type === "JSON" ? "VARCHAR" : String(type)
    const value = `CAST("${String(name)}" AS ${text})`
    return text.endsWith("[]") ? `coalesce(${value}, [])` : value
  })
  const [ours, theirs] = [`n."${table}" WHERE ${where}`, `read_parquet(${quoted(answer)})`].map(
    (source) => `SELECT ${select.join(", ")} FROM ${source}`,
  )
  const [[count, missing, more] = []] = await asked(
    `SELECT (SELECT count(*) FROM (${ours})), (SELECT count(*) FROM (${ours} EXCEPT ALL ${theirs})),
      (SELECT count(*) FROM (${theirs} EXCEPT ALL ${ours}))`,
  )
  rowsCompared += Number(count)
  return Number(missing) + Number(more) === 0
    ? undefined
    : `${missing} of ${count} rows missing, ${more} too many`
}

const published = (): ReadonlyArray<string> =>
  readdirSync(join(output, "tables")).filter((name) => existsSync(join(output, "tables", name, "_delta_log")))

/**
 * ClickHouse's own code returns the rows of removed files too (two rows removed and three added give it five), and
 * refuses a table that got a column: it is asked only about logs that have neither since the newest checkpoint.
 */
const readsOwnCode = ({ table, version }: Asked): boolean => {
  const folder = join(output, "tables", table, "_delta_log")
  const names = readdirSync(folder).toSorted()
  const checkpoint = names.findLast((name) => name.endsWith(".checkpoint.parquet")) ?? ""
  const commits = names.filter((name) => name.endsWith(".json") && name > checkpoint)
  const text = commits.map((name) => readFileSync(join(folder, name), "utf8")).join("")
  const described = text.split('{"metaData":').length - (checkpoint === "" ? 1 : 0)
  return version === undefined && !text.includes('{"remove":') && described === 1
}

const withWays = (ask: Asked) => ({ ...ask, ways: readsOwnCode(ask) ? ["kernel", "own"] : ["kernel"] })

const compare = async (when: string, asks: ReadonlyArray<Asked>): Promise<void> => {
  const answers = join(folder, "answers")
  rmSync(answers, { recursive: true, force: true })
  mkdirSync(answers)
  execFileSync(process.execPath, [program, reader, answers, JSON.stringify(asks.map(withWays))], {
    cwd: output,
    stdio: "inherit",
  })
  for (const [index, ask] of asks.entries())
    for (const way of withWays(ask).ways) {
      compared += 1
      const other = await difference(join(answers, `${index}.${way}.parquet`), ask)
      if (other !== undefined) found.push(`${when}: ${ask.table}, by ${way}: ${other}`)
    }
  const { version } = await snapshotOf(join(output, "tables/runs"))
  console.log(
    `${when}: ${asks.length} tables, version ${version} of runs, ${found.length} differences so far`,
  )
}
const compareAll = (when: string) =>
  compare(
    when,
    published().map((table) => ({ table })),
  )
const expectTables = (when: string, count: number): void => {
  const { length } = published()
  if (length !== count) found.push(`${when}: ${length} tables have a log, ${count} were expected`)
}

const text = readFileSync(join(jobs, "demo.yaml"), "utf8")
cpSync(join(jobs, "demo-password.txt"), join(folder, "demo-password.txt"))
writeFileSync(join(folder, "demo.yaml"), `${text}\noutput: { delta: true }\nschemas: ./schemas\n`)
accounts({ iban: "VARCHAR", balance: "DECIMAL(18,2)", opened_on: "DATE" })

nightjar("run", "demo.yaml")
await compareAll("after the first night")
nightjar("run", "demo.yaml", "--new")
await compareAll("after the second night")
const all = published().length
const [[first] = []] = await asked("SELECT run_id FROM n.runs ORDER BY sequence LIMIT 1")
const ofFirst = `run_id = ${quoted(String(first))}`
await compare(
  "as of the first night",
  ["customer_profiles", "addresses", "bank_accounts"].map((table) => ({ table, version: 0, where: ofFirst })),
)
nightjar("rollback")
await compareAll("after a rollback")
accounts({ iban: "VARCHAR", balance: "DECIMAL(18,2)", opened_on: "DATE", currency: "VARCHAR" })
nightjar("run", "demo.yaml", "--new")
expectTables("with a new column", all)
await compareAll("with a new column, after the rollback")
nightjar("forget", "c-002", "--yes")
await compareAll("without a customer who was removed")
accounts({ iban: "VARCHAR", balance: "DOUBLE", opened_on: "DATE", currency: "VARCHAR" })
nightjar("run", "demo.yaml", "--new")
expectTables("with a changed type", all - 1)
await compareAll("with a changed type, without that table")
for (let time = 1; time <= 16; time += 1) nightjar("rebuild")
expectTables("rebuilt", all)
await compareAll("rebuilt until there are checkpoints")
const checkpoints = published().filter((table) =>
  readdirSync(join(output, "tables", table, "_delta_log")).some((name) =>
    name.endsWith(".checkpoint.parquet"),
  ),
)
// The table that was left out began anew, so that its log is shorter.
if (checkpoints.length < all - 1) found.push(`only ${checkpoints.length} of ${all} logs have a checkpoint`)

for (const one of found) console.log(one)
console.log(`${compared} comparisons, ${rowsCompared} rows, ${found.length} differences`)
if (values.json)
  console.log(figuresLine([{ of: "tables through a Delta log", tried: compared, failed: found.length }]))
rmSync(folder, { recursive: true, force: true })
process.exit(found.length === 0 ? 0 : 1)
