/**
 * Kinds of damage to an output folder of two small nights: `verify` names each one, and `repair` mends it or says what
 * to do. Whatever it mends, all tables have the rows that they had; what it cannot mend costs nothing besides. What a
 * later night makes of damage is in `test/tables/Repair.test.ts`, what is seen of a ledger in `test/ledger`, and what
 * commands say of one in `DamagedLedger.test.ts`.
 */
import { spawnSync } from "node:child_process"
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { Effect, Struct } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { readTables } from "../faults/PublishedTables.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { commandHere } from "../harness/CommandsHere.ts"
import { anId } from "../harness/Id.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { sharedFolder } from "../harness/Folder.ts"

const base = sharedFolder()
const template = join(base, "template")
const root = join(base, "output")

const job = `name: small
service: { sandbox: { seed: 3, speed: 2000 } }
engines: [sandbox-bank:website]
schemas: ./schemas
record_schemas: []
customers:
  - { id: ana, parameters: { username: ok+queue-1+run-1+records-4+attach-1, password: a-password } }
  - { id: ben, parameters: { username: ok+queue-1+run-1+records-2, password: a-password } }
`
const ownSchema = join(base, "schemas/records/accounts.yaml")
const ownText = `table: accounts
comment: Accounts at a bank.
product: accounts
sub_families: ["account:checking", "account:savings"]
features: [accounts_read]
columns:
  fetch_date: { type: TIMESTAMPTZ, comment: When the source was read. }
`

/** All rows of all tables, in an order of their own; without when the catalogue was last read before they were written. */
const rowsIn = async (output: string) =>
  [...(await readTables(output))].map(([name, { columns, rows }]) => ({
    name,
    columns,
    rows: rows.map((row) => JSON.stringify(Struct.omit(row, ["read_at"]))).toSorted(),
  }))

const isUntouched = () =>
  readFileSync(at("nightjar.duckdb")).equals(readFileSync(join(template, "nightjar.duckdb")))

/** The runs of the two nights, what the first one's are called, and all rows of both. */
const known = { first: "", second: "", execution: "", rows: [] as Awaited<ReturnType<typeof rowsIn>> }

beforeAll(async () => {
  mkdirSync(join(base, "schemas/records"), { recursive: true })
  writeFileSync(ownSchema, ownText)
  writeFileSync(join(base, "small.yaml"), job)
  for (const more of [[], ["--new"]]) {
    const argv = ["run", "small.yaml", "--no-progress", "--output", template, ...more]
    expect((await startHere(argv, { folder: base }).ended).code).toBe(0)
  }
  const [first = "", second = ""] = readdirSync(join(template, "landing")).toSorted()
  const rows = await rowsIn(template)
  const deletions = rows.find(({ name }) => name === "ops.deletions")?.rows ?? []
  const ofAna = deletions.map((row) => JSON.parse(row)).find((row) => row.task_id === `${first}/ana/${bank}`)
  Object.assign(known, { first, second, rows, execution: ofAna.execution_id })
  expect(await commandHere("verify", "--output", template)).toEqual({
    code: 0,
    stdout: "Files, ledger and tables agree.\n",
    stderr: "",
  })
}, 120_000)

const bank = "sandbox-bank:website"
const at = (path: string) => join(root, path)
const remove = (...paths: ReadonlyArray<string>) => {
  for (const path of paths) rmSync(at(path), { recursive: true })
}
const flip = (path: string, place: (size: number) => number = (size) => size >> 1) => {
  const bytes = readFileSync(at(path))
  bytes[place(bytes.length)]! ^= 1
  writeFileSync(at(path), bytes)
}
/** The path of the first in a folder; those of the template are below every damaged copy. */
const firstIn = (folder: string, of = template) => `${folder}/${readdirSync(join(of, folder)).toSorted()[0]}`
const segment = () => `landing/${known.first}/segment-000001.njl`
/** Of the first run. */
const accounts = () => firstIn(firstIn("tables/accounts"))
const profiles = () => firstIn(firstIn("tables/customer_profiles"))
const strayFile = () => accounts().replace("-v1", "-v0")
const parquetOf = () => `published/${readlinkSync(join(template, "published/parquet"))}`
const document = () => firstIn("attachments")

const inDatabase = (sql: string) =>
  Effect.gen(function* () {
    const duckdb = yield* DuckDb
    const connection = yield* duckdb.open({ path: at("nightjar.duckdb"), access: "read-write" })
    expect(yield* connection.run(sql)).toBeGreaterThan(0)
  }).pipe(Effect.scoped, Effect.provide(DuckDb.layer), Effect.runPromise)

