/** The settings of features against section 4.1: one row per rule. */
import { describe, expect, it } from "vitest"
import { features } from "../../src/service/Vocabulary.ts"
import { compileForm } from "../../src/client/CompiledForm.ts"
import { featureSettings } from "../../src/service/Engine.ts"
import { checkSettings } from "../../src/client/FitForms.ts"
import { configsForm } from "../task/Samples.ts"

/** `error` or `warning`, the setting, and what is said about it. */
const told = (code: string, settings: Readonly<Record<string, unknown>>) => {
  const { errors, warnings } = checkSettings(code, settings)
  const line = (kind: string) => (issue: { loc: ReadonlyArray<string>; message: string }) =>
    `${kind} ${issue.loc.slice(1).join(".")} ${issue.message}`
  return [...errors.map(line("error")), ...warnings.map(line("warning"))].join("\n")
}
const dateError = "must be a date such as 2026-01-31 or a phrase such as `30 days ago`"
const phraseWarning =
  "is neither a date such as 2026-01-31 nor a phrase that the reference shows; it is sent as it is"
const someCards =
  "must be a list of at least one of financial_card:debit, financial_card:credit, financial_card:prepaid, " +
  "financial_card:mixed"
const cardNames = "from_date, to_date, limits_behaviour, read_transactions, filter_by_type"
const notListed = "cannot be checked: the reference lists no settings for this feature"

describe("feature settings", () => {
  const report = { work_life_report: false, contribution_base_report: true }
  const nearest = "error from_dat is not a setting of this feature; did you mean `from_date`?"
  const strange = `error read_holders is not a setting of this feature; known names: ${cardNames}`
  const backwards = { from_date: "2026-02-03", to_date: "2026-02-02" }
  const atLeastOne = "error last_n_years must be an integer of at least 1"
  it.each<readonly [string, Readonly<Record<string, unknown>>, string]>([
    ["accounts_read", { from_date: "30 days ago", to_date: "today", read_holders: true }, ""],
    ["credits_read", { from_date: "2026-01-31", limits_behaviour: "adapt", read_transactions: false }, ""],
    ["labor_check", { from_date: "12 months ago", ...report }, ""],
    ["cards_read", { filter_by_type: ["financial_card:debit"] }, ""],
    ["yearly_individual_tax", { last_n_years: 5 }, ""],
    ["credit_registry_data", { preferred_type: "credit_registry_data:es_cirbe_detailed" }, ""],
    ["loans_read", {}, ""],
    ["academic_data", { anything: [1] }, ""],
    ["accounts_read", { from_dat: "today" }, nearest],
    ["cards_read", { read_holders: true }, strange],
    ["loans_read", { from_date: "today" }, "error from_date this feature takes no settings"],
    ["accounts_read", { read_holders: "true" }, "error read_holders must be true or false"],
    ["accounts_read", { limits_behaviour: "x" }, "error limits_behaviour must be one of error, adapt"],
    ["accounts_read", { from_date: 5 }, `error from_date ${dateError}`],
    ["accounts_read", { from_date: "2026-02-30" }, "error from_date is not a calendar date"],
    ["accounts_read", backwards, "error from_date must not be later than `to_date`"],
    ["labor_check", { from_date: "last Monday" }, `warning from_date ${phraseWarning}`],
    ["cards_read", { filter_by_type: [] }, `error filter_by_type ${someCards}`],
    ["cards_read", { filter_by_type: ["debit"] }, `error filter_by_type ${someCards}`],
    ["yearly_individual_tax", { last_n_years: 0 }, atLeastOne],
    ["yearly_individual_tax", { last_n_years: 1.5 }, atLeastOne],
    ["cloud_resource_read", { x: 1 }, `warning x ${notListed}`],
    ["next_years_feature", { x: 1 }, `warning x ${notListed}`],
  ])("%s %j: %s", (code, settings, expected) => {
    expect(told(code, settings)).toBe(expected)
  })

  it("every feature of the reference has its line, and its own defaults are accepted", () => {
    expect(Object.keys(featureSettings).toSorted()).toEqual([...features].toSorted())
    for (const [code, settings] of Object.entries(featureSettings)) {
      if (settings._tag !== "Fields") continue
      const defaults = Object.entries(settings.fields).flatMap(([name, setting]) =>
        setting.default === undefined ? [] : [[name, setting.default] as const],
      )
      expect(told(code, Object.fromEntries(defaults))).toBe("")
    }
  })

  it("settings that the engine declares are known, and its form is checked too", () => {
    const form = compileForm(configsForm({ depth: { type: "integer" } }))
    expect(checkSettings("loans_read", { depth: 2 }, form)).toEqual({ errors: [], warnings: [] })
    expect(checkSettings("loans_read", { depth: "2" }, form).errors).toEqual([
      { loc: ["loans_read", "depth"], message: "must be integer" },
    ])
  })
})
