/** The flow API for sessions behind executions: their results, documents, limits and lock (2.7, 4.10, 4.12, 8). */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { recordsIn, recordTexts } from "./FlowWalk.ts"
import { Caller, field, ofTheService, pick, shows, textField, truth } from "../server/Caller.ts"

const finished = Effect.fnUntraced(function* (words: string, more: Readonly<Record<string, unknown>> = {}) {
  const caller = yield* Caller
  const started = yield* caller.start(`queue-0+run-0+${words}`, more)
  const [session_id, execution_id] = [textField(started, "session_id"), textField(started, "execution_id")]
  return { caller, session_id, execution_id, results: yield* caller.results(session_id) }
})

ofTheService("the results of an execution", (it) => {
  it("hold every record, the consent and the session's own state [field results.session_status] [field results.session_cursor]", function* () {
    const { results } = yield* finished("records-9+odd", {
      engine_reference: "sandbox-tax:website",
      features: ["academic_data", "customer_information_read", "vehicles_data"],
    })
    expect([results.status, recordsIn(field(results, "data")).length]).toEqual([200, 12])
    expect(results.text).toContain('"serial":9007199254740993')
    shows(results, {
      retrieved_features: ["academic_data", "customer_information_read", "vehicles_data"],
      is_closed: true,
      session_status: "COMPLETED",
      session_cursor: "es-public-administration:bye:completed",
    })
    const documents = Object.keys(Object(field(results, "consent", "accepted_documents")))
    expect(documents).toEqual(["terms-es", "privacy-es"])
    const broken = yield* finished("end-TIMEOUT+records-6", { customer_id: "c-broken" })
    expect(pick(broken.results, "session_status", "session_cursor")).toEqual([
      "TIMED_OUT",
      "es-public-administration:bye:failure",
    ])
  })

  it("are the same in another run of the customer and engine, whatever came before", function* () {
    const runs = []
    for (const words of ["end-TIMEOUT+records-6", "records-6", "records-6"]) {
      const { results } = yield* finished(words)
      runs.push(recordsIn(field(results, "data")).map(({ fetch_date: _fetched, ...record }) => record))
      yield* TestClock.adjust("1 day")
    }
    const [broken, second, third] = runs
    expect([third?.length, second, broken]).toEqual([6, third, third?.slice(0, 3)])
  })

  it("are there from the accepted login on, unless words hide, lock or never finish them", function* () {
    for (const [words, status, is_closed] of [
      ["end-BLOCKED_USER", 412],
      ["noflow", 404],
      ["unstarted", 412],
      ["locked-9", 504],
      ["neverfinal", 200, false],
    ] as const)
      shows((yield* finished(words, { customer_id: words })).results, { status, is_closed })
    const caller = yield* Caller
    const session_id = textField(yield* caller.start("queue-10+run-100+records-10+late-60"), "session_id")
    const seen = []
    for (const seconds of [0, 65, 45, 60]) {
      yield* TestClock.adjust(seconds * 1000)
      const results = yield* caller.results(session_id)
      seen.push([results.status, field(results, "is_closed"), recordTexts(results).length])
    }
    expect(seen).toEqual([
      [412, undefined, 0],
      [200, false, 5],
      [200, false, 10],
      [200, true, 10],
    ])
  })

  it("name documents that can be downloaded until the execution is deleted [attachment-rule 1]", function* () {
    const { caller, session_id, execution_id, results } = yield* finished("attach-2+records-3")
    const ids = [
      textField(results, "data", "documents", 0, "attachment_id"),
      textField(results, "data", "cards", 0, "report_attachments", 0),
    ]
    const download = (id: string) => caller.call("GET", caller.attachmentUrl(session_id, id))
    for (const id of ids) {
      const { status, contentType, text } = yield* download(id)
      expect([status, contentType, text.slice(0, 8)]).toEqual([200, "application/pdf", "%PDF-1.4"])
    }
    expect((yield* download("nobody")).status).toBe(404)
    yield* caller.remove(execution_id)
    expect((yield* download(ids[0] ?? "")).status).toBe(404)
    expect((yield* caller.results(session_id)).status).toBe(404)
  })

  it("and everything else of it are unknown to another application", function* () {
    const { caller, session_id, execution_id } = yield* finished("attach-1")
    const execution = caller.executionUrl(execution_id)
    for (const [method, url, body] of [
      ["GET", execution],
      ["HEAD", execution],
      ["PUT", execution, { code: "1" }],
      ["DELETE", `${execution}/abort`],
      ["DELETE", `${execution}/delete`],
      ["GET", caller.profileUrl(execution_id)],
      ["GET", caller.resultsUrl(session_id)],
      ["GET", caller.attachmentUrl(session_id, "x")],
    ] as const) {
      const stranger = yield* caller.call(method, url, { secret: "sandbox-app-2", body })
      expect([method, url, stranger.status]).toEqual([method, url, 404])
    }
  })
})

// Section 8 is one rule: sessions behind executions are read under the limit and the lock of any other.

/** Reads the session of one execution after each of these waits. */
const readAfter = (words: string, seconds: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const session = textField(yield* caller.start(`queue-0+run-0+${words}`), "session_id")
    const statuses: Array<number> = []
    for (const wait of seconds) {
      yield* TestClock.adjust(`${wait} seconds`)
      statuses.push((yield* caller.results(session)).status)
    }
    const [seen] = (yield* truth).executions
    return { statuses, seen }
  })

ofTheService("the session of an execution", (it) => {
  it("[readFlowResults 504] [flow-error 5] [limit 2] is locked for a while, and a read then counts as a request", function* () {
    const { statuses, seen } = yield* readAfter("locked-30", [0, 4, 1, 20, 5, 3, 2])
    expect(statuses).toEqual([504, 429, 504, 504, 200, 429, 200])
    const start = seen?.started_at ?? 0
    expect(seen?.results_locked_at.map((at) => at - start)).toEqual([0, 5_000, 25_000])
    expect(seen?.results_reads.map(({ at }) => at - start)).toEqual([30_000, 35_000])
    const { ruleBreaks } = yield* truth
    expect(ruleBreaks.map(({ rule, at }) => [rule, at - start])).toEqual([
      ["results_read_too_soon", 4_000],
      ["results_read_too_soon", 33_000],
    ])
  })

  it("[readFlowResults 504] holds its lock for a millisecond per record that is read", function* () {
    expect((yield* readAfter("records-6000", [0, 5, 1, 5])).statuses).toEqual([200, 504, 429, 200])
  })
})
