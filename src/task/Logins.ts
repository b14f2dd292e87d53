/**
 * The login parameters of a job's assignments with their secrets resolved, each reference once however many
 * customers share it. A secret that cannot be resolved affects only the assignments that need it; messages
 * name the reference, never a value.
 */
import { Effect, Redacted, Result } from "effect"
import type { Assignment, SecretReference } from "../jobs/Job.ts"
import { keyOfReference } from "../jobs/Reference.ts"
import { Secrets } from "../jobs/Secrets.ts"
import type { SecretUnavailable } from "../jobs/Secrets.ts"

export type ResolvedLogin =
  | { readonly _tag: "Resolved"; readonly parameters: Redacted.Redacted<Readonly<Record<string, unknown>>> }
  /**
   * Parameter, reference and reason, as in `password: env:C0001_PASSWORD: the environment has no such
   * variable`.
   */
  | { readonly _tag: "Unresolved"; readonly missing: ReadonlyArray<string> }
  /** The login is a stored token. */
  | { readonly _tag: "NoParameters" }

const concurrency = 16

type Answer = Result.Result<Redacted.Redacted<string>, SecretUnavailable>

/** What every reference of some assignments resolves to. */
export type ResolvedReferences = (reference: SecretReference) => Answer | undefined

/** Each distinct reference is resolved once. */
export const resolveReferences = Effect.fn("Planning.resolveReferences")(function* (
  assignments: ReadonlyArray<Assignment>,
) {
  const { resolve } = yield* Secrets
  const distinct = new Map<string, SecretReference>()
  for (const { login } of assignments) {
    if (login._tag !== "Parameters") continue
    for (const source of Object.values(login.parameters)) {
      if (source._tag === "Reference") distinct.set(keyOfReference(source.reference), source.reference)
    }
  }
  const found = yield* Effect.forEach(
    distinct,
    ([key, reference]) => Effect.map(Effect.result(resolve(reference)), (answer) => [key, answer] as const),
    { concurrency },
  )
  const secrets: ReadonlyMap<string, Answer> = new Map(found)
  return ((reference) =>
    secrets.get(keyOfReference(reference))) satisfies ResolvedReferences as ResolvedReferences
})

export const assembleLogin = ({ login }: Assignment, resolved: ResolvedReferences): ResolvedLogin => {
  if (login._tag === "Token") return { _tag: "NoParameters" }
  const missing: Array<string> = []
  const values = Object.entries(login.parameters).map(([name, source]) => {
    if (source._tag === "Literal") return [name, Redacted.value(source.value)] as const
    const answer = resolved(source.reference)
    if (answer !== undefined && Result.isSuccess(answer))
      return [name, Redacted.value(answer.success)] as const
    missing.push(`${name}: ${answer?.failure.message ?? "was not resolved"}`)
    return [name, undefined] as const
  })
  return missing.length > 0
    ? { _tag: "Unresolved", missing }
    : { _tag: "Resolved", parameters: Redacted.make(Object.fromEntries(values)) }
}
