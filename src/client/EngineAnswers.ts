/**
 * What the answers about engines mean (sections 4.8 and 4.9): every documented status becomes the port's
 * answer, and an unreadable answer is reported without quoting the body.
 */
import { Effect, Predicate, Result } from "effect"
import { retryAfter } from "./CallFailures.ts"
import { readEngine } from "./EngineView.ts"
import type { Answer } from "./Exchange.ts"
import type { Body, CallFailure, EngineAnswer } from "./Service.ts"
import { UnexpectedAnswer } from "./Service.ts"

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
