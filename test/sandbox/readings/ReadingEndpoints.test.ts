/** Which endpoints a reading has, and what the flow API and the tokens look like under one. */
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Reading } from "../../../src/sandbox/state/Reading.ts"
import { Caller, field, itemsOf, morning, pick, shows, textField, toldAt, truth } from "../server/Caller.ts"
import type { Steps } from "../server/Caller.ts"

const done = "queue-0+run-0"
const profileOnly = { features: ["customer_information_read"] }

const told = (title: string, reading: Reading, steps: Steps) => toldAt(morning, title, steps, { reading })

describe("the flow API of a reading", () => {
  const everyFlowCall = Effect.gen(function* () {
    const caller = yield* Caller
    const session = textField(yield* caller.start(`${done}+attach-1`), "session_id")
    return [
      yield* caller.results(session),
      yield* caller.call("GET", caller.attachmentUrl(session, "a"), { secret: undefined }),
      yield* caller.call("GET", `${caller.flows_url}/hooks/list`),
      yield* caller.createSession(),
      yield* caller.call("GET", `${caller.flows_url}/nothing`),
      yield* caller.call("PUT", `${caller.flows_url}/hooks/list`),
    ]
  })
  told(
    "[flow api paths] is absent: a gateway's page answers every call",
    { flow_api: "absent" },
    function* () {
      for (const { status, contentType, text } of yield* everyFlowCall) {
        expect([status, contentType]).toEqual([404, expect.stringContaining("text/html")])
        expect(text).toContain("<title>404 Not Found</title>")
      }
      expect((yield* truth).executions.map((seen) => seen.results_reads)).toEqual([[]])
    },
  )
  told("is forbidden to this account", { flow_api: "forbidden", flow_error_body: "html" }, function* () {
    const answers = yield* everyFlowCall
    const detail = "the flow API is not enabled for this account"
    expect(answers.map(({ status, json }) => [status, json])).toEqual(answers.map(() => [403, { detail }]))
  })
  const codes = {
    404: "NOT_FOUND",
    412: "SESSION_NOT_STARTED",
    429: "TOO_MANY_REQUESTS",
    504: "SESSION_LOCKED",
  }
  const byCode = (status: number, code: string) =>
    JSON.stringify({ error: { code, message: `the flow API answers ${status}` } })
  for (const [flow_error_body, type, expected] of [
    ["code", "application/json", byCode],
    ["html", "text/html", (status: number) => `<html><body><h1>${status}</h1></body></html>`],
    ["empty", "text/plain", () => ""],
  ] as const)
    told(`reports its errors as ${flow_error_body}`, { flow_error_body }, function* (caller) {
      const sessionOf = (words: string) =>
        Effect.map(caller.start(`${done}+${words}`, { customer_id: words }), (answer) =>
          textField(answer, "session_id"),
        )
      const read = yield* sessionOf("ok")
      yield* caller.results(read)
      const sessions = [
        yield* sessionOf("noflow"),
        yield* sessionOf("unstarted"),
        read,
        yield* sessionOf("locked-60"),
      ]
      for (const [index, [status, code]] of Object.entries(codes).entries()) {
        const answer = yield* caller.results(sessions[index] ?? "")
        shows(answer, { status: Number(status), text: expected(Number(status), code) })
        expect(answer.contentType?.split(";")[0]).toBe(type)
      }
      shows(yield* caller.results("7"), { status: 422, "detail.0.loc": ["path", "session_id"] })
    })
  told("has its records in one list", { flow_data: "list" }, function* (caller) {
    const started = yield* caller.start(`${done}+records-3+attach-1`, profileOnly)
    const answer = yield* caller.results(textField(started, "session_id"))
    const profile = "customer_information:user_profile"
    expect(itemsOf(answer, "data").map((one) => field(one, "sub_family"))).toEqual([
      profile,
      profile,
      profile,
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
  const without = { head: "not_allowed", tokenized_body: "absent" } as const
  told("say with 405 which methods there are [no route reading]", without, function* (caller) {
    const answers = [
      yield* caller.call("HEAD", caller.executionUrl("some-id")),
      yield* caller.call("POST", `${caller.base_url}/executions/init/v1/tokenized`),
    ]
    const seen = answers.map(({ status, headers }) => [status, headers["allow"]])
    expect(seen.flat()).toEqual([405, "GET, PUT", 405, ""])
  })
  has("read no profile", { profile: "absent" }, { profile: 404 })
  has("download no document", { attachments: "absent" }, { attachment: 404 })
  has("tell no token's status", { token_status: "absent" }, { token: 404 })
  has("read every kind of result", { result_kinds: "present" }, { records: 200 })

  told(
    "return the records of one family and say whether they are final",
    { result_kinds: "present", flow_api: "absent" },
    function* (caller) {
      const features = ["customer_information_read", "accounts_read"]
      const id = yield* caller.begin(`${done}+records-4+late-60`, { features })
      const records = (family: string, secret: string | undefined = "sandbox-app-1") =>
        caller.call("GET", `${caller.base_url}/executions/results/${id}/${family}/v1/records`, { secret })
      const seen = Effect.map(records("customer_information"), (answer) => [
        itemsOf(answer, "records").map((one) => field(one, "product")),
        field(answer, "is_final"),
      ])
      const products = (count: number) => Array.from({ length: count }, () => "customer_information")
      expect(yield* seen).toEqual([products(3), false])
      yield* TestClock.adjust("60 seconds")
      expect(yield* seen).toEqual([products(2), true])
      for (const [family, secret, status] of [
        ["account", "sandbox-app-1", 200],
        ["customer", "sandbox-app-1", 404],
        ["customer_information", "sandbox-app-2", 404],
        ["customer_information", "no", 403],
      ] as const)
        expect([family, secret, (yield* records(family, secret)).status]).toEqual([family, secret, status])
      const url = `${caller.base_url}/executions/results/${id}/customer_information/v1/records`
      expect((yield* caller.call("GET", url, { secret: undefined })).status).toBe(401)
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
      const seen = (yield* both).map((one) => [one.status, ...pick(one, "detail.0.loc", "detail.1.loc")])
      expect(seen).toEqual(expected)
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
  const faults = { faults: [{ on: "listEngines", status: 503 } as const] }
  for (const [title, reading, after30, after5] of [
    ["absent", {}, undefined, undefined],
    ["in seconds", { retry_after: "seconds" }, "30", "5"],
    ["a date", { retry_after: "date" }, "Sat, 21 Nov 2026 09:00:30 GMT", "Sat, 21 Nov 2026 09:00:05 GMT"],
  ] as const) {
    const steps: Steps = function* (caller) {
      const session = "5e5500000000000000000000"
      const answers = [
        yield* caller.start("ok", { engine_reference: "sandbox-maintenance:website" }),
        yield* caller.start("ok"),
        yield* caller.results(session),
        yield* caller.results(session),
        yield* caller.call("GET", `${caller.base_url}/config/engines/list`),
      ]
      expect(answers.map(({ status, headers }) => [status, headers["retry-after"]])).toEqual([
        [503, after30],
        [202, undefined],
        [200, undefined],
        [429, after5],
        // A fault is not the service's own answer.
        [503, undefined],
      ])
    }
    toldAt(morning, `is ${title}`, steps, { reading, faults })
  }
})
