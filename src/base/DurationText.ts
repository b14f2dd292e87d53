/**
 * Durations as people write them in files: a number, a space and a unit. Effect's own parser reads them; it
 * also accepts what no file should contain (`Infinity`, negative values, nanoseconds), so a pattern is
 * checked first.
 */
import { Duration, Option, Schema, SchemaTransformation } from "effect"

/** Used by editors, too. */
export const durationPattern = "[0-9]+(?:\\.[0-9]+)? +(?:milli|second|minute|hour|day)s?"
const written = new RegExp(`^(?:${durationPattern})$`)

/** The duration that such a text describes; none if it is not a duration. */
export const readDuration = (text: string): Option.Option<Duration.Duration> =>
  written.test(text.trim()) ? Duration.fromInput(text.trim() as Duration.Input) : Option.none()

/** Whether a text is a duration within limits, both included. */
export const isDurationWithin =
  (bounds: { readonly minimum: Duration.Input; readonly maximum: Duration.Input }) =>
  (text: string): boolean =>
    Option.exists(
      readDuration(text),
      Duration.between({
        minimum: Duration.fromInputUnsafe(bounds.minimum),
        maximum: Duration.fromInputUnsafe(bounds.maximum),
      }),
    )

/** Such a text, once its checks have passed, as a duration. */
export const toDuration = (text: Schema.String) =>
  text.pipe(
    Schema.decodeTo(Schema.String, SchemaTransformation.trim()),
    Schema.decodeTo(Schema.Duration, SchemaTransformation.durationFromString),
  )
