/**
 * A tour of the service: for every endpoint, every status that its answer can have, brought about on
 * purpose. It judges nothing; what it sees is the proxy's to judge. It needs no clock but the machine's and
 * takes seconds.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect } from "effect"
import { HttpClient } from "effect/http"
import { callerOf, field, person, textField, type Caller } from "../sandbox/server/Caller.ts"

type Guide = Caller["Service"]

let customers = 0
/** A start of a customer of its own. */
const begin = (guide: Guide, words: string, more: object = {}) =>
  Effect.map(guide.start(words, { customer_id: `tour-${(customers += 1)}`, ...more }), (answer) => ({
    id: textField(answer, "execution_id"),
    session: textField(answer, "session_id"),
    answer,
  }))

const maintenance = { engine_reference: "sandbox-maintenance:website" }

const starts = Effect.fnUntraced(function* (guide: Guide) {
  yield* begin(guide, "queue-60", { customer_id: "same" })
  yield* begin(guide, "queue-60", { customer_id: "same" })
  yield* begin(guide, "ok", { engine_reference: "sandbox-always:website" })
  yield* guide.startTicketed("ok", {}, "sandbox-app-2")
  yield* begin(guide, "ok", { base_configurations: { execution_timeout: 59 } })
  yield* begin(guide, "ok", { customer_id: 7 })
  yield* begin(guide, "ok", maintenance)
})

const executions = Effect.fnUntraced(function* (guide: Guide) {
  const { call, read, resume, abort, remove, executionUrl, profileUrl } = guide
  const queued = yield* begin(guide, "queue-600")
  const done = yield* begin(guide, "queue-0+run-0+records-3")
  const wrong = yield* begin(guide, "ok", { parameters: { username: "u", password: "abc" } })
  const asked = yield* begin(guide, "queue-0+run-0+challenge-1+expire-60", person)
  const late = yield* begin(guide, "queue-0+run-0+challenge-1+expire-1", person)
  const parted = yield* begin(guide, "queue-0+run-0+challenge-1+expire-60+parted", person)
  const unstoppable = yield* begin(guide, "queue-600+unstoppable-600")
  const unprofiled = yield* begin(guide, "queue-0+run-0", { features: ["accounts_read"] })
  for (const { id } of [queued, done, wrong, asked, { id: "nobody" }]) {
    yield* read(id)
    yield* call("HEAD", executionUrl(id))
    yield* call("GET", profileUrl(id))
  }
  yield* call("GET", profileUrl(unprofiled.id))
  yield* resume(queued.id, { code: "1" })
  yield* resume(asked.id, ["1"])
  yield* resume(asked.id, { code: "2" })
  yield* Effect.sleep(400)
  yield* read(asked.id)
  yield* resume(asked.id, { code: "1" })
  yield* resume(parted.id, { code: "1" })
  yield* resume("nobody", { code: "1" })
  for (const { id } of [unstoppable, queued, queued, { id: "nobody" }]) yield* abort(id)
  for (const { id } of [unstoppable, queued, queued]) yield* remove(id)
  yield* Effect.sleep(1_100)
  yield* resume(late.id, { code: "1" })
  for (const id of ["%00", "a".repeat(300)]) {
    yield* abort(id)
    yield* remove(id)
  }
})

const tokens = Effect.fnUntraced(function* (guide: Guide) {
  const { call, base_url, exchange, token, startTokenized, abort, revoke } = guide
  const customer = { customer_id: "tour-token" }
  const first = yield* guide.startTicketed("queue-0+run-10", customer)
  const id = textField(first, "execution_id")
  yield* Effect.sleep(1_300)
  yield* call("PUT", `${base_url}/executions/t10n`, { body: { execution_id: id } })
  yield* exchange(id, "wrong")
  const exchanged = yield* exchange(id, textField(first, "ticket"))
  const pair = field(exchanged, "token")
  const token_id = textField(pair, "token_id")
  const noToken = `t10n-${"0".repeat(32)}`
  for (const one of [token_id, noToken, "%00"]) yield* token(one)
  yield* startTokenized(pair, customer)
  yield* abort(id)
  yield* startTokenized(pair, customer)
  yield* startTokenized({ token_id: noToken, token_key: "none" }, customer)
  yield* startTokenized({ token_id }, customer)
  yield* startTokenized(pair, { customer_id: "engine-away" })
  yield* startTokenized(pair, customer, "sandbox-app-2")
  for (const one of [token_id, token_id, noToken, "%00"]) yield* revoke(one)
})

