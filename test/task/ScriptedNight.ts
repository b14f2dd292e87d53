/**
 * Runs against a scripted service in virtual time, by one process or several that follow each other: who was
 * called when, and what the ledger holds afterwards.
 */
import { Duration, Effect, Exit, Redacted, type Layer } from "effect"
import { Hints, type HintBoard } from "../../src/client/Hints.ts"
import type { EventView } from "../../src/client/Views.ts"
import { builtInSources } from "../../src/service/FlowResults.ts"
import { executeRun } from "../../src/task/ExecuteRun.ts"
import type { Failure } from "../../src/task/Night.ts"
import { Progress, type ProgressEvent } from "../../src/task/Progress.ts"
import { Steering, type SteerableNight } from "../../src/task/NightPicture.ts"
import type { LeftOpen, Mode } from "../../src/task/Next.ts"
import type { Prepared, Rules, TaskWork } from "../../src/task/Work.ts"
import type { Landing } from "../../src/landing/Landing.ts"
import { LandingMemory, type LandingStore } from "../harness/LandingMemory.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { World } from "../simulation/World.ts"
import { scripted, silent, type Call, type Script } from "./ScriptedService.ts"
import type { LoginKeys } from "../../src/privacy/Fingerprint.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"

export const run_id = anId("job.2026-11-21")
export const idOf = (customer_id: string, engine = "bank") => anId(`${run_id}/${customer_id}/${engine}`)

export const succeeded = "succeeded COMPLETED nobody"
export const unusable = "failed ANSWER_UNUSABLE engineer"
export const unknown = "unfinished START_UNKNOWN engineer"
export const outOfService = "unfinished OUT_OF_SERVICE service"
export const engineAway = "unfinished ENGINE_UNAVAILABLE service"
export const busy = "unfinished ALREADY_EXECUTING service"
export const blockedUser = "failed BLOCKED_USER customer"

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

export const rules: Rules = {
  limits: { max_in_flight: 100, per_engine: 20 },
  polling: { min: Duration.millis(2 * second), max: Duration.millis(minute) },
  retry: { max_attempts: 3, base: Duration.millis(30 * second), max: Duration.millis(15 * minute) },
  max_wait: Duration.millis(3.5 * hour),
  service: "http://old",
  sources: builtInSources,
  flow_results: {
    enabled: true,
    min_interval: Duration.millis(5 * second),
    wait_final: Duration.millis(10 * minute),
    attachments: true,
  },
  deadlineAt: undefined,
}

export interface NightTask {
  readonly customer: string
  readonly engine?: string
  readonly fingerprint?: string
  readonly account?: string
  /** The values that identify the user, if they are not the account. */
  readonly identity?: ReadonlyArray<string>
  readonly needs?: Duration.Duration
  readonly takesMs?: number
  readonly looks?: ReadonlyArray<number>
  /** How often the engine is away before it can be started; `silent` never says. */
  readonly prepare?: (times: number) => Prepared | typeof silent
  /** The job does not name the task any more. */
  readonly dropped?: true
}

/** A login to its own account, unless one is named. */
export const keysOf = (
  fingerprint: string | undefined,
  account = fingerprint,
  identity: ReadonlyArray<string> = account === undefined ? [] : [account],
): LoginKeys => {
  if (fingerprint === undefined || account === undefined) return { fingerprint }
  const of = { account, identity, password: fingerprint, former: [fingerprint], isByHand: true }
  return { fingerprint, account: of }
}

export const ready = (...named: Parameters<typeof keysOf>): Prepared => ({
  _tag: "Ready",
  keys: keysOf(...named),
  call: {
    engine_reference: anId("bank"),
    customer_id: anId(""),
    login: { _tag: "Parameters", parameters: Redacted.make({}) },
    base_configurations: {
      customer_interaction_available: false,
      execution_timeout: 1_200,
      unlock_protected_data: false,
      tokenized_access: false,
    },
    features: [],
    hooks_extra_data: {},
    configurations: {},
  },
})

/** Tasks that send one and the same login. */
export const sharing = (fingerprint: string, ...customers: ReadonlyArray<string>): ReadonlyArray<NightTask> =>
  customers.map((customer) => ({ customer, fingerprint }))
export const customers = (count: number): ReadonlyArray<NightTask> =>
  Array.from({ length: count }, (_, index) => ({ customer: `c-${index}` }))

/** What an earlier process left of the first start of a task. */
export const startedBefore = (
  customer: string,
  answer: Omit<Extract<Fact, { _tag: "StartAnswered" }>, "_tag" | "run_id" | "task_id" | "attempt">,
  fingerprint?: string,
): ReadonlyArray<Fact> => {
  const of = { run_id, task_id: idOf(customer), attempt: 1 }
  const login = fingerprint === undefined ? {} : { fingerprint }
  return [
    { _tag: "StartIntended", ...of, external_execution_id: "x", ...login, probe: false },
    { _tag: "StartAnswered", ...of, ...answer },
  ]
}

