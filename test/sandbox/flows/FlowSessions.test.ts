/** Flow sessions walked through the widget and read, in process and over HTTP (2.7, 3.4, 4.10, 4.12, 7, 8). */
import { createHash } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { connection, nightStart, recordTexts, taxes, walk, walked } from "./FlowWalk.ts"
import { field, fieldsOf, ofTheServiceAt, pick, shows, textField } from "../server/Caller.ts"

const atNight = ofTheServiceAt(nightStart)
const quick = "connect queue-0+run-1+records-4"
const misconfigured = `${quick}+end-BAD_CONFIGURATIONS`
const slow = "connect queue-0+run-100+records-9"

/** Session words, steps, and what the results then say: status code, cursor, is_closed. */
const walks: ReadonlyArray<readonly [string, ReadonlyArray<string>, string, string, boolean]> = [
  ["", ["start"], "READY", "welcome:init", false],
  ["", ["start", "consent"], "READY", "welcome:consent", false],
  ["", ["start", "consent", "connect queue-60+run-9"], "WAITING", "connect:source", false],
  ["", ["start", "consent", slow, "wait 50"], "WAITING", "connect:wait", false],
  ["", ["start", "consent", slow, "wait 50", "leave"], "WAITING", "connect:wait", false],
  ["", ["start", "consent", quick, "wait 9"], "WAITING", "connect:source", false],
  ["", ["start", "consent", quick, "wait 9", "leave"], "COMPLETED", "bye:completed", true],
  ["", ["start", "consent", slow, "leave", "wait 100"], "COMPLETED", "bye:completed", true],
  ["", ["start", "consent", quick, "wait 1802"], "COMPLETED", "bye:completed", true],
  ["noconsent", ["start", quick, "leave", "wait 9"], "COMPLETED", "bye:completed", true],
  ["", ["start", "consent", `${quick}+end-FAILED`, "leave", "wait 9"], "FAILED", "bye:failure", true],
  ["", ["start", "consent", `${quick}+end-BLOCKED_USER`, "wait 9", "leave"], "FAILED", "bye:failure", true],
  ["", ["start", "consent", "cancel"], "CUSTOMER_CANCELLED", "bye:failure", true],
  ["", ["start", "consent", slow, "wait 50", "cancel"], "CUSTOMER_CANCELLED", "bye:failure", true],
  ["", ["start", "leave"], "CUSTOMER_CANCELLED", "bye:failure", true],
  ["", ["start", "consent", "client-cancel"], "CLIENT_CANCELLED", "welcome:consent", true],
  ["", ["start", "consent", slow, "leave", "client-cancel"], "CLIENT_CANCELLED", "connect:wait", true],
  ["", ["start", "wait 1800"], "TIMED_OUT", "welcome:init", true],
  ["idle-60", ["start", "consent", "wait 60"], "TIMED_OUT", "welcome:consent", true],
  ["", ["start", "consent", `${quick}+end-TIMEOUT`, "leave", "wait 9"], "TIMED_OUT", "connect:wait", true],
  ["system-60", ["start", "consent", slow, "wait 60"], "SYSTEM_CANCELLED", "connect:wait", true],
  ["broken", ["start"], "CONFIGURATION_ERROR", "bye:failure", true],
  ["", ["start", "consent", misconfigured, "wait 9", "leave"], "CONFIGURATION_ERROR", "bye:failure", true],
]

