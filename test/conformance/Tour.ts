/**
 * A tour of the service: for every endpoint, every status that its answer can have, brought about on
 * purpose. It judges nothing; what it sees is the proxy's to judge. It needs no clock but the machine's and
 * takes seconds.
 */
import { isObject } from "../project/schemaNodes.ts"

interface Call {
  readonly body?: unknown
  readonly secret?: string | undefined
}

export interface Answered {
  readonly status: number
  readonly json: unknown
}

const look = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((node, name) => (isObject(node) ? node[name] : undefined), value)
const text = (answer: Answered, ...path: ReadonlyArray<string>): string => String(look(answer.json, ...path))

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const guideOf = (origin: string) => {
  let customers = 0
  const call = async (method: string, path: string, options: Call = {}): Promise<Answered> => {
    const secret = "secret" in options ? options.secret : "sandbox-app-1"
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: {
        ...(secret === undefined ? {} : { "X-APP-SECRET": secret }),
        ...(options.body === undefined ? {} : { "Content-Type": "application/json" }),
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    })
    return { status: response.status, json: parsed(await response.text()) }
  }
  const handler = "/api/executions/handler/v1"
  const startBody = (words: string, more: object = {}) => ({
    engine_reference: "sandbox-bank:website",
    customer_id: `tour-${(customers += 1)}`,
    parameters: { username: words, password: "correct" },
    ...more,
  })
  const start = (words: string, more: object = {}, secret = "sandbox-app-1") =>
    call("POST", "/api/executions/init/v1/parametrized", { body: startBody(words, more), secret })
  const started = async (words: string, more: object = {}) => {
    const answer = await start(words, more)
    return { id: text(answer, "execution_id"), session: text(answer, "session_id"), answer }
  }
  return {
    call,
    start,
    started,
    read: (id: string) => call("GET", `${handler}/${id}`),
    poll: (id: string) => call("HEAD", `${handler}/${id}`),
    resume: (id: string, body: unknown) => call("PUT", `${handler}/${id}`, { body }),
    abort: (id: string) => call("DELETE", `${handler}/${id}/abort`),
    remove: (id: string) => call("DELETE", `${handler}/${id}/delete`),
    profile: (id: string) => call("GET", `/api/executions/results/${id}/customer/v1/profile`),
    results: (session: string) =>
      call("GET", `/flows/es-public-administration/v1/manager/${session}/results`),
    attachment: (session: string, id: string) => call("GET", `/flows/attachments/${session}/${id}`),
    token: (method: string, id: string, secret = "sandbox-app-1") =>
      call(method, `/api/executions/t10n/${id}`, { secret }),
    exchange: (body: unknown, secret = "sandbox-app-1") =>
      call("PUT", "/api/executions/t10n", { body, secret }),
    startTokenized: (body: unknown, secret = "sandbox-app-1") =>
      call("POST", "/api/executions/init/v1/tokenized", { body, secret }),
    engines: (path: string) => call("GET", `/api/config/engines/${path}`),
    hooks: (method: string, path: string, body?: unknown) => call(method, `/flows/hooks/${path}`, { body }),
  }
}
type Guide = ReturnType<typeof guideOf>

const person = { base_configurations: { customer_interaction_available: true } }
const tokenized = { base_configurations: { tokenized_access: true } }
const maintenance = { engine_reference: "sandbox-maintenance:website" }

const starts = async (guide: Guide) => {
  const { start } = guide
  await start("queue-60", { customer_id: "same" })
  await start("queue-60", { customer_id: "same" })
  await start("ok", { engine_reference: "sandbox-always:website" })
  await start("ok", tokenized, "sandbox-app-2")
  await start("ok", { base_configurations: { execution_timeout: 59 } })
  await start("ok", { customer_id: 7 })
  await start("ok", maintenance)
}