const inLedger = <A, E>(work: (ledger: Ledger["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(Ledger, work).pipe(
    Effect.provide(Ledger.layer({ path: at("ledger.sqlite") })),
    Effect.runPromise,
  )
const withoutFacts = (condition: string, tables = ["facts"]) => {
  const database = new DatabaseSync(at("ledger.sqlite"))
  for (const table of tables)
    expect(database.prepare(`DELETE FROM ${table} WHERE ${condition}`).run().changes).toBeGreaterThan(0)
  database.close()
}

/** Moves what the ledger knows of the first run out of its file, and returns where it is. */
const archived = async () => {
  await inLedger((ledger) =>
    Effect.flatMap(ledger.runs, (runs) =>
      Effect.forEach(runs.slice(0, 1), ({ fact }) => ledger.archive(fact)),
    ),
  )
  return firstIn("ledger-archive", root)
}

const again = "Run `nightjar repair`; copy what it cannot restore from a backup."
const allAgain =
  "Run `nightjar repair`, which writes all of `current/` and `history/` again from the database."
const readOrRestore =
  "If its execution is not deleted at the service yet, `nightjar run` reads it again. Otherwise restore a " +
  "copy of it: it exists nowhere else."
const sameText = "`nightjar repair` writes it again if the program or a job that ran here has the same text."

interface Damage {
  readonly what: string
  readonly damage: () => unknown
  /** Each line that `verify` says, by its beginning. */
  readonly told: () => ReadonlyArray<string>
}

const derived = () => [`${known.first}: its tables were derived again from landing/${known.first}`]
const restored = () => ["tables/manifest.json: restored from the files of the tables"]
const rebuilt = () => ["nightjar.duckdb: rebuilt from the files of the tables"]
const lostManifest = () => [
  `tables/manifest.json: the manifest is missing or cannot be read [manifest-lost]; ${again}`,
]
const lostDatabase = () => [
  `nightjar.duckdb: the database cannot be read, the manifest is version 4 [database-version]; ${again}`,
]
const otherDatabase = `nightjar.duckdb: the database is not the file that was published [database-changed]; ${again}`

const helperDamaged =
  "a database that only saves work is damaged [helper-damaged]; Run `nightjar repair`, which removes it."
const keptDatabase = "published/previous/nightjar.duckdb"

/** What `repair` mends, and what it says of it; where it is not asked, it does what it does for the one before. */
const mended: ReadonlyArray<Damage & { readonly done?: () => ReadonlyArray<string> }> = [
  {
    what: "a bit of a Parquet file is flipped, and another one is missing",
    damage: () => {
      flip(accounts())
      remove(profiles())
    },
    told: () => [
      `${accounts()}: a published file is damaged [file-differs]; ${again}`,
      `${profiles()}: a published file is missing [file-differs]; ${again}`,
    ],
    done: derived,
  },
  {
    what: "all Parquet files are missing, the manifest and the database",
    damage: () => remove("tables", "nightjar.duckdb"),
    told: () =>
      [known.first, known.second].map(
        (run) => `${run}: published, but not in the manifest [run-not-in-manifest]; ${again}`,
      ),
    done: () => [...derived(), `${known.second}: its tables were derived again from landing/${known.second}`],
  },
  {
    what: "a value of the database is changed [verify database]",
    damage: () =>
      inDatabase(`UPDATE store._seen_accounts SET fetch_date = '2020-01-01' WHERE _reading IN (
        SELECT r._reading FROM store._readings AS r JOIN store._scopes USING (_scope) WHERE customer_id = 'ben')`),
    told: () => [otherDatabase],
  },
  {
    what: "another program that wrote into the database was killed [verify database log]",
    damage: () => {
      const open = `import { DuckDBInstance } from "@duckdb/node-api"
        const connection = await (await DuckDBInstance.create(process.argv[1])).connect()
        await connection.run("UPDATE store.customer_profiles SET name = 'Somebody'")
        process.kill(process.pid, "SIGKILL")`
      const argv = ["--input-type=module", "--eval", open, at("nightjar.duckdb")]
      expect(spawnSync(process.execPath, argv).signal).toBe("SIGKILL")
    },
    told: () => [otherDatabase],
  },
  {
    what: "a bit of the database is flipped",
    damage: () => flip("nightjar.duckdb", (size) => size - 100),
    told: () => ["nightjar.duckdb: the database"],
  },
  {
    what: "a row of the database is missing",
    damage: () =>
      inDatabase(`DELETE FROM store._seen_accounts WHERE _reading IN (
        SELECT r._reading FROM store._readings AS r JOIN store._scopes USING (_scope)
        WHERE run_id = '${known.first}' AND customer_id = 'ben')`),
    told: () => [otherDatabase, "accounts: "],
  },
  {
    what: "the manifest cannot be read",
    damage: () => appendFileSync(at("tables/manifest.json"), "}"),
    told: lostManifest,
    done: restored,
  },
  {
    what:
      "at once: a Parquet file that no manifest lists is there, the marker and a schema of the job are changed, one of the program is missing, and the kept " +
      "database is damaged; files of current/ and history/ are missing, emptied or changed by a bit, and one more is there [files verify]",
    damage: () => {
      cpSync(at(accounts()), at(strayFile()))
      flip(".nightjar")
      flip("schemas/accounts.v1.yaml", () => 5)
      remove("schemas/customer_profiles.v1.yaml")
      flip(keptDatabase, (size) => size - 100)
      remove("current/accounts.parquet", "history/customer_profiles")
      truncateSync(at("current/customer_profiles.parquet"), 0)
      flip("history/accounts/open.parquet")
      cpSync(at("history/accounts/open.parquet"), at("history/accounts/copy.parquet"))
    },
    told: () => [
      ".nightjar: the marker file was changed [marker-damaged]; ",
      "schemas/accounts.v1.yaml: the kept record schema has changed since it was written [schema-changed]; ",
      `schemas/customer_profiles.v1.yaml: the kept record schema is missing [schema-missing]; ${sameText}`,
      `${strayFile()}: no manifest lists this file [file-unlisted]; The next publication corrects it`,
      `current/accounts.parquet: a published file is missing [parquet-differs]; ${allAgain}`,
      `current/customer_profiles.parquet: a published file is damaged [parquet-differs]; ${allAgain}`,
      `history/accounts/open.parquet: a published file is damaged [parquet-differs]; ${allAgain}`,
      `history/customer_profiles/open.parquet: a published file is missing [parquet-differs]; ${allAgain}`,
      "history/accounts/copy.parquet: no manifest lists this file [file-unlisted]; The next publication corrects it",
      `${keptDatabase}: ${helperDamaged}`,
    ],
    done: () => [
      ".nightjar: written again",
      "schemas/customer_profiles.v1.yaml: written again with the same text",
      "schemas/accounts.v1.yaml: written again with the same text",
      `tables: 1 file that no manifest lists removed: ${strayFile()}`,
      "current, history: written again from nightjar.duckdb, because not everything was as published: " +
        "current/accounts.parquet, current/customer_profiles.parquet, history/accounts/open.parquet and 2 more",
      `${keptDatabase}: removed, since it was damaged`,
    ],
  },
  {
    what: "the database is missing",
    damage: () => remove("nightjar.duckdb"),
    told: lostDatabase,
    done: rebuilt,
  },
  {
    what: "the list of what is in current/ and history/ is missing",
    damage: () => remove(`${parquetOf()}/files.json`),
    // What `repair` does then is in `test/tables/ParquetViews.test.ts`.
    told: () => [`${parquetOf()}/files.json: a published file is missing [parquet-differs]; ${allAgain}`],
  },
]

const landingLost = () =>
  `landing/${known.first}: landed data cannot be read: ${segment()}: no body at offset`

/** What only a copy mends: `repair` changes nothing, and `verify` says the same afterwards. */
const kept: ReadonlyArray<Damage & { readonly left?: () => ReadonlyArray<string> }> = [
  {
    what:
      "a bit of a landed body is flipped, and the tables still contain its rows; a document is changed, and a kept " +
      "record schema is missing of which nobody has the same text any more",
    damage: () => {
      flip(segment(), () => readFileSync(at(segment())).indexOf('"products_count"'))
      flip(document())
      remove("schemas/accounts.v1.yaml")
      writeFileSync(ownSchema, ownText.replace("at a bank", "at banks"))
    },
    told: () => [
      `${segment()}:`,
      `${document()}: the document has changed since it was downloaded [document-changed]; ${readOrRestore}`,
      `schemas/accounts.v1.yaml: the kept record schema is missing [schema-missing]; ${sameText}`,
    ],
  },
  {
    what: "a landing segment is missing, and a Parquet file of its run: the database still has the rows",
    damage: () => remove(accounts(), segment()),
    told: () => [landingLost(), `${accounts()}: a published file is missing [file-differs]; ${again}`],
    left: () => [`${known.first}: its tables cannot be derived again: ${segment()}: no body at offset`],
  },
  {
    what: "a page in the token store is damaged [verify token store]",
    damage: () => {
      openTokenDatabase(at("tokens.sqlite")).close()
      const bytes = readFileSync(at("tokens.sqlite"))
      writeFileSync(at("tokens.sqlite"), bytes.fill(0x55, 4_096, 8_192))
    },
    told: () => ["tokens.sqlite: the token store is damaged: "],
  },
  {
    what: "a document is missing, and a receipt disagrees with what is landed",
    damage: () => {
      remove(document())
      return inLedger((ledger) =>
        ledger.append([
          {
            _tag: "DeleteIntended",
            run_id: anId(known.first),
            task_id: anId(`${known.first}/ana/${bank}`),
            execution_id: anId(known.execution),
            landed_sha256: "00".repeat(32),
          },
        ]),
      )
    },
    told: () => [
      `${known.execution}: the receipt of its deletion does not match the landed bodies [receipt-mismatch]; Leave the folder`,
      `${document()}: the document is missing [document-missing]; ${readOrRestore}`,
    ],
  },
  {
    what: "the ledger has lost all facts of the newest run",
    // As in a copy from before it.
    damage: () => withoutFacts(`run_id = '${known.second}'`, ["facts", "run_states"]),
    told: () => [
      `${known.second}: published or landed, but not in the ledger [run-not-in-ledger]; Restore the newer`,
    ],
  },
]

/** Where `repair` does not even begin: nothing is derived from facts that are not what they were. */
const refused: Omit<Damage, "what"> = {
  damage: async () => flip(await archived()),
  told: () => [
    `ledger.sqlite: the ledger is damaged: ${known.first}: ${firstIn("ledger-archive", root)} has changed since it was written`,
  ],
}

/** The template once more, damaged; `told` is asked when it is, and before it is repaired. */
const damaged = async ({ damage, told }: Omit<Damage, "what">) => {
  rmSync(root, { recursive: true, force: true })
  cpSync(template, root, { recursive: true, verbatimSymlinks: true })
  writeFileSync(ownSchema, ownText)
  await damage()
  const expected = told()
  const { code, stdout, stderr } = await commandHere("verify", "--json", "--output", root)
  const found = stdout === "" ? [] : linesOf(JSON.parse(stdout))
  return { code, stderr, found: begins(found, expected), expected }
}

type Problems = ReadonlyArray<Readonly<Record<"id" | "where" | "problem" | "next", string>>>
const linesOf = (problems: Problems) =>
  problems.map(({ id, where, problem, next }) => `${where}: ${problem} [${id}]; ${next}`)

/** Each line that begins as expected is what was expected. */
const begins = (lines: ReadonlyArray<string>, expected: ReadonlyArray<string>) =>
  lines.map((line, index) => (line.startsWith(expected[index] ?? line) ? (expected[index] ?? line) : line))

const repaired = async () => {
  const { code, stdout, stderr } = await commandHere("repair", "--json", "--output", root)
  if (stdout === "") return { code, stderr, done: [], left: [], problems: [] }
  const { done, left, problems } = JSON.parse(stdout)
  return { code, stderr, done, left, problems: linesOf(problems) }
}

describe("damage that `verify` finds and `repair` mends:", () => {
  it.for(mended.map((kind) => [kind.what, kind] as const))("%s", async ([, kind]) => {
    const { found, expected, ...verified } = await damaged(kind)
    expect([verified, found]).toEqual([{ code: 3, stderr: "" }, expected])
    const done = kind.done?.()
    if (done === undefined) return
    expect(await repaired()).toEqual({ code: 0, stderr: "", done, left: [], problems: [] })
    if (!isUntouched()) expect(await rowsIn(root)).toEqual(known.rows)
  })
})

describe("damage that `verify` finds and only a copy mends:", () => {
  it.for(kept.map((kind) => [kind.what, kind] as const))("%s", async ([, { left = () => [], ...kind }]) => {
    const { found, expected, ...verified } = await damaged(kind)
    expect([verified, found]).toEqual([{ code: 3, stderr: "" }, expected])
    const after = await repaired()
    expect([
      { ...after, left: begins(after.left, left()), problems: begins(after.problems, expected) },
    ]).toEqual([{ code: 3, stderr: "", done: [], left: left(), problems: expected }])
    expect(isUntouched()).toBe(true)
  })
})

it("damage to the archive of the ledger, which `verify` finds, keeps `repair` from beginning", async () => {
  const { found, expected, code } = await damaged(refused)
  expect([code, found]).toEqual([3, expected])
  const says = "has changed since it was written [ledger-damaged]\n"
  expect(await repaired()).toMatchObject({ code: 2, stderr: expect.stringContaining(says), done: [] })
  expect(isUntouched()).toBe(true)
})
