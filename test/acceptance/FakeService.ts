/**
 * A remote service for acceptance: written from the reference alone, scripted per customer, with its own record of
 * every request. It shares no code with the program under test, and notes each breach of the reference's manners
 * that it sees, so that a check needs only to ask for an empty list.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { setTimeout as wait } from "node:timers/promises"
import { engines, type Reply } from "./FakeEngines.ts"

export interface Seen {
  readonly at: number
  readonly method: string
  /** The path as it was sent, still encoded. */
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

export interface Execution {
  readonly execution_id: string
  readonly session_id: string
  readonly customer_id: string
  readonly engine_reference: string
  readonly external_execution_id: string | undefined
  readonly number: number
  /** What a state read answers after an abort, or for good. */
  closedAs: readonly [status_code: string, status_reason: string] | undefined
  open: boolean
  looks: number
}

export interface StartBody {
  readonly engine_reference: string
  readonly customer_id: string
  readonly external_execution_id?: string
  readonly parameters: Readonly<Record<string, unknown>>
  readonly features?: ReadonlyArray<unknown>
  readonly base_configurations: Readonly<Record<string, unknown>>
}

/** Every answer counts from 1; what a script leaves out goes well at once. */
export interface Script {
  readonly ids?: (start: number) => { readonly execution_id: string; readonly session_id: string }
  /** Instead of an acceptance. */
  readonly start?: (start: number, body: StartBody) => Reply | undefined
  readonly state?: (execution: Execution) => Reply | undefined
  readonly results?: (execution: Execution) => Reply | undefined
  readonly attachment?: (attachment_id: string) => Reply | undefined
}

export const stateBody = (execution: Execution, fields: Readonly<Record<string, unknown>>) => ({
  execution_id: execution.execution_id,
  session_id: execution.session_id,
  app_id: "fake-app",
  customer_id: execution.customer_id,
  external_execution_id: execution.external_execution_id ?? null,
  engine_reference: execution.engine_reference,
  auth_origin: "app-secret",
  status_message: null,
  authentication_status: "AUTH_OK",
  products_count: {},
  end_hook: "skipped",
  warnings_count: 0,
  errors_count: 0,
  locking_hash: "v1.abc",
  date_created: "2026-11-20T23:00:00Z",
  date_started: "2026-11-20T23:00:01Z",
  features: [{ code: "accounts_read", status_reason: "FEATURE_COMPLETED" }],
  messages: [],
  ...fields,
})

/** The answer to a state read of an execution that is over. */
export const ended = (
  execution: Execution,
  status_code: string,
  status_reason: string,
  fields: Readonly<Record<string, unknown>> = {},
): Reply => {
  execution.open = false
  const date_ended = "2026-11-20T23:05:00.250+01:00"
  return {
    status: 200,
    body: stateBody(execution, { status_code, status_reason, is_closed: true, date_ended, ...fields }),
  }
}

export const working = (execution: Execution, status_reason = "RUNNING"): Reply => ({
  status: 202,
  body: stateBody(execution, { status_code: "ONGOING", status_reason, is_closed: false }),
})

export const profileOf = (customer_id: string, fields: Readonly<Record<string, unknown>> = {}) => ({
  product: "customer_information",
  sub_family: "customer_information:user_profile",
  fetch_date: "2026-11-20T23:04:00Z",
  type: "person",
  name: `Name of ${customer_id}`,
  gender: "unknown",
  civil_status: "unknown",
  identification_numbers: [],
  emails: [],
  phones: [],
  addresses: [],
  ...fields,
})

export const resultsBody = (data: unknown, fields: Readonly<Record<string, unknown>> = {}): Reply => ({
  status: 200,
  body: {
    data,
    retrieved_features: ["customer_information_read"],
    consent: null,
    is_closed: true,
    status: "COMPLETED",
    ...fields,
  },
})

