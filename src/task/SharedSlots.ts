/**
 * Slots that runs at one service share: together they never have more executions open than the one with the
 * highest limit may have alone, in all and on each engine. Each run that wants its equal part gets it; what
 * one does not want, the others use. Pure bookkeeping: it has no clock, and whoever has to look again is
 * woken.
 */
import { Context, Duration, Effect } from "effect"
import type { Job } from "../jobs/Job.ts"
import type { EngineReference } from "../service/Ids.ts"

export type Limits = Job["concurrency"]

/** What a run has open, and what it would start at once if it could. */
export interface Claim {
  readonly limit: number
  readonly open: number
  readonly wanted: number
}

/** The schedule of a run, as far as slots are concerned (milliseconds): in all, or on one engine. */
interface Claimant {
  readonly claim: (now: number, engine?: EngineReference) => Claim
}

/**
 * Whether a run may open one more beside the others. Up to its equal part it may whenever a slot is free;
 * beyond that, only if enough remain for the others to get theirs.
 */
const mayOpen = (own: Claim, others: ReadonlyArray<Claim>): boolean => {
  const all = [own, ...others]
  const limit = Math.max(...all.map((claim) => claim.limit))
  const open = all.reduce((sum, claim) => sum + claim.open, 0)
  if (open >= limit) return false
  const part = Math.max(1, Math.floor(limit / all.length))
  if (own.open < part) return true
  const kept = others.reduce(
    (sum, other) => sum + Math.max(0, Math.min(part, other.limit, other.open + other.wanted) - other.open),
    0,
  )
  return open + kept < limit
}

interface Member {
  readonly job: string
  /** Before it has one of its own, what it will probably want. */
  schedule: Claimant
  wake: (() => void) | undefined
  /** Nothing of it moves until slots become free. */
  isStill: boolean
}

/** `expected`: how many tasks on each engine it will probably start. */
const notYet = (limits: Limits, expected: ReadonlyMap<string, number>): Claimant => {
  const most = [...expected.values()].map((tasks) => Math.min(tasks, limits.per_engine))
  const inAll = { limit: limits.max_in_flight, open: 0, wanted: most.reduce((all, one) => all + one, 0) }
  return {
    claim: (_, engine) =>
      engine === undefined ? inAll : { limit: limits.per_engine, open: 0, wanted: expected.get(engine) ?? 0 },
  }
}

/** Slots that it has, or that are kept for it, may become free without anybody else. */
const mayMakeRoom = ({ schedule, isStill }: Member, now: number): boolean => {
  const { open, wanted } = schedule.claim(now)
  return !isStill && open + wanted > 0
}

export class SharedSlots {
  readonly #members = new Set<Member>()

  /** A run that will soon start tasks; `expected` counts them by engine. */
  join(job: string, limits: Limits, expected: ReadonlyMap<string, number>) {
    const schedule = notYet(limits, expected)
    const member: Member = { job, schedule, wake: undefined, isStill: false }
    this.#members.add(member)
    const others = () => [...this.#members].filter((one) => one !== member)
    const stir = () => {
      for (const { wake } of others()) wake?.()
    }
    const setSchedule = (own: Claimant, wake?: () => void) => {
      Object.assign(member, { schedule: own, wake, isStill: false })
      stir()
    }
    const share = {
      /** Whether its next execution may be opened now (milliseconds), on this engine or at all. */
      mayOpen: (now: number, engine?: EngineReference): boolean =>
        mayOpen(
          member.schedule.claim(now, engine),
          others().map((one) => one.schedule.claim(now, engine)),
        ),
      /** The jobs of the others. */
      jobs: (): ReadonlySet<string> => new Set(others().map((one) => one.job)),
      /** Whether others have executions open. */
      areOpen: (now: number): boolean => others().some((one) => one.schedule.claim(now).open > 0),
      /** Slots became free, or are not wanted any more: the others look again. */
      stir,
      /** Nothing of it moves until slots become free. Whether another run may still make room for it. */
      standStill: (now: number): boolean => {
        const wasStill = member.isStill
        member.isStill = true
        // Those who stand still already must learn that nobody is left to wait for.
        if (!wasStill) stir()
        return others().some((one) => mayMakeRoom(one, now))
      },
      /** It has started something. */
      move: () => {
        member.isStill = false
      },
      /** From now on it wants what this schedule has ready, and is woken when slots may be free. */
      attach: setSchedule,
      /** It opens nothing more, until it is attached again. */
      detach: () => setSchedule(notYet(limits, new Map())),
    }
    /** Nothing is kept for it any longer until it has a schedule. */
    const expectNothing = () => {
      if (member.schedule === schedule) share.detach()
    }
    const leave = () => {
      this.#members.delete(member)
      stir()
    }
    return { share, expectNothing, leave }
  }
}

/** One run's part in the slots. */
export type SlotShare = ReturnType<SharedSlots["join"]>["share"]

// A run's part in the slots of its service while other runs go on beside it. A run that is alone has none,
// and its job's own limits are all that counts.

export const SlotsBeside = Context.Reference<SlotShare | undefined>("nightjar/execution/SlotsBeside", {
  defaultValue: () => undefined,
})

/** Slots are kept this long for a run that does not begin: a plan takes seconds, at most minutes. */
const keptFor = Duration.minutes(10)

/** Runs the work of a job with its part in these slots. */
export const besideOthers = (slots: SharedSlots, { name, assignments, concurrency }: Job) => {
  const expected = new Map<EngineReference, number>()
  for (const { engine_reference } of assignments)
    expected.set(engine_reference, (expected.get(engine_reference) ?? 0) + 1)
  return <A, E, R>(work: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const { share, expectNothing, leave } = slots.join(name, concurrency, expected)
      yield* Effect.addFinalizer(() => Effect.sync(leave))
      yield* Effect.forkScoped(Effect.andThen(Effect.sleep(keptFor), Effect.sync(expectNothing)))
      return yield* Effect.provideService(work, SlotsBeside, share)
    }).pipe(Effect.scoped)
}
