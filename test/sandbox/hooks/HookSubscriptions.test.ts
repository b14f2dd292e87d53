/** Who is told of which events: the reference's flow subscriptions (2.8, 4.11) and the service's own ones. */
import { expect } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FlowHook } from "../../../src/service/Execution.ts"
import { engineEvents, flowEvents } from "../../../src/service/Vocabulary.ts"
import { Caller, field, ofTheService, type Told } from "../server/Caller.ts"

const app_id = "65f0c0ffee00000000000001"
const [started, consent, partial, ended] = flowEvents
const decodeHooks = Schema.decodeUnknownSync(Schema.Array(FlowHook))

const flowHook = (event: string, base_url: string, enabled = true) => ({
  app_id,
  producer: "es-public-administration",
  event,
  enabled,
  base_url,
})

/** One call of section 4.11 after the other; answers are status and body. */
const flowCalls = Effect.gen(function* () {
  const caller = yield* Caller
  const call =
    (method: "GET" | "POST" | "PATCH" | "DELETE", path: string) =>
    (body?: unknown, secret = "sandbox-app-1") =>
      Effect.map(
        caller.call(
          method,
          `${caller.flows_url}/hooks/${path}`,
          body === undefined ? { secret } : { body, secret },
        ),
        (answer): readonly [number, unknown] => [answer.status, answer.json],
      )
  return {
    list: call("GET", "list"),
    create: call("POST", "create"),
    update: call("PATCH", "update"),
    remove: call("DELETE", "delete"),
  }
})

const ownCalls = Effect.gen(function* () {
  const caller = yield* Caller
  const url = caller.hooksUrl
  return (method: "GET" | "PUT" | "DELETE", more = "", body?: unknown, secret = "sandbox-app-1") =>
    Effect.map(
      caller.call(method, url + more, body === undefined ? { secret } : { body, secret }),
      (answer): readonly [number, unknown] => [answer.status, answer.json],
    )
})

const what = ([status, json]: readonly [number, unknown]) => [
  status,
  (field(json, "detail") as ReadonlyArray<unknown> | undefined)?.map((item) => field(item, "loc")),
]

const flowSubscriptions = (told: Told) => {
  told(
    "[createFlowHooks 200] [listFlowHooks 200] [field subscription.app_id] [field subscription.producer] [field subscription.event] [field subscription.enabled] [field subscription.base_url] [field hook-change.events] a plural `events` makes one subscription each, listed singular and without query parameters",
    function* () {
      const { list, create } = yield* flowCalls
      expect(yield* list()).toEqual([200, []])
      const made = yield* create({ events: [ended, partial], base_url: "https://a.invalid/x?token=1#y" })
      expect(made).toEqual([
        200,
        [flowHook(ended, "https://a.invalid/x"), flowHook(partial, "https://a.invalid/x")],
      ])
      yield* create({ events: [started, started], base_url: "http://127.0.0.1:99", enabled: false })
      const listed = yield* list()
      expect(listed).toEqual([
        200,
        [
          flowHook(started, "http://127.0.0.1:99/", false),
          flowHook(partial, "https://a.invalid/x"),
          flowHook(ended, "https://a.invalid/x"),
        ],
      ])
      expect(decodeHooks(listed[1])).toEqual(listed[1])
      expect(yield* list(undefined, "sandbox-app-2")).toEqual([200, []])
    },
  )

  told(
    "[createFlowHooks 422] [updateFlowHooks 422] [deleteFlowHooks 422] an invalid event, URL or flag is named, and nothing changes",
    function* () {
      const { list, create, update, remove } = yield* flowCalls
      const base_url = "https://a.invalid/"
      yield* create({ events: [ended], base_url })
      const answers = [
        yield* create({ events: [consent, "ended"], base_url: "ftp://a.invalid/" }),
        yield* create({ events: [consent], base_url: "https://user:word@a.invalid/" }),
        yield* create({ events: [consent] }),
        yield* create({ events: [], base_url, enabled: "yes" }),
        yield* create({ event: consent, base_url }),
        yield* create({ events: consent, base_url }),
        yield* update({ events: [ended, "?"], base_url: "no address", enabled: 1 }),
        yield* update({}),
        yield* remove({ events: [ended, "nothing"] }),
        yield* remove({ events: [] }),
        yield* remove({ events: 1 }),
      ]
      const body = (...loc: ReadonlyArray<string | number>) => ["body", ...loc]
      expect(answers.map(what)).toEqual([
        [422, [body("events", 1), body("base_url")]],
        [422, [body("base_url")]],
        [422, [body("base_url")]],
        [422, [body("events"), body("enabled")]],
        [422, [body("events")]],
        [422, [body("events")]],
        [422, [body("events", 1), body("base_url"), body("enabled")]],
        [422, [body("events")]],
        [422, [body("events", 1)]],
        [422, [body("events")]],
        [422, [body("events")]],
      ])
      expect(JSON.stringify(answers)).not.toContain("word")
      expect(yield* list()).toEqual([200, [flowHook(ended, base_url)]])
    },
  )

  told(
    "[updateFlowHooks 200] [updateFlowHooks 404] an update changes only what it names; all of its events must exist",
    function* () {
      const { list, create, update } = yield* flowCalls
      yield* create({ events: [consent, ended], base_url: "https://a.invalid/" })
      expect(yield* update({ events: [ended], enabled: false })).toEqual([
        200,
        [flowHook(ended, "https://a.invalid/", false)],
      ])
      expect(yield* update({ events: [ended, consent], base_url: "https://b.invalid/?q" })).toEqual([
        200,
        [flowHook(ended, "https://b.invalid/", false), flowHook(consent, "https://b.invalid/")],
      ])
      const missing = { detail: "no such subscription" }
      expect(yield* update({ events: [ended, started], enabled: true })).toEqual([404, missing])
      expect(yield* update({ events: [ended], enabled: true }, "sandbox-app-2")).toEqual([404, missing])
      expect(yield* list()).toEqual([
        200,
        [flowHook(consent, "https://b.invalid/"), flowHook(ended, "https://b.invalid/", false)],
      ])
    },
  )

  told(
    "[deleteFlowHooks 204] [deleteFlowHooks 404] a deletion removes all of its events or none",
    function* () {
      const { list, create, remove } = yield* flowCalls
      yield* create({ events: [...flowEvents], base_url: "https://a.invalid/" })
      const statuses = [
        yield* remove({ events: [consent, started] }),
        yield* remove({ events: [consent, ended] }),
        yield* remove({ events: [ended] }, "sandbox-app-2"),
      ]
      expect(statuses.map(([status]) => status)).toEqual([204, 404, 404])
      expect(yield* list()).toEqual([
        200,
        [flowHook(partial, "https://a.invalid/"), flowHook(ended, "https://a.invalid/")],
      ])
    },
  )
}

