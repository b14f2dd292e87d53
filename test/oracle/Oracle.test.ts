/** The oracle itself: a seed leaves the same texts twice, and what is planted is seen in those that it changes. */
import { hostname } from "node:os"
import { describe, expect, it } from "vitest"
import { Ledger } from "../../src/ledger/Ledger.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import type { PlantedServices } from "../simulation/NightLayers.ts"
import { textsOfFolder } from "./Scenes.ts"
import { textsOf } from "./Seeds.ts"
import { differences, hashOf, normalised, parsed, stored } from "./Texts.ts"
import type { Texts } from "./Texts.ts"
import { textsOfNight } from "./VirtualNights.ts"

const hashes = (texts: Texts) => new Map([...texts].map(([aspect, text]) => [aspect, hashOf(text)]))
const changed = (before: Texts, after: Texts) => differences(hashes(before), hashes(after))

/** Whoever settles a task says something else than the pipeline did. */
const settling = (settled: (fact: Extract<Fact, { _tag: "TaskSettled" }>) => Fact): PlantedServices => ({
  ledger: (ledger) =>
    Ledger.of({
      ...ledger,
      append: (facts) =>
        ledger.append(facts.map((fact) => (fact._tag === "TaskSettled" ? settled(fact) : fact))),
    }),
})

describe("a seed in virtual time", () => {
  it("leaves the same texts twice", async () => {
    for (const seed of ["night-005", "accounts-002"])
      expect(changed(await textsOf(seed), await textsOf(seed))).toEqual([])
  })

  it("tells a fact that is another one", () => {
    const plant = settling((fact) => ({ ...fact, who_acts: "service" }))
    const told = changed(textsOfNight(5, []), textsOfNight(5, [], plant))
    expect(told).toEqual(["facts", "summaries"])
  })
})

describe("a seed with an output folder", () => {
  it("leaves the same texts twice, and tells another value in a row and in what commands say of it", async () => {
    const before = await textsOfFolder(3)
    expect(changed(before, await textsOfFolder(3))).toEqual([])
    const told = changed(
      before,
      await textsOfFolder(
        3,
        settling((fact) => ({ ...fact, who_acts: "service" })),
      ),
    )
    expect(told).toEqual(expect.arrayContaining(["facts", "summaries", "table ops.tasks", "status --json"]))
    expect(told.filter((aspect) => /validate|table \w+\.(customer_profiles|emails)/.test(aspect))).toEqual([])
  })
})

describe("texts", () => {
  it("say nothing of the machine, and keep what stands beside it", () => {
    const folder = "/tmp/nightjar-oracle-AbC123"
    const text = `cd ../..${folder}/output    2 rows\nhost ${hostname()}    3 rows`
    expect(normalised(text, folder)).toBe("cd <folder>/output  2 rows\nhost <host>    3 rows")
  })

  it("are stored by hash in their order, and read back", () => {
    const known = new Map([
      ["night-002 facts", hashOf("b")],
      ["night-001 table a b", hashOf("a")],
    ])
    expect(stored(known)).toBe(`${hashOf("a")} night-001 table a b\n${hashOf("b")} night-002 facts\n`)
    expect(parsed(stored(known))).toEqual(known)
  })

  it("differ if they are new, gone or another", () => {
    const before = new Map(Object.entries({ a: "1", b: "1", c: "1", untried: "1" }))
    const after = new Map(Object.entries({ a: "1", b: "2", d: "1" }))
    expect(differences(before, after, (key) => key !== "untried")).toEqual(["b", "c", "d"])
  })
})
