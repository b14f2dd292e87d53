import { assert, describe, it } from "@effect/vitest"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import type { TaskState } from "../../src/ledger/RunState.ts"
import { documentRows, namingsIn, sessionRows, findingsKey } from "../../src/tables/DeriveSession.ts"
import {
  coverageRows,
  deliveredFeatures,
  leftFeatures,
  type TaskFindings,
} from "../../src/tables/CoverageRows.ts"
import { featuresLeftOf } from "../../src/records/Misfits.ts"
import { executionRow, productKey, stateRows } from "../../src/tables/ExecutionRows.ts"
import type { ExecutionId } from "../../src/service/Ids.ts"
import type { SessionFindings } from "../../src/tables/DeriveSession.ts"
import { engineRows, ledgerRows } from "../../src/tables/RunRows.ts"
import { RunTables } from "../../src/tables/RunTables.ts"
import { taskFindings } from "../../src/tables/DeriveRun.ts"
import { builtInSources } from "../../src/service/FlowResults.ts"
import { nothingCounted, tallyOf } from "../../src/records/FindRecords.ts"

import { Normaliser } from "../../src/records/Normalise.ts"
import { canonicalText, recordIds } from "../../src/records/RecordIdentity.ts"
import { said } from "../service/Said.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { aFact, runStarted } from "../harness/Facts.ts"
import { anId } from "../harness/Id.ts"
import { families } from "../records/families.ts"

const run_id = anId("nightly.2026-11-20")
const task_id = anId(`${run_id}/c-1/bank`)
const task = { run_id, task_id }

const runOf = (facts: ReadonlyArray<Fact>) => {
  const asked = { customer_id: "c-1", engine_reference: "bank", features: ["accounts_read", "x"] }
  const all = [runStarted(run_id), aFact("TaskPlanned", { ...task, ...asked }), ...facts]
  const state = foldRun(all.map((fact, seq) => ({ seq, at: seq, fact })))
  if (state === undefined) throw new Error("no run")
  return state
}
const folded = (facts: ReadonlyArray<Fact>): TaskState => {
  const state = runOf(facts).tasks.get(task_id)
  if (state === undefined) throw new Error("no task")
  return state
}

const settled = (reason: string, outcome: "succeeded" | "partial" | "failed" | "unfinished") => {
  const who_acts = outcome === "failed" ? "customer" : outcome === "succeeded" ? "nobody" : "service"
  return aFact("TaskSettled", { ...task, outcome, reason: said(reason), who_acts })
}

const nothing: TaskFindings = {
  featureReasons: new Map(),
  byTable: undefined,
  byProduct: new Map(),
  delivered: undefined,
  products_count: undefined,
  retrieved: undefined,
  session_id: undefined,
  as_of: undefined,
  lacking: new Set(),
  isLeftOut: false,
}

describe("executions", () => {
  it("an attempt that was never accepted has its number, its external id and who sent it [ops worker]", () => {
    const refused = folded([
      aFact("StartIntended", { ...task, external_execution_id: "x-1", worker: "a:1" }),
      aFact("StartIntended", { ...task, external_execution_id: "x-1", worker: "b:2", probe: true }),
      aFact("StartAnswered", { ...task, answer: "refused", http_status: 400 }),
    ])
    const attempt = refused.attempts[0]!
    assert.deepStrictEqual(executionRow({ run_id, task: refused, attempt }, undefined), {
      ...task,
      attempt: 1,
      worker: "b:2",
      external_execution_id: "x-1",
    })
  })

  it("a product key of another form is not split", () => {
    const [split, ...others] = [
      "card:debit:gold@cards",
      "card@cards",
      "card:debit",
      ":debit@cards",
      "a:b@",
    ].map(productKey)
    assert.deepStrictEqual(split, { family: "card", subtype: "debit:gold", product: "cards" })
    assert.deepStrictEqual(others, [undefined, undefined, undefined, undefined])
  })
})

const execution = { execution_id: "e-1", session_id: "s-1" }
const accepted = [
  aFact("StartIntended", { ...task, external_execution_id: "x-1" }),
  aFact("StartAnswered", { ...task, http_status: 202, ...execution }),
]

