/**
 * The simulated world keeps its own promises: order, kill -9, wrong clocks, and an end to everything that would never
 * end. That a seed always gives the same is told by the nights that are lived in it.
 */
import { Clock, Deferred, Effect, Exit, type Fiber } from "effect"
import { describe, expect, it } from "vitest"
import { Deadlock, StepsExceeded, World } from "./World.ts"

const startMs = Date.UTC(2026, 10, 20, 22, 0, 0)
const make = (seed: number | string = 1, stepsMax?: number) =>
  World.make(stepsMax === undefined ? { startMs, seed } : { startMs, seed, stepsMax })

describe("World", () => {
  it("wakes sleepers by due time, then in the order in which they fell asleep, without waiting", () => {
    const world = make()
    const woken: Array<string> = []
    const sleeper = (name: string, ms: number) =>
      Effect.gen(function* () {
        yield* Effect.sleep(ms)
        woken.push(`${name}@${(yield* Clock.currentTimeMillis) - startMs}`)
      })
    const exit = world.run(
      Effect.all(
        [
          sleeper("late", 86_400_000),
          sleeper("a", 50),
          sleeper("b", 50),
          sleeper("soon", 1),
          sleeper("none", 0),
        ],
        { concurrency: "unbounded", discard: true },
      ),
    )
    expect(exit).toEqual(Exit.void)
    expect(woken).toEqual(["none@0", "soon@1", "a@50", "b@50", "late@86400000"])
    expect(world.now()).toBe(startMs + 86_400_000)
  })

  it("reports Deadlock if everybody waits, even for a Promise, and StepsExceeded if something never stops", () => {
    expect(() => make().run(Effect.never)).toThrow(Deadlock)
    expect(() => make().run(Effect.promise(() => Promise.resolve(1)))).toThrow(Deadlock)
    expect(() => make(1, 1000).run(Effect.forever(Effect.yieldNow))).toThrow(StepsExceeded)
    expect(() => make(1, 1000).run(Effect.forever(Effect.sleep(10)))).toThrow(StepsExceeded)
    expect(() => make(1, 1000).run(Effect.forever(Effect.void))).toThrow(StepsExceeded)
  })
})

describe("kill", () => {
  /** Ticks every 10 ms, holding a lock whose release is a finalizer. */
  const ticking = (log: Array<string>, name: string) =>
    Effect.sleep(10).pipe(
      Effect.andThen(Effect.sync(() => log.push(name))),
      Effect.forever,
      Effect.ensuring(Effect.sync(() => log.push(`${name} finalized`))),
    )

  it("stops one process without finalizers, and the others continue", () => {
    const world = make()
    const log: Array<string> = []
    const client = world.spawn("client", ticking(log, "client"))
    world.spawn("service", ticking(log, "service"))
    world.at(startMs + 25, client.kill)
    world.run(Effect.sleep(45))
    expect(log).toEqual(["client", "service", "client", "service", "service", "service"])
    expect([client.alive(), client.exit()]).toEqual([false, undefined])
  })

  it("leaves a dead process's fibers asleep whoever wakes or interrupts them", () => {
    const world = make()
    const log: Array<string> = []
    const latch = Effect.runSync(Deferred.make<void>())
    let inside: Fiber.Fiber<unknown, unknown> | undefined
    const victim = world.spawn(
      "victim",
      Effect.gen(function* () {
        inside = yield* Effect.forkChild(
          Deferred.await(latch).pipe(
            Effect.andThen(Effect.sync(() => log.push("woken"))),
            Effect.ensuring(Effect.sync(() => log.push("finalized"))),
          ),
        )
        yield* Effect.sleep("1 day")
      }),
    )
    world.run(Effect.sleep(5))
    victim.kill()
    world.run(Effect.andThen(Deferred.succeed(latch, undefined), Effect.sleep(5)))
    inside?.interruptUnsafe()
    world.run(Effect.sleep(5))
    expect(log).toEqual([])
  })

  it("works from within: nothing after it runs, not even a catch", () => {
    const world = make()
    const log: Array<string> = []
    const self: { die: Effect.Effect<never>; kill: () => void } = world.spawn<unknown, never>(
      "self",
      Effect.suspend(() =>
        Effect.sync(() => log.push("before")).pipe(
          Effect.andThen(self.die),
          Effect.catchCause(() => Effect.sync(() => log.push("caught"))),
          Effect.ensuring(Effect.sync(() => log.push("finalized"))),
        ),
      ),
    )
    const thrower: { kill: () => void } = world.spawn<unknown, never>(
      "thrower",
      Effect.suspend((): Effect.Effect<never> => {
        thrower.kill()
        throw new Error("cut here")
      }).pipe(Effect.catchCause(() => Effect.sync(() => log.push("caught")))),
    )
    world.run(Effect.sleep(5))
    expect(log).toEqual(["before"])
  })

  it("a request continues at the service if its caller is killed; a living caller gets its answer", () => {
    const world = make()
    const log: Array<string> = []
    const service = world.spawn("service", Effect.never)
    const request = service.perform(
      Effect.sleep(20).pipe(Effect.andThen(Effect.sync(() => `${log.push("applied")}`))),
    )
    const client = world.spawn(
      "client",
      Effect.map(request, (answer) => log.push(`heard ${answer}`)),
    )
    world.at(startMs + 10, client.kill)
    world.run(Effect.sleep(50))
    expect(log).toEqual(["applied"])
    expect(world.run(request)).toEqual(Exit.succeed("2"))
    expect(world.run(service.perform(Effect.fail("refused")))).toEqual(Exit.fail("refused"))
    service.kill()
    expect(() => world.run(request)).toThrow(Deadlock)
  })
})

describe("clocks", () => {
  it("a process's clock may jump by two days either way; sleeps and elapsed time do not notice", () => {
    const world = make()
    const day = 86_400_000
    const log: Array<number> = []
    const look = Effect.gen(function* () {
      const wall = yield* Clock.currentTimeMillis
      const elapsed = Number((yield* Clock.monotonicTimeNanos) / 1_000_000n)
      log.push(wall - startMs, elapsed - startMs)
    })
    const process = world.spawn("p", Effect.forever(Effect.andThen(look, Effect.sleep(1000))), {
      offsetMs: 5,
    })
    world.at(startMs + 500, () => process.jump(2 * day))
    world.at(startMs + 1500, () => process.jump(-4 * day))
    world.run(Effect.sleep(2500))
    expect(log).toEqual([5, 0, 2 * day + 1005, 1000, -2 * day + 2005, 2000])
    expect(world.now()).toBe(startMs + 2500)
  })
})
