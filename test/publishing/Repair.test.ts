/**
 * Two nights of which something is lost or changed afterwards: the damage is named with what to do, a later night
 * is published all the same, and what can be made good is.
 */
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { DuckDb } from "../../src/duckdb/DuckDb.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { Publisher } from "../../src/publishing/Publisher.ts"
import { repair } from "../../src/publishing/Repair.ts"
import {
  append,
  begin,
  engine,
  folder,
  layers,
  liveNight,
  namesIn,
  problemsIn,
  profileOf,
  publish,
  resultsOf,
  rowsOf,
  storeOf,
  succeed,
} from "./night.ts"
import { anId } from "../harness/Id.ts"

const first = "nightly.2026-11-20"
const second = "nightly.2026-11-21"

/** Lives two nights, the second one with a document. */
const nights = Effect.gen(function* () {
  yield* liveNight(first, "1", profileOf("Ana"))
  const landing = yield* Landing
  const document = yield* landing.landAttachment(Stream.make(new TextEncoder().encode("a document")))
  yield* append([begin(second, "2026-11-21")])
  yield* succeed(second, "2", "c-1", resultsOf(profileOf("Bea")))
  yield* append([
    {
      _tag: "AttachmentRead",
      run_id: anId(second),
      task_id: anId(`${second}/c-1/${engine}`),
      session_id: anId("s-2"),
      attachment_id: "a-1",
      status: "downloaded",
      ...document,
    },
  ])
  yield* publish(second)
})

const names = (root: string) => Effect.map(namesIn(root), (all) => all.join("+"))
const look = (root: string) =>
  Effect.map(problemsIn(root), (all) =>
    all.map(({ where, problem, next }) => `${where}: ${problem}; ${next}`),
  )
const mend = (root: string) => Effect.flatMap(storeOf(root), (opened) => repair(opened, "0.1.0"))

const profiles = `tables/customer_profiles/run_date=2026-11-20/${first}-v1.parquet`
const segment = `landing/${first}/segment-000001.njl`
const again = "Run `nightjar repair`: it derives the tables from landing again."
const gone = (root: string) => (path: string) => rmSync(join(root, path), { recursive: true })
const flip = (root: string) => (path: string, at: (size: number) => number) => {
  const bytes = readFileSync(join(root, path))
  bytes[at(bytes.length)]! ^= 1
  writeFileSync(join(root, path), bytes)
}
const half = (size: number) => size >> 1
const derived = [`${first}: its tables were derived again from landing/${first}`]
const builtAgain = "nightjar.duckdb: rebuilt from the files of the tables"

const changed = `nightjar.duckdb: the database is not the file that was published; ${again}`
const inDatabase = (root: string, sql: string) =>
  Effect.gen(function* () {
    const duckdb = yield* DuckDb
    const path = join(root, "nightjar.duckdb")
    const connection = yield* duckdb.open({ path, access: "read-write" })
    yield* connection.run(sql)
  }).pipe(Effect.scoped)

interface Damage {
  readonly what: string
  readonly damage: (root: string) => void | ReturnType<typeof inDatabase>
  readonly told: ReadonlyArray<string>
  readonly done: ReadonlyArray<string>
  readonly left?: ReadonlyArray<string>
  /** What is still wrong afterwards. */
  readonly stays?: ReadonlyArray<string>
}

const documentPath = (root: string) => `attachments/${readdirSync(join(root, "attachments"))[0]}`

