/** The admin page and its truth. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, ofTheServiceAt, textField, shows, truth, itemsOf } from "../server/Caller.ts"
import type { Answer } from "../server/Caller.ts"

// What observers read over the service's own address, the same over every way to reach it.

const adminUrl = (caller: Caller["Service"], path: string) => `${caller.origin}/admin${path}`
/** Without a secret. */
const look = (caller: Caller["Service"], path: string) =>
  caller.call("GET", adminUrl(caller, path), { secret: undefined })
const rules = (seen: Answer) =>
  itemsOf(seen, "rule_breaks", "rows").map((row) => [field(row, "rule"), field(row, "customer_id")])

ofTheServiceAt(0)("the truth and its page", (it) => {
  it("the truth is read without a secret: executions, their states, refused starts [counted since]", function* (caller) {
    const first = yield* caller.start("queue-10+run-20", { external_execution_id: "x-1" })
    yield* caller.start("ok", { external_execution_id: "x-1" })
    yield* TestClock.adjust(12_000)
    yield* caller.read(textField(first, "execution_id"))
    const truth = yield* look(caller, "/truth")
    shows(truth, {
      status: 200,
      at: "1970-01-01T00:00:12.000Z",
      counted_since: "1970-01-01T00:00:00.000Z",
      open: 1,
      "executions.total": 1,
      "executions.rows.0": {
        execution_id: field(first, "execution_id"),
        session_id: field(first, "session_id"),
        application: "65f0c0ffee00000000000001",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
        external_execution_id: "x-1",
        token_id: null,
        foreign: false,
        status_code: "ONGOING",
        status_reason: "RUNNING",
        authentication_status: "AUTH_OK",
        is_closed: false,
        date_created: "1970-01-01T00:00:00.000Z",
        closes_at: "1970-01-01T00:00:30.000Z",
        state_reads: { count: 1, too_soon: 0 },
        final_state_read_at: null,
        results_reads: 0,
        retrieved: {
          "account:checking": 1,
          "account:savings": 1,
          "customer_information:user_profile": 1,
          "financial_card:debit": 1,
        },
        delivered: {},
        aborted_at: null,
        deleted_at: null,
      },
      "refused_starts.rows": [
        {
          at: "1970-01-01T00:00:00.000Z",
          application: "65f0c0ffee00000000000001",
          customer_id: "c-1",
          engine_reference: "sandbox-bank:website",
          external_execution_id: "x-1",
          outcome: "conflict",
          execution_id: field(first, "execution_id"),
        },
      ],
    })
  })

  it("polling is too fast after more than five reads less than a second apart, and not before", function* (caller) {
    const read = (customer_id: string, times: number, everyMs: number, how: "GET" | "HEAD" = "GET") =>
      Effect.gen(function* () {
        const url = caller.executionUrl(yield* caller.begin("queue-3600", { customer_id }))
        for (let n = 0; n < times; n += 1) {
          yield* caller.call(how, url)
          yield* TestClock.adjust(everyMs)
        }
      })
    yield* read("c-patient", 20, 1_000)
    yield* read("c-at-the-limit", 6, 999)
    yield* read("c-hasty", 7, 999)
    yield* read("c-head", 7, 10, "HEAD")
    const truth = yield* look(caller, "/truth")
    expect(rules(truth)).toEqual([
      ["state_polled_too_fast", "c-head"],
      ["state_polled_too_fast", "c-hasty"],
    ])
    expect(itemsOf(truth, "executions", "rows").map((row) => field(row, "state_reads"))).toEqual([
      { count: 7, shortest_ms: 10, too_soon: 6 },
      { count: 7, shortest_ms: 999, too_soon: 6 },
      { count: 6, shortest_ms: 999, too_soon: 5 },
      { count: 20, shortest_ms: 1_000, too_soon: 0 },
    ])
  })

  it("the catalogue is polled in a loop after more than sixty lists in an hour [limit 10]", function* (caller) {
    const list = (times: number, secret: string) =>
      Effect.forEach(Array.from({ length: times }), () =>
        caller.call("GET", `${caller.base_url}/config/engines/list`, { secret }),
      )
    yield* list(60, "sandbox-app-1")
    yield* TestClock.adjust("1 hour")
    yield* list(60, "sandbox-app-1")
    expect(rules(yield* look(caller, "/truth"))).toEqual([])
    yield* list(61, "sandbox-app-2")
    const truth = yield* look(caller, "/truth")
    expect(rules(truth)).toEqual([["catalogue_polled_in_loop", undefined]])
    shows(truth, {
      catalogue_reads: [
        { application: "65f0c0ffee00000000000001", count: 120 },
        { application: "65f0c0ffee00000000000002", count: 61 },
      ],
    })
  })

  it("lists show the newest entries of a customer or an application, as many as requested", function* (caller) {
    for (const customer_id of ["c-1", "c-2", "c-3"]) yield* caller.start("queue-60", { customer_id })
    yield* caller.start("queue-60", { customer_id: "c-3" }, "sandbox-app-2")
    const customers = (path: string) =>
      Effect.map(look(caller, path), (truth) => {
        const rows = itemsOf(truth, "executions", "rows")
        return [field(truth, "executions", "total"), rows.map((row) => field(row, "customer_id"))]
      })
    for (const [query, total, ...shown] of [
      ["", 4, "c-3", "c-3", "c-2", "c-1"],
      ["?limit=2", 4, "c-3", "c-3"],
      ["?customer=c-1", 1, "c-1"],
      ["?customer=c-3&application=65f0c0ffee00000000000002&limit=9", 1, "c-3"],
    ] as const)
      expect(yield* customers(`/truth${query}`)).toEqual([total, shown])
    for (const wrong of ["limit=0", "limit=1001", "limit=1.5", "limit=x", "customer=a&customer=b"])
      expect([wrong, (yield* look(caller, `/truth?${wrong}`)).status]).toEqual([wrong, 422])
  })

  it("neither page nor truth contains a login, a secret, a ticket or a token's key", function* (caller) {
    const started = yield* caller.startTicketed("queue-0+run-0+ok", {
      parameters: { username: "queue-0+run-0+canaryuser", password: "canarypassword" },
      hooks_extra_data: { note: "canaryextra" },
    })
    const ticket = textField(started, "ticket")
    const exchanged = yield* caller.exchange(textField(started, "execution_id"), ticket)
    expect(exchanged.status).toBe(200)
    const key = textField(exchanged, "token", "token_key")
    for (const path of ["", "/truth"]) {
      const { status, text } = yield* look(caller, path)
      expect(status).toBe(200)
      expect(text).toContain(textField(exchanged, "token", "token_id"))
      for (const canary of ["canary", ticket, key, "sandbox-app-", "login_key", "locking_hash"])
        expect(text).not.toContain(canary)
    }
  })

  it("the page escapes whatever callers sent, and tells the browser to load and run nothing", function* (caller) {
    const hostile = `<script>alert(1)</script>"'&<img src=x onerror=alert(1)>`
    yield* caller.start("queue-60", { customer_id: hostile, external_execution_id: `x${hostile}` })
    yield* caller.start("queue-60", { customer_id: hostile, external_execution_id: `x${hostile}` })
    const page = yield* look(caller, `?customer=${encodeURIComponent(hostile)}`)
    expect([page.status, page.contentType]).toEqual([200, "text/html; charset=utf-8"])
    const { "content-security-policy": policy, "x-content-type-options": sniffing } = page.headers
    expect([policy, sniffing]).toEqual([
      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
      "nosniff",
    ])
    expect(page.text).toContain("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;&lt;img")
    expect(page.text).not.toMatch(/https?:|@import|url\(|"'&/)
    // Every element that opens is one of the page's own.
    const elements = new Set(page.text.match(/<[a-z0-9]+/g))
    expect([...elements].toSorted()).toEqual(
      "<a <bdi <body <button <code <div <form <h1 <h2 <head <header <html <input <label <li <main <meta"
        .concat(" <p <section <small <span <strong <style <table <tbody <td <th <thead <time <title <tr <ul")
        .split(" "),
    )
  })
})

// What observers see, and what survives a restart.

ofTheServiceAt(0)("the truth", (it) => {
  it("names every rule that the caller broke, and nothing if there is none", function* (caller) {
    const start = (words: string, customer_id: string, external_execution_id: string) =>
      caller.start(`queue-0+run-0+${words}`, { customer_id, external_execution_id })
    const good = yield* start("ok", "c-good", "1")
    yield* caller.read(textField(good, "execution_id"))
    yield* caller.results(textField(good, "session_id"))
    yield* caller.remove(textField(good, "execution_id"))
    expect((yield* truth).ruleBreaks).toEqual([])

    const rejected = yield* start("end-BLOCKED_USER", "c-bad", "2")
    yield* start("end-BLOCKED_USER", "c-bad", "3")
    yield* caller.read(textField(rejected, "execution_id"))
    yield* start("end-BLOCKED_USER", "c-bad", "4")
    const blind = yield* start("ok", "c-blind", "5")
    yield* caller.results(textField(blind, "session_id"))
    yield* caller.results(textField(blind, "session_id"))
    yield* caller.remove(textField(blind, "execution_id"))
    const foreign = yield* start("foreign-60", "c-foreign", "6")
    yield* caller.abort(textField(foreign, "execution_id"))
    const breaks = (yield* truth).ruleBreaks.map(({ rule, customer_id, answer_read }) =>
      [rule, customer_id, answer_read].filter((part) => part !== undefined),
    )
    expect(breaks.sort()).toEqual([
      ["deleted_before_final_state_read", "c-blind"],
      ["foreign_run_touched", "c-foreign"],
      ["rejected_login_repeated", "c-bad", false],
      ["rejected_login_repeated", "c-bad", true],
      ["results_read_too_soon", "c-blind"],
    ])
  })
})
