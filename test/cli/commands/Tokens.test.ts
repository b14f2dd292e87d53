/**
 * Tokens through the program itself: two nights over HTTP, the three commands, and a search of every file and
 * every word that was printed for the tickets and keys that travelled.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as wait } from "node:timers/promises"
import { Effect, Redacted } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lockFolder } from "../../../src/base/FolderLock.ts"
import { TokenStore } from "../../../src/tokens/TokenStore.ts"
import { plainEnvironment } from "../../harness/Environment.ts"
import { startHere, type Ended } from "../../harness/ProgramHere.ts"

const root = mkdtempSync(join(tmpdir(), "tokens-cli-"))
const output = join(root, "output")
const storeKey = "c4".repeat(32)
const environment = {
  ...plainEnvironment,
  NIGHTJAR_OUTPUT: output,
  APP_SECRET: "sandbox-app-1",
  TOKEN_KEY: storeKey,
}

const printed: Array<string> = []

const nightjar = async (
  args: ReadonlyArray<string>,
  more: { readonly env?: Readonly<Record<string, string>>; readonly stdin?: string } = {},
): Promise<Ended> => {
  const { env, stdin = "" } = more
  const ended = await startHere(args, { environment: { ...environment, ...env }, stdin }).ended
  printed.push(ended.stdout, ended.stderr, ...args)
  return ended
}

/** Tickets and keys as they went over the wire. */
const travelled = { tickets: new Set<string>(), keys: new Set<string>(), starts: new Array<string>() }

const note = (method: string, path: string, text: string) => {
  if (method === "POST") travelled.starts.push(path.split("/").at(-1) ?? "")
  const ticket = /"ticket":"([^"]+)"/.exec(text)?.[1]
  const token_key = /"token_key":"([^"]+)"/.exec(text)?.[1]
  if (ticket !== undefined) travelled.tickets.add(ticket)
  if (token_key !== undefined) travelled.keys.add(token_key)
}

/** What is answered instead of the service, if anything; and the paths that were asked to be deleted. */
let instead: (method: string, path: string) => number | undefined = () => undefined
const deletes = new Array<string>()

/** A proxy that notes what the service gives away. */
const proxy = (port: number) =>
  createServer((incoming, outgoing) => {
    const { method = "GET", url = "/", headers } = incoming
    if (method === "DELETE") deletes.push(url)
    const status = instead(method, url)
    if (status !== undefined) return void outgoing.writeHead(status).end()
    const onward = request({ port, method, path: url, headers }, (answer) => {
      const chunks: Array<Buffer> = []
      answer.on("data", (chunk: Buffer) => chunks.push(chunk))
      answer.on("end", () => {
        const body = Buffer.concat(chunks)
        note(method, url, body.toString())
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
        outgoing.end(body)
      })
    })
    incoming.pipe(onward)
  })

const job = (name: string, key: string, base: string) => {
  writeFileSync(
    join(root, `${name}.yaml`),
    `name: ${name}
service: { base_url: "${base}/api", flows_url: "${base}/flows", app_secret: "env:APP_SECRET" }
tokens: { key: "${key}" }
polling: { min: 100 millis, max: 300 millis }
retry: { base: 100 millis, max: 200 millis }
flow_results: { enabled: false }
engines: [{ reference: "sandbox-bank:website", features: [accounts_read, cards_read] }]
customers:
  - { id: k-1, tokenized_access: true, parameters: { username: ok+queue-1+run-6, password: long-password } }
`,
  )
  return join(root, `${name}.yaml`)
}

let base = ""
let path = ""
let stop = () => undefined as void
beforeAll(async () => {
  const service = startHere(["sandbox", "--port", "0", "--speed", "60"])
  const address = JSON.parse(await service.firstLine) as { readonly base_url: string }
  const server = proxy(Number(new URL(address.base_url).port))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  stop = () => {
    service.kill("SIGTERM")
    server.close()
    server.closeAllConnections()
  }
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  path = job("nightly", "env:TOKEN_KEY", base)
}, 120_000)
afterAll(() => {
  stop()
  rmSync(root, { recursive: true, force: true })
})

