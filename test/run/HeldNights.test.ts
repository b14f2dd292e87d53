/** Nights whose tables a gate holds back: what is deleted at the service, however often it is killed. */
import { describe, expect, it } from "vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { acceptRun, runNight, type NightOptions, type NightResult } from "../../src/run/Nightly.ts"
import type { RunId } from "../../src/service/Ids.ts"
import type { Job } from "../../src/jobs/Job.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { isAsked } from "../../src/tables/AskGates.ts"
import { heldBefore, heldDatabase } from "../../src/tables/HeldRuns.ts"
import { PublicationHeld, Publisher } from "../../src/tables/Publisher.ts"
import { Service } from "../../src/client/Service.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { customer, features, jobOf, makeNights, options } from "../harness/SmallNights.ts"

const plain = (id: string, words: string) => {
  const one = customer(id, words)
  const login = one.login._tag === "Parameters" ? { ...one.login, tokenized_access: false } : one.login
  return { ...one, login, features: features("customer_information_read") }
}
const jobFor = (after_export: Job["after_export"]): Job => ({
  ...jobOf([plain("c-1", "queue-1+run-1"), plain("c-2", "queue-1+run-1")]),
  name: "held",
  after_export,
})

const gate = { gate: "rows", expected: "more", found: "less" }
/** The steps around a publication, in which a process can be killed. */
const steps: ReadonlySet<Fact["_tag"]> = new Set<Fact["_tag"]>([
  "RunAccepted",
  "RunHeld",
  "RunPublished",
  "DeleteIntended",
  "DeleteAnswered",
  "RunEnded",
  "OutcomePublished",
])

/** A place whose gate holds back what `doubts` says, with a process that is killed around its n-th step. */
const makePlace = (killAt: number, after_export: Job["after_export"] = "delete") => {
  const { world, layers, ledger: ledgerLayer, disk } = makeNights()
  type Services = Layer.Success<typeof layers>
  let context: Context.Context<Services> | undefined
  let doubts = true
  /** Runs whose end became part of the tables. */
  const ends: Array<RunId> = []
  let taken = 0
  const host = Effect.gen(function* () {
    context = yield* Layer.build(layers)
    return yield* Effect.never
  })
  const service = world.spawn(
    "host",
    host.pipe(Effect.scoped, Effect.provideService(KnownSecrets, makeKnownSecrets())),
  )
  world.runUntil(() => context !== undefined)

  /** As the real one decides: what is accepted is not asked, and what passes contains the runs held before. */
  const gated = (real: Publisher["Service"], ledger: Ledger["Service"]): Publisher["Service"] => ({
    ...real,
    publishOutcome: (run_id) =>
      Effect.tap(real.publishOutcome(run_id), () => Effect.sync(() => void ends.push(run_id))),
    publish: (run_id) =>
      Effect.gen(function* () {
        const state = foldRun(yield* Effect.orDie(ledger.facts(run_id)))
        if (state === undefined) return yield* Effect.die("no such run")
        if (doubts && isAsked(state))
          return yield* new PublicationHeld({ run_id, database: heldDatabase(run_id), gates: [gate] })
        const held = yield* heldBefore(state).pipe(Effect.provideService(Ledger, ledger))
        const released = yield* Effect.forEach(held, (id) =>
          Effect.map(real.publish(id), (published) => ({ ...published, run_id: id })),
        ).pipe(Effect.catchTag("PublicationHeld", Effect.die))
        return { ...(yield* real.publish(run_id)), released }
      }),
  })

  /** One process; undefined if it was killed. */
  const live = <A, E>(work: Effect.Effect<A, E, Services>): A | undefined => {
    const killing = (ledger: Ledger["Service"]): Ledger["Service"] => ({
      ...ledger,
      append: (facts) => {
        if (!facts.some(({ _tag }) => steps.has(_tag))) return ledger.append(facts)
        taken += 1
        // Before the fact, or right after it.
        if (taken * 2 - 1 === killAt) return process.die
        return taken * 2 === killAt ? Effect.andThen(ledger.append(facts), process.die) : ledger.append(facts)
      },
    })
    const services = context as Context.Context<Services>
    const ledger = Context.get(services, Ledger)
    const process = world.spawn(
      "life",
      work.pipe(
        Effect.updateService(Publisher, (real) => gated(real, ledger)),
        Effect.updateService(Ledger, killing),
        // As over a network: what was sent is answered, whether or not anybody is there to hear it.
        Effect.updateService(Service, (real) => ({
          ...real,
          deleteExecution: (id) => service.perform(real.deleteExecution(id)),
        })),
        // Its own: what a killed process was about to write is gone with it.
        Effect.provide(Layer.fresh(ledgerLayer)),
        Effect.provideService(KnownSecrets, makeKnownSecrets()),
        Effect.provide(services),
      ),
    )
    world.runUntil(() => process.exit() !== undefined || !process.alive())
    const exit = process.exit()
    if (exit !== undefined && Exit.isFailure(exit)) throw new Error(`the night failed: ${String(exit.cause)}`)
    return exit?.value
  }

  const job = jobFor(after_export)
  const looked = <A, E>(read: Effect.Effect<A, E, Services>): A => {
    const found = live(read)
    if (found === undefined) throw new Error("killed while it was read")
    return found
  }
  const states = () =>
    looked(
      Effect.gen(function* () {
        const ledger = yield* Ledger
        const runs = yield* ledger.runs
        return yield* Effect.forEach(runs, ({ fact }) =>
          Effect.map(ledger.facts(fact.run_id), (facts) => foldRun(facts)),
        )
      }),
    ).flatMap((state) => state ?? [])
  /** Of each execution, in the order of their starts. */
  const deleted = () =>
    looked(Effect.flatMap(Sandbox, ({ truth }) => truth)).executions.map(
      ({ deleted_at }) => deleted_at !== undefined,
    )
  const told = ({ exit_code, run_id, others }: NightResult) => ({
    exit_code,
    run_id,
    others: others.map((one) => one.run_id),
  })
  const night = (more: Partial<NightOptions> = {}) =>
    live(Effect.map(runNight(job, { ...options, ...more }), told))
  return {
    night,
    accept: (run_id: RunId) => live(Effect.map(acceptRun(job, run_id), told)),
    /** As cron and people do: again, after a kill. */
    untilOver: (work: () => ReturnType<typeof night>) => {
      for (let life = 1; life <= 3; life += 1) {
        const result = work()
        if (result !== undefined) return result
      }
      throw new Error("killed three times")
    },
    lose: () => disk.bodies.clear(),
    wait: () => live(Effect.sleep(24 * 60 * 60_000)),
    trust: () => (doubts = false),
    deleted,
    ends,
    states,
    steps: () => taken * 2,
  }
}