const workOf = ({
  customer,
  engine = "bank",
  fingerprint,
  account,
  identity,
  prepare,
  dropped,
  ...more
}: NightTask): TaskWork => {
  let times = 0
  const prepared = Effect.suspend((): Effect.Effect<Prepared> => {
    times += 1
    const answer = prepare?.(times) ?? ready(fingerprint, account, identity)
    if (answer._tag === "Silent") return Effect.never
    return Effect.succeed(
      answer._tag === "Ready"
        ? { ...answer, call: { ...answer.call, customer_id: anId(customer), engine_reference: anId(engine) } }
        : answer,
    )
  })
  return {
    task_id: idOf(customer, engine),
    customer_id: anId(customer),
    engine_reference: anId(engine),
    ...keysOf(fingerprint, account, identity),
    prepare: dropped === true ? undefined : prepared,
    ...more,
  }
}

const begin = (tasks: ReadonlyArray<NightTask>, sessions: ReadonlyArray<string>): ReadonlyArray<Fact> => [
  {
    _tag: "RunStarted",
    run_id,
    job: "job",
    job_path: "j",
    run_date: "2026-11-21",
    tool_version: "0",
    service: rules.service,
  },
  ...tasks.map(({ customer, engine = "bank" }): Fact =>
    aFact("TaskPlanned", {
      run_id,
      task_id: idOf(customer, engine),
      customer_id: customer,
      engine_reference: engine,
    }),
  ),
  ...sessions.map((session_id): Fact =>
    aFact("TaskPlanned", { run_id, task_id: `${run_id}/session/${session_id}`, session_id }),
  ),
]

/** A place in which several processes follow each other; its time begins at 0. */
export interface Place {
  readonly world: World
  readonly ledger: Layer.Layer<Ledger>
  readonly store: LandingStore
  readonly calls: Array<Call>
  /** What lands bodies, if not the store. */
  readonly landing?: Layer.Layer<Landing>
  /** A token store that outlives the processes. */
  readonly tokens?: Layer.Layer<never>
}
export const makePlace = (): Place => ({
  world: World.make({ startMs: 0, seed: "night" }),
  ledger: Ledger.layerOver(openLedger({ path: ":memory:" })),
  store: LandingMemory.makeStore(),
  calls: [],
})

export interface Night {
  readonly tasks?: ReadonlyArray<NightTask>
  readonly sessions?: ReadonlyArray<string>
  readonly script?: Script
  readonly rules?: Partial<Rules>
  readonly mode?: Mode
  /** Facts that an earlier process left, after the beginning. */
  readonly facts?: ReadonlyArray<Fact>
  /** What the process takes the state of the run for, if not for what its facts say. */
  readonly misread?: (state: RunState) => RunState
  readonly place?: Place
  /** What other runs left open. */
  readonly elsewhere?: ReadonlyArray<LeftOpen>
  /** Webhooks are on: what `events` say comes at these milliseconds, counted from the process's beginning. */
  readonly board?: HintBoard
  readonly events?: ReadonlyArray<readonly [ms: number, event: EventView]>
  /** What the night tells while it runs goes here. */
  readonly told?: Array<ProgressEvent>
  /** Hears the same with the night that tells it, and may fail over it. */
  readonly hear?: (event: ProgressEvent, night: SteerableNight) => void
  /** Whoever looks on gets the night before it starts anything. */
  readonly hold?: (night: SteerableNight) => void
  /** What happens to the night at these milliseconds, counted from the process's beginning. */
  readonly acts?: ReadonlyArray<readonly [ms: number, act: (night: SteerableNight) => void]>
  /** The process is interrupted after this; by default it gets two days. */
  readonly cutAfter?: Duration.Input
  /** The process is killed after so many milliseconds: not even its finalizers run. */
  readonly killAfter?: number
}

export interface NightEnd {
  readonly isOver: boolean
  readonly state: RunState
  readonly facts: ReadonlyArray<Fact>
  readonly calls: ReadonlyArray<Call>
  /** `outcome reason who_acts` of a customer's task, as settled. */
  readonly verdict: (customer: string, engine?: string) => string | undefined
  /** Those of these customers, or of all its tasks. */
  readonly verdicts: (...customers: ReadonlyArray<string>) => ReadonlyArray<string | undefined>
  /** What has landed, and is known of each body. */
  readonly landed: NonNullable<ReturnType<LandingStore["bodies"]["get"]>>
  /** The facts of one kind. */
  readonly of: <T extends Fact["_tag"]>(tag: T) => ReadonlyArray<Extract<Fact, { _tag: T }>>
  /** When the service was asked for that, about this id or about any. */
  readonly timesOf: (verb: string, id?: string) => ReadonlyArray<number>
  readonly countOf: (verb: string, id?: string) => number
  /** How many starts were sent. */
  readonly starts: number
  /** Fingerprints that were rejected, with the reasons. */
  readonly rejections: ReadonlyArray<readonly [fingerprint: string, reason: string]>
}

