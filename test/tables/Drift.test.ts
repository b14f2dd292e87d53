/** What happens to published tables when record schemas change: values that no longer fit, schemas that are gone. */
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { ExactNumber, exactNumber } from "../../src/records/ExactNumber.ts"
import { canonicalText } from "../../src/records/RecordIdentity.ts"
import { readJson } from "../../src/service/ReadJson.ts"
import { openStore } from "../../src/tables/OpenStore.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { repair } from "../../src/tables/Repair.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { verify } from "../../src/tables/Verify.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  folder,
  foundation,
  publish,
  publisherOptions,
  resultsOf,
  rowsOf,
  stateOf,
  succeed,
} from "./night.ts"
import { live } from "../harness/Steps.ts"

/** One night of one customer, published. */
const night = Effect.fnUntraced(function* (date: string, ...data: ReadonlyArray<unknown>) {
  const run_id = `nightly.${date}`
  yield* append([begin(run_id, date)])
  const features = [{ code: "accounts_read", status_reason: "FEATURE_COMPLETED" }]
  yield* succeed(run_id, date, "c-1", resultsOf(...data), stateOf(date, "c-1", { features }))
  return yield* publish(run_id)
})

const accountsSchema = (balance: string) => `table: accounts
comment: Accounts at a bank.
product: accounts
sub_families: ["bank:account"]
features: [accounts_read]
columns:
  fetch_date: { type: TIMESTAMPTZ, comment: When the source was read. }
  balance: { type: ${balance}, comment: What is on it. }
`
const accountOf = (balance: unknown) => ({
  product: "accounts",
  sub_family: "bank:account",
  fetch_date: "2026-11-20T03:04:05Z",
  balance,
})

/** A place whose program has a schema for accounts alone, and its nights, each in a process of its own. */
const place = Effect.map(folder, (base) => {
  const root = join(base, "output")
  const program = join(base, "program")
  const file = join(program, "accounts.yaml")
  for (const each of [root, program]) mkdirSync(each)
  const options = { ...publisherOptions(root), schemasFolder: program }
  const inPlace = <A, E>(
    work: Effect.Effect<A, E, Publisher | Layer.Success<ReturnType<typeof foundation>>>,
  ) => Effect.provide(work, PublisherDuckDb.layer(options).pipe(Layer.provideMerge(foundation(root))))
  const store = openStore(options)
  return {
    root,
    file,
    query: (sql: string) => Effect.provide(rowsOf(root, sql), DuckDb.layer),
    write: (type: string) => writeFileSync(file, accountsSchema(type)),
    night: (date: string, ...balances: ReadonlyArray<unknown>) =>
      inPlace(night(date, ...balances.map(accountOf))),
    records: (date: string, ...all: ReadonlyArray<object>) =>
      inPlace(night(date, ...all.map((fields) => ({ ...accountOf("0"), ...fields })))),
    end: (date: string) =>
      inPlace(Effect.flatMap(Publisher, ({ publishOutcome }) => publishOutcome(anId(`nightly.${date}`)))),
    accounts: inPlace(
      rowsOf(
        root,
        "SELECT run_date::VARCHAR AS d, balance, extra FROM nights.accounts ORDER BY run_date, balance",
      ),
    ),
    problems: inPlace(
      Effect.map(Effect.flatMap(store, verify), (all) => all.map(({ id, where }) => [id, where])),
    ),
    prune: Effect.fnUntraced(function* (date: string) {
      yield* inPlace(append([{ _tag: "LandingPruned", run_id: anId(`nightly.${date}`), bytes: 1 }]))
      rmSync(join(root, "landing", `nightly.${date}`), { recursive: true })
    }),
    back: inPlace(Effect.flatMap(store, rollback)),
    repair: inPlace(Effect.flatMap(store, (opened) => repair(opened))),
  }
})

const columnTypes = (
  "VARCHAR BOOLEAN INTEGER BIGINT DOUBLE DECIMAL(5,0) DECIMAL(9,3) DECIMAL(38,20) " +
  "DATE TIMESTAMPTZ VARCHAR[] JSON"
).split(" ")

const numbers =
  "0 7 -2147483648 2147483648 9007199254740991 9007199254740993 12345 1.5 -0.5 0.1 1.005 12.3456 1e21 1e-7 5e-324 " +
  "1.7976931348623157e308 0.1234567890123456789 -99999999999999999999 1e-400 1e400"
