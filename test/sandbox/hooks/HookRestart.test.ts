/** What webhooks keep over a restart with `--state`: subscriptions, what is pending, what was delivered. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { JournalFailed } from "../../../src/sandbox/state/Journal.ts"
import { folder } from "../../harness/Folder.ts"
import { Caller, field } from "../server/Caller.ts"
import { inVirtualTime, night, pass, webhookUrl as url, endHook } from "./HookTarget.ts"

const endsOnly = { webhooks: [{ url, events: ["ended"] }] }
const nowhere = { webhooks: [] }

type Nights = (journal: string) => Generator<Effect.Effect<unknown, JournalFailed>, void, never>
const inFolder = (nights: Nights) => () =>
  inVirtualTime(
    Effect.scoped(Effect.flatMap(folder, (path) => Effect.gen(() => nights(join(path, "sandbox.ndjson"))))),
  )

describe("a restart", () => {
  it(
    "delivers what was pending, what fell due meanwhile, and nothing that was delivered before",
    inFolder(function* (journal) {
      yield* night(
        function* (caller, target) {
          yield* caller.start("queue-0+run-10")
          yield* caller.start("queue-0+run-20", { customer_id: "c-2" })
          yield* caller.start("queue-0+run-100", { customer_id: "c-3" })
          target.answerWith(204, 500)
          yield* pass(25)
          expect(target.received.map(({ body }) => field(body, "customer_id"))).toEqual(["c-1", "c-2"])
        },
        { journal, ...endsOnly },
      )
      yield* pass(300)
      const elsewhere = "http://127.0.0.1:9/other"
      yield* night(
        function* (_caller, target) {
          yield* pass(3600)
          const seen = target.received.map((one) => [one.at / 1000, one.url, field(one.body, "customer_id")])
          expect(seen).toEqual([
            [325, elsewhere, "c-2"],
            [325, elsewhere, "c-3"],
          ])
        },
        { journal, webhooks: [{ url: elsewhere, events: ["ended"] }] },
      )
      yield* night(
        function* (_caller, target) {
          yield* pass(3600)
          expect(target.received).toEqual([])
        },
        { journal, ...endsOnly },
      )
    }),
  )

  it(
    "sends nothing without its webhook, and never anything that ended before one was bound",
    inFolder(function* (journal) {
      const started = yield* night(
        function* (caller) {
          const answer = yield* caller.start("queue-0+run-10")
          yield* pass(60)
          return answer
        },
        { journal, ...nowhere },
      )
      expect(readFileSync(journal, "utf8")).not.toContain("Hook")
      yield* night(
        function* (_caller, target) {
          yield* pass(3600)
          expect([target.received, yield* endHook(started)]).toEqual([[], "skipped"])
        },
        { journal, ...endsOnly },
      )
    }),
  )

  it(
    "sends no pending delivery without the webhook that it had",
    inFolder(function* (journal) {
      const started = yield* night(
        function* (caller, target) {
          target.answerWith(500)
          const answer = yield* caller.start("queue-0+run-0")
          yield* pass(1)
          expect(yield* endHook(answer)).toBe("failed")
          return answer
        },
        { journal, ...endsOnly },
      )
      yield* night(
        function* (_caller, target) {
          yield* pass(3600)
          expect([target.received, yield* endHook(started)]).toEqual([[], "skipped"])
        },
        { journal, ...nowhere },
      )
    }),
  )

  it(
    "keeps who receives what, and never a secret",
    inFolder(function* (journal) {
      const listed = Effect.gen(function* () {
        const { call, hooksUrl, flows_url } = yield* Caller
        return [(yield* call("GET", hooksUrl)).json, (yield* call("GET", `${flows_url}/hooks/list`)).json]
      })
      const before = yield* night(
        function* (caller, target) {
          yield* caller.call("PUT", caller.hooksUrl, { body: { url, order: "shuffled" } })
          const body = { events: ["es-public-administration:ended"], base_url: url }
          yield* caller.call("POST", `${caller.flows_url}/hooks/create`, { body })
          target.answerWith(500)
          const parameters = { username: "queue-0+run-0+hidden-word", password: "hidden-password" }
          yield* caller.start("", { parameters })
          yield* pass(600)
          return yield* listed
        },
        { journal, ...nowhere },
      )
      expect(JSON.stringify(before).match(/hooks\.invalid/g)?.length).toBe(5)
      yield* night(
        function* () {
          expect(yield* listed).toEqual(before)
        },
        { journal, ...nowhere },
      )
      const lines = readFileSync(journal, "utf8")
      expect(lines).toContain("HookFailed")
      expect(lines).not.toMatch(/hidden|sandbox-app-1/)
    }),
  )
})
