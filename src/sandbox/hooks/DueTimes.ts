/**
 * Who is due when, earliest first: a binary heap with at most one valid entry per name, so that a hundred
 * thousand executions that wait for their next event cost no more than their logarithm and no scan.
 */

interface Entry {
  readonly name: string
  readonly at: number
  readonly order: number
}

const isBefore = (one: Entry, other: Entry): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

export class DueTimes {
  #heap: Array<Entry> = []
  /** The entry of a name that counts; others of it are left where they are and skipped. */
  readonly #valid = new Map<string, Entry>()
  #order = 0

  get size(): number {
    return this.#valid.size
  }

  /** The earliest time; undefined when nobody is due. */
  nextAt(): number | undefined {
    this.#skipStale()
    return this.#heap[0]?.at
  }

  /** Says when a name is due; what was said of it before no longer holds. */
  set(name: string, at: number): void {
    if (this.#valid.get(name)?.at === at) return
    const entry = { name, at, order: this.#order++ }
    this.#valid.set(name, entry)
    this.#rise(entry)
    if (this.#heap.length > 2 * this.#valid.size + 64) this.#sweep()
  }

  delete(name: string): void {
    this.#valid.delete(name)
  }

  /** Takes the earliest name whose time has come. */
  takeDue(now: number): string | undefined {
    this.#skipStale()
    const first = this.#heap[0]
    if (first === undefined || first.at > now) return undefined
    this.#dropFirst()
    this.#valid.delete(first.name)
    return first.name
  }

  #skipStale(): void {
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined || this.#valid.get(first.name) === first) return
      this.#dropFirst()
    }
  }

  /** A sorted array is a heap. */
  #sweep(): void {
    this.#heap = [...this.#valid.values()].sort((one, other) => (isBefore(one, other) ? -1 : 1))
  }

  #dropFirst(): void {
    const last = this.#heap.pop()
    if (last !== undefined && this.#heap.length > 0) this.#sink(last)
  }

  #rise(entry: Entry): void {
    let at = this.#heap.push(entry) - 1
    while (at > 0) {
      const above = (at - 1) >>> 1
      const parent = this.#heap[above]
      if (parent === undefined || !isBefore(entry, parent)) break
      this.#heap[at] = parent
      at = above
    }
    this.#heap[at] = entry
  }

  #sink(entry: Entry): void {
    let at = 0
    for (;;) {
      const left = this.#heap[2 * at + 1]
      if (left === undefined) break
      const right = this.#heap[2 * at + 2]
      const child = right !== undefined && isBefore(right, left) ? right : left
      if (!isBefore(child, entry)) break
      this.#heap[at] = child
      at = child === left ? 2 * at + 1 : 2 * at + 2
    }
    this.#heap[at] = entry
  }
}
