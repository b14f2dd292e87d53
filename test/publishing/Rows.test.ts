import { assert, describe, it } from "@effect/vitest"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import type { TaskState } from "../../src/ledger/RunState.ts"
import { documentRows } from "../../src/publishing/DocumentRows.ts"
import { coverageRows } from "../../src/publishing/CoverageRows.ts"
import type { TaskFindings } from "../../src/publishing/CoverageRows.ts"
import { deliveredFeatures } from "../../src/publishing/DeliveredFeatures.ts"
import { executionRow, productKey } from "../../src/publishing/ExecutionRows.ts"

import { canonicalText, recordIds } from "../../src/records/RecordIdentity.ts"
import { sessionRows } from "../../src/publishing/SessionRows.ts"
import { said } from "../ends/Said.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { anId } from "../harness/Id.ts"
import { families } from "../records/families.ts"

const run_id = anId("nightly.2026-11-20")
const task_id = anId(`${run_id}/c-1/bank`)
const task = { run_id, task_id }

const folded = (facts: ReadonlyArray<Fact>): TaskState => {
  const all: ReadonlyArray<Fact> = [
    { _tag: "RunStarted", run_id, job: "j", job_path: "j", run_date: "2026-11-20", tool_version: "1" },
    {
      _tag: "TaskPlanned",
      ...task,
      customer_id: anId("c-1"),
      engine_reference: anId("bank"),
      features: ["accounts_read", "x"],
    },
    ...facts,
  ]
  const state = foldRun(all.map((fact, seq) => ({ seq, at: seq, fact })))?.tasks.get(task_id)
  if (state === undefined) throw new Error("no task")
  return state
}

const settled = (reason: string, outcome: "succeeded" | "failed" | "unfinished"): Fact => ({
  _tag: "TaskSettled",
  ...task,
  outcome,
  reason: said(reason),
  who_acts: outcome === "failed" ? "customer" : outcome === "succeeded" ? "nobody" : "service",
})

const nothing: TaskFindings = {
  featureReasons: new Map(),
  byTable: undefined,
  byProduct: new Map(),
  delivered: undefined,
  products_count: undefined,
  retrieved: [],
  session_id: undefined,
  as_of: undefined,
  isLeftOut: false,
}

describe("executions", () => {
  it("an attempt that was never accepted has only its number and its external id", () => {
    const refused = folded([
      { _tag: "StartIntended", ...task, attempt: 1, external_execution_id: "x-1", probe: false },
      { _tag: "StartAnswered", ...task, attempt: 1, answer: "refused", http_status: 400 },
    ])
    const [attempt] = refused.attempts
    if (attempt === undefined) throw new Error("no attempt")
    assert.deepStrictEqual(executionRow({ run_id, task: refused, attempt }, undefined), {
      ...task,
      attempt: 1,
      external_execution_id: "x-1",
    })
  })

  it("a product key of another form is not split", () => {
    assert.deepStrictEqual(
      ["card:debit:gold@cards", "card@cards", "card:debit", ":debit@cards", "a:b@"].map(productKey),
      [
        { family: "card", subtype: "debit:gold", product: "cards" },
        undefined,
        undefined,
        undefined,
        undefined,
      ],
    )
  })
})