describe("a state", () => {
  const rowsOf = (body: Readonly<Record<string, unknown>>) => {
    const state = folded(accepted)
    const first = { ...task, execution_id: "e-1", customer_id: "c-1", engine_reference: "bank" }
    return stateRows({ run_id, task: state, attempt: state.attempts[0]! }, body).map(([table, row]) => {
      assert.deepInclude(row, first)
      return [table, Object.fromEntries(Object.entries(row).filter(([name]) => !(name in first)))]
    })
  }

  it("gives a row for each feature, message, refused field and count that is one, at its place", () => {
    const info = { type: "info", id: "m-1" }
    const body = {
      features: ["junk", { code: "x", status_reason: "FEATURE_FAILED", status_message: null, more: 1 }],
      messages: [
        { date: "2026-11-20T01:00:01Z", ...info, loc: ["a", 1], message: "slow" },
        { loc: ["a", {}] },
        { loc: "a" },
      ],
      parameters_errors: [
        { loc: ["nif"], msg: "bad", type: "format", input: "the secret", ctx: { n: 1 } },
        { loc: 1, msg: 2, type: 3, ctx: null },
      ],
      configurations_errors: [{ msg: "odd" }],
      products_count: { "bank:account@accounts": 2, odd: "3", half: 1.5 },
    }
    const nothing = { loc: null, msg: null, type: null, ctx: null }
    assert.deepStrictEqual(rowsOf(body), [
      ["execution_features", { code: "x", status_reason: "FEATURE_FAILED", position: 1 }],
      [
        "execution_messages",
        { date: Date.parse("2026-11-20T01:00:01Z"), ...info, message: "slow", position: 0, loc: ["a", "1"] },
      ],
      ["execution_messages", { position: 1, loc: null }],
      ["execution_messages", { position: 2, loc: null }],
      [
        "execution_errors",
        { kind: "parameters", position: 0, loc: ["nif"], msg: "bad", type: "format", ctx: '{"n":1}' },
      ],
      ["execution_errors", { kind: "parameters", position: 1, ...nothing }],
      ["execution_errors", { kind: "configurations", position: 0, ...nothing, msg: "odd" }],
      [
        "products_count",
        { key: "bank:account@accounts", family: "bank", subtype: "account", product: "accounts", count: 2 },
      ],
      ["products_count", { key: "odd", count: null }],
      ["products_count", { key: "half", count: null }],
    ])
    assert.deepStrictEqual(rowsOf({ features: { x: 1 }, messages: null, products_count: [1] }), [])
  })
})

describe("the words of a state", () => {
  it("are cut in the tables with a mark that gives their length", () => {
    const long = "r".repeat(3_000)
    const body = {
      status_message: long,
      products_count: { [long]: 1 },
      messages: [{ id: long, message: long, loc: [long], type: "info" }],
      parameters_errors: [{ loc: [long], msg: long, type: long }],
    }
    const state = folded(accepted)
    const of = { run_id, task: state, attempt: state.attempts[0]! }
    const rows = [executionRow(of, body), ...stateRows(of, body).map(([, row]) => row)]
    const cut = rows
      .flatMap((row) => Object.values(row).flat())
      .filter((cell) => String(cell).startsWith("rrr"))
    const [mark, length] = ["… [cut: 3000 characters]", 2000]
    assert.deepStrictEqual(
      cut,
      Array.from({ length: 8 }, () => long.slice(0, length - mark.length) + mark),
    )
  })
})

