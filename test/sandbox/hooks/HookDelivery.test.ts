/** How events are delivered: retries and their outcome, extra data, wrong order (sections 2.4, 4.1, 6). */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Sandbox, type SandboxOptions } from "../../../src/sandbox/server/Sandbox.ts"
import { endHook, pass, run as runWith, told, webhookUrl as url, type Received } from "./HookTarget.ts"
import { field, pick, textField } from "../server/Caller.ts"

const endsOnly = { webhooks: [{ url, events: ["ended"] }] }
const loginsOnly = { webhooks: [{ url, events: ["auth_ended"] }] }
const keyed = { webhooks: [{ url: `${url}?key=1#part`, events: ["ended"] }] }
const shuffled = { webhooks: [{ url, order: "shuffled" as const }] }
const twice = { webhooks: [{ url, events: ["ended"], duplicates: true }] }
const all = { webhooks: [{ url }] }
const none = { webhooks: [] }
const run = (steps: Parameters<typeof runWith<void>>[0], options: Partial<SandboxOptions> = endsOnly) =>
  runWith(steps, options)

/** What the state says of its end's delivery after each of these seconds. */
const hooksOf = (started: unknown, ...after: ReadonlyArray<readonly [seconds: number, hook: string]>) =>
  Effect.forEach(after, ([seconds, hook]) =>
    Effect.map(Effect.andThen(pass(seconds), endHook(started)), (seen) =>
      expect([seconds, seen]).toEqual([seconds, hook]),
    ),
  )

