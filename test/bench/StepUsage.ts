/**
 * What the named steps of an effect used: CPU time of all threads, bytes written and peak memory of this process, by
 * span. A step contains those within it.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { Effect, Tracer } from "effect"

export interface StepUsage {
  readonly name: string
  readonly elapsedMs: number
  readonly cpuMs: number
  /** As the operating system counts them; NaN where it does not. */
  readonly writtenBytes: number
}

export const cpuMs = (): number => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  return (userCPUTime + systemCPUTime) / 1_000
}

const readNumber = (path: string, pattern: RegExp): number => {
  try {
    return Number(pattern.exec(readFileSync(path, "utf8"))?.[1] ?? Number.NaN)
  } catch {
    return Number.NaN
  }
}

const writtenBytes = (): number => readNumber("/proc/self/io", /^write_bytes: (\d+)$/m)

/** Of this process, since it began or since the peak is counted anew. */
export const peakMb = (): number => readNumber("/proc/self/status", /VmHWM:\s*(\d+)/) / 1_024

/** From here on the peak is counted anew, where the machine can do that. */
const resetPeak = (): void => {
  try {
    writeFileSync("/proc/self/clear_refs", "5")
  } catch {
    // The peak is then that of the whole process.
  }
}

class MeasuredSpan extends Tracer.NativeSpan {
  readonly #from = performance.now()
  readonly #cpuMs = cpuMs()
  readonly #written = writtenBytes()
  readonly #ended: (usage: StepUsage) => void

  constructor(
    options: ConstructorParameters<typeof Tracer.NativeSpan>[0],
    ended: (usage: StepUsage) => void,
  ) {
    super(options)
    this.#ended = ended
  }

  override end(...args: Parameters<Tracer.NativeSpan["end"]>): void {
    super.end(...args)
    this.#ended({
      name: this.name,
      elapsedMs: performance.now() - this.#from,
      cpuMs: cpuMs() - this.#cpuMs,
      writtenBytes: writtenBytes() - this.#written,
    })
  }
}

/** It takes place once for each body, and looking at it would cost more than it does itself. */
const unmeasured = "Landing.read"

/** Runs the effect and says what each of its spans used, and the peak memory meanwhile. */
export const measureSteps = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const steps: Array<StepUsage> = []
  const tracer = Tracer.make({
    span: (options) =>
      options.name === unmeasured
        ? new Tracer.NativeSpan(options)
        : new MeasuredSpan(options, (usage) => void steps.push(usage)),
  })
  resetPeak()
  const result = yield* Effect.withTracer(Effect.withSpan(effect, "all"), tracer)
  return { result, peakMb: peakMb(), steps }
})
