/**
 * A hostile service over HTTP that repeats, in one place of one answer for each customer, the application secret,
 * that customer's login, somebody else's login and what it issued itself. Everything else it answers well, so that
 * the night goes on to all that may be written down.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { echoOf, type Canary } from "./Echo.ts"
import { isObject } from "../project/schemaNodes.ts"
import { putEcho, sampleAnswer, type EchoPlace } from "./EchoPlaces.ts"

export interface EchoCase {
  readonly customer_id: string
  readonly engine_reference: string
  readonly login: Canary
  /** Undefined: nothing is repeated but in `data`, where it must be kept. */
  readonly place: EchoPlace | undefined
}

interface Reply {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

interface Execution {
  readonly execution_id: string
  readonly session_id: string
  readonly external_execution_id: unknown
  readonly of: EchoCase
  readonly ticket: string
  looks: number
  aborted: boolean
}

const forms = {
  parameters: {
    type: "object",
    format: "cg-params",
    properties: { username: { type: "string" }, password: { type: "string", format: "password" } },
    required: ["username", "password"],
  },
  configurations: { type: "object", format: "cg-configs", properties: {} },
}

/** Words that the flow needs, over whatever the schema's sample says. */
const detailsOf = (reference: string) => ({
  ...(sampleAnswer("showEngine", 200) as object),
  ...forms,
  reference,
  status: "published",
  is_online: true,
  features: [{ code: "accounts_read", configurations: forms.configurations }],
})

export class EchoService {
  readonly #cases: ReadonlyMap<string, EchoCase>
  readonly #engines: ReadonlyMap<string, EchoCase>
  readonly #executions = new Map<string, Execution>()
  readonly #tokens = new Map<string, { readonly of: EchoCase; readonly token_key: string }>()
  readonly #told = new Set<string>()
  #starts = 0
  /** Places that were really answered with. */
  readonly echoed = new Set<EchoPlace>()
  /** What was issued: as secret as any login. */
  readonly issued: Array<Canary> = []
  readonly #server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const reply = this.#answer(request.method ?? "", request.url ?? "", Buffer.concat(chunks).toString())
      const text = reply.body === undefined ? undefined : JSON.stringify(reply.body)
      response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers })
      response.end(request.method === "HEAD" || [204, 304].includes(reply.status) ? undefined : text)
    })
  })

  readonly application: Canary
  readonly stranger: Canary
  readonly listPlaces: ReadonlyArray<EchoPlace>

  constructor(
    cases: ReadonlyArray<EchoCase>,
    echoed: { readonly application: Canary; readonly stranger: Canary },
    listPlaces: ReadonlyArray<EchoPlace>,
  ) {
    this.application = echoed.application
    this.stranger = echoed.stranger
    this.listPlaces = listPlaces
    this.#cases = new Map(cases.map((one) => [one.customer_id, one]))
    this.#engines = new Map(cases.map((one) => [one.engine_reference, one]))
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #echo(of: EchoCase | undefined, more: ReadonlyArray<Canary> = []): string {
    return echoOf([this.application, this.stranger, ...(of === undefined ? [] : [of.login]), ...more])
  }

  /** The good answer with the echo in it, where this is its place; a refusal instead of it, once. */
  #hostile(of: EchoCase, operation: string, good: Reply, more?: ReadonlyArray<Canary>): Reply {
    const { place } = of
    if (place?.operation !== operation) return good
    if (place.status === good.status) {
      this.echoed.add(place)
      return { ...good, body: putEcho(good.body, place, this.#echo(of, more)) }
    }
    const once = `${of.customer_id} ${operation}`
    if (place.status < 400 || this.#told.has(once)) return good
    this.#told.add(once)
    this.echoed.add(place)
    const body = putEcho(sampleAnswer(operation, place.status), place, this.#echo(of, more))
    return { status: place.status, body }
  }

  #answer(method: string, url: string, body: string): Reply {
    const path = decodeURIComponent(url.split("?", 1)[0] ?? "")
    const route = `${method} ${path}`
    if (route === "GET /api/config/engines/list") return this.#list()
    const engine = this.#engines.get(/^GET \/api\/config\/engines\/(.+)$/.exec(route)?.[1] ?? "")
    if (engine !== undefined) {
      const good = { status: 200, body: detailsOf(engine.engine_reference) }
      return this.#hostile(engine, "showEngine", good)
    }
    if (route === "POST /api/executions/init/v1/parametrized") return this.#start(body, "startExecution")
    if (route === "POST /api/executions/init/v1/tokenized") return this.#start(body, "startTokenized")
    if (route === "PUT /api/executions/t10n") return this.#exchange(body)
    const token = this.#tokens.get(/^DELETE \/api\/executions\/t10n\/(.+)$/.exec(route)?.[1] ?? "")
    if (token !== undefined) return this.#hostile(token.of, "revokeToken", { status: 204 })
    const [, verb, id = "", tail = ""] =
      /^(GET|HEAD|DELETE) \/api\/executions\/handler\/v1\/(.+?)(\/abort|\/delete)?$/.exec(route) ?? []
    const execution = this.#executions.get(id)
    if (verb !== undefined && execution !== undefined) return this.#handle(verb + tail, execution)
    const profile = this.#executions.get(
      /\/executions\/results\/(.+)\/customer\/v1\/profile$/.exec(path)?.[1] ?? "",
    )
    if (profile !== undefined) return this.#hostile(profile.of, "readProfile", this.#profile(profile))
    const session = /\/manager\/(.+)\/results$/.exec(path)?.[1]
    const ofSession = [...this.#executions.values()].find((one) => one.session_id === session)
    if (ofSession !== undefined)
      return this.#hostile(ofSession.of, "readFlowResults", this.#results(ofSession))
    const attached = [...this.#executions.values()].find((one) => path.includes(`/${one.session_id}/`))
    if (attached !== undefined) return this.#attachment(attached)
    return { status: 404, body: { detail: `nothing here ${this.#echo(undefined)}` } }
  }

  /** One engine for each place of the list. */
  #list(): Reply {
    const good = sampleAnswer("listEngines", 200)
    const [first] = Array.isArray(good) ? good : []
    const items = this.listPlaces.flatMap((place) => {
      this.echoed.add(place)
      const hostile = putEcho([first], place, this.#echo(undefined))
      return Array.isArray(hostile) ? hostile : [hostile]
    })
    return { status: 200, body: items }
  }

  #start(body: string, operation: string): Reply {
    const { customer_id, engine_reference, external_execution_id, token } = JSON.parse(body)
    const of = this.#cases.get(String(customer_id))
    if (of === undefined) return { status: 404, body: { detail: "no such customer" } }
    const number = (this.#starts += 1)
    const ids = { execution_id: `exec-${number}`, session_id: `session-${number}` }
    const ticket = `ticket-canary-${number}-Zq`
    const acceptance = {
      ...(sampleAnswer(operation, 202) as object),
      ...ids,
      customer_id,
      engine_reference,
      external_execution_id,
      status_code: "ONGOING",
      status_reason: "ACCEPTED",
      status_message: `ticket ${ticket}`,
      ticket,
      session_token: `session-token-${ticket}`,
    }
    const stored = typeof token === "object" ? [{ user: "t", secret: String(token.token_key) }] : []
    const more = [{ user: ids.execution_id, secret: ticket }, ...stored]
    const reply = this.#hostile(of, operation, { status: 202, body: acceptance }, more)
    // A ticket whose own place holds the echo was never issued.
    if (isObject(reply.body) && reply.body["ticket"] === ticket)
      this.issued.push({ user: ids.execution_id, secret: ticket })
    if (reply.status === 202)
      this.#executions.set(ids.execution_id, {
        ...ids,
        external_execution_id,
        of,
        ticket,
        looks: 0,
        aborted: false,
      })
    return reply
  }

  #state(execution: Execution, words: Readonly<Record<string, unknown>>) {
    const { execution_id, session_id, external_execution_id, of } = execution
    const { customer_id, engine_reference } = of
    const ids = { execution_id, session_id, external_execution_id, customer_id, engine_reference }
    const counted =
      of.place?.operation === "readProfile" ? "customer_information:user_profile" : "canary:kept"
    return {
      ...(sampleAnswer("readExecution", 200) as object),
      ...ids,
      authentication_status: "AUTH_OK",
      products_count: { [`${counted}@product`]: 1 },
      next_kick_date: "2026-11-20T23:00:00Z",
      ...words,
    }
  }

  #handle(call: string, execution: Execution): Reply {
    const { of, ticket } = execution
    const more = [{ user: "ticket", secret: ticket }]
    if (call === "DELETE/abort") {
      execution.aborted = true
      return this.#hostile(of, "abortExecution", { status: 204 }, more)
    }
    if (call === "DELETE/delete") return this.#hostile(of, "deleteExecution", { status: 204 }, more)
    if (call === "HEAD") return { status: 405 }
    execution.looks += 1
    const { operation = "", status = 0 } = of.place ?? {}
    const isChallenged = operation === "abortExecution" || (operation === "readExecution" && status === 423)
    if (execution.aborted) {
      const words = { status_code: "ABORTED", status_reason: "CLIENT_CANCELLED", is_closed: true }
      return this.#hostile(of, "readExecution", { status: 200, body: this.#state(execution, words) }, more)
    }
    if (isChallenged) {
      const body = sampleAnswer("readExecution", 423)
      return this.#hostile(of, "readExecution", { status: 423, body }, more)
    }
    if (execution.looks === 1) {
      const words = { status_code: "ONGOING", status_reason: "RUNNING", is_closed: false }
      return this.#hostile(of, "readExecution", { status: 202, body: this.#state(execution, words) }, more)
    }
    const words = { status_code: "COMPLETED", status_reason: "COMPLETED", is_closed: true }
    return this.#hostile(of, "readExecution", { status: 200, body: this.#state(execution, words) }, more)
  }

  #exchange(body: string): Reply {
    const { execution_id, ticket } = JSON.parse(body)
    const execution = this.#executions.get(String(execution_id))
    if (execution === undefined) return { status: 403, body: { detail: "no such ticket" } }
    const { customer_id, engine_reference } = execution.of
    const token = { token_id: `token-${execution_id}`, token_key: `token-key-canary-${execution_id}-Zq` }
    this.#tokens.set(token.token_id, { of: execution.of, token_key: token.token_key })
    const context = { customer_id, engine_reference, app_id: "app", features: ["accounts_read"] }
    const good = { ...(sampleAnswer("exchangeTicket", 200) as object), token, context }
    const more = [
      { user: "ticket", secret: String(ticket) },
      { user: "key", secret: token.token_key },
    ]
    const reply = this.#hostile(execution.of, "exchangeTicket", { status: 200, body: good }, more)
    const given = isObject(reply.body) ? reply.body["token"] : undefined
    if (isObject(given) && given["token_key"] === token.token_key)
      this.issued.push({ user: token.token_id, secret: token.token_key })
    return reply
  }

  #results({ of }: Execution): Reply {
    const isProfile = of.place?.operation === "readProfile"
    const record = {
      product: "product",
      sub_family: "canary:kept",
      // The positive control: what is searched for can be found where it must be kept.
      said: of.place === undefined ? echoOf([of.login]) : "nothing",
      ...(of.place?.operation === "downloadAttachment" ? { attachment_id: `doc-${of.customer_id}` } : {}),
    }
    const good = {
      ...(sampleAnswer("readFlowResults", 200) as object),
      data: { records: isProfile ? [] : [record] },
      is_closed: true,
    }
    return { status: 200, body: good }
  }

  #profile({ of }: Execution): Reply {
    const body = { product: "customer_information", sub_family: "customer_information:user_profile", of }
    return { status: 200, body: { ...body, of: of.customer_id } }
  }

  #attachment({ of }: Execution): Reply {
    const headers = { "content-type": `text/plain; of="${this.#echo(of).replaceAll(/[^\x20-\x7e]/g, "")}"` }
    return this.#hostile(of, "downloadAttachment", { status: 200, body: "a document", headers })
  }
}
