/**
 * The service as the pipeline sees it: one method per call, every documented status a tagged answer,
 * everything else a tagged failure that says whether the request can have had an effect. Bodies are
 * returned as bytes (for landing) with a tolerant reading of them. The HTTP layer is `ServiceHttp.ts`; over
 * an in-process HttpClient it also serves the embedded service and the simulation.
 */
import { Context, Redacted, Result, Schema, type Duration, type Effect, type Stream } from "effect"
import { parseServiceUrl, serviceUrlRule } from "../jobs/Scalars.ts"
import type { ResultsSource, SourceIds } from "../service/FlowResults.ts"
import type { CustomerId, EngineReference, ExecutionId, SessionId } from "../service/Ids.ts"
import type { AcceptanceView, Body, EngineView, StateView, TokenContextView, TokenPairView } from "./Views.ts"

export type { AcceptanceView, Body, StateView } from "./Views.ts"

/** It never reached the service, or was turned away before it could act. Safe to send again. */
export class NotSent extends Schema.TaggedError<NotSent>()("NotSent", { message: Schema.String }) {}
/** Sent, answer unknown (reset, timeout, cut body, 408, 5xx, unlisted 2xx): it may have had an effect. */
export class AnswerLost extends Schema.TaggedError<AnswerLost>()("AnswerLost", {
  message: Schema.String,
  http_status: Schema.optionalKey(Schema.Int),
}) {}
/** 429, or 503 if the reference gives it no other meaning: nothing happened, try again later. */
export class Throttled extends Schema.TaggedError<Throttled>()("Throttled", {
  http_status: Schema.Int,
  retry_after: Schema.optionalKey(Schema.Duration),
  message: Schema.String,
}) {}
/** 401 or 403: the service refuses the application secret. */
export class SecretRefused extends Schema.TaggedError<SecretRefused>()("SecretRefused", {
  http_status: Schema.Int,
  message: Schema.String,
}) {}
/** A status that the reference does not list for this call, or a redirect, which is never followed. */
export class UnexpectedAnswer extends Schema.TaggedError<UnexpectedAnswer>()("UnexpectedAnswer", {
  http_status: Schema.Int,
  message: Schema.String,
}) {}
export type CallFailure = NotSent | AnswerLost | Throttled | SecretRefused | UnexpectedAnswer

export type StartAnswer =
  | {
      readonly _tag: "Accepted"
      readonly http_status: number
      readonly body: Body
      readonly view: AcceptanceView
    }
  | {
      readonly _tag: "Refused"
      /** 400 or 422; any other, if the body says that the source refused the login. */
      readonly http_status: number
      readonly body: Body
      readonly view: AcceptanceView
    }
  | { readonly _tag: "AlreadyExecuting"; readonly body: Body; readonly view: AcceptanceView }
  | { readonly _tag: "EngineUnavailable"; readonly retry_after?: Duration.Duration }

export type StateAnswer =
  | { readonly _tag: "Closed"; readonly body: Body; readonly view: StateView }
  | { readonly _tag: "Working"; readonly body: Body; readonly view: StateView }
  /** Which fields of 2.4 come with the challenge is not shown: it may be the whole state or none. */
  | { readonly _tag: "ActionRequired"; readonly body: Body; readonly view: StateView }
  | { readonly _tag: "NotFound" }

/**
 * A poll by status alone (4.12). `changed`: 200, 423 or 404, which a read then explains. `unanswered`: the
 * service does not support such polls.
 */
export type PollAnswer = "working" | "changed" | "unanswered"

export type AbortAnswer = "aborted" | "already_closed" | "not_found" | "not_stoppable"
export type DeleteAnswer = "deleted" | "gone" | "still_running"

/** `NothingThere`: a status that the source's row lists for it; any other 4xx is a failure. */
export type ResultsAnswer =
  | { readonly _tag: "Results"; readonly body: Body }
  | { readonly _tag: "NothingThere"; readonly http_status: number }

export type EngineAnswer =
  | { readonly _tag: "Engine"; readonly engine: EngineView }
  | { readonly _tag: "EngineUnknown" }
  | { readonly _tag: "EngineUnavailable"; readonly retry_after?: Duration.Duration; readonly detail?: string }