const texts =
  '7|007| 7|1.50|1e3|-0|9007199254740993|x||true|t|null|{}|["a"]|2026-11-20|2026-1-2|0001-01-01|9999-12-31|' +
  "2026-11-20T03:04:05Z|2026-11-20T03:04:05.123456Z|2026-11-20 03:04:05.1234567+0130|2026-11-20T24:00:00Z|" +
  '9999-12-31T23:59:59.999999Z|yesterday|Infinity|quote " and \u0000'
const hostile: ReadonlyArray<unknown> = [
  ...numbers.split(" ").map(exactNumber),
  ...texts.split("|"),
  true,
  false,
  [],
  ["a"],
  ["a", ""],
  ["a", 1],
  [null],
  {},
  { a: { b: null, c: "1" } },
  { a: new ExactNumber("9007199254740993") },
]

/** A cell does not say which spelling it was made of. */
const isOtherwiseSpelled = (type: string, value: unknown): boolean =>
  typeof value === "string" && (type.startsWith("DECIMAL") || (type === "TIMESTAMPTZ" && /[ +]/.test(value)))

/** The members of `extra` in one order, with every digit. */
const extraIn = ({ extra, ...row }: Readonly<Record<string, unknown>>) => ({
  ...row,
  extra: typeof extra === "string" ? canonicalText(readJson(extra, exactNumber)) : extra,
})