const ownSubscriptions = (told: Told) => {
  told(
    "execution events are bound to targets for an application, one each, replaced by the next and removed",
    function* () {
      const call = yield* ownCalls
      const url = "https://a.invalid/in?token=1"
      const timely = { order: "timely", duplicates: false }
      expect(yield* call("PUT", "", { url })).toEqual([
        200,
        engineEvents.map((event) => ({ event, url, ...timely })),
      ])
      const other = { url: "https://b.invalid/", order: "shuffled", duplicates: true }
      yield* call("PUT", "", { ...other, events: ["ended"] })
      expect(yield* call("DELETE", "?events=started&events=auth_ended")).toEqual([204, undefined])
      expect((yield* call("DELETE", "?events=started"))[0]).toBe(404)
      expect(yield* call("GET")).toEqual([
        200,
        [
          { event: "action_required", url, ...timely },
          { event: "ended", ...other },
        ],
      ])
      expect(yield* call("GET", "", undefined, "sandbox-app-2")).toEqual([200, []])
      expect((yield* call("DELETE"))[0]).toBe(204)
      expect(yield* call("GET")).toEqual([200, []])
      expect((yield* call("DELETE"))[0]).toBe(204)
    },
  )

  told(
    "an invalid target and an invalid event are refused, and so is a caller without a secret",
    function* () {
      const call = yield* ownCalls
      const answers = [
        yield* call("PUT", "", { url: "file:///etc/passwd" }),
        yield* call("PUT", "", { url: "https://a.invalid/", events: ["ended", ended] }),
        yield* call("PUT", "", { url: "https://a.invalid/", events: [] }),
        yield* call("PUT", "", { url: "https://a.invalid/", order: "late" }),
        yield* call("DELETE", "?events=nothing"),
      ]
      expect(answers.map(what)).toEqual([
        [422, [["body", "url"]]],
        [422, [["body", "events", 1]]],
        [422, [["body", "events"]]],
        [422, [["body", "order"]]],
        [422, [["query", "events", 0]]],
      ])
      expect((yield* call("GET", "", undefined, "wrong"))[0]).toBe(403)
    },
  )
}

ofTheService("subscriptions to flow events", flowSubscriptions)
ofTheService("subscriptions to execution events", ownSubscriptions)
