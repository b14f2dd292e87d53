/**
 * What the sources of an execution or a flow session will return, as stored in the events: a plan of counts
 * and delays, never a record. Records are made from it when they are read.
 */
import { Schema } from "effect"
import type { Phases, Timeline } from "./Timeline.ts"
import { definedSettings, type Setting } from "../../service/Engine.ts"
import type { ValidationItem } from "../../service/Execution.ts"
import { featureStatusReasons } from "../../service/Vocabulary.ts"

// 4.1, own choice: a date, `today`, `yesterday` or `<n> days|weeks|months|years ago`, in days of UTC.

const dayMs = 86_400_000
const phrase = /^(\d{1,4}) (day|week|month|year)s? ago$/
const written = /^(\d{4})-(\d{2})-(\d{2})(T.*)?$/

/** `YYYY-MM-DD` of a moment. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** The number of a day since 1970-01-01, and back. */
export const dayNumber = (day: string): number => Math.floor(Date.parse(`${day}T00:00:00Z`) / dayMs)
export const numberedDay = (number: number): string => dayOf(number * dayMs)

/** The same day some months earlier; the 31st becomes the last day of a shorter month. */
const monthsBefore = (at: number, months: number): string => {
  const date = new Date(at)
  const first = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months, 1)
  const month = new Date(first)
  const last = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 0)).getUTCDate()
  return dayOf(first + (Math.min(date.getUTCDate(), last) - 1) * dayMs)
}

const ago = (count: number, unit: string, at: number): string => {
  if (unit === "day") return dayOf(at - count * dayMs)
  if (unit === "week") return dayOf(at - count * 7 * dayMs)
  return monthsBefore(at, unit === "month" ? count : 12 * count)
}

const isCalendarDay = (day: string): boolean =>
  !Number.isNaN(Date.parse(`${day}T00:00:00Z`)) && dayOf(Date.parse(`${day}T00:00:00Z`)) === day

/** The day that a text means at `at`, as `YYYY-MM-DD`; undefined if it is neither a date nor a phrase. */
export const readDate = (text: string, at: number): string | undefined => {
  const said = text.trim().toLowerCase()
  if (said === "today") return dayOf(at)
  if (said === "yesterday") return dayOf(at - dayMs)
  const [, count, unit] = phrase.exec(said) ?? []
  if (count !== undefined && unit !== undefined) return ago(Number(count), unit, at)
  const [, year, month, day] = written.exec(text.trim()) ?? []
  if (year === undefined || Number.isNaN(Date.parse(text.trim()))) return undefined
  const date = `${year}-${month}-${day}`
  return isCalendarDay(date) ? date : undefined
}

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

/**
 * 4.1: `keepsMonths` is how far back the engine's source goes. Which dates exceed the limits is not shown;
 * own choice: days before that, and a `from_date` after its `to_date`. A future day does not: there is just
 * nothing to read yet. `adapted`: dates that `limits_behaviour: adapt` moved; `beyond`: dates beyond the
 * limits if it is `error`.
 */
export const settleFeature = (
  code: string,
  configurations: Configurations,
  at: number,
  keepsMonths: number | undefined,
) => {
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

/** Section 7: one error in what was sent; never the value itself. */
export const ErrorItem = Schema.Struct({
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  msg: Schema.String,
  type: Schema.String,
})
export type ErrorItem = typeof ErrorItem.Type

/** One requested feature and what its source will return. */
export const FeaturePlan = Schema.Struct({
  code: Schema.String,
  records: Schema.Int,
  /** What a run that ends well says about it. */
  outcome: Schema.Literals(featureStatusReasons),
  /** The reference's settings for this feature, if it has any (4.1). */
  settings: Schema.optionalKey(ResolvedSettings),
  /** Dates that were moved to the limits of the engine. */
  adapted: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Its protected fields were not unlocked. */
  shielded: Schema.optionalKey(Schema.Boolean),
  /** The outcome that a behaviour word sets for it, while the run works or when it is over. */
  said: Schema.optionalKey(Schema.Literals(featureStatusReasons)),
  kinds: Schema.optionalKey(Schema.Array(Schema.String)),
})
export type FeaturePlan = typeof FeaturePlan.Type

/** What the flow session of an execution will show. */
export const ResultsPlan = Schema.Struct({
  features: Schema.Array(FeaturePlan),
  session: Schema.Literals(["answers", "unknown", "unstarted"]),
  neverFinal: Schema.Boolean,
  lateMs: Schema.Finite,
  lockedMs: Schema.Finite,
  documents: Schema.Int,
  odd: Schema.Boolean,
  /** The customer is a company, whatever the seed. */
  company: Schema.optionalKey(Schema.Boolean),
})
export type ResultsPlan = typeof ResultsPlan.Type

/** One source being read for one customer: what an execution and a flow session's source have in common. */
export interface Retrieval {
  readonly started: {
    readonly at: number
    readonly session_id: string
    /** For several sources in one session. */
    readonly source_id?: string
    readonly customer_id: string
    readonly engine_reference: string
    readonly timeline: Timeline
    readonly results: ResultsPlan
  }
  readonly phases: Phases
}