export class FakeService {
  readonly seen: Array<Seen> = []
  readonly breaches: Array<string> = []
  readonly executions: Array<Execution> = []
  readonly scripts = new Map<string, Script>()
  readonly starts: Array<StartBody> = []
  readonly sessionReads = new Map<string, Array<number>>()
  secret = "fake-secret-1"
  readonly #server = createServer((request, response) => {
    void this.#serve(request, response)
  })

  static async listen(): Promise<FakeService> {
    const fake = new FakeService()
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve))
    return fake
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
  get base_url(): string {
    return `${this.origin}/deep/api`
  }
  get flows_url(): string {
    return `${this.origin}/flows`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  startsOf(customer_id: string): ReadonlyArray<StartBody> {
    return this.starts.filter((start) => start.customer_id === customer_id)
  }

  async #serve(request: IncomingMessage, response: ServerResponse) {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const { method = "", url = "", headers } = request
    this.seen.push({ at: performance.now(), method, path: url, headers, body })
    const reply =
      headers["x-app-secret"] === this.secret
        ? await this.#answer(method, url, body)
        : { status: 401, body: { detail: "not authorised" } }
    if (reply.pieces !== undefined) {
      response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers })
      // Whoever hangs up in the middle has had enough.
      return void pipeline(Readable.from(reply.pieces()), response).catch(() => undefined)
    }
    const content = reply.text ?? (reply.body === undefined ? "" : JSON.stringify(reply.body))
    const type = content === "" ? {} : { "content-type": "application/json" }
    response.writeHead(reply.status, { ...type, ...reply.headers })
    response.end(method === "HEAD" || reply.status === 204 || reply.status === 304 ? undefined : content)
    return undefined
  }

  async #answer(method: string, url: string, body: string): Promise<Reply> {
    const path = url.split("?", 1)[0] ?? ""
    const route = `${method} ${path}`
    if (route === "GET /deep/api/config/engines/list")
      return { status: 200, body: [...engines.values()].flatMap(({ list }) => list ?? []) }
    if (route === "POST /deep/api/executions/init/v1/parametrized") return this.#start(JSON.parse(body))
    const [, engine] = /^GET \/deep\/api\/config\/engines\/([^/]+)$/.exec(route) ?? []
    if (engine !== undefined)
      return (
        engines.get(decodeURIComponent(engine))?.show ?? { status: 404, body: { detail: "no such engine" } }
      )
    const [, verb, id, tail = ""] =
      /^(GET|DELETE|HEAD) \/deep\/api\/executions\/handler\/v1\/([^/]+)(\/abort|\/delete)?$/.exec(route) ?? []
    if (id !== undefined) return this.#handle(`${verb}${tail}`, decodeURIComponent(id))
    const [, profile] =
      /^GET \/deep\/api\/executions\/results\/([^/]+)\/customer\/v1\/profile$/.exec(route) ?? []
    if (profile !== undefined) return { status: 404, body: { detail: "none" } }
    const [, session] =
      /^GET \/flows\/es-public-administration\/v1\/manager\/([^/]+)\/results$/.exec(route) ?? []
    if (session !== undefined) return this.#results(decodeURIComponent(session))
    const [, of, attachment] = /^GET \/flows\/attachments\/([^/]+)\/([^/]+)$/.exec(route) ?? []
    if (of !== undefined && attachment !== undefined) {
      const execution = this.executions.find(({ session_id }) => session_id === decodeURIComponent(of))
      return (
        this.scripts.get(execution?.customer_id ?? "")?.attachment?.(decodeURIComponent(attachment)) ?? {
          status: 404,
        }
      )
    }
    // 4.11 names this listing without its path, so asking is no breach, and this service does not know the path.
    if (method === "GET" && path.endsWith("/hooks/list")) return { status: 404, body: {} }
    this.breaches.push(`a request beyond the reference: ${route}`)
    return { status: 404, body: { detail: "not found" } }
  }

  #find(execution_id: string) {
    return this.executions.find((one) => one.execution_id === execution_id)
  }

  #start(body: StartBody): Reply {
    const { customer_id, engine_reference, external_execution_id } = body
    this.starts.push(body)
    const number = this.startsOf(customer_id).length
    if (body.base_configurations["customer_interaction_available"] !== false)
      this.breaches.push(`${customer_id}: customer_interaction_available is not false`)
    if (external_execution_id === undefined) this.breaches.push(`${customer_id}: no external_execution_id`)
    const script = this.scripts.get(customer_id)
    const reply = script?.start?.(number, body)
    if (reply !== undefined) return reply
    const common = { app_id: "fake-app", customer_id, auth_origin: "app-secret", engine_reference }
    const running = this.executions.find(
      (one) => one.open && one.customer_id === customer_id && one.engine_reference === engine_reference,
    )
    if (running !== undefined && running.external_execution_id === external_execution_id) {
      const { execution_id, session_id } = running
      const status = { status_code: "TEMPORARY_ERROR", status_reason: "ALREADY_EXECUTING" }
      return { status: 409, body: { ...common, ...status, execution_id, session_id, external_execution_id } }
    }
    if (running !== undefined) this.breaches.push(`${customer_id}: two executions of one engine at once`)
    const ids = script?.ids?.(number) ?? {
      execution_id: `exec-${customer_id}-${engine_reference.replace(":", "-")}-${number}`,
      session_id: `5e${Buffer.from(`${customer_id}/${engine_reference}`).toString("hex").slice(0, 90)}${number}`,
    }
    const counts = { open: true, looks: 0, closedAs: undefined }
    this.executions.push({ ...ids, customer_id, engine_reference, external_execution_id, number, ...counts })
    const status = { status_code: "ONGOING", status_reason: "ACCEPTED" }
    const session_token = "echoed-session-token"
    return { status: 202, body: { ...common, ...status, ...ids, external_execution_id, session_token } }
  }

  #handle(verb: string, execution_id: string): Reply {
    const execution = this.#find(execution_id)
    const missing: Reply = { status: 404, body: { detail: "no such execution" } }
    if (execution === undefined) return missing
    const script = this.scripts.get(execution.customer_id)
    if (verb === "GET" || verb === "HEAD") {
      execution.looks += 1
      if (execution.closedAs !== undefined) return ended(execution, ...execution.closedAs)
      return script?.state?.(execution) ?? ended(execution, "COMPLETED", "COMPLETED")
    }
    if (verb === "DELETE/abort") {
      if (!execution.open) return { status: 304 }
      execution.closedAs = ["ABORTED", "CLIENT_CANCELLED"]
      execution.open = false
      return { status: 204 }
    }
    if (execution.open) this.breaches.push(`${execution_id}: deleted while it runs`)
    this.executions.splice(this.executions.indexOf(execution), 1)
    this.removed.push(execution)
    return { status: 204 }
  }
  readonly removed: Array<Execution> = []

  async #results(session_id: string): Promise<Reply> {
    const before = this.sessionReads.get(session_id) ?? []
    const now = performance.now()
    const gap = now - (before.at(-1) ?? -Infinity)
    if (gap < 5_000) this.breaches.push(`${session_id}: read again after ${Math.round(gap)} ms`)
    this.sessionReads.set(session_id, [...before, now])
    await wait(1)
    const execution = this.executions.find((one) => one.session_id === session_id)
    if (execution === undefined) return { status: 404, body: { detail: "no such session" } }
    const reply = this.scripts.get(execution.customer_id)?.results?.(execution)
    return reply ?? resultsBody({ profile: profileOf(execution.customer_id) })
  }
}
