/**
 * What a job file says about its nights: the hours, what their end does to tasks, with how many customers a
 * run may start, and how often it publishes what is over.
 */
import { Schema } from "effect"
import { deadline, duration, percent } from "./Scalars.ts"
import { count, optional, required } from "./ShapeKeys.ts"

export const Night = Schema.Struct({
  starts: required(deadline, 'Local time of day "HH:MM": from here on a run belongs to this night.'),
  until: required(
    deadline,
    'Local time of day "HH:MM": a service that cannot be reached is waited for until then.',
  ),
})

const customers = count(1, 10_000_000)
export const MinCustomers = Schema.Union([
  customers,
  Schema.Struct({
    number: optional(customers, "With fewer customers the job is invalid and nothing starts."),
    of_last_night: optional(percent(1), "With a smaller share of the last run's, nothing starts."),
  }),
])

export const OnDeadline = Schema.Literals(["carry", "abort"])
export const onDeadlineMeans =
  "carry: what would probably not finish by then is not started; abort: everything is started until then. " +
  "What the deadline stops comes first in the next run."

/** Flipped, because an editor needs the text in the file, not the duration that it becomes. */
export const Publish = Schema.Struct({
  every: Schema.flip(
    required(
      Schema.flip(duration("1 second", "1 day")),
      "While a run goes on, a version with the tasks that are over is published this often, at most.",
    ),
  ),
})
