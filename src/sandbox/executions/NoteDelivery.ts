/**
 * What a final answer carried, as an event: recorded for every answer with records that was sent
 * completely. Only the observer uses it.
 */
import { Context, Effect } from "effect"
import { recordEvents } from "../core/SandboxCore.ts"
import type { SandboxCore } from "../core/SandboxCore.ts"
import type { Execution } from "../state/SandboxState.ts"

/** A fault takes the answer of the current call: its content reaches nobody. */
export const AnswerLost = Context.Reference<boolean>("nightjar/sandbox/AnswerLost", {
  defaultValue: () => false,
})

type Item = Readonly<Record<string, unknown>>

const countFamilies = (records: ReadonlyArray<Item>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const { sub_family } of records)
    if (typeof sub_family === "string") counts[sub_family] = (counts[sub_family] ?? 0) + 1
  return counts
}

const isSame = (one: object, other: object | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** `source`: which of the results sources answered; equal answers of one source leave one event. */
export const noteDelivery = Effect.fnUntraced(function* (
  core: SandboxCore,
  { started, delivered }: Execution,
  source: string,
  at: number,
  records: ReadonlyArray<Item>,
) {
  if (yield* AnswerLost) return
  const counts = countFamilies(records)
  if (isSame(counts, delivered.get(source))) return
  const { execution_id } = started
  recordEvents(core, [{ _tag: "RecordsDelivered", at, execution_id, source, counts }])
})