describe("rows from the ledger alone", () => {
  const named = (facts: ReadonlyArray<Fact>, table: string) =>
    ledgerRows(runOf(facts)).flatMap(([name, row]) => (name === table ? [row] : []))

  it("a run is running until it ends, unfinished while something of it is left, and counts its tasks by outcome", () => {
    const planned = aFact("TaskPlanned", { run_id, task_id: `${run_id}/c-2/bank` })
    const ended = (leftovers: boolean) => aFact("RunEnded", { run_id, exit_code: 3, leftovers })
    const columns = ["status", "exit_code", "ended_at", "tasks", "succeeded", "failed", "unfinished"]
    const shown = (...facts: ReadonlyArray<Fact>) =>
      named(facts, "runs").map((row) => columns.map((name) => row[name]))
    assert.deepStrictEqual(
      [
        ...shown(planned),
        ...shown(settled("COMPLETED", "succeeded"), planned, ended(true)),
        ...shown(settled("X", "failed"), ended(false)),
      ],
      [
        ["running", undefined, undefined, 2, 0, 0, 2],
        ["unfinished", 3, 4, 2, 1, 0, 1],
        ["finished", 3, 3, 1, 0, 1, 0],
      ],
    )
  })

  it("a run is whole if it asks for what its job asks for: no part, no rerun, and none that never began [part rows]", () => {
    const whole = (tasks: ReadonlyArray<Fact>, more: Parameters<typeof runStarted>[1] = {}) => {
      const state = foldRun([runStarted(run_id, more), ...tasks].map((fact, seq) => ({ seq, at: seq, fact })))
      const [row] = ledgerRows(state!).flatMap(([name, one]) => (name === "runs" ? [one] : []))
      return [row?.["whole"], row?.["part"]]
    }
    const planned = [aFact("TaskPlanned", { ...task })]
    assert.deepStrictEqual(
      [whole(planned), whole([]), whole(planned, { part: run_id }), whole(planned, { parent: run_id })],
      [
        [true, undefined],
        [false, undefined],
        [false, run_id],
        [false, undefined],
      ],
    )
  })

  it("a task names its newest execution, else the session that it reads", () => {
    const again = [
      aFact("StartIntended", { ...task, attempt: 2, external_execution_id: "x-2" }),
      aFact("StartAnswered", { ...task, attempt: 2, answer: "refused", http_status: 400 }),
    ]
    const closed = aFact("AttemptClosed", { ...task, ...execution })
    const results = aFact("ResultsRead", { ...task, session_id: "s-7" })
    const whole = { ...task, customer_id: "c-1", engine_reference: "bank", features: ["accounts_read", "x"] }
    const times = { started_at: undefined, closed_at: undefined }
    const open = { ...whole, outcome: "unfinished", reason: undefined, attempts: 0, ...times }
    const failed = { ...whole, outcome: "failed", reason: "BAD", attempts: 1, started_at: 2, closed_at: 4 }
    const shown = (...facts: ReadonlyArray<Fact>) =>
      named(facts, "tasks").map(({ who_acts: _who, ...row }) => row)
    assert.deepStrictEqual(
      [...shown(), ...shown(results), ...shown(...accepted, closed, ...again, settled("BAD", "failed"))],
      [
        { ...open, execution_id: undefined, session_id: undefined },
        { ...open, execution_id: undefined, session_id: "s-7" },
        { ...failed, ...execution },
      ],
    )
  })

  it("a deletion has what was counted and landed, as far as it is known", () => {
    const counted = { family: "a:b", counted: 2, landed: 3 }
    const whole = { family: "c:d", counted: 1, landed: 1 }
    const uncounted = { family: "a:b", landed: 3 }
    const drained = (
      basis: "counted" | "final" | "unwanted",
      ...families: ReadonlyArray<typeof counted | typeof uncounted>
    ) => aFact("AttemptDrained", { ...task, execution_id: "e-1", proof: { basis, families } })
    const deletion = (http_status: number): ReadonlyArray<Fact> => {
      const asked = { ...task, execution_id: anId("e-1") }
      return [
        { _tag: "DeleteIntended", ...asked, landed_sha256: "aa" },
        { _tag: "DeleteAnswered", ...asked, http_status, outcome: "pending" },
      ]
    }
    const shown = (...facts: ReadonlyArray<Fact>) =>
      named([...accepted, ...facts], "deletions").map(
        ({ run_id: _run, task_id: _task, asked_at: _at, ...row }) => row,
      )
    const about = { execution_id: "e-1", customer_id: "c-1", engine_reference: "bank" }
    const row = { ...about, http_status: 423, outcome: "pending", landed_sha256: "aa" }
    const [ofBoth, ofLine] = ['"c:d":{"counted":1,"landed":1}', '"a:b":{"landed":3}']
    const proved = (of: number | undefined, landed: number | undefined, basis: string, text: string) => ({
      ...row,
      counted: of,
      landed,
      proof: `{"basis":"${basis}","families":{${text}}}`,
    })
    assert.deepStrictEqual(shown(), [])
    assert.deepStrictEqual(
      [
        ...shown(...deletion(423)),
        ...shown(...deletion(0)),
        ...shown(drained("counted", counted, whole), ...deletion(423)),
        ...shown(drained("counted"), ...deletion(423)),
        ...shown(drained("final", uncounted), ...deletion(423)),
        ...shown(drained("final", uncounted, whole), ...deletion(423)),
        ...shown(drained("unwanted", uncounted), ...deletion(423)),
      ],
      [
        row,
        { ...row, http_status: null },
        proved(3, 4, "counted", `"a:b":{"counted":2,"landed":3},${ofBoth}`),
        proved(0, 0, "counted", ""),
        proved(undefined, 3, "final", ofLine),
        proved(1, 4, "final", `${ofLine},${ofBoth}`),
        proved(undefined, undefined, "unwanted", ofLine),
      ],
    )
  })

  it("a document names the execution whose session delivered it, as it was read last", () => {
    const kept = { media_type: "a/b", bytes: 3, sha256: "aa", path: "p", status: "downloaded" } as const
    const of = (session_id: string) => ({ session_id, attachment_id: `d-${session_id}` })
    const facts = [
      ...accepted,
      aFact("ResultsRead", { ...task, session_id: "s-2", execution_id: "e-2" }),
      aFact("ResultsRead", { ...task, session_id: "s-2", execution_id: "e-3" }),
      ...["s-1", "s-2", "s-3"].map((id) => aFact("AttachmentRead", { ...task, ...of(id), ...kept })),
    ]
    const about = { ...task, customer_id: "c-1", engine_reference: "bank", ...kept }
    assert.deepStrictEqual(named(facts, "attachments"), [
      { ...about, ...of("s-1"), execution_id: "e-1" },
      { ...about, ...of("s-2"), execution_id: "e-3" },
      { ...about, ...of("s-3"), execution_id: undefined },
    ])
  })

  it("an engine has the fields that have a column, whatever else was said of it", () => {
    const engine = (body: string) => ({ engine_reference: anId("bank"), fetched_at: 7, body })
    const engines = [engine('{"name":"Bank","markets":["ES"],"website":7,"odd":1}'), engine("[]")]
    const first = { run_id, engine_reference: "bank", read_at: 7 }
    assert.deepStrictEqual(engineRows({ state: runOf([]), engines } as Parameters<typeof engineRows>[0]), [
      ["engine_descriptions", { name: "Bank", markets: ["ES"], ...first }],
      ["engine_descriptions", first],
    ])
  })
})

