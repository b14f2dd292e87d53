/**
 * Seeds of nights in virtual time, with everything in memory: one job or several under faults and kills, and campaigns
 * of shared accounts against a hostile service. Small ones, so that many fit into a minute. A process is killed after a
 * number of requests: a number of steps would be another moment after every rearrangement.
 */
import { calm } from "../simulation/FaultyNetwork.ts"
import { runAccountNights } from "../simulation/AccountNights.ts"
import { planAccounts } from "../simulation/AccountsPlan.ts"
import { runsOf } from "../simulation/InvariantsBeside.ts"
import type { NightPlan } from "../simulation/NightPlan.ts"
import { planNight } from "../simulation/SeveralJobs.ts"
import { runSimulatedNight, type NightOutcome, type Plant } from "../simulation/SimulatedNight.ts"
import { Duration } from "effect"
import { eventsOf, noticeOf } from "../../src/report/Notice.ts"
import type { Job } from "../../src/jobs/Job.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { renderSummary } from "../../src/report/RenderSummary.ts"
import { summarise } from "../../src/report/Summary.ts"
import { canonical, lines, normalised, type Texts } from "./Texts.ts"

const customersMax = { alone: 4, beside: 3 }
/** A simulated process takes some sixty steps between two requests. */
const stepsOfRequest = 60

/** The first three are on engines that are away or unknown: one of them says enough. */
const smaller = (job: Job, customers: number): Job => ({
  ...job,
  // The ledger has it whole, and must not say where this machine has it.
  path: `/jobs/${job.path}`,
  // Most of a night's requests are looks.
  polling: { ...job.polling, min: Duration.max(job.polling.min, Duration.seconds(20)) },
  assignments: [...job.assignments.slice(0, 1), ...job.assignments.slice(3)].slice(0, customers),
})

/** The night of the simulation, with fewer customers and less around it. */
export const smallNight = (seed: number): NightPlan => {
  const plan = planNight(seed)
  const { length } = plan.jobs
  return {
    ...plan,
    jobs: plan.jobs.map((job) => smaller(job, length === 1 ? customersMax.alone : customersMax.beside)),
    crashesCount: "requests",
    crashes: plan.crashes.slice(0, 3).map((steps) => 5 + Math.floor(steps / stepsOfRequest / (4 * length))),
    nights: plan.nights.slice(0, 2),
    exitsMax: 2,
    neighbourDeeds: Math.min(plan.neighbourDeeds, 20),
    webhooks: plan.webhooks && { ...plan.webhooks, forgeries: Math.min(plan.webhooks.forgeries, 20) },
    // The comparison with the same jobs in a row is the simulation's business.
    isEven: false,
    rates: seed % 3 === 0 ? calm : plan.rates,
  }
}

/** Each run as its command and its receivers tell it. */
const summariesOf = (night: NightOutcome): string => {
  const runs = runsOf(night)
  return runs
    .map((run) => {
      const { job, run_date } = run.started
      const ofNight = runs.filter(({ started }) => started.job === job && started.run_date === run_date)
      const summary = summarise(run, ofNight, "output")
      const { exit_code = 4 } = summary
      const ending = { job, exit_code, summary, recovered: false, news: [] }
      const notice = noticeOf(eventsOf(ending), ending, { host: "<host>", job, run_date })
      const text = renderSummary(summary, { width: 100, colour: false })
      return [text, JSON.stringify(summary, null, 2), JSON.stringify(notice, null, 2)].join("\n")
    })
    .join("\n")
}

const endOf = (night: NightOutcome): string => {
  const { exitCodes, processes, requests, virtualHours, late, tooSoon, neighbourComplaints, heard } = night
  return canonical({
    exitCodes,
    processes,
    requests,
    virtualHours,
    late,
    tooSoon,
    neighbourComplaints,
    exchanges: heard.exchanges,
  })
}

export const textsOfNight = (
  seed: number,
  families: ReadonlyArray<RecordFamily>,
  plant: Plant = {},
): Texts => {
  const night = runSimulatedNight(smallNight(seed), families, plant)
  const { bodies, attachments } = night.landing
  const { store, versions } = night.published
  const landed = [...bodies.values()].flat().map(({ meta, ref }) => ({ meta, ref }))
  const { executions, tokens, deliveries } = night.truth
  const texts: ReadonlyArray<readonly [string, string]> = [
    ["end", endOf(night)],
    ["facts", lines(night.facts)],
    ["summaries", summariesOf(night)],
    ["landing", lines([...landed, ...attachments.keys()])],
    ["published", lines([...versions, ...store.runs, ...store.outcomes, ...store.interims])],
    ["service", lines([...executions, ...tokens, ...deliveries])],
  ]
  return new Map(texts.map(([aspect, text]) => [aspect, normalised(text)]))
}

const accountNights = 3

export const textsOfAccounts = (seed: number): Texts => {
  const outcome = runAccountNights(planAccounts(seed, accountNights))
  const { starts, logins, executions, ends, exitCodes, processes, intended, closed } = outcome
  return new Map([
    ["end", canonical({ exitCodes, processes })],
    ["tasks", lines(ends)],
    ["starts", lines([...starts, ...intended])],
    ["service", lines([...logins, ...executions, ...closed])],
  ])
}
