/**
 * A service whose every answer is scripted, in virtual time. Without a script everything goes well: a start is
 * accepted, the second look finds it completed, its results are final.
 */
import { Clock, Duration, Effect, Layer, Stream, type Redacted } from "effect"
import type { ProductsCount } from "../../src/service/FlowResults.ts"
import { AnswerLost, EngineOfCalls, NotSent, Service, Throttled } from "../../src/client/Service.ts"
import { UnexpectedAnswer } from "../../src/client/Service.ts"
import type { AbortAnswer, AttachmentAnswer, Body, CallFailure } from "../../src/client/Service.ts"
import type { DeleteAnswer, EngineAnswer, ExchangeAnswer, PollAnswer } from "../../src/client/Service.ts"
import type { ResultsAnswer, RevokeAnswer, StartAnswer, StartCall } from "../../src/client/Service.ts"
import type { StateAnswer, StateView } from "../../src/client/Service.ts"
import type { EngineDetails } from "../../src/service/Engine.ts"
import { anId } from "../harness/Id.ts"

const encoder = new TextEncoder()
export const bodyOf = (json: unknown): Body => ({ bytes: encoder.encode(JSON.stringify(json)), json })

export const lost = new AnswerLost({ message: "cut" })
export const notSent = new NotSent({ message: "refused connection" })
export const unexpected = new UnexpectedAnswer({ http_status: 418, message: "teapot" })
export const throttled = (http_status = 429, askedMs?: number) =>
  new Throttled({
    http_status,
    message: "later",
    ...(askedMs === undefined ? {} : { retry_after: Duration.millis(askedMs) }),
  })

type Acceptance = Extract<StartAnswer, { readonly _tag: "Accepted" }>
export const acceptedAs = (view: Acceptance["view"], body: unknown = {}): Acceptance => ({
  _tag: "Accepted",
  http_status: 202,
  body: bodyOf(body),
  view,
})
export const accepted = (id: string): Acceptance =>
  acceptedAs(
    { execution_id: anId(`e-${id}`), session_id: anId(`s-${id}`) },
    { execution_id: anId(`e-${id}`) },
  )
export const conflict = (id: string, external_execution_id?: string): StartAnswer => ({
  _tag: "AlreadyExecuting",
  body: bodyOf({}),
  view: {
    execution_id: anId(`e-${id}`),
    session_id: anId(`s-${id}`),
    ...(external_execution_id === undefined ? {} : { external_execution_id }),
  },
})
export const refused = (http_status: 400 | 422, status_reason?: string): StartAnswer => ({
  _tag: "Refused",
  http_status,
  body: bodyOf({}),
  view: status_reason === undefined ? {} : { status_reason },
})
export const counted = (counts: Readonly<Record<string, number>>): ProductsCount => ({
  _tag: "Counted",
  counts,
})
export const state = (
  status_code: string,
  status_reason: string,
  more: Partial<StateView> = {},
): StateAnswer => {
  const is_closed = status_code !== "ONGOING"
  // A state without a count says nothing of one; those of a script that names none count nothing.
  const view: StateView = { status_code, status_reason, is_closed, products_count: counted({}), ...more }
  const { products_count } = view
  const counts = products_count?._tag === "Counted" ? { products_count: products_count.counts } : {}
  const { products_count: _, ...told } = view
  return { _tag: is_closed ? "Closed" : "Working", body: bodyOf({ ...told, ...counts }), view }
}
export const working = state("ONGOING", "RUNNING", { authentication_status: "AUTH_OK" })
export const completed = state("COMPLETED", "COMPLETED", {
  authentication_status: "AUTH_OK",
  products_count: counted({ "bank:account@accounts": 1 }),
})
export const challenge: StateAnswer = { _tag: "ActionRequired", body: bodyOf({ form_schema: {} }), view: {} }
export const results = (
  is_closed: boolean,
  data: unknown = [{ product: "accounts", sub_family: "bank:account" }],
) => ({ _tag: "Results", body: bodyOf({ is_closed, data }) }) as const
export const nothing = (http_status: number) => ({ _tag: "NothingThere", http_status }) as const

