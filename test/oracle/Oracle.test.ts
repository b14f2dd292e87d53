/** The oracle itself: a seed leaves the texts that are stored, and what is planted is seen in those that it changes. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { Ledger } from "../../src/ledger/Ledger.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import type { PlantedServices } from "../simulation/NightLayers.ts"
import { textsOf } from "./Seeds.ts"
import { differences, hashOf, keyOf, parsed } from "./Texts.ts"

const known = parsed(readFileSync(new URL("oracle.txt", import.meta.url), "utf8"))

/** The aspects in which a seed leaves something else than is stored of it. */
const changed = async (seed: string, plant?: PlantedServices): Promise<ReadonlyArray<string>> => {
  const texts = await textsOf(seed, plant)
  const left = [...texts].map(([aspect, text]) => [keyOf(seed, aspect), hashOf(text)] as const)
  const keys = differences(known, new Map(left), (key) => key.startsWith(`${seed} `))
  return keys.map((key) => key.slice(seed.length + 1))
}

/** Whoever settles a task says something else than the pipeline did. */
const settling = (settled: (fact: Extract<Fact, { _tag: "TaskSettled" }>) => Fact): PlantedServices => ({
  ledger: (ledger) =>
    Ledger.of({
      ...ledger,
      append: (facts) =>
        ledger.append(facts.map((fact) => (fact._tag === "TaskSettled" ? settled(fact) : fact))),
    }),
})

describe("a seed", () => {
  const plant = settling((fact) => ({ ...fact, who_acts: "service" }))

  it("in virtual time tells a fact that is another one, and nothing else", async () => {
    expect(await changed("night-005")).toEqual([])
    expect(await changed("night-005", plant)).toEqual(["facts", "summaries"])
  })

  it("with an output folder tells another value in a row and in what commands say of it", async () => {
    const told = await changed("folder-001", plant)
    expect(told).toEqual(expect.arrayContaining(["facts", "summaries", "table ops.tasks", "status --json"]))
    expect(told.filter((aspect) => /validate|table \w+\.(customer_profiles|emails)/.test(aspect))).toEqual([])
  })
})

it("texts differ if they are new, gone or another", () => {
  const before = new Map(Object.entries({ a: "1", b: "1", c: "1", untried: "1" }))
  const after = new Map(Object.entries({ a: "1", b: "2", d: "1" }))
  expect(differences(before, after, (key) => key !== "untried")).toEqual(["b", "c", "d"])
})
