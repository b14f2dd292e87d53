/** Inventory and contract agree, else it would be noticed; a key of a reading stands where the reference is silent. */
import { describe, expect, it } from "vitest"
import { readingChoices } from "../../src/sandbox/state/Reading.ts"
import { compareWithContract, differences } from "./ContractComparison.ts"
import { readInventory, readSilences, type Row } from "./Inventory.ts"

const inventory = readInventory()
const silences = readSilences()
const comparisons = compareWithContract(inventory)

describe("the inventory and the contract", () => {
  it.each(comparisons.map((one) => ({ ...one })))("have the same: $subject", (one) => {
    expect(one.inventory.length).toBeGreaterThan(0)
    expect(one.inventory).toEqual(one.contract)
  })

  const without = (id: string) => inventory.filter((row) => row.id !== id)
  const renamed = (id: string, to: string): ReadonlyArray<Row> =>
    inventory.map((row) => (row.id === id ? { ...row, id: to } : row))
  const said = (id: string, from: string, to: string): ReadonlyArray<Row> =>
    inventory.map((row) => (row.id === id ? { ...row, says: row.says.replace(from, to) } : row))

  const lacks = (what: string) => `the inventory lacks ${what} of the contract`
  const mood: Row = { id: "field execution.mood", section: "2.4", says: "Not there.", part: "resources" }
  it.each([
    [without("field address.zip_code"), `the fields of the record address: ${lacks("zip_code")}`],
    [
      renamed("filter markets", "filter countries"),
      "the filters of the catalogue: the contract lacks countries of the inventory",
    ],
    [
      said("state TEMPORARY_ERROR", "`PROXY_ERROR`", "`PROXI_ERROR`"),
      "the reasons of TEMPORARY_ERROR: the contract lacks PROXI_ERROR of the inventory",
    ],
    [[...inventory, mood], "the fields of execution: the contract lacks mood of the inventory"],
  ] as const)("a difference is named (%#)", (rows, problem) => {
    expect(differences(compareWithContract(rows))).toContain(problem)
  })

  it("marks as own what the reference only names: 4.11, 4.12, refused secrets and waiting", () => {
    const own = inventory.filter((row) => row.part === "own" && /^[a-zA-Z]+ \d{3}$/.test(row.id))
    const statuses = own.filter(({ id }) => !/ (?:401|403|429)$/.test(id))
    expect([...new Set(statuses.map(({ section }) => section))]).toEqual(["4.11", "4.12"])
  })
})

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
