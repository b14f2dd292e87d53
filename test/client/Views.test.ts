import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readBody, readEngine, viewAcceptance, viewState } from "../../src/client/Views.ts"
import { flowResultsSource, isFinal } from "../../src/service/FlowResults.ts"
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

  it("a count is what the state says, key by key, or it is unknown [promise 5 unknown counts]", () => {
    const counts = (text: string) => viewState(parse(text)).products_count
    const read = counts('{"products_count": {"a:b@c": 3, "__proto__": 2}}')
    assert.deepStrictEqual(read?._tag === "Counted" ? Object.entries(read.counts) : read, [
      ["a:b@c", 3],
      ["__proto__", 2],
    ])
    assert.deepStrictEqual(counts('{"products_count": {}}'), { _tag: "Counted", counts: {} })
    const odd = [
      "{}",
      ...["null", '"3"', "3", "[]", '[{"a":1}]', '{"a":null}', '{"a":"1"}', '{"a":1.5}'].map(
        (text) => `{"products_count": ${text}}`,
      ),
    ]
    const more = ['{"a":-1}', '{"a":1e30}', '{"a":true}', '{"a":{}}'].map(
      (text) => `{"products_count": ${text}}`,
    )
    for (const text of [...odd, ...more]) assert.strictEqual(counts(text)?._tag, "Unknown", text)
  })

  it("results are final only if is_closed is true", () => {
    const finals = ['{"is_closed":true}', '{"is_closed":"true"}', "{}", "[]", "1", '{"is_closed":1}']
    assert.deepStrictEqual(
      finals.map((text) => isFinal(flowResultsSource, parse(text))),
      [true, false, false, false, false, false],
    )
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
      }),
      { numRuns: 2000 },
    )
    const deep = "[".repeat(200_000) + "]".repeat(200_000)
    assert.deepStrictEqual(viewState(parse(`{"features": ${deep}}`)).features, [])
  })
})