const formsOf = (secret: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(secret)
  const base64 = bytes.toString("base64").replace(/=+$/, "")
  return [secret, base64, bytes.toString("base64url"), bytes.toString("hex"), encodeURIComponent(secret)]
}

const filesUnder = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile())

/** Where any of the secrets stands, in any of its forms. */
const findings = (secrets: Iterable<string>): ReadonlyArray<string> => {
  const forms = [...secrets].flatMap(formsOf)
  const holds = (text: string) => forms.some((form) => text.includes(form))
  return [
    ...filesUnder(output).filter((file) => holds(readFileSync(file).toString("latin1"))),
    ...printed.filter(holds),
  ]
}

const keysInStore = () =>
  Effect.gen(function* () {
    const store = yield* TokenStore
    if (store._tag === "Closed") return []
    const keys = yield* Effect.forEach(yield* store.tokens, (token) => store.tokenKey(token))
    return keys.flatMap((key) => (key === undefined ? [] : [Redacted.value(key)]))
  }).pipe(
    Effect.provide(
      TokenStore.layer(join(output, "tokens.sqlite"), { key: Redacted.make(storeKey), service: base }),
    ),
    Effect.runPromise,
  )

const headersElsewhere = { "X-APP-SECRET": "sandbox-app-1", "content-type": "application/json" }

/** Asks for an execution that was started elsewhere until its answer has the word. */
const answeredElsewhere = async (execution_id: string, word: string) => {
  const url = `${base}/api/executions/handler/v1/${execution_id}`
  for (let text = ""; !text.includes(word); await wait(20))
    text = await (await fetch(url, { headers: headersElsewhere })).text()
}

/** A start from elsewhere, and the ticket that it was given, once it can be exchanged. */
const startElsewhere = async (customer_id: string) => {
  const answer = await fetch(`${base}/api/executions/init/v1/parametrized`, {
    method: "POST",
    headers: headersElsewhere,
    body: JSON.stringify({
      engine_reference: "sandbox-bank:website",
      customer_id,
      parameters: { username: "ok+queue-0+run-30", password: "long-password" },
      base_configurations: { tokenized_access: true },
      features: ["accounts_read"],
    }),
  })
  const { execution_id, ticket } = (await answer.json()) as Readonly<
    Record<"execution_id" | "ticket", string>
  >
  await answeredElsewhere(execution_id, "AUTH_OK")
  return { execution_id, ticket }
}

describe("two runs over HTTP", () => {
  it("log in with parameters and then with the token, and leave neither ticket nor key anywhere", async () => {
    const first = await nightjar(["run", path])
    const plan = await nightjar(["plan", path, "--json"])
    const second = await nightjar(["run", "--new", path, "--log-level", "all"])
    for (const args of [["explain", "k-1"], ["status"], ["plan", path], ["doctor", path], ["tokens", "list"]])
      await nightjar(args)
    expect([first.code, plan.code, second.code]).toEqual([0, 0, 0])
    expect(travelled.starts).toEqual(["parametrized", "tokenized"])
    expect(JSON.parse(plan.stdout)).toMatchObject([{ tasks: [{ token: "k-1/sandbox-bank:website" }] }])
    const secrets = [...travelled.tickets, ...travelled.keys, storeKey]
    expect([travelled.tickets.size, travelled.keys.size, findings(secrets)]).toEqual([1, 1, []])
    // The search finds what is there, and the store has what the search cannot see.
    const planted = join(output, "planted")
    for (const form of formsOf([...travelled.keys][0] ?? "")) {
      writeFileSync(planted, `x${form}x`)
      expect(findings(travelled.keys)).toEqual([planted])
    }
    rmSync(planted)
    expect(await keysInStore()).toEqual([...travelled.keys])
    expect(statSync(join(output, "tokens.sqlite")).mode & 0o777).toBe(0o600)
  }, 120_000)

  it("are refused before any start with another key, without one, or with what is none", async () => {
    const starts = travelled.starts.length
    const other = await nightjar(["run", "--new", path], { env: { TOKEN_KEY: "ab".repeat(32) } })
    expect([other.code, other.stderr]).toEqual([
      2,
      expect.stringContaining("key does not open this token store"),
    ])
    const none = await nightjar(["run", "--new", path], { env: { TOKEN_KEY: "" } })
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("env:TOKEN_KEY")])
    const malformed = await nightjar(["plan", path], { env: { TOKEN_KEY: "not-a-key" } })
    expect([malformed.code, malformed.stderr]).toEqual([
      2,
      expect.stringContaining("openssl rand -base64 32"),
    ])
    const doctor = await nightjar(["doctor", path], { env: { TOKEN_KEY: "ab".repeat(32) } })
    expect([doctor.code, doctor.stdout]).toEqual([
      2,
      expect.stringMatching(/failed .*token store .*does not open/),
    ])
    expect(travelled.starts.length).toBe(starts)
  }, 120_000)
})

