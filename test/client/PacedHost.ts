/**
 * Hosts that bear so much and refuse the rest, and the demand that they meet: callers in virtual time, through
 * `ServicePause`, who repeat what was refused as the pipeline does.
 */
import { Duration, Effect, Exit, Random } from "effect"
import { callWaits } from "../../src/client/Pacing.ts"
import { Throttled } from "../../src/client/Service.ts"
import { ServicePause } from "../../src/client/ServicePaced.ts"
import { waitMs } from "../../src/base/Time.ts"
import { World } from "../simulation/World.ts"

export interface Host {
  /** How many requests it takes in the window that a moment lies in. */
  readonly takes: (elapsedMs: number) => number
  readonly windowMs?: number
  readonly latencyMs?: number
  readonly retryAfterMs?: number
  /** The answer to a request, where it is not decided by how many the host takes. */
  readonly says?: (elapsedMs: number, subject: string) => 429 | undefined
}

/** What the host saw, in all and in each second. */
export interface Seen {
  taken: number
  refused: number
  /** When the demand was over. */
  endedMs: number
  readonly seconds: Array<{ taken: number; refused: number }>
}

export const shareRefused = ({ taken, refused }: Seen): number => refused / (taken + refused)

/** Requests that were taken from one second until another, per second. */
export const takenPerSecond = ({ seconds }: Seen, from: number, to: number): number =>
  seconds.slice(from, to).reduce((sum, second) => sum + (second?.taken ?? 0), 0) / (to - from)

/** Two requests from a moment on are refused, whatever the host takes. */
export const twoRefused = (fromMs: number): NonNullable<Host["says"]> => {
  let left = 2
  return (elapsedMs) => (elapsedMs >= fromMs && left-- > 0 ? 429 : undefined)
}

const startMs = Date.UTC(2026, 10, 20, 22)

const requestOf = (host: Host, world: World, seen: Seen) => {
  const { windowMs = 1000, latencyMs = 30, retryAfterMs } = host
  const wait = retryAfterMs === undefined ? {} : { retry_after: Duration.millis(retryAfterMs) }
  let window = -1
  let left = 0
  const statusAt = (elapsedMs: number, subject: string) => {
    const said = host.says?.(elapsedMs, subject)
    if (said !== undefined) return said
    if (Math.floor(elapsedMs / windowMs) > window) {
      window = Math.floor(elapsedMs / windowMs)
      left = host.takes(elapsedMs)
    }
    return left-- > 0 ? 200 : 429
  }
  return Effect.fnUntraced(function* (subject: string) {
    yield* Effect.sleep(latencyMs / 2)
    const elapsedMs = world.now() - startMs
    const status = statusAt(elapsedMs, subject)
    const what = status === 200 ? "taken" : "refused"
    seen[what] += 1
    const second = (seen.seconds[Math.floor(elapsedMs / 1000)] ??= { taken: 0, refused: 0 })
    second[what] += 1
    yield* Effect.sleep(latencyMs / 2)
    if (status !== 200) return yield* new Throttled({ http_status: status, message: "m", ...wait })
  })
}

/** Makes one call, again and again until it is answered. */
type Call = (subject: string) => Effect.Effect<void>
export type Demand = (call: Call) => Effect.Effect<void>

const each = (
  count: number,
  concurrency: number | "unbounded",
  one: (index: number) => Effect.Effect<void>,
) => Effect.forEach(Array.from({ length: count }).keys(), one, { concurrency, discard: true })

/** So many calls, evenly over time. */
export const evenly =
  (calls: number, perSecond: number): Demand =>
  (call) =>
    each(calls, "unbounded", (index) =>
      Effect.andThen(Effect.sleep((1000 * index) / perSecond), call(`${index}`)),
    )

/** So many executions, a hundred and twenty at once, each with six calls and a quarter of a second between them. */
export const executions =
  (count: number): Demand =>
  (call) =>
    each(count, 120, (index) =>
      Effect.repeat(Effect.andThen(call(`${index}`), Effect.sleep("220 millis")), { times: 5 }),
    )

/** Callers who always have something to ask, or so many seconds of each minute. */
export const callers =
  (count: number, secondsOfMinute = 60): Demand =>
  (call) =>
    Effect.flatMap(
      Effect.clockWith((clock) => Effect.succeed(clock)),
      (clock) => {
        const rest = Effect.suspend(() => {
          const inMinuteMs = (clock.currentTimeMillisUnsafe() - startMs) % 60_000
          return inMinuteMs < secondsOfMinute * 1000 ? Effect.void : Effect.sleep(60_000 - inMinuteMs)
        })
        return each(count, "unbounded", (index) => Effect.forever(Effect.andThen(rest, call(`${index}`))))
      },
    )

export interface Play {
  /** Ends a demand that has no end. */
  readonly forMs?: number
  /** The wall clock is set at these times, by so much. */
  readonly jumps?: ReadonlyArray<{ readonly atMs: number; readonly byMs: number }>
}

/** Plays a demand at a host. */
export const play = (host: Host, demand: Demand, { forMs = Infinity, jumps = [] }: Play = {}): Seen => {
  const seen: Seen = { taken: 0, refused: 0, endedMs: 0, seconds: [] }
  const world = World.make({ startMs, seed: 1, stepsMax: 100_000_000 })
  const request = requestOf(host, world, seen)
  const program = Effect.gen(function* () {
    const pause = yield* ServicePause
    const call = (subject: string, failures: number): Effect.Effect<void> =>
      pause.call({ host: "h", endpoint: "readExecution", subject }, request(subject)).pipe(
        Effect.catch((failure) =>
          Effect.flatMap(Random.next, (random) => {
            const asked = failure._tag === "Throttled" ? failure.retry_after : undefined
            const wait = Effect.sleep(waitMs(callWaits, failures, random, asked))
            return Effect.andThen(wait, call(subject, failures + 1))
          }),
        ),
      )
    const all = demand((subject) => call(subject, 1))
    yield* forMs === Infinity ? all : Effect.ignore(Effect.timeout(all, forMs))
    seen.endedMs = world.now() - startMs
  })
  const main = world.spawn("main", Effect.provide(program, ServicePause.layer()))
  for (const { atMs, byMs } of jumps) world.at(startMs + atMs, () => main.jump(byMs))
  world.runUntil(() => main.exit() !== undefined)
  const exit = main.exit()
  if (exit !== undefined && Exit.isFailure(exit)) throw new Error("The demand failed.", { cause: exit.cause })
  return seen
}
