/** What an operator sees of the running night, and what his orders change: only what starts, never what runs. */
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import * as fc from "fast-check"
import { outcomes } from "../../src/service/EndTable.ts"
import { NightPicture, Order, Steered, pauseMax } from "../../src/task/NightPicture.ts"
import type { EnginePicture, SteerableNight } from "../../src/task/NightPicture.ts"
import { hour, idOf, makePlace, minute, night, ready, second, customers, succeeded } from "./ScriptedNight.ts"
import { outOfService } from "./ScriptedNight.ts"
import type { Night, NightTask } from "./ScriptedNight.ts"
import {
  accepted,
  completed,
  conflict,
  lost,
  state,
  throttled,
  working,
  type Script,
} from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

/** An execution is looked at each minute, and over after twelve. */
const polling = { min: Duration.minutes(1), max: Duration.minutes(1) }
const slow: Script = { state: (_, times) => (times < 12 ? working : completed) }

/** A night with orders at their times; returns the answers beside the end. */
const steered = (
  orders: ReadonlyArray<readonly [ms: number, order: Order]>,
  given: Night,
  everyTenMinutes: (seen: NightPicture) => void = () => undefined,
) => {
  const answers: Array<Steered> = []
  return Effect.map(
    night({
      ...given,
      acts: [
        ...orders.map(
          ([ms, order]) => [ms, (held: SteerableNight) => void answers.push(held.steer(order))] as const,
        ),
        ...Array.from(
          { length: 14 },
          (_, index) =>
            [index * 10 * minute + 30_000, (held: SteerableNight) => everyTenMinutes(held.look())] as const,
        ),
      ],
    }),
    (end) => ({ end, answers }),
  )
}

const changes = (answers: ReadonlyArray<Steered>) =>
  answers.map((one) => (one._tag === "Steered" ? one.changed : one.why))
const limits = { max_in_flight: 2, per_engine: 20 }

