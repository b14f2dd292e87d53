/**
 * A service whose every answer is scripted, in virtual time. Without a script everything goes well: a start is
 * accepted, the second look finds it completed, its results are final.
 */
import { Clock, Effect, Layer, Stream } from "effect"
import type { Redacted } from "effect"
import { AnswerLost, NotSent, Service, Throttled, UnexpectedAnswer } from "../../src/client/Service.ts"
import type {
  AbortAnswer,
  AttachmentAnswer,
  Body,
  CallFailure,
  DeleteAnswer,
  ExchangeAnswer,
  PollAnswer,
  ResultsAnswer,
  StartAnswer,
  StartCall,
  StateAnswer,
  StateView,
} from "../../src/client/Service.ts"

const encoder = new TextEncoder()
export const bodyOf = (json: unknown): Body => ({ bytes: encoder.encode(JSON.stringify(json)), json })

export const lost = new AnswerLost({ message: "cut" })
export const notSent = new NotSent({ message: "refused connection" })
export const unexpected = new UnexpectedAnswer({ http_status: 418, message: "teapot" })
export const throttled = (http_status = 429, retry_after_ms?: number) =>
  new Throttled({
    http_status,
    message: "later",
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
  })

export const accepted = (id: string): StartAnswer => ({
  _tag: "Accepted",
  body: bodyOf({ execution_id: `e-${id}` }),
  view: { execution_id: `e-${id}`, session_id: `s-${id}` },
})
export const conflict = (id: string, external_execution_id?: string): StartAnswer => ({
  _tag: "AlreadyExecuting",
  body: bodyOf({}),
  view: {
    execution_id: `e-${id}`,
    session_id: `s-${id}`,
    ...(external_execution_id === undefined ? {} : { external_execution_id }),
  },
})
export const refused = (http_status: 400 | 422, status_reason?: string): StartAnswer => ({
  _tag: "Refused",
  http_status,
  body: bodyOf({}),
  view: status_reason === undefined ? {} : { status_reason },
})
export const state = (
  status_code: string,
  status_reason: string,
  more: Partial<StateView> = {},
): StateAnswer => {
  const is_closed = status_code !== "ONGOING"
  const view = { status_code, status_reason, is_closed, ...more }
  return { _tag: is_closed ? "Closed" : "Working", body: bodyOf(view), view }
}
export const working = state("ONGOING", "RUNNING", { authentication_status: "AUTH_OK" })
export const completed = state("COMPLETED", "COMPLETED", {
  authentication_status: "AUTH_OK",
  products_count: { "bank:account@accounts": 1 },
})
export const challenge: StateAnswer = { _tag: "ActionRequired", body: bodyOf({ form_schema: {} }) }
export const results = (
  is_closed: boolean,
  data: unknown = [{ product: "accounts", sub_family: "bank:account" }],
) => ({ _tag: "Results", is_closed, body: bodyOf({ is_closed, data }) }) as const

type Answer<A> = A | CallFailure
/** Each answer by the id that is asked about and how often that was asked before, from 1. */
export interface Script {
  readonly start?: (call: StartCall, times: number) => Answer<StartAnswer>
  readonly state?: (execution_id: string, times: number) => Answer<StateAnswer>
  /** Without it the service does not answer such looks, so that every look is a read. */
  readonly poll?: (execution_id: string, times: number) => Answer<PollAnswer>
  readonly abort?: (execution_id: string, times: number) => Answer<AbortAnswer>
  readonly remove?: (execution_id: string, times: number) => Answer<DeleteAnswer>
  readonly results?: (session_id: string, times: number) => Answer<ResultsAnswer>
  readonly profile?: (
    execution_id: string,
    times: number,
  ) => Answer<{ readonly _tag: "Profile"; readonly body: Body } | { readonly _tag: "Missing" }>
  readonly attachment?: (attachment_id: string, times: number) => Answer<"document" | "missing">
  readonly exchange?: (
    execution_id: string,
    times: number,
    ticket: Redacted.Redacted<string>,
  ) => Answer<ExchangeAnswer>
}

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

const give = <A>(answer: Answer<A>): Effect.Effect<A, CallFailure> =>
  isFailure(answer) ? Effect.fail(answer) : Effect.succeed(answer)

/** Every request takes a fifth of a second, so that it can be cut off. */
const requestMs = 200

export const scripted = (script: Script, calls: Array<Call>) => {
  const counts = new Map<string, number>()
  const aborted = new Set<string>()
  const ask = <A>(verb: string, id: string, answer: (times: number) => Answer<A>) =>
    Effect.gen(function* () {
      const times = (counts.get(`${verb} ${id}`) ?? 0) + 1
      counts.set(`${verb} ${id}`, times)
      calls.push([yield* Clock.currentTimeMillis, verb, id])
      yield* Effect.sleep(requestMs)
      return yield* give(answer(times))
    })
  return Layer.succeed(
    Service,
    Service.of({
      startExecution: (call) =>
        ask(
          "start",
          call.customer_id,
          (times) => script.start?.(call, times) ?? accepted(`${call.customer_id}-${times}`),
        ),
      readExecution: (id) =>
        ask("state", id, (times) =>
          script.state !== undefined
            ? script.state(id, times)
            : aborted.has(id)
              ? state("ABORTED", "CLIENT_CANCELLED")
              : times === 1
                ? working
                : completed,
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
      readFlowResults: (id) => ask("results", id, (times) => script.results?.(id, times) ?? results(true)),
      readProfile: (id) => ask("profile", id, (times) => script.profile?.(id, times) ?? { _tag: "Missing" }),
      downloadAttachment: (_session_id, id) =>
        Effect.map(
          ask("attachment", id, (times) => script.attachment?.(id, times) ?? "document"),
          (answer): AttachmentAnswer<CallFailure> =>
            answer === "missing"
              ? { _tag: "Missing" }
              : { _tag: "Document", media_type: "application/pdf", bytes: Stream.make(encoder.encode(id)) },
        ),
      exchangeTicket: (id, ticket) =>
        ask("exchange", id, (times) => script.exchange?.(id, times, ticket) ?? { _tag: "Refused" }),
      revokeToken: () => Effect.die("not asked for"),
      listEngines: Effect.die("not asked for"),
      showEngine: () => Effect.die("not asked for"),
    }),
  )
}