describe("features that a rerun does not ask for again", () => {
  const landed = { segment: "segment-000001.njl", offset: 0, bytes: 10, sha256: "aa" }
  const end = { status_code: "PARTIAL", status_reason: "PARTIAL", landed } as const
  const closed = aFact("AttemptClosed", { ...task, ...execution, ...end })
  const drained = aFact("AttemptDrained", { ...task, execution_id: "e-1" })
  const read = (proof: ReadonlyArray<Fact>, reason = "FAILED", outcome: "partial" | "failed" = "failed") =>
    folded([...accepted, closed, ...proof, settled(reason, outcome)])
  const told = (accounts: string, x: string) =>
    new Map([
      ["accounts_read", `FEATURE_${accounts}`],
      ["x", `FEATURE_${x}`],
    ])
  const findings = {
    featureReasons: told("COMPLETED", "FAILED"),
    byTable: new Map(),
    byProduct: new Map([["accounts", 1]]),
    delivered: new Set(["accounts"]),
  }
  const both = {
    byProduct: new Map([...findings.byProduct, ["x", 1]]),
    delivered: new Set(["accounts", "x"]),
  }
  const empty = { byProduct: new Map(), delivered: new Set<string>() }
  const left = (
    state: TaskState,
    more: Partial<TaskFindings> = {},
    families: ReadonlyArray<RecordFamily> = [],
  ) => deliveredFeatures(state, families, { ...nothing, ...findings, ...more })

  it("are those that succeeded, of a task whose data is here [rerun features] [rerun tables]", () => {
    assert.deepStrictEqual(
      [
        left(read([drained])),
        left(read([drained], "PARTIAL", "partial"), empty),
        left(read([drained]), empty),
        // Not told, all of them, or none of them.
        left(read([drained]), { featureReasons: new Map() }),
        left(read([drained]), { featureReasons: told("COMPLETED", "COMPLETED"), ...both }),
        left(read([drained]), { featureReasons: told("FAILED", "SHINY") }),
        // Not proved to be here, not in the tables, or not known to be final.
        left(read([])),
        left(read([drained], "RECORDS_SHORT")),
        left(read([drained]), { isLeftOut: true }),
        left(read([drained]), { delivered: undefined }),
      ],
      [["accounts_read"], ["accounts_read"], [], [], [], [], [], [], [], []],
    )
  })

  it("are none that share a product with a failed one, or whose records nobody can tell apart", () => {
    const [profiles] = families
    if (profiles === undefined) throw new Error("no family")
    const shared = [{ ...profiles, product: "accounts", features: ["accounts_read", "x"] }]
    assert.deepStrictEqual(
      [
        left(read([drained]), {}, shared),
        left(read([drained]), { delivered: new Set(["accounts", "loans"]) }),
        // A feature that is in no list: the views let every feature answer for its records.
        left(read([drained]), { featureReasons: told("FAILED", "COMPLETED"), delivered: new Set(["x"]) }),
      ],
      [[], [], []],
    )
  })
})