describe("an order", () => {
  effect("to pause keeps tasks from starting until a resume; what runs is followed", function* () {
    const { end, answers } = yield* steered(
      [
        [minute, { _tag: "Resume" }],
        [minute, { _tag: "Pause" }],
        [minute, { _tag: "Pause" }],
        [3 * hour, { _tag: "Resume" }],
      ],
      { tasks: customers(4), script: slow, rules: { polling, limits } },
    )
    expect(changes(answers)).toEqual([false, true, false, true])
    const until = minute + Duration.toMillis(pauseMax)
    expect(answers.map(({ night: { state, paused_until } }) => [state, paused_until])).toEqual([
      ["running", undefined],
      ["paused", until],
      ["paused", until],
      ["running", undefined],
    ])
    const times = end.timesOf("start")
    expect(times.slice(0, 2).every((ms) => ms < minute)).toBe(true)
    expect(times.slice(2).every((ms) => ms >= 3 * hour && ms < 3 * hour + minute)).toBe(true)
    expect(times.length).toBe(4)
    expect(end.of("RunSteered")).toMatchObject([{ order: "pause" }, { order: "resume" }])
    expect(new Set(customers(4).map(({ customer }) => end.verdict(customer)))).toEqual(new Set([succeeded]))
  })

  effect("to pause does not move the deadline", function* () {
    const { end } = yield* steered([[minute, { _tag: "Pause" }]], {
      tasks: customers(3),
      script: slow,
      rules: { polling, limits, deadlineAt: hour },
    })
    expect([end.isOver, end.starts]).toEqual([true, 2])
    expect(end.verdict("c-2")).toBe("unfinished DEADLINE_REACHED service")
    expect(end.state.tasks.get(idOf("c-2"))?.settled?.at).toBe(hour)
  })

  effect("to pause becomes a drain if nobody resumes the night", function* () {
    const { end } = yield* steered([[minute, { _tag: "Pause" }]], {
      tasks: customers(3),
      script: slow,
      rules: { polling, limits },
    })
    expect([end.isOver, end.starts, end.verdict("c-2")]).toEqual([true, 2, "unfinished RUN_DRAINED engineer"])
    const settled = end.state.tasks.get(idOf("c-2"))?.settled
    expect(settled?.at).toBe(minute + Duration.toMillis(pauseMax))
    expect(end.of("RunSteered")).toMatchObject([
      { order: "pause" },
      { order: "drain", because: "pause_over" },
    ])
  })

  effect("to drain starts nothing more and cannot be taken back [end RUN_DRAINED]", function* () {
    const { end, answers } = yield* steered(
      [
        [minute, { _tag: "Pause" }],
        [minute, { _tag: "Drain" }],
        [minute, { _tag: "Drain" }],
        [minute, { _tag: "Resume" }],
        [minute, { _tag: "Limit", per_engine: 1 }],
      ],
      {
        tasks: customers(4),
        script: {
          state: (id, times) =>
            times < 12
              ? working
              : id.startsWith("e-c-0")
                ? state("TEMPORARY_ERROR", "OUT_OF_SERVICE")
                : completed,
        },
        rules: { polling, limits },
      },
    )
    expect(changes(answers)).toEqual([true, true, false, "draining", "draining"])
    const wire = Schema.fromJsonString(Steered)
    expect(answers.map((one) => Schema.decodeSync(wire)(Schema.encodeSync(wire)(one)))).toEqual(answers)
    const [paused, ...drained] = answers.map(({ night: seen }) => seen.paused_until)
    expect([paused !== undefined, new Set(drained)]).toEqual([true, new Set([undefined])])
    expect([end.isOver, end.starts]).toEqual([true, 2])
    expect(customers(4).map(({ customer }) => end.verdict(customer))).toEqual([
      outOfService,
      succeeded,
      "unfinished RUN_DRAINED engineer",
      "unfinished RUN_DRAINED engineer",
    ])
    const place = (tag: string) => end.facts.findIndex(({ _tag }) => _tag === tag)
    expect(place("RunSteered")).toBeLessThan(place("TaskSettled"))
  })

  effect("to drain shortens no wait that the service asked for [promise 10 drained]", function* () {
    const place = makePlace()
    const script: Script = {
      start: (_, times) => (times < 2 ? throttled(429, 20 * minute) : accepted("c-1-1")),
    }
    const tasks = [{ customer: "c-1" }]
    const { end: drained } = yield* steered([[minute, { _tag: "Drain" }]], { place, script, tasks })
    expect([drained.isOver, drained.verdict("c-1")]).toEqual([true, "unfinished RUN_DRAINED engineer"])
    const [wait] = drained.of("TaskWaits")
    const end = yield* night({ place, script, tasks })
    const [first = 0, again = 0] = end.timesOf("start")
    expect([again, again - first > 20 * minute]).toEqual([Date.parse(wait?.until ?? ""), true])
    expect(end.verdict("c-1")).toBe(succeeded)
  })

  effect("to change limits counts from the next start, in both directions, up to the job's", function* () {
    const running: Array<number> = []
    const { end, answers } = yield* steered(
      [
        [minute, { _tag: "Limit", max_in_flight: 1 }],
        [minute, { _tag: "Limit", max_in_flight: 1 }],
        [2 * hour, { _tag: "Limit", max_in_flight: 4 }],
        [2 * hour, { _tag: "Limit", max_in_flight: 5 }],
        [2 * hour, { _tag: "Limit", per_engine: 21 }],
      ],
      {
        tasks: customers(40),
        script: slow,
        rules: { polling, limits: { max_in_flight: 4, per_engine: 20 } },
      },
      ({ total }) => running.push(total.running),
    )
    expect(changes(answers)).toEqual([true, false, true, "above_job", "above_job"])
    const [first, ...later] = running
    expect([first, new Set(later.slice(1, 10)), later[12]]).toEqual([4, new Set([1]), 4])
    expect(end.of("RunSteered")).toMatchObject([
      { order: "limit", max_in_flight: 1, per_engine: 20 },
      { order: "limit", max_in_flight: 4, per_engine: 20 },
    ])
    expect(end.isOver).toBe(true)
  })
})

const placesOf = ({ queued, waiting, running, done }: EnginePicture): number =>
  queued +
  waiting.time +
  waiting.engine +
  waiting.conflict +
  running +
  outcomes.reduce((sum, outcome) => sum + done[outcome], 0)

/** What the service may do with a task, as a word. */
const fates = ["ok", "slow", "busy", "away", "again", "wrong"] as const
type Fate = (typeof fates)[number]
const fateOf = (id: string): Fate | undefined => fates.find((fate) => id.includes(fate))

