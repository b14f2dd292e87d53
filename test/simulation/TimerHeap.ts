/**
 * The timers of a simulated world: a binary heap by due time, then by the order in which they were set, so
 * that equal times have one order. A cancelled timer stays until it comes up or cancelled ones are the
 * majority.
 */
export interface Timer {
  readonly atMs: number
  readonly seq: number
  /** The process whose timer it is; undefined for the world's own. */
  readonly owner: { readonly alive: boolean; readonly index: number } | undefined
  readonly fire: () => void
  cancelled: boolean
}

const before = (a: Timer, b: Timer) => a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq)
const live = (timer: Timer) => !timer.cancelled && (timer.owner === undefined || timer.owner.alive)

export class TimerHeap {
  private heap: Array<Timer> = []
  private seq = 0
  private cancelled = 0

  set(atMs: number, owner: Timer["owner"], fire: () => void): Timer {
    const timer: Timer = { atMs, seq: this.seq++, owner, fire, cancelled: false }
    this.heap.push(timer)
    this.rise(this.heap.length - 1)
    return timer
  }

  cancel(timer: Timer): void {
    if (timer.cancelled) return
    timer.cancelled = true
    this.cancelled++
    if (this.cancelled > 1024 && this.cancelled * 2 > this.heap.length) this.sweep()
  }

  /** Drops what was cancelled or belongs to a dead process. A sorted array is a heap. */
  sweep(): void {
    this.heap = this.heap.filter(live).sort((a, b) => (before(a, b) ? -1 : 1))
    this.cancelled = 0
  }

  /** The next timer that still counts, taken out; undefined when there is none. */
  take(): Timer | undefined {
    for (;;) {
      const first = this.heap[0]
      const last = this.heap.pop()
      if (first === undefined || last === undefined) return undefined
      if (first !== last) {
        this.heap[0] = last
        this.sink(0)
      }
      if (live(first)) {
        // A timer that has fired can no longer be cancelled.
        first.cancelled = true
        return first
      }
      if (first.cancelled) this.cancelled--
    }
  }

  private rise(start: number): void {
    const heap = this.heap
    const timer = heap[start]
    if (timer === undefined) return
    let index = start
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = heap[above]
      if (parent === undefined || before(parent, timer)) break
      heap[index] = parent
      index = above
    }
    heap[index] = timer
  }

  private sink(start: number): void {
    const heap = this.heap
    const timer = heap[start]
    if (timer === undefined) return
    let index = start
    for (;;) {
      const left = heap[2 * index + 1]
      const right = heap[2 * index + 2]
      if (left === undefined) break
      const down = right !== undefined && before(right, left) ? 2 * index + 2 : 2 * index + 1
      const child = heap[down]
      if (child === undefined || before(timer, child)) break
      heap[index] = child
      index = down
    }
    heap[index] = timer
  }
}
