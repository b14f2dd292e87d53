/**
 * What the catalogue, the flow API and the gate do (sections 4.8 to 4.10, 5 and 7), against every way to
 * reach them.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, field, inProcess, textField } from "../server/Caller.ts"
import type { Answer } from "../server/Caller.ts"

/** Every object with `product` and `sub_family`, wherever it stands. */
const recordsIn = (value: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  if (typeof value !== "object" || value === null) return []
  const inner = Object.values(value).flatMap(recordsIn)
  return "product" in value && "sub_family" in value ? [{ ...value }, ...inner] : inner
}
const counted = (answer: Answer): Readonly<Record<string, number>> =>
  recordsIn(field(answer, "data")).reduce<Record<string, number>>((counts, record) => {
    const key = `${record["sub_family"]}@${record["product"]}`
    return { ...counts, [key]: (counts[key] ?? 0) + 1 }
  }, {})

const withoutFetchDates = (answer: Answer) =>
  recordsIn(field(answer, "data")).map(({ fetch_date: _fetched, ...record }) => record)

export const flowSuite = () => {
  const told = (title: string, body: Effect.Effect<void, never, Caller | Sandbox>) =>
    it.effect(title, () => body.pipe(Effect.provide(inProcess({ seed: 7 }))))

  const finished = (words: string, more: Readonly<Record<string, unknown>> = {}) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start(`queue-0+run-0+${words}`, more)
      const session_id = textField(started, "session_id")
      return { caller, session_id, execution_id: textField(started, "execution_id") }
    })

  told(
    "[field results.session_status] [field results.session_cursor] " +
      "the results hold every counted record, the consent and the session's own state",
    Effect.gen(function* () {
      const { caller, session_id, execution_id } = yield* finished("records-9+odd", {
        engine_reference: "sandbox-tax:website",
        features: ["academic_data", "customer_information_read", "vehicles_data"],
      })
      const results = yield* caller.results(session_id)
      const state = yield* caller.read(execution_id)
      expect(results.status).toBe(200)
      expect(counted(results)).toEqual(field(state, "products_count"))
      expect(Object.values(counted(results)).reduce((a, b) => a + b)).toBe(12)
      expect(results.text).toContain('"serial":9007199254740993')
      expect(
        ["retrieved_features", "is_closed", "session_status", "session_cursor"].map((name) =>
          field(results, name),
        ),
      ).toEqual([
        ["academic_data", "customer_information_read", "vehicles_data"],
        true,
        "COMPLETED",
        "es-public-administration:bye:completed",
      ])
      expect(Object.keys(Object(field(results, "consent", "accepted_documents")))).toEqual([
        "terms-es",
        "privacy-es",
      ])
      const broken = yield* finished("end-TIMEOUT+records-6", { customer_id: "c-broken" })
      const partial = yield* caller.results(broken.session_id)
      expect(["session_status", "session_cursor"].map((name) => field(partial, name))).toEqual([
        "TIMED_OUT",
        "es-public-administration:bye:failure",
      ])
    }),
  )

  told(
    "another run of the same customer and engine gives the same records, whatever came before",
    Effect.gen(function* () {
      const first = yield* finished("end-TIMEOUT+records-6")
      yield* TestClock.adjust("1 day")
      const second = yield* finished("records-6")
      yield* TestClock.adjust("1 day")
      const third = yield* finished("records-6")
      const [b, c] = yield* Effect.all([
        second.caller.results(second.session_id),
        third.caller.results(third.session_id),
      ])
      expect(withoutFetchDates(b)).toEqual(withoutFetchDates(c))
      const broken = yield* first.caller.results(first.session_id)
      expect(withoutFetchDates(broken)).toEqual(withoutFetchDates(b).slice(0, 3))
    }),
  )

  told(
    "the session answers 412 before the login, 429 within five seconds, 404 to strangers, 422 to no id",
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start("queue-10+run-10")
      const session_id = textField(started, "session_id")
      const statuses = [(yield* caller.results(session_id)).status]
      for (const seconds of [15, 4, 1]) {
        yield* TestClock.adjust(seconds * 1000)
        statuses.push((yield* caller.results(session_id)).status)
      }
      expect(statuses).toEqual([412, 200, 429, 200])
      const stranger = yield* caller.call("GET", caller.resultsUrl(session_id), { secret: "sandbox-app-2" })
      const unknown = yield* caller.results("65f0c0ffee65f0c0ffee65f0")
      const noId = yield* caller.results("nobody")
      expect([stranger.status, unknown.status, noId.status]).toEqual([404, 404, 422])
      const refused = yield* finished("end-BLOCKED_USER", { customer_id: "c-2" })
      expect((yield* caller.results(refused.session_id)).status).toBe(412)
    }),
  )

  told(
    "results are partial while the run works, and `late` words keep them partial after it closes",
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start("queue-0+run-100+records-10+late-60")
      const session_id = textField(started, "session_id")
      const seen: Array<unknown> = []
      const bodies: Array<Answer> = []
      for (const seconds of [55, 45, 60]) {
        yield* TestClock.adjust(seconds * 1000)
        const results = yield* caller.results(session_id)
        bodies.push(results)
        seen.push([field(results, "is_closed"), recordsIn(field(results, "data")).length])
      }
      expect(seen).toEqual([
        [false, 5],
        [false, 10],
        [true, 10],
      ])
      const [, partial, final] = bodies.map((body) =>
        withoutFetchDates(body).map((record) => JSON.stringify(record)),
      )
      expect(partial?.filter((record) => !final?.includes(record)).length).toBe(1)
      expect(final?.filter((record) => !partial?.includes(record)).length).toBe(1)
    }),
  )

  told(
    "words hide a session, leave it unstarted, lock it or never finish it",
    Effect.gen(function* () {
      const caller = yield* Caller
      const statuses = []
      for (const words of ["noflow", "unstarted", "locked-9", "neverfinal"]) {
        const { session_id } = yield* finished(words, { customer_id: words })
        const results = yield* caller.results(session_id)
        statuses.push([results.status, field(results, "is_closed")])
      }
      expect(statuses).toEqual([
        [404, undefined],
        [412, undefined],
        [504, undefined],
        [200, false],
      ])
    }),
  )

  told(
    "[attachment-rule 1] documents are referenced in the results and can be downloaded until the execution is deleted",
    Effect.gen(function* () {
      const { caller, session_id, execution_id } = yield* finished("attach-2+records-3")
      const results = yield* caller.results(session_id)
      const ids = [
        textField(results, "data", "documents", 0, "attachment_id"),
        textField(results, "data", "cards", 0, "report_attachments", 0),
      ]
      const download = (id: string) => caller.call("GET", caller.attachmentUrl(session_id, id))
      const documents = yield* Effect.forEach(ids, download)
      expect(
        documents.map(({ status, contentType, text }) => [status, contentType, text.slice(0, 8)]),
      ).toEqual([
        [200, "application/pdf", "%PDF-1.4"],
        [200, "application/pdf", "%PDF-1.4"],
      ])
      expect((yield* download("nobody")).status).toBe(404)
      yield* caller.remove(execution_id)
      expect((yield* download(ids[0] ?? "")).status).toBe(404)
    }),
  )

  told(
    "the profile endpoint shows the customer's profile, or 404 if none was read",
    Effect.gen(function* () {
      const { caller, session_id, execution_id } = yield* finished("ok")
      const profile = yield* caller.call("GET", caller.profileUrl(execution_id))
      const results = yield* caller.results(session_id)
      expect(field(profile, "profile")).toEqual(field(results, "data", "customer_information", 0))
      const without = yield* finished("ok", { customer_id: "c-2", features: ["accounts_read"] })
      expect((yield* caller.call("GET", caller.profileUrl(without.execution_id))).status).toBe(404)
    }),
  )

  told(
    "no endpoint answers without the application secret, and none shows another application's execution",
    Effect.gen(function* () {
      const { caller, session_id, execution_id } = yield* finished("attach-1")
      const endpoints = [
        ["POST", caller.startUrl],
        ["GET", caller.executionUrl(execution_id)],
        ["HEAD", caller.executionUrl(execution_id)],
        ["PUT", caller.executionUrl(execution_id)],
        ["DELETE", `${caller.executionUrl(execution_id)}/abort`],
        ["DELETE", `${caller.executionUrl(execution_id)}/delete`],
        ["GET", caller.profileUrl(execution_id)],
        ["GET", caller.resultsUrl(session_id)],
        ["GET", caller.attachmentUrl(session_id, "x")],
        ["GET", `${caller.base_url}/config/engines/list`],
        ["GET", `${caller.base_url}/config/engines/sandbox-bank:website`],
      ] as const
      for (const [method, url] of endpoints) {
        const missing = yield* caller.call(method, url, { secret: undefined })
        const wrong = yield* caller.call(method, url, { secret: "sandbox-app-9" })
        expect([method, url, missing.status, wrong.status]).toEqual([method, url, 401, 403])
      }
      const body = { code: "1" }
      for (const [method, url] of endpoints.slice(1, 9)) {
        const stranger = yield* caller.call(method, url, {
          secret: "sandbox-app-2",
          ...(method === "PUT" ? { body } : {}),
        })
        expect([method, url, stranger.status]).toEqual([method, url, 404])
      }
    }),
  )

  told(
    "the catalogue is filtered by its own vocabulary and shows only what can run",
    Effect.gen(function* () {
      const caller = yield* Caller
      const list = (query: string) =>
        Effect.map(caller.call("GET", `${caller.base_url}/config/engines/list${query}`), (answer) =>
          Array.isArray(answer.json)
            ? answer.json.map((engine: unknown) => field(engine, "reference"))
            : answer.status,
        )
      expect(yield* list("?main_category=cloud")).toEqual(["cloud-hosting:api"])
      expect(yield* list("?features=academic_data&features=customer_information_read")).toEqual([
        "sandbox-tax:website",
        "es-university:website",
      ])
      expect(yield* list("?features=driver_data&features=cloud_resource_read&features_mode=or")).toEqual([
        "sandbox-tax:website",
        "es-traffic:website",
        "cloud-hosting:api",
      ])
      expect(yield* list("?markets=CO&markets=PT")).toEqual(["sandbox-bank:website", "cloud-hosting:api"])
      expect(yield* list("?is_online=false")).toEqual([])
      expect(yield* list("")).not.toContain("sandbox-maintenance:website")
      const wrong = yield* caller.call(
        "GET",
        `${caller.base_url}/config/engines/list?features=x&main_category=y`,
      )
      expect([wrong.status, field(wrong, "detail", 0, "loc"), field(wrong, "detail", 1, "loc")]).toEqual([
        422,
        ["query", "features", 0],
        ["query", "main_category", 0],
      ])
      const show = (reference: string) =>
        Effect.map(
          caller.call("GET", `${caller.base_url}/config/engines/${reference}`),
          ({ status }) => status,
        )
      expect([
        yield* show("sandbox-bank:website"),
        yield* show("sandbox-bank:mobile"),
        yield* show("sandbox-maintenance:website"),
        yield* show("sandbox-bank"),
        yield* show("%20:%2F"),
      ]).toEqual([200, 404, 503, 422, 422])
    }),
  )
}
