/** What webhooks keep over a restart with `--state`: subscriptions, what is pending, what was delivered. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Caller, field } from "../server/Caller.ts"
import { HookTarget, inVirtualTime, pass, served, webhookUrl as url, endHook } from "./HookTarget.ts"

const endsOnly = { webhooks: [{ url, events: ["ended"] }] }

describe("a restart", () => {
  const inFolder = <A, E>(body: (journal: string) => Effect.Effect<A, E>) =>
    inVirtualTime(
      Effect.acquireUseRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "hooks-"))),
        (folder) => body(join(folder, "sandbox.ndjson")),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
      ),
    )

  it("delivers what was pending, what fell due meanwhile, and nothing that was delivered before", () =>
    inFolder((journal) =>
      Effect.gen(function* () {
        yield* served(
          Effect.gen(function* () {
            const caller = yield* Caller
            const target = yield* HookTarget
            yield* caller.start("queue-0+run-10")
            yield* caller.start("queue-0+run-20", { customer_id: "c-2" })
            yield* caller.start("queue-0+run-100", { customer_id: "c-3" })
            target.answerWith(204, 500)
            yield* pass(25)
            expect(target.received.map(({ body }) => field(body, "customer_id"))).toEqual(["c-1", "c-2"])
          }),
          { journal, ...endsOnly },
        )
        yield* pass(300)
        yield* served(
          Effect.gen(function* () {
            const target = yield* HookTarget
            yield* pass(3600)
            const seen = target.received.map(({ at, url: to, body }) => [
              at / 1000,
              to,
              field(body, "customer_id"),
            ])
            const elsewhere = "http://127.0.0.1:9/other"
            expect(seen).toEqual([
              [325, elsewhere, "c-2"],
              [325, elsewhere, "c-3"],
            ])
          }),
          { journal, webhooks: [{ url: "http://127.0.0.1:9/other", events: ["ended"] }] },
        )
        yield* served(
          Effect.gen(function* () {
            yield* pass(3600)
            expect((yield* HookTarget).received).toEqual([])
          }),
          { journal, ...endsOnly },
        )
      }),
    ))

  it("sends nothing without its webhook, and never anything that ended before one was bound", () =>
    inFolder((journal) =>
      Effect.gen(function* () {
        const caller = yield* served(
          Effect.gen(function* () {
            const started = yield* (yield* Caller).start("queue-0+run-10")
            yield* pass(60)
            return started
          }),
          { journal, webhooks: [] },
        )
        expect(readFileSync(journal, "utf8")).not.toContain("Hook")
        yield* pass(60)
        const hooks = served(
          Effect.gen(function* () {
            yield* pass(3600)
            return [(yield* HookTarget).received, yield* endHook(caller)]
          }),
          { journal, ...endsOnly },
        )
        expect(yield* hooks).toEqual([[], "skipped"])
      }),
    ))

  it("sends no pending delivery without the webhook that it had", () =>
    inFolder((journal) =>
      Effect.gen(function* () {
        const started = yield* served(
          Effect.gen(function* () {
            ;(yield* HookTarget).answerWith(500)
            const answer = yield* (yield* Caller).start("queue-0+run-0")
            yield* pass(1)
            expect(yield* endHook(answer)).toBe("failed")
            return answer
          }),
          { journal, ...endsOnly },
        )
        const afterwards = served(
          Effect.gen(function* () {
            yield* pass(3600)
            return [(yield* HookTarget).received, yield* endHook(started)]
          }),
          { journal, webhooks: [] },
        )
        expect(yield* afterwards).toEqual([[], "skipped"])
      }),
    ))

  it("keeps who receives what, and never a secret", () =>
    inFolder((journal) =>
      Effect.gen(function* () {
        const hooks = (caller: Caller["Service"]) => `${caller.base_url.replace(/\/api$/, "")}/sandbox/hooks`
        const listed = Effect.gen(function* () {
          const caller = yield* Caller
          return [
            (yield* caller.call("GET", hooks(caller))).json,
            (yield* caller.call("GET", `${caller.flows_url}/hooks/list`)).json,
          ]
        })
        const before = yield* served(
          Effect.gen(function* () {
            const caller = yield* Caller
            const target = yield* HookTarget
            yield* caller.call("PUT", hooks(caller), { body: { url, order: "shuffled" } })
            const body = { events: ["es-public-administration:ended"], base_url: url }
            yield* caller.call("POST", `${caller.flows_url}/hooks/create`, { body })
            target.answerWith(500)
            yield* caller.start("queue-0+run-0+hidden-word", {
              parameters: { username: "queue-0+run-0+hidden-word", password: "hidden-password" },
            })
            yield* pass(600)
            return yield* listed
          }),
          { journal, webhooks: [] },
        )
        expect(JSON.stringify(before).match(/hooks\.invalid/g)?.length).toBe(5)
        expect(yield* served(listed, { journal, webhooks: [] })).toEqual(before)
        const lines = readFileSync(journal, "utf8")
        expect(lines).toContain("HookFailed")
        expect(lines).not.toMatch(/hidden|sandbox-app-1/)
      }),
    ))
})
