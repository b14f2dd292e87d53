/**
 * Flow events of the sessions behind executions (section 6.2): those of the public administration, which nobody
 * walks through a widget.
 */
import { Effect, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { FlowEvent } from "../../../src/service/Execution.ts"
import { flowEvents } from "../../../src/service/Vocabulary.ts"
import type { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, field, textField } from "../server/Caller.ts"
import { HookTarget, inVirtualTime, pass, served, webhookUrl } from "./HookTarget.ts"
import type { Received } from "./HookTarget.ts"

const [started, , , ended] = flowEvents
const decodeEvent = Schema.decodeUnknownSync(FlowEvent)
const flowOnly = { webhooks: [{ url: webhookUrl, events: flowEvents }] }
const run = (body: Effect.Effect<void, never, Caller | HookTarget | Sandbox>) =>
  inVirtualTime(served(body, flowOnly))
const taxes = {
  engine_reference: "sandbox-tax:website",
  features: ["customer_information_read", "properties_data"],
}

const seen = ({ at, body }: Received) => [at / 1000, field(body, "event"), field(body, "session_status")]
const told = (words: string, more: Readonly<Record<string, unknown>> = taxes) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const { news } = yield* HookTarget
    const answer = yield* caller.start(`queue-10+run-20+${words}`, more)
    yield* pass(3600)
    return { caller, answer, news: news() }
  })

describe("flow events of the session of an execution", () => {
  it("are `started` when the source lets the customer in, and `ended` with the final results", () =>
    run(
      Effect.gen(function* () {
        const { caller, answer, news } = yield* told("records-4+late-60", {
          ...taxes,
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
          app_id: "65f0c0ffee00000000000001",
          session_id,
          customer_id: "c-1",
          event: ended,
          event_class: "FlowEvent",
          producer: "es-public-administration",
          date: "1970-01-01T00:01:30.000Z",
          session_status: "COMPLETED",
          results: results.json,
        })
        expect(field(news[0]?.body, "results")).toBeUndefined()
        for (const { body } of news) decodeEvent(body)
      }),
    ))

  it.each([
    ["end-BLOCKED_USER", taxes, []],
    ["noflow", taxes, []],
    ["unstarted", taxes, []],
    ["neverfinal", taxes, [started]],
    ["end-TIMEOUT", taxes, [started, ended]],
    ["ok", { engine_reference: "sandbox-bank:website" }, []],
  ] as const)("of a run with %s on %j are %j", (words, more, expected) =>
    run(
      Effect.gen(function* () {
        const { news } = yield* told(words, more)
        expect(news.map(({ body }) => field(body, "event"))).toEqual(expected)
      }),
    ),
  )

  it("come after an abort as after any end, and not after a deletion", () =>
    run(
      Effect.gen(function* () {
        const caller = yield* Caller
        const { news } = yield* HookTarget
        const id = textField(yield* caller.start("queue-10+run-20+late-60", taxes), "execution_id")
        yield* pass(15)
        yield* caller.abort(id)
        yield* pass(100)
        expect(news().map(seen)).toEqual([
          [12, started, "WAITING"],
          [75, ended, "CLIENT_CANCELLED"],
        ])
        const other = yield* caller.start("queue-0+run-0+late-60", { ...taxes, customer_id: "c-2" })
        yield* pass(5)
        yield* caller.remove(textField(other, "execution_id"))
        yield* pass(100)
        expect(news().map(({ body }) => field(body, "event"))).toEqual([started])
      }),
    ))
})
