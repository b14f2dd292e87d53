/**
 * `npm run simulate -- --seeds N [--from K] [--step S] [--json]`: whole nights in virtual time under faults, on all cores. Prints
 * what is wrong with each failing seed and the command that replays it alone, and exits 1 if there is one.
 */
import { parseArgs } from "node:util"
import { families } from "../records/families.ts"
import { figuresLine } from "../promises/Figure.ts"
import { promisesObserved, violationsOf } from "./Invariants.ts"
import { neighbourApplication } from "./Neighbour.ts"
import { countOf, trySeeds } from "./Seeds.ts"
import { planNight } from "./SeveralJobs.ts"
import { runSimulatedNight, type NightOutcome } from "./SimulatedNight.ts"

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    /** Every so manieth seed: from 3 in steps of 5, all nights have several jobs. */
    step: { type: "string", default: "1" },
    verbose: { type: "boolean", default: false },
    /** The last line is the figures, for `npm run promises`. */
    json: { type: "boolean", default: false },
  },
})
const [from, seeds] = [countOf("from", values.from), countOf("seeds", values.seeds)]

/** What a night was made of, counted. */
const countsOf = (night: NightOutcome) => {
  const { executions, tokens, deliveries } = night.truth
  const phases = executions.flatMap((execution) => execution.phases)
  return {
    executions: executions.length,
    requests: night.requests,
    processes: night.processes,
    virtualHours: night.virtualHours,
    // Challenges that somebody could answer, all of the neighbour: a night has nobody.
    challenges: phases.filter(({ challenge }) => challenge !== undefined).length,
    tokens: tokens.length,
    tokenRuns: tokens.reduce((sum, { runs }) => sum + runs.length, 0),
    deliveries: deliveries.length,
    neighbourRuns: executions.filter(({ application }) => application === neighbourApplication).length,
    // Nights of several jobs, and those whose tables were compared with theirs one after the other.
    several: night.plan.jobs.length > 1 ? 1 : 0,
    compared: night.inARow === undefined ? 0 : 1,
  }
}

const tried = await trySeeds({
  script: import.meta.url,
  from,
  seeds,
  step: countOf("step", values.step),
  verbose: values.verbose,
  judge: (seed) => {
    const night = runSimulatedNight(planNight(seed), families)
    const { exitCodes, processes, requests, eventsHash } = night
    const violations = violationsOf(night)
    return {
      broken: violations.map(({ promise }) => promise),
      complaints: violations.map(({ promise, what }) => `promise ${promise}: ${what}`),
      summary: `exit ${exitCodes.join(",")}, ${processes} processes, ${requests} requests, hash ${eventsHash}`,
      counts: countsOf(night),
    }
  },
  rules: promisesObserved,
  brokenByStop: promisesObserved,
  replay: (seed) => `npm run simulate -- --seeds 1 --from ${seed}`,
})
if (tried !== undefined) {
  const { failed, failedOf, total, seconds } = tried
  console.log(
    `${seeds} nights from seed ${from}: ${total("executions")} executions, ${total("requests")} requests, ` +
      `${total("processes")} processes, ${total("virtualHours").toFixed(0)} virtual hours in ${seconds.toFixed(1)} s`,
  )
  console.log(
    `${total("tokens")} tokens, ${total("tokenRuns")} runs with them; ${total("deliveries")} webhook deliveries; ` +
      `${total("neighbourRuns")} runs of another application, ${total("challenges")} challenges with somebody to answer; ` +
      `${total("several")} nights of several jobs, ${total("compared")} compared with the same jobs in a row`,
  )
  console.log(`${seeds - failed} passed, ${failed} failed`)
  const byPromise = Object.fromEntries(
    [...failedOf].map(([promise, failures]) => [promise, { tried: seeds, failed: failures }]),
  )
  if (values.json) console.log(figuresLine([{ of: "simulated nights", tried: seeds, failed, byPromise }]))
}
