/** What webhooks keep over a restart with `--state`: subscriptions, what is pending, what was delivered. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { SandboxOptions } from "../../../src/sandbox/server/Sandbox.ts"
import type { JournalFailed, SeedChanged } from "../../../src/sandbox/state/Journal.ts"
import { folder } from "../../harness/Folder.ts"
import { Caller, field } from "../server/Caller.ts"
import { HookTarget, endHook, inVirtualTime, night, pass, webhookUrl as url } from "./HookTarget.ts"

const endsOnly = { webhooks: [{ url, events: ["ended"] }] }
const nowhere = { webhooks: [] }

type Nights = (journal: string) => Generator<Effect.Effect<unknown, JournalFailed | SeedChanged>, void, never>
const inFolder = (title: string, nights: Nights) =>
  it(title, () =>
    inVirtualTime(
      Effect.scoped(Effect.flatMap(folder, (path) => Effect.gen(() => nights(join(path, "sandbox.ndjson"))))),
    ),
  )
/** An hour later, in which this much was received and the end of that run was told so. */
const later = (options: Partial<SandboxOptions>, started?: unknown, hook?: string) =>
  night(function* (_caller, target) {
    yield* pass(3600)
    if (started !== undefined) expect(yield* endHook(started)).toBe(hook)
    return target.received
  }, options)

describe("a restart", () => {
  inFolder("delivers what was pending, what fell due meanwhile, and nothing twice", function* (journal) {
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
    const received = yield* later({ journal, webhooks: [{ url: elsewhere, events: ["ended"] }] })
    expect(received.map((one) => [one.at / 1000, one.url, field(one.body, "customer_id")])).toEqual([
      [325, elsewhere, "c-2"],
      [325, elsewhere, "c-3"],
    ])
    expect(yield* later({ journal, ...endsOnly })).toEqual([])
  })

  inFolder(
    "sends nothing that ended before a webhook was bound, nor pending without it",
    function* (journal) {
      const over = function* (caller: Caller["Service"], target: HookTarget["Service"]) {
        target.answerWith(500)
        const answer = yield* caller.start("queue-0+run-0")
        yield* pass(1)
        return answer
      }
      const before = yield* night(over, { journal, ...nowhere })
      expect(readFileSync(journal, "utf8")).not.toContain("Hook")
      expect(yield* later({ journal, ...endsOnly }, before, "skipped")).toEqual([])
      const pending = yield* night(over, { journal, ...endsOnly })
      expect(yield* later({ journal, ...nowhere }, pending, "skipped")).toEqual([])
    },
  )

  inFolder("keeps who receives what, and never a secret", function* (journal) {
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
  })
})
