/** Every key of a reading stands where the reference is silent, with all its values, and nowhere else. */
import { describe, expect, it } from "vitest"
import { readingChoices } from "../../src/sandbox/state/Reading.ts"
import { readSilences } from "./Inventory.ts"

const silences = readSilences()
const named = (service: string): ReadonlyArray<string> =>
  [...service.matchAll(/Reading\s+`([a-z_]+)`/g)].map(([, key = ""]) => key)

describe("a gap in the reference", () => {
  it.each(readingChoices.map((choice) => ({ ...choice })))(
    "has the reading $key in one row of its section, with every value",
    ({ key, section, values }) => {
      const rows = silences.filter(({ service }) => named(service).includes(key))
      expect(rows.map((row) => section.split(", ").includes(row.section))).toEqual([true])
      const from = rows[0]?.service.split(`\`${key}\`:`)[1] ?? ""
      const said = from.split(/Reading\s/)[0] ?? ""
      expect(values.filter((value) => !said.includes(`\`${value}\``))).toEqual([])
    },
  )

  it("names no reading that the service does not accept", () => {
    const keys = new Set(readingChoices.map(({ key }) => key))
    expect(silences.flatMap(({ service }) => named(service)).filter((key) => !keys.has(key))).toEqual([])
  })
})
