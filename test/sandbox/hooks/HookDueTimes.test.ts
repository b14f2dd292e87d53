/** The order in which deliveries come up, against the plainest list that does the same. */
import * as fc from "fast-check"
import { expect, test } from "vitest"
import { DueTimes } from "../../../src/sandbox/hooks/Outbox.ts"

const name = fc.constantFrom("a", "b", "c", "d", "e", "f")
const command = fc.oneof(
  fc.record({ set: name, at: fc.integer({ min: 0, max: 50 }) }),
  fc.record({ delete: name }),
  fc.record({ take: fc.integer({ min: 0, max: 50 }) }),
)

/** Names with their times, in the order in which they were last given a new one. */
class PlainTimes {
  entries: Array<{ readonly name: string; readonly at: number }> = []
  set(of: string, at: number) {
    if (this.entries.some((entry) => entry.name === of && entry.at === at)) return
    this.delete(of)
    this.entries.push({ name: of, at })
  }
  delete(of: string) {
    this.entries = this.entries.filter((entry) => entry.name !== of)
  }
  takeDue(now: number) {
    const first = this.entries.toSorted((one, other) => one.at - other.at)[0]
    if (first === undefined || first.at > now) return undefined
    this.delete(first.name)
    return first.name
  }
  nextAt() {
    return this.entries.length === 0 ? undefined : Math.min(...this.entries.map(({ at }) => at))
  }
}

test("takes what is due, earliest first, whatever was set before", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
      const times = new DueTimes()
      const plain = new PlainTimes()
      for (const one of commands) {
        if ("set" in one) {
          times.set(one.set, one.at)
          plain.set(one.set, one.at)
        } else if ("delete" in one) {
          times.delete(one.delete)
          plain.delete(one.delete)
        } else expect(times.takeDue(one.take)).toBe(plain.takeDue(one.take))
        expect([times.size, times.nextAt()]).toEqual([plain.entries.length, plain.nextAt()])
      }
    }),
    { numRuns: 100 },
  )
})

test("twenty thousand names that change their time again and again stay in order", () => {
  const times = new DueTimes()
  for (let round = 0; round < 3; round += 1) {
    for (let n = 0; n < 20_000; n += 1) times.set(`n-${n}`, (n * 7919 + round) % 20_011)
  }
  const taken: Array<number> = []
  for (;;) {
    const at = times.nextAt()
    if (at === undefined) break
    taken.push(at)
    times.takeDue(at)
  }
  expect([taken.length, times.size]).toEqual([20_000, 0])
  expect(taken.every((at, index) => index === 0 || (taken[index - 1] ?? 0) <= at)).toBe(true)
})
