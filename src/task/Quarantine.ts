/**
 * Whatever goes wrong while one task handles an answer affects only that task: a body that exceeds a limit,
 * an id that cannot be used, a defect of ours. The body is landed separately and named, the execution stays
 * at the service and is never started again, and a login whose outcome could not be read is not sent again.
 * Failures to write the ledger or landing, and interruptions, are not handled here: they pass through.
 */
import { hash } from "node:crypto"
import { Cause, Clock, Effect, Schema } from "effect"
import { given } from "../base/Schemas.ts"
import type { TaskKeys } from "../ledger/FactKeys.ts"
import type { ExecutionId, RunId } from "../service/Ids.ts"
import { keptBytes, whileHandled, type NewestAnswer } from "../client/AnswerBytes.ts"
import type { Body } from "../client/Service.ts"
import { BoundBroken } from "../service/BodyBounds.ts"
import { Landing, type LandingFailed } from "../landing/Landing.ts"
import { LandedRef, type AnswerRefused, type Fact } from "../ledger/Fact.ts"
import { append, type Ledger, type LedgerFailed } from "../ledger/Ledger.ts"

/** An answer that its task cannot use. */
export class AnswerUnusable extends Schema.TaggedError<AnswerUnusable>()("AnswerUnusable", {
  /** What was requested: `start`, `state`, or the name of a results endpoint. */
  what: Schema.String,
  /** For people; quotes nothing of the body. */
  why: Schema.String,
  landed: Schema.optionalKey(LandedRef),
}) {}

type Refused = AnswerUnusable | LedgerFailed | LandingFailed

/** The answer that is being handled. */
export interface Handled extends TaskKeys {
  readonly what: string
  readonly attempt?: number | undefined
  readonly execution_id?: ExecutionId | undefined
  /** What this task could not use before; the same body is not landed twice. */
  readonly refused: ReadonlyArray<typeof AnswerRefused.Type>
  /** Facts to record with a defect, in the same transaction. */
  readonly withDefect?: ReadonlyArray<Fact>
}

/** Where a defect happened, never its message, which may quote a body. */
export const defectText = (defect: unknown): string => {
  if (defect instanceof BoundBroken) return defect.message
  const kind = defect instanceof Error ? defect.name : typeof defect
  const frame =
    defect instanceof Error ? /\bat (?:async )?([\w.#$<> ]+) \(/.exec(String(defect.stack))?.[1] : undefined
  return `a defect in the program (${kind}${frame === undefined ? "" : ` in ${frame}`})`
}

/** The defect of a cause that holds nothing else; undefined if it failed or was interrupted. */
export const defectOf = (cause: Cause.Cause<unknown>): { readonly defect: unknown } | undefined =>
  Cause.hasDies(cause) && !Cause.hasFails(cause) && !Cause.hasInterrupts(cause)
    ? { defect: Cause.squash(cause) }
    : undefined

/** Runs the handler of one answer; a defect becomes `AnswerUnusable`, with the current body. */
export const handleAnswer = <A, E, R>(about: Handled, handling: Effect.Effect<A, E, R>) =>
  whileHandled(handling, (cause, newest): Effect.Effect<never, E | Refused, Landing | Ledger> => {
    const found = defectOf(cause)
    if (found === undefined) return Effect.failCause(cause)
    return Effect.andThen(
      Effect.logDebug(cause),
      refuse(about, newest, defectText(found.defect), about.withDefect),
    )
  })

/** Refuses a body that declares itself unusable. */
export const refuseUnusable = (
  about: Handled,
  answer: { readonly body: Body } | object,
  http_status: number,
) =>
  "body" in answer && answer.body.unusable !== undefined
    ? refuse(about, { http_status, bytes: answer.body.bytes.subarray(0, keptBytes) }, answer.body.unusable)
    : Effect.void

const refuse = Effect.fnUntraced(function* (
  about: Handled,
  answer: NewestAnswer | undefined,
  why: string,
  beside: ReadonlyArray<Fact> = [],
) {
  const { what, run_id, task_id, execution_id } = about
  const landed = answer === undefined ? undefined : yield* landAside(about, answer)
  const refused = { what, why, ...given({ landed }) }
  const isKnown = about.refused.some(
    (one) => one.what === what && one.why === why && one.landed?.sha256 === landed?.sha256,
  )
  const ids = { run_id, task_id, ...given({ execution_id }) }
  if (!isKnown) yield* append({ _tag: "AnswerRefused", ...ids, ...refused } satisfies Fact, ...beside)
  return yield* new AnswerUnusable(refused)
})

const landAside = Effect.fnUntraced(function* (about: Handled, { http_status, bytes }: NewestAnswer) {
  const { run_id, task_id, attempt, execution_id } = about
  const sha256 = hash("sha256", bytes, "hex")
  const known = about.refused.find(({ landed }) => landed?.sha256 === sha256)?.landed
  if (known !== undefined) return known
  const landing = yield* Landing
  const ids = given({ attempt, execution_id })
  const received_at = Math.trunc(yield* Clock.currentTimeMillis)
  return yield* landing.land({ kind: "unusable", run_id, task_id, ...ids, http_status, received_at }, bytes)
})

const placeText = ({ landed }: AnswerUnusable, run_id: RunId): string =>
  landed === undefined
    ? "its body could not be kept"
    : `the part kept is landing/${run_id}/${landed.segment} at ${landed.offset}, ${landed.bytes} bytes`

/** For people: what could not be used, why, and where it is. */
export const unusableText = (failure: AnswerUnusable, run_id: RunId): string =>
  `the answer (${failure.what}) cannot be used: ${failure.why}; ${placeText(failure, run_id)}`