describe("a record schema", () => {
  live(
    "that is gone from its folder stays in force as it was last: with a warning, and nothing is lost [decision 10 kept schemas]",
    function* () {
      const { root, file, night: nightOf, accounts, problems, write: writeSchema } = yield* place
      for (const [date, type] of [
        ["2026-11-20", "DOUBLE"],
        ["2026-11-21", "VARCHAR"],
      ] as const) {
        writeSchema(type)
        assert.deepStrictEqual((yield* nightOf(date, "none")).gone, [])
      }
      rmSync(file)
      assert.deepStrictEqual((yield* nightOf("2026-11-22", "none")).gone, ["accounts"])
      const rows = [20, 21, 22].map((day) => ({ d: `2026-11-${day}`, balance: "none", extra: null }))
      assert.deepStrictEqual([yield* accounts, yield* problems], [rows, []])
      const kept = join(root, "schemas")
      assert.deepStrictEqual(
        readdirSync(kept)
          .toSorted()
          .map((name) => [name, readFileSync(join(kept, name), "utf8")]),
        [
          ["accounts.v1.yaml", accountsSchema("DOUBLE")],
          ["accounts.v2.yaml", accountsSchema("VARCHAR")],
        ],
      )
      // Gone from the output folder as well: now it is known that rows are missing.
      for (const name of readdirSync(kept)) rmSync(join(kept, name))
      assert.deepStrictEqual(yield* problems, [
        ["table-without-schema", "tables/accounts"],
        ["schema-missing", "schemas/accounts.v2.yaml"],
        ["schema-missing", "schemas/accounts.v1.yaml"],
      ])
    },
  )

  live(
    "without a column of its own, or of its lists' items, is published, compared and verified [decision 10 no columns]",
    function* () {
      const { query, file, records: record, problems } = yield* place
      const lists = "children:\n  holders: { comment: h, columns: {} }\n"
      const [head = ""] = accountsSchema("VARCHAR").split("columns:")
      writeFileSync(file, `${head}columns: {}\n${lists}`)
      yield* record("2026-11-20", { holders: [{}, { Name: "Ana" }] })
      yield* record("2026-11-21", { holders: [{ Name: "Ana" }] })
      assert.deepStrictEqual(
        [
          yield* query("SELECT run_date::VARCHAR AS d, position, extra FROM nights.holders ORDER BY ALL"),
          yield* query(
            "SELECT change, before->>'holders' AS was, after->>'holders' AS now " +
              "FROM changes('2026-11-20', '2026-11-21') ORDER BY ALL",
          ),
          yield* problems,
        ],
        [
          [
            { d: "2026-11-20", position: 0, extra: null },
            { d: "2026-11-20", position: 1, extra: '{"Name":"Ana"}' },
            { d: "2026-11-21", position: 0, extra: '{"Name":"Ana"}' },
          ],
          [
            { change: "added", was: null, now: "[{}]" },
            { change: "gone", was: "[{},{}]", now: null },
          ],
          [],
        ],
      )
    },
  )

  live(
    "that claims the records and the list of another one leaves the other its rows, none of them current, with the items of before in `extra` [decision 10 claimed list] [decision 10 other family]",
    function* () {
      const { query, file, records: record, write, problems } = yield* place
      write("VARCHAR")
      const lists = "children:\n  holders: { comment: h, columns: { name: { type: VARCHAR, comment: n } } }\n"
      const text = readFileSync(file, "utf8") + lists
      writeFileSync(file, text)
      const holders = [{ name: "Ana" }]
      yield* record("2026-11-20", { holders })
      rmSync(file)
      writeFileSync(file.replace("accounts", "bank"), text.replace("table: accounts", "table: bank"))
      const { gone, lists: listsGone } = yield* record("2026-11-21", { holders })
      assert.deepStrictEqual([gone, listsGone, yield* problems], [["accounts"], [], []])
      assert.deepStrictEqual(yield* query("SELECT balance, extra FROM nights.accounts"), [
        { balance: "0", extra: JSON.stringify({ holders }) },
      ])
      assert.deepStrictEqual(
        yield* query(
          "SELECT 'accounts' AS t, balance FROM accounts UNION ALL SELECT 'bank', balance FROM bank",
        ),
        [{ t: "bank", balance: "0" }],
      )
      assert.deepStrictEqual(yield* query("SELECT run_id, name FROM nights.holders"), [
        { run_id: "nightly.2026-11-21", name: "Ana" },
      ])
      // By now, the table is another family's own.
      writeFileSync(
        file.replace("accounts", "bank"),
        accountsSchema("VARCHAR").replace("table: accounts", "table: bank"),
      )
      const others = accountsSchema("VARCHAR")
        .replace("table: accounts", "table: holders")
        .replace("bank:account", "bank:holder")
      writeFileSync(file.replace("accounts", "holders"), others)
      yield* record("2026-11-22", { holders })
      assert.deepStrictEqual(yield* problems, [])
      const extras =
        "SELECT count(extra)::INTEGER AS n FROM (SELECT extra FROM nights.accounts UNION ALL SELECT extra FROM nights.bank)"
      assert.deepStrictEqual(yield* query(extras), [{ n: 3 }])
      assert.deepStrictEqual(yield* query("FROM nights.holders"), [])
    },
  )

  live(
    "leaves whole tables as they are where landed bodies are gone by age: there is nothing to repair [decision 10 pruned]",
    function* () {
      const { night: lives, prune, problems, repair: repaired, write } = yield* place
      write("INTEGER")
      yield* lives("2026-11-20", 1)
      yield* lives("2026-11-21", 2)
      write("VARCHAR")
      yield* lives("2026-11-22", "3")
      yield* prune("2026-11-20")
      assert.deepStrictEqual(yield* repaired, {
        done: ["nightly.2026-11-21: its tables were derived again from landing/nightly.2026-11-21"],
        left: [],
      })
      assert.deepStrictEqual(yield* problems, [])
    },
  )

  live(
    "may change any type to any other, with another schema at once: an earlier row is what the same record gives now, and nothing has changed; but a DECIMAL is taken for a number, and a time as it is in UTC, until bodies are read again [decision 10 changed type] [decision 10 schemas at once] [decision 10 json cell] [decision 10 text cell] [decision 10 flag cell]",
    function* () {
      const { query, file, records, write, repair: repaired } = yield* place
      write("INTEGER")
      const text = readFileSync(file, "utf8").replace(" balance:", " id:")
      const pairs = columnTypes.flatMap((from, row) =>
        columnTypes.map((to, at) => ({ name: `v_${row}_${at}`, from, to })),
      )
      const declare = (which: "from" | "to") => {
        const columns = pairs.map((pair) => `  ${pair.name}: { type: "${pair[which]}", comment: c }\n`)
        writeFileSync(file, `key: [id]\n${text}${columns.join("")}`)
        const [balance, amount, seen] =
          which === "from" ? ["VARCHAR", "DECIMAL(9,2)", "TIMESTAMPTZ"] : ["INTEGER", "DOUBLE", "VARCHAR"]
        writeFileSync(
          file.replace("accounts", "cards"),
          `${accountsSchema(balance!).replace("table: accounts", "table: cards").replace(":account", ":card")}
  amount: { type: "${amount}", comment: a }
  seen: { type: ${seen}, comment: b }
`,
        )
      }
      const all = hostile.map((value, id) => ({
        id,
        ...Object.fromEntries(
          pairs.flatMap(({ name, from }) => (isOtherwiseSpelled(from, value) ? [] : [[name, value]])),
        ),
      }))
      const card = { sub_family: "bank:card", balance: "none" }
      const typed = { amount: "1.50", seen: "2026-11-20T03:04:05+01:00" }
      const cards = ["12", "1.5", "007"].map((balance) => ({ ...card, balance }))
      declare("from")
      yield* records("2026-11-20", ...all, ...cards, { ...card, ...typed })
      declare("to")
      const { unfit = [] } = yield* records("2026-11-21", ...all, { ...card, balance: 3 })
      const rowsOn = (day: number) =>
        query(`SELECT * EXCLUDE (run_id, run_date, task_id, execution_id, session_id, record_id, content_id)
            FROM nights.accounts WHERE run_date = '2026-11-${day}' ORDER BY id`)
      const [earlier, newest] = [yield* rowsOn(20), yield* rowsOn(21)]
      const differing = pairs.flatMap(({ name, from, to }) =>
        earlier.flatMap((row, at) => {
          const [was, is] = [row[name], newest[at]?.[name]]
          return isDeepStrictEqual(was, is) ? [] : [{ from, to, value: hostile[at], was, is }]
        }),
      )
      assert.deepStrictEqual(differing, [])
      assert.deepStrictEqual(earlier.map(extraIn), newest.map(extraIn))
      assert.deepStrictEqual([earlier.length, unfit.length > 50], [hostile.length, true])
      assert.deepInclude(unfit, { table: "cards", column: "balance", count: 4 })
      const changes = "FROM changes('2026-11-20', '2026-11-21') WHERE table_name = 'accounts'"
      assert.deepStrictEqual(yield* query(changes), [])
      assert.deepStrictEqual(yield* query("SELECT count(*)::INTEGER AS n FROM history.accounts"), [
        { n: hostile.length },
      ])
      const textsOf = (rows: ReadonlyArray<unknown>) => rows.map((row) => JSON.stringify(row)).toSorted()
      const cells = Effect.map(query("SELECT balance, amount, seen, extra FROM nights.cards"), textsOf)
      const kept = (extra: object, amount: number | null = null, seen: string | null = null) => ({
        balance: null,
        amount,
        seen,
        extra: JSON.stringify(extra),
      })
      const others = [
        { balance: 3, amount: null, seen: null, extra: null },
        ...cards.map(({ balance }) => kept({ balance })),
      ]
      const taken = kept({ balance: "none" }, 1.5, "2026-11-20T02:04:05Z")
      assert.deepStrictEqual(yield* cells, textsOf([...others, taken]))
      assert.deepStrictEqual(yield* repaired, {
        done: ["nightly.2026-11-20: its tables were derived again from landing/nightly.2026-11-20"],
        left: [],
      })
      assert.deepStrictEqual((yield* rowsOn(20)).map(extraIn), newest.map(extraIn))
      const { amount, seen } = typed
      assert.deepStrictEqual(
        yield* cells,
        textsOf([...others, kept({ balance: "none", amount }, null, seen)]),
      )
    },
  )

  live(
    "that loses a list says so once, and keeps its items in `extra` [decision 10 gone list] [verify gone list]",
    function* () {
      const { query, file, records: record, write, problems } = yield* place
      write("VARCHAR")
      const plain = readFileSync(file, "utf8")
      const lists = "children:\n  holders: { comment: h, columns: { name: { type: VARCHAR, comment: n } } }\n"
      const holders = [{ name: "Ana", since: 2020 }, { name: null }, "Eva"]
      const told: Array<unknown> = []
      for (const [day, text] of [plain + lists, plain, plain].entries()) {
        writeFileSync(file, text)
        const published = yield* record(`2026-11-2${day}`, { holders })
        told.push([published.lists, day === 1 ? yield* problems : []])
      }
      assert.deepStrictEqual(told, [
        [[], []],
        [["holders (of accounts)"], []],
        [[], []],
      ])
      const kept = yield* query("SELECT extra FROM nights.accounts ORDER BY run_date")
      const [ana, , eva] = holders
      assert.deepStrictEqual(
        kept.map(({ extra }) => JSON.parse(String(extra)) as unknown),
        [[ana, {}, eva], holders, holders].map((items) => ({ holders: items })),
      )
    },
  )

  live(
    "that comes with the end of a run has its table then; one that is there stays while an end is published, and is that of a version that is put back [decision 10 own schemas]",
    function* () {
      const { query, night: nightOf, end, write, back, problems } = yield* place
      const found = query("SELECT balance, typeof(balance) AS type FROM accounts")
      yield* nightOf("2026-11-20", "1.10")
      write("VARCHAR")
      yield* end("2026-11-20")
      const texts = [{ balance: "1.10", type: "VARCHAR" }]
      assert.deepStrictEqual(yield* found, texts)
      write("DOUBLE")
      yield* nightOf("2026-11-21", 1)
      write("VARCHAR")
      yield* end("2026-11-21")
      assert.deepStrictEqual(yield* found, [{ balance: 1, type: "DOUBLE" }])
      yield* back
      assert.deepStrictEqual([yield* found, yield* problems], [texts, []])
    },
  )
})