const stranger = "sandbox-app-2"
const idsIn = (answer: { readonly text: string }) =>
  [...answer.text.matchAll(/"(?:attachment_id|report_attachments)":\[?"([0-9a-f]+)"/g)].map(
    ([, id]) => id ?? "",
  )

atNight("flow sessions", (it) => {
  for (const [words, steps, status, cursor, is_closed] of walks) {
    const session_cursor = `es-public-administration:${cursor}`
    const title = [words, ...steps].filter(Boolean).join(", ")
    it(`[session ${status}] [cursor ${session_cursor}] ${title}`, function* () {
      const { caller, session_id } = yield* walked(words, steps)
      shows(yield* caller.results(session_id), {
        status: 200,
        session_status: status,
        session_cursor,
        is_closed,
      })
    })
  }

  it("[readFlowResults 404] [flow-error 1] nobody's session, and another application's, are not found", function* () {
    const { caller, session_id } = yield* walked("", ["start"])
    const unknown = yield* caller.results("65f0c0ffee65f0c0ffee65f0")
    shows(unknown, { status: 404, json: { detail: "session not found" } })
    for (const answer of [
      yield* caller.call("GET", caller.resultsUrl(session_id), { secret: stranger }),
      yield* caller.viewSession(session_id, stranger),
      yield* caller.step(session_id, "client-cancel", undefined, stranger),
    ])
      shows(answer, { status: 404, text: unknown.text })
  })

  it("[readFlowResults 412] [readFlowResults 200] [flow-error 2] [flow-rule 1] can be read once the customer has started", function* () {
    const { caller, session_id } = yield* walked("", [])
    const detail = "the customer never started this session"
    shows(yield* caller.results(session_id), { status: 412, json: { detail } })
    yield* walk(session_id, ["start"])
    shows(yield* caller.results(session_id), { status: 200 })
    const cancelled = yield* walked("", ["client-cancel"])
    shows(yield* caller.results(cancelled.session_id), { status: 412 })
  })

  it("[readFlowResults 422] [flow-error 3] an id that is not an ObjectId is malformed", function* (caller) {
    const detail = [{ loc: ["path", "session_id"], msg: "not an ObjectId", type: "value_error" }]
    for (const id of ["nobody", "5e550000000000000000000g", "5e55", "5e5500000000000000000000ff"])
      shows(yield* caller.results(id), { status: 422, json: { detail } })
  })

  it("[readFlowResults 429] [flow-error 4] [limit 1] one request per five seconds for each session separately", function* () {
    const { caller, session_id } = yield* walked("", ["start"])
    const other = yield* walked("", ["start"])
    const statuses: Array<number> = []
    for (const millis of [0, 0, 4_999, 1, 5_000, 2_500, 2_500]) {
      yield* TestClock.adjust(millis)
      statuses.push((yield* caller.results(session_id)).status)
    }
    expect(statuses).toEqual([200, 429, 429, 200, 200, 429, 200])
    shows(yield* caller.results(other.session_id), { status: 200 })
    yield* TestClock.adjust(5_000)
    const theirs = caller.call("GET", caller.resultsUrl(other.session_id), { secret: stranger })
    shows(yield* theirs, { status: 404 })
    shows(yield* caller.results(other.session_id), { status: 200 })
  })

  it("[flow-rule 2] [field results.is_closed] [field results.data] partial results lose and gain records", function* () {
    const late = "connect queue-0+run-100+records-12+late-60"
    const { caller, session_id } = yield* walked("", ["start", "consent", late, "leave"])
    const bodies = []
    for (const seconds of [30, 40, 40, 60, 600]) {
      yield* TestClock.adjust(`${seconds} seconds`)
      bodies.push(yield* caller.results(session_id))
    }
    expect(bodies.map((body) => field(body, "is_closed"))).toEqual([false, false, false, true, true])
    const [early = [], later = [], settling = [], final = []] = bodies.map(recordTexts)
    const without = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) =>
      one.filter((record) => !other.includes(record)).length
    expect([without(early, later), later.length > early.length]).toEqual([0, true])
    expect([without(settling, final), without(final, settling), final.length]).toEqual([1, 1, 12])
    expect(bodies[4]?.text).toBe(bodies[3]?.text)
  })

  it("[field results.retrieved_features] grows with the sources, each feature once", function* () {
    const { caller, session_id } = yield* walked("", ["start", "consent"])
    const own = ["yearly_individual_tax", "properties_data"]
    for (const [steps, ...codes] of [
      [[]],
      [["university queue-0+run-1+records-4"], "customer_information_read", "academic_data"],
      [
        ["connect queue-0+run-1+records-3", "wait 5", "leave"],
        "customer_information_read",
        "academic_data",
        ...own,
      ],
    ] as ReadonlyArray<readonly [ReadonlyArray<string>, ...Array<string>]>) {
      yield* walk(session_id, [...steps, "wait 5"])
      shows(yield* caller.results(session_id), { retrieved_features: codes })
    }
  })

  it(`[field results.consent] ${fieldsOf("consent", "accepted_date accepted_features user_ip user_agent origin")} [field consent.accepted_documents] ${fieldsOf("document", "version hash sign_date signature_provider")} [field document.signature_metadata] show what the customer accepted, where and signed how, with the SHA-256`, function* (caller) {
    const created = yield* caller.createSession({ features: ["academic_data", "properties_data"] })
    const session_id = textField(created, "session_id")
    const browser = { user_ip: "198.51.100.9", user_agent: "Browser/1", origin: "https://shop.invalid" }
    yield* caller.step(session_id, "start", browser)
    yield* TestClock.adjust("7 seconds")
    shows(yield* caller.results(session_id), { consent: undefined })
    yield* TestClock.adjust("5 seconds")
    const signature = { signature_provider: "signer", signature_metadata: { pages: 2, method: "otp" } }
    const documents = ["terms-es", { document_id: "privacy-es", ...signature }]
    yield* caller.step(session_id, "consent", { features: ["academic_data"], documents })
    const [terms, privacy] = [0, 1].map((index) => ({
      version: textField(created, "documents", index, "version"),
      hash: createHash("sha256")
        .update(textField(created, "documents", index, "content"))
        .digest("hex"),
    }))
    const accepted_date = new Date(nightStart + 12_000).toISOString()
    yield* TestClock.adjust("9 seconds")
    shows(yield* caller.results(session_id), {
      consent: {
        accepted_date,
        accepted_features: ["academic_data"],
        ...browser,
        accepted_documents: {
          "terms-es": terms,
          "privacy-es": { ...privacy, sign_date: accepted_date, ...signature },
        },
      },
    })
  })

  it("[field consent.accepted_features] an empty list, and no browser fields, if nothing was accepted", function* () {
    const { caller, session_id } = yield* walked("", ["start"])
    yield* caller.step(session_id, "consent", { features: [] })
    expect(field(yield* caller.results(session_id), "consent")).toEqual({
      accepted_date: expect.any(String),
      accepted_documents: expect.any(Object),
      accepted_features: [],
    })
    const detail = "the source offers nothing that the customer accepted"
    shows(yield* caller.step(session_id, "connect", connection("ok")), { status: 409, detail })
    const without = yield* walked("noconsent", ["start", quick, "leave", "wait 9"])
    expect((yield* caller.results(without.session_id)).json).not.toHaveProperty("consent")
  })

  it("[downloadAttachment 200] [downloadAttachment 404] documents of a source, once its records are whole", function* () {
    const words = "connect queue-0+run-20+records-4+attach-2"
    const { caller, session_id } = yield* walked("", ["start", "consent", words, "wait 10"])
    const download = (session: string, id: string, secret = "sandbox-app-1") =>
      caller.call("GET", caller.attachmentUrl(session, id), { secret })
    expect(idsIn(yield* caller.results(session_id))).toEqual([])
    yield* walk(session_id, ["wait 10", "leave"])
    const ids = idsIn(yield* caller.results(session_id))
    expect(new Set(ids).size).toBe(2)
    for (const id of ids) {
      const { status, contentType, text } = yield* download(session_id, id)
      expect([status, contentType, text.slice(0, 8)]).toEqual([200, "application/pdf", "%PDF-1.4"])
      shows(yield* download(session_id, id, stranger), { status: 404 })
    }
    const university = "university queue-0+run-1+records-4+attach-2"
    const other = yield* walked("", ["start", "consent", words, university, "wait 20", "leave"])
    expect(new Set(idsIn(yield* caller.results(other.session_id))).size).toBe(4)
    for (const id of ["nobody", ...ids]) shows(yield* download(other.session_id, id), { status: 404 })
  })

  it("a cancelled session keeps what its sources had returned by then, for good", function* () {
    const { caller, session_id } = yield* walked("", ["start", "consent", slow, "wait 50"])
    const before = recordTexts(yield* caller.results(session_id))
    yield* walk(session_id, ["wait 5", "client-cancel"])
    const at = yield* caller.results(session_id)
    yield* TestClock.adjust("1 hour")
    expect(before.length).toBeGreaterThan(0)
    expect(recordTexts(at).slice(0, before.length)).toEqual(before)
    shows(yield* caller.results(session_id), { text: at.text })
  })

  const rows: ReadonlyArray<readonly [string, ReadonlyArray<string>, string, string]> = [
    ...["consent", "connect", "leave", "cancel"].map(
      (name) => ["", [], name, "the session was not started yet"] as const,
    ),
    ["", ["start"], "start", "the session was started already"],
    ["", ["start"], "connect", "the consent was not given yet"],
    ["", ["start"], "answer", "no source asks for anything"],
    ["", ["start", "consent"], "consent", "the consent was given already"],
    ["noconsent", ["start"], "consent", "this session asks for no consent"],
    ["", ["start", "consent", slow], "connect", "this source is being read already"],
    ...["leave", "cancel", "connect"].map(
      (name) => ["", ["start", "consent", slow, "leave"], name, "the customer has left the widget"] as const,
    ),
    ["", ["start", "cancel"], "client-cancel", "the session is over"],
    ["", ["client-cancel"], "start", "the session is over"],
    ["", ["start", "wait 1800"], "consent", "the session is over"],
  ]
  it("steps that a session does not allow are conflicts and change nothing", function* () {
    for (const [words, steps, name, detail] of rows) {
      const { caller, session_id } = yield* walked(words, steps)
      const before = yield* caller.viewSession(session_id)
      const bodies: Readonly<Record<string, object>> = { connect: connection("ok"), answer: { code: "1" } }
      const bodyless = ["leave", "cancel", "client-cancel"].includes(name)
      const refused = yield* caller.step(session_id, name, bodyless ? undefined : (bodies[name] ?? {}))
      expect([steps, name, refused.status, refused.json]).toEqual([steps, name, 409, { detail }])
      shows(yield* caller.viewSession(session_id), { text: before.text })
      // Another source could be connected all the same.
      if (!detail.startsWith("this source")) expect(field(before, "steps")).not.toContain(name)
    }
  })

  it("a step that does not fit the session is invalid, and no answer repeats a parameter", function* () {
    const { caller, session_id } = yield* walked("", ["start"], { features: ["properties_data"] })
    const refuses = Effect.fnUntraced(function* (
      name: string,
      ...all: ReadonlyArray<readonly [object, ReadonlyArray<unknown>]>
    ) {
      for (const [body, loc] of all) {
        const answer = yield* caller.step(session_id, name, body)
        expect([body, answer.status, ...pick(answer, "detail.0.loc")]).toEqual([body, 422, ["body", ...loc]])
        expect(answer.text).not.toContain("hunter2")
      }
    })
    yield* refuses(
      "consent",
      [{ features: ["academic_data"] }, ["features"]],
      [{ features: ["nothing_read"] }, ["features", 0]],
      [{ documents: ["terms-es"] }, ["documents"]],
      [{ documents: ["terms-es", "privacy-es", "more"] }, ["documents"]],
      [{ documents: ["terms-es", "terms-es"] }, ["documents"]],
    )
    yield* walk(session_id, ["consent"])
    yield* refuses(
      "connect",
      [connection("ok", "nobody:website"), ["engine_reference"]],
      [{ engine_reference: taxes, parameters: { username: "hunter2" } }, ["parameters", "password"]],
      [{ ...connection("ok"), features: ["academic_data"] }, ["features"]],
      [{ engine_reference: taxes }, ["parameters"]],
      [connection("rsa::hunter2"), ["parameters", "username"]],
    )
    const closed = yield* caller.step(session_id, "connect", connection("ok", "sandbox-maintenance:website"))
    shows(closed, { status: 409, json: { detail: "engine in maintenance" } })
    shows(yield* caller.createSession({ features: ["nothing_read"] }), { status: 422 })
    shows(yield* caller.step("nobody", "start", {}), { status: 404 })
  })

  it("a source in the widget may ask for a second factor, again after a wrong code", function* () {
    const words = "connect queue-0+run-10+records-2+challenge-4711"
    const { caller, session_id } = yield* walked("", ["start", "consent", words, "wait 5"])
    const view = caller.viewSession(session_id)
    shows(yield* view, {
      "sources.0.status_reason": "MFA_REQUIRED",
      steps: ["connect", "answer", "leave", "cancel", "client-cancel"],
    })
    yield* walk(session_id, ["answer 1", "wait 1"])
    shows(yield* view, { "sources.0.status_reason": "MFA_REQUIRED" })
    yield* walk(session_id, ["answer 4711", "wait 1"])
    shows(yield* view, { session_cursor: "es-public-administration:connect:wait" })
    yield* walk(session_id, ["wait 20", "leave"])
    const results = yield* caller.results(session_id)
    expect([field(results, "session_status"), recordTexts(results).length]).toEqual(["COMPLETED", 2])
  })

  it("no call of the widget is answered without the application secret", function* () {
    const { caller, session_id } = yield* walked("", ["start"])
    const steps = ["start", "consent", "connect", "answer", "leave", "cancel", "client-cancel"]
    for (const [method, url] of [
      ["POST", caller.widgetUrl()],
      ["GET", caller.widgetUrl(session_id)],
      ...steps.map((step) => ["POST", caller.widgetUrl(session_id, step)] as const),
    ] as const) {
      shows(yield* caller.call(method, url, { secret: undefined }), { status: 401 })
      shows(yield* caller.call(method, url, { secret: "nobody" }), { status: 403 })
    }
  })
})
