/** Tolerant readings: of states and results, of engines that lack something, of deliveries that nobody has shown. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Redacted, Result } from "effect"
import * as fc from "fast-check"
import { eventBytesMax, readBody, readEngine, readEvent, viewAcceptance } from "../../src/client/Views.ts"
import { viewExchanged, viewSecret, viewState, type EngineView } from "../../src/client/Views.ts"
import { flowResultsSource, isFinal } from "../../src/service/FlowResults.ts"
import { engineDetails } from "./Examples.ts"
import { anId } from "../harness/Id.ts"

const parse = (text: string) => readBody(new TextEncoder().encode(text)).json

describe("views of bodies", () => {
  it("a state's fields of the right type are kept, including unknown values; all others are absent", () => {
    const json = parse(`{
      "execution_id": "e-1", "session_id": 7, "external_execution_id": null, "status_code": "BRAND_NEW",
      "status_reason": ["X"], "authentication_status": "AUTH_OK", "is_closed": "true", "next_kick_date": {},
      "products_count": { "a:b@c": 3, "d": "4", "e": 1.5, "__proto__": 2 },
      "features": [
        { "code": "labor_check", "status_reason": "FEATURE_NEW", "status_message": 5 }, { "code": 1 }, null
      ],
      "__proto__": { "session_id": "planted" }, "unknown": 1
    }`)
    const view = viewState(json)
    assert.deepStrictEqual(view, {
      execution_id: anId("e-1"),
      status_code: "BRAND_NEW",
      authentication_status: "AUTH_OK",
      products_count: { _tag: "Unknown", why: "products_count has a value that is not a whole number" },
      features: [{ code: "labor_check", status_reason: "FEATURE_NEW" }],
    })
  })

  it("a blank word says nothing [end blank status]", () => {
    for (const blank of ["", "  "]) {
      const words = { status_code: blank, status_reason: blank, authentication_status: blank }
      expect([viewState(words).status_code, viewState(words).authentication_status]).toEqual([
        undefined,
        undefined,
      ])
      expect(viewAcceptance(words)).toEqual({})
    }
  })

  it("a count is what the state says, key by key, or it is unknown [promise 5 unknown counts]", () => {
    const counts = (text: string) => viewState(parse(text)).products_count
    const read = counts('{"products_count": {"a:b@c": 3, "__proto__": 2}}')
    assert.deepStrictEqual(read?._tag === "Counted" ? Object.entries(read.counts) : read, [
      ["a:b@c", 3],
      ["__proto__", 2],
    ])
    assert.deepStrictEqual(counts('{"products_count": {}}'), { _tag: "Counted", counts: {} })
    const odd = ["null", '"3"', "3", "[]", '[{"a":1}]'].map((text) => `{"products_count": ${text}}`)
    const values = ["null", '"1"', "1.5", "-1", "1e30", "true", "{}"].map(
      (value) => `{"products_count": {"a": ${value}}}`,
    )
    for (const text of ["{}", ...odd, ...values]) assert.strictEqual(counts(text)?._tag, "Unknown", text)
  })

  it("results are final only if is_closed is true", () => {
    const finals = ['{"is_closed":true}', '{"is_closed":"true"}', "{}", "[]", "1", '{"is_closed":1}']
    expect(finals.map((text) => isFinal(flowResultsSource, parse(text)))).toStrictEqual([
      true,
      false,
      false,
      false,
      false,
      false,
    ])
  })

  it("never throw, whatever the bytes", () => {
    const anyBytes = fc.tuple(fc.boolean(), fc.uint8Array(), fc.json())
    fc.assert(
      fc.property(anyBytes, ([isJson, bytes, text]) => {
        const { json } = readBody(isJson ? new TextEncoder().encode(text) : bytes)
        viewState(json)
        viewAcceptance(json)
        isFinal(flowResultsSource, json)
        readEngine(json)
        readEvent(new URLSearchParams(text), isJson ? Buffer.from(text) : bytes)
      }),
      { numRuns: 500 },
    )
    const deep = "[".repeat(200_000) + "]".repeat(200_000)
    assert.deepStrictEqual(viewState(parse(`{"features": ${deep}}`)).features, [])
  })
})

describe("an exchange", () => {
  const pair = { token_id: "t-1", token_key: "key" }
  it("is read tolerantly except the pair itself: without it there is no token", () => {
    const read = (json: unknown) => {
      const answer = viewExchanged(json, json)
      return answer?._tag === "Exchanged" ? answer.context : undefined
    }
    const context = { engine_reference: "bank", app_id: "app", features: ["a", 5, null], locking_hash: null }
    expect([
      read({ token: { ...pair, more: 1 }, context: { ...context, customer_id: 7, more: {} } }),
      read({ token: pair }),
      read({ token: pair, context: [] }),
    ]).toEqual([{ engine_reference: "bank", app_id: "app", features: ["a"] }, {}, {}])
    const halves = [{ token_key: 5 }, { token_key: "" }, { token_id: "" }]
    const tokens = ["key", { token_id: "t-1" }, ...halves.map((half) => ({ ...pair, ...half }))]
    for (const json of [undefined, [], {}, ...tokens.map((token) => ({ token }))])
      assert.isUndefined(viewExchanged(json, json))
  })

  it("begins with a ticket that only a start's answer shows", () => {
    const seen = ["ticket", "", null, 5, undefined].map((ticket) => viewSecret({ ticket }, "ticket"))
    expect(seen.map((one) => one && Redacted.value(one))).toEqual(["ticket", ...seen.slice(1)])
    expect(seen.slice(1)).toEqual(Array.from({ length: 4 }, () => undefined))
  })
})

const readWith = (json: unknown, query = "") =>
  readEvent(new URLSearchParams(query), Buffer.from(JSON.stringify(json)))
const textsOf = (json: unknown, query = "") => [...(readWith(json, query)?.texts ?? [])].toSorted()
const dateOf = (date: unknown) => readWith({ date })?.dateMs

describe("an event", () => {
  it("concerns everything it names, anywhere in its body or in the URL", () => {
    const keys = ["a", "b", "c", "d"]
    expect(
      textsOf({ a: "e-1", b: { c: ["s-1", 7, null, { d: "x-1" }] } }, "nightjar_execution=x-2&a=1"),
    ).toEqual(["1", ...keys, "e-1", "s-1", "x-1", "x-2"])
    expect(textsOf("e-1")).toEqual(["e-1"])
    expect(readEvent(new URLSearchParams("a=e-1"), new Uint8Array())).toEqual({
      texts: new Set(["e-1"]),
      dateMs: undefined,
    })
  })

  it("names nothing with a number or a string that is too long for an id", () => {
    expect(textsOf([12, "x".repeat(513)])).toEqual([])
  })

  it("has its own date in UTC, even if it does not say so, and no invalid date [field event.date]", () => {
    const at = Date.parse("2026-11-21T02:00:00Z")
    for (const date of ["T02:00:00Z", "T02:00:00", " 02:00", "T03:00:00.000+01:00"])
      expect([date, dateOf(`2026-11-21${date}`)]).toEqual([date, at])
    expect(dateOf("2026-11-21T02:00:00.123456Z")).toBe(at + 123)
    for (const date of ["soon", "2026-99-21T02:00:00Z", "2026", "", 7, null, {}])
      expect(dateOf(date)).toBeUndefined()
    expect(readWith({ data: { date: "2026-11-21T02:00:00Z" } })?.dateMs).toBeUndefined()
  })

  it("is refused if it is not JSON, or only brackets", () => {
    expect(readEvent(new URLSearchParams(), Buffer.from("{"))).toBeUndefined()
    const deepest = "[".repeat(eventBytesMax / 2) + "]".repeat(eventBytesMax / 2)
    expect(readEvent(new URLSearchParams(), Buffer.from(deepest))).toBeUndefined()
  })
})

const whole = { ...engineDetails, name: "" }

const read = (changes: object): EngineView | string => {
  const json: unknown = JSON.parse(JSON.stringify({ ...engineDetails, ...changes }))
  return Result.match(readEngine(json), { onFailure: (what) => what, onSuccess: (engine) => engine })
}

const meta = { submit_button_text: "Go", lazy_fields: ["code"], own: 3 }
const noForm = "`parameters` is not a form (reference, 2.3)"
const noSettings = { type: "object", format: "cg-configs", properties: {} }
const login = {
  type: "object",
  format: "cg-params",
  properties: { username: { type: "string" }, password: { type: "string", format: "password" } },
  required: ["username", "password"],
}

describe("an engine's details", () => {
  it("keep the fields that nothing is decided by as they came", () => {
    const others = { priority: "high", website: 3, new_field: 1 }
    expect(read(others)).toEqual({ ...whole, ...others })
  })

  it.each<readonly [string, unknown, unknown]>([
    ["without `format`", { ...login, format: undefined }, login],
    ["with a `format` of another type", { ...login, format: ["cg-params"] }, login],
    ["with a `format` that is not listed", { ...login, format: "cg-new" }, { ...login, format: "cg-new" }],
    ["without `type`", { ...login, type: undefined }, login],
    ["with a `type` that is null", { ...login, type: null }, login],
    ["without `properties`", { ...login, properties: undefined }, { ...login, properties: {} }],
    ["whose `properties` are null", { ...login, properties: null }, { ...login, properties: {} }],
    ["whose `properties` are an empty list", { ...login, properties: [] }, { ...login, properties: {} }],
    ["whose `$defs` are a text", { ...login, $defs: "none" }, login],
    [
      "whose `required` is one text",
      { ...login, required: "username" },
      { ...login, required: ["username"] },
    ],
    ["whose `required` is no list", { ...login, required: true }, { ...login, required: undefined }],
    ["whose `x-meta` is a list", { ...login, "x-meta": ["a"] }, login],
    [
      "whose `x-meta` has fields of other types",
      { ...login, "x-meta": { ...meta, instructions_text: 7, lazy_fields: ["code", 1], hidden_fields: 2 } },
      { ...login, "x-meta": meta },
    ],
  ])("with a login form %s are read [decision 10 forms]", (_, parameters, expected) => {
    expect(read({ parameters })).toEqual({ ...whole, parameters: expected })
  })

  it.each<readonly [string, object]>([
    ["null for the engine", { configurations: null }],
    ["absent for the engine", { configurations: undefined }],
    ["an empty list for the engine", { configurations: [] }],
    ["a text for the engine", { configurations: "none" }],
    ["null for a feature", { features: [{ code: "accounts_read", configurations: null }] }],
    ["absent for a feature", { features: [{ code: "accounts_read" }] }],
    ["not there because the feature is a bare code", { features: ["accounts_read"] }],
  ])("have no settings if the form is %s", (_, changes) => {
    expect(read(changes)).toEqual({
      ...whole,
      configurations: noSettings,
      features: [{ code: "accounts_read", configurations: noSettings }],
    })
  })

  it("leave out what is not a feature, and have none if the list is absent", () => {
    const features = [null, 7, { code: 7 }, { configurations: null }, "cards_read"]
    expect(read({ features })).toEqual({
      ...whole,
      features: [{ code: "cards_read", configurations: noSettings }],
    })
    expect([read({ features: undefined }), read({ features: "all" })]).toEqual([
      { ...whole, features: [] },
      { ...whole, features: [] },
    ])
  })

  it.each([undefined, null, 7, ["x"]])("use %j for a missing status, frequency or presence", (value) => {
    expect(read({ status: value, action_required_frequency: value, is_online: value })).toEqual({
      ...whole,
      status: "unknown",
      action_required_frequency: "unknown",
      is_online: true,
    })
  })

  it("keep the given status, frequency and presence, listed or not", () => {
    const said = { status: "maintenance", action_required_frequency: "always", is_online: false }
    expect(read(said)).toEqual({ ...whole, ...said })
    expect(read({ action_required_frequency: "weekly" })).toEqual({
      ...whole,
      action_required_frequency: "weekly",
    })
  })

  it.each<readonly [string, object, string]>([
    ["`parameters` are a text", { parameters: "username" }, noForm],
    ["`parameters` are null", { parameters: null }, noForm],
    ["`parameters` are absent", { parameters: undefined }, noForm],
    ["the form is one of a list", { parameters: { type: "array" } }, noForm],
    ["its fields are a list", { parameters: { properties: ["a"] } }, noForm],
    ["the reference is absent", { reference: undefined }, "`reference` is not a string"],
  ])("cannot be read if %s", (_, changes, what) => {
    expect(read(changes)).toBe(what)
  })
})
