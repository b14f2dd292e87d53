/**
 * A service for campaigns about accounts: sources whose accounts are shared by customers and channels, start
 * answers that are hostile in every way, with or without a login behind them, and a record of each login at the
 * source. It judges nothing.
 */
import { Effect } from "effect"
import { HttpClient, HttpServerResponse, type HttpClientRequest, type HttpClientResponse } from "effect/http"
import { defineEngine, loginForm, password, text } from "../../src/sandbox/engines/EngineDefinition.ts"
import { engineDetails, engineView } from "../../src/sandbox/engines/AnswerEngines.ts"
import { brokenAnswer, transportError } from "./FaultyNetwork.ts"
import { answerOf, hidesConflict, isMade, saysRefused, type StartAnswerName } from "./StartAnswers.ts"

export interface Channel {
  /** `es-a:website` */
  readonly reference: string
  /** The first field is the username, the last one the password. */
  readonly fields: ReadonlyArray<string>
  readonly locking: ReadonlyArray<string>
}

/** What an engine's own page says, when it is asked; "once tried": that it is away, once after each start. */
export type Page = "available" | "detail" | "offline" | "gateway" | "silent" | "once tried"

/** What goes wrong with starts for a while, and what is seen of it from outside. */
export interface Storm {
  /** Engines that it is about. */
  readonly engines: ReadonlyArray<string>
  /** Accounts that it is about, as `accountOf` names them; undefined: all, as in an outage. */
  readonly accounts?: ReadonlyArray<string> | undefined
  readonly fromMs: number
  readonly untilMs: number
  /** The share of the starts; 1 for an outage. */
  readonly rate: number
  readonly answer: StartAnswerName
  /** Whether there is an execution, which logs in, although the answer does not say so. */
  readonly made: boolean
  readonly page: Page
  /** Whether the list of engines is away too. */
  readonly listAway?: boolean
}

export interface SourceLogin {
  readonly at: number
  readonly account: string
  readonly password: string
  readonly verdict: "good" | "refused"
  readonly execution: ExecutionAtSource
}

export interface ExecutionAtSource {
  readonly execution_id: string
  readonly account: string
  readonly customer: string
  readonly engine: string
  readonly external: string
  readonly password: string
  readonly acceptedAt: number
  loginAt: number
  closesAt: number
  /** INCORRECT_CREDENTIALS, COMPLETED, or what a storm makes of it. */
  end: string
  /** Answers 404 from then on. */
  hiddenFrom: number
  /** No login is tried. */
  isIdle: boolean
  /** When an answer that shows `AUTH_OK`, or a refusal, was handed to the pipeline, if one was. */
  toldAt: number | undefined
}

/** A start as it left the pipeline, and what came back. */
export interface StartSeen {
  readonly at: number
  readonly account: string
  readonly password: string
  readonly isEncrypted: boolean
  readonly customer: string
  readonly engine: string
  readonly external: string
  readonly process: number
  /** A status, or how the call failed; undefined if the pipeline was killed meanwhile. */
  answer: number | "refused connection" | "broken" | undefined
  /** When the answer came. */
  answeredAt: number | undefined
  /** What an answer with a readable id is about. */
  execution_id: string | undefined
  status_reason: string | undefined
  /** 422 with a list, or 400 with one of the two reasons of 4.1: nothing was sent, says the reference. */
  isListed: boolean
}

/** What a source takes for the same username. */
export const normalised = (username: string): string =>
  username
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, "")

export const accountOf = (engine: string, username: string): string =>
  `${engine.slice(0, engine.lastIndexOf(":"))}/${normalised(username)}`

/** A value that only the service can read: another text each time. */
export const encrypt = (value: string, salt: string): string =>
  `rsa::${Buffer.from(JSON.stringify([value, salt])).toString("base64")}`
const isEncrypted = (value: string): boolean => value.startsWith("rsa::")
const decrypt = (value: string): string =>
  isEncrypted(value)
    ? String((JSON.parse(Buffer.from(value.slice(5), "base64").toString()) as ReadonlyArray<string>)[0])
    : value

export interface HostileOptions {
  readonly channels: ReadonlyArray<Channel>
  readonly storms: ReadonlyArray<Storm>
  /** The password that the source takes now. */
  readonly rightPassword: (account: string, at: number) => string
  readonly now: () => number
  /** A number in [0, 1), from the seed. */
  readonly random: () => number
  /** Milliseconds until the login, and from there to the end. */
  readonly lengths: () => readonly [number, number]
}

