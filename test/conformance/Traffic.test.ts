/** Document, embedded service and client agree, as seen by tools that know none of them: a sample of `npm run conformance`. */
import { Validator } from "@seriousme/openapi-schema-validator"
import { beforeAll, describe, expect, it } from "vitest"
import { serviceOpenApi } from "../project/openapi.ts"
import { isObject } from "../project/schemaNodes.ts"
import { makeTrafficCheck, type Exchange, type TrafficCheck, type TrafficLog } from "./TrafficCheck.ts"
import { documentedReading, nightsThroughProxy, tourThroughProxy, unseenAnswers } from "./traffic.ts"
import { validateDocument } from "./traffic.ts"

describe("the OpenAPI document", () => {
  it("is valid by a public validator, which refuses a broken one", async () => {
    expect(await validateDocument()).toBe("")
    const { paths: _, webhooks: __, components: ___, ...broken } = serviceOpenApi()
    expect((await new Validator().validate({ ...broken })).valid).toBe(false)
  })

  it("asks for the secret everywhere, names its sections, and shows no tag of the code", () => {
    const document = serviceOpenApi()
    const operations = Object.values(Object(document["paths"])).flatMap((methods) =>
      Object.values(Object(methods)),
    )
    expect(operations.length).toBe(19)
    for (const operation of operations.filter(isObject)) {
      expect(operation["security"]).toEqual([{ applicationSecret: [] }])
      expect(operation["description"]).toMatch(/^Section 4\.\d+ of the reference\./)
    }
    expect(
      operations.filter(isObject).flatMap((one) => (one["deprecated"] === true ? one["operationId"] : [])),
    ).toEqual(["listFlowHooks"])
    expect(JSON.stringify(document)).not.toMatch(/_tag|Not in the reference/)
  })
})

/** A value of another type than the document has for it. */
const another = (value: unknown): unknown => (typeof value === "number" ? "planted" : 12_345.5)

interface Altered {
  readonly at: string
  readonly field: string
  readonly exchange: Exchange
}

/** Each answer once for each of its fields, with another type in that field. */
const alteredAnswers = (check: TrafficCheck, exchange: Exchange): ReadonlyArray<Altered> => {
  if (exchange.contentType !== "application/json" || exchange.responseBody === "") return []
  const { at } = check(exchange)
  const body: unknown = JSON.parse(exchange.responseBody)
  if (!isObject(body)) return []
  return Object.entries(body).map(([field, value]) => ({
    at,
    field,
    exchange: { ...exchange, responseBody: JSON.stringify({ ...body, [field]: another(value) }) },
  }))
}

describe("a tour of every endpoint and status", () => {
  const exchanges: Array<Exchange> = []
  let log: TrafficLog
  let check: TrafficCheck
  beforeAll(async () => {
    log = await tourThroughProxy((exchange) => void exchanges.push(exchange))
    check = await makeTrafficCheck(serviceOpenApi())
  }, 60_000)

  it("sees every answer of the document, and nothing that does not fit it", () => {
    expect([...log.mismatches.keys()]).toEqual([])
    expect(unseenAnswers(log)).toEqual([])
    expect(log.exchanges()).toBeGreaterThan(140)
  })

  it("would notice another type in any field that the document types", () => {
    const altered = exchanges.flatMap((exchange) => alteredAnswers(check, exchange))
    const missed = altered.filter((one) => check(one.exchange).mismatches.length === 0)
    // What the reference leaves open: records as they are, and answers that it does not show.
    const open =
      /^(readFlowResults 200 (data|session_id|customer_id|session_status|session_cursor)|(readToken|readProfile) 200 .*)$/
    expect(missed.map(({ at, field }) => `${at} ${field}`).filter((one) => !open.test(one))).toEqual([])
    expect(altered.length - missed.length).toBeGreaterThan(250)
  })

  it("would notice an unlisted value, status, media type or body, and a bad request that was accepted", () => {
    const read = exchanges.find((one) => check(one).at === "readExecution 200")
    const started = exchanges.find((one) => check(one).at === "startExecution 202")
    const aborted = exchanges.find((one) => check(one).at === "abortExecution 204")
    if (read === undefined || started === undefined || aborted === undefined)
      throw new Error("no such exchange")
    const complaints = (exchange: Exchange) => check(exchange).mismatches
    const unlisted = read.responseBody.replace(/"status_reason":"[A-Z_]+"/, '"status_reason":"TIRED"')
    const { "x-app-secret": _, ...withoutSecret } = read.requestHeaders
    expect([
      complaints({ ...read, responseBody: unlisted }),
      complaints({ ...read, status: 201 }),
      complaints({ ...read, contentType: "text/html" }),
      complaints({ ...read, requestHeaders: withoutSecret }),
      complaints({ ...aborted, responseBody: "gone" }),
      complaints({ ...started, requestBody: '{"engine_reference":"a","parameters":{}}' }),
      complaints({ ...read, url: "/api/executions/handler/v2/x" }),
    ]).toEqual([
      ["/status_reason must be equal to one of the allowed values"],
      ["the status is not documented"],
      ["text/html is not documented"],
      ["answered without the application secret"],
      ["a body where the document has none"],
      ["accepted a request with /requestBody must have required property 'customer_id'"],
      ["no operation of the document"],
    ])
  })
})

describe("a run of the program", () => {
  it("sends and receives only what the document has, under another reading than today's, too", async () => {
    const night = { job: "demo.yaml", customersMax: 1 }
    const { log, ends } = await nightsThroughProxy([night], documentedReading(1))
    expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual([[0, ""]])
    expect([...log.mismatches.keys(), ...log.refused.keys()]).toEqual([])
    const calls =
      "showEngine 200,startExecution 202,readExecution 200,readFlowResults 200,deleteExecution 204"
    expect([...log.counts.keys()]).toEqual(expect.arrayContaining(calls.split(",")))
  }, 60_000)
})
