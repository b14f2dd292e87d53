/**
 * Dates of settings (section 4.1): relative phrases, the days that an engine keeps, and what happens beyond
 * them; and data that is protected until it is unlocked.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { judgeSettings, readDate, settleFeature } from "../../../src/sandbox/state/ResultsPlan.ts"
import { morning, ofTheService } from "../server/BothWays.ts"
import { Caller, field } from "../server/Caller.ts"
import { engineOf, readFeature, rowsOf, windows } from "../engines/ReadFeature.ts"
import type { Settings } from "../engines/ReadFeature.ts"

const tooOld = { from_date: "25 months ago" }

ofTheService("a date beyond what the source keeps", (told) => {
  for (const code of windows) {
    const engine = engineOf(code)
    const old = engine === "es-bank:api" ? tooOld : { from_date: "11 years ago" }
    told(
      `aborts the execution of ${code} [setting ${code}.limits_behaviour] [settings error] ` +
        "[reason BAD_CONFIGURATIONS] [feature FEATURE_CONFIGURATION_ERROR] " +
        "[field execution.configurations_errors]",
      Effect.gen(function* () {
        const months = engine === "es-bank:api" ? 24 : 120
        for (const settings of [old, { ...old, limits_behaviour: "error" }]) {
          const { state, records } = yield* readFeature(code, settings)
          expect([field(state, "status_code"), field(state, "status_reason"), records]).toEqual([
            "CONFIGURATION_ERROR",
            "BAD_CONFIGURATIONS",
            [],
          ])
          expect(field(state, "configurations_errors", 0)).toMatchObject({
            loc: ["features", 0, "configurations", "from_date"],
            msg: expect.stringMatching(`the source keeps ${months} months`),
            type: "value_error.date_limits",
            input: old.from_date,
          })
          expect(field(state, "features", 0, "status_reason")).toBe("FEATURE_CONFIGURATION_ERROR")
        }
      }),
    )
    told(
      `is moved to the limit for ${code} where it may be, and a message says so ` +
        `[setting ${code}.limits_behaviour] [settings adapt] [field execution.warnings_count] [field message.id]`,
      Effect.gen(function* () {
        const { state } = yield* readFeature(code, { ...old, limits_behaviour: "adapt" })
        expect(field(state, "status_reason")).toBe("COMPLETED")
        const messages = rowsOf(field(state, "messages")).filter(({ type }) => type === "warning")
        expect([field(state, "warnings_count"), messages]).toEqual([
          1,
          [
            {
              date: "2026-11-21T09:00:00.000Z",
              type: "warning",
              id: "feature.dates_adapted",
              loc: ["features", code, "configurations", "from_date"],
              message: "La fecha se ha ajustado a lo que guarda la fuente.",
            },
          ],
        ])
      }),
    )
  }

  told(
    "is what the engine's restrictions say [field engine.engine_restrictions]",
    Effect.gen(function* () {
      const caller = yield* Caller
      const shown = yield* caller.call("GET", `${caller.base_url}/config/engines/es-bank:api`)
      expect(field(shown, "engine_restrictions")).toContain("La fuente guarda 24 meses.")
    }),
  )
})

ofTheService("protected data", (told) => {
  told(
    "is missing until it is unlocked, and a message says so [field base.unlock_protected_data]",
    Effect.gen(function* () {
      const words = "queue-0+run-0+records-1"
      const locked = yield* readFeature("cards_read", {}, {}, words)
      const unlocked = yield* readFeature(
        "cards_read",
        {},
        { base_configurations: { unlock_protected_data: true } },
        words,
      )
      const ids = (state: unknown) => rowsOf(field(state, "messages")).map(({ id }) => id)
      expect([locked.records[0]?.["masked_pan"], ids(locked.state)]).toEqual([
        undefined,
        ["login.accepted", "feature.protected_data"],
      ])
      expect([typeof unlocked.records[0]?.["masked_pan"], ids(unlocked.state)]).toEqual([
        "string",
        ["login.accepted"],
      ])
      expect(unlocked.records[0]).toMatchObject(locked.records[0] ?? {})
    }),
  )
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

ofTheService("a relative date", (told) => {
  told(
    "moves with the clock, over the same past [settings dates]",
    Effect.gen(function* () {
      const before = yield* readFeature("supplier_invoices_read", { from_date: "90 days ago" })
      yield* TestClock.adjust("30 days")
      const after = yield* readFeature("supplier_invoices_read", { from_date: "120 days ago" })
      const shared = after.records.filter((record) => String(record["issued_on"]) <= "2026-11-21")
      expect(shared).toEqual(before.records)
      expect(after.records.length).toBeGreaterThan(before.records.length)
    }),
  )
})
