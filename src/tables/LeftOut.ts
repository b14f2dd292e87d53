/**
 * Bodies that publishing could not use: too deep, too large, or affected by a defect of ours. Each costs only
 * its own rows and is reported. Nothing of its execution is proved, so nothing of it is deleted.
 */
import { Struct } from "effect"
import { BoundBroken } from "../service/BodyBounds.ts"
import type { LeftOutBody } from "../ledger/RunFacts.ts"
import type { LandedBody } from "../landing/Landing.ts"

/** What may be shown of a defect: its kind, never its message, which may quote a body. */
const reasonOf = (defect: unknown): string =>
  defect instanceof BoundBroken
    ? `the body cannot be used: ${defect.message}`
    : `a defect in the program (${defect instanceof Error ? defect.name : typeof defect})`

export class LeftOut {
  readonly bodies: Array<LeftOutBody> = []
  readonly #places = new Set<string>()

  /** The result of `derive` for a body; `instead` and a note if it throws. */
  unless<A>({ ref, meta }: LandedBody, derive: () => A, instead: (reason: string) => A): A {
    try {
      return derive()
    } catch (defect) {
      const reason = reasonOf(defect)
      this.note({ ref, meta }, reason)
      return instead(reason)
    }
  }

  /** All bodies of a task that a defect affected. */
  noteAll(bodies: ReadonlyArray<LandedBody>, defect: unknown): void {
    for (const body of bodies) this.note(body, reasonOf(defect))
  }

  note({ ref, meta }: LandedBody, reason: string): void {
    const where = `${ref.segment}:${ref.offset}`
    if (this.#places.has(where)) return
    this.#places.add(where)
    this.bodies.push({ ...Struct.pick(meta, ["task_id", "attempt", "execution_id"]), where, reason })
  }

  /** Whether one of these bodies, or everything that replaces it, is missing from the tables. */
  hasOneOf(bodies: ReadonlyArray<LandedBody>): boolean {
    return bodies.some(({ ref }) => this.#places.has(`${ref.segment}:${ref.offset}`))
  }
}
