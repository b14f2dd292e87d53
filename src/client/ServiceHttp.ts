/**
 * The service over HTTP: requests are built from the contract's endpoints, every documented status becomes
 * the port's answer, every other one a failure that says whether anything can have happened. The
 * application secret is sent to the configured URLs only; redirects are not followed; answers are bounded
 * in size and time; nothing is retried.
 */
import { Effect, Layer, Predicate, Redacted, Result } from "effect"
import type { HttpClient } from "effect/http"
import { encodeSegment } from "../service/Ids.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { ExecutionApi, FlowApi } from "../service/Api.ts"
import { inItsPlace, retryAfter, type Endpoint } from "./CallFailures.ts"
import { openExchange, type Answer, type ServiceLimits } from "./Exchange.ts"
import { AnswerLost, Service, Throttled, UnexpectedAnswer, checkAddress } from "./Service.ts"
import type {
  AbortAnswer,
  CallFailure,
  DeleteAnswer,
  EngineAnswer,
  ExchangeAnswer,
  PollAnswer,
  ResultsAnswer,
  RevokeAnswer,
  ServiceSettings,
  ServiceSettingsRefused,
  StartAnswer,
  StartCall,
  StateAnswer,
} from "./Service.ts"
import { refusalIn } from "../service/Ends.ts"
import { recordsPlace, type ResultsSource, type SourceIds } from "../service/FlowResults.ts"
import { readEngine, viewAcceptance, viewExchanged, viewSecret, viewState, withUsableIds } from "./Views.ts"

const endpoints = {
  ...ExecutionApi.groups.executions.endpoints,
  ...ExecutionApi.groups.tokens.endpoints,
  ...ExecutionApi.groups.engines.endpoints,
  ...FlowApi.groups.flows.endpoints,
}

/** 202, 400, 409, 422 and 503 of a start (4.1); 200 and 201 with an acceptance body are one, too. */
const answerStart = Effect.fnUntraced(function* (answer: Answer): Effect.fn.Return<StartAnswer, CallFailure> {
  switch (answer.http_status) {
    case 200:
    case 201:
    case 202: {
      const { body: read, unblanked } = yield* answer.issued("object")
      const body = withUsableIds(read)
      const ticket = viewSecret(unblanked, "ticket")
      const view = viewAcceptance(body.json)
      const { http_status } = answer
      const known = yield* KnownSecrets
      // Later answers may repeat them, for as long as this process lives.
      for (const one of [ticket, viewSecret(unblanked, "session_token")])
        if (one !== undefined) known.hold(one, "process")
      return ticket === undefined
        ? { _tag: "Accepted", http_status, body, view }
        : { _tag: "Accepted", http_status, body, view: { ...view, ticket } }
    }
    case 400:
    case 422: {
      const body = yield* answer.body
      return { _tag: "Refused", http_status: answer.http_status, body, view: viewAcceptance(body.json) }
    }
    case 409: {
      const body = withUsableIds(yield* answer.body)
      return { _tag: "AlreadyExecuting", body, view: viewAcceptance(body.json) }
    }
    default: {
      // A login that was refused is not sent again, whatever status says so.
      const { http_status } = answer
      const said = yield* Effect.option(answer.body)
      const view = viewAcceptance(said._tag === "Some" ? said.value.json : undefined)
      if (said._tag === "Some" && refusalIn(view) !== undefined)
        return { _tag: "Refused", http_status, body: said.value, view }
      if (http_status === 404 && answer.isPage)
        return yield* new AnswerLost(inItsPlace(answer.call, http_status))
      if (http_status !== 503) return yield* answer.failed
      return { _tag: "EngineUnavailable", ...(yield* retryAfter(answer.response)) }
    }
  }
})

/** 4.2 */
const answerState = Effect.fnUntraced(function* (answer: Answer): Effect.fn.Return<StateAnswer, CallFailure> {
  switch (answer.http_status) {
    case 200:
    case 202: {
      const body = withUsableIds(yield* answer.json("object"))
      return { _tag: answer.http_status === 200 ? "Closed" : "Working", body, view: viewState(body.json) }
    }
    case 423: {
      const body = withUsableIds(yield* answer.body)
      return { _tag: "ActionRequired", body, view: viewState(body.json) }
    }
    case 404:
      yield* answer.discard
      if (answer.isPage) return yield* new UnexpectedAnswer(inItsPlace(answer.call, 404))
      return { _tag: "NotFound" }
    default:
      return yield* answer.undocumented
  }
})

/** 4.12: only the codes of 4.2 count as an answer; 429 and 503 only say that it came at a bad time. */
const answerPoll = (answer: Answer): Effect.Effect<PollAnswer, CallFailure> => {
  switch (answer.http_status) {
    case 202:
      return Effect.as(answer.discard, "working")
    case 200:
    case 404:
    case 423:
      return Effect.as(answer.discard, "changed")
    case 429:
    case 503:
      return answer.undocumented
    default:
      return Effect.as(answer.discard, "unanswered")
  }
}

