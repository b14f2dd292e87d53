/** A receipt stands for every body of its execution, those that become no rows too. */
import { createHash } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { bodyBounds } from "../../src/service/BodyBounds.ts"
import { Landing } from "../../src/landing/Landing.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import { deriveRun, receiptOf, type DeriveOptions } from "../../src/tables/DeriveRun.ts"
import { loadPicture, type RunPicture } from "../../src/tables/RunPicture.ts"
import { outcomeTables, systemTables } from "../../src/tables/SystemTables.ts"
import { families } from "../records/families.ts"
import {
  account,
  append,
  begin,
  damageBody,
  engine,
  folder,
  foundation,
  profileOf,
  resultsOf,
  stateOf,
  succeed,
} from "./night.ts"
import { aFact } from "../harness/Facts.ts"
import { anId } from "../harness/Id.ts"
import { effect, type Failure } from "../harness/Steps.ts"

const run_id = anId("nightly.2026-11-20")
const derive = Effect.gen(function* () {
  const picture = yield* loadPicture(run_id)
  return (yield* deriveRun(picture, { families: [], tables: [], sink: () => Effect.void })).brought
})

/** In a folder of its own. */
const inFoundation = <A, E>(
  work: (root: string) => Effect.Effect<A, E, Layer.Success<ReturnType<typeof foundation>>>,
) => Effect.scoped(Effect.flatMap(folder, (root) => Effect.provide(work(root), foundation(root))))

/** A test in a folder of its own, in which the run has begun. */
const ofRun = (
  title: string,
  steps: (root: string) => Generator<Effect.Effect<unknown, Failure, Ledger | Landing>, void, never>,
) =>
  effect(title, function* () {
    const begun = append([begin(run_id, "2026-11-20")])
    yield* inFoundation((root) =>
      Effect.andThen(
        begun,
        Effect.gen(() => steps(root)),
      ),
    )
  })

const task = (id: string) => ({ run_id, task_id: anId(`${run_id}/c-${id}/${engine}`) })
const begins = (id: string) => [
  aFact("TaskPlanned", task(id)),
  aFact("StartIntended", { ...task(id), external_execution_id: `x-${id}` }),
  aFact("StartAnswered", { ...task(id), execution_id: `e-${id}` }),
]
const landLate = Effect.fnUntraced(function* (
  kind: "state" | "results" | "profile",
  id: string,
  body: unknown,
) {
  const ids = { attempt: 1, execution_id: anId(`e-${id}`), session_id: anId(`s-${id}`) }
  const whose = { customer_id: anId(`c-${id}`), engine_reference: anId(engine) }
  const landing = yield* Landing
  return yield* landing.land(
    { ...task(id), ...ids, ...whose, kind, http_status: 200, received_at: 2 },
    new TextEncoder().encode(JSON.stringify(body)),
  )
})

describe("a receipt", () => {
  const profiles = resultsOf(profileOf("Ana"))
  for (const [kind, results] of [
    ["state", profiles],
    ["results", profiles],
    // Without any results.
    ["state", undefined],
  ] as const)
    ofRun(
      `is not given if an older body (${kind}) has changed since it was landed, ${results === undefined ? "without" : "with"} results`,
      function* (root) {
        const older =
          kind === "state" ? stateOf("1", "c-1", { is_closed: false }) : resultsOf(profileOf("Old"))
        const ref = yield* landLate(kind, "1", older)
        if (results !== undefined) yield* succeed(run_id, "1", "c-1", results)
        else {
          const landed = yield* landLate("state", "1", stateOf("1", "c-1"))
          const closed = aFact("AttemptClosed", { ...task("1"), execution_id: "e-1", landed })
          yield* append([...begins("1"), closed])
        }
        assert.lengthOf((yield* derive).receipts, 1)
        damageBody(root, run_id, ref)
        const failed = yield* Effect.flip(derive)
        assert.include(failed.message, `the body at offset ${ref.offset} is not what was landed`)
      },
    )

  const counting = (id: string, count: number) =>
    stateOf(id, `c-${id}`, {
      products_count: { "customer_information:user_profile@customer_information": count },
    })
  const one = (name: string) => resultsOf(profileOf(name))

  ofRun(
    "says that all of an execution is here if its own session has as much as it counted, or if the job does not want it and each of its bodies can be used [promise 5 receipts]",
    function* () {
      const proof = { basis: "unwanted" as const, families: [] }
      const unwanted = (id: string) =>
        aFact("AttemptDrained", { ...task(id), execution_id: `e-${id}`, proof })
      const deep = `${"[".repeat(bodyBounds.depthMax + 1)}${"]".repeat(bodyBounds.depthMax + 1)}`
      yield* succeed(run_id, "1", "c-1", one("Ana"), counting("1", 1))
      yield* succeed(run_id, "2", "c-2", one("Eva"), counting("2", 2))
      yield* succeed(run_id, "3", "c-3", { ...one("Eve"), is_closed: false }, counting("3", 1))
      yield* succeed(run_id, "4", "c-4", one("Bob"), stateOf("4", "c-4", { products_count: "?" }))
      yield* succeed(run_id, "5", "c-5", "no JSON", counting("5", 1))
      yield* succeed(run_id, "6", "c-6", resultsOf(), "no JSON")
      yield* succeed(run_id, "7", "c-7", resultsOf(), counting("7", 0))
      yield* succeed(run_id, "8", "c-8", resultsOf(), counting("8", 2))
      yield* succeed(run_id, "9", "c-9", `{"is_closed":true,"data":${deep}}`, counting("9", 0))
      yield* append([unwanted("8"), unwanted("9")])
      const whole = (yield* derive).receipts.flatMap((each) => (each.whole ? [each.execution_id] : []))
      assert.deepStrictEqual(whole, [anId("e-1"), anId("e-7"), anId("e-8")])
      assert.lengthOf((yield* derive).receipts, 9)
    },
  )

  ofRun(
    "is given once a final state is landed, and stands for the hashes of all bodies in any order",
    function* () {
      yield* succeed(run_id, "1", "c-1", one("Ana"), counting("1", 1))
      yield* append(begins("2"))
      const bodies = yield* Effect.flatMap(Landing, (landing) => landing.list(run_id))
      const hashes = bodies.map(({ ref }) => ref.sha256)
      const text = hashes.toSorted().join("\n")
      const landed_sha256 = createHash("sha256").update(text).digest("hex")
      const expected = [{ execution_id: anId("e-1"), landed_sha256, whole: true }]
      assert.deepStrictEqual((yield* derive).receipts, expected)
      assert.strictEqual(receiptOf(hashes.toReversed()), landed_sha256)
    },
  )
})

