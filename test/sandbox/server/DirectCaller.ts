/** Handlers of the service without HTTP, at moments of the test's choosing, with the events they caused. */
import { Clock, Effect } from "effect"
import { Core, newCallWatch, type SandboxCore } from "../../../src/sandbox/core/SandboxCore.ts"
import { todaysReading } from "../../../src/sandbox/state/Reading.ts"
import { CallingApplication, emptyState } from "../../../src/sandbox/state/SandboxState.ts"
import type { Application, SandboxEvent } from "../../../src/sandbox/state/SandboxState.ts"

export class DirectCaller {
  readonly events: Array<SandboxEvent> = []
  readonly core: SandboxCore = {
    seed: 7,
    reading: todaysReading,
    state: emptyState(),
    journal: { append: (events) => void this.events.push(...events) },
    inputs: new Map(),
    listeners: new Set(),
    watch: newCallWatch(7, undefined, 0),
  }
  now: number

  constructor(now: number) {
    this.now = now
  }

  /** The answer, or the refusal. */
  call<Answer, Refusal>(
    app_id: string,
    handler: Effect.Effect<Answer, Refusal, Core | CallingApplication>,
  ): Answer | Refusal {
    const application: Application = { app_id, mayTokenize: app_id !== "incapable" }
    const millis = () => this.now
    const nanos = () => BigInt(this.now) * 1_000_000n
    const clock: Clock.Clock = {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: nanos,
      monotonicTimeNanos: Effect.sync(nanos),
      sleep: () => Effect.never,
    }
    return Effect.runSync(
      handler.pipe(
        Effect.match({ onFailure: (refusal) => refusal, onSuccess: (answer) => answer }),
        Effect.provideService(Core, this.core),
        Effect.provideService(CallingApplication, application),
        Effect.provideService(Clock.Clock, clock),
      ),
    )
  }
}