type Place = ReturnType<typeof makePlace>

/** What is left once nobody holds anything back any more. */
const over = (place: Place) =>
  place.states().map(({ held, accepted, ended }) => [held, accepted, ended?.exit_code, ended?.leftovers])
const allOver = (runs: number) => Array.from({ length: runs }, () => [undefined, undefined, 0, false])

/** Returns how many steps there are: a kill at every seventh is tried, or at each with NIGHTJAR_CUTS_EVERY=1. */
const killedAtEach = (life: (killAt: number) => Place): number => {
  const steps = life(Number.POSITIVE_INFINITY).steps()
  const every = Number(process.env["NIGHTJAR_CUTS_EVERY"] ?? 7)
  for (let killAt = 1; killAt <= steps; killAt += every) life(killAt)
  return steps
}

describe("a night that a gate holds back", () => {
  it("deletes nothing, also when it is run again or looked at by the next one, which lets it through", () => {
    const place = makePlace(0)
    const first = place.night()
    expect([first?.exit_code, place.deleted()]).toEqual([3, [false, false]])
    expect([place.night(), place.deleted()]).toEqual([first, [false, false]])
    place.wait()
    expect([place.night()?.exit_code, place.deleted()]).toEqual([3, [false, false, false, false]])
    expect(place.ends).toEqual([])
    place.wait()
    place.trust()
    const last = place.night()
    expect([last?.exit_code, place.deleted()]).toEqual([0, Array.from({ length: 6 }, () => true)])
    expect(last?.others).toEqual(["held.2026-11-21", "held.2026-11-22"])
    expect(over(place)).toEqual(allOver(3))
    expect(place.ends).toEqual(["held.2026-11-21", "held.2026-11-22", "held.2026-11-23"])
  })

  it("is accepted with bodies that are read again, if they were lost meanwhile [promise 7 lost held]", () => {
    const place = makePlace(0)
    const first = place.night()
    place.lose()
    expect(place.accept(first!.run_id)?.exit_code).toBe(0)
    expect([place.deleted(), over(place)]).toEqual([[true, true], allOver(1)])
  })

  it("is rerun with it: the rerun's version contains both, and answers for the night", () => {
    const place = makePlace(0)
    const first = place.night()
    place.trust()
    const only = new Set(["c-2/sandbox-bank:website"])
    const rerun = place.night({ further: true, parent: first?.run_id, only })
    expect([rerun?.exit_code, place.deleted()]).toEqual([0, [true, true, true]])
    expect(over(place)).toEqual(allOver(2))
  })

  it.each(["delete", "keep"] as const)(
    "killed at any step, deletes nothing before it is let through, and all of it afterwards: %s [gate killed]",
    (after_export) => {
      const reached = killedAtEach((killAt) => {
        const place = makePlace(killAt, after_export)
        expect([place.untilOver(place.night).exit_code, place.deleted()]).toEqual([3, [false, false]])
        place.wait()
        place.trust()
        expect(place.untilOver(place.night).exit_code).toBe(0)
        // What a kill left of the first night is finished by the next `run`.
        place.untilOver(place.night)
        const gone = after_export === "delete"
        expect([killAt, place.deleted(), over(place)]).toEqual([killAt, [gone, gone, gone, gone], allOver(2)])
        return place
      })
      expect(reached).toBe(after_export === "delete" ? 32 : 16)
    },
  )

  it("killed at any step of its acceptance, is let through by the same command, with the night before it [gate again]", () => {
    const reached = killedAtEach((killAt) => {
      const place = makePlace(killAt)
      place.untilOver(place.night)
      place.wait()
      const { run_id } = place.untilOver(place.night)
      place.untilOver(() => place.accept(run_id))
      // Of the earlier night, whose end a kill may have left to the next `run`.
      place.untilOver(place.night)
      expect([killAt, place.deleted(), over(place)]).toEqual([killAt, [true, true, true, true], allOver(2)])
      return place
    })
    expect(reached).toBe(40)
  })
})
