/** Secrets of simulated runs: values by reference as spelled in a job, `env:NAME` or `file:PATH`. */
import { Effect, Layer, Redacted } from "effect"
import { describeReference, keyOfReference } from "../../src/jobs/Scalars.ts"
import { SecretUnavailable, Secrets } from "../../src/jobs/Secrets.ts"
import { KnownSecrets } from "../../src/privacy/KnownSecrets.ts"

export const secretsOf = (values: ReadonlyMap<string, string> = new Map()) =>
  Layer.succeed(
    Secrets,
    Secrets.of({
      resolve: Effect.fnUntraced(function* (reference) {
        const value = values.get(keyOfReference(reference))
        if (value === undefined)
          return yield* new SecretUnavailable({
            reference: describeReference(reference),
            reason: "it is not known",
          })
        ;(yield* KnownSecrets).hold(value, "password")
        return Redacted.make(value)
      }),
    }),
  )