const executions = async (guide: Guide) => {
  const { started, read, poll, resume, abort, remove, profile } = guide
  const queued = await started("queue-600")
  const done = await started("queue-0+run-0+records-3")
  const wrong = await started("ok", { parameters: { username: "u", password: "abc" } })
  const asked = await started("queue-0+run-0+challenge-1+expire-60", person)
  const late = await started("queue-0+run-0+challenge-1+expire-1", person)
  const parted = await started("queue-0+run-0+challenge-1+expire-60+parted", person)
  const unstoppable = await started("queue-600+unstoppable-600")
  const unprofiled = await started("queue-0+run-0", { features: ["accounts_read"] })
  for (const { id } of [queued, done, wrong, asked, { id: "nobody" }]) {
    await read(id)
    await poll(id)
    await profile(id)
  }
  await profile(unprofiled.id)
  await resume(queued.id, { code: "1" })
  await resume(asked.id, ["1"])
  await resume(asked.id, { code: "2" })
  await pause(400)
  await read(asked.id)
  await resume(asked.id, { code: "1" })
  await resume(parted.id, { code: "1" })
  await resume("nobody", { code: "1" })
  for (const { id } of [unstoppable, queued, queued, { id: "nobody" }]) await abort(id)
  for (const { id } of [unstoppable, queued, queued]) await remove(id)
  await pause(1_100)
  await resume(late.id, { code: "1" })
  for (const id of ["%00", "a".repeat(300)]) {
    await abort(id)
    await remove(id)
  }
}

const tokens = async (guide: Guide) => {
  const { started, exchange, token, startTokenized, abort } = guide
  const first = await started("queue-0+run-10", tokenized)
  await pause(1_300)
  const ticket = text(first.answer, "ticket")
  await exchange({ execution_id: first.id })
  await exchange({ execution_id: first.id, ticket: "wrong" })
  const exchanged = await exchange({ execution_id: first.id, ticket })
  const pair = look(exchanged.json, "token")
  const id = text(exchanged, "token", "token_id")
  const noToken = `t10n-${"0".repeat(32)}`
  const context = {
    engine_reference: "sandbox-bank:website",
    customer_id: text(exchanged, "context", "customer_id"),
  }
  for (const one of [id, noToken, "%00"]) await token("GET", one)
  const body = { ...context, token: pair }
  await startTokenized(body)
  await abort(first.id)
  await startTokenized(body)
  await startTokenized({ ...body, token: { token_id: noToken, token_key: "none" } })
  await startTokenized({ ...body, token: { token_id: id } })
  await startTokenized({ ...body, customer_id: "engine-away" })
  await startTokenized(body, "sandbox-app-2")
  for (const one of [id, id, noToken, "%00"]) await token("DELETE", one)
}

const catalogue = async ({ engines }: Guide) => {
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
  for (const path of paths) await engines(path)
}

const flows = async (guide: Guide) => {
  const { started, results, attachment } = guide
  const done = await started("queue-0+run-0+records-9+attach-1+odd")
  const found = await results(done.session)
  await results(done.session)
  const documents = look(found.json, "data", "documents")
  const first: unknown = Array.isArray(documents) ? documents[0] : undefined
  await attachment(done.session, String(look(first, "attachment_id")))
  await attachment(done.session, "nobody")
  const early = await started("queue-600")
  const locked = await started("queue-0+run-0+locked-600")
  for (const id of [early.session, locked.session, "65f0c0ffee65f0c0ffee65f0", "nobody"]) await results(id)
}

const hooks = async ({ hooks: change }: Guide) => {
  const events = ["es-public-administration:started", "es-public-administration:ended"]
  const base_url = "http://127.0.0.1:9/hook"
  await change("PATCH", "update", { events, base_url })
  await change("DELETE", "delete", { events })
  await change("POST", "create", { events, base_url })
  await change("GET", "list")
  await change("PATCH", "update", { events, base_url: `${base_url}/2`, enabled: false })
  for (const [method, path] of [
    ["POST", "create"],
    ["PATCH", "update"],
    ["DELETE", "delete"],
  ] as const) {
    await change(method, path, { events: "all of them" })
  }
  await change("DELETE", "delete", { events })
}

/** Every operation of the document: without a secret, with a wrong one, and as somebody who is to wait. */
const closedDoors = async ({ call }: Guide, document: unknown) => {
  for (const [path, methods] of Object.entries(Object(look(document, "paths")))) {
    for (const method of Object.keys(Object(methods))) {
      const concrete = path.replaceAll(/\{[^}]+\}/g, "nobody")
      for (const secret of [undefined, "sandbox-app-9", "sandbox-app-3"]) {
        await call(method.toUpperCase(), concrete, { secret })
      }
    }
  }
}

/** What a service only answers on a bad day, as the embedded one is told to by a file of faults. */
export const tourFaults = {
  faults: [
    { on: "*", application: "65f0c0ffee00000000000003", status: 429, retry_after: "1 second" },
    { on: "startTokenized", customer: "engine-away", status: 503 },
  ],
}

export const takeTour = async (origin: string, document: unknown): Promise<void> => {
  const guide = guideOf(origin)
  for (const part of [starts, executions, tokens, catalogue, flows, hooks]) await part(guide)
  await closedDoors(guide, document)
}