/** The request is taken and never answered; who asks has to stop waiting. */
export const silent = { _tag: "Silent" } as const

type Answer<A> = A | CallFailure | typeof silent
/** Each answer by the id that is asked about and how often that was asked before, from 1. */
export interface Script {
  readonly start?: (call: StartCall, times: number) => Answer<StartAnswer>
  /** Hears of every request which engine it is about, as far as it says. */
  readonly hear?: (verb: string, engine: string | undefined) => void
  /** So long a start waits for its turn before it leaves. */
  readonly turnMs?: number
  /** Why a start is not sent at all, as the pace of the host says it. */
  readonly held?: (call: StartCall) => CallFailure | undefined
  readonly state?: (execution_id: string, times: number) => Answer<StateAnswer>
  /** The external id that an execution's state names; without it what the answer to its start said. */
  readonly whose?: (execution_id: string) => string | undefined
  /** Without it the service does not answer such looks, so that every look is a read. */
  readonly poll?: (execution_id: string, times: number) => Answer<PollAnswer>
  readonly abort?: (execution_id: string, times: number) => Answer<AbortAnswer>
  readonly remove?: (execution_id: string, times: number) => Answer<DeleteAnswer>
  readonly results?: (session_id: string, times: number) => Answer<ResultsAnswer>
  readonly profile?: (execution_id: string, times: number) => Answer<ResultsAnswer>
  /** Any other endpoint, by the name of its row. */
  readonly source?: (name: string, execution_id: string, times: number) => Answer<ResultsAnswer>
  /** A document that drips has begun to come, and never ends; an empty one has no bytes. */
  readonly attachment?: (
    attachment_id: string,
    times: number,
  ) => Answer<"document" | "missing" | "drips" | "empty" | "page">
  readonly exchange?: (
    execution_id: string,
    times: number,
    ticket: Redacted.Redacted<string>,
  ) => Answer<ExchangeAnswer>
  /** What an engine's own page says; without it, what its last start said, and then that it is available. */
  readonly page?: (engine_reference: string) => Answer<EngineAnswer>
  readonly list?: () => Answer<{ readonly body: Body }>
  readonly revoke?: (token_id: string, times: number) => Answer<RevokeAnswer>
}

const form = { type: "object", properties: {}, format: "cg-params" } as const
export const available: EngineAnswer = {
  _tag: "Engine",
  engine: { ...({} as EngineDetails), is_online: true, status: "published", parameters: form },
}
/** Its page says that it is away, as 4.9 does. */
export const away: EngineAnswer = { _tag: "EngineUnavailable", detail: "maintenance" }

/** When, what, about whom: `[ms, "start", "c-1"]`. */
export type Call = readonly [number, string, string]

const failureTags: ReadonlySet<string> = new Set([
  "NotSent",
  "AnswerLost",
  "Throttled",
  "SecretRefused",
  "UnexpectedAnswer",
])
const isFailure = (answer: unknown): answer is CallFailure =>
  typeof answer === "object" && answer !== null && "_tag" in answer && failureTags.has(String(answer._tag))

const isSilent = (answer: unknown): answer is typeof silent => answer === silent

const give = <A>(answer: Answer<A>): Effect.Effect<A, CallFailure> =>
  isSilent(answer) ? Effect.never : isFailure(answer) ? Effect.fail(answer) : Effect.succeed(answer)

/** Every request takes a fifth of a second, so that it can be cut off. */
export const requestMs = 200

