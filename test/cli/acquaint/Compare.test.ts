/**
 * Answers against the contract: each way to deviate is told once, at its path, without a value.
 */
import { Struct } from "effect"
import { describe, expect, it } from "vitest"
import { compareCalls, shapeOf } from "../../../src/cli/acquaint/Compare.ts"
import { callLine } from "../../../src/cli/acquaint/Judge.ts"
import { calls, closedState, execution_id, salary, type Written } from "./calling.ts"

const found = (...written: ReadonlyArray<Written>) =>
  compareCalls(calls(...written)).map(({ kind, route, http_status, says }) => [
    kind,
    `${route} ${http_status}`,
    says,
  ])

describe("an answer", () => {
  it("that fits has no findings, whatever optional fields it lacks or has as null", () => {
    const { external_execution_id: _, locking_hash: __, ...lean } = closedState
    expect(found(["state", 200, closedState], ["state", 202, lean], ["poll", 200], ["abort", 204])).toEqual(
      [],
    )
  })

  it("is reported with every field that is missing, of another type or outside its enumeration", () => {
    const { app_id: _, ...rest } = closedState
    const strange = {
      ...rest,
      status_code: "DONE",
      auth_origin: "ES12 3456 7890 1234",
      warnings_count: 1.5,
      is_closed: "yes",
      products_count: { a: "2", b: "3" },
      features: [{ code: "accounts_read" }, { code: "accounts_read", status_reason: "FEATURE_GONE" }],
    }
    expect(found(["state", 200, strange])).toEqual([
      ["missing", "readExecution 200", "`app_id` is missing"],
      ["value", "readExecution 200", "`auth_origin` is a string of 19, which the reference does not list"],
      ["value", "readExecution 200", "`status_code` is DONE, which the reference does not list"],
      ["type", "readExecution 200", "`is_closed` is a string; the reference says true or false"],
      ["type", "readExecution 200", "`products_count.*` is a string; the reference says a whole number"],
      ["type", "readExecution 200", "`warnings_count` is a number; the reference says a whole number"],
      ["missing", "readExecution 200", "`features[].status_reason` is missing"],
      [
        "value",
        "readExecution 200",
        "`features[].status_reason` is FEATURE_GONE, which the reference does not list",
      ],
    ])
  })

  it("is reported with what the reference does not name: fields, statuses, bodies that are not JSON", () => {
    expect(
      found(
        ["state", 200, { ...closedState, region: "north", "Ana 12345678Z": 1 }],
        ["state", 418, {}],
        ["results", 404, "<html></html>"],
        ["state", 404],
        ["GET /elsewhere", 200, {}],
      ),
    ).toEqual([
      ["unknown", "readExecution 200", "`region`: a string"],
      ["unknown", "readExecution 200", "`<key>`: a whole number"],
      ["status", "readExecution 418", "answered 418, which the reference does not list for it"],
      ["body", "readFlowResults 404", "answered 404 with no JSON in the body"],
      ["body", "readExecution 404", "answered 404 with nothing in the body"],
      ["status", "unknown 200", "answered 200, which the reference does not list for it"],
    ])
  })

  it("is reported once however often it came, with the first calls that showed it", () => {
    const odd = { ...closedState, region: "north" }
    const findings = compareCalls(
      calls(["state", 200, odd], ["state", 200, odd], ["state", 200, odd], ["state", 200, odd]),
    )
    expect(findings.map(({ path, calls: numbers }) => [path, numbers])).toEqual([["region", [1, 2, 3]]])
  })
})

// What is written down of a body: shapes, and no value that could be somebody's.

describe("the shape of a body", () => {
  it("shows keys, kinds, forms of ids and values that the reference lists", () => {
    const body = Struct.pick(closedState, [
      ...(["features", "products_count", "status_code", "execution_id"] as const),
      ...(["date_created", "is_closed", "running_time"] as const),
    ])
    expect(shapeOf({ ...body, name: "Ana", note: "", nothing: null })).toEqual({
      features: [{ code: "accounts_read", status_reason: "FEATURE_COMPLETED" }, "× 1"],
      products_count: { "income:salary@income": "integer" },
      status_code: "COMPLETED",
      execution_id: "text (uuid)",
      date_created: "text (date)",
      is_closed: true,
      running_time: "number",
      name: "text",
      note: "text (empty)",
      nothing: null,
    })
  })

  it("shows only a record's product and sub-family, even if a value is a word of the reference", () => {
    const record = {
      ...salary,
      married: true,
      gender: "other",
      status: "COMPLETED",
      year: 2025,
      parts: [{ to: "RUNNING" }],
    }
    expect(shapeOf({ data: [record, record] })).toEqual({
      data: [
        {
          product: "income",
          sub_family: "income:salary",
          employer: "text",
          married: "boolean",
          gender: "text",
          status: "text",
          year: "integer",
          parts: [{ to: "text" }, "× 1"],
        },
        "× 2",
      ],
    })
  })

  it("shows no key that could be somebody's number or address, and is limited in size", () => {
    const deep = Array.from({ length: 40 }).reduce<unknown>((inner) => ({ inner }), 1)
    const many = Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`k${index}`, 1]))
    const text = JSON.stringify(
      shapeOf({
        ES9121000418450200051332: 1,
        "12345678Z": 1,
        "ana@mail.example": 1,
        "Ana Ruiz": 1,
        deep,
        many,
      }),
    )
    expect(text).not.toMatch(/ES91|1234|ana|Ana/)
    expect(text).toContain('"…":"10 more keys"')
    expect(text.length).toBeLessThan(3_000)
  })
})

it("a line of the recording shortens ids, and quotes nothing of request and body", () => {
  const [call] = calls([
    "state",
    200,
    { ...closedState, customer_id: "hunter2" },
    { external_execution_id: "x-9" },
  ])
  const line = call === undefined ? "" : callLine(call)
  expect(JSON.parse(line)).toMatchObject({
    call: 1,
    name: "readExecution",
    method: "GET",
    path: "/executions/handler/v1/{execution_id}",
    ids: { execution_id: "0d4f5dc4…" },
    http_status: 200,
  })
  expect(line).not.toMatch(new RegExp(`hunter2|x-9|${execution_id}`))
})
