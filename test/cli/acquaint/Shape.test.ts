/**
 * What is written down of a body: shapes, and no value that could be somebody's.
 */
import { describe, expect, it } from "vitest"
import { callLine } from "../../../src/cli/acquaint/Judge.ts"
import { shapeOf } from "../../../src/cli/acquaint/Compare.ts"
import { calls, closedState, execution_id, salary } from "./calling.ts"

describe("the shape of a body", () => {
  it("shows keys, kinds, forms of ids and values that the reference lists", () => {
    const {
      features,
      products_count,
      status_code,
      execution_id: id,
      date_created,
      is_closed,
      running_time,
    } = closedState
    const body = {
      features,
      products_count,
      status_code,
      execution_id: id,
      date_created,
      is_closed,
      running_time,
    }
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

describe("a line of the recording", () => {
  it("shortens ids, and quotes nothing of request and body", () => {
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
})