describe("coverage", () => {
  const outcomes = (
    state: TaskState,
    findings: Partial<TaskFindings>,
    columns = "feature outcome reason who_acts records counted",
  ) =>
    coverageRows(run_id, state, [], { ...nothing, ...findings }).map((row) =>
      columns
        .split(" ")
        .map((name) => row[name] ?? "-")
        .join(" "),
    )

  const one = new Map([["accounts", 1]])
  const read = { byTable: new Map<string, number>(), byProduct: one, delivered: new Set(["accounts"]) }
  const told = (...codes: ReadonlyArray<string>) => new Map(codes.map((code) => [code, "FEATURE_COMPLETED"]))
  const succeeded = folded([settled("COMPLETED", "succeeded")])
  const failed = folded([settled("TIMEOUT", "failed")])

  it("is the feature's own if the state gives it, otherwise the task's", () => {
    assert.deepStrictEqual(outcomes(failed, { featureReasons: told("accounts_read"), ...read }), [
      "accounts_read succeeded FEATURE_COMPLETED nobody 1 -",
      "x failed TIMEOUT customer 0 -",
    ])
  })

  it("[promise 17 unread coverage] of a task whose job wanted no results says nothing of records, and has no date", () => {
    const closed = aFact("AttemptClosed", { ...task, ...execution })
    const dates = (["unwanted", "counted"] as const).map((basis) => {
      const proof = { basis, families: [] }
      const drained = aFact("AttemptDrained", { ...task, execution_id: "e-1", proof })
      const state = folded([...accepted, closed, drained, settled("COMPLETED", "succeeded")])
      return outcomes(state, {}, "outcome records as_of")
    })
    assert.deepStrictEqual(dates, [
      ["succeeded - -", "succeeded - -"],
      ["succeeded - 6", "succeeded - 6"],
    ])
  })

  it("[promise 17 failed] a task that failed found nothing out where it has no record", () => {
    const byTable = new Map<string, number>()
    const unfed = { featureReasons: told("accounts_read"), byTable, delivered: new Set<string>() }
    const first = (state: TaskState, findings: Partial<TaskFindings>) =>
      outcomes(state, findings, "outcome reason who_acts records")[0]
    const { featureReasons } = unfed
    assert.deepStrictEqual(
      [
        first(failed, { featureReasons }),
        first(failed, { featureReasons, byTable }),
        first(failed, unfed),
        first(folded([settled("PARTIAL", "partial")]), unfed),
      ],
      [
        "failed TIMEOUT customer -",
        "failed TIMEOUT customer -",
        "failed TIMEOUT customer 0",
        "succeeded FEATURE_COMPLETED nobody 0",
      ],
    )
  })

  it("[promise 17 outside] a feature that the token does not cover is not found to be empty, unless it is named", () => {
    const ends = (outside: ReadonlyArray<string>, findings: Partial<TaskFindings> = {}) => {
      const intended = aFact("StartIntended", { ...task, outside })
      const state = folded([intended, settled("COMPLETED", "succeeded")])
      return outcomes(state, { ...read, ...findings }, "outcome reason who_acts")
    }
    const [asked, unasked] = ["succeeded COMPLETED nobody", "failed TOKEN_FEATURES engineer"]
    assert.deepStrictEqual(
      [ends([]), ends(["x"]), ends(["x"], { retrieved: ["accounts_read"] })],
      [
        [asked, asked],
        [asked, unasked],
        [asked, unasked],
      ],
    )
    const named = ends(["x"], { featureReasons: told("x") })[1]
    assert.strictEqual(named, "succeeded FEATURE_COMPLETED nobody")
    // Its records say that it was read after all.
    assert.strictEqual(ends(["accounts_read"])[0], asked)
  })

  it("[promise 17 passed over] a feature that a success passes over in silence is not found to be empty", () => {
    const ends = (findings: Partial<TaskFindings>) =>
      outcomes(succeeded, { ...read, ...findings }, "reason").join(" ")
    assert.deepStrictEqual(
      [
        // Nothing is named at all, so nothing is missing among the names.
        ends({}),
        ends({ retrieved: ["accounts_read", "x"] }),
        ends({ retrieved: ["accounts_read"] }),
        // Its records say that it was read, whatever is not named.
        ends({ retrieved: [] }),
        ends({ retrieved: ["accounts_read"], featureReasons: told("x") }),
        ends({ featureReasons: told("accounts_read") }),
        ends({ retrieved: ["x"], featureReasons: told("accounts_read") }),
        // A record could be its own.
        ends({ retrieved: [], byProduct: new Map([["odd", 1]]), delivered: new Set(["odd"]) }),
        ends({ retrieved: [], byTable: undefined }),
      ],
      [
        "COMPLETED COMPLETED",
        "COMPLETED COMPLETED",
        "COMPLETED FEATURE_NOT_RETRIEVED",
        "COMPLETED FEATURE_NOT_RETRIEVED",
        "COMPLETED FEATURE_COMPLETED",
        "FEATURE_COMPLETED FEATURE_NOT_RETRIEVED",
        "FEATURE_COMPLETED COMPLETED",
        "COMPLETED COMPLETED",
        "COMPLETED COMPLETED",
      ],
    )
  })

  it("no feature succeeds if its results are not all here, or with an unknown reason", () => {
    const featureReasons = new Map([...told("accounts_read"), ["x", "FEATURE_SHINY"]])
    assert.deepStrictEqual(outcomes(folded([settled("RESULTS_PARTIAL", "unfinished")]), { featureReasons }), [
      "accounts_read unfinished RESULTS_PARTIAL service - -",
      "x failed FEATURE_SHINY engineer - -",
    ])
  })

  it("what did not succeed in a task that did is told, unless another warning tells it [summary features left]", () => {
    const left = (state: TaskState, more: Partial<TaskFindings>) => {
      const featureReasons = new Map([["accounts_read", "FEATURE_TEMPORARY_ERROR"], ...told("x")])
      return leftFeatures(state, coverageRows(run_id, state, [], { ...nothing, featureReasons, ...more }))
    }
    const accounts = { feature: "accounts_read", reason: "FEATURE_TEMPORARY_ERROR", count: 1 }
    assert.deepStrictEqual(left(succeeded, {}), [accounts])
    assert.deepStrictEqual(left(succeeded, { featureReasons: told("accounts_read", "x") }), [])
    assert.deepStrictEqual(left(succeeded, { featureReasons: new Map(), isLeftOut: true }), [])
    assert.deepStrictEqual(left(folded([settled("PARTIAL", "partial")]), {}), [])
    const most = [accounts, { ...accounts, feature: "y" }, { ...accounts, feature: "y" }]
    assert.deepStrictEqual(featuresLeftOf(most), {
      count: 3,
      most: [{ ...accounts, feature: "y", count: 2 }, accounts],
    })
    assert.isUndefined(featuresLeftOf([]))
  })

  it("results short of some products, or partial, fail the features that may feed them, whatever their task ended with since [promise 17 short] [promise 17 word]", () => {
    const lackingOf =
      (state: TaskState, more: Partial<TaskFindings>) => (lacking?: ReadonlyArray<string>) => {
        const found = { featureReasons: told("accounts_read", "x"), ...more }
        return outcomes(state, { ...found, lacking: lacking && new Set(lacking) }, "reason").join(" ")
      }
    const short = lackingOf(folded([settled("RECORDS_SHORT", "partial")]), {})
    const partial = lackingOf(folded([settled("RESULTS_PARTIAL", "partial")]), {})
    const both = { byProduct: new Map([...one, ["x", 1]]), byTable: new Map<string, number>() }
    const since = lackingOf(folded([settled("FAILED", "failed")]), both)
    assert.deepStrictEqual(
      [
        [short(["accounts"]), short(["x"]), short(["accounts", "x"])],
        // Nobody knows whose it is, or what is missing.
        [short(["something"]), short(), partial(["accounts"])],
        [since(), since(["x"]), since([])],
      ],
      [
        ["RECORDS_SHORT FEATURE_COMPLETED", "FEATURE_COMPLETED RECORDS_SHORT", "RECORDS_SHORT RECORDS_SHORT"],
        ["RECORDS_SHORT RECORDS_SHORT", "RECORDS_SHORT RECORDS_SHORT", "RESULTS_PARTIAL RESULTS_PARTIAL"],
        ["FAILED FAILED", "FEATURE_COMPLETED FAILED", "FEATURE_COMPLETED FEATURE_COMPLETED"],
      ],
    )
  })

  it("zero records are told from an unknown number", () => {
    const records = (findings: Partial<TaskFindings>) =>
      outcomes(succeeded, { byTable: new Map(), ...findings }, "records").join(" ")
    const of = (...products: ReadonlyArray<string>) => ({
      byProduct: new Map(products.map((product) => [product, 2])),
      delivered: new Set(products),
    })
    // A record of a product that no feature names could belong to `x`, or to `accounts_read`.
    assert.deepStrictEqual(
      [
        [records(of()), records(of("accounts")), records(of("something"))],
        [records({ ...of(), delivered: undefined }), records({ ...of(), byTable: undefined })],
      ],
      [
        ["0 0", "2 0", "- -"],
        ["- -", "- -"],
      ],
    )
  })

  it("counts the records of the product with the feature's name if no schema names the feature", () => {
    const findings = {
      byTable: new Map(),
      byProduct: new Map([["accounts", 3]]),
      products_count: [
        ["bank:account@accounts", 4],
        ["bank:card@cards", 9],
      ] as const,
    }
    assert.deepStrictEqual(outcomes(succeeded, findings), [
      "accounts_read succeeded COMPLETED nobody 3 4",
      "x succeeded COMPLETED nobody - -",
    ])
  })
})

