/**
 * What the answers about engines mean (sections 4.8 and 4.9): every documented status becomes the port's
 * answer, and an unreadable answer is reported without quoting the body.
 */
import { Effect, Predicate, Result } from "effect"
import { retryAfter } from "./CallFailures.ts"
import type { Answer } from "./Exchange.ts"
import { AnswerLost, UnexpectedAnswer } from "./Service.ts"
import type { Body, CallFailure, EngineAnswer, ExchangeAnswer, RevokeAnswer } from "./Service.ts"
import { readEngine, viewExchanged } from "./Views.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"

const unusableText = (answer: Answer, why: string) =>
  `${answer.call}: the answer cannot be used: ${why} (200)`

/** 4.8 */
export const answerEngines = (answer: Answer): Effect.Effect<{ readonly body: Body }, CallFailure> =>
  answer.http_status === 200
    ? Effect.flatMap(answer.list, (body) =>
        body.unusable === undefined
          ? Effect.succeed({ body })
          : Effect.fail(
              new UnexpectedAnswer({ http_status: 200, message: unusableText(answer, body.unusable) }),
            ),
      )
    : Effect.andThen(answer.discard, answer.undocumented)

/** 4.9 */
export const answerEngine = Effect.fnUntraced(function* (
  answer: Answer,
): Effect.fn.Return<EngineAnswer, CallFailure> {
  switch (answer.http_status) {
    case 200: {
      const body = yield* answer.object
      const engine = readEngine(body.json)
      if (Result.isSuccess(engine)) return { _tag: "Engine", engine: engine.success, body }
      const message = `${answer.call}: the engine's details cannot be read: ${engine.failure} (200)`
      return yield* new UnexpectedAnswer({ http_status: 200, message })
    }
    case 404:
    case 422:
      yield* answer.discard
      return { _tag: "EngineUnknown", http_status: answer.http_status }
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
export const answerExchange = Effect.fnUntraced(function* (
  answer: Answer,
): Effect.fn.Return<ExchangeAnswer, CallFailure> {
  switch (answer.http_status) {
    case 200: {
      const { body, unblanked } = yield* answer.issuing
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
      yield* answer.discard
      return { _tag: "Refused" }
    default:
      return yield* answer.undocumented
  }
})

/** Answers in which the status says everything. */
export const answerStatus =
  <A>(answers: Readonly<Record<number, A>>) =>
  (answer: Answer): Effect.Effect<A, CallFailure> => {
    const known = answers[answer.http_status]
    return known === undefined ? answer.undocumented : Effect.as(answer.discard, known)
  }

/** 4.7 */
export const answerRevoke = answerStatus<RevokeAnswer>({
  204: "revoked",
  304: "already_revoked",
  404: "not_found",
})
