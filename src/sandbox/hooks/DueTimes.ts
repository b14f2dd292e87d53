/**
 * Which names are due when, earliest first, with at most one valid entry per name, so that a hundred
 * thousand executions that wait for their next event cost no more than their logarithm and no scan.
 */
import { DelayQueue } from "../../base/Time.ts"

interface Entry {
  readonly name: string
  readonly at: number
}

export class DueTimes {
  readonly #queue = new DelayQueue<Entry>()
  /** The valid entry of a name; its other entries are left in place and skipped. */
  readonly #valid = new Map<string, Entry>()

  get size(): number {
    return this.#valid.size
  }

  /** The earliest time; undefined if nothing is due. */
  nextAt(): number | undefined {
    for (;;) {
      const { next } = this.#queue
      if (next === undefined || this.#isValid(next)) return next?.at
      this.#queue.takeDue(Number.POSITIVE_INFINITY)
    }
  }

  /** Sets when a name is due; any earlier entry no longer counts. */
  set(name: string, at: number): void {
    if (this.#valid.get(name)?.at === at) return
    const entry = { name, at }
    this.#valid.set(name, entry)
    this.#queue.add(entry, at)
    if (this.#queue.size > 2 * this.#valid.size + 64) this.#queue.remove((known) => !this.#isValid(known))
  }

  delete(name: string): void {
    this.#valid.delete(name)
  }

  /** Takes the earliest name whose time has come. */
  takeDue(now: number): string | undefined {
    for (;;) {
      const entry = this.#queue.takeDue(now)
      if (entry === undefined) return undefined
      if (!this.#isValid(entry)) continue
      this.#valid.delete(entry.name)
      return entry.name
    }
  }

  #isValid(entry: Entry): boolean {
    return this.#valid.get(entry.name) === entry
  }
}