export const scripted = (script: Script, calls: Array<Call>) => {
  const counts = new Map<string, number>()
  const aborted = new Set<string>()
  /** Whose each execution is, as far as the answers to starts have said; its state says the same. */
  const externals = new Map<string, string>()
  const refusing = new Set<string>()
  const remember = (call: StartCall, answer: Answer<StartAnswer>) => {
    if (answer._tag === "EngineUnavailable") refusing.add(call.engine_reference)
    if (answer._tag !== "Accepted" && answer._tag !== "AlreadyExecuting") return answer
    const { execution_id, external_execution_id } = answer.view
    const whose = answer._tag === "Accepted" ? call.external_execution_id : external_execution_id
    if (execution_id !== undefined && whose !== undefined) externals.set(execution_id, whose)
    return answer
  }
  const ownState = (id: string, answer: Answer<StateAnswer>): Answer<StateAnswer> => {
    const external_execution_id = script.whose === undefined ? externals.get(id) : script.whose(id)
    return "view" in answer && external_execution_id !== undefined
      ? { ...answer, view: { external_execution_id, ...answer.view } }
      : answer
  }
  const ask = <A>(verb: string, id: string, answer: (times: number) => Answer<A>) =>
    Effect.gen(function* () {
      const times = (counts.get(`${verb} ${id}`) ?? 0) + 1
      counts.set(`${verb} ${id}`, times)
      calls.push([yield* Clock.currentTimeMillis, verb, id])
      script.hear?.(verb, yield* EngineOfCalls)
      yield* Effect.sleep(requestMs)
      return yield* give(answer(times))
    })
  return Layer.succeed(
    Service,
    Service.of({
      startExecution: <E extends { readonly _tag: string }>(
        call: StartCall,
        leaving: Effect.Effect<void, E>,
      ) =>
        Effect.sleep(script.turnMs ?? 0).pipe(
          Effect.andThen(
            Effect.suspend((): Effect.Effect<void, E | CallFailure> => {
              const held = script.held?.(call)
              return held === undefined ? leaving : Effect.fail(held)
            }),
          ),
          Effect.andThen(
            ask("start", call.customer_id, (times) =>
              remember(call, script.start?.(call, times) ?? accepted(`${call.customer_id}-${times}`)),
            ),
          ),
        ),
      readExecution: (id) =>
        ask("state", id, (times) =>
          ownState(
            id,
            script.state !== undefined
              ? script.state(id, times)
              : aborted.has(id)
                ? state("ABORTED", "CLIENT_CANCELLED")
                : times === 1
                  ? working
                  : completed,
          ),
        ),
      pollExecution: (id) =>
        script.poll === undefined
          ? Effect.succeed("unanswered")
          : ask("poll", id, (times) => script.poll?.(id, times) ?? "unanswered"),
      abortExecution: (id) =>
        ask("abort", id, (times) => {
          aborted.add(id)
          return script.abort?.(id, times) ?? "aborted"
        }),
      deleteExecution: (id) => ask("delete", id, (times) => script.remove?.(id, times) ?? "deleted"),
      readResults: ({ name }, { execution_id = "", session_id = "" }) => {
        if (name === "flow_results")
          return ask("results", session_id, (times) => script.results?.(session_id, times) ?? results(true))
        if (name === "profile")
          return ask(
            "profile",
            execution_id,
            (times) => script.profile?.(execution_id, times) ?? nothing(404),
          )
        return ask(name, execution_id, (times) => script.source?.(name, execution_id, times) ?? nothing(404))
      },
      downloadAttachment: (_session_id, id) =>
        Effect.map(
          ask("attachment", id, (times) => script.attachment?.(id, times) ?? "document"),
          (answer): AttachmentAnswer<CallFailure> =>
            answer === "missing"
              ? { _tag: "Missing" }
              : {
                  _tag: "Document",
                  media_type: answer === "page" ? "text/html; charset=utf-8" : "application/pdf",
                  bytes:
                    answer === "drips"
                      ? Stream.never
                      : Stream.make(
                          encoder.encode(answer === "empty" ? "" : answer === "page" ? "<html>" : id),
                        ),
                },
        ),
      exchangeTicket: (id, ticket) =>
        ask("exchange", id, (times) => script.exchange?.(id, times, ticket) ?? { _tag: "Refused" }),
      revokeToken: (id) => ask("revoke", id, (times) => script.revoke?.(id, times) ?? "not_found"),
      listEngines: Effect.suspend(() => give(script.list?.() ?? { body: bodyOf([]) })),
      showEngine: (engine) =>
        Effect.suspend(() => give(script.page?.(engine) ?? (refusing.delete(engine) ? away : available))),
    }),
  )
}