describe("what ledger and landing say of a run", () => {
  ofRun(
    "is called damaged only if the ledger itself is: what cannot be read now may be read later",
    function* () {
      const real = yield* Ledger
      yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana")))
      for (const damaged of [false, true]) {
        const failure = Effect.fail(new LedgerFailed({ message: "disk gone", damaged }))
        for (const failing of [
          { state: () => failure },
          { pruned: failure },
          { cachedForm: () => failure },
        ]) {
          const broken = Effect.provideService(loadPicture(run_id), Ledger, { ...real, ...failing })
          const failed = yield* Effect.flip(broken)
          assert.deepStrictEqual([failed.message, failed.damaged], ["the ledger: disk gone", damaged])
        }
      }
    },
  )
})

/** A derived run with its rows by table, of each only these columns. */
const derivedRows = Effect.fnUntraced(function* (
  picture: RunPicture,
  columns: Readonly<Record<string, ReadonlyArray<string>>>,
  options: Partial<DeriveOptions> = {},
) {
  const rows: Record<string, Array<ReadonlyArray<unknown>>> = {}
  const derived = yield* deriveRun(picture, {
    families,
    tables: systemTables,
    sink: ({ spec, table }) =>
      Effect.sync(() => {
        const shown = columns[spec.name]
        if (shown === undefined) return
        const cells = table
          .toArray()
          .map((row) => (row as { toJSON: () => Record<string, unknown> }).toJSON())
        ;(rows[spec.name] ??= []).push(...cells.map((row) => shown.map((name) => row[name])))
      }),
    ...options,
  })
  return { derived, rows }
})

