/**
 * Which endpoints a reading has, and what the flow API and the tokens look like under one, in process and
 * over HTTP.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { SandboxClient } from "../../../src/sandbox/server/SandboxServer.ts"
import type { Reading } from "../../../src/sandbox/state/Reading.ts"
import { Caller, field, morning, textField, toldAt, truth, itemsOf, type Steps } from "../server/Caller.ts"

const done = "queue-0+run-0"
const profileOnly = { features: ["customer_information_read"] }

const told = (title: string, reading: Reading, steps: Steps) => toldAt(morning, title, steps, { reading })

describe("the flow API of a reading", () => {
  const everyFlowCall = Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* caller.start(`${done}+attach-1`)
    expect((yield* caller.read(textField(started, "execution_id"))).status).toBe(200)
    return [
      yield* caller.results(textField(started, "session_id")),
      yield* caller.call("GET", caller.attachmentUrl(textField(started, "session_id"), "a"), {
        secret: undefined,
      }),
      yield* caller.call("GET", `${caller.flows_url}/hooks/list`),
      yield* caller.createSession(),
    ]
  })
  told("is absent: a gateway's page answers every call", { flow_api: "absent" }, function* () {
    const answers = yield* everyFlowCall
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404])
    for (const { contentType, text } of answers) {
      expect(contentType).toContain("text/html")
      expect(text).toContain("<title>404 Not Found</title>")
    }
    expect((yield* truth).executions.map((seen) => seen.results_reads)).toEqual([[]])
  })
  told("is forbidden to this account", { flow_api: "forbidden", flow_error_body: "html" }, function* () {
    const answers = yield* everyFlowCall
    const detail = "the flow API is not enabled for this account"
    expect(answers.map(({ status, json }) => [status, json])).toEqual(answers.map(() => [403, { detail }]))
  })
  const errorOf = (words: string) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const session = textField(yield* caller.start(words, { customer_id: words }), "session_id")
      return yield* caller.results(session)
    })
  const errors = (expected: (status: number) => unknown) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const session = textField(yield* caller.start(done), "session_id")
      yield* caller.results(session)
      const answers = [
        yield* errorOf(`${done}+noflow`),
        yield* errorOf(`${done}+unstarted`),
        yield* caller.results(session),
        yield* errorOf(`${done}+locked-60`),
      ]
      expect(answers.map(({ status }) => status)).toEqual([404, 412, 429, 504])
      expect(answers.map(({ text, contentType }) => [text, contentType?.split(";")[0]])).toEqual(
        [404, 412, 429, 504].map(expected),
      )
      const invalid = yield* caller.results("7")
      expect([invalid.status, field(invalid, "detail", 0, "loc")]).toEqual([422, ["path", "session_id"]])
    })
  const codes: Readonly<Record<number, string>> = {
    404: "NOT_FOUND",
    412: "SESSION_NOT_STARTED",
    429: "TOO_MANY_REQUESTS",
    504: "SESSION_LOCKED",
  }
  told(
    "reports its errors by code",
    { flow_error_body: "code" },
    errors((status) => [
      JSON.stringify({ error: { code: codes[status], message: `the session answers ${status}` } }),
      "application/json",
    ]),
  )
  told(
    "reports its errors as pages",
    { flow_error_body: "html" },
    errors((status) => [`<html><body><h1>${status}</h1></body></html>`, "text/html"]),
  )
  told(
    "reports its errors without a body",
    { flow_error_body: "empty" },
    errors(() => ["", "text/plain"]),
  )
  told("has its records in one list", { flow_data: "list" }, function* (caller) {
    const started = yield* caller.start(`${done}+records-3+attach-1`, profileOnly)
    const answer = yield* caller.results(textField(started, "session_id"))
    expect(itemsOf(answer, "data").map((one) => field(one, "sub_family"))).toEqual([
      "customer_information:user_profile",
      "customer_information:user_profile",
      "customer_information:user_profile",
      undefined,
    ])
    expect(field(answer, "data", 3, "attachment_id")).toBeTypeOf("string")
  })
})

describe("endpoints of a reading", () => {
  const statuses = Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* caller.startTicketed(`${done}+attach-1`, profileOnly)
    const [execution_id, session] = [textField(started, "execution_id"), textField(started, "session_id")]
    const results = yield* caller.results(session)
    const attachment = /"attachment_id":"([^"]+)"/.exec(results.text)?.[1] ?? "none"
    const exchanged = yield* caller.exchange(execution_id, textField(started, "ticket"))
    const token = textField(exchanged, "token", "token_id")
    const records = `${caller.base_url}/executions/results/${execution_id}/customer_information/v1/records`
    return {
      head: (yield* caller.call("HEAD", caller.executionUrl(execution_id))).status,
      stranger: (yield* caller.call("HEAD", caller.executionUrl(execution_id), { secret: "no" })).status,
      profile: (yield* caller.call("GET", caller.profileUrl(execution_id))).status,
      attachment: (yield* caller.call("GET", caller.attachmentUrl(session, attachment))).status,
      token: (yield* caller.token(token)).status,
      records: (yield* caller.call("GET", records)).status,
    }
  })
  const today = { head: 200, stranger: 403, profile: 200, attachment: 200, token: 200, records: 404 }
  const has = (title: string, reading: Reading, changed: Partial<typeof today>) =>
    told(title, reading, function* () {
      expect(yield* statuses).toEqual({ ...today, ...changed })
    })
  has("are all there but for the kinds of results", {}, {})
  has("poll nothing with HEAD", { head: "not_allowed" }, { head: 405 })
  has("read no profile", { profile: "absent" }, { profile: 404 })
  has("download no document", { attachments: "absent" }, { attachment: 404 })
  has("tell no token's status", { token_status: "absent" }, { token: 404 })
  has("read every kind of result", { result_kinds: "present" }, { records: 200 })

  told(
    "return the records of one family and say whether they are final",
    { result_kinds: "present", flow_api: "absent" },
    function* (caller) {
      const started = yield* caller.start(`${done}+records-4+late-60`, {
        features: ["customer_information_read", "accounts_read"],
      })
      const id = textField(started, "execution_id")
      const records = (family: string, secret: string | undefined = "sandbox-app-1") =>
        caller.call("GET", `${caller.base_url}/executions/results/${id}/${family}/v1/records`, { secret })
      const told = (family: string) =>
        Effect.map(records(family), (answer) => [
          itemsOf(answer, "records").map((one) => textField(one, "product")),
          field(answer, "is_final"),
        ])
      expect(yield* told("customer_information")).toEqual([
        ["customer_information", "customer_information", "customer_information"],
        false,
      ])
      yield* TestClock.adjust("60 seconds")
      expect(yield* told("customer_information")).toEqual([
        ["customer_information", "customer_information"],
        true,
      ])
      const families = yield* Effect.map(caller.read(id), (state) =>
        Object.keys(Object(field(state, "products_count"))).map((key) => key.split(":")[0] ?? ""),
      )
      for (const family of families) expect((yield* records(family)).status).toBe(200)
      expect(new Set(families).size).toBe(2)
      expect((yield* records("customer")).status).toBe(404)
      expect((yield* records("customer_information", "sandbox-app-2")).status).toBe(404)
      expect((yield* records("customer_information", "no")).status).toBe(403)
      const anonymous = yield* caller.call(
        "GET",
        `${caller.base_url}/executions/results/${id}/customer_information/v1/records`,
        { secret: undefined },
      )
      expect(anonymous.status).toBe(401)
    },
  )
})

describe("a start with a token under a reading", () => {
  const both = Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* caller.startTicketed(done, profileOnly)
    const exchanged = yield* caller.exchange(textField(started, "execution_id"), textField(started, "ticket"))
    const token = field(exchanged, "token")
    const flat = yield* caller.startTokenized(undefined, Object(token))
    return [yield* caller.startTokenized(token), flat] as const
  })
  const one = (title: string, reading: Reading, expected: readonly [nested: unknown, flat: unknown]) =>
    told(title, reading, function* () {
      const answers = yield* both
      expect(
        answers.map((answer) => [
          answer.status,
          ...[0, 1].map((index) => field(answer, "detail", index, "loc")),
        ]),
      ).toEqual(expected)
    })
  const missing = (...fields: ReadonlyArray<string | undefined>) => [
    422,
    ...fields.map((part) => (part === undefined ? undefined : ["body", part])),
  ]
  const accepted = [202, undefined, undefined]
  one("names it as `token`", {}, [accepted, missing("token", undefined)])
  one("names it beside the other fields", { tokenized_body: "flat" }, [
    missing("token_id", "token_key"),
    accepted,
  ])
  const refused = missing("parameters", undefined)
  one("is always refused", { tokenized_body: "refused" }, [refused, refused])
  const absent = [405, undefined, undefined]
  one("is not there", { tokenized_body: "absent" }, [absent, absent])
})

describe("Retry-After of a reading", () => {
  const answers = Effect.gen(function* () {
    yield* TestClock.setTime(morning)
    const client = yield* HttpClient.HttpClient
    const { base_url, flows_url } = SandboxClient
    const send = (request: HttpClientRequest.HttpClientRequest) =>
      Effect.map(
        client.execute(HttpClientRequest.setHeader(request, "X-APP-SECRET", "sandbox-app-1")),
        ({ status, headers }) => [status, headers["retry-after"]],
      )
    const start = (engine_reference: string) =>
      send(
        HttpClientRequest.post(`${base_url}/executions/init/v1/parametrized`).pipe(
          HttpClientRequest.bodyJsonUnsafe({ engine_reference, customer_id: "c-1", parameters: {} }),
        ),
      )
    const session = `${flows_url}/es-public-administration/v1/manager/5e5500000000000000000000/results`
    return [
      yield* start("sandbox-maintenance:website"),
      yield* start("sandbox-bank:website"),
      yield* send(HttpClientRequest.get(session)),
      yield* send(HttpClientRequest.get(session)),
      yield* send(HttpClientRequest.get(`${base_url}/config/engines/list`)),
    ]
  }).pipe(Effect.orDie)
  const fault = { on: "listEngines", status: 503 } as const
  const under = (reading: Reading) =>
    Effect.provide(
      answers,
      SandboxClient.layer.pipe(
        Layer.provideMerge(Sandbox.layer({ seed: 7, reading, faults: { faults: [fault] } })),
      ),
    )
  const expected = (after30: unknown, after5: unknown) => [
    [503, after30],
    [202, undefined],
    [200, undefined],
    [429, after5],
    // A fault is not the service's own answer.
    [503, undefined],
  ]
  it.effect("is absent", () =>
    Effect.map(under({}), (seen) => expect(seen).toEqual(expected(undefined, undefined))),
  )
  it.effect("is in seconds", () =>
    Effect.map(under({ retry_after: "seconds" }), (seen) => expect(seen).toEqual(expected("30", "5"))),
  )
  it.effect("is a date", () =>
    Effect.map(under({ retry_after: "date" }), (seen) =>
      expect(seen).toEqual(expected("Sat, 21 Nov 2026 09:00:30 GMT", "Sat, 21 Nov 2026 09:00:05 GMT")),
    ),
  )
})
