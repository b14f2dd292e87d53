/** Who is told of which events: the reference's flow subscriptions (2.8, 4.11) and the service's own ones. */
import { expect } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { FlowHook } from "../../../src/service/Execution.ts"
import { engineEvents, flowEvents } from "../../../src/service/Vocabulary.ts"
import { itemsOf, ofTheService, type Caller } from "../server/Caller.ts"

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

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
/** Status and body of a call. */
const ask =
  (caller: Caller["Service"], method: Method, url: string) =>
  (body?: unknown, secret = "sandbox-app-1") =>
    Effect.map(caller.call(method, url, { body, secret }), (answer): readonly [number, unknown] => [
      answer.status,
      answer.json,
    ])

/** The calls of section 4.11. */
const flowCalls = (caller: Caller["Service"]) => ({
  list: ask(caller, "GET", `${caller.flows_url}/hooks/list`),
  create: ask(caller, "POST", `${caller.flows_url}/hooks/create`),
  update: ask(caller, "PATCH", `${caller.flows_url}/hooks/update`),
  remove: ask(caller, "DELETE", `${caller.flows_url}/hooks/delete`),
})

const what = ([status, json]: readonly [number, unknown] = [0, []]) => [
  status,
  itemsOf(json, "detail").map((item) => itemsOf(item, "loc").join(".")),
]

ofTheService("subscriptions to flow events", (it) => {
  it("[createFlowHooks 200] [listFlowHooks 200] [field subscription.app_id] [field subscription.producer] [field subscription.event] [field subscription.enabled] [field subscription.base_url] [field hook-change.events] a plural `events` makes one subscription each, listed singular and without query parameters", function* (caller) {
    const { list, create } = flowCalls(caller)
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
  })

  it("[createFlowHooks 422] [updateFlowHooks 422] [deleteFlowHooks 422] an invalid event, URL or flag is named, and nothing changes", function* (caller) {
    const { list, create, update, remove } = flowCalls(caller)
    const base_url = "https://a.invalid/"
    yield* create({ events: [ended], base_url })
    const answers = []
    for (const [call, ...places] of [
      [create({ events: [consent, "ended"], base_url: "ftp://a.invalid/" }), "events.1", "base_url"],
      [create({ events: [consent], base_url: "https://user:word@a.invalid/" }), "base_url"],
      [create({ events: [consent] }), "base_url"],
      [create({ events: [], base_url, enabled: "yes" }), "events", "enabled"],
      [create({ event: consent, base_url }), "events"],
      [create({ events: consent, base_url }), "events"],
      [
        update({ events: [ended, "?"], base_url: "no address", enabled: 1 }),
        "events.1",
        "base_url",
        "enabled",
      ],
      [update({}), "events"],
      [remove({ events: [ended, "nothing"] }), "events.1"],
      [remove({ events: [] }), "events"],
      [remove({ events: 1 }), "events"],
    ] as const) {
      answers.push(yield* call)
      expect(what(answers.at(-1))).toEqual([422, places.map((place) => `body.${place}`)])
    }
    expect(JSON.stringify(answers)).not.toContain("word")
    expect(yield* list()).toEqual([200, [flowHook(ended, base_url)]])
  })

  it("[updateFlowHooks 200] [updateFlowHooks 404] an update changes only what it names; all of its events must exist", function* (caller) {
    const { list, create, update } = flowCalls(caller)
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
  })

  it("[deleteFlowHooks 204] [deleteFlowHooks 404] a deletion removes all of its events or none", function* (caller) {
    const { list, create, remove } = flowCalls(caller)
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
  })
})

ofTheService("subscriptions to execution events", (it) => {
  it("execution events are bound to targets for an application, one each, replaced by the next and removed", function* (caller) {
    const call = (method: Method, more = "", body?: unknown, secret?: string) =>
      ask(caller, method, caller.hooksUrl + more)(body, secret)
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
  })

  it("an invalid target and an invalid event are refused, and so is a caller without a secret", function* (caller) {
    const call = (method: Method, more = "", body?: unknown, secret?: string) =>
      ask(caller, method, caller.hooksUrl + more)(body, secret)
    const target = { url: "https://a.invalid/" }
    for (const [refused, place] of [
      [call("PUT", "", { url: "file:///etc/passwd" }), "body.url"],
      [call("PUT", "", { ...target, events: ["ended", ended] }), "body.events.1"],
      [call("PUT", "", { ...target, events: [] }), "body.events"],
      [call("PUT", "", { ...target, order: "late" }), "body.order"],
      [call("DELETE", "?events=nothing"), "query.events.0"],
    ] as const)
      expect(what(yield* refused)).toEqual([422, [place]])
    expect((yield* call("GET", "", undefined, "wrong"))[0]).toBe(403)
  })
})
