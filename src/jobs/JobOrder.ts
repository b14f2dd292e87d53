/**
 * The order in which jobs that are given together take their turns (`after` in a job file): pure. A job comes
 * after the jobs that it names, else where it was given. A job that would have to wait for itself is a
 * problem of its file; one that is not given has nothing to be waited for.
 */
import { suggestion } from "../base/Nearest.ts"
import type { Problem } from "../base/FileProblem.ts"
import type { Job } from "./Job.ts"

export type OrderedJob = Pick<Job, "name" | "after">

/** The jobs of a circle that leads back to where it began; undefined if there is none. */
const circleFrom = (
  first: OrderedJob,
  jobs: ReadonlyMap<string, OrderedJob>,
): ReadonlyArray<OrderedJob> | undefined => {
  const seen = new Set<string>()
  const lines: Array<ReadonlyArray<OrderedJob>> = [[first]]
  for (let line = lines.pop(); line !== undefined; line = lines.pop())
    for (const { job } of line.at(-1)?.after ?? []) {
      if (job === first.name) return line
      const next = jobs.get(job)
      if (next === undefined || seen.has(job)) continue
      seen.add(job)
      lines.push([...line, next])
    }
  return undefined
}

export interface OrderProblems {
  readonly errors: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<Problem>
}

/** What is wrong with the `after` of jobs that are given together; each circle is told once. */
export const orderProblems = (given: ReadonlyArray<OrderedJob>): OrderProblems => {
  const jobs = new Map(given.map((job) => [job.name, job]))
  const errors: Array<Problem> = []
  const warnings: Array<Problem> = []
  const told = new Set<string>()
  for (const job of given) {
    const circle = told.has(job.name) ? undefined : circleFrom(job, jobs)
    if (circle !== undefined) {
      for (const { name } of circle) told.add(name)
      const next = circle[1]?.name ?? job.name
      const place = job.after?.find((one) => one.job === next)?.place
      const names = [...circle.map(({ name }) => `\`${name}\``), `\`${job.name}\``].join(" after ")
      if (place !== undefined) errors.push({ ...place, message: `a job would wait for itself: ${names}` })
    }
    if (given.length > 1)
      for (const { job: name, place } of job.after ?? []) {
        if (jobs.has(name)) continue
        const hint = suggestion(name, [...jobs.keys()])
        warnings.push({ ...place, message: `no such job is given, so it is not waited for${hint}` })
      }
  }
  return { errors, warnings }
}

/** The jobs without a circle, each behind those that it names; else in the order in which they were given. */
export const inOrder = <J extends OrderedJob>(given: ReadonlyArray<J>): ReadonlyArray<J> => {
  const names = new Set(given.map(({ name }) => name))
  const placed = new Set<string>()
  const order: Array<J> = []
  let left = given
  while (left.length > 0) {
    // The first one that can: a job that was given early keeps its place before those that merely may.
    const next =
      left.find(({ after = [] }) => after.every(({ job }) => placed.has(job) || !names.has(job))) ?? left[0]!
    placed.add(next.name)
    order.push(next)
    left = left.filter((one) => one !== next)
  }
  return order
}