describe("deliveries", () => {
  it("[end_hook pending] [end_hook delivered] [field execution.end_hook] what is taken at the first try is pending until its end and then delivered", () =>
    run(function* (caller) {
      const started = yield* caller.start("queue-10+run-20")
      yield* hooksOf(started, [0.001, "pending"], [29, "pending"], [1, "delivered"])
    }))

  it("[end_hook skipped] no rule that is bound to `ended` means skipped, before and after the end", () =>
    run(function* (caller, target) {
      const started = yield* caller.start("queue-10+run-20")
      expect(yield* endHook(started)).toBe("skipped")
      yield* pass(60)
      expect(yield* endHook(started)).toBe("skipped")
      expect(target.news().map(told)).toEqual([[12, "auth_ended", "AUTH_OK"]])
    }, loginsOnly))

  it("[delivery-rule 3] a retried delivery arrives after later events of the same run", () =>
    run(function* (caller, target) {
      target.answerWith(500)
      yield* caller.start("queue-10+run-5")
      yield* pass(60)
      expect(target.news().map(told)).toEqual([
        [10, "started", "WAITING"],
        [10.5, "auth_ended", "AUTH_OK"],
        [15, "ended", "COMPLETED"],
        [20, "started", "WAITING"],
      ])
    }, all))

  it("[end_hook failed] [end_hook re_delivered] [delivery-rule 2] a refused delivery is tried again in the background, after events that came later", () =>
    run(function* (caller, target) {
      target.answerWith(500, 302)
      const first = yield* caller.start("queue-10+run-20")
      const second = yield* caller.start("queue-10+run-50", { customer_id: "c-2" })
      yield* pass(31)
      yield* hooksOf(first, [0.001, "failed"], [10, "failed"], [3600, "re_delivered"])
      expect(yield* endHook(second)).toBe("delivered")
      const seen = ({ at, body, headers }: Received) => [
        Math.round(at / 1000),
        ...pick(body, "customer_id", "date"),
        headers["x-nightjar-attempt"],
      ]
      expect(target.news().map(seen)).toEqual([
        [30, "c-1", "1970-01-01T00:00:30.000Z", "1"],
        [40, "c-1", "1970-01-01T00:00:30.000Z", "2"],
        [60, "c-2", "1970-01-01T00:01:00.000Z", "1"],
        [100, "c-1", "1970-01-01T00:00:30.000Z", "3"],
      ])
      expect(new Set(target.received.map(({ headers }) => headers["x-nightjar-delivery"])).size).toBe(2)
    }))

  it("[end_hook doubtful] an answer that is cut or does not come within ten seconds leaves open whether it arrived", () =>
    run(function* (caller, target) {
      target.answerWith("hang", "cut", "refused")
      const started = yield* caller.start("queue-0+run-0")
      yield* hooksOf(
        started,
        [9.999, "pending"],
        [0.001, "doubtful"],
        [10, "doubtful"],
        [60, "failed"],
        [300, "re_delivered"],
      )
    }))

  it("[end_hook torn] a 2xx that breaks off after its headers leaves it open, too", () =>
    run(function* (caller, target) {
      target.answerWith("torn")
      const started = yield* caller.start("queue-0+run-0")
      yield* hooksOf(started, [9, "doubtful"], [2, "re_delivered"])
    }))

  it("[end_hook ko] the sixth failure is the last: waits grow from ten seconds to two hours", () =>
    run(function* (caller, target) {
      target.answerWith(500, 404, 301, 429, 503, 400)
      const started = yield* caller.start("queue-0+run-0")
      yield* hooksOf(started, [9360, "failed"], [864000, "ko"])
      expect(target.news().map(({ at }) => at / 1000)).toEqual([0, 10, 70, 370, 2170, 9370])
      const { truth } = yield* Sandbox
      expect((yield* truth).deliveries).toEqual([
        {
          subject: field(started, "execution_id"),
          event: "ended",
          ordinal: 0,
          rule: "webhook-1",
          attempts: 6,
          outcome: "failed",
          at: 9_370_000,
          duplicates: 0,
        },
      ])
    }))

  it("[field start.hooks_extra_data] [delivery-rule 1] [delivery-rule 4] every pair comes as a query parameter of every delivery, the three variables replaced, all else verbatim", () =>
    run(function* (caller, target) {
      const hooks_extra_data = {
        run: "{external_execution_id}",
        event: "{event}",
        why: "{status_reason}",
        who: "{customer_id}",
        "a b&c": "x{event}y +ñ/?#",
        half: "\ud800",
      }
      yield* caller.start("queue-1+run-0", { hooks_extra_data, external_execution_id: "n 1/é" })
      yield* caller.start("queue-2+run-0+end-BLOCKED_USER", { hooks_extra_data, customer_id: "c-2" })
      yield* caller.start("queue-3+run-0", { customer_id: "c-3" })
      yield* pass(60)
      const rest = "who=%7Bcustomer_id%7D&a%20b%26c=x%7Bevent%7Dy%20%2B%C3%B1%2F%3F%23&half=%EF%BF%BD"
      expect(target.news().map((one) => one.url)).toEqual([
        `https://hooks.invalid/in?key=1&run=n%201%2F%C3%A9&event=ended&why=COMPLETED&${rest}`,
        `https://hooks.invalid/in?key=1&run=&event=ended&why=BLOCKED_USER&${rest}`,
        "https://hooks.invalid/in?key=1",
      ])
    }, keyed))

  it("[field start.hooks_extra_data] a start with a token takes extra data as any other", () =>
    run(function* (caller, target) {
      const first = yield* caller.startTicketed("queue-0+run-1")
      yield* pass(2)
      const { json } = yield* caller.exchange(textField(first, "execution_id"), textField(first, "ticket"))
      yield* caller.startTokenized(field(json, "token"), { hooks_extra_data: { t: "{event}" } })
      yield* pass(3600)
      expect(target.news().map((one) => one.url)).toEqual([url, `${url}?t=ended`])
    }))

  it("shuffled on request, deliveries come late by the seed, and later events before earlier ones", () =>
    run(function* (caller, target) {
      for (let n = 1; n <= 20; n += 1) yield* caller.start("queue-10+run-20", { customer_id: `c-${n}` })
      yield* pass(600)
      const late = target.received.map(({ at, body }) => at - Date.parse(textField(body, "date")))
      expect([late.length, late.every((ms) => ms >= 2_000 && ms <= 180_000)]).toEqual([60, true])
      const dates = target.received.map(({ body }) => Date.parse(textField(body, "date")))
      expect(dates.filter((date, index) => date < (dates[index - 1] ?? 0)).length).toBeGreaterThan(10)
    }, shuffled))

  it("on request about half of what was taken comes once more, the same in all but its time", () =>
    run(function* (caller, target) {
      for (let n = 1; n <= 40; n += 1) yield* caller.start("queue-10+run-20", { customer_id: `c-${n}` })
      const started = yield* caller.start("queue-10+run-20", { customer_id: "c-41" })
      yield* pass(600)
      const bodies = target.received.map(({ body }) => JSON.stringify(body))
      const twice = bodies.length - new Set(bodies).size
      expect([new Set(bodies).size, twice > 10 && twice < 31]).toEqual([41, true])
      expect(bodies.every((body) => bodies.filter((other) => other === body).length <= 2)).toBe(true)
      expect(yield* endHook(started)).toBe("delivered")
    }, twice))

  it("at most sixteen are under way at once, and one at a time for an execution", () =>
    run(function* (caller, target) {
      target.answerWith(...Array.from({ length: 40 }, () => "hang" as const))
      for (let n = 1; n <= 20; n += 1) yield* caller.start("queue-0+run-0", { customer_id: `c-${n}` })
      yield* pass(9)
      const first = target.news()
      yield* pass(1)
      expect(first.length).toBe(16)
      expect(new Set(first.map(({ body }) => field(body, "execution_id"))).size).toBe(16)
      expect(target.news().length).toBe(16)
    }, all))

  it("a rule that was removed and bound again repeats nothing of before", () =>
    run(function* (caller, target) {
      const hooks = caller.hooksUrl
      target.answerWith(500)
      yield* caller.call("PUT", hooks, { body: { url: "https://hooks.invalid/old" } })
      yield* caller.start("queue-0+run-0+end-OUT_OF_SERVICE")
      yield* pass(5)
      yield* caller.call("DELETE", hooks, {})
      yield* caller.call("PUT", hooks, { body: { url: "https://hooks.invalid/new" } })
      yield* pass(600)
      expect(new Set(target.news().map(({ url }) => url))).toEqual(new Set(["https://hooks.invalid/old"]))
    }, none))

  it("a rule that is replaced keeps its age: what is pending goes to the new target", () =>
    run(function* (caller, target) {
      const hooks = caller.hooksUrl
      const bind = (to: string, order = "timely") => caller.call("PUT", hooks, { body: { url: to, order } })
      target.answerWith(500)
      yield* bind("https://hooks.invalid/old")
      yield* caller.start("queue-0+run-0+end-OUT_OF_SERVICE")
      yield* pass(5)
      yield* bind("https://hooks.invalid/new")
      yield* pass(60)
      expect(target.news().map((one) => [one.url, ...told(one)])).toEqual([
        ["https://hooks.invalid/old", 0, "started", "WAITING"],
        ["https://hooks.invalid/old", 0, "ended", "OUT_OF_SERVICE"],
        ["https://hooks.invalid/new", 10, "started", "WAITING"],
      ])
      // Raised while deliveries were late on purpose, and not tried yet.
      yield* bind("https://hooks.invalid/late", "shuffled")
      yield* caller.start("queue-0+run-0+end-ENGINE_BANNED", { customer_id: "c-2" })
      yield* pass(1)
      yield* bind("https://hooks.invalid/new")
      yield* pass(600)
      expect(target.news().map((one) => [one.url, ...told(one)])).toEqual([
        ["https://hooks.invalid/new", 66, "started", "WAITING"],
        ["https://hooks.invalid/new", 66, "ended", "ENGINE_BANNED"],
      ])
    }, none))

  it("nothing more is delivered for a deleted execution", () =>
    run(function* (caller, target) {
      target.answerWith(500)
      const id = yield* caller.begin("queue-0+run-0")
      yield* pass(1)
      yield* caller.remove(id)
      yield* pass(864000)
      expect(target.received.length).toBe(1)
    }))
})
