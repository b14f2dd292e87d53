/**
 * A bare caller of the service for tests: plain requests, plain answers, no client of ours in between, so
 * that what is compared is what travels. It serves the in-process service and a real server alike.
 */
import { constants, publicEncrypt } from "node:crypto"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HttpClient, HttpClientRequest, type HttpServerError } from "effect/http"
import { TestClock } from "effect/testing"
import { encryptionKey } from "../../../src/sandbox/executions/JudgeRequest.ts"
import { Sandbox, type SandboxOptions } from "../../../src/sandbox/server/Sandbox.ts"
import { SandboxClient, SandboxServer } from "../../../src/sandbox/server/SandboxServer.ts"
import type { SandboxAddress } from "../../../src/sandbox/server/SandboxServer.ts"
import type { JournalFailed, SeedChanged } from "../../../src/sandbox/state/Journal.ts"

type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"

export interface Answer {
  readonly status: number
  readonly json: unknown
  readonly text: string
  readonly contentType: string | undefined
  readonly headers: Readonly<Record<string, string | undefined>>
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
/** A field of an answer's body; undefined where there is none. */
export const field = (answer: Answer | unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>(
    (value, name) =>
      Array.isArray(value) ? value[Number(name)] : isRecord(value) ? value[String(name)] : undefined,
    isRecord(answer) && "json" in answer ? answer["json"] : answer,
  )
export const textField = (answer: Answer | unknown, ...path: ReadonlyArray<string | number>): string =>
  String(field(answer, ...path))

/** The items of a list in an answer's body; none where there is no list. */
export const itemsOf = (
  answer: Answer | unknown,
  ...path: ReadonlyArray<string | number>
): ReadonlyArray<unknown> => {
  const value = field(answer, ...path)
  return Array.isArray(value) ? value : []
}

/** What an answer shows: its `status`, whole `json` or `text`, and fields of its body by their paths. */
export const shows = (answer: Answer | unknown, expected: Readonly<Record<string, unknown>>): void => {
  const shown = Object.keys(expected).map((path) => {
    const [name = "", ...rest] = path.split(".")
    const own =
      isRecord(answer) && name in answer ? field(answer[name], ...rest) : field(answer, name, ...rest)
    return [path, own]
  })
  expect(Object.fromEntries(shown)).toEqual(expected)
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** These fields of an answer's body, by their names or paths with dots. */
export const pick = (answer: Answer | unknown, ...paths: ReadonlyArray<string>): ReadonlyArray<unknown> =>
  paths.map((path) => field(answer, ...path.split(".")))

/** How a run stands. */
export const stateOf = (state: unknown) => pick(state, "status_code", "status_reason")

/** Rows of the inventory for a title: the fields of one object, `a b` of `token` as `[field token.a] [field token.b]`. */
export const fieldsOf = (object: string, names: string): string =>
  names
    .split(" ")
    .map((name) => `[field ${object}.${name}]`)
    .join(" ")

/** Bytes for the service's eyes alone, as it documents; in base64. */
export const wrapped = (bytes: Buffer, key: string = encryptionKey.public_key): string =>
  publicEncrypt({ key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" }, bytes).toString(
    "base64",
  )
/** A value that came encrypted. */
export const sealed = (text: string): string => `rsa::${wrapped(Buffer.from(text))}`

/** Of a start: a person is there to answer. */
export const person = { base_configurations: { customer_interaction_available: true } }

/** What every answer about a usual start says: whose it is, and where. */
export const usualStart = {
  app_id: "65f0c0ffee00000000000001",
  auth_origin: "app-secret",
  customer_id: "c-1",
  engine_reference: "sandbox-bank:website",
}

/** The body of a 409: it shows the execution that is in the way. */
export const conflictWith = (first: Answer | unknown, external_execution_id: string) => ({
  ...usualStart,
  execution_id: field(first, "execution_id"),
  session_id: field(first, "session_id"),
  external_execution_id,
  status_code: "TEMPORARY_ERROR",
  status_reason: "ALREADY_EXECUTING",
})

/** Calls of the service at this address. */
export const callerOf = (client: HttpClient.HttpClient, address: SandboxAddress) => {
  const call = (
    method: Method,
    url: string,
    options: { readonly body?: unknown; readonly secret?: string | undefined } = {},
  ) =>
    Effect.gen(function* () {
      const secret = "secret" in options ? options.secret : "sandbox-app-1"
      const bare = HttpClientRequest.make(method)(url, {
        headers: secret === undefined ? {} : { "X-APP-SECRET": secret },
      })
      const request = options.body === undefined ? bare : HttpClientRequest.bodyJsonUnsafe(bare, options.body)
      const response = yield* client.execute(request)
      const text = method === "HEAD" ? "" : yield* response.text
      const { status, headers } = response
      return {
        status,
        text,
        json: parse(text),
        contentType: headers["content-type"],
        headers,
      } satisfies Answer
    }).pipe(Effect.orDie)
  const { base_url, flows_url } = address
  const executionUrl = (execution_id: string) => `${base_url}/executions/handler/v1/${execution_id}`
  const origin = new URL(base_url).origin
  const startUrl = `${base_url}/executions/init/v1/parametrized`
  const widgetUrl = (...path: ReadonlyArray<string>) =>
    [`${flows_url}/es-public-administration/v1/widget`, ...path].join("/")
  /** Starts customer `c-1` on the bank with these behaviour words. */
  const start = (
    username: string,
    more: Readonly<Record<string, unknown>> = {},
    secret = "sandbox-app-1",
  ) => {
    const parameters = { username, password: "correct" }
    const usual = { engine_reference: "sandbox-bank:website", customer_id: "c-1", parameters }
    return call("POST", startUrl, { secret, body: { ...usual, ...more } })
  }
  return {
    call,
    base_url,
    flows_url,
    origin,
    hooksUrl: `${origin}/sandbox/hooks`,
    startUrl,
    executionUrl,
    profileUrl: (id: string) => `${base_url}/executions/results/${id}/customer/v1/profile`,
    resultsUrl: (id: string) => `${flows_url}/es-public-administration/v1/manager/${id}/results`,
    attachmentUrl: (session: string, id: string) => `${flows_url}/attachments/${session}/${id}`,
    start,
    /** The id of the run that such a start began. */
    begin: (username: string, more: Readonly<Record<string, unknown>> = {}) =>
      Effect.map(start(username, more), (answer) => textField(answer, "execution_id")),
    read: (execution_id: string) => call("GET", executionUrl(execution_id)),
    resume: (execution_id: string, body: unknown) => call("PUT", executionUrl(execution_id), { body }),
    abort: (execution_id: string) => call("DELETE", `${executionUrl(execution_id)}/abort`),
    remove: (execution_id: string) => call("DELETE", `${executionUrl(execution_id)}/delete`),
    /** A start that asks for a ticket. */
    startTicketed: (
      username: string,
      more: Readonly<Record<string, unknown>> = {},
      secret = "sandbox-app-1",
    ) => start(username, { base_configurations: { tokenized_access: true }, ...more }, secret),
    exchange: (execution_id: string, ticket: string, secret = "sandbox-app-1") =>
      call("PUT", `${base_url}/executions/t10n`, { secret, body: { execution_id, ticket } }),
    /** Starts customer `c-1` on the bank with the token that an exchange answered. */
    startTokenized: (
      token: unknown,
      more: Readonly<Record<string, unknown>> = {},
      secret = "sandbox-app-1",
    ) =>
      call("POST", `${base_url}/executions/init/v1/tokenized`, {
        secret,
        body: { engine_reference: "sandbox-bank:website", customer_id: "c-1", token, ...more },
      }),
    token: (token_id: string, secret = "sandbox-app-1") =>
      call("GET", `${base_url}/executions/t10n/${token_id}`, { secret }),
    revoke: (token_id: string, secret = "sandbox-app-1") =>
      call("DELETE", `${base_url}/executions/t10n/${token_id}`, { secret }),
    widgetUrl,
    /** Creates a flow session. */
    createSession: (body: unknown = {}, secret = "sandbox-app-1") =>
      call("POST", widgetUrl(), { secret, body }),
    viewSession: (session_id: string, secret = "sandbox-app-1") =>
      call("GET", widgetUrl(session_id), { secret }),
    /** Takes a step in a flow session's widget. */
    step: (session_id: string, name: string, body?: unknown, secret = "sandbox-app-1") =>
      call("POST", widgetUrl(session_id, name), { secret, ...(body === undefined ? {} : { body }) }),
    results: (session_id: string) =>
      call("GET", `${flows_url}/es-public-administration/v1/manager/${session_id}/results`),
  }
}

/** What really happened. */
export const truth = Effect.flatMap(Sandbox, (sandbox) => sandbox.truth)

export class Caller extends Context.Service<Caller, ReturnType<typeof callerOf>>()("test/sandbox/Caller") {}

/** A way to reach a service with these options. */
export type Reach = (
  options: SandboxOptions,
) => Layer.Layer<Caller | Sandbox, JournalFailed | SeedChanged | HttpServerError.ServeError>

export const inProcess = (options: SandboxOptions) =>
  Layer.effect(
    Caller,
    Effect.map(HttpClient.HttpClient, (client) => callerOf(client, SandboxClient)),
  ).pipe(Layer.provide(SandboxClient.layer), Layer.provideMerge(Sandbox.layer(options)))

export const overHttp = (options: SandboxOptions) =>
  Layer.effect(
    Caller,
    Effect.gen(function* () {
      return callerOf(yield* HttpClient.HttpClient, yield* SandboxServer)
    }),
  ).pipe(
    Layer.provide([SandboxServer.layer({ port: 0 }), NodeHttpClient.layerUndici]),
    Layer.provideMerge(Sandbox.layer(options)),
  )

// Suites of the service. Its clock begins on the morning of 2026-11-21, outside of every maintenance window.
// Both ways to reach the service run the same routes and codecs, so most suites run in the caller's own fiber;
// those about secrets, bodies and sockets run through a real server.

export const morning = Date.UTC(2026, 10, 21, 9)

/** A test's steps, with a caller to take them. */
export type Steps =
  | Effect.Effect<void, never, Caller | Sandbox>
  | ((caller: Caller["Service"]) => Generator<Effect.Effect<unknown, never, Caller | Sandbox>, void, never>)
export type Told = (title: string, steps: Steps) => void

/** One test of a service of its own, at this time. */
export const toldAt = (
  at: number,
  title: string,
  steps: Steps,
  options: Partial<SandboxOptions> = {},
  reach: Reach = inProcess,
): void =>
  it.effect(title, () =>
    TestClock.setTime(at).pipe(
      Effect.andThen(Caller),
      Effect.flatMap((caller) => (Effect.isEffect(steps) ? steps : Effect.gen(() => steps(caller)))),
      Effect.provide(reach({ seed: 7, ...options })),
    ),
  )

export const ofTheServiceAt =
  (at: number) =>
  (subject: string, suite: (told: Told) => void): void => {
    describe(subject, () => suite((title, steps) => toldAt(at, title, steps)))
  }
export const ofTheService = ofTheServiceAt(morning)

export const overSockets = (subject: string, suite: (told: Told) => void): void => {
  describe(subject, () => suite((title, steps) => toldAt(morning, title, steps, {}, overHttp)))
}

/** Starts, waits for the login to be accepted (two seconds) and exchanges the ticket. */
export const tokenFor = Effect.fnUntraced(function* (
  words: string,
  more: Readonly<Record<string, unknown>> = {},
) {
  const caller = yield* Caller
  const started = yield* caller.startTicketed(`queue-1+run-10+${words}`, more)
  yield* TestClock.adjust(2_000)
  const execution_id = textField(started, "execution_id")
  const ticket = textField(started, "ticket")
  const exchanged = yield* caller.exchange(execution_id, ticket)
  expect(exchanged.status).toBe(200)
  const token_id = textField(exchanged, "token", "token_id")
  return { exchanged, execution_id, ticket, token: field(exchanged, "token"), token_id }
})
