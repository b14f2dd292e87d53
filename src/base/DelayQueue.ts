/**
 * Entries that wait for their time, earliest first, and in order of arrival if times are equal: a binary
 * heap, so that a hundred thousand tasks of an engine that is away cost no more than their logarithm.
 */

interface Entry<A> {
  readonly value: A
  readonly at: number
  readonly order: number
}

const isBefore = <A>(one: Entry<A>, other: Entry<A>): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

export class DelayQueue<A> {
  #heap: Array<Entry<A>> = []
  #order = 0

  get size(): number {
    return this.#heap.length
  }

  /** The earliest time; undefined if nothing waits. */
  get nextAt(): number | undefined {
    return this.#heap[0]?.at
  }

  /** The value that waits for it. */
  get next(): A | undefined {
    return this.#heap[0]?.value
  }

  /** Everything that waits, in no order. */
  values(): ReadonlyArray<A> {
    return this.#heap.map(({ value }) => value)
  }

  add(value: A, at: number): void {
    this.#rise({ value, at, order: this.#order++ })
  }

  /** Takes the earliest value whose time has come. */
  takeDue(now: number): A | undefined {
    const first = this.#heap[0]
    if (first === undefined || first.at > now) return undefined
    const last = this.#heap.pop()
    if (last !== undefined && last !== first) this.#sink(last)
    return first.value
  }

  /** Removes every value that `matches`, earliest first. */
  remove(matches: (value: A) => boolean): ReadonlyArray<A> {
    const taken = this.#heap.filter(({ value }) => matches(value))
    if (taken.length === 0) return []
    const kept = this.#heap.filter(({ value }) => !matches(value))
    this.#heap = []
    for (const entry of kept) this.#rise(entry)
    return taken.toSorted((one, other) => (isBefore(one, other) ? -1 : 1)).map(({ value }) => value)
  }

  #rise(entry: Entry<A>): void {
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

  /** Puts an entry in the place of the first one, then moves it down to where it belongs. */
  #sink(entry: Entry<A>): void {
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
