/**
 * The proof of an execution's deletion, derived again from landing alone: the count in its last landed state
 * compared with the newest landed body of each endpoint. The ledger's own record of the proof is not used.
 */
import { Effect } from "effect"
import type { ExecutionId, RunId, SessionId } from "../service/Ids.ts"
import { readProductsCount } from "../service/FlowResults.ts"
import type { ResultsSource } from "../service/FlowResults.ts"
import { findingOf, proveDrain } from "../task/DrainProof.ts"
import type { SourceFinding } from "../task/DrainProof.ts"
import type { LandedBody } from "../landing/Landing.ts"
import { parseBody, tallyOf } from "../records/FindRecords.ts"
import { readBody, sourceOf } from "./DeriveSession.ts"
import type { RunPicture } from "./RunPicture.ts"
import { isObject } from "./TakeFields.ts"

const valueOf = Effect.fnUntraced(function* (run_id: RunId, body: LandedBody | undefined) {
  if (body === undefined) return undefined
  const parsed = parseBody(yield* readBody(run_id, body))
  return parsed._tag === "ReadableBody" ? parsed.value : undefined
})

/** What cannot be counted proves nothing. */
const findingOrNothing = (source: ResultsSource, value: unknown): SourceFinding => {
  try {
    return findingOf(source, value)
  } catch {
    return { source, isFinal: false, tally: tallyOf([]) }
  }
}

/** Fails if one of its bodies is damaged. */
export const proveAgain = Effect.fn("Publishing.proveAgain")(function* (
  picture: RunPicture,
  execution_id: ExecutionId,
  session_id: SessionId | undefined,
) {
  const { run_id } = picture.state.started
  const state = yield* valueOf(run_id, picture.stateOf.get(execution_id))
  const count = readProductsCount(isObject(state) ? state["products_count"] : undefined)
  const session = picture.sessions.find((one) => one.session_id === session_id)
  const findings: Array<SourceFinding> = []
  for (const body of session?.bodies ?? []) {
    const source = sourceOf(picture.state.sources, body)
    findings.push(findingOrNothing(source, yield* valueOf(run_id, body)))
  }
  return proveDrain(count, findings)
})