const script: Script = {
  start: (call, times) =>
    fateOf(call.customer_id) === "busy" && times < 3
      ? conflict("theirs", "x")
      : fateOf(call.customer_id) === "away" && times < 3
        ? { _tag: "EngineUnavailable" }
        : accepted(`${call.customer_id}-${times}`),
  state: (id, times) => {
    switch (fateOf(id)) {
      case "slow":
        return times < 9 ? working : completed
      case "again":
        return state("TEMPORARY_ERROR", "OUT_OF_SERVICE")
      case "wrong":
        return state("AUTH_ERROR", "INCORRECT_CREDENTIALS")
      default:
        return completed
    }
  },
}

it("the limits that may be asked for are whole numbers from 1 to 100000", () => {
  const isOrder = (per_engine: number) => Schema.is(Order)({ _tag: "Limit", per_engine })
  expect([0, 1, 1.5, 100_000, 100_001].map(isOrder)).toEqual([false, true, false, true, false])
})

describe("the picture of a night", () => {
  const pictureAt = (ms: number, given: Night) =>
    Effect.suspend(() => {
      let picture: NightPicture | undefined
      const acts = [[ms, (held: SteerableNight) => void (picture = held.look())]] as const
      return Effect.map(night({ ...given, acts }), (end) => ({ picture, end }))
    })
  /** A start is sent and answered. */
  const openedMs = 200
  const engineOf = (index: number) => `e-${String(index).padStart(3, "0")}`

  effect("shows a hundred engines by name, those with the most tasks, and the rest as one row", function* () {
    const tasks = [...Array.from({ length: 101 }, (_, index) => index), 101, 101].map((engine, index) => ({
      customer: `c-${index}`,
      engine: engineOf(engine),
    }))
    const { picture } = yield* pictureAt(minute, {
      tasks,
      script: { state: () => working },
      rules: { limits: { max_in_flight: 200, per_engine: 20 } },
      cutAfter: "2 minutes",
    })
    const rows = picture?.engines.map(({ engine_reference, tasks: count }) => [engine_reference, count])
    expect(rows).toEqual([
      ...Array.from({ length: 99 }, (_, index) => [engineOf(index), 1]),
      [engineOf(101), 2],
      ["(other engines)", 2],
    ])
    expect(picture?.total.tasks).toBe(103)
  })

  effect("shows the slowest task, the pace, and when the service answered last", function* () {
    const late: NightTask["prepare"] = (times) => (times === 1 ? { _tag: "Unavailable" } : ready("late"))
    const { picture, end } = yield* pictureAt(7 * minute, {
      tasks: [
        { customer: "c-0", engine: "a" },
        { customer: "c-1", engine: "b", fingerprint: "late", prepare: late },
        { customer: "c-2", engine: "c" },
      ],
      script: { state: (id, times) => (id.includes("c-2") && times > 1 ? completed : working) },
      rules: { polling, deadlineAt: 3 * hour },
      cutAfter: "10 minutes",
    })
    const [first = 0] = end.timesOf("start")
    const answers = end.calls.map(([ms]) => ms + 200).filter((ms) => ms <= 7 * minute)
    expect(picture?.total).toMatchObject({
      running: 2,
      per_hour: 8.6,
      slowest: { task_id: idOf("c-0", "a"), running_ms: 7 * minute - first - openedMs },
    })
    expect(picture?.deadline_at).toBe(3 * hour)
    expect(picture?.service).toEqual({ last_answer_at: answers.at(-1) })
  })

  effect(
    "shows what was over before, and how many are settled per hour since its process began",
    function* () {
      const place = makePlace()
      const script = (...over: ReadonlyArray<string>): Script => ({
        state: (id) => (over.some((customer) => id.includes(customer)) ? completed : working),
      })
      yield* night({ place, tasks: customers(3), script: script("c-2"), cutAfter: "1 hour" })
      const given = { place, tasks: customers(3), script: script("c-0"), cutAfter: "10 minutes" } as const
      const { picture } = yield* pictureAt(minute, given)
      expect([picture?.began_at, picture?.at]).toEqual([hour, hour + minute])
      const done = { succeeded: 2 }
      expect(picture?.total).toMatchObject({ tasks: 3, running: 1, queued: 0, per_hour: 60, done })
    },
  )

  effect("shows a task before anything is done about it as one that waits for a slot", function* () {
    let first: NightPicture | undefined
    yield* night({ tasks: customers(2), sessions: ["s-1"], hold: (one) => void (first = one.look()) })
    expect(first?.engines.map((row) => [row.engine_reference, row.queued, row.running])).toEqual([
      ["(session)", 0, 1],
      ["bank", 2, 0],
    ])
  })

  effect("shows since when the service is silent, once that is an outage", function* () {
    const seen = (ms: number) =>
      Effect.map(pictureAt(ms, { script: { state: () => lost }, cutAfter: "5 minutes" }), (one) => ({
        service: one.picture?.service,
        asked: one.end.calls.map(([at]) => at),
      }))
    const early = yield* seen(8 * second)
    const later = yield* seen(minute)
    const [started = 0, silentAt = 0] = later.asked
    const last_answer_at = started + 200
    expect([early.service, later.service]).toEqual([
      { last_answer_at },
      { last_answer_at, silent_since: silentAt + 200 },
    ])
  })

  effect("shows no end that is expected once nothing is left", function* () {
    let held: SteerableNight | undefined
    yield* night({
      tasks: [{ customer: "c-0", takesMs: 30 * minute }],
      hold: (one) => {
        held = one
      },
    })
    expect(held?.look()).toMatchObject({ total: { done: { succeeded: 1 } } })
    expect(held?.look().expected_end_at).toBeUndefined()
  })

  effect("shows when it will end if that is known of every task that is left, of none else", function* () {
    const half = 30 * minute
    const script: Script = { state: () => working }
    const expected = (tasks: ReadonlyArray<NightTask>) =>
      Effect.map(pictureAt(10 * minute, { tasks, script, cutAfter: "11 minutes" }), ({ picture, end }) => {
        const [first = 0] = end.timesOf("start")
        return picture?.expected_end_at === undefined ? undefined : picture.expected_end_at - first - openedMs
      })
    const known = { customer: "c-0", takesMs: half }
    expect([
      yield* expected([known]),
      yield* expected([known, { customer: "c-1" }]),
      yield* expected([{ customer: "c-1" }]),
    ]).toEqual([30 * minute, undefined, undefined])
    const over = yield* pictureAt(10 * minute, {
      tasks: [{ customer: "c-1" }, { customer: "c-2", takesMs: half }],
      script: { state: (id) => (id.includes("c-1") ? completed : working) },
      cutAfter: "11 minutes",
    })
    expect(over.picture?.expected_end_at).toBe((over.end.timesOf("start")[1] ?? 0) + openedMs + 30 * minute)
  })

  it("counts every task once at every moment, per engine and in total, and survives the wire", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ fate: fc.constantFrom(...fates), engine: fc.nat(2), login: fc.nat(5) }), {
          minLength: 1,
          maxLength: 25,
        }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.constantFrom("Pause", "Resume", "Look", "Look"), { maxLength: 12 }),
        async (drafts, max_in_flight, acts) => {
          const pictures: Array<NightPicture> = []
          let held: SteerableNight | undefined
          const look = () => {
            if (held !== undefined) pictures.push(held.look())
          }
          const end = await Effect.runPromise(
            night({
              tasks: drafts.map(({ fate, engine, login }, index) => ({
                customer: `${fate}-${index}`,
                engine: `e${engine}`,
                fingerprint: `l${login}`,
              })),
              sessions: ["s-1"],
              rules: { limits: { max_in_flight, per_engine: 2 }, deadlineAt: 9 * hour },
              script,
              hold: (one) => {
                held = one
              },
              hear: look,
              acts: acts.map((act, index) => [
                index * 7 * minute,
                () => (act === "Look" ? look() : held?.steer({ _tag: act as "Pause" | "Resume" })),
              ]),
            }),
          )
          look()
          expect(pictures.length).toBeGreaterThan(0)
          for (const one of pictures) {
            expect([one.total, ...one.engines].map(placesOf)).toEqual(
              [one.total, ...one.engines].map(({ tasks }) => tasks),
            )
            expect(one.total.tasks).toBe(drafts.length + 1)
          }
          const last = pictures.at(-1)
          expect(last?.total.running).toBe(0)
          const settled = [...end.state.tasks.values()].flatMap((task) => task.settled?.fact.outcome ?? [])
          expect(outcomes.map((outcome) => last?.total.done[outcome])).toEqual(
            outcomes.map((outcome) => settled.filter((one) => one === outcome).length),
          )
          const wire = Schema.fromJsonString(NightPicture)
          expect(last && Schema.decodeSync(wire)(Schema.encodeSync(wire)(last))).toEqual(last)
        },
      ),
      { numRuns: 10 },
    )
  })
})
