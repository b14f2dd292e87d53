/**
 * Logs, metrics and traces of a run with Effect's own exporters: what facts and calls say (`RunStory.ts`),
 * what may leave and how it is sent (`Outbound.ts`). Runs on the machine's clock, however fast the run's
 * goes.
 */
import { ConfigProvider, Duration, Effect, Exit, Layer, Logger, References, Scope, flow } from "effect"
import { HttpClient } from "effect/http"
import { OtlpExporter, OtlpLogger, OtlpMetrics, OtlpTracer } from "effect/observability"
import type { RunId } from "../service/Ids.ts"
import type { Fact } from "../ledger/Fact.ts"
import { Meter, Spans } from "./Spans.ts"
import { outbound, sendingThrough } from "./Outbound.ts"
import { RunStory, recordOf } from "./RunStory.ts"

/** What a dead collector may cost at the end of a run. */
const endsWithin = Duration.seconds(3)
/** A request to the collector costs more than what it carries: few of them. Metrics are totals. */
const sentEvery = { traces: Duration.seconds(10), logs: Duration.seconds(10), metrics: Duration.seconds(30) }

export interface Collector {
  /** Without a slash at its end. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
}

export interface TelemetryOptions {
  readonly job: string
  readonly version: string
  readonly namesCustomers: boolean
  /** Undefined: only metrics, which are sent nowhere. */
  readonly collector: Collector | undefined
}

/** Settings of the environment count for nothing here: the job's are all there are. */
const noEnvironment = Layer.succeed(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({}))

const makeExporting = Effect.fnUntraced(function* (
  { endpoint, headers }: Collector,
  { version }: TelemetryOptions,
  meter: Meter,
) {
  const http = yield* HttpClient.HttpClient
  // Each exporter ends in its own order, and all three at the same time.
  const lane = () => ({ scope: Scope.makeUnsafe(), ...sendingThrough(http) })
  const lanes = { traces: lane(), logs: lane(), metrics: lane() }
  const on = (signal: keyof typeof lanes) =>
    flow(
      Scope.provide(lanes[signal].scope),
      Effect.provideService(HttpClient.HttpClient, lanes[signal].client),
    )
  const to = (signal: keyof typeof lanes) => ({
    url: `${endpoint}/v1/${signal}`,
    exportInterval: sentEvery[signal],
    headers,
    resource: { serviceName: "nightjar", serviceVersion: version },
    shutdownTimeout: endsWithin,
  })
  const exporters = Effect.gen(function* () {
    const tracer = yield* on("traces")(OtlpTracer.make(to("traces")))
    const logger = yield* on("logs")(OtlpLogger.make({ ...to("logs"), excludeLogSpans: true }))
    yield* on("metrics")(Effect.provideContext(OtlpMetrics.make(to("metrics")), meter.context))
    return { tracer, logger }
  })
  const made = yield* Effect.provide(
    exporters,
    Layer.mergeAll(OtlpExporter.layerFlusher, outbound(version), noEnvironment),
  )
  const all = Object.values(lanes)
  /** Sends what is left; all three at once. Returns why something did not arrive. */
  const close = Effect.map(
    Effect.forEach(all, ({ scope }) => Scope.close(scope, Exit.void), { concurrency: "unbounded" }),
    () => all.flatMap(({ whyLost }) => whyLost() ?? []).at(0),
  )
  return { ...made, close }
})

type OfRun = Extract<Fact, { readonly run_id: RunId }>

const isOfRun = (fact: Fact): fact is OfRun => "run_id" in fact && fact.run_id !== undefined

const taskIn = (fact: OfRun) =>
  "task_id" in fact && fact.task_id !== undefined ? { run_id: fact.run_id, task_id: fact.task_id } : undefined

/** A fact as a log record, in the span of its task or its run; nothing for most facts. */
const makeLog = (logger: Logger.Logger<unknown, void>, { job, namesCustomers }: TelemetryOptions) => {
  const loggers = new Set([logger])
  return (fact: OfRun, story: RunStory): Effect.Effect<void> | undefined => {
    const told = recordOf(fact)
    if (told === undefined) return undefined
    const about = taskIn(fact)
    const engine = about === undefined ? undefined : story.taskOf(about)?.engine
    const values = {
      "event.name": told.event,
      "nightjar.job": job,
      "nightjar.run.id": fact.run_id,
      ...(engine === undefined ? {} : { "nightjar.engine": engine }),
      ...(namesCustomers && about !== undefined ? { "nightjar.task.id": about.task_id } : {}),
      ...told.values,
    }
    const logged = Effect.logWithLevel(told.level)(told.body).pipe(
      Effect.annotateLogs(values),
      Effect.provideService(Logger.CurrentLoggers, loggers),
      Effect.provideService(References.MinimumLogLevel, "All"),
    )
    const span = story.spanOf(fact.run_id, about?.task_id)
    return span === undefined ? logged : Effect.withParentSpan(logged, span.ids)
  }
}

/**
 * Nothing fails here: what cannot be sent is told by `close`. `plannedIn` reads the tasks of a run that an
 * earlier process planned.
 */
export const openTelemetry = Effect.fnUntraced(function* (
  options: TelemetryOptions,
  plannedIn: (run_id: RunId) => Effect.Effect<ReadonlyArray<Fact>>,
) {
  const { job, collector, namesCustomers } = options
  const meter = new Meter(job)
  const exporting = collector === undefined ? undefined : yield* makeExporting(collector, options, meter)
  const spans = exporting && new Spans(exporting.tracer)
  const story = new RunStory({ meter, spans, job, namesCustomers })
  const log = exporting === undefined ? () => undefined : makeLog(exporting.logger, options)
  let newestAt = 0n
  const begin = (fact: OfRun, at: bigint) => {
    story.begin(fact.run_id, at, fact._tag === "RunStarted" ? { "nightjar.run.date": fact.run_date } : {})
    if (fact._tag === "RunStarted") return Effect.void
    return Effect.map(plannedIn(fact.run_id), (facts) => {
      for (const planned of facts) if (planned._tag === "TaskPlanned") story.planned(planned)
    })
  }
  const tellOne = (fact: OfRun, at: bigint): Effect.Effect<void> | undefined => {
    // First: the end of a task ends the span that its record belongs to.
    const logged = log(fact, story)
    story.tell(fact, at)
    return logged
  }
  /** Facts that the ledger has. */
  const tell = (facts: ReadonlyArray<Fact>) =>
    Effect.clockWith((clock) => {
      const at = clock.currentTimeNanosUnsafe()
      newestAt = at
      return Effect.forEach(
        facts.filter(isOfRun),
        (fact) =>
          story.knows(fact.run_id)
            ? (tellOne(fact, at) ?? Effect.void)
            : Effect.andThen(
                begin(fact, at),
                Effect.suspend(() => tellOne(fact, at) ?? Effect.void),
              ),
        { discard: true },
      )
    })
  /** Ends and sends what is left, within some seconds; what did not arrive, in words. */
  const close = Effect.gen(function* () {
    story.closeAll(newestAt)
    const why = exporting && (yield* exporting.close)
    return why && `the collector did not take everything: ${why}`
  })
  return { observe: story.observe, tell, prometheus: () => meter.prometheus(), close }
})