export interface StartBody {
  readonly engine_reference: string
  readonly customer_id: string
  readonly external_execution_id: string
  readonly parameters?: Readonly<Record<string, string>>
  readonly token?: { readonly token_id: string }
}

export const jsonBody = (request: HttpClientRequest.HttpClientRequest): unknown =>
  request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : undefined

export class HostileService {
  readonly executions: Array<ExecutionAtSource> = []
  private readonly options: HostileOptions
  private readonly byId = new Map<string, ExecutionAtSource>()
  private readonly tickets = new Map<string, ExecutionAtSource>()
  private readonly tokens = new Map<string, { readonly username: string; readonly password: string }>()
  private readonly usernames = new Map<string, string>()
  private readonly definitions: ReadonlyMap<string, ReturnType<typeof defineEngine>>
  private wasTried = false

  constructor(options: HostileOptions) {
    this.options = options
    this.definitions = new Map(options.channels.map((channel) => [channel.reference, engineOf(channel)]))
  }

  readonly client: HttpClient.HttpClient = HttpClient.make((request) =>
    Effect.suspend(() => {
      const path = new URL(request.url).pathname.replace(/^\/api/, "")
      const of = (response: HttpServerResponse.HttpServerResponse) =>
        Effect.succeed(HttpServerResponse.toClientResponse(response, { request }))
      const page = path.startsWith("/config/engines/")
        ? this.engines(decodeURIComponent(path.slice("/config/engines/".length)))
        : undefined
      if (page === "silent") return Effect.never
      if (page !== undefined) return of(page)
      if (path.endsWith("/init/v1/parametrized") || path.endsWith("/init/v1/tokenized"))
        return this.start(request, of)
      if (path === "/executions/t10n") return of(this.exchange(request))
      const handled = /^\/executions\/handler\/v1\/([^/]+)(\/abort|\/delete)?$/.exec(path)
      return of(handled === null ? empty(404) : this.handle(handled[1] ?? "", handled[2]))
    }),
  )

  /** The login that a start sends. */
  loginOf({ engine_reference, parameters = {}, token }: StartBody) {
    const stored = token === undefined ? undefined : this.tokens.get(token.token_id)
    const fields = this.options.channels.find(({ reference }) => reference === engine_reference)?.fields ?? []
    const username = stored?.username ?? parameters[fields[0] ?? ""] ?? ""
    const sent = stored?.password ?? parameters[fields.at(-1) ?? ""] ?? ""
    const password = decrypt(sent)
    return {
      account: accountOf(engine_reference, decrypt(username)),
      username: decrypt(username),
      password,
      isEncrypted: isEncrypted(sent) || isEncrypted(username),
    }
  }

  /** The logins that the sources saw until now, in their order. */
  logins(): ReadonlyArray<SourceLogin> {
    const now = this.options.now()
    return this.executions
      .filter(({ isIdle, loginAt, closesAt }) => !isIdle && loginAt <= now && loginAt <= closesAt)
      .map((execution): SourceLogin => {
        const { loginAt: at, account, password, end } = execution
        return { at, account, password, verdict: isRefusal(end) ? "refused" : "good", execution }
      })
      .toSorted((a, b) => a.at - b.at)
  }

  private stormOver(engine: string, account?: string): Storm | undefined {
    const now = this.options.now()
    return this.options.storms.find(
      (storm) =>
        storm.fromMs <= now &&
        now < storm.untilMs &&
        storm.engines.includes(engine) &&
        (account === undefined
          ? storm.accounts === undefined && storm.rate === 1
          : storm.accounts?.includes(account) !== false && this.options.random() < storm.rate),
    )
  }

  private engines(name: string): HttpServerResponse.HttpServerResponse | "silent" {
    const now = this.options.now()
    if (name === "list") {
      const isAway = [...this.definitions.keys()].some((one) => this.stormOver(one)?.listAway === true)
      return isAway ? json({ detail: "away" }, 503) : json([...this.definitions.values()].map(viewAt(now)))
    }
    const definition = this.definitions.get(name)
    if (definition === undefined) return json({ detail: "no such engine" }, 404)
    const storm = this.stormOver(name)
    if (storm?.listAway === true) return json({ detail: "away" }, 503)
    switch (storm?.page ?? "available") {
      case "available":
        return json(engineDetails(definition, now))
      case "detail":
        return json({ detail: "maintenance" }, 503)
      case "offline":
        return json({ ...engineDetails(definition, now), is_online: false, status: "maintenance" })
      case "gateway":
        return HttpServerResponse.text("<html>bad gateway</html>", { status: 502, contentType: "text/html" })
      case "silent":
        return "silent"
      case "once tried": {
        const isAway = this.wasTried
        this.wasTried = false
        return isAway ? json({ detail: "maintenance" }, 503) : json(engineDetails(definition, now))
      }
    }
  }

