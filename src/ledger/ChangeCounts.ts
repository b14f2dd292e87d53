/**
 * What a run changed since the run before it, in numbers: trouble that is new, trouble that was there for the
 * same reason, and trouble that is mended. With `exit_on: new` it decides the exit code, so the run's end
 * records it.
 */
import { Schema } from "effect"

export const ChangeCounts = Schema.Struct({
  since: Schema.String,
  new: Schema.Int,
  still: Schema.Int,
  mended: Schema.Int,
})