const session = {
  task: folded([]),
  session_id: anId("s-1"),
  execution_id: undefined,
  read_at: 5,
  is_closed: true,
  body: {
    ref: { segment: "s", offset: 0, bytes: 1, sha256: "h" },
    meta: { kind: "results" as const, ...task, http_status: 200, received_at: 7 },
  },
  bodies: [],
}

describe("what the sessions of a task say together", () => {
  const [source] = builtInSources
  if (source === undefined) throw new Error("no source")
  const finding = (product: string, isFinal = true) => ({
    source,
    isFinal,
    tally: tallyOf([{ product, sub_family: `${product}:x` }]),
  })
  /** The findings of sessions, none where a body could not be used; without a body where nothing was read. */
  const together = (
    all: ReadonlyArray<Partial<SessionFindings> | "unused" | "unread">,
    state?: Readonly<Record<string, unknown>>,
  ) => {
    const tables = new RunTables([], [], "2026-11-20")
    const sessions = all.map((found, at) => {
      const [body] = found === "unread" ? [] : [session.body]
      const one = { ...session, body, session_id: anId(`s-${at}`) }
      if (typeof found !== "string")
        tables.found.set(findingsKey(one), {
          counts: nothingCounted,
          byProduct: new Map(),
          retrieved: undefined,
          sources: [],
          garbled: 0,
          ...found,
        })
      return one
    })
    return taskFindings(tables, sessions, new Map(state === undefined ? [] : [[undefined, state]]))
  }
  const { lacking: _lacking, isLeftOut: _isLeftOut, ...ofNone } = nothing

  it("is what that says which was read last, as the tables have it [promise 17 one reading]", () => {
    const first = {
      counts: { ...nothingCounted, byTable: { accounts: 2, cards: 1 } },
      byProduct: new Map([["odd", 1]]),
      retrieved: ["a"],
      sources: [finding("accounts")],
    }
    const second = {
      counts: { ...nothingCounted, byTable: { accounts: 3 } },
      byProduct: new Map([["odd", 2]]),
      retrieved: ["b"],
      sources: [finding("odd")],
    }
    assert.deepStrictEqual(together([first, second, "unread"]), {
      ...ofNone,
      byTable: new Map([["accounts", 3]]),
      byProduct: new Map([["odd", 2]]),
      delivered: new Set(["odd"]),
      retrieved: ["b"],
      session_id: anId("s-1"),
      as_of: 7,
    })
    assert.deepStrictEqual(together([]), ofNone)
    assert.deepStrictEqual(together(["unread"]), { ...ofNone, session_id: anId("s-0") })
  })

  it("names the products that came only if nothing else can have come", () => {
    const whole = { sources: [finding("accounts")] }
    const delivered = (...all: Parameters<typeof together>[0]) => together(all).delivered
    assert.deepStrictEqual(
      [
        delivered(whole),
        delivered(whole, "unread"),
        delivered(whole, "unused"),
        delivered(whole, { sources: [finding("cards", false)] }),
        delivered(whole, { ...whole, counts: { ...nothingCounted, strays: 1 } }),
        delivered({ sources: [] }),
      ],
      [new Set(["accounts"]), new Set(["accounts"]), undefined, undefined, undefined, undefined],
    )
  })

  it("has the reasons and the counts that the state gives, and no others", () => {
    const state = {
      features: [{ code: "a", status_reason: "X" }, { code: "b", status_reason: 7 }, { code: 7 }, "c"],
      products_count: { "a:b@c": 2, "d:e@f": "3", half: 1.5, none: null },
    }
    const { featureReasons, products_count } = together([], state)
    assert.deepStrictEqual([featureReasons, products_count], [new Map([["a", "X"]]), [["a:b@c", 2]]])
    assert.strictEqual(together([], { products_count: [1] }).products_count, undefined)
  })

  it("has the counts of the execution whose results were read last [promise 17 one count]", () => {
    const tables = new RunTables([], [], "2026-11-20")
    const [read, none]: readonly [ExecutionId, ExecutionId] = [anId("e-1"), anId("e-2")]
    const states = new Map([
      [read, { products_count: { "a:b@c": 2 } }],
      [none, { products_count: {} }],
    ])
    const sessions = [
      { ...session, execution_id: read },
      { ...session, execution_id: none, body: undefined },
    ]
    assert.deepStrictEqual(taskFindings(tables, sessions, states).products_count, [["a:b@c", 2]])
  })
})

