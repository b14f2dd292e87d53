/**
 * A world in virtual time: one queue of tasks, one heap of timers, pumped synchronously, given to Effect
 * programs as their Scheduler and Clock. Several processes live in one world; one can be killed as `kill -9`
 * would, while the others go on. The same seed gives the same order of events, which `eventsHash` proves.
 * Nothing in here waits for the machine: a program that awaits a Promise ends as a `Deadlock`.
 */
import { Clock, Context, Duration, Effect, Random, References, Scheduler } from "effect"
import type { Exit, Fiber } from "effect"
import { DelayQueue } from "../../src/base/Time.ts"

/** Nothing is left to do, and somebody still waits. */
export class Deadlock extends Error {
  override readonly name = "Deadlock"
}

/** More events than the world allows: most likely a loop that never waits. */
export class StepsExceeded extends Error {
  override readonly name = "StepsExceeded"
}

export interface WorldOptions {
  /** Milliseconds since the epoch at which the world begins. */
  readonly startMs: number
  readonly seed: number | string
  /** How many tasks and timers may be executed in all. */
  readonly stepsMax?: number
}

const stepsMaxDefault = 20_000_000

interface Task {
  readonly owner: Process
  readonly run: () => void
}

interface Timer {
  /** The process whose timer it is; undefined for the world's own. */
  readonly owner: Process | undefined
  readonly fire: () => void
  cancelled: boolean
}

const isLive = ({ cancelled, owner }: Timer): boolean => !cancelled && owner?.alive !== false

/** One process's view of the world: what it schedules dies with it, and its wall clock may be wrong. */
class Process {
  alive = true
  offsetMs = 0
  readonly index: number
  readonly name: string
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>

  constructor(world: World, index: number, name: string) {
    this.index = index
    this.name = name
    const random = Effect.runSync(
      Effect.service(Random.Random).pipe(Random.withSeed(`${world.seed}/${index}/${name}`)),
    )
    const context = Context.make(Clock.Clock, clockOf(world, this)).pipe(
      Context.add(Random.Random, random),
      Context.add(Scheduler.Scheduler, schedulerOf(world, this)),
      // Nobody looks at the spans of a simulated process.
      Context.add(References.TracerEnabled, false),
    )
    this.fork = Effect.runForkWith(context)
  }
}

const schedulerOf = (world: World, owner: Process): Scheduler.Scheduler => ({
  executionMode: "sync",
  // A fiber of a dead process may still be woken by the living (a queue, a deferred, an interruption): it is
  // asked here before its first step, yields, and is never scheduled again. So not even its finalizers run.
  shouldYield: (fiber) => !owner.alive || fiber.currentOpCount >= fiber.cache.maxOpsBeforeYield,
  makeDispatcher: () => ({
    // One queue for all: priorities would only reorder tasks within one fiber's dispatcher.
    scheduleTask: (run) => world.enqueue(owner, run),
    // Effect flushes only where it runs an effect synchronously, and that brings a scheduler of its own.
    flush: () => {},
  }),
})

const clockOf = (world: World, owner: Process): Clock.Clock => {
  const millis = () => world.now() + owner.offsetMs
  const nanos = () => BigInt(millis()) * 1_000_000n
  const monotonic = () => BigInt(world.now()) * 1_000_000n
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    // Like a machine's timers, a sleep follows elapsed time, never the wall clock.
    sleep: (duration) => {
      const ms = Math.ceil(Duration.toMillis(duration))
      if (ms <= 0) return Effect.yieldNow
      if (!Number.isFinite(ms)) return Effect.never
      return Effect.callback<void>((resume) => world.sleep(owner, ms, () => resume(Effect.void)))
    },
  }
}