describe("features that a rerun does not ask for again", () => {
  const execution = { execution_id: anId("e-1"), session_id: anId("s-1") }
  const landed = { segment: "segment-000001.njl", offset: 0, bytes: 10, sha256: "aa" }
  const end = { status_code: "PARTIAL", status_reason: "PARTIAL", landed }
  const at = { ...task, attempt: 1 }
  const drained: Fact = { _tag: "AttemptDrained", ...at, execution_id: execution.execution_id }
  const read = (proof: ReadonlyArray<Fact>, reason = "PARTIAL"): TaskState =>
    folded([
      { _tag: "StartIntended", ...at, external_execution_id: "x-1", probe: false },
      { _tag: "StartAnswered", ...at, answer: "accepted", http_status: 202, ...execution },
      { _tag: "AttemptClosed", ...at, ...execution, ...end },
      ...proof,
      settled(reason, "failed"),
    ])
  const told = (accounts: string, x: string) =>
    new Map([
      ["accounts_read", `FEATURE_${accounts}`],
      ["x", `FEATURE_${x}`],
    ])
  const findings = { featureReasons: told("COMPLETED", "FAILED"), delivered: new Set(["accounts"]) }
  const left = (
    state: TaskState,
    more: Partial<TaskFindings> = {},
    families: ReadonlyArray<RecordFamily> = [],
  ) => deliveredFeatures(state, families, { ...nothing, ...findings, ...more })

  it("are those that succeeded, of a task whose data is here [rerun features]", () => {
    assert.deepStrictEqual(
      [
        left(read([drained])),
        left(read([drained]), { delivered: new Set() }),
        // Not told, all of them, or none of them.
        left(read([drained]), { featureReasons: new Map() }),
        left(read([drained]), { featureReasons: told("COMPLETED", "COMPLETED") }),
        left(read([drained]), { featureReasons: told("FAILED", "SHINY") }),
        // Not proved to be here, not in the tables, or not known to be final.
        left(read([])),
        left(read([drained], "RECORDS_SHORT")),
        left(read([drained]), { isLeftOut: true }),
        left(read([drained]), { delivered: undefined }),
      ],
      [["accounts_read"], ["accounts_read"], [], [], [], [], [], [], []],
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
  const outcomes = (state: TaskState, findings: Partial<TaskFindings>) =>
    coverageRows(run_id, state, [], { ...nothing, ...findings }).map((row) => [
      row["feature"],
      row["outcome"],
      row["reason"],
      row["who_acts"],
      row["records"],
      row["counted"],
    ])

  it("is the feature's own if the state gives it, otherwise the task's", () => {
    const featureReasons = new Map([["accounts_read", "FEATURE_COMPLETED"]])
    assert.deepStrictEqual(outcomes(folded([settled("BLOCKED_USER", "failed")]), { featureReasons }), [
      ["accounts_read", "succeeded", "FEATURE_COMPLETED", "nobody", undefined, undefined],
      ["x", "failed", "BLOCKED_USER", "customer", undefined, undefined],
    ])
  })

  it("no feature succeeds if its results are not all here, or with an unknown reason", () => {
    const featureReasons = new Map([
      ["accounts_read", "FEATURE_COMPLETED"],
      ["x", "FEATURE_SHINY"],
    ])
    assert.deepStrictEqual(outcomes(folded([settled("RESULTS_PARTIAL", "unfinished")]), { featureReasons }), [
      ["accounts_read", "unfinished", "RESULTS_PARTIAL", "service", undefined, undefined],
      ["x", "failed", "FEATURE_SHINY", "engineer", undefined, undefined],
    ])
  })

  it("zero records are told from an unknown number", () => {
    const records = (findings: Partial<TaskFindings>) =>
      outcomes(folded([settled("COMPLETED", "succeeded")]), { byTable: new Map(), ...findings }).map(
        (row) => row[4],
      )
    const read = (...products: ReadonlyArray<string>) => ({
      byProduct: new Map(products.map((product) => [product, 2])),
      delivered: new Set(products),
    })
    assert.deepStrictEqual(
      [
        records(read()),
        records(read("accounts")),
        // A record of a product that no feature names could belong to `x`, or to `accounts_read`.
        records(read("something")),
        records({ ...read(), delivered: undefined }),
        records({ ...read(), byTable: undefined }),
      ],
      [
        [0, 0],
        [2, 0],
        [undefined, undefined],
        [undefined, undefined],
        [undefined, undefined],
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
    assert.deepStrictEqual(outcomes(folded([settled("COMPLETED", "succeeded")]), findings), [
      ["accounts_read", "succeeded", "COMPLETED", "nobody", 3, 4],
      ["x", "succeeded", "COMPLETED", "nobody", undefined, undefined],
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

describe("documents", () => {
  const rows = (bodies: ReadonlyArray<unknown>, attachments: TaskState["attachments"] = []) =>
    documentRows(run_id, { ...session, task: { ...session.task, attachments } }, bodies).map(([, row]) => [
      row["attachment_id"],
      row["title"],
      row["record_id"],
      row["media_type"],
      row["status"],
    ])
  const record = { product: "labor_check", sub_family: "labor_check:report", name: "Work life" }
  const idOf = (value: object, nth = 0) => {
    const whole = canonicalText(value) ?? ""
    const ids = recordIds("c-1/bank")
    return Array.from({ length: nth + 1 }, () => ids("labor_check:report", { whole, content: whole }))[nth]
      ?.record_id
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
    const about = { _tag: "AttachmentRead" as const, ...task, session_id: anId("s-1") }
    const facts = [
      { ...about, attachment_id: "a-1", status: "downloaded" as const, media_type: "application/pdf" },
      { ...about, attachment_id: "old", status: "missing" as const },
      { ...about, session_id: anId("other"), attachment_id: "x", status: "missing" as const },
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

  it("uses neither of two values that could both be the status", () => {
    const [row] = sessionRows(run_id, session, { a: "COMPLETED", b: "FAILED" }, 0)
    assert.deepStrictEqual(
      [row?.[1]["status_code"], row?.[1]["extra"]],
      [undefined, '{"a":"COMPLETED","b":"FAILED"}'],
    )
  })
})
