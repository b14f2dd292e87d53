/**
 * Each place where the reference leaves room: the value that a call shows, and nothing where it could have meant
 * something else.
 */
import { describe, expect, it } from "vitest"
import { observeReading } from "../../../src/cli/acquaint/Observe.ts"
import { readingChoices } from "../../../src/sandbox/state/Reading.ts"
import { calls, closedState, execution_id, salary, type Written } from "./calling.ts"

const seen = (key: string, ...written: ReadonlyArray<Written>): string | undefined =>
  observeReading(calls(...written)).observed.find((one) => one.key === key)?.value

const accepted = { execution_id, session_id: "65f0c0ffee65f0c0ffee65f0" }
const state = (more: object): Written => ["state", 200, { ...closedState, ...more }]
const without = (name: keyof typeof closedState): Written => {
  const { [name]: _, ...rest } = closedState
  return ["state", 200, rest]
}
const closed = state({})
const uuid = "1d4f5dc4-a81e-aff4-159d-1440713a843b"
const conflict = (body: object): Written => ["start", 409, body, { external_execution_id: "x-1" }]

type Case = readonly [key: string, value: string | undefined, ...written: Array<Written>]
const cases: ReadonlyArray<Case> = [
  ["conflict_external_id", "absent", conflict({})],
  ["conflict_external_id", "null", conflict({ external_execution_id: null })],
  ["conflict_external_id", "running", conflict({ external_execution_id: "x-0" })],
  ["conflict_external_id", undefined, conflict({ external_execution_id: "x-1" })],
  ["execution_id_form", "uuid", ["start", 202, accepted]],
  ["execution_id_form", "object_id", ["start", 202, { execution_id: "65f0c0ffee65f0c0ffee65f0" }]],
  ["execution_id_form", "hex", ["start", 202, { execution_id: "65f0c0ffee65f0c0ffee65f012345678" }]],
  ["execution_id_form", undefined, ["start", 202, { execution_id: "run-1" }]],
  ["session_id_form", "object_id", ["start", 202, accepted]],
  ["session_id_form", "uuid", ["start", 202, { execution_id, session_id: uuid }]],
  ["session_id_form", "execution_id", ["start", 202, { execution_id, session_id: execution_id }]],
  ["flow_session_ids", "object_id", ["results", 422, {}, { ids: { session_id: uuid } }]],
  ["flow_session_ids", "any", ["results", 200, { data: {} }, { ids: { session_id: uuid } }]],
  ["flow_session_ids", undefined, ["results", 422, {}]],
  ["challenge_body", "fields", ["state", 423, { producer: "engine" }]],
  ["challenge_body", "state", ["state", 423, closedState]],
  ["optionals", "shown", closed],
  ["optionals", "absent", without("external_execution_id")],
  ["optionals", "null", state({ external_execution_id: null })],
  ["form_optionals", "absent", ["engine", 200, { parameters: { properties: {} } }]],
  ["form_optionals", "null", ["engine", 200, { parameters: { $defs: null } }]],
  ["error_lists", "absent", closed],
  ["error_lists", "empty", state({ parameters_errors: [] })],
  ["messages", "shown", state({ messages: [] })],
  ["messages", "absent_when_empty", closed],
  ["messages", undefined, state({ messages: [{}] })],
  ["products_count", "shown", closed],
  ["products_count", "absent", without("products_count")],
  ["products_count", "null", state({ products_count: null })],
  ["products_count", "text", state({ products_count: { a: "1" } })],
  ["products_count", "float", state({ products_count: { a: 1.5 } })],
  ["products_count", "list", state({ products_count: [] })],
  ["dates", "zulu", closed],
  ["dates", "offset", state({ date_created: "2026-11-22T01:00:00+00:00" })],
  ["dates", "naive", state({ date_created: "2026-11-22T01:00:00.123" })],
  ["dates", undefined, state({ date_created: "2026-11-22T01:00:00+02:00" })],
  ["rejected_state", "closed", state({ status_code: "CONFIGURATION_ERROR" })],
  ["rejected_state", "open", state({ status_code: "CONFIGURATION_ERROR", is_closed: false })],
  ["abort_effect", "at_once", ["abort", 204], closed],
  ["abort_effect", "late", ["abort", 204], ["state", 202, closedState], closed],
  ["abort_effect", undefined, ["abort", 409], closed],
  ["flow_api", "present", closed, ["results", 200, { data: {} }]],
  ["flow_api", "forbidden", closed, ["results", 403, {}]],
  ["flow_api", "absent", closed, ["results", 404, "<html>"]],
  ["flow_api", undefined, closed, ["results", 404, { detail: "no session" }]],
  ["flow_api", undefined, ["results", 404, "<html>"]],
  ["flow_data", "map", ["results", 200, { data: { income: [salary] } }]],
  ["flow_data", "list", ["results", 200, { data: [salary] }]],
  ["flow_error_body", "detail", closed, ["results", 404, { detail: "no session" }]],
  ["flow_error_body", "code", closed, ["results", 412, { error: { code: "X" } }]],
  ["flow_error_body", "html", closed, ["results", 504, "<html>"]],
  ["flow_error_body", "empty", closed, ["results", 429]],
  ["flow_error_body", undefined, closed, ["results", 404, "<html>"]],
  ["retry_after", "absent", ["state", 429, {}]],
  ["retry_after", "seconds", ["state", 503, {}, { headers: { "retry-after": "5" } }]],
  [
    "retry_after",
    "date",
    ["state", 429, {}, { headers: { "retry-after": "Sun, 22 Nov 2026 01:00:00 GMT" } }],
  ],
  ["profile", "present", closed, ["profile", 200, {}]],
  ["profile", "absent", closed, ["profile", 404, {}]],
  ["profile", undefined, ["profile", 404, {}]],
  ["result_kinds", "present", closed, ["income", 200, { records: [] }]],
  ["result_kinds", "absent", closed, ["income", 404, {}]],
  ["attachments", "present", closed, ["attachment", 200]],
  ["attachments", "absent", closed, ["attachment", 404, {}]],
  ["tokenized_body", "token", ["tokenized", 202, accepted]],
  ["tokenized_body", "absent", ["tokenized", 405]],
  ["head", "answers", ["poll", 202]],
  ["head", "not_allowed", ["poll", 405]],
]

describe("an observation", () => {
  it("covers every key of a reading and no other, and no value that a reading does not have", () => {
    expect(observeReading([]).unobserved.toSorted()).toEqual(readingChoices.map(({ key }) => key).toSorted())
    const known = new Map(readingChoices.map(({ key, values }) => [key, values]))
    expect(
      cases.filter(([key, value]) => value !== undefined && known.get(key)?.includes(value) !== true),
    ).toEqual([])
  })

  it.each(cases.map((one): [string, string | undefined, Case] => [one[0], one[1], one]))(
    "`%s` is %s",
    (_, __, one) => {
      const [key, value, ...written] = one
      expect(seen(key, ...written)).toBe(value)
    },
  )

  it("names a key that changes, and concludes nothing from it", () => {
    const { observed, changing } = observeReading(
      calls(closed, state({ date_created: "2026-11-22T01:00:00" })),
    )
    expect([changing, observed.some(({ key }) => key === "dates")]).toEqual([["dates"], false])
  })
})