/** A process as the test holds it. */
export interface Handle<A, E> {
  readonly name: string
  readonly alive: () => boolean
  /** How its main effect ended; undefined while it runs, and for ever once it was killed. */
  readonly exit: () => Exit.Exit<A, E> | undefined
  /** Like kill -9: no fiber of it takes another step, no finalizer runs, its timers are gone. */
  readonly kill: () => void
  /** The same from within the process: nothing after it happens. */
  readonly die: Effect.Effect<never>
  /** Moves the process's wall clock by so many milliseconds, from now on; its sleeps are not disturbed. */
  readonly jump: (ms: number) => void
  /**
   * Runs an effect on this process for a fiber of another one, as a request over the network would: it goes
   * on though the caller is killed or interrupted, and a process that is dead never answers.
   */
  readonly perform: <B, F>(effect: Effect.Effect<B, F>) => Effect.Effect<B, F>
}

export class World {
  readonly seed: number | string
  private readonly stepsMax: number
  private readonly timers = new DelayQueue<Timer>()
  /** They stay until they come up, or are the majority. */
  private cancelled = 0
  private readonly processes: Array<Process> = []
  private tasks: Array<Task> = []
  private head = 0
  private nowMs: number
  private steps = 0
  private pumping = false
  private hashHigh = 0x811c9dc5
  private hashLow = 0x01000193

  private constructor(options: WorldOptions) {
    this.seed = options.seed
    this.nowMs = options.startMs
    this.stepsMax = options.stepsMax ?? stepsMaxDefault
  }

  static make(options: WorldOptions): World {
    return new World(options)
  }

  /** True time, milliseconds since the epoch; a process's own clock may differ. */
  now(): number {
    return this.nowMs
  }

  /** How many tasks and timers were executed. */
  get stepsTaken(): number {
    return this.steps
  }

  /** Depends on which process did something, when, in which order, and on every note. */
  get eventsHash(): string {
    const hex = (half: number) => (half >>> 0).toString(16).padStart(8, "0")
    return hex(this.hashHigh) + hex(this.hashLow)
  }

  /** Adds an event of the simulated domain (a request, a fact) to the hash. */
  note(text: string): void {
    for (let index = 0; index < text.length; index++) this.mix(text.charCodeAt(index))
    this.mix(text.length)
  }

  /** Calls back at a time of the world, or at once if it is past; returns how to take it back. */
  at(ms: number, fire: () => void): () => void {
    return this.setTimer(Math.max(ms, this.nowMs), undefined, fire)
  }

  /** Starts a process: its first step is a task of the queue like every other. */
  spawn<A, E>(
    name: string,
    effect: Effect.Effect<A, E>,
    options?: { readonly offsetMs?: number },
  ): Handle<A, E> {
    const process = new Process(this, this.processes.length, name)
    process.offsetMs = options?.offsetMs ?? 0
    this.processes.push(process)
    let exit: Exit.Exit<A, E> | undefined
    this.enqueue(process, () => {
      process.fork(effect).addObserver((ended) => (exit = ended))
    })
    const kill = () => {
      process.alive = false
      this.sweepTimers()
    }
    return {
      name,
      alive: () => process.alive,
      exit: () => exit,
      kill,
      die: Effect.suspend(() => {
        kill()
        return Effect.never
      }),
      jump: (ms) => {
        process.offsetMs += ms
      },
      perform: (wanted) => this.perform(process, wanted),
    }
  }

  /** Runs one effect as a process of its own until it ends; the other processes go on meanwhile. */
  run<A, E>(effect: Effect.Effect<A, E>): Exit.Exit<A, E> {
    const main = this.spawn("main", effect)
    this.runUntil(() => main.exit() !== undefined)
    const exit = main.exit()
    if (exit === undefined) throw new Deadlock("The main process did not end.")
    return exit
  }

  /** Executes tasks and timers until something holds. */
  runUntil(done: () => boolean): void {
    if (this.pumping) throw new Error("The world is already being pumped: fork or spawn instead.")
    this.pumping = true
    try {
      while (!done()) {
        if (!this.step()) throw new Deadlock(`At ${this.nowMs} nothing is left to do. ${this.roll()}`)
      }
    } finally {
      this.pumping = false
    }
  }