const catalogue = Effect.fnUntraced(function* ({ call, base_url }: Guide) {
  const paths = [
    "list",
    "list?features=accounts_read&features=cards_read&features_mode=or&markets=ES&main_category=financial",
    "list?main_category=cloud&is_online=true",
    "list?features=nothing",
    "list?main_category=x&features_mode=y&is_online=z",
    "sandbox-bank:website",
    "sandbox-bank:mobile",
    "sandbox-bank",
    "sandbox-maintenance:website",
  ]
  for (const path of paths) yield* call("GET", `${base_url}/config/engines/${path}`)
})

const flows = Effect.fnUntraced(function* (guide: Guide) {
  const { call, results, attachmentUrl } = guide
  const done = yield* begin(guide, "queue-0+run-0+records-9+attach-1+odd")
  const found = yield* results(done.session)
  yield* results(done.session)
  yield* call("GET", attachmentUrl(done.session, textField(found, "data", "documents", 0, "attachment_id")))
  yield* call("GET", attachmentUrl(done.session, "nobody"))
  const early = yield* begin(guide, "queue-600")
  const locked = yield* begin(guide, "queue-0+run-0+locked-600")
  for (const id of [early.session, locked.session, "65f0c0ffee65f0c0ffee65f0", "nobody"]) yield* results(id)
})

const hooks = Effect.fnUntraced(function* ({ call, flows_url }: Guide) {
  const change = (method: "POST" | "PATCH" | "DELETE", path: string, body: unknown) =>
    call(method, `${flows_url}/hooks/${path}`, { body })
  const events = ["es-public-administration:started", "es-public-administration:ended"]
  const base_url = "http://127.0.0.1:9/hook"
  yield* change("PATCH", "update", { events, base_url })
  yield* change("DELETE", "delete", { events })
  yield* change("POST", "create", { events, base_url })
  yield* call("GET", `${flows_url}/hooks/list`)
  yield* change("PATCH", "update", { events, base_url: `${base_url}/2`, enabled: false })
  yield* change("POST", "create", { events: "all of them" })
  yield* change("PATCH", "update", { events: "all of them" })
  yield* change("DELETE", "delete", { events: "all of them" })
  yield* change("DELETE", "delete", { events })
})

/** Every operation of the document: without a secret, with a wrong one, and as somebody who is to wait. */
const closedDoors = Effect.fnUntraced(function* ({ call, origin }: Guide, document: unknown) {
  for (const [path, methods] of Object.entries(Object(field(document, "paths")))) {
    for (const method of Object.keys(Object(methods))) {
      const concrete = path.replaceAll(/\{[^}]+\}/g, "nobody")
      for (const secret of [undefined, "sandbox-app-9", "sandbox-app-3"]) {
        yield* call(method.toUpperCase() as Parameters<typeof call>[0], `${origin}${concrete}`, { secret })
      }
    }
  }
})

/** What a service only answers on a bad day, as the embedded one is told to by a file of faults. */
export const tourFaults = {
  faults: [
    { on: "*", application: "65f0c0ffee00000000000003", status: 429, retry_after: "1 second" },
    { on: "startTokenized", customer: "engine-away", status: 503 },
  ],
}

export const takeTour = (origin: string, document: unknown): Promise<void> =>
  Effect.gen(function* () {
    const address = { base_url: `${origin}/api`, flows_url: `${origin}/flows` }
    const guide = callerOf(yield* HttpClient.HttpClient, address)
    for (const part of [starts, executions, tokens, catalogue, flows, hooks]) yield* part(guide)
    yield* closedDoors(guide, document)
  }).pipe(Effect.provide(NodeHttpClient.layerUndici), Effect.runPromise)
