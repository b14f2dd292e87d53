/**
 * The records of section 2.7 as they travel: over many customers, what a read of flow results shows has every
 * field of the inventory somewhere, and none that the inventory does not have.
 */
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Caller, inProcess, textField } from "../sandbox/server/Caller.ts"
import { readInventory } from "./Inventory.ts"

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const recordsIn = (value: unknown): ReadonlyArray<Fields> => {
  if (Array.isArray(value)) return value.flatMap(recordsIn)
  if (!isFields(value)) return []
  return "product" in value && "sub_family" in value ? [value] : Object.values(value).flatMap(recordsIn)
}

const readAll = Effect.gen(function* () {
  const caller = yield* Caller
  const records: Array<Fields> = []
  for (let n = 0; n < 30; n += 1) {
    const started = yield* caller.start(`queue-0+run-0+records-60${n % 3 === 0 ? "+company" : ""}`, {
      customer_id: `c-${n}`,
      engine_reference: "sandbox-tax:website",
      features: ["customer_information_read", "academic_data"],
    })
    const results = yield* caller.results(textField(started, "session_id"))
    records.push(...recordsIn(results.json))
  }
  return records
}).pipe(Effect.provide(inProcess({ seed: 7 })))

const family = (records: ReadonlyArray<Fields>, prefix: RegExp) =>
  records.filter((record) => prefix.test(String(record["sub_family"])))
const children = (records: ReadonlyArray<Fields>, name: string) =>
  records.flatMap((record) => (Array.isArray(record[name]) ? record[name].filter(isFields) : []))

const objects: Readonly<Record<string, (records: ReadonlyArray<Fields>) => ReadonlyArray<Fields>>> = {
  profile: (records) => family(records, /^customer_information:/),
  "id-number": (records) => children(records, "identification_numbers"),
  address: (records) => children(records, "addresses"),
  higher: (records) => family(records, /^academic_data:higher/),
  secondary: (records) => family(records, /^academic_data:(?:secondary|professional)/),
}

describe("records on the wire", () => {
  let records: ReadonlyArray<Fields> = []
  beforeAll(() => {
    records = Effect.runSync(readAll)
  })

  it.each(Object.keys(objects).map((object) => ({ object })))(
    "have the reference's fields of $object, all of them and no other",
    ({ object }) => {
      const found = objects[object]?.(records) ?? []
      expect(found.length).toBeGreaterThan(20)
      const names = readInventory().flatMap(({ id }) =>
        id.startsWith(`field ${object}.`) ? [id.slice(`field ${object}.`.length)] : [],
      )
      expect([...new Set(found.flatMap(Object.keys))].toSorted()).toEqual(names.toSorted())
    },
  )
})