/** 4.6. `Refused` is the uniform 403: it never says why, and the ticket can no longer be used. */
export type ExchangeAnswer =
  | { readonly _tag: "Exchanged"; readonly token: TokenPairView; readonly context: TokenContextView }
  | { readonly _tag: "Refused" }

export type RevokeAnswer = "revoked" | "already_revoked" | "not_found"

export type AttachmentAnswer<E> =
  | { readonly _tag: "Document"; readonly media_type?: string; readonly bytes: Stream.Stream<Uint8Array, E> }
  | { readonly _tag: "Missing" }

/** How a start logs in: with parameters (4.1) or with a stored token (4.12). */
export type StartLogin =
  | {
      readonly _tag: "Parameters"
      readonly parameters: Redacted.Redacted<Readonly<Record<string, unknown>>>
    }
  | ({ readonly _tag: "Token" } & TokenPairView)

/** The body of a start (section 4.1); its login is redacted until the request is written. */
export interface StartCall {
  readonly engine_reference: EngineReference
  readonly customer_id: CustomerId
  readonly login: StartLogin
  readonly external_execution_id: string
  readonly base_configurations: {
    readonly customer_interaction_available: false
    readonly execution_timeout: number
    readonly unlock_protected_data: boolean
    readonly tokenized_access: boolean
  }
  readonly features: ReadonlyArray<
    string | { readonly code: string; readonly configurations: Readonly<Record<string, unknown>> }
  >
  readonly hooks_extra_data: Readonly<Record<string, string>>
  readonly configurations: Readonly<Record<string, unknown>>
}

/** The engine that the calls of a fiber are about, if they are about one; its 503 need not be the host's. */
export const EngineOfCalls = Context.Reference<EngineReference | undefined>("nightjar/client/EngineOfCalls", {
  defaultValue: () => undefined,
})

/** An error of the caller, besides those of the call. */
export interface Tagged {
  readonly _tag: string
}

/**
 * One call is one request: no method retries by itself, so attempts, limits and waits are decided in one
 * place. 500, 502 and 504 are AnswerLost (for reads this only means "read again"); 429 is always Throttled;
 * 503 is Throttled unless the answer type names EngineUnavailable.
 */
export class Service extends Context.Service<
  Service,
  {
    /** `leaving` runs once, just before the request is sent; if it fails, nothing is sent. */
    readonly startExecution: <E extends Tagged = never>(
      call: StartCall,
      leaving: Effect.Effect<void, E>,
    ) => Effect.Effect<StartAnswer, CallFailure | E>
    readonly readExecution: (execution_id: ExecutionId) => Effect.Effect<StateAnswer, CallFailure>
    /** 4.12: the reference does not show what HEAD answers, so it only decides when to read. */
    readonly pollExecution: (execution_id: ExecutionId) => Effect.Effect<PollAnswer, CallFailure>
    readonly abortExecution: (execution_id: ExecutionId) => Effect.Effect<AbortAnswer, CallFailure>
    readonly deleteExecution: (execution_id: ExecutionId) => Effect.Effect<DeleteAnswer, CallFailure>
    /** 504 of the flow API (lock) is reported as Throttled: it is documented, and only means "later". */
    readonly readResults: (source: ResultsSource, ids: SourceIds) => Effect.Effect<ResultsAnswer, CallFailure>
    readonly downloadAttachment: (
      session_id: SessionId,
      attachment_id: string,
    ) => Effect.Effect<AttachmentAnswer<CallFailure>, CallFailure>
    /** 4.6: the call uses up the ticket, so a lost answer may have cost the token. */
    readonly exchangeTicket: (
      execution_id: ExecutionId,
      ticket: Redacted.Redacted<string>,
    ) => Effect.Effect<ExchangeAnswer, CallFailure>
    readonly revokeToken: (token_id: string) => Effect.Effect<RevokeAnswer, CallFailure>
    readonly listEngines: Effect.Effect<{ readonly body: Body }, CallFailure>
    readonly showEngine: (engine_reference: EngineReference) => Effect.Effect<EngineAnswer, CallFailure>
  }