/** Where whoever looks on finds the night, as soon as there is one. */
interface Seat {
  night: SteerableNight
}

/** One process works on the run until it is done, interrupted or killed. */
export const night = (given: Night): Effect.Effect<NightEnd, Failure> =>
  Effect.suspend(() => {
    const place = given.place ?? makePlace()
    const { world } = place
    const seat = {} as Seat
    const process = world.spawn("night", runProcess(given, place, seat))
    for (const [ms, event] of given.events ?? []) world.at(world.now() + ms, () => given.board?.offer(event))
    for (const [ms, act] of given.acts ?? []) world.at(world.now() + ms, () => act(seat.night))
    const isKilled = () => given.killAfter !== undefined && !process.alive()
    if (given.killAfter !== undefined) world.at(world.now() + given.killAfter, process.kill)
    world.runUntil(() => process.exit() !== undefined || isKilled())
    const exit = process.exit()
    if (exit !== undefined && Exit.isFailure(exit)) return Effect.failCause(exit.cause)
    const timesOf = (verb: string, id?: string) =>
      place.calls.flatMap(([at, what, whom]) =>
        what === verb && (id === undefined || whom === id) ? [at] : [],
      )
    return Effect.map(loadRun(place), ({ state: end, facts }) => {
      const verdict: NightEnd["verdict"] = (customer, engine) => {
        const settled = end.tasks.get(idOf(customer, engine))?.settled?.fact
        return settled && `${settled.outcome} ${settled.reason} ${settled.who_acts}`
      }
      const of: NightEnd["of"] = (tag) =>
        facts.filter((fact): fact is Extract<Fact, { _tag: typeof tag }> => fact._tag === tag)
      return {
        isOver: exit?.value === true,
        state: end,
        facts,
        calls: place.calls,
        landed: place.store.bodies.get(run_id) ?? [],
        verdict,
        verdicts: (...chosen) =>
          chosen.length === 0
            ? (given.tasks ?? []).map((task) => verdict(task.customer, task.engine))
            : chosen.map((customer) => verdict(customer)),
        of,
        timesOf,
        countOf: (verb, id) => timesOf(verb, id).length,
        starts: timesOf("start").length,
        rejections: of("CredentialRejected").map(({ fingerprint, reason }) => [fingerprint, reason] as const),
      }
    })
  })

const loadRun = (place: Place) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const recorded = yield* ledger.facts(run_id)
    const run = foldRun(recorded)
    return run === undefined
      ? yield* Effect.die("the run has no beginning")
      : { state: run, facts: recorded.map(({ fact }) => fact) }
  }).pipe(Effect.provide(place.ledger))

/** True when the run came to its end before it was interrupted. */
const runProcess = (given: Night, place: Place, seat: Seat) => {
  const tasks = given.tasks ?? [{ customer: "c-1" }]
  const sessions = given.sessions ?? []
  return Effect.gen(function* () {
    const ledger = yield* Ledger
    if ((yield* ledger.facts(run_id)).length === 0)
      yield* ledger.append([...begin(tasks, sessions), ...(given.facts ?? [])])
    const { state } = yield* loadRun(place)
    const run = executeRun({
      elsewhere: given.elsewhere ?? [],
      run: given.misread?.(state) ?? state,
      works: tasks.map(workOf),
      sessions: sessions.map((session_id) => ({
        task_id: anId(`${run_id}/session/${session_id}`),
        session_id: anId(session_id),
        customer_id: undefined,
      })),
      rules: { ...rules, ...given.rules },
      mode: given.mode ?? "night",
    })
    const { board } = given
    const hinted = board === undefined ? run : Effect.provideService(run, Hints, board.source)
    const tell = (event: ProgressEvent) =>
      Effect.sync(() => {
        given.told?.push(event)
        given.hear?.(event, seat.night)
      })
    const hold = (held: SteerableNight) =>
      Effect.sync(() => {
        seat.night = held
        given.hold?.(held)
      })
    const execution = hinted.pipe(
      Effect.provideService(Progress, { tell }),
      Effect.provideService(Steering, { hold, look: () => undefined }),
    )
    const interruption = Effect.sleep(given.cutAfter ?? "2 days")
    return yield* Effect.raceFirst(Effect.as(execution, true), Effect.as(interruption, false))
  }).pipe(
    Effect.provide([
      place.ledger,
      place.landing ?? LandingMemory.layer(place.store),
      scripted(given.script ?? {}, place.calls),
      ...(place.tokens === undefined ? [] : [place.tokens]),
    ]),
  )
}