describe("tokens by hand", () => {
  it("a ticket is exchanged from the environment, a file or stdin, never from the command line", async () => {
    const { execution_id, ticket } = await startElsewhere("k-2")
    const literal = await nightjar(["tokens", "exchange", path, execution_id, "--ticket", "T-literal"])
    expect([literal.code, literal.stderr]).toEqual([2, expect.stringContaining("[ticket-literal]")])
    const exec = await nightjar(["tokens", "exchange", path, execution_id, "--ticket", "exec:cat"])
    expect(exec.code).toBe(2)
    const wrong = await nightjar(["tokens", "exchange", path, execution_id, "--ticket", "-"], { stdin: "no" })
    expect([wrong.code, wrong.stderr]).toEqual([3, expect.stringContaining("[ticket-not-exchanged]")])
    const args = ["tokens", "exchange", path, execution_id, "--ticket", "env:TICKET", "--name", "mine"]
    const exchanged = await nightjar(args, { env: { TICKET: ticket } })
    expect([exchanged.code, exchanged.stdout]).toEqual([
      0,
      expect.stringMatching(/^mine stored: k-2 on sandbox-bank:website, for accounts_read; ends \d{4}-/),
    ])
    const again = await nightjar(args, { env: { TICKET: ticket } })
    expect(again.code).toBe(3)
    expect(findings([...travelled.tickets, ...travelled.keys])).toEqual([])
    // The service starts nothing else for this customer before that execution is over.
    await answeredElsewhere(execution_id, '"status_code":"COMPLETED"')
  }, 120_000)

  it("the list shows them without any key, and a named token logs in", async () => {
    const list = await nightjar(["tokens", "list", "--json"], { env: { TOKEN_KEY: "" } })
    expect(JSON.parse(list.stdout)).toMatchObject([
      { name: "k-1/sandbox-bank:website", service: base, days_left: expect.any(Number), status: "active" },
      { name: "mine", customer_id: "k-2", features: ["accounts_read"], status: "active" },
    ])
    const named = job("named-k-2", "env:TOKEN_KEY", base)
    const text = readFileSync(named, "utf8").split("customers:")[0] ?? ""
    writeFileSync(
      named,
      `${text}customers:\n  - { id: k-2, engines: [{ reference: "sandbox-bank:website", token: mine }] }\n`,
    )
    const abort = await nightjar(["run", named])
    expect([abort.code, travelled.starts.at(-1)]).toEqual([0, "tokenized"])
  }, 120_000)

  it("wait for no run: a locked folder gives exit code 5, and the list still works", async () => {
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          yield* lockFolder(join(output, "run.lock"))
          const calls = [
            ["tokens", "revoke", path, "mine"],
            ["tokens", "exchange", path, "e", "--ticket", "-"],
            ["tokens", "list"],
          ]
          const codes = yield* Effect.forEach(calls, (args) =>
            Effect.promise(() => nightjar(args, { stdin: "a-ticket" })),
          )
          expect(codes.map(({ code }) => code)).toEqual([5, 5, 0])
        }),
      ),
    )
  }, 120_000)

  it("a revoked token is dropped here; what the service did not answer for stays", async () => {
    const unknown = await nightjar(["tokens", "revoke", path, "nobody"])
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("tokens list")])
    const gone = job("gone", "env:TOKEN_KEY", "http://127.0.0.1:1")
    const away = await nightjar(["tokens", "revoke", gone, "mine"])
    expect(away.code).toBe(2)
    const refused = await nightjar(["tokens", "revoke", path, "mine"], { env: { APP_SECRET: "wrong" } })
    expect(refused.code).toBe(6)
    instead = (method) => (method === "DELETE" ? 502 : undefined)
    const lost = await nightjar(["tokens", "revoke", path, "mine"])
    instead = () => undefined
    expect([lost.code, lost.stderr]).toEqual([6, expect.stringContaining("[token-perhaps-revoked]")])
    const revoked = await nightjar(["tokens", "revoke", path, "mine"])
    const again = await nightjar(["tokens", "revoke", path, "mine"])
    expect([revoked.code, revoked.stdout, again.code, again.stdout]).toEqual([
      0,
      "mine is revoked; it is no longer used.\n",
      0,
      "mine was already revoked; it is no longer used.\n",
    ])
    const explained = await nightjar(["explain", "k-2"])
    expect(explained.stdout).toMatch(/by hand: k-2\n.* token mine stored.*\n.* mine was revoked by hand/)
    const list = await nightjar(["tokens", "list", "--json"])
    const states = (JSON.parse(list.stdout) as ReadonlyArray<{ readonly status: string }>).map(
      (one) => one.status,
    )
    expect(states).toEqual(["active", "dropped: REVOKED"])
  }, 120_000)
})

