/**
 * How old the data of a customer, engine and feature may get (`freshness` in a job file): limits in whole
 * days, since a night has one date. `publishing/AskFreshness.ts` compares.
 */
import { Duration, Schema } from "effect"
import type { Context } from "./Decode.ts"
import type { Freshness } from "./Job.ts"
import { duration } from "./Scalars.ts"
import { optionalDuration } from "./ShapeKeys.ts"

const age = duration("1 day", "365 days")

export const FreshnessShape = Schema.Struct({
  warn_after: optionalDuration(age, "Older data is a warning."),
  error_after: optionalDuration(age, "With older data a run ends with exit code 3 at least."),
})

const daysOf = (limit: Duration.Duration): number => Math.floor(Duration.toDays(limit))

/** The limits of a job; what is wrong with them goes to the findings. */
export const readFreshness = (
  { document, findings }: Context,
  written: typeof FreshnessShape.Type | undefined,
): { readonly freshness?: Freshness } => {
  if (written === undefined) return {}
  const { warn_after, error_after } = written
  const freshness: Freshness = {
    ...(warn_after === undefined ? {} : { warnDays: daysOf(warn_after) }),
    ...(error_after === undefined ? {} : { errorDays: daysOf(error_after) }),
  }
  const { warnDays, errorDays } = freshness
  const place = document.place(["freshness"], "key")
  if (warnDays === undefined && errorDays === undefined)
    findings.error(place, "`freshness` needs `warn_after`, `error_after` or both")
  if (warnDays !== undefined && errorDays !== undefined && warnDays > errorDays)
    findings.error(place, "`warn_after` must not be longer than `error_after`")
  return { freshness }
}
