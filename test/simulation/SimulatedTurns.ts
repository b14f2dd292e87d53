/**
 * Jobs that are given together in a simulated process, as the command `run` runs them: with the product's own turns
 * and slots, and with what must not exist twice in a process in common.
 */
import { Effect, Exit, Layer } from "effect"
import { HttpClient } from "effect/http"
import { inOrder, type Job } from "../../src/jobs/Job.ts"
import { exitCodes } from "../../src/messages/ExitCodes.ts"
import { inTurns, turnsOf } from "../../src/run/JobTurns.ts"
import { runNight, type NightOptions, type NightResult } from "../../src/run/Nightly.ts"
import type { Turn } from "../../src/task/SideBySide.ts"
import type { Common, NightLayers } from "./NightLayers.ts"
import type { NightPlan } from "./NightPlan.ts"

/** Defects put in on purpose, between jobs. */
export interface PlantTogether {
  readonly turns?: (turns: ReadonlyArray<Turn>) => ReadonlyArray<Turn>
  /** Each job has all slots for itself. */
  readonly hasOwnSlots?: boolean
}

interface Place {
  readonly common: Common
  readonly layers: (of: Common) => NightLayers
  /** Told of each job whose turn came too late. */
  readonly late: Set<string>
  /** Told of each run that came to its end. */
  readonly ended?: (job: Job, result: NightResult) => void
}

/** What the jobs have in common, made once for the process. */
const shared = ({ pause, ledger, landing }: Common) =>
  Effect.gen(function* () {
    const held = Layer.succeedContext(yield* Layer.build(Layer.mergeAll(pause, ledger, landing)))
    return { pause: held, ledger: held, landing: held }
  })

interface Ended {
  readonly exit_code: number
}

/** Ends with one exit code: with a rerun's if any job has something left. */
export const runTogether = Effect.fnUntraced(function* (
  { jobs, isInARow }: Pick<NightPlan, "jobs" | "isInARow">,
  options: NightOptions,
  { common, layers, late, ended = () => {} }: Place,
  plant: PlantTogether = {},
) {
  const ofAll = yield* shared(common)
  const night = (job: Job) =>
    Effect.map(runNight(job, options), (result): Ended => {
      ended(job, result)
      return { exit_code: result.exit_code }
    })
  const alone = <A, E>(work: Effect.Effect<A, E, Layer.Success<NightLayers>>) =>
    Effect.exit(Effect.provide(work, layers(ofAll), { local: true }))
  const turns = Effect.provide(turnsOf(jobs), layers(ofAll), { local: true })
  const told = isInARow
    ? yield* Effect.forEach(inOrder(jobs), (job) => alone(night(job)))
    : yield* inTurns(jobs, (plant.turns ?? ((same) => same))(yield* turns), (job, { isInTime, beside }) => {
        if (isInTime) return alone(plant.hasOwnSlots === true ? night(job) : beside(night(job)))
        late.add(job.name)
        return Effect.succeed(Exit.succeed<Ended>({ exit_code: exitCodes.leftovers }))
      })
  // Only now: a failure of one job must not stop the others.
  const codes = (yield* Effect.forEach(told, (exit) => exit)).map(({ exit_code }) => exit_code)
  return { exit_code: codes.includes(exitCodes.leftovers) ? exitCodes.leftovers : Math.max(...codes) }
}, Effect.scoped)

/** Counts the requests that are under way at the same time. */
export const counted = (client: HttpClient.HttpClient, busy: { now: number; most: number }) =>
  HttpClient.make((request) =>
    Effect.suspend(() => {
      busy.now += 1
      busy.most = Math.max(busy.most, busy.now)
      return Effect.ensuring(
        client.execute(request),
        Effect.sync(() => (busy.now -= 1)),
      )
    }),
  )