/** Answers in which the status says everything, if it is the service's own. */
const answerStatus =
  <A>(answers: Readonly<Record<number, A>>) =>
  (answer: Answer): Effect.Effect<A, CallFailure> => {
    const { http_status } = answer
    const known = answers[http_status]
    if (known === undefined) return answer.undocumented
    if (!answer.isPage) return Effect.as(answer.discard, known)
    return Effect.andThen(answer.discard, new UnexpectedAnswer(inItsPlace(answer.call, http_status)))
  }

/** 4.4 */
const answerAbort = answerStatus<AbortAnswer>({
  204: "aborted",
  304: "already_closed",
  404: "not_found",
  409: "not_stoppable",
})

/** 4.5 */
const answerDelete = answerStatus<DeleteAnswer>({ 204: "deleted", 404: "gone", 409: "still_running" })

/** 4.10 and 4.12, as in the source's row. */
const answerResults = (source: ResultsSource) =>
  Effect.fnUntraced(function* (answer: Answer): Effect.fn.Return<ResultsAnswer, CallFailure> {
    const { http_status } = answer
    if (http_status === 200) {
      const body = yield* answer.json(source.records.includes("body") ? "value" : "object")
      return { _tag: "Results", body }
    }
    if (source.nothing.includes(http_status)) {
      yield* answer.discard
      return { _tag: "NothingThere", http_status }
    }
    if (http_status === 504 && source.api === "flows_url") {
      yield* answer.discard
      const message = `${answer.call}: the session is locked; the service asks to retry later (504)`
      return yield* new Throttled({ http_status, ...(yield* retryAfter(answer.response)), message })
    }
    return yield* answer.undocumented
  })

/** A source's row as an endpoint; its path names ids as the contract's paths do. */
const endpointOf = ({ name, path }: ResultsSource): Endpoint => ({
  identifier: name,
  method: "GET",
  path: path.replaceAll(/\{([a-z_]+)\}/g, ":$1"),
  "~Params": { Type: undefined },
  "~Payload": { Type: undefined },
})

/** 4.12 */
const answerAttachment = Effect.fnUntraced(function* (answer: Answer) {
  // It was asked for as it is: decoded by nobody, it would be stored as no document.
  const { "content-encoding": encoding = "identity" } = answer.response.headers
  if (answer.http_status === 200 && encoding === "identity") {
    const known = yield* KnownSecrets
    const said = answer.response.headers["content-type"]
    const media_type = said === undefined ? undefined : known.clean(said, "free")
    const document = { _tag: "Document" as const, bytes: answer.stream }
    return media_type === undefined ? document : { ...document, media_type }
  }
  if (answer.http_status !== 404) return yield* answer.undocumented
  yield* answer.discard
  return { _tag: "Missing" as const }
})

// Engines (4.8, 4.9): an unreadable answer is reported without quoting the body.

/** 4.8 */
const answerEngines = Effect.fnUntraced(function* (answer: Answer) {
  if (answer.http_status !== 200) return yield* answer.undocumented
  const body = yield* answer.json("list")
  if (body.unusable === undefined) return { body }
  const message = `${answer.call}: the answer cannot be used: ${body.unusable} (200)`
  return yield* new UnexpectedAnswer({ http_status: 200, message })
})

/** 4.9 */
const answerEngine = Effect.fnUntraced(function* (
  answer: Answer,
): Effect.fn.Return<EngineAnswer, CallFailure> {
  switch (answer.http_status) {
    case 200: {
      const { json } = yield* answer.json("object")
      const engine = readEngine(json)
      if (Result.isSuccess(engine)) return { _tag: "Engine", engine: engine.success }
      const message = `${answer.call}: the engine's details cannot be read: ${engine.failure} (200)`
      return yield* new UnexpectedAnswer({ http_status: 200, message })
    }
    case 404:
    case 422:
      yield* answer.discard
      if (answer.isPage) return yield* new UnexpectedAnswer(inItsPlace(answer.call, answer.http_status))
      return { _tag: "EngineUnknown" }
    case 503: {
      const { json } = yield* answer.body
      const detail = Predicate.isObject(json) ? json["detail"] : undefined
      return {
        _tag: "EngineUnavailable",
        ...(yield* retryAfter(answer.response)),
        ...(typeof detail === "string" ? { detail } : {}),
      }
    }
    default:
      return yield* answer.undocumented
  }
})

// Tickets and tokens (4.6, 4.7). The bodies are never kept: that of an exchange holds the only copy of a key.

