/** Which events a flow session raises, and what their webhooks carry (section 6.2). */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { standingSessionId } from "../../../src/sandbox/flows/StandingSessions.ts"
import { flowEvents } from "../../../src/service/Vocabulary.ts"
import { recordsIn } from "../flows/FlowWalk.ts"
import { HookTarget, pass, webhookUrl, run, type Received } from "./HookTarget.ts"
import { Caller, field, textField } from "../server/Caller.ts"

const [started, consent, partial, ended] = flowEvents
const none = { webhooks: [] }

const taxes = {
  engine_reference: "sandbox-tax:website",
  parameters: { username: "queue-0+run-60+records-10", password: "correct" },
}
/** What every event of a flow session says. */
const common = {
  app_id: "65f0c0ffee00000000000001",
  customer_id: "c-1",
  event_class: "FlowEvent",
  producer: "es-public-administration",
}

/** Seconds, event and session status of a delivery. */
const seen = ({ at, body }: Received) => [at / 1000, field(body, "event"), field(body, "session_status")]

describe("flow events", () => {
  it("[event es-public-administration:started] [event es-public-administration:consent] [event es-public-administration:partial] [event es-public-administration:ended] a customer who leaves while a source works gives all four, the results partial and then final", () =>
    run(function* (caller, target) {
      const created = yield* caller.createSession({ customer_id: "c-1" })
      const session_id = textField(created, "session_id")
      for (const [seconds, step, body] of [
        [10, "start", {}],
        [10, "consent", {}],
        [10, "connect", taxes],
        [30, "leave"],
      ] as const) {
        yield* pass(seconds)
        yield* caller.step(session_id, step, body)
      }
      yield* pass(3600)
      const news = target.news()
      expect(news.map(seen)).toEqual([
        [10, started, "READY"],
        [20, consent, "READY"],
        [60, partial, "WAITING"],
        [90, ended, "COMPLETED"],
      ])
      expect(news[0]?.body).toEqual({
        ...common,
        session_id,
        event: started,
        date: "1970-01-01T00:00:10.000Z",
        session_status: "READY",
      })
      const closed = news.map(({ body }) => field(body, "results", "is_closed"))
      expect(closed).toEqual([undefined, undefined, false, true])
      const [some = 0, all = 0] = news.slice(2).map(({ body }) => recordsIn(field(body, "results")).length)
      expect([some > 0, some < all]).toEqual([true, true])
      expect(field(news[3]?.body, "results")).toEqual((yield* caller.results(session_id)).json)
    }))

  it("a standing session tells what happens from its first look on, and nothing of before", () =>
    run(function* (caller, target) {
      yield* pass(10_000)
      yield* caller.viewSession(standingSessionId(1))
      yield* pass(3600)
      expect(target.news().map(({ body }) => field(body, "event"))).toEqual([ended])
    }))

  it("a subscription of the reference is told of its own events while it is enabled, without query parameters", () =>
    run(function* (caller, target) {
      const hooks = `${caller.flows_url}/hooks`
      const events = [started, ended]
      const base_url = "https://hooks.invalid/flow?secret=1"
      yield* caller.call("POST", `${hooks}/create`, { body: { events, base_url } })
      yield* caller.call("PATCH", `${hooks}/update`, { body: { events: [started], enabled: false } })
      const session_id = textField(yield* caller.createSession(), "session_id")
      yield* caller.step(session_id, "start", {})
      yield* pass(1)
      yield* caller.call("PATCH", `${hooks}/update`, { body: { events: [started], enabled: true } })
      yield* caller.step(session_id, "cancel")
      yield* caller.start("queue-0+run-0")
      yield* pass(3600)
      expect(target.news().map(({ url, body }) => [url, field(body, "event")])).toEqual([
        ["https://hooks.invalid/flow", ended],
      ])
    }, none))
})

// Flow events of the sessions behind executions (section 6.2): those of the public administration, which nobody
// walks through a widget.

const flowOnly = { webhooks: [{ url: webhookUrl, events: flowEvents }] }
const runFlowOnly = (steps: Parameters<typeof run<void>>[0]) => run(steps, flowOnly)
const atTaxes = {
  engine_reference: "sandbox-tax:website",
  features: ["customer_information_read", "properties_data"],
}

const told = (words: string, more: Readonly<Record<string, unknown>> = atTaxes) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const { news } = yield* HookTarget
    const answer = yield* caller.start(`queue-10+run-20+${words}`, more)
    yield* pass(3600)
    return { caller, answer, news: news() }
  })

describe("flow events of the session of an execution", () => {
  it("are `started` when the source lets the customer in, and `ended` with the final results", () =>
    runFlowOnly(function* () {
      const { caller, answer, news } = yield* told("records-4+late-60", {
        ...atTaxes,
        external_execution_id: "x-1",
        hooks_extra_data: { run: "{external_execution_id}", why: "{status_reason}" },
      })
      expect(news.map(seen)).toEqual([
        [12, started, "WAITING"],
        [90, ended, "COMPLETED"],
      ])
      const session_id = textField(answer, "session_id")
      const results = yield* caller.results(session_id)
      expect(news.map(({ url }) => new URL(url).search)).toEqual([
        "?run=x-1&why=WAITING",
        "?run=x-1&why=COMPLETED",
      ])
      expect(news[1]?.body).toEqual({
        ...common,
        session_id,
        event: ended,
        date: "1970-01-01T00:01:30.000Z",
        session_status: "COMPLETED",
        results: results.json,
      })
      expect(field(news[0]?.body, "results")).toBeUndefined()
    }))

  it.each([
    ["end-BLOCKED_USER", atTaxes, []],
    ["noflow", atTaxes, []],
    ["unstarted", atTaxes, []],
    ["neverfinal", atTaxes, [started]],
    ["end-TIMEOUT", atTaxes, [started, ended]],
    ["ok", { engine_reference: "sandbox-bank:website" }, []],
  ] as const)("of a run with %s on %j are %j", (words, more, expected) =>
    runFlowOnly(function* () {
      const { news } = yield* told(words, more)
      expect(news.map(({ body }) => field(body, "event"))).toEqual(expected)
    }),
  )

  it("come after an abort as after any end, and not after a deletion", () =>
    runFlowOnly(function* (caller, { news }) {
      const id = yield* caller.begin("queue-10+run-20+late-60", atTaxes)
      yield* pass(15)
      yield* caller.abort(id)
      yield* pass(100)
      expect(news().map(seen)).toEqual([
        [12, started, "WAITING"],
        [75, ended, "CLIENT_CANCELLED"],
      ])
      const other = yield* caller.begin("queue-0+run-0+late-60", { ...atTaxes, customer_id: "c-2" })
      yield* pass(5)
      yield* caller.remove(other)
      yield* pass(100)
      expect(news().map(({ body }) => field(body, "event"))).toEqual([started])
    }))
})