describe("a customer with a token who is removed", () => {
  it("is removed only once the service has revoked the token; until then the exit code is 4", async () => {
    const [token] = JSON.parse((await nightjar(["tokens", "list", "--json"])).stdout) as ReadonlyArray<{
      readonly token_id: string
    }>
    instead = (method) => (method === "DELETE" ? 409 : undefined)
    const pending = await nightjar(["forget", "k-1", "--yes"])
    expect([pending.code, pending.stderr]).toEqual([4, expect.stringMatching(/1 token .*\[forget-pending\]/)])
    // Nothing was removed here: no removal is interrupted.
    expect((await nightjar(["verify"])).code).toBe(0)
    expect((await nightjar(["explain", "k-1"])).code).toBe(0)
    deletes.length = 0
    instead = () => undefined
    const done = await nightjar(["forget", "k-1", "--yes", "--json"])
    expect([done.code, JSON.parse(done.stdout)]).toEqual([0, expect.objectContaining({ left_at_service: 0 })])
    expect(deletes.filter((url) => url.includes(token?.token_id ?? "no token"))).toHaveLength(1)
    expect((await nightjar(["verify"])).code).toBe(0)
    const naming = filesUnder(output).filter((file) =>
      /(?<![\w-])k-1(?![\w-])/.test(readFileSync(file).toString("latin1")),
    )
    const list = JSON.parse((await nightjar(["tokens", "list", "--json"])).stdout) as ReadonlyArray<unknown>
    expect([naming, list]).toEqual([[], [expect.objectContaining({ customer_id: "k-2" })]])
  }, 120_000)

  it("is told where names that people chose contain the id", async () => {
    const found = await nightjar(["forget", "k-2", "--dry-run"])
    expect(found.stderr.match(/\[customer-in-[a-z-]+\]/g)).toEqual([
      "[customer-in-job-name]",
      "[customer-in-job-path]",
    ])
  }, 120_000)

  it("[promise 15 locked token] is removed with a token that a refused login only locked", async () => {
    const own = join(root, "own")
    const alone = job("alone", "env:TOKEN_KEY", base)
    const inOwn = (...args: ReadonlyArray<string>) => nightjar(args, { env: { NIGHTJAR_OUTPUT: own } })
    expect((await inOwn("run", alone)).code).toBe(0)
    const store = new DatabaseSync(join(own, "tokens.sqlite"))
    const { token_id } = store.prepare("SELECT token_id FROM tokens").get() ?? {}
    store.exec("UPDATE tokens SET dropped_reason = 'LOCKED', dropped_at = 1, sealed = NULL")
    store.close()
    deletes.length = 0
    const done = await inOwn("forget", "k-1", "--yes", "--json")
    expect([done.code, JSON.parse(done.stdout)]).toEqual([0, expect.objectContaining({ left_at_service: 0 })])
    expect(deletes.filter((url) => url.endsWith(`/t10n/${String(token_id)}`))).toHaveLength(1)
  }, 120_000)
})
