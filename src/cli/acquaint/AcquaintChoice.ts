/**
 * Which assignment of a job `acquaint` runs: the only one, or the one that its flags name. It never sends a
 * login for a customer who was not chosen.
 */
import { Effect, Option } from "effect"
import type { Assignment, Job } from "../../jobs/Job.ts"
import { suggestion } from "../../base/Nearest.ts"
import { refuse } from "../Failures.ts"

const namesMax = 5

const some = (names: ReadonlyArray<string>): string =>
  names.length <= namesMax ? names.join(", ") : `${names.slice(0, namesMax).join(", ")} …`

const pick = Effect.fnUntraced(function* (
  flag: "customer" | "engine",
  given: Option.Option<string>,
  names: ReadonlyArray<string>,
  whose: string,
) {
  if (Option.isSome(given)) {
    if (names.includes(given.value)) return given.value
    const detail = `--${flag} in ${whose}${suggestion(given.value, names)}`
    return yield* refuse("name-unknown", { detail })
  }
  const [only] = names
  if (only === undefined) return yield* refuse("names-missing", { where: whose, what: flag })
  if (names.length === 1) return only
  const ambiguous = { where: whose, count: names.length, what: flag, names: some(names) }
  return yield* refuse("names-ambiguous", ambiguous)
})

const distinct = (names: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(names)]

export const chooseAssignment = Effect.fnUntraced(function* (
  job: Job,
  customer: Option.Option<string>,
  engine: Option.Option<string>,
) {
  const wanted = Option.getOrUndefined(engine)
  const known = distinct(job.assignments.map(({ engine_reference }) => engine_reference))
  if (wanted !== undefined) yield* pick("engine", engine, known, job.path)
  const offered = job.assignments.filter(
    ({ engine_reference }) => wanted === undefined || engine_reference === wanted,
  )
  const everybody = distinct(offered.map(({ customer_id }) => customer_id))
  const customer_id = yield* pick("customer", customer, everybody, job.path)
  const ofCustomer = offered.filter((one) => one.customer_id === customer_id)
  const engines = distinct(ofCustomer.map(({ engine_reference }) => engine_reference))
  const engine_reference = yield* pick("engine", engine, engines, `${job.path}: ${customer_id}`)
  return ofCustomer.find((one) => one.engine_reference === engine_reference) satisfies
    | Assignment
    | undefined as Assignment
})