  private start(
    request: HttpClientRequest.HttpClientRequest,
    of: (
      response: HttpServerResponse.HttpServerResponse,
    ) => Effect.Effect<HttpClientResponse.HttpClientResponse>,
  ) {
    const body = jsonBody(request) as StartBody
    const login = this.loginOf(body)
    const storm = this.stormOver(body.engine_reference, login.account)
    if (storm?.answer === "connection refused")
      return Effect.fail(transportError(request, "ECONNREFUSED", "connect"))
    this.wasTried ||= storm?.page === "once tried"
    const isBefore = storm !== undefined && !isMade(storm.answer, storm.made)
    const made = isBefore ? undefined : this.create(body, storm?.answer)
    if (made?.isRunning === true && !hidesConflict(storm?.answer))
      return of(json(acceptance(made.execution, "ALREADY_EXECUTING"), 409))
    if (storm?.answer.startsWith("lost") === true)
      return brokenAnswer(request, storm.answer === "lost: time-out" ? 1 : 0)
    const accepted = made && acceptance(made.execution, "ACCEPTED")
    return of(answerOf(storm?.answer, accepted, body))
  }

  /** 4.1: a new execution, or the one that is running for the same customer with the same external id. */
  private create(body: StartBody, answer: StartAnswerName | undefined) {
    const now = this.options.now()
    const { customer_id: customer, engine_reference: engine, external_execution_id: external } = body
    const running = this.executions.find(
      (one) => one.closesAt > now && one.customer === customer && one.external === external,
    )
    if (running !== undefined) return { isRunning: true, execution: running }
    const { account, username, password: sent } = this.loginOf(body)
    const [wait, work] = this.options.lengths()
    const loginAt = now + wait
    const isRight = sent === this.options.rightPassword(account, loginAt)
    const execution: ExecutionAtSource = {
      execution_id: `e-${String(this.executions.length).padStart(6, "0")}`,
      account,
      customer,
      engine,
      external,
      password: sent,
      acceptedAt: now,
      loginAt,
      // A refusal ends an execution at once (6.1).
      closesAt: isRight ? loginAt + work : loginAt,
      end: isRight ? "COMPLETED" : "INCORRECT_CREDENTIALS",
      hiddenFrom: Infinity,
      isIdle: false,
      toldAt: undefined,
    }
    changedBy(execution, answer)
    this.executions.push(execution)
    this.byId.set(execution.execution_id, execution)
    this.usernames.set(execution.execution_id, username)
    this.tickets.set(`ticket-${execution.execution_id}`, execution)
    return { isRunning: false, execution }
  }

  private exchange(request: HttpClientRequest.HttpClientRequest): HttpServerResponse.HttpServerResponse {
    const { ticket } = jsonBody(request) as { readonly ticket: string }
    const execution = this.tickets.get(ticket)
    if (execution === undefined) return json({ detail: "no" }, 403)
    this.tickets.delete(ticket)
    const { engine: engine_reference, customer: customer_id, password: stored, execution_id } = execution
    const token_id = `token-${execution_id}`
    this.tokens.set(token_id, { username: this.usernames.get(execution_id) ?? "", password: stored })
    const context = { engine_reference, app_id: "app", customer_id, features: [] }
    return json({ token: { token_id, token_key: `key-of-${token_id}` }, context })
  }

  private handle(id: string, what: string | undefined): HttpServerResponse.HttpServerResponse {
    const now = this.options.now()
    const execution = this.byId.get(id)
    if (execution === undefined || execution.hiddenFrom <= now) return json({ detail: "not found" }, 404)
    const isClosed = execution.closesAt <= now
    if (what === "/abort") {
      if (isClosed) return empty(304)
      execution.closesAt = now
      execution.end = "CLIENT_CANCELLED"
      return empty(204)
    }
    if (what === "/delete") {
      if (!isClosed) return json({ detail: "still running" }, 409)
      execution.hiddenFrom = now
      return empty(204)
    }
    const state = stateOf(execution, now)
    // For whoever observes the door: what the caller can read in it.
    const headers = { [toldHeader]: state.authentication_status }
    return HttpServerResponse.jsonUnsafe(state, { status: isClosed ? 200 : 202, headers })
  }
}

