/**
 * What each setting of a feature makes of its records (section 4.1), over both ways to reach the service.
 * And what it leaves as it was.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { ofTheService } from "../server/BothWays.ts"
import { field } from "../server/Caller.ts"
import { readFeature, rowsOf } from "../engines/ReadFeature.ts"
import type { Row, Settings } from "../engines/ReadFeature.ts"

const dates = (record: Row | undefined) =>
  rowsOf(record?.["transactions"]).map((row) => String(row["value_date"]))
const moving = { read_transactions: true }
const some = { customer_id: "c-4" }

ofTheService("a setting", (told) => {
  for (const code of ["accounts_read", "credits_read", "cards_read"] as const) {
    told(
      `of ${code} selects its movements by date [setting ${code}.from_date] [setting ${code}.to_date] ` +
        `[setting ${code}.read_transactions] [settings dates]`,
      Effect.gen(function* () {
        const words = "queue-0+run-0+records-2"
        const read = (settings: Settings) => readFeature(code, settings, some, words)
        const silent = yield* read({})
        const usual = yield* read(moving)
        const longer = yield* read({ ...moving, from_date: "2026-06-01" })
        const shorter = yield* read({ ...moving, to_date: "15 days ago" })
        expect(silent.records.map((record) => Object.hasOwn(record, "transactions"))).toEqual([false, false])
        const [all, month, half] = [longer, usual, shorter].map(({ records }) => dates(records[0]))
        expect(month).toEqual(all?.filter((day) => day >= "2026-10-22"))
        expect(half).toEqual(month?.filter((day) => day <= "2026-11-06"))
        expect(month?.length).toBeGreaterThan(4)
        expect(half?.length).toBeGreaterThan(0)
        expect(all?.at(-1)?.slice(0, 7)).toBe("2026-06")
      }),
    )
  }

  for (const code of ["accounts_read", "credits_read"] as const) {
    told(
      `of ${code} shows the holders [setting ${code}.read_holders]`,
      Effect.gen(function* () {
        const words = "queue-0+run-0+records-1"
        const [silent] = (yield* readFeature(code, {}, some, words)).records
        const [shown] = (yield* readFeature(code, { read_holders: true }, some, words)).records
        expect(rowsOf(shown?.["holders"])).toEqual([{ name: expect.any(String), role: "holder" }])
        expect({ ...shown, holders: undefined }).toEqual({ ...silent, holders: undefined })
        expect(silent).not.toHaveProperty("holders")
      }),
    )
  }

  for (const code of ["client_invoices_read", "supplier_invoices_read"] as const) {
    told(
      `of ${code} selects its invoices by date, and they are counted ` +
        `[setting ${code}.from_date] [setting ${code}.to_date]`,
      Effect.gen(function* () {
        const usual = yield* readFeature(code, {})
        const year = yield* readFeature(code, { from_date: "1 year ago" })
        const autumn = yield* readFeature(code, { from_date: "2026-09-01", to_date: "2026-10-31" })
        const issued = (records: ReadonlyArray<Row>) => records.map((record) => String(record["issued_on"]))
        const between = (from: string, to: string) =>
          year.records.filter((record) => {
            const day = String(record["issued_on"])
            return day >= from && day <= to
          })
        expect(usual.records).toEqual(between("2026-10-22", "2026-11-21"))
        expect(autumn.records).toEqual(between("2026-09-01", "2026-10-31"))
        expect(issued(year.records).toSorted().toReversed()).toEqual(issued(year.records))
        expect(year.records.length).toBeGreaterThan(usual.records.length)
        const counts = Object.values(Object(field(year.state, "products_count")))
        expect(counts).toEqual([year.records.length])
      }),
    )
  }

  told(
    "of cards_read filters by type, and leaves out rather than replaces [setting cards_read.filter_by_type]",
    Effect.gen(function* () {
      const kinds = ["debit", "credit", "prepaid", "mixed"].map((kind) => `financial_card:${kind}`)
      let cards = 0
      for (let n = 0; n < 6; n += 1) {
        const customer = { customer_id: `c-${n}` }
        const all = yield* readFeature("cards_read", {}, customer)
        const filtered = []
        for (const kind of kinds) {
          const { records } = yield* readFeature("cards_read", { filter_by_type: [kind] }, customer)
          expect(records.filter((record) => record["sub_family"] !== kind)).toEqual([])
          filtered.push(...records)
        }
        expect(filtered).toEqual(all.records)
        expect((yield* readFeature("cards_read", { filter_by_type: kinds }, customer)).records).toEqual(
          all.records,
        )
        cards += all.records.length
      }
      expect(cards).toBeGreaterThan(3)
    }),
  )

  told(
    "of credit_registry_data prefers a type [setting credit_registry_data.preferred_type]",
    Effect.gen(function* () {
      for (const type of ["detailed", "aggregated"]) {
        const preferred_type = `credit_registry_data:es_cirbe_${type}`
        const { records } = yield* readFeature("credit_registry_data", { preferred_type })
        expect(new Set(records.map((record) => record["sub_family"]))).toEqual(new Set([preferred_type]))
      }
    }),
  )

  told(
    "of driver_data shows what happened to the points [setting driver_data.read_point_movements]",
    Effect.gen(function* () {
      const [silent] = (yield* readFeature("driver_data", {})).records
      const [shown] = (yield* readFeature("driver_data", { read_point_movements: true })).records
      expect([silent?.["point_movements"], rowsOf(shown?.["point_movements"]).length]).toEqual([undefined, 1])
    }),
  )

  told(
    "of vehicles_data asks for a reduced report [setting vehicles_data.simple_vehicle_report]",
    Effect.gen(function* () {
      const words = "queue-0+run-0+records-1"
      const [full] = (yield* readFeature("vehicles_data", {}, {}, words)).records
      const simple = yield* readFeature("vehicles_data", { simple_vehicle_report: true }, {}, words)
      const [reduced] = simple.records
      expect([full?.["report"], reduced?.["report"], full?.["plate"] === reduced?.["plate"]]).toEqual([
        "full",
        "simple",
        true,
      ])
      expect([typeof full?.["vin"], reduced?.["vin"]]).toEqual(["string", undefined])
    }),
  )

  told(
    "of yearly_individual_tax says how many years, three where nothing is said " +
      "[setting yearly_individual_tax.last_n_years] [limit 9]",
    Effect.gen(function* () {
      const years = Effect.fnUntraced(function* (settings: Settings) {
        const { records } = yield* readFeature("yearly_individual_tax", settings)
        return records.map((record) => record["fiscal_year"])
      })
      expect(yield* years({})).toEqual([2025, 2024, 2023])
      expect(yield* years({ last_n_years: 1 })).toEqual([2025])
      expect(yield* years({ last_n_years: 5 })).toEqual([2025, 2024, 2023, 2022, 2021])
      const beyond = yield* readFeature("yearly_individual_tax", { last_n_years: 11 })
      expect([
        field(beyond.state, "status_reason"),
        field(beyond.state, "configurations_errors", 0, "loc"),
      ]).toEqual(["BAD_CONFIGURATIONS", ["features", 0, "configurations", "last_n_years"]])
    }),
  )

  told(
    "of labor_check names reports and their time [setting labor_check.from_date] " +
      "[setting labor_check.work_life_report] [setting labor_check.contribution_base_report]",
    Effect.gen(function* () {
      const read = (settings: Settings) => readFeature("labor_check", settings)
      const usual = (yield* read({})).records
      const same = (yield* read({ from_date: "12 months ago", work_life_report: true })).records
      expect(same).toEqual(usual)
      expect(new Set(usual.map((record) => record["sub_family"]))).toEqual(new Set(["labor_check:work_life"]))
      const life = (yield* read({ from_date: "40 years ago" })).records
      expect(life.length).toBeGreaterThan(usual.length)
      expect(life.slice(0, usual.length)).toEqual(usual)
      const bases = (yield* read({ work_life_report: false, contribution_base_report: true })).records
      expect(new Set(bases.map((record) => record["sub_family"]))).toEqual(
        new Set(["labor_check:contribution_bases"]),
      )
      const months = bases.flatMap((record) => rowsOf(record["bases"]).map(({ month }) => String(month)))
      expect(months.toSorted()[0]).toBe("2025-11")
      expect(months.toSorted().at(-1)).toBe("2026-11")
      const both = (yield* read({ contribution_base_report: true })).records
      expect(both).toHaveLength(usual.length * 2)
      expect((yield* read({ work_life_report: false })).records).toEqual([])
    }),
  )
})
