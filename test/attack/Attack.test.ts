/** A small sample of `npm run attack`, and that its bodies are what they are said to be. */
import { describe, expect, it } from "vitest"
import { measureBody } from "../../src/service/BodyBounds.ts"
import { attackBody, attackForms } from "./AttackBodies.ts"
import { attackNight } from "./AttackedNight.ts"

// Each is made once: that costs as much as a night.
const bodies = attackForms.map((_, seed) => attackBody(seed, 1))
const wholes = bodies.map(({ pieces }) => Buffer.concat([...pieces()]))

describe("a body of an attack", () => {
  it("is as long as it says, the same for the same seed, of every form in turn, and JSON where it is meant to be read", () => {
    expect(wholes.map(({ length }) => length)).toEqual(bodies.map(({ bytes }) => bytes))
    const again = attackBody(8, 1).pieces()
    expect(wholes[8]?.equals(Buffer.concat([...again]))).toBe(true)
    expect(bodies.map(({ name }) => name)).toEqual(attackForms.map(({ name }) => name))
    for (const [index, { name }] of bodies.entries()) {
      const whole = wholes[index] ?? Buffer.of()
      if (name === "levels" || measureBody(whole).broken !== undefined) continue
      expect(() => JSON.parse(whole.toString()), name).not.toThrow()
    }
  })
})

// A night in processes of its own takes its time on a busy machine; what is judged is memory and tables.
describe("a run under attack", () => {
  it("stays within its memory, publishes all other tasks completely and deletes nothing [promise 11]", async () => {
    const end = await attackNight({ attackers: 3, megabytes: 5, seed: 8 })
    expect(end.complaints).toEqual([])
    expect([end.innocentsWhole, end.attackersDeleted, end.reasons]).toEqual([
      10,
      0,
      { ANSWER_UNUSABLE: 2, RECORDS_SHORT: 1 },
    ])
  }, 400_000)
})