describe("documents", () => {
  const rows = (bodies: ReadonlyArray<unknown>, attachments: TaskState["attachments"] = []) =>
    documentRows(
      run_id,
      { ...session, task: { ...session.task, attachments } },
      bodies.map((data) => {
        const ids = new Map<unknown, string>()
        const { task_id, customer_id = null, engine_reference = null } = session.task.planned
        const owner = { task_id, customer_id, engine_reference, session_id: session.session_id }
        new Normaliser([]).add(
          { ...owner, run_id, run_date: "2026-11-20", execution_id: null },
          data,
          undefined,
          ids,
        )
        return { namings: namingsIn(data), ids }
      }),
    ).map(([, row]) =>
      ["attachment_id", "title", "record_id", "media_type", "status"].map((name) => row[name]),
    )
  const record = { product: "labor_check", sub_family: "labor_check:report", name: "Work life" }
  const idOf = (value: object, nth = 0) => {
    const ids = recordIds("c-1/bank")
    const { product, sub_family } = record
    const identity = { product, sub_family, key: undefined, content: canonicalText(value) }
    return Array.from({ length: nth + 1 }, () => ids(identity))[nth]?.record_id
  }

  it("are linked to the record that names them, which may be one of two equal ones", () => {
    const first = { ...record, report_attachments: ["a-1", 7, "a-2"] }
    const second = { ...record, nested: { title: "Annex", attachment_id: "a-3" } }
    assert.deepStrictEqual(rows([{ labor: [first, second, { ...second }] }]), [
      ["a-1", "Work life", idOf(first), undefined, "not_requested"],
      ["a-2", "Work life", idOf(first), undefined, "not_requested"],
      ["a-3", "Annex", idOf(second), undefined, "not_requested"],
    ])
    assert.notStrictEqual(idOf(second), idOf(second, 1))
  })

  it("appear once, with what any naming says and what became of the download, even if no body names them", () => {
    const facts = [
      aFact("AttachmentRead", { ...task, attachment_id: "a-1", media_type: "application/pdf" }),
      aFact("AttachmentRead", { ...task, attachment_id: "old", status: "missing" }),
      aFact("AttachmentRead", { ...task, session_id: "other", attachment_id: "x", status: "missing" }),
    ]
    const listed = { title: "Report", media_type: "text/html", attachment_id: "a-1" }
    const data = { documents: [listed, { attachment_id: "a-2", media_type: "text/html" }] }
    const bearing = { ...record, attachment: "a-1" }
    assert.deepStrictEqual(rows([data, { labor: [bearing] }], facts), [
      ["a-1", "Report", idOf(bearing), "application/pdf", "downloaded"],
      ["a-2", undefined, undefined, "text/html", "not_requested"],
      ["old", undefined, undefined, undefined, "missing"],
    ])
  })
})

