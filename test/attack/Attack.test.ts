/** A small sample of `npm run attack`, and that its bodies are what they are said to be. */
import { describe, expect, it } from "vitest"
import { measureBody } from "../../src/contract/BodyBounds.ts"
import { attackBody, attackForms } from "./AttackBodies.ts"
import { attackNight } from "./AttackedNight.ts"

const seeds = attackForms.map((_, seed) => seed)
const whole = (seed: number) => Buffer.concat([...attackBody(seed, 5).pieces()])

describe("a body of an attack", () => {
  it("is as long as it says, the same for the same seed, and takes every form in turn", () => {
    expect(seeds.map((seed) => whole(seed).length)).toEqual(seeds.map((seed) => attackBody(seed, 5).bytes))
    expect(whole(8).equals(whole(8))).toBe(true)
    expect(seeds.map((seed) => attackBody(seed, 5).name)).toEqual(attackForms.map(({ name }) => name))
  })

  it("is JSON if its form is meant to be read", () => {
    const read = seeds.filter((seed) => attackForms[seed]?.name !== "levels")
    for (const seed of read.filter((one) => measureBody(whole(one)).broken === undefined))
      expect(() => JSON.parse(whole(seed).toString()), attackForms[seed]?.name).not.toThrow()
  })
})

// A night in processes of its own takes its time on a busy machine; what is judged is memory and tables.
describe("a run under attack", () => {
  it("stays within its memory, publishes all other tasks completely and deletes nothing [promise 11]", async () => {
    const end = await attackNight({ attackers: 3, megabytes: 20, seed: 8 })
    expect(end.complaints).toEqual([])
    expect([end.innocentsWhole, end.attackersDeleted, end.reasons]).toEqual([
      10,
      0,
      { ANSWER_UNUSABLE: 2, RECORDS_SHORT: 1 },
    ])
  }, 400_000)
})