>()("nightjar/client/Service") {}

// The service with something done to every call, whatever the call is: one list of the port's methods for
// all such wrappers, so that none is forgotten.

/** Which call of the port it is, and which execution, session, login or engine it is about, if one. */
export interface CallAbout {
  readonly endpoint: string
  readonly subject?: string
  /** The document, if it is one of a session: only a Retry-After is about it alone. */
  readonly part?: string
  /** The part of the service that it goes to; elsewhere than `base_url` only for results and documents. */
  readonly at?: keyof ServiceAddresses
}

/** What is done to a call; its answers stay what they are. */
export type Around = <A, E extends Tagged = never>(
  call: Effect.Effect<A, CallFailure | E>,
  about: CallAbout,
) => Effect.Effect<A, CallFailure | E>

export const everyCall = (service: Service["Service"], around: Around): Service["Service"] => {
  const about =
    <Id extends string, A>(endpoint: string, call: (id: Id) => Effect.Effect<A, CallFailure>) =>
    (id: Id) =>
      around(call(id), { endpoint, subject: id })
  return Service.of({
    startExecution: (call, leaving) => {
      const subject = JSON.stringify([call.customer_id, call.engine_reference])
      return around(service.startExecution(call, leaving), { endpoint: "startExecution", subject })
    },
    readExecution: about("readExecution", service.readExecution),
    pollExecution: about("pollExecution", service.pollExecution),
    abortExecution: about("abortExecution", service.abortExecution),
    deleteExecution: about("deleteExecution", service.deleteExecution),
    readResults: (source, ids) => {
      const id = source.api === "flows_url" ? (ids.session_id ?? "") : ids.execution_id
      const subject = id === undefined ? {} : { subject: id }
      return around(service.readResults(source, ids), { endpoint: source.name, ...subject, at: source.api })
    },
    downloadAttachment: (session_id, id) =>
      around(service.downloadAttachment(session_id, id), {
        endpoint: "downloadAttachment",
        subject: session_id,
        part: id,
        at: "attachments_url",
      }),
    exchangeTicket: (id, ticket) =>
      around(service.exchangeTicket(id, ticket), { endpoint: "exchangeTicket", subject: id }),
    revokeToken: about("revokeToken", service.revokeToken),
    listEngines: around(service.listEngines, { endpoint: "listEngines" }),
    showEngine: about("showEngine", service.showEngine),
  })
}

// The secret travels in clear text in every request, so a URL that could give it to somebody else is refused
// before the first call (promise 12), whether a job's check has seen it or not.

export interface ServiceAddresses {
  readonly base_url: string
  readonly flows_url: string
  readonly attachments_url: string
}

export interface ServiceSettings extends ServiceAddresses {
  readonly app_secret: Redacted.Redacted<string>
}

/** Nothing was sent. `setting` is the field at fault, the message contains no secret. */
export class ServiceSettingsRefused extends Schema.TaggedError<ServiceSettingsRefused>()(
  "ServiceSettingsRefused",
  { setting: Schema.String, message: Schema.String },
) {}

const refuse = (setting: string, message: string) =>
  Result.fail(new ServiceSettingsRefused({ setting, message: `${setting}: ${message}` }))

/** The root that paths are appended to: scheme, host and path, without a final slash. */
export const checkAddress = (
  setting: keyof ServiceAddresses,
  address: string,
): Result.Result<string, ServiceSettingsRefused> => {
  const root = parseServiceUrl(address)
  return root === undefined ? refuse(setting, `expected ${serviceUrlRule}`) : Result.succeed(root)
}

/** A secret that an HTTP header can carry: visible ASCII, spaces only inside. */
export const checkSecret = (
  app_secret: Redacted.Redacted<string>,
): Result.Result<string, ServiceSettingsRefused> => {
  const secret = Redacted.value(app_secret)
  if (secret === "") return refuse("app_secret", "the application secret is empty")
  if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(secret)) {
    return refuse(
      "app_secret",
      "the application secret has a line break, outer spaces or a character not allowed in a header",
    )
  }
  return Result.succeed(secret)
}