  /** For the world's own clocks and schedulers. What a dead process schedules is dropped. */
  enqueue(owner: Process, run: () => void): void {
    if (owner.alive) this.tasks.push({ owner, run })
  }

  /** For the world's own clocks; answers how to cancel. */
  sleep(owner: Process, ms: number, fire: () => void): Effect.Effect<void> {
    return Effect.sync(this.setTimer(this.nowMs + ms, owner, fire))
  }

  /** Returns how to cancel it. */
  private setTimer(atMs: number, owner: Process | undefined, fire: () => void): () => void {
    const timer: Timer = { owner, fire, cancelled: false }
    this.timers.add(timer, atMs)
    return () => {
      if (timer.cancelled) return
      timer.cancelled = true
      this.cancelled++
      if (this.cancelled > 1024 && this.cancelled * 2 > this.timers.size) this.sweepTimers()
    }
  }

  /** Drops what was cancelled or belongs to a dead process. */
  private sweepTimers(): void {
    this.timers.remove((timer) => !isLive(timer))
    this.cancelled = 0
  }

  /** The next timer that still counts, taken out, at its time; undefined when there is none. */
  private takeTimer(): Timer | undefined {
    for (;;) {
      const atMs = this.timers.nextAt
      const timer = atMs === undefined ? undefined : this.timers.takeDue(atMs)
      if (atMs === undefined || timer === undefined) return undefined
      if (isLive(timer)) {
        // A timer that has fired can no longer be cancelled.
        timer.cancelled = true
        this.nowMs = atMs
        return timer
      }
      if (timer.cancelled) this.cancelled--
    }
  }

  private perform<A, E>(process: Process, wanted: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.withFiber((caller) =>
      Effect.callback<A, E>((resume) => {
        // The answer is a task of the caller's own process: if that is dead by then, nobody hears it.
        const { currentDispatcher } = caller
        const answer = (exit: Exit.Exit<A, E>) => currentDispatcher.scheduleTask(() => resume(exit), 0)
        this.enqueue(process, () => void process.fork(wanted).addObserver(answer))
      }),
    )
  }

  /** Executes one event; false when there is none. All tasks of a moment come before the next timer. */
  private step(): boolean {
    const task = this.takeTask()
    if (task !== undefined) {
      this.count(task.owner.index)
      task.run()
      return true
    }
    const timer = this.takeTimer()
    if (timer === undefined) return false
    this.count(timer.owner === undefined ? -1 : -2 - timer.owner.index)
    timer.fire()
    return true
  }

  private takeTask(): Task | undefined {
    for (;;) {
      const task = this.tasks[this.head]
      if (task === undefined) {
        this.tasks = []
        this.head = 0
        return undefined
      }
      this.head++
      // Executed tasks are let go in large pieces: shifting the array would cost each time.
      if (this.head > 65_536) {
        this.tasks = this.tasks.slice(this.head)
        this.head = 0
      }
      if (task.owner.alive) return task
    }
  }

  private count(what: number): void {
    this.steps++
    if (this.steps > this.stepsMax) {
      throw new StepsExceeded(`More than ${this.stepsMax} events. ${this.roll()}`)
    }
    this.mix(what)
    this.mix(this.nowMs | 0)
    this.mix(Math.floor(this.nowMs / 2 ** 32))
  }

  private mix(value: number): void {
    this.hashHigh = Math.imul(this.hashHigh ^ value, 0x01000193)
    this.hashLow = Math.imul(this.hashLow ^ (this.hashHigh >>> 15) ^ value, 0x85ebca6b)
  }

  private roll(): string {
    const names = this.processes.filter((one) => one.alive).map((one) => one.name)
    return `Alive: ${names.join(", ") || "nobody"}; ${this.steps} events so far.`
  }
}