describe("sessions", () => {
  it("recognises status and cursor by their values, whatever the fields are called, and keeps all else [decision 10 session fields]", () => {
    const body = {
      data: [],
      foo: "TIMED_OUT",
      bar: "es-public-administration:connect:wait",
      is_closed: "perhaps",
      other: null,
    }
    assert.deepStrictEqual(sessionRows(run_id, session, body, 0), [
      [
        "sessions",
        {
          ...task,
          session_id: anId("s-1"),
          execution_id: undefined,
          customer_id: anId("c-1"),
          engine_reference: anId("bank"),
          is_closed: true,
          pulled_at: 7,
          records: 0,
          status_code: "TIMED_OUT",
          cursor: "es-public-administration:connect:wait",
          retrieved_features: undefined,
          extra: '{"is_closed":"perhaps","other":null}',
        },
      ],
    ])
  })

  it("say that they are closed, or not, only where the results say so [decision 10 session silent]", () => {
    const closed = [{ data: [] }, { is_closed: null }, undefined, { is_closed: false }].map((body) => {
      const [row] = sessionRows(run_id, { ...session, is_closed: false }, body, 0)
      return row?.[1]["is_closed"]
    })
    assert.deepStrictEqual(closed, [undefined, undefined, undefined, false])
  })

  it("uses neither of two values that could both be the status", () => {
    const [row] = sessionRows(run_id, session, { a: "COMPLETED", b: "FAILED" }, 0)
    assert.deepStrictEqual(
      [row?.[1]["status_code"], row?.[1]["extra"]],
      [undefined, '{"a":"COMPLETED","b":"FAILED"}'],
    )
  })
})
