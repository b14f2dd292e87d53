/**
 * Runs one night after another in a locked output folder, each with the services of its job, and writes and
 * prints each summary. `run`, `rerun` and `demo` are this with different options.
 */
import { Cause, Clock, Effect, Layer } from "effect"
import type { ListenAt } from "../client/HookReceiver.ts"
import { Hints } from "../client/Hints.ts"
import type { Job } from "../jobs/Job.ts"
import { toldWhole } from "../messages/Catalogue.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import type { NightOptions, NightResult } from "../night/Nightly.ts"
import { renderSummary } from "../report/RenderSummary.ts"
import type { Summary } from "../report/Summary.ts"
import { announced, watchedForLate } from "./Notices.ts"
import type { Ending } from "./Notices.ts"
import { NoProgressFlag } from "./CommonFlags.ts"
import { afterNight, writeSummary } from "./EndNight.ts"
import { endingOfCause } from "./Failures.ts"
import { NightDesk } from "./NightDesk.ts"
import { note, Output, say, sayJson } from "./Output.ts"
import { ProgressDisplay } from "./ProgressDisplay.ts"
import { holdOutput } from "./RunFolder.ts"
import { toolVersion } from "./Version.ts"
import { openWebhooks } from "./Webhooks.ts"
import { Wiring } from "./Wiring.ts"

export interface NightsOptions {
  readonly output: string
  readonly json: boolean
  readonly further: boolean
  readonly parent: string | undefined
  readonly only: ReadonlySet<string> | undefined
  /** Where events are received during the runs. */
  readonly webhooks: ListenAt | undefined
}

/** Returns the exit code for all runs together. */
export const runNights = Effect.fn("Nights.run")(function* (
  jobs: ReadonlyArray<Job>,
  options: NightsOptions,
) {
  const shares = jobs.map(({ share }) => share)
  const nights = Effect.gen(function* () {
    yield* holdOutput(options.output, shares)
    const { source, url } = yield* openWebhooks(options.webhooks)
    const told: Array<ToldNight> = []
    for (const job of jobs)
      told.push(yield* nightOf(job, options, url).pipe(announced(job), Effect.provideService(Hints, source)))
    if (options.json) yield* sayJson(told.flatMap(({ json }) => (json === undefined ? [] : [json])))
    return joinedExitCode(told.map(({ exit_code }) => exit_code))
  })
  return yield* Effect.scoped(nights).pipe(Effect.onInterrupt(() => note(toldWhole("interrupted"))))
})

interface ToldNight {
  readonly exit_code: number
  readonly ending: Ending
  readonly json?: Summary & { readonly nothing_to_do: boolean }
}

/** A failure of one job must not stop the next job; an interrupt stops them all. */
const nightOf = (job: Job, options: NightsOptions, hooksUrl: string | undefined) =>
  Effect.matchCauseEffect(oneNight(job, options, hooksUrl), {
    onSuccess: (told) => Effect.succeed(told),
    onFailure: (cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      return Effect.gen(function* () {
        const ending = endingOfCause(cause)
        for (const line of ending.lines) yield* note(line)
        yield* Effect.logDebug(cause)
        const { exit_code } = ending
        return {
          exit_code,
          ending: { job: job.name, exit_code, summary: undefined, recovered: false },
        } satisfies ToldNight as ToldNight
      })
    },
  })

/** A run with its summary written; nothing is printed yet. */
export const summarisedNight = Effect.fnUntraced(function* (job: Job, output: string, options: NightOptions) {
  const { runNight } = yield* Effect.promise(() => import("../night/Nightly.ts"))
  const result = yield* runNight(job, options)
  return { result, summary: yield* writeSummary(job, output, result) }
})

const oneNight = Effect.fnUntraced(function* (
  job: Job,
  options: NightsOptions,
  hooksUrl: string | undefined,
) {
  const wiring = yield* Wiring
  const silent = yield* NoProgressFlag
  const { further, parent, only, output } = options
  const watched = Layer.provideMerge(NightDesk.layer(output), ProgressDisplay.layer(!silent))
  const { result, summary } = yield* summarisedNight(job, output, {
    further,
    parent,
    only,
    toolVersion,
  }).pipe(
    watchedForLate(job, yield* Clock.Clock),
    Effect.provide(Layer.merge(watched, wiring.night(job, output, hooksUrl))),
  )
  if (!options.json) yield* tellNight(result, summary)
  yield* afterNight(job, output, result)
  const { exit_code, recovered } = result
  return {
    exit_code,
    ending: result.nothingToDo ? undefined : { job: job.name, exit_code, summary, recovered },
    json: { ...summary, nothing_to_do: result.nothingToDo },
  } satisfies ToldNight as ToldNight
})

const tellNight = Effect.fnUntraced(function* (result: NightResult, summary: Summary) {
  const { out } = yield* Output
  if (result.nothingToDo)
    yield* say(
      result.exit_code === exitCodes.leftovers
        ? `${result.run_id} starts nothing more: \`nightjar rerun\` starts what is left of its night.`
        : `${result.run_id} is already finished: nothing to do (\`--new\` forces a further run).`,
    )
  yield* say(renderSummary(summary, out))
})

/**
 * What a rerun can finish takes precedence over what people must do; a service that never answered has its
 * own code.
 */
export const joinedExitCode = (codes: ReadonlyArray<number>): number => {
  if (codes.includes(exitCodes.defect)) return exitCodes.defect
  if (codes.length > 0 && codes.every((code) => code === codes[0])) return codes[0] ?? exitCodes.ok
  const started = codes.filter((code) => code === exitCodes.ok || code === exitCodes.peopleMustAct)
  if (started.length < codes.length) return exitCodes.leftovers
  return started.includes(exitCodes.peopleMustAct) ? exitCodes.peopleMustAct : exitCodes.ok
}