const mendable: ReadonlyArray<Damage> = [
  {
    what: "an older file of the tables is missing",
    damage: (root) => gone(root)(profiles),
    told: [`${profiles}: a published file is missing; ${again}`],
    done: derived,
  },
  {
    what: "an older file of the tables is cut",
    damage: (root) => truncateSync(join(root, profiles), 100),
    told: [`${profiles}: a published file is damaged; ${again}`],
    done: derived,
  },
  {
    what: "a bit of an older file of the tables is flipped",
    damage: (root) => flip(root)(profiles, half),
    told: [`${profiles}: a published file is damaged; ${again}`],
    done: derived,
  },
  {
    what: "the manifest is missing",
    damage: (root) => gone(root)("tables/manifest.json"),
    told: [`tables/manifest.json: the manifest is missing or cannot be read; ${again}`],
    done: ["tables/manifest.json: restored from the files of the tables"],
  },
  {
    what: "the manifest cannot be read",
    damage: (root) => appendFileSync(join(root, "tables/manifest.json"), "}"),
    told: [`tables/manifest.json: the manifest is missing or cannot be read; ${again}`],
    done: ["tables/manifest.json: restored from the files of the tables"],
  },
  {
    what: "the tables are gone altogether",
    damage: (root) => gone(root)("tables"),
    told: [
      `${first}: published, but not in the manifest; ${again}`,
      `${second}: published, but not in the manifest; ${again}`,
    ],
    done: [...derived, `${second}: its tables were derived again from landing/${second}`],
  },
  {
    what: "the database is missing",
    damage: (root) => gone(root)("nightjar.duckdb"),
    told: [`nightjar.duckdb: the database cannot be read, the manifest is version 2; ${again}`],
    done: [],
  },
  {
    what: "the database is cut",
    damage: (root) => truncateSync(join(root, "nightjar.duckdb"), 5_000),
    told: [`nightjar.duckdb: the database cannot be read, the manifest is version 2; ${again}`],
    done: [],
  },
  {
    what: "a bit of the database is flipped",
    damage: (root) => flip(root)("nightjar.duckdb", (size) => size - 100),
    told: [`nightjar.duckdb: the database cannot be read, the manifest is version 2; ${again}`],
    done: [],
  },
  {
    what: "a value in the database is changed [verify database]",
    damage: (root) => inDatabase(root, "UPDATE customer_profiles SET name = 'Eve' WHERE name = 'Ana'"),
    told: [changed],
    done: [builtAgain],
  },
  {
    what: "a row of the database is missing",
    damage: (root) => inDatabase(root, "DELETE FROM customer_profiles WHERE name = 'Ana'"),
    told: [changed, `customer_profiles: 0 rows of run ${first} in the database, 1 in its files; ${again}`],
    done: [builtAgain],
  },
]

const kept: ReadonlyArray<Damage> = [
  {
    what: "a landed body is changed, and the tables still contain its rows",
    damage: (root) => flip(root)(segment, () => 1_000),
    told: [
      `${segment}:415: landed data cannot be read: the body at offset 415 is not what was landed; Restore a copy`,
    ],
    done: [],
    stays: [
      `${segment}:415: landed data cannot be read: the body at offset 415 is not what was landed; Restore a copy`,
    ],
  },
  {
    what: "the landed bodies of a run are gone",
    damage: (root) => gone(root)(`landing/${first}`),
    told: [
      `landing/${first}: landed data cannot be read: landing/${first}/segment-000001.njl: no body at offset`,
    ],
    done: [],
    stays: [
      `landing/${first}: landed data cannot be read: landing/${first}/segment-000001.njl: no body at offset`,
    ],
  },
  {
    what: "landed bodies and tables of a run are gone: only a backup helps, and the other run is whole",
    damage: (root) => {
      gone(root)(`landing/${first}`)
      gone(root)(profiles)
    },
    told: [
      `landing/${first}: landed data cannot be read: landing/${first}/segment-000001.njl: no body at offset`,
      `${profiles}: a published file is missing; ${again}`,
    ],
    done: [],
    left: [`${first}: its tables cannot be derived again: landing/${first}/segment-000001.njl: no body`],
    stays: [
      `landing/${first}: landed data cannot be read: landing/${first}/segment-000001.njl: no body at offset`,
      `${profiles}: a published file is missing; ${again}`,
    ],
  },
  {
    what: "a document is missing",
    damage: (root) => gone(root)(documentPath(root)),
    told: ["attachments/"],
    done: [],
    stays: ["attachments/"],
  },
  {
    what: "a document is flipped",
    damage: (root) => flip(root)(documentPath(root), half),
    told: ["attachments/"],
    done: [],
    stays: ["attachments/"],
  },
]

/** A folder in which both nights were lived, copied by whoever damages it. */
const template = mkdtempSync(join(tmpdir(), "nightjar-repair-"))
beforeAll(
  () =>
    Effect.runPromise(
      Effect.gen(function* () {
        yield* nights
        assert.deepStrictEqual(yield* look(template), [])
      }).pipe(Effect.provide(layers(template))),
    ),
  60_000,
)
afterAll(() => rmSync(template, { recursive: true, force: true }))