const viewAt = (now: number) => (definition: ReturnType<typeof defineEngine>) => engineView(definition, now)

const engineOf = ({ reference, fields, locking }: Channel) =>
  defineEngine(reference, {
    name: reference,
    category: "financial",
    subCategories: ["financial:bank"],
    features: ["accounts_read"],
    parameters: loginForm(
      Object.fromEntries(
        fields.map((field, index) => [field, index === fields.length - 1 ? password(field) : text(field)]),
      ),
      { locking },
    ),
  })

export const toldHeader = "told-authentication-status"
export const isRefusal = (end: string): boolean => end === "INCORRECT_CREDENTIALS"

/** What some answers say of the execution that they are about. */
const changedBy = (execution: ExecutionAtSource, answer: StartAnswerName | undefined) => {
  const { acceptedAt } = execution
  // No answer tells of a refusal before the source has refused the login, and that ends the execution (6.1).
  if (answer !== undefined && saysRefused(answer)) {
    execution.end = "INCORRECT_CREDENTIALS"
    execution.loginAt = acceptedAt
    execution.closesAt = acceptedAt
  }
  switch (answer) {
    case "unlisted end":
      if (!isRefusal(execution.end)) execution.end = "SOMETHING_NEW"
      return
    case "never found":
    case "accepted, refused, never found":
      execution.hiddenFrom = acceptedAt
      return
    case "not found after the login":
      if (!isRefusal(execution.end)) execution.hiddenFrom = execution.closesAt
      return
    case "network error":
    case "cancelled in the queue":
      execution.end = answer === "network error" ? "NETWORK_ERROR" : "SYSTEM_CANCELLED"
      execution.isIdle = true
      return
    default:
  }
}

const familyOf = (end: string): string =>
  end === "INCORRECT_CREDENTIALS"
    ? "AUTH_ERROR"
    : end === "NETWORK_ERROR"
      ? "TEMPORARY_ERROR"
      : end.endsWith("CANCELLED")
        ? "ABORTED"
        : end

const json = (body: unknown, status = 200) => HttpServerResponse.jsonUnsafe(body, { status })
const empty = (status: number) => HttpServerResponse.empty({ status })
const iso = (at: number): string => new Date(at).toISOString()

const idsOf = ({ execution_id, customer, engine, external }: ExecutionAtSource) => ({
  app_id: "app",
  customer_id: customer,
  auth_origin: "app-secret",
  engine_reference: engine,
  execution_id,
  session_id: Buffer.from(execution_id).toString("hex").padEnd(24, "0"),
  external_execution_id: external,
})

const acceptance = (execution: ExecutionAtSource, status_reason: "ACCEPTED" | "ALREADY_EXECUTING") => ({
  ...idsOf(execution),
  status_reason,
  status_code: status_reason === "ACCEPTED" ? "ONGOING" : "TEMPORARY_ERROR",
  ...(status_reason === "ACCEPTED" ? { ticket: `ticket-${execution.execution_id}` } : {}),
})

/** 2.4: what is known of the login is known from the moment of the login. */
const stateOf = (execution: ExecutionAtSource, now: number) => {
  const { end, closesAt, loginAt, isIdle, acceptedAt } = execution
  const isClosed = closesAt <= now
  const isJudged = !isIdle && loginAt <= now && loginAt <= closesAt
  const wasTried = isJudged || (end === "NETWORK_ERROR" && isClosed)
  return {
    ...idsOf(execution),
    status_code: isClosed ? familyOf(end) : "ONGOING",
    status_reason: isClosed ? end : isJudged ? "RUNNING" : "ACCEPTED",
    authentication_status: isJudged ? (isRefusal(end) ? end : "AUTH_OK") : "not-performed",
    is_closed: isClosed,
    products_count: {},
    end_hook: "skipped",
    warnings_count: 0,
    errors_count: 0,
    ...(wasTried ? { locking_hash: "v1.hash", date_started: iso(loginAt) } : {}),
    date_created: iso(acceptedAt),
    ...(isClosed ? { date_ended: iso(closesAt) } : {}),
    execution_time: 1,
    running_time: 1,
    total_elapsed_time: 1,
    features: [{ code: "accounts_read", status_reason: isClosed ? "FEATURE_COMPLETED" : "FEATURE_ACCEPTED" }],
    messages: [],
  }
}
