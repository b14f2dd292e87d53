/** What the comparison of nights forgives, and what it must not: a campaign is worth no more than this. */
import { describe, expect, it } from "vitest"
import type { Json } from "../../src/base/DuckDb.ts"
import type { TableRows, Tables } from "./PublishedTables.ts"
import { differingDatabases, differingTables } from "./SameTables.ts"

const types: Readonly<Record<string, string>> = {
  fetch_date: "TIMESTAMPTZ",
  record: "JSON",
  attempt: "INTEGER",
}

const tableOf = (rows: ReadonlyArray<Readonly<Record<string, Json>>>): TableRows => ({
  columns: Object.keys(rows[0] ?? {}).map((name) => ({ name, type: types[name] ?? "VARCHAR" })),
  rows,
})

interface Night {
  readonly id?: string
  readonly date?: string
  readonly time?: string
  readonly balance?: string
  readonly content?: string
  readonly recordOf?: string
  readonly emails?: ReadonlyArray<string>
  readonly outcome?: string
  readonly earlier?: string
}

const hex = (digit: string) => digit.repeat(24)

/** Two tasks with a record each, one with a child, beside the run of another job. */
const nightOf = (night: Night): Tables => {
  const { id = "a", date = "2026-11-20", time = "2026-11-20T01:02:03.000Z", balance = "1.10" } = night
  const run_id = `nightly.${date}`
  const first = hex(id)
  const second = hex(`${(Number.parseInt(id, 16) + 1).toString(16)}`)
  const task = (customer: string) => `${run_id}/${customer}/bank`
  const execution = (customer: string, execution_id: string) => ({
    run_id,
    task_id: task(customer),
    attempt: 1,
    execution_id,
    session_id: `${execution_id.slice(1)}0`,
  })
  const record_id = `${id}-record`
  return new Map([
    ["ops.executions", tableOf([execution("c-1", first), execution("c-2", second)])],
    [
      "nights.other_records",
      tableOf([
        {
          run_id,
          execution_id: night.recordOf === "c-2" ? second : first,
          record_id,
          content_id: night.content ?? "as-before",
          fetch_date: time,
          record: `{"fetch_date":"${time}","balance":${balance}}`,
        },
      ]),
    ],
    [
      "nights.emails",
      tableOf(
        (night.emails ?? ["a@x.invalid"]).map((email, position) => ({ run_id, record_id, position, email })),
      ),
    ],
    [
      "ops.deletions",
      tableOf([
        { run_id, execution_id: first, outcome: night.outcome ?? "deleted" },
        { run_id: "before.2026-11-19", execution_id: night.earlier ?? "kept", outcome: "deleted" },
      ]),
    ],
  ])
}

const comparison = { job: "nightly", orphaned: new Set<string>() }
const against = (night: Night): ReadonlyArray<string> =>
  differingTables(nightOf({}), nightOf(night), comparison).map((text) => text.split("\n", 1)[0] ?? "")

describe("two runs are the same", () => {
  it("except for their date, their times and the service's ids", () => {
    expect(against({ id: "c", date: "2026-11-21", time: "2026-11-21T09:09:09.000Z" })).toEqual([])
  })
  it("when a deletion was answered before the crash and its execution is gone afterwards", () => {
    expect(against({ outcome: "gone" })).toEqual([])
  })
})

describe("two runs differ", () => {
  const night = (table: string, lost: number, gained: number) =>
    `the night differs: ${table} lost ${lost} and gained ${gained} rows`
  const record = [night("nights.other_records", 1, 1), night("nights.emails", 1, 1)]
  it.each<readonly [string, Night, ReadonlyArray<string>]>([
    ["one digit of a record changed, for the record and for its children", { balance: "1.11" }, record],
    ["a record has the hash of another content", { content: "another" }, record],
    ["a record refers to another task's execution", { id: "c", recordOf: "c-2" }, record],
    ["a row appears twice", { emails: ["a@x.invalid", "a@x.invalid"] }, [night("nights.emails", 0, 1)]],
    ["a deletion is still pending", { outcome: "pending" }, [night("ops.deletions", 1, 1)]],
    [
      "the rows of an earlier run changed in any detail",
      { earlier: "changed" },
      ["an earlier night changed: ops.deletions lost 1 and gained 1 rows"],
    ],
  ])("when %s", (_, changed, expected) => {
    expect(against(changed)).toEqual(expected)
  })
})

describe("a database that was continued", () => {
  const databaseOf = (...valid_from: ReadonlyArray<string>): Tables =>
    new Map([
      ["history.emails", tableOf(valid_from.map((each) => ({ email: "a@x.invalid", valid_from: each })))],
    ])
  const found = (...valid_from: ReadonlyArray<string>) =>
    differingDatabases(databaseOf("2026-11-20", "2026-11-21"), databaseOf(...valid_from), "differs").map(
      (line) => line.split("\n", 1)[0],
    )

  it("is one that was built anew if its rows are the same, in any order", () => {
    expect(found("2026-11-21", "2026-11-20")).toEqual([])
  })
  it("differs when a row has another date, or is there no more", () => {
    expect([found("2026-11-20", "2026-11-22"), found("2026-11-20")]).toEqual([
      ["differs: history.emails lost 1 and gained 1 rows"],
      ["differs: history.emails lost 1 and gained 0 rows"],
    ])
  })
})
