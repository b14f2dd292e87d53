/**
 * The two calls of the catalogue (sections 4.8 and 4.9): filters with their own values, and one engine with
 * its forms.
 */
import { Clock, Effect } from "effect"
import { features, featuresModes, mainCategories } from "../../service/Vocabulary.ts"
import { engineDefinitions, findEngine } from "./EngineCatalogue.ts"
import { CallingApplication } from "../state/Application.ts"
import { whyUnavailable } from "./EngineAdmission.ts"
import type { EngineDefinition } from "./EngineDefinition.ts"
import { engineDetails, engineView, isEngineReference } from "./EngineViews.ts"

export interface EngineFilter {
  readonly markets?: ReadonlyArray<string>
  readonly features?: ReadonlyArray<string>
  readonly features_mode?: string
  readonly main_category?: string
  readonly is_online?: string
}

/** How a boolean is spelled in a query is not shown; own choice: these, in any letter case. */
const booleans: Readonly<Record<string, boolean>> = { true: true, false: false, "1": true, "0": false }
const readBoolean = (text: string): boolean | undefined =>
  Object.hasOwn(booleans, text.toLowerCase()) ? booleans[text.toLowerCase()] : undefined

/** One item per value that is not allowed. A market is a country code. */
const rejectedValues = (filter: EngineFilter) => {
  const outside = (name: string, known: (value: string) => boolean, values: ReadonlyArray<string>) =>
    values.flatMap((value, index) =>
      known(value)
        ? []
        : [
            {
              loc: ["query", name, index],
              msg: `${value} is not a permitted value`,
              type: "type_error.enum",
              input: value,
            },
          ],
    )
  const one = (value: string | undefined) => (value === undefined ? [] : [value])
  const among = (list: ReadonlyArray<string>) => (value: string) => list.includes(value)
  return [
    ...outside("markets", (value) => /^[A-Z]{2}$/.test(value), filter.markets ?? []),
    ...outside("features", among(features), filter.features ?? []),
    ...outside("features_mode", among(featuresModes), one(filter.features_mode)),
    ...outside("main_category", among(mainCategories), one(filter.main_category)),
    ...outside("is_online", (value) => readBoolean(value) !== undefined, one(filter.is_online)),
  ]
}

const offers = (engine: EngineDefinition, filter: EngineFilter): boolean => {
  const wanted = filter.features ?? []
  if (wanted.length === 0) return true
  const offered = (code: string) => engine.features.some((feature) => feature === code)
  return filter.features_mode === "or" ? wanted.some(offered) : wanted.every(offered)
}

const matches = (engine: EngineDefinition, filter: EngineFilter): boolean => {
  const { markets = [], main_category, is_online } = filter
  // The list shows only what can run now, so nothing in it is ever offline.
  if (is_online !== undefined && readBoolean(is_online) === false) return false
  if (main_category !== undefined && engine.category !== main_category) return false
  return (
    (markets.length === 0 || markets.some((market) => engine.markets.includes(market))) &&
    offers(engine, filter)
  )
}

/** 4.8 */
export const listEngines = Effect.fnUntraced(function* (filter: EngineFilter) {
  const { app_id } = yield* CallingApplication
  const now = yield* Clock.currentTimeMillis
  const detail = rejectedValues(filter)
  if (detail.length > 0) return yield* Effect.fail({ _tag: "Invalid" as const, detail })
  return engineDefinitions
    .filter((engine) => matches(engine, filter) && whyUnavailable(engine, app_id, now) === undefined)
    .map((engine) => engineView(engine, now))
})

const notAReference = {
  loc: ["path", "engine_reference"],
  msg: "not an engine reference",
  type: "value_error",
}

const codes = new Set(engineDefinitions.map(({ reference }) => reference.split(":")[0]))

/** 4.9: a malformed reference answers 422, an unknown one 404, one that cannot run now 503. */
export const showEngine = Effect.fnUntraced(function* (reference: string) {
  const { app_id } = yield* CallingApplication
  const now = yield* Clock.currentTimeMillis
  if (!isEngineReference(reference)) {
    return yield* Effect.fail({ _tag: "Invalid" as const, detail: [notAReference] })
  }
  const engine = findEngine(reference)
  if (engine === undefined) {
    const detail = codes.has(reference.split(":")[0]) ? "no such channel of this engine" : "no such engine"
    return yield* Effect.fail({ _tag: "NotFound" as const, detail })
  }
  const detail = whyUnavailable(engine, app_id, now)
  if (detail !== undefined) return yield* Effect.fail({ _tag: "Unavailable" as const, detail })
  return engineDetails(engine, now)
})
