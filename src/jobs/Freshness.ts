/**
 * How old the data of a customer, engine and feature may get (`freshness` in a job file): limits in whole
 * days, since a night has one date. What an engine says for itself wins over what the job says for all, key
 * by key. `tables/AskGates.ts` compares.
 */
import { Duration, Schema } from "effect"
import { suggestion } from "../base/Text.ts"
import type { Context } from "./Problem.ts"
import type { Freshness, FreshnessLimits } from "./Job.ts"
import { duration } from "./Scalars.ts"
import { optional, optionalDuration } from "./ShapeKeys.ts"

const age = duration("1 day", "365 days")
const limits = {
  warn_after: optionalDuration(age, "Older data is a warning."),
  error_after: optionalDuration(age, "With older data a run ends with exit code 3 at least."),
}
const Limits = Schema.Struct(limits)

export const FreshnessShape = Schema.Struct({
  ...limits,
  engines: optional(
    Schema.Record(Schema.String, Limits),
    "Limits of single engines, by reference; they win over those of the job, key by key.",
  ),
})

const daysOf = (limit: Duration.Duration): number => Math.floor(Duration.toDays(limit))

const limitsOf = ({ warn_after, error_after }: typeof Limits.Type): FreshnessLimits => ({
  ...(warn_after === undefined ? {} : { warnDays: daysOf(warn_after) }),
  ...(error_after === undefined ? {} : { errorDays: daysOf(error_after) }),
})

const isNothing = ({ warnDays, errorDays }: FreshnessLimits): boolean =>
  warnDays === undefined && errorDays === undefined

const isTurned = ({ warnDays, errorDays }: FreshnessLimits): boolean =>
  warnDays !== undefined && errorDays !== undefined && warnDays > errorDays

/** The limits of a job that uses these engines; what is wrong with them goes to the findings. */
export const readFreshness = (
  { document, findings }: Context,
  written: typeof FreshnessShape.Type | undefined,
  used: ReadonlySet<string>,
): { readonly freshness?: Freshness } => {
  if (written === undefined) return {}
  const [ofJob, ofEngines] = [limitsOf(written), Object.entries(written.engines ?? {})]
  const place = document.place(["freshness"], "key")
  if (isNothing(ofJob) && ofEngines.length === 0)
    findings.error(
      place,
      "`freshness` needs `warn_after`, `error_after` or both, for the job or for an engine",
    )
  const turned = "`warn_after` must not be longer than `error_after`"
  if (isTurned(ofJob)) findings.error(place, turned)
  const engines = new Map<string, FreshnessLimits>()
  for (const [engine, shape] of ofEngines) {
    const [own, at] = [limitsOf(shape), document.place(["freshness", "engines", engine], "key")]
    const all = { ...ofJob, ...own }
    engines.set(engine, all)
    if (!used.has(engine))
      findings.error(at, `the job does not use the engine \`${engine}\`${suggestion(engine, [...used])}`)
    if (isNothing(own)) findings.error(at, "an engine needs `warn_after`, `error_after` or both here")
    else if (isTurned(all) && !isTurned(ofJob)) findings.error(at, turned)
  }
  return { freshness: engines.size === 0 ? ofJob : { ...ofJob, engines: Object.fromEntries(engines) } }
}