/** Each line begins as it is expected to. */
const begins = (lines: ReadonlyArray<string>, expected: ReadonlyArray<string>) =>
  lines.map((line, index) => (line.startsWith(expected[index] ?? line) ? (expected[index] ?? line) : line))

const tryDamage = ({ damage, told, done, left = [], stays = [] }: Damage) =>
  Effect.gen(function* () {
    const root = yield* folder
    cpSync(template, root, { recursive: true })
    yield* Effect.gen(function* () {
      const damaging = damage(root)
      if (damaging !== undefined) yield* damaging
      const found = yield* look(root)
      assert.deepStrictEqual(begins(found, told), told)
      const mended = yield* mend(root)
      assert.deepStrictEqual([mended.done, begins(mended.left, left)], [done, left])
      const after = yield* look(root)
      assert.deepStrictEqual(begins(after, stays), stays)
      if (left.length === 0) assert.strictEqual(yield* names(root), "Ana+Bea")
      assert.deepStrictEqual((yield* mend(root)).done, [])
    }).pipe(Effect.provide(layers(root)))
  }).pipe(Effect.scoped)

describe("damage that can be repaired:", () => {
  for (const each of mendable)
    it.live(`${each.what}: named, and repaired from what is landed`, () => tryDamage(each))
})

describe("damage that only a backup can repair:", () => {
  for (const each of kept) it.live(`${each.what}: named, and nothing is lost besides`, () => tryDamage(each))
})

describe("a later run", () => {
  const damages: ReadonlyArray<{ readonly how: string; readonly damage: (root: string) => void }> = [
    { how: "is missing", damage: (root) => gone(root)(profiles) },
    { how: "cannot be read", damage: (root) => truncateSync(join(root, profiles), 100) },
    {
      how: "is missing, and the database with it",
      damage: (root) => {
        gone(root)(profiles)
        gone(root)("nightjar.duckdb")
      },
    },
  ]
  it.live.each(damages)("is published although an older file $how: reported, and rebuilt", ({ damage }) =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        yield* nights
        damage(root)
        const third = anId("nightly.2026-11-22")
        assert.deepStrictEqual((yield* liveNight(third, "3", profileOf("Cid"))).without, [first])
        assert.strictEqual(yield* names(root), "Bea+Cid")
        const publisher = yield* Publisher
        yield* publisher.publishOutcome(third)
        assert.deepStrictEqual((yield* mend(root)).done, derived)
        assert.strictEqual(yield* names(root), "Ana+Bea+Cid")
        assert.deepStrictEqual(yield* look(root), [])
      }).pipe(Effect.provide(layers(root)))
    }).pipe(Effect.scoped),
  )
})

describe("a run that is in the tables but not in the ledger", () => {
  it.live("is reported: these tables belong to another ledger", () =>
    Effect.gen(function* () {
      const root = yield* folder
      cpSync(template, root, { recursive: true })
      yield* Effect.gen(function* () {
        const path = join(root, "tables/manifest.json")
        const text = readFileSync(path, "utf8")
        const strange = `"runs": {"nightly.2026-11-19": {"run_date": "2026-11-19", "version": 1, "files": []},`
        writeFileSync(path, text.replace('"runs": {', strange))
        assert.deepStrictEqual(yield* look(root), [
          "nightly.2026-11-19: published, but not in the ledger; " +
            "Restore the copy of ledger.sqlite that belongs to these tables.",
        ])
      }).pipe(Effect.provide(layers(root)))
    }).pipe(Effect.scoped),
  )
})

describe("the newest run of a customer", () => {
  it.live("is the one that began last, even after one that a wrong clock dated in 2036", () =>
    Effect.gen(function* () {
      const root = yield* folder
      yield* Effect.gen(function* () {
        yield* liveNight("nightly.2036-02-01", "1", profileOf("Eve"))
        yield* liveNight("nightly.2026-11-22", "2", profileOf("Ana"))
        const latest = yield* rowsOf(root, "SELECT name FROM customer_profiles_latest")
        assert.deepStrictEqual(latest, [{ name: "Ana" }])
      }).pipe(Effect.provide(layers(root)))
    }).pipe(Effect.scoped),
  )
})
