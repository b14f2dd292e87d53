/** Flow sessions walked through the widget and read, in process and over HTTP (2.7, 3.4, 4.10, 4.12, 7, 8). */
import { createHash } from "node:crypto"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { connection, nightStart, recordTexts, taxes, walk, walked } from "./FlowWalk.ts"
import { field, textField, ofTheService, shows, type Told } from "../server/Caller.ts"

const quick = "connect queue-0+run-1+records-4"
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
  [
    "",
    ["start", "consent", `${quick}+end-BAD_CONFIGURATIONS`, "wait 9", "leave"],
    "CONFIGURATION_ERROR",
    "bye:failure",
    true,
  ],
]

const sessionSuite = (told: Told) => {
  for (const [words, steps, status, cursor, is_closed] of walks) {
    const place = `es-public-administration:${cursor}`
    told(
      `[session ${status}] [cursor ${place}] ${[words, ...steps].filter(Boolean).join(", ")}`,
      function* () {
        const { caller, session_id } = yield* walked(words, steps)
        const results = yield* caller.results(session_id)
        shows(results, { status: 200, session_status: status, session_cursor: place, is_closed })
      },
    )
  }

  told(
    "[readFlowResults 404] [flow-error 1] nobody's session, and another application's, are not found",
    function* () {
      const { caller, session_id } = yield* walked("", ["start"])
      const unknown = yield* caller.results("65f0c0ffee65f0c0ffee65f0")
      const stranger = yield* caller.call("GET", caller.resultsUrl(session_id), { secret: "sandbox-app-2" })
      expect([unknown.status, unknown.json]).toEqual([404, { detail: "session not found" }])
      expect([stranger.status, stranger.text]).toEqual([404, unknown.text])
      for (const answer of [
        yield* caller.viewSession(session_id, "sandbox-app-2"),
        yield* caller.step(session_id, "client-cancel", undefined, "sandbox-app-2"),
      ]) {
        expect([answer.status, answer.text]).toEqual([404, unknown.text])
      }
    },
  )

  told(
    "[readFlowResults 412] [readFlowResults 200] [flow-error 2] [flow-rule 1] can be read once the customer has started",
    function* () {
      const { caller, session_id } = yield* walked("", [])
      const before = yield* caller.results(session_id)
      yield* walk(session_id, ["start"])
      const after = yield* caller.results(session_id)
      shows(before, { status: 412, json: { detail: "the customer never started this session" } })
      shows(after, { status: 200 })
      const cancelled = yield* walked("", ["client-cancel"])
      expect((yield* caller.results(cancelled.session_id)).status).toBe(412)
    },
  )

  told(
    "[readFlowResults 422] [flow-error 3] an id that is not an ObjectId is malformed, with a list of validation items",
    function* (caller) {
      for (const id of ["nobody", "5e550000000000000000000g", "5e55", "5e5500000000000000000000ff"]) {
        const answer = yield* caller.results(id)
        expect([id, answer.status, field(answer, "detail")]).toEqual([
          id,
          422,
          [{ loc: ["path", "session_id"], msg: "not an ObjectId", type: "value_error" }],
        ])
      }
    },
  )

  told(
    "[readFlowResults 429] [flow-error 4] [limit 1] one request per five seconds for each session separately",
    function* () {
      const { caller, session_id } = yield* walked("", ["start"])
      const other = yield* walked("", ["start"])
      const statuses: Array<number> = []
      for (const millis of [0, 0, 4_999, 1, 5_000, 2_500, 2_500]) {
        yield* TestClock.adjust(millis)
        statuses.push((yield* caller.results(session_id)).status)
      }
      expect(statuses).toEqual([200, 429, 429, 200, 200, 429, 200])
      expect((yield* caller.results(other.session_id)).status).toBe(200)
      const stranger = { secret: "sandbox-app-2" }
      yield* caller.call("GET", caller.resultsUrl(other.session_id), stranger)
      yield* TestClock.adjust(5_000)
      expect((yield* caller.call("GET", caller.resultsUrl(other.session_id), stranger)).status).toBe(404)
      expect((yield* caller.results(other.session_id)).status).toBe(200)
    },
  )

  told(
    "[flow-rule 2] [field results.is_closed] [field results.data] partial results lose and gain records",
    function* () {
      const late = "connect queue-0+run-100+records-12+late-60"
      const { caller, session_id } = yield* walked("", ["start", "consent", late, "leave"])
      const bodies = []
      for (const seconds of [30, 40, 40, 60, 600]) {
        yield* TestClock.adjust(`${seconds} seconds`)
        bodies.push(yield* caller.results(session_id))
      }
      expect(bodies.map((body) => field(body, "is_closed"))).toEqual([false, false, false, true, true])
      const [early = [], later = [], settling = [], final = [], again] = bodies.map(recordTexts)
      expect(later.length).toBeGreaterThan(early.length)
      expect(early.filter((record) => !later.includes(record))).toEqual([])
      expect(settling.filter((record) => !final.includes(record)).length).toBe(1)
      expect(final.filter((record) => !settling.includes(record)).length).toBe(1)
      expect([final.length, again]).toEqual([12, final])
      expect(bodies[4]?.text).toBe(bodies[3]?.text)
    },
  )

  told("[field results.retrieved_features] grows with the sources, each feature once", function* () {
    const { caller, session_id } = yield* walked("", ["start", "consent"])
    const seen: Array<unknown> = []
    const look = Effect.gen(function* () {
      yield* TestClock.adjust("5 seconds")
      seen.push(field(yield* caller.results(session_id), "retrieved_features"))
    })
    yield* look
    yield* walk(session_id, ["university queue-0+run-1+records-4"])
    yield* look
    yield* walk(session_id, ["connect queue-0+run-1+records-3", "wait 5", "leave"])
    yield* look
    expect(seen).toEqual([
      [],
      ["customer_information_read", "academic_data"],
      ["customer_information_read", "academic_data", "yearly_individual_tax", "properties_data"],
    ])
  })

  told(
    "[field results.consent] [field consent.accepted_date] [field consent.accepted_features] " +
      "[field consent.user_ip] [field consent.user_agent] [field consent.origin] " +
      "[field consent.accepted_documents] [field document.version] [field document.hash] " +
      "[field document.sign_date] [field document.signature_provider] [field document.signature_metadata] " +
      "show what the customer accepted, where and signed how, with the SHA-256 of the contents",
    function* (caller) {
      const created = yield* caller.createSession({ features: ["academic_data", "properties_data"] })
      const session_id = textField(created, "session_id")
      const browser = { user_ip: "198.51.100.9", user_agent: "Browser/1", origin: "https://shop.invalid" }
      yield* caller.step(session_id, "start", browser)
      yield* TestClock.adjust("7 seconds")
      expect(field(yield* caller.results(session_id), "consent")).toBe(undefined)
      yield* TestClock.adjust("5 seconds")
      const signature = { signature_provider: "signer", signature_metadata: { pages: 2, method: "otp" } }
      const consent = yield* caller.step(session_id, "consent", {
        features: ["academic_data"],
        documents: ["terms-es", { document_id: "privacy-es", ...signature }],
      })
      expect(consent.status).toBe(200)
      const [terms, privacy] = [0, 1].map((index) => ({
        version: textField(created, "documents", index, "version"),
        hash: createHash("sha256")
          .update(textField(created, "documents", index, "content"))
          .digest("hex"),
      }))
      const accepted_date = new Date(nightStart + 12_000).toISOString()
      yield* TestClock.adjust("9 seconds")
      expect(field(yield* caller.results(session_id), "consent")).toEqual({
        accepted_date,
        accepted_features: ["academic_data"],
        ...browser,
        accepted_documents: {
          "terms-es": terms,
          "privacy-es": { ...privacy, sign_date: accepted_date, ...signature },
        },
      })
    },
  )

  told(
    "[field consent.accepted_features] an empty list, and no browser fields, if the customer gave no consent",
    function* () {
      const { caller, session_id } = yield* walked("", ["start"])
      yield* caller.step(session_id, "consent", { features: [] })
      const consent = field(yield* caller.results(session_id), "consent")
      expect(Object.keys(Object(consent)).toSorted()).toEqual([
        "accepted_date",
        "accepted_documents",
        "accepted_features",
      ])
      expect(field(consent, "accepted_features")).toEqual([])
      const connected = yield* caller.step(session_id, "connect", connection("ok"))
      shows(connected, { status: 409, detail: "the source offers nothing that the customer accepted" })
      const without = yield* walked("noconsent", ["start", quick, "leave", "wait 9"])
      expect("consent" in Object((yield* caller.results(without.session_id)).json)).toBe(false)
    },
  )

  told(
    "[downloadAttachment 200] [downloadAttachment 404] documents of a source, once its records are whole",
    function* () {
      const words = "connect queue-0+run-20+records-4+attach-2"
      const { caller, session_id } = yield* walked("", ["start", "consent", words, "wait 10"])
      const idsIn = (json: unknown) =>
        [...JSON.stringify(json).matchAll(/"(?:attachment_id|report_attachments)":\[?"([0-9a-f]+)"/g)].map(
          ([, id]) => id ?? "",
        )
      expect(idsIn((yield* caller.results(session_id)).json)).toEqual([])
      yield* walk(session_id, ["wait 10", "leave"])
      const ids = idsIn((yield* caller.results(session_id)).json)
      expect(new Set(ids).size).toBe(2)
      for (const id of ids) {
        const { status, contentType, text } = yield* caller.call("GET", caller.attachmentUrl(session_id, id))
        expect([status, contentType, text.slice(0, 8)]).toEqual([200, "application/pdf", "%PDF-1.4"])
        const stranger = yield* caller.call("GET", caller.attachmentUrl(session_id, id), {
          secret: "sandbox-app-2",
        })
        expect(stranger.status).toBe(404)
      }
      const university = "university queue-0+run-1+records-4+attach-2"
      const other = yield* walked("", ["start", "consent", words, university, "wait 20", "leave"])
      const others = idsIn((yield* caller.results(other.session_id)).json)
      expect(new Set(others).size).toBe(4)
      for (const id of ["nobody", ...ids]) {
        expect((yield* caller.call("GET", caller.attachmentUrl(other.session_id, id))).status).toBe(404)
      }
    },
  )

  told("a cancelled session keeps what its sources had returned by then, for good", function* () {
    const { caller, session_id } = yield* walked("", ["start", "consent", slow, "wait 50"])
    const before = yield* caller.results(session_id)
    yield* walk(session_id, ["wait 5", "client-cancel"])
    const at = yield* caller.results(session_id)
    yield* TestClock.adjust("1 hour")
    const after = yield* caller.results(session_id)
    expect(recordTexts(before).length).toBeGreaterThan(0)
    expect(recordTexts(at).slice(0, recordTexts(before).length)).toEqual(recordTexts(before))
    expect(after.text).toBe(at.text)
  })

  told("steps that a session does not allow are conflicts and change nothing", function* () {
    const rows: ReadonlyArray<readonly [string, ReadonlyArray<string>, string, string]> = [
      ["", [], "consent", "the session was not started yet"],
      ["", [], "connect", "the session was not started yet"],
      ["", [], "leave", "the session was not started yet"],
      ["", [], "cancel", "the session was not started yet"],
      ["", ["start"], "start", "the session was started already"],
      ["", ["start"], "connect", "the consent was not given yet"],
      ["", ["start"], "answer", "no source asks for anything"],
      ["", ["start", "consent"], "consent", "the consent was given already"],
      ["noconsent", ["start"], "consent", "this session asks for no consent"],
      ["", ["start", "consent", slow], "connect", "this source is being read already"],
      ["", ["start", "consent", slow, "leave"], "leave", "the customer has left the widget"],
      ["", ["start", "consent", slow, "leave"], "cancel", "the customer has left the widget"],
      ["", ["start", "consent", slow, "leave"], "connect", "the customer has left the widget"],
      ["", ["start", "cancel"], "client-cancel", "the session is over"],
      ["", ["client-cancel"], "start", "the session is over"],
      ["", ["start", "wait 1800"], "consent", "the session is over"],
    ]
    for (const [words, steps, name, detail] of rows) {
      const { caller, session_id } = yield* walked(words, steps)
      const before = yield* caller.viewSession(session_id)
      const body = name === "connect" ? connection("ok") : name === "answer" ? { code: "1" } : {}
      const bodyless = ["leave", "cancel", "client-cancel"].includes(name)
      const refused = yield* caller.step(session_id, name, bodyless ? undefined : body)
      expect([steps, name, refused.status, refused.json]).toEqual([steps, name, 409, { detail }])
      const after = yield* caller.viewSession(session_id)
      expect(after.text).toBe(before.text)
      // Another source could be connected all the same.
      if (!detail.startsWith("this source")) expect(field(after, "steps")).not.toContain(name)
    }
  })

  told("a step that does not fit the session is invalid, and no answer repeats a parameter", function* () {
    const { caller, session_id } = yield* walked("", ["start"], { features: ["properties_data"] })
    const loc = (answer: unknown) => field(answer, "detail", 0, "loc")
    const consents: ReadonlyArray<readonly [object, ReadonlyArray<unknown>]> = [
      [{ features: ["academic_data"] }, ["body", "features"]],
      [{ features: ["nothing_read"] }, ["body", "features", 0]],
      [{ documents: ["terms-es"] }, ["body", "documents"]],
      [{ documents: ["terms-es", "privacy-es", "more"] }, ["body", "documents"]],
      [{ documents: ["terms-es", "terms-es"] }, ["body", "documents"]],
    ]
    for (const [body, place] of consents) {
      const answer = yield* caller.step(session_id, "consent", body)
      expect([body, answer.status, loc(answer)]).toEqual([body, 422, place])
    }
    yield* walk(session_id, ["consent"])
    const connects: ReadonlyArray<readonly [object, ReadonlyArray<unknown>]> = [
      [connection("ok", "nobody:website"), ["body", "engine_reference"]],
      [{ engine_reference: taxes, parameters: { username: "hunter2" } }, ["body", "parameters", "password"]],
      [{ ...connection("ok"), features: ["academic_data"] }, ["body", "features"]],
      [{ engine_reference: taxes }, ["body", "parameters"]],
      [connection("rsa::hunter2"), ["body", "parameters", "username"]],
    ]
    for (const [body, place] of connects) {
      const answer = yield* caller.step(session_id, "connect", body)
      expect([body, answer.status, loc(answer)]).toEqual([body, 422, place])
      expect(answer.text).not.toContain("hunter2")
    }
    const closed = yield* caller.step(session_id, "connect", connection("ok", "sandbox-maintenance:website"))
    expect([closed.status, closed.json]).toEqual([409, { detail: "engine in maintenance" }])
    expect((yield* caller.createSession({ features: ["nothing_read"] })).status).toBe(422)
    expect((yield* caller.step("nobody", "start", {})).status).toBe(404)
  })

  told(
    "a source in the widget may ask for a second factor; after a wrong code it asks again, after the right one it continues",
    function* () {
      const words = "connect queue-0+run-10+records-2+challenge-4711"
      const { caller, session_id } = yield* walked("", ["start", "consent", words, "wait 5"])
      const asking = yield* caller.viewSession(session_id)
      shows(asking, {
        "sources.0.status_reason": "MFA_REQUIRED",
        steps: ["connect", "answer", "leave", "cancel", "client-cancel"],
      })
      yield* walk(session_id, ["answer 1", "wait 1"])
      expect(field(yield* caller.viewSession(session_id), "sources", 0, "status_reason")).toBe("MFA_REQUIRED")
      yield* walk(session_id, ["answer 4711", "wait 1"])
      expect(field(yield* caller.viewSession(session_id), "session_cursor")).toBe(
        "es-public-administration:connect:wait",
      )
      yield* walk(session_id, ["wait 20", "leave"])
      const results = yield* caller.results(session_id)
      expect([field(results, "session_status"), recordTexts(results).length]).toEqual(["COMPLETED", 2])
    },
  )

  told("no call of the widget is answered without the application secret", function* () {
    const { caller, session_id } = yield* walked("", ["start"])
    const steps = ["start", "consent", "connect", "answer", "leave", "cancel", "client-cancel"]
    const calls = [
      ["POST", caller.widgetUrl()],
      ["GET", caller.widgetUrl(session_id)],
      ...steps.map((step) => ["POST", caller.widgetUrl(session_id, step)] as const),
    ] as const
    for (const [method, url] of calls) {
      const missing = yield* caller.call(method, url, { secret: undefined })
      const wrong = yield* caller.call(method, url, { secret: "nobody" })
      expect([url, missing.status, wrong.status]).toEqual([url, 401, 403])
    }
  })
}

ofTheService("flow sessions", sessionSuite, nightStart)