const shownColumns = {
  tasks: ["customer_id", "outcome"],
  executions: ["customer_id", "execution_id", "status_code", "extra"],
  execution_features: ["execution_id", "code", "position"],
  sessions: ["session_id", "records", "is_closed"],
  coverage: ["customer_id", "feature", "outcome", "reason", "records", "counted"],
  customer_profiles: ["customer_id", "name"],
}
const code = "customer_information_read"
describe("the rows of a run", () => {
  const night = Effect.gen(function* () {
    yield* append([begin(run_id, "2026-11-20")])
    yield* succeed(run_id, "1", "c-1", resultsOf(profileOf("Ana")))
    yield* succeed(run_id, "2", "c-2", resultsOf(profileOf("Bob")), "no JSON")
    // Refused, accepted and never seen again, read without a body, and never started.
    const planned = (id: string) => {
      const whose = { customer_id: `c-${id}`, engine_reference: engine, features: [code] }
      return aFact("TaskPlanned", { ...task(id), ...whose })
    }
    yield* append([
      ...["3", "4", "5"].map(planned),
      ...["3", "4"].map((id) => aFact("StartIntended", { ...task(id), external_execution_id: `x-${id}` })),
      aFact("StartAnswered", { ...task("3"), answer: "lost" }),
      aFact("StartAnswered", { ...task("4"), execution_id: "e-4", session_id: "s-4" }),
      aFact("ResultsRead", { ...task("4"), session_id: "s-4", http_status: 404 }),
    ])
  })
  const ofNight = (
    title: string,
    steps: (
      picture: RunPicture,
      root: string,
    ) => Generator<Effect.Effect<unknown, Failure, Ledger | Landing>, void, never>,
    more: Effect.Effect<unknown, Failure, Ledger | Landing> = Effect.void,
  ) =>
    effect(title, function* () {
      yield* inFoundation((root) =>
        Effect.gen(function* () {
          yield* night
          yield* more
          const picture = yield* loadPicture(run_id)
          yield* Effect.gen(() => steps(picture, root))
        }),
      )
    })
  const executions = [
    ["c-1", "e-1", "COMPLETED", '{"errors_count":"none","flavour":"new"}'],
    ["c-2", "e-2", "COMPLETED", null],
    [null, null, null, null],
    ["c-4", "e-4", null, null],
  ]
  const coverage = [
    ["c-1", code, "succeeded", "FEATURE_COMPLETED", 1, 1n],
    ["c-2", code, "succeeded", "COMPLETED", 1, null],
    ...["3", "4", "5"].map((id) => [`c-${id}`, code, "unfinished", null, null, null]),
  ]
  const tasks = [
    ["c-1", "succeeded"],
    ["c-2", "succeeded"],
    ...["3", "4", "5"].map((id) => [`c-${id}`, "unfinished"]),
  ]

  ofNight(
    "say of every task what ledger and bodies say of it, as far as they can be read [decision 10 session closed]",
    function* (picture) {
      const { derived, rows } = yield* derivedRows(picture, shownColumns)
      assert.deepStrictEqual(rows, {
        tasks,
        executions,
        execution_features: [["e-1", code, 0]],
        sessions: [
          ["s-1", 1, true],
          ["s-2", 1, true],
          ["s-4", null, null],
        ],
        coverage,
        customer_profiles: [
          ["c-1", "Ana"],
          ["c-2", "Bob"],
        ],
      })
      assert.deepStrictEqual(
        [derived.brought.left_out, derived.brought.delivered, derived.brought.misfits],
        [[], [], []],
      )
    },
  )

  ofNight(
    "are the same without reading the results again, if it is known what is in them",
    function* (picture, root) {
      const { findings } = (yield* derivedRows(picture, {})).derived
      const body = picture.sessions.find(({ session_id }) => session_id === anId("s-1"))?.body
      if (body === undefined) throw new Error("no body")
      damageBody(root, run_id, body.ref)
      assert.include((yield* Effect.flip(derivedRows(picture, {}))).message, "is not what was landed")
      const columns = { executions: shownColumns.executions, coverage: shownColumns.coverage }
      const again = yield* derivedRows(picture, columns, { tables: outcomeTables, findings })
      assert.deepStrictEqual([again.rows, again.derived.findings], [{ executions, coverage }, findings])
    },
  )

  ofNight("are read again where a newer body came since", function* (picture) {
    const { findings } = (yield* derivedRows(picture, {})).derived
    yield* landLate("results", "2", resultsOf(profileOf("Bob"), profileOf("Eve")))
    const columns = { coverage: shownColumns.coverage }
    const { rows } = yield* derivedRows(yield* loadPicture(run_id), columns, {
      tables: outcomeTables,
      findings,
    })
    assert.deepStrictEqual(
      rows["coverage"]?.slice(0, 2).map(([customer, , , , records]) => [customer, records]),
      [
        ["c-1", 1],
        ["c-2", 2],
      ],
    )
  })

  ofNight(
    "say so of a task that the version before had left out, and only of that one",
    function* (picture) {
      const { findings, ...first } = (yield* derivedRows(picture, {})).derived
      assert.deepStrictEqual(first.brought.left_out, [])
      const { rows } = yield* derivedRows(picture, { coverage: shownColumns.coverage }, { findings })
      assert.deepStrictEqual(
        rows["coverage"]?.slice(0, 2).map((row) => row.slice(0, 4)),
        [
          ["c-1", code, "partial", "ANSWER_UNUSABLE"],
          ["c-2", code, "succeeded", "COMPLETED"],
        ],
      )
      // What is read again now is judged anew.
      const now = yield* derivedRows(picture, { coverage: shownColumns.coverage })
      assert.deepStrictEqual(now.rows["coverage"], coverage)
    },
    append([
      {
        _tag: "RunPublished",
        run_id,
        version: 1,
        receipts: [],
        left_out: ["1", "9"].map((id) => ({
          task_id: task(id).task_id,
          execution_id: anId(`e-${id}`),
          where: "w",
          reason: "r",
        })),
      },
    ]),
  )

  ofNight(
    "name what a rerun need not ask for again, task by task",
    function* (picture) {
      const { delivered } = (yield* derivedRows(picture, {})).derived.brought
      assert.deepStrictEqual(delivered, [{ task_id: task("6").task_id, features: ["accounts_read"] }])
    },
    Effect.gen(function* () {
      const features = [
        { code: "accounts_read", status_reason: "FEATURE_COMPLETED" },
        { code: "cards_read", status_reason: "FEATURE_FAILED" },
      ]
      const state = stateOf("6", "c-6", { features, products_count: { "bank:account@accounts": 1 } })
      yield* succeed(run_id, "6", "c-6", resultsOf(account), state)
      const whose = {
        customer_id: "c-6",
        engine_reference: engine,
        features: ["accounts_read", "cards_read"],
      }
      yield* append([
        aFact("TaskPlanned", { ...task("6"), ...whose }),
        aFact("AttemptDrained", { ...task("6"), execution_id: "e-6" }),
        aFact("TaskSettled", { ...task("6"), reason: "PARTIAL", who_acts: "service" }),
      ])
    }),
  )

  ofNight(
    "count a record once that a second endpoint shows again, and what only that one shows",
    function* (picture) {
      const { rows } = yield* derivedRows(picture, {
        sessions: ["session_id", "records"],
        customer_profiles: ["customer_id", "name"],
      })
      const of = (customer: string) => (rows["customer_profiles"] ?? []).filter(([id]) => id === customer)
      const counted = (rows["sessions"] ?? []).filter(([id]) => id === "s-6" || id === "s-7")
      assert.deepStrictEqual(counted, [
        ["s-6", 1],
        ["s-7", 2],
      ])
      assert.deepStrictEqual([of("c-6"), of("c-7")], [[["c-6", "Ana"]], [["c-7", "Bea"]]])
    },
    Effect.gen(function* () {
      for (const [id, name] of [
        ["6", "Ana"],
        ["7", "Bea"],
      ] as const) {
        yield* succeed(run_id, id, `c-${id}`, resultsOf(id === "6" ? profileOf("Ana") : account))
        yield* landLate("profile", id, profileOf(name))
      }
    }),
  )

  effect("are one part of a table with few of them, and few large ones of one with many", function* () {
    const parts: Record<string, Array<number>> = {}
    const large = Effect.gen(function* () {
      yield* append([begin(run_id, "2026-11-20")])
      for (const id of ["1", "2", "3"]) {
        const phones = Array.from({ length: 45_000 }, (_, n) => `${id}/${n}`)
        yield* succeed(run_id, id, `c-${id}`, resultsOf({ ...profileOf("Ana"), phones }))
      }
      yield* deriveRun(yield* loadPicture(run_id), {
        families,
        tables: systemTables,
        sink: ({ spec, rows, table }) =>
          Effect.sync(() => {
            assert.strictEqual(table.numRows, rows)
            ;(parts[spec.name] ??= []).push(rows)
          }),
      })
    })
    yield* inFoundation(() => large)
    const { phones, ...others } = parts
    assert.deepStrictEqual([phones, others["customer_profiles"]], [[81_920, 53_080], [3]])
    assert.isTrue(Object.values(others).every((each) => each.length === 1))
  })

  ofNight(
    "are the barest of a task that a defect of ours affects; all others are as they would be",
    function* (picture) {
      const broken = picture.sessions.map((one) =>
        one.session_id === anId("s-1")
          ? {
              ...one,
              get bodies(): typeof one.bodies {
                throw new TypeError("quotes a body")
              },
            }
          : one,
      )
      const { derived, rows } = yield* derivedRows({ ...picture, sessions: broken }, shownColumns)
      assert.deepStrictEqual(rows, {
        tasks,
        executions: [["c-1", "e-1", null, null], ...executions.slice(1)],
        sessions: [
          ["s-2", 1, true],
          ["s-4", null, null],
        ],
        coverage: [["c-1", null, "partial", "ANSWER_UNUSABLE", null, null], ...coverage.slice(1)],
        customer_profiles: [["c-2", "Bob"]],
      })
      assert.deepStrictEqual(
        [
          derived.brought.receipts.map((one) => one.execution_id),
          derived.brought.delivered,
          derived.findings.size,
        ],
        [[anId("e-2")], [], 1],
      )
      const reason = "a defect in the program (TypeError)"
      const places = (picture.framesByTask.get(task("1").task_id) ?? []).map(
        ({ ref }) => `${ref.segment}:${ref.offset}`,
      )
      assert.deepStrictEqual(
        derived.brought.left_out.map((left) => [left.task_id, left.where, left.reason]),
        places.map((place) => [task("1").task_id, place, reason]),
      )
    },
  )
})
