/**
 * The telemetry of a run, for a job that asks for it: facts and calls go to a collector, the metrics to
 * `runs/<run_id>/metrics.prom`. What cannot be sent or written costs a line on stderr, never the run.
 */
import { Duration, Effect, Layer, Redacted } from "effect"
import { wordsOf } from "../base/Text.ts"
import type { RunId } from "../service/Ids.ts"
import { CallObserver } from "../client/CallFailures.ts"
import { durableFiles, modesOf } from "../base/DurableFile.ts"
import type { Job, Telemetry } from "../jobs/Job.ts"
import { parseServiceUrl, serviceUrlRule } from "../jobs/Scalars.ts"
import type { Fact } from "../ledger/Fact.ts"
import { Ledger, telling } from "../ledger/Ledger.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { openTelemetry, type Collector } from "../report/Telemetry.ts"
import { warn } from "./Output.ts"
import { secretOf } from "./Receivers.ts"
import { runFolder } from "./OutputFolder.ts"
import { toolVersion } from "./Failures.ts"

const writtenEvery = Duration.seconds(30)
/** Whoever collects these files is another user; they name no customer. */
const readableByAll = 0o644

/** `name=value,name=value`, percent-encoded as in OTEL_EXPORTER_OTLP_HEADERS; undefined if it is not that. */
export const parseHeaders = (text: string): Readonly<Record<string, string>> | undefined => {
  const pairs = text.split(",").map((pair) => /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(.*?)\s*$/.exec(pair))
  try {
    const read = pairs.map((pair) => [pair?.[1] ?? "", decodeURIComponent(pair?.[2] ?? "")] as const)
    const isUsable = read.every(([name, value]) => name !== "" && /^[\t\x20-\x7e]+$/.test(value))
    return isUsable ? Object.fromEntries(read) : undefined
  } catch {
    return undefined
  }
}

/** What is sent with everything; fails with a message without its values. */
export const readHeaders = Effect.fnUntraced(function* (reference: Telemetry["headers"]) {
  if (reference === undefined) return {}
  const text = Redacted.value(yield* secretOf(reference))
  const headers = parseHeaders(text)
  if (headers === undefined) return yield* Effect.fail("its headers are not name=value,name=value")
  ;(yield* KnownSecrets).hold(headers, "password")
  return headers
})

export const readEndpoint = Effect.fnUntraced(function* (otlp: NonNullable<Telemetry["otlp"]>) {
  const text = typeof otlp === "string" ? otlp : Redacted.value(yield* secretOf(otlp)).trim()
  const endpoint = parseServiceUrl(text)
  return endpoint ?? (yield* Effect.fail(`the collector's address is not ${serviceUrlRule}`))
})

/** Where to send; a warning and nothing if that cannot be known. */
const collectorOf = ({ otlp, headers }: Telemetry) =>
  Effect.gen(function* () {
    if (otlp === undefined) return undefined
    const endpoint = yield* readEndpoint(otlp)
    return { endpoint, headers: yield* readHeaders(headers) } satisfies Collector as Collector
  }).pipe(Effect.catch((why) => Effect.as(warn("telemetry-incomplete", { why }), undefined)))

/** Writes the metrics to where they belong; returns why that failed. */
const writeMetrics = Effect.fnUntraced(function* (job: Job, folder: string, text: () => string) {
  const files = yield* durableFiles
  const write = () => {
    files.makeFolder(folder, modesOf(job.share).folder)
    files.replace(`${folder}/metrics.prom`, text(), modesOf(job.share).file)
    const wanted = job.telemetry?.prometheus
    if (wanted !== undefined) files.replace(wanted, text(), readableByAll)
  }
  const written = Effect.as(Effect.try({ try: write, catch: wordsOf }), undefined)
  return yield* Effect.catch(written, Effect.succeed)
})

/** The run whose folder gets the metrics: the newest that began or went on. */
const beganIn = (facts: ReadonlyArray<Fact>): RunId | undefined => {
  const began = facts.findLast(
    (fact) => fact._tag === "RunStarted" || fact._tag === "RunResumed" || fact._tag === "RunAccepted",
  )
  return began?.run_id
}

const observing = Effect.fnUntraced(function* (job: Job, output: string, asked: Telemetry) {
  const ledger = yield* Ledger
  const collector = yield* collectorOf(asked)
  const options = { job: job.name, version: toolVersion, namesCustomers: asked.customer_ids, collector }
  const telemetry = yield* openTelemetry(options, (run_id) =>
    ledger.facts(run_id).pipe(
      Effect.map((recorded) => recorded.map(({ fact }) => fact)),
      Effect.orElseSucceed(() => []),
    ),
  )
  let run_id: RunId | undefined
  const writeNow = Effect.suspend(() =>
    run_id === undefined
      ? Effect.undefined
      : writeMetrics(job, runFolder(output, run_id), telemetry.prometheus),
  )
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      const missing = [yield* telemetry.close, yield* writeNow].filter((why) => why !== undefined)
      for (const why of missing) yield* warn("telemetry-incomplete", { why })
    }),
  )
  yield* Effect.sleep(writtenEvery).pipe(Effect.andThen(writeNow), Effect.forever, Effect.forkScoped)
  const observed = telling(ledger, (facts) => {
    run_id = beganIn(facts) ?? run_id
    return telemetry.tell(facts)
  })
  return { observed, observe: telemetry.observe }
})

export const RunTelemetry = {
  /** The ledger that is there, looked on at; and who looks on at calls. */
  layer: (job: Job, output: string, asked: Telemetry) =>
    Layer.unwrap(
      Effect.map(observing(job, output, asked), ({ observed, observe }) =>
        Layer.mergeAll(Layer.succeed(Ledger, observed), Layer.succeed(CallObserver, observe)),
      ),
    ),
}
