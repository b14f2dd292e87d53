/**
 * The engine catalogue for planning, read from the service. Only a service that cannot be reached or
 * refuses the secret ends planning; trouble with one engine makes that engine unavailable, and details that
 * cannot be read make it unreadable: reading them again until the deadline would not change them.
 */
import { Clock, Duration, Effect, Layer } from "effect"
import { CatalogueFailed, EngineCatalogue } from "./EngineForms.ts"
import type { EngineAnswer } from "./EngineForms.ts"
import { retryCall } from "./Backoff.ts"
import { Service } from "./Service.ts"
import type { CallFailure } from "./Service.ts"

const triesMax = 6
/** The longest that an engine may delay a plan: it is checked again before a start. */
const triedMaxMs = Duration.toMillis("2 minutes")

const waitOf = (told: object) =>
  "retry_after" in told && Duration.isDuration(told.retry_after) ? { retry_after: told.retry_after } : {}

const answerOf = (failure: CallFailure): Effect.Effect<EngineAnswer, CatalogueFailed> => {
  const detail = failure.message
  if (failure._tag === "SecretRefused" || failure._tag === "NotSent")
    return Effect.fail(new CatalogueFailed({ message: detail }))
  const answered = failure._tag === "UnexpectedAnswer" && failure.http_status === 200
  if (answered) return Effect.succeed({ _tag: "Unreadable", detail })
  return Effect.succeed({ _tag: "Unavailable", detail, ...waitOf(failure) })
}

export const ServiceCatalogue = {
  layer: Layer.effect(
    EngineCatalogue,
    Effect.map(Service, (service) =>
      EngineCatalogue.of({
        showEngine: (engine_reference) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            retryCall(service.showEngine(engine_reference), { triesMax, untilAt: now + triedMaxMs }),
          ).pipe(
            Effect.matchEffect({
              onFailure: answerOf,
              onSuccess: (answer): Effect.Effect<EngineAnswer> => {
                switch (answer._tag) {
                  case "Engine":
                    return Effect.succeed({ _tag: "Known", details: answer.engine })
                  case "EngineUnknown":
                    return Effect.succeed({ _tag: "Unknown" })
                  case "EngineUnavailable":
                    return Effect.succeed({
                      _tag: "Unavailable",
                      ...(answer.detail === undefined ? {} : { detail: answer.detail }),
                      ...waitOf(answer),
                    })
                }
              },
            }),
          ),
      }),
    ),
  ),
}
