/** All mutants of a source in one text: each behaves as if it stood there alone, and the text itself as it was. */
import { describe, expect, it } from "vitest"
import { mutantsOf, mutatedText } from "./Mutant.ts"
import { isSwitchable, switchedSource, type Switch } from "./Switched.ts"

const shared = globalThis as typeof globalThis & { nightjarSwitch?: Switch }
const load = (text: string): Promise<Record<string, unknown>> =>
  import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(text)}`)

const source = `
export const sum = (list) => list.map((one) => one + 1).filter((one) => { return one > 2 })
export function* count(to) { yield to; yield to * 2; return "end" }
export class Box { constructor(held) { this.held = held } get() { return this.held ?? "none" } }
export const all = () => JSON.stringify([sum([1, 2, 3]), [...count(2)], new Box(undefined).get(), new Box(4).get()])
export const twice = 2
`

describe("a source with all of its mutants", () => {
  it("behaves unchanged while none is on, and like each one alone while that one is on", async () => {
    const file = "src/a.ts"
    const told = async (text: string) => {
      const { all } = (await load(text)) as { all: () => unknown }
      return () => {
        try {
          return all()
        } catch (cause) {
          return String(cause)
        }
      }
    }
    const mutants = mutantsOf(file, source).filter((mutant) => isSwitchable(mutant, source))
    const numbered = mutants.map((mutant, number) => ({ mutant, number }))
    const switched = await told(switchedSource(file, source, numbered))
    const state = shared.nightjarSwitch
    expect(state).toBeDefined()
    if (state === undefined) return
    expect(switched()).toBe(await told(source).then((plain) => plain()))
    expect([...state.reached].toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((body) => `${file}#${body}`))
    const alone = await Promise.all(
      mutants.map(async (mutant) => (await told(mutatedText(mutant, source)))()),
    )
    const inTurn = numbered.map(({ number }) => {
      state.on = number
      return switched()
    })
    state.on = -1
    expect(inTurn).toEqual(alone)
    expect(new Set(inTurn).size).toBeGreaterThan(10)
  })

  it("contains none outside functions, and none that is not a valid program", () => {
    const mutants = mutantsOf("src/a.ts", source)
    const outside = mutants.filter((mutant) => !isSwitchable(mutant, source))
    expect(outside.map(({ inFunction }) => inFunction)).toEqual(outside.map(() => "src/a.ts#0"))
    const [mutant] = mutants.filter(({ inFunction }) => inFunction !== "src/a.ts#0")
    expect(mutant && isSwitchable({ ...mutant, by: "= =" }, source)).toBe(false)
  })
})
