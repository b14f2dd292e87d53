/**
 * What the answers about tickets and tokens mean (sections 4.6 and 4.7): every documented status becomes
 * the port's answer. The bodies of these calls are never kept: that of an exchange contains the only copy
 * of a key.
 */
import { Effect } from "effect"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import type { Answer } from "./Exchange.ts"
import type { CallFailure, ExchangeAnswer, RevokeAnswer } from "./Service.ts"
import { AnswerLost } from "./Service.ts"
import { viewExchanged } from "./Views.ts"

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

const revocations: Readonly<Record<number, RevokeAnswer>> = {
  204: "revoked",
  304: "already_revoked",
  404: "not_found",
}

/** 4.7 */
export const answerRevoke = (answer: Answer): Effect.Effect<RevokeAnswer, CallFailure> => {
  const known = revocations[answer.http_status]
  return known === undefined ? answer.undocumented : Effect.as(answer.discard, known)
}
