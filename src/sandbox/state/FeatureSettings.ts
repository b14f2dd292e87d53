/**
 * The settings of features as the reference lists them (section 4.1): what breaks their types, enumerations
 * or limits is malformed (422); valid settings are completed with their defaults and with dates resolved at
 * the time of the start, within the days that the engine keeps. Settings with other names have no meaning
 * here.
 */
import { Schema } from "effect"
import type { ValidationItem } from "../../service/Execution.ts"
import { definedSettings } from "../../service/Engine.ts"
import type { Setting } from "../../service/Engine.ts"
import { monthsBefore, readDate } from "./RelativeDate.ts"

type Configurations = Readonly<Record<string, unknown>>

const among = (name: string, of: ReadonlyArray<string>, value: unknown): ReadonlyArray<ValidationItem> =>
  typeof value === "string" && of.includes(value)
    ? []
    : [{ loc: [name], msg: `not one of ${of.join(", ")}`, type: "type_error.enum", input: value }]

const judge = (name: string, setting: Setting, input: unknown): ReadonlyArray<ValidationItem> => {
  const wrong = (msg: string, type: string) => [{ loc: [name], msg, type, input }]
  switch (setting.type) {
    case "date":
      return typeof input === "string" && readDate(input, 0) !== undefined
        ? []
        : wrong("neither a date nor a relative phrase", "value_error.date")
    case "boolean":
      return typeof input === "boolean" ? [] : wrong("not a boolean", "type_error.bool")
    case "count":
      return Number.isSafeInteger(input) ? [] : wrong("not an integer", "type_error.integer")
    case "one_of":
      return among(name, setting.values, input)
    case "some_of":
      if (!Array.isArray(input)) return wrong("not a list", "type_error.list")
      if (input.length === 0) return wrong("at least one item", "value_error.list.min_items")
      return input.flatMap((value, index) =>
        among(name, setting.values, value).map((error) => ({ ...error, loc: [name, index] })),
      )
  }
}

/** 4.1: what breaks the reference's own types, enumerations or limits; an empty list if nothing does. */
export const judgeSettings = (code: string, configurations: Configurations): ReadonlyArray<ValidationItem> =>
  Object.entries(definedSettings(code)).flatMap(([name, setting]) =>
    Object.hasOwn(configurations, name) ? judge(name, setting, configurations[name]) : [],
  )

/** The settings that change records, complete and resolved: dates are days. */
export const ResolvedSettings = Schema.Struct({
  from_date: Schema.optionalKey(Schema.String),
  to_date: Schema.optionalKey(Schema.String),
  read_transactions: Schema.optionalKey(Schema.Boolean),
  read_holders: Schema.optionalKey(Schema.Boolean),
  read_point_movements: Schema.optionalKey(Schema.Boolean),
  simple_vehicle_report: Schema.optionalKey(Schema.Boolean),
  work_life_report: Schema.optionalKey(Schema.Boolean),
  contribution_base_report: Schema.optionalKey(Schema.Boolean),
  last_n_years: Schema.optionalKey(Schema.Int),
})
export type ResolvedSettings = typeof ResolvedSettings.Type

const completed = (code: string, configurations: Configurations, at: number): ResolvedSettings => {
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(definedSettings(code))) {
    const given = configurations[name]
    if (setting.type === "date") values[name] = readDate(String(given ?? setting.default), at)
    else if (setting.type === "boolean" || setting.type === "count") values[name] = given ?? setting.default
  }
  return values
}

export interface SettledFeature {
  readonly settings: ResolvedSettings
  /** Dates that `limits_behaviour: adapt` moved. */
  readonly adapted: ReadonlyArray<"from_date" | "to_date">
  /** Dates beyond the limits if `limits_behaviour` is `error`. */
  readonly beyond: ReadonlyArray<"from_date" | "to_date">
}

/**
 * 4.1: `keepsMonths` is how far back the engine's source goes. Which dates exceed the limits is not shown;
 * own choice: days before that, and a `from_date` after its `to_date`. A future day does not: there is just
 * nothing to read yet.
 */
export const settleFeature = (
  code: string,
  configurations: Configurations,
  at: number,
  keepsMonths: number | undefined,
): SettledFeature => {
  const settings = completed(code, configurations, at)
  const { from_date, to_date } = settings
  if (from_date === undefined || to_date === undefined) return { settings, adapted: [], beyond: [] }
  const earliest = keepsMonths === undefined ? "0000-01-01" : monthsBefore(at, keepsMonths)
  const to = to_date < earliest ? earliest : to_date
  const within = from_date < earliest ? earliest : from_date
  const from = within > to ? to : within
  const moved = [
    ...(from === from_date ? [] : (["from_date"] as const)),
    ...(to === to_date ? [] : (["to_date"] as const)),
  ]
  return configurations["limits_behaviour"] === "adapt"
    ? { settings: { ...settings, from_date: from, to_date: to }, adapted: moved, beyond: [] }
    : { settings, adapted: [], beyond: moved }
}
