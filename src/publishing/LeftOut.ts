/**
 * Bodies that publication could make nothing of: too deep, too large, or met by a defect of ours. Each costs
 * its own rows and is told; everybody else's are published. Nothing of its execution is proved, so that
 * nothing of it is deleted.
 */
import { BoundBroken } from "../contract/BodyBounds.ts"
import type { LeftOutBody } from "../ledger/LeftOutBody.ts"
import type { LandedBody } from "../landing/Landing.ts"

/** What a defect may say of itself: its kind, never its message, which may quote a body. */
const reasonOf = (defect: unknown): string =>
  defect instanceof BoundBroken
    ? `the body cannot be used: ${defect.message}`
    : `a defect in the program (${defect instanceof Error ? defect.name : typeof defect})`

export class LeftOut {
  readonly bodies: Array<LeftOutBody> = []
  readonly #places = new Set<string>()

  /** What `derive` makes of a body; `instead` and a note where it throws. */
  unless<A>({ ref, meta }: LandedBody, derive: () => A, instead: (reason: string) => A): A {
    try {
      return derive()
    } catch (defect) {
      const reason = reasonOf(defect)
      this.note({ ref, meta }, reason)
      return instead(reason)
    }
  }

  /** All bodies of a task over which a defect happened. */
  noteAll(bodies: ReadonlyArray<LandedBody>, defect: unknown): void {
    for (const body of bodies) this.note(body, reasonOf(defect))
  }

  note({ ref, meta }: LandedBody, reason: string): void {
    const where = `${ref.segment}:${ref.offset}`
    if (this.#places.has(where)) return
    this.#places.add(where)
    const { task_id, attempt, execution_id } = meta
    this.bodies.push({
      task_id,
      ...(attempt === undefined ? {} : { attempt }),
      ...(execution_id === undefined ? {} : { execution_id }),
      where,
      reason,
    })
  }

  /** Whether one of these bodies, or all that stands in for it, is missing in the tables. */
  hasOneOf(bodies: ReadonlyArray<LandedBody>): boolean {
    return bodies.some(({ ref }) => this.#places.has(`${ref.segment}:${ref.offset}`))
  }
}