/** 4.6: here, 403 is the answer for every failure and says nothing about the application secret. */
const answerExchange = Effect.fnUntraced(function* (
  answer: Answer,
): Effect.fn.Return<ExchangeAnswer, CallFailure> {
  switch (answer.http_status) {
    case 200: {
      const { body, unblanked } = yield* answer.issued("object")
      const exchanged = viewExchanged(body.json, unblanked)
      if (exchanged !== undefined) {
        // Later answers may repeat it, for as long as this process lives.
        ;(yield* KnownSecrets).hold(exchanged.token.token_key, "process")
        return exchanged
      }
      const message = `${answer.call}: the answer contains no token (200)`
      return yield* new AnswerLost({ message, http_status: 200 })
    }
    case 403:
      if (answer.isPage) return yield* answer.undocumented
      yield* answer.discard
      return { _tag: "Refused" }
    default:
      return yield* answer.undocumented
  }
})

/** 4.7 */
const answerRevoke = answerStatus<RevokeAnswer>({
  204: "revoked",
  304: "already_revoked",
  404: "not_found",
})

/** A form is what logins are checked against: values that customers choose from are not echoes. */
const ofForms = () => ({ place: "own" as const })

const make = Effect.fnUntraced(function* (settings: ServiceSettings, limits: Partial<ServiceLimits>) {
  const base_url = yield* Effect.fromResult(checkAddress("base_url", settings.base_url))
  const flows_url = yield* Effect.fromResult(checkAddress("flows_url", settings.flows_url))
  const attachments_url = yield* Effect.fromResult(checkAddress("attachments_url", settings.attachments_url))
  const exchange = yield* openExchange(settings.app_secret, limits)
  const start = exchange(endpoints.startExecution, base_url, "small", answerStart)
  const startWithToken = exchange(endpoints.startTokenized, base_url, "small", answerStart)
  const exchangeTicket = exchange(endpoints.exchangeTicket, base_url, "small", answerExchange)
  const revoke = exchange(endpoints.revokeToken, base_url, "small", answerRevoke)
  const read = exchange(endpoints.readExecution, base_url, "small", answerState)
  const poll = exchange(endpoints.pollExecution, base_url, "small", answerPoll)
  const abort = exchange(endpoints.abortExecution, base_url, "small", answerAbort)
  const remove = exchange(endpoints.deleteExecution, base_url, "small", answerDelete)
  const prepared = new Map<string, ReturnType<typeof prepareResults>>()
  const prepareResults = (source: ResultsSource) =>
    exchange(
      endpointOf(source),
      source.api === "base_url" ? base_url : flows_url,
      "results",
      answerResults(source),
      (json) => ({ records: recordsPlace(source, json) }),
    )
  const readResults = (source: ResultsSource, ids: SourceIds) => {
    const known = prepared.get(source.name) ?? prepareResults(source)
    prepared.set(source.name, known)
    const params = { execution_id: ids.execution_id ?? "", session_id: ids.session_id ?? "" }
    return known({ params, payload: undefined })
  }
  const download = exchange(endpoints.downloadAttachment, attachments_url, "attachment", answerAttachment)
  const list = exchange(endpoints.listEngines, base_url, "small", answerEngines, ofForms)
  const show = exchange(endpoints.showEngine, base_url, "small", answerEngine, ofForms)
  const sendStart = ({ features, login, ...call }: StartCall) => {
    // Section 4.1: the engine runs its defaults if the list is omitted, which an empty list does not mean.
    const asked = features.length === 0 ? call : { ...call, features }
    if (login._tag === "Parameters")
      return start({ payload: { ...asked, parameters: Redacted.value(login.parameters) } })
    const token = { token_id: login.token_id, token_key: Redacted.value(login.token_key) }
    return startWithToken({ payload: { ...asked, token } })
  }
  return Service.of({
    startExecution: (call, leaving) => Effect.andThen(leaving, sendStart(call)),
    readExecution: (execution_id) => read({ params: { execution_id } }),
    pollExecution: (execution_id) => poll({ params: { execution_id } }),
    abortExecution: (execution_id) => abort({ params: { execution_id } }),
    deleteExecution: (execution_id) => remove({ params: { execution_id } }),
    readResults,
    downloadAttachment: (session_id, attachment_id) => download({ params: { session_id, attachment_id } }),
    exchangeTicket: (execution_id, ticket) =>
      exchangeTicket({ payload: { execution_id, ticket: Redacted.value(ticket) } }),
    revokeToken: (token_id) => revoke({ params: { token_id } }),
    listEngines: list({}),
    showEngine: (engine_reference) =>
      // A reference that cannot be in a path is unknown (4.9: 422); requesting it would read another URL.
      encodeSegment(engine_reference) === undefined
        ? Effect.succeed({ _tag: "EngineUnknown" })
        : show({ params: { engine_reference } }),
  })
})

export const ServiceHttp = {
  /**
   * Fails with ServiceSettingsRefused, before any request, if a URL or the secret cannot be used safely.
   * `limits` are those that differ from the defaults of `Exchange.ts`.
   */
  layer: (
    settings: ServiceSettings,
    limits: Partial<ServiceLimits> = {},
  ): Layer.Layer<Service, ServiceSettingsRefused, HttpClient.HttpClient> =>
    Layer.effect(Service, make(settings, limits)),
}
