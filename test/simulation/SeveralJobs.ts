/**
 * Every fifth simulated night has two or three jobs, given together: some share customers, logins or sessions, some
 * follow another, some have slots for few. In some of them nothing goes wrong by itself, so that their tables must
 * be those of the same jobs one after the other.
 */
import { Redacted } from "effect"
import { accessKey } from "../../src/service/Ids.ts"
import type { Assignment, Job } from "../../src/jobs/Job.ts"
import { anId } from "../harness/Id.ts"
import { calm } from "./FaultyNetwork.ts"
import { planOneJob, seeded, type NightPlan } from "./NightPlan.ts"
import { makeJob, pick } from "./SimulatedJob.ts"

/** Customers of one job have smaller numbers than those of the next. */
const numbersApart = 1_000

/** The job with what it has in common with an earlier one, if anything. */
const overlapping = (random: () => number, job: Job, earlier: Job): Job => {
  const kind = random()
  // The first ones are on engines that are away or unknown, and never start.
  const started = earlier.assignments.slice(3, 8)
  const theirs = () => pick(random, started.length === 0 ? earlier.assignments : started)
  const own = pick(random, job.assignments)
  if (kind < 0.35) return job
  if (kind < 0.6) return withMore(job, [theirs(), theirs(), theirs()])
  if (kind < 0.75) return withMore(job, [{ ...theirs(), customer_id: anId(`${own.customer_id}-again`) }])
  const { customer_id, engine_reference } = theirs()
  if (kind < 0.85) return withMore(job, [{ ...own, customer_id, engine_reference }])
  return { ...job, sessions: [...job.sessions, ...earlier.sessions.slice(0, 1)] }
}

const withMore = (job: Job, more: ReadonlyArray<Assignment>): Job => {
  const assignments = new Map([...more, ...job.assignments].map((one) => [accessKey(one), one]))
  return { ...job, assignments: [...assignments.values()] }
}

const usernameOf = ({ login, source }: Assignment): unknown => {
  const username = login._tag === "Parameters" ? login.parameters["username"] : undefined
  return username?._tag === "Literal" ? Redacted.value<unknown>(username.value) : source
}

/** No deadline, and no login twice: which of two executions with one login comes first is a matter of slots. */
const even = ({ publish: _every, ...job }: Job): Job => ({
  ...job,
  deadline: undefined,
  night: undefined,
  assignments: [...new Map(job.assignments.map((one) => [usernameOf(one), one])).values()],
})

const following = (random: () => number, job: Job, earlier: Job): Job =>
  random() < 0.7
    ? job
    : { ...job, after: [{ job: earlier.name, place: { file: job.path, line: 1, column: 1 } }] }

/** The same night with more jobs; `random` is drawn from the seed. */
const severalJobs = (plan: NightPlan, random: () => number): NightPlan => {
  const isEven = random() < 0.4
  const own = (job: Job) => (isEven ? even(job) : job)
  const jobs = plan.jobs.map(own)
  const others = random() < 0.5 ? 1 : 2
  const slots = pick(random, [2, 3, 5])
  const fewSlots = random() < 0.5 ? { max_in_flight: slots, per_engine: slots } : undefined
  for (let number = 1; number <= others; number += 1) {
    const customers = 3 + Math.floor(random() ** 2 * 12)
    const drawn = own(makeJob(random, customers, plan.tokens, number * numbersApart))
    const [{ sources, service } = drawn] = plan.jobs
    const job = { ...drawn, name: `simulated-${number}`, path: `simulated-${number}.yaml`, sources, service }
    const shared = overlapping(random, job, pick(random, jobs))
    jobs.push(following(random, shared, pick(random, jobs)))
  }
  const limited = jobs.map((job) => (fewSlots === undefined ? job : { ...job, concurrency: fewSlots }))
  const several: NightPlan = {
    ...plan,
    jobs: random() < 0.5 ? limited : limited.toReversed(),
    requestsAtOnce: pick(random, [2, 8, plan.requestsAtOnce]),
    isEven,
  }
  if (!isEven) return several
  // One command: at another hour, a second one would mean another run.
  const once = { nights: plan.nights.slice(0, 1), exitsMax: 1, crashes: [], clockOffsets: [] }
  return { ...several, ...once, rates: calm }
}

export const planNight = (seed: number): NightPlan => {
  const plan = planOneJob(seed)
  return seed % 5 === 3 ? severalJobs(plan, seeded(seed ^ 0x51ed270b)) : plan
}
