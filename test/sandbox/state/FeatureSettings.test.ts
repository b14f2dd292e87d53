/** What each setting of a feature makes of its records (4.1), and what it leaves as it was. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { judgeSettings, readDate, settleFeature } from "../../../src/sandbox/state/ResultsPlan.ts"
import { engineOf, readFeature, rowsOf, windows, type Row, type Settings } from "../engines/ReadFeature.ts"
import { field, itemsOf, morning, ofTheService, shows, stateOf } from "../server/Caller.ts"

const dates = (record: Row | undefined) =>
  rowsOf(record?.["transactions"]).map((row) => String(row["value_date"]))
const moving = { read_transactions: true }
const some = { customer_id: "c-4" }

const one = "queue-0+run-0+records-1"
const day = (record: Row) => String(record["issued_on"])
const familiesOf = (records: ReadonlyArray<Row>) => [...new Set(records.map((row) => row["sub_family"]))]

ofTheService("a setting", (it) => {
  for (const code of ["accounts_read", "credits_read", "cards_read"] as const)
    it(`of ${code} selects its movements by date [setting ${code}.from_date] [setting ${code}.to_date] [setting ${code}.read_transactions] [settings dates]`, function* () {
      const read = (settings: Settings) => readFeature(code, settings, some, "queue-0+run-0+records-2")
      const silent = yield* read({})
      expect(silent.records.map((record) => Object.hasOwn(record, "transactions"))).toEqual([false, false])
      const [all = [], month = [], half = []] = yield* Effect.forEach(
        [{ from_date: "2026-06-01" }, {}, { to_date: "15 days ago" }],
        (dated) => Effect.map(read({ ...moving, ...dated }), ({ records }) => dates(records[0])),
      )
      expect(month).toEqual(all.filter((date) => date >= "2026-10-22"))
      expect(half).toEqual(month.filter((date) => date <= "2026-11-06"))
      expect([month.length > 4, half.length > 0, all.at(-1)?.slice(0, 7)]).toEqual([true, true, "2026-06"])
    })

  for (const code of ["accounts_read", "credits_read"] as const)
    it(`of ${code} shows the holders [setting ${code}.read_holders]`, function* () {
      const [silent] = (yield* readFeature(code, {}, some, one)).records
      const [shown] = (yield* readFeature(code, { read_holders: true }, some, one)).records
      expect(shown).toEqual({ ...silent, holders: [{ name: expect.any(String), role: "holder" }] })
      expect(silent).not.toHaveProperty("holders")
    })

  for (const code of ["client_invoices_read", "supplier_invoices_read"] as const)
    it(`of ${code} selects its invoices by date, and they are counted [setting ${code}.from_date] [setting ${code}.to_date]`, function* () {
      const usual = yield* readFeature(code, {})
      const { state, records: year } = yield* readFeature(code, { from_date: "1 year ago" })
      const autumn = yield* readFeature(code, { from_date: "2026-09-01", to_date: "2026-10-31" })
      const between = (from: string, to: string) => year.filter((row) => day(row) >= from && day(row) <= to)
      expect(usual.records).toEqual(between("2026-10-22", "2026-11-21"))
      expect(autumn.records).toEqual(between("2026-09-01", "2026-10-31"))
      expect(year.map(day)).toEqual(year.map(day).toSorted().toReversed())
      expect(year.length).toBeGreaterThan(usual.records.length)
      expect(Object.values(Object(field(state, "products_count")))).toEqual([year.length])
    })

  it("of cards_read filters by type, and leaves out rather than replaces [setting cards_read.filter_by_type]", function* () {
    const kinds = ["debit", "credit", "prepaid", "mixed"].map((kind) => `financial_card:${kind}`)
    let cards = 0
    for (let n = 0; n < 6; n += 1) {
      const of = (settings: Settings) =>
        Effect.map(readFeature("cards_read", settings, { customer_id: `c-${n}` }), ({ records }) => records)
      const all = yield* of({})
      const filtered = yield* Effect.forEach(kinds, (kind) => of({ filter_by_type: [kind] }))
      expect(filtered.flat()).toEqual(all)
      expect(filtered).toEqual(kinds.map((kind) => all.filter((row) => row["sub_family"] === kind)))
      expect(yield* of({ filter_by_type: kinds })).toEqual(all)
      cards += all.length
    }
    expect(cards).toBeGreaterThan(3)
  })

  it("of credit_registry_data prefers a type [setting credit_registry_data.preferred_type]", function* () {
    for (const type of ["detailed", "aggregated"]) {
      const preferred_type = `credit_registry_data:es_cirbe_${type}`
      const { records } = yield* readFeature("credit_registry_data", { preferred_type })
      expect(familiesOf(records)).toEqual([preferred_type])
    }
  })

  it("of driver_data shows what happened to the points [setting driver_data.read_point_movements]", function* () {
    const [silent] = (yield* readFeature("driver_data", {})).records
    const [shown] = (yield* readFeature("driver_data", { read_point_movements: true })).records
    expect([silent?.["point_movements"], rowsOf(shown?.["point_movements"]).length]).toEqual([undefined, 1])
  })

  it("of vehicles_data asks for a reduced report [setting vehicles_data.simple_vehicle_report]", function* () {
    const [full] = (yield* readFeature("vehicles_data", {}, {}, one)).records
    const [simple] = (yield* readFeature("vehicles_data", { simple_vehicle_report: true }, {}, one)).records
    expect(full).toMatchObject({ report: "full", vin: expect.any(String), plate: simple?.["plate"] })
    expect([simple?.["report"], simple?.["vin"]]).toEqual(["simple", undefined])
  })

  it("of yearly_individual_tax says how many years [setting yearly_individual_tax.last_n_years] [limit 9]", function* () {
    for (const [settings, years] of [
      [{}, [2025, 2024, 2023]],
      [{ last_n_years: 1 }, [2025]],
      [{ last_n_years: 5 }, [2025, 2024, 2023, 2022, 2021]],
    ] as const) {
      const { records } = yield* readFeature("yearly_individual_tax", settings)
      expect(records.map((record) => record["fiscal_year"])).toEqual(years)
    }
    shows((yield* readFeature("yearly_individual_tax", { last_n_years: 11 })).state, {
      status_reason: "BAD_CONFIGURATIONS",
      "configurations_errors.0.loc": ["features", 0, "configurations", "last_n_years"],
    })
  })

  it("of labor_check names reports and their time [setting labor_check.from_date] [setting labor_check.work_life_report] [setting labor_check.contribution_base_report]", function* () {
    const read = (settings: Settings) =>
      Effect.map(readFeature("labor_check", settings), ({ records }) => records)
    const usual = yield* read({})
    expect(yield* read({ from_date: "12 months ago", work_life_report: true })).toEqual(usual)
    expect(familiesOf(usual)).toEqual(["labor_check:work_life"])
    const life = yield* read({ from_date: "40 years ago" })
    expect([life.length > usual.length, life.slice(0, usual.length)]).toEqual([true, usual])
    const bases = yield* read({ work_life_report: false, contribution_base_report: true })
    expect(familiesOf(bases)).toEqual(["labor_check:contribution_bases"])
    const months = bases.flatMap((record) => rowsOf(record["bases"]).map(({ month }) => String(month)))
    expect([months.toSorted()[0], months.toSorted().at(-1)]).toEqual(["2025-11", "2026-11"])
    expect(yield* read({ contribution_base_report: true })).toHaveLength(usual.length * 2)
    expect(yield* read({ work_life_report: false })).toEqual([])
  })
})

// Relative phrases, the days that an engine keeps and what happens beyond them; data that is protected until unlocked.

ofTheService("a date beyond what the source keeps", (it) => {
  it("[dates inverted] is named apart from a from_date after its to_date", function* () {
    const { state } = yield* readFeature("accounts_read", { from_date: "yesterday", to_date: "11 years ago" })
    const errors = itemsOf(state, "configurations_errors")
    expect(errors.map((error) => [field(error, "loc", 3), field(error, "msg")])).toEqual([
      ["from_date", '"yesterday" is after to_date'],
      ["to_date", '"11 years ago" beyond the limits: the source keeps 24 months'],
    ])
  })
  for (const code of windows) {
    const months = engineOf(code) === "es-bank:api" ? 24 : 120
    const old = { from_date: months === 24 ? "25 months ago" : "11 years ago" }
    it(`aborts the execution of ${code} [setting ${code}.limits_behaviour] [settings error] [reason BAD_CONFIGURATIONS] [feature FEATURE_CONFIGURATION_ERROR] [field execution.configurations_errors]`, function* () {
      for (const settings of [old, { ...old, limits_behaviour: "error" }]) {
        const { state, records } = yield* readFeature(code, settings)
        expect([...stateOf(state), records]).toEqual(["CONFIGURATION_ERROR", "BAD_CONFIGURATIONS", []])
        expect(field(state, "configurations_errors", 0)).toMatchObject({
          loc: ["features", 0, "configurations", "from_date"],
          msg: expect.stringMatching(`the source keeps ${months} months`),
          type: "value_error.date_limits",
          input: old.from_date,
        })
        shows(state, { "features.0.status_reason": "FEATURE_CONFIGURATION_ERROR" })
      }
    })
    it(`is moved to the limit for ${code} where it may be, and a message says so [setting ${code}.limits_behaviour] [settings adapt] [field execution.warnings_count] [field message.id]`, function* () {
      const { state } = yield* readFeature(code, { ...old, limits_behaviour: "adapt" })
      shows(state, { status_reason: "COMPLETED", warnings_count: 1 })
      expect(rowsOf(field(state, "messages")).filter(({ type }) => type === "warning")).toEqual([
        {
          date: "2026-11-21T09:00:00.000Z",
          type: "warning",
          id: "feature.dates_adapted",
          loc: ["features", code, "configurations", "from_date"],
          message: "La fecha se ha ajustado a lo que guarda la fuente.",
        },
      ])
    })
  }

  it("is what the engine's restrictions say [field engine.engine_restrictions]", function* (caller) {
    const shown = yield* caller.call("GET", `${caller.base_url}/config/engines/es-bank:api`)
    expect(field(shown, "engine_restrictions")).toContain("La fuente guarda 24 meses.")
  })
})

ofTheService("protected data", (it) => {
  it("is missing until it is unlocked, and a message says so [field base.unlock_protected_data]", function* () {
    const read = (more: Settings) => readFeature("cards_read", {}, more, one)
    const locked = yield* read({})
    const unlocked = yield* read({ base_configurations: { unlock_protected_data: true } })
    const ids = ({ state }: typeof locked) => rowsOf(field(state, "messages")).map(({ id }) => id)
    expect(ids(locked)).toEqual(["login.accepted", "feature.protected_data"])
    expect(locked.records[0]).not.toHaveProperty("masked_pan")
    expect(ids(unlocked)).toEqual(["login.accepted"])
    expect(unlocked.records[0]).toMatchObject({ ...locked.records[0], masked_pan: expect.any(String) })
  })
})

describe("a date in a setting", () => {
  it.each([
    ["today", "2026-11-21"],
    ["Yesterday", "2026-11-20"],
    ["30 days ago", "2026-10-22"],
    ["1 day ago", "2026-11-20"],
    ["2 weeks ago", "2026-11-07"],
    ["12 months ago", "2025-11-21"],
    ["9 months ago", "2026-02-21"],
    ["1 year ago", "2025-11-21"],
    [" 2024-02-29 ", "2024-02-29"],
    ["2026-11-21T10:00:00Z", "2026-11-21"],
    ["tomorrow", undefined],
    ["in 3 days", undefined],
    ["-1 days ago", undefined],
    ["1.5 days ago", undefined],
    ["21/11/2026", undefined],
    ["2026-2-1", undefined],
    ["2026-13-01", undefined],
    ["2023-02-29", undefined],
    ["2026-11-21Tnoon", undefined],
  ])("%j is %j [settings dates]", (text, day) => {
    expect(readDate(text, morning)).toBe(day)
  })

  it("of a month ago is the last day of a shorter month", () => {
    const at = Date.UTC(2026, 2, 31)
    expect(["1 month ago", "13 months ago", "4 months ago"].map((text) => readDate(text, at))).toEqual([
      "2026-02-28",
      "2025-02-28",
      "2025-11-30",
    ])
  })

  it("is resolved at the start and stays what it was [settings dates]", () => {
    const { settings } = settleFeature("accounts_read", {}, morning, 24)
    expect(settings).toEqual({
      from_date: "2026-10-22",
      to_date: "2026-11-21",
      read_transactions: false,
      read_holders: false,
    })
  })

  it("may exceed the limits at either end, and both move together [settings adapt]", () => {
    const beyond = (configurations: Settings) => settleFeature("cards_read", configurations, morning, 24)
    expect(beyond({ from_date: "today", to_date: "yesterday" }).beyond).toEqual(["from_date"])
    expect(beyond({ from_date: "2001-01-01", to_date: "2002-01-01" }).beyond).toEqual([
      "from_date",
      "to_date",
    ])
    expect(beyond({ from_date: "2024-11-21", to_date: "2030-01-01" })).toMatchObject({
      beyond: [],
      adapted: [],
    })
    expect(
      beyond({ from_date: "2001-01-01", to_date: "2002-01-01", limits_behaviour: "adapt" }),
    ).toMatchObject({ settings: { from_date: "2024-11-21", to_date: "2024-11-21" }, beyond: [] })
    expect(judgeSettings("cards_read", { from_date: "9999 years ago" })).toEqual([])
    expect(beyond({ from_date: "9999 years ago" }).beyond).toEqual(["from_date"])
  })
})

ofTheService("a relative date", (it) => {
  it("moves with the clock, over the same past [settings dates]", function* () {
    const before = yield* readFeature("supplier_invoices_read", { from_date: "90 days ago" })
    yield* TestClock.adjust("30 days")
    const after = yield* readFeature("supplier_invoices_read", { from_date: "120 days ago" })
    const shared = after.records.filter((record) => String(record["issued_on"]) <= "2026-11-21")
    expect(shared).toEqual(before.records)
    expect(after.records.length).toBeGreaterThan(before.records.length)
  })
})
