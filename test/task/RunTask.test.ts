/** One task from its slot to its execution: what is sent, put off and given up, and what is free then. */
import { describe, expect } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { SecretRefused } from "../../src/client/Service.ts"
import { own } from "../../src/service/Ends.ts"
import type { ProgressEvent } from "../../src/task/Progress.ts"
import type { Prepared } from "../../src/task/Work.ts"
import { TokenStore } from "../../src/tokens/TokenStore.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { hour, idOf, makePlace, minute, night, ready, run_id, second, sharing } from "./ScriptedNight.ts"
import { busy, blockedUser, unusable } from "./ScriptedNight.ts"
import { startedBefore, succeeded, unknown } from "./ScriptedNight.ts"
import type { NightEnd } from "./ScriptedNight.ts"
import { accepted, completed, conflict, lost, notSent, refused, state, throttled } from "./ScriptedService.ts"
import { working } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const temporary = state("TEMPORARY_ERROR", "OUT_OF_SERVICE", { authentication_status: "AUTH_OK" })
const oneSlot = { max_in_flight: 1, per_engine: 1 }

type Start = ReturnType<NonNullable<Script["start"]>>
/** The answers to all starts in their order; whatever follows is accepted. */
const answers = (...all: ReadonlyArray<Start>): NonNullable<Script["start"]> => {
  let asked = 0
  return (call) => all[asked++] ?? accepted(`${call.customer_id}-${asked}`)
}
const startsOf = ({ timesOf }: NightEnd, customer = "c-1") => timesOf("start", customer)
const endOf = ({ state: run }: NightEnd, customer = "c-1") => {
  const { at: _, ...settled } = { at: 0, ...run.tasks.get(idOf(customer))?.settled?.fact }
  return settled
}
const settledWith = (reason: Parameters<typeof own>[0], message?: string, customer = "c-1") => ({
  _tag: "TaskSettled",
  run_id,
  task_id: idOf(customer),
  ...own(reason),
  ...(message === undefined ? {} : { message }),
})
const intentsOf = ({ facts }: NightEnd) =>
  facts.flatMap((fact) =>
    fact._tag === "StartIntended" ? [`${fact.attempt}${fact.probe ? " probe" : ""}`] : [],
  )
const waitsOf = (told: ReadonlyArray<ProgressEvent>) =>
  told.flatMap((event) => (event._tag === "Waiting" ? [[event.why, event.until] as const] : []))

describe("a start that created nothing", () => {
  effect("is put off for longer and longer, and its slot goes to others meanwhile", function* () {
    const told: Array<ProgressEvent> = []
    const end = yield* night({
      told,
      tasks: [{ customer: "c-1" }, { customer: "c-2" }],
      rules: { limits: oneSlot },
      script: {
        start: (call, times) =>
          call.customer_id === "c-1" && times < 4 ? notSent : accepted(`${call.customer_id}-1`),
      },
    })
    const starts = startsOf(end)
    expect(waitsOf(told).map(([why, until]) => [why, Math.ceil(until)])).toEqual(
      starts.slice(1).map((at) => ["SERVICE_UNREACHABLE", at]),
    )
    // A start that is refused its connection takes 200 ms; chance takes a fifth off a wait at most.
    const waits = starts
      .slice(1)
      .map((at, index) => (at - (starts[index] ?? 0) - 200) / (30 * second * 2 ** index))
    expect(waits.map((share) => share >= 0.8 && share <= 1)).toEqual([true, true, true])
    expect([startsOf(end, "c-2")[0], ...end.verdicts()]).toEqual([200, succeeded, succeeded])
  })

  effect("is tried until the very moment at which the task has waited for long enough", function* () {
    const max_wait = Duration.millis(10 * minute)
    const end = yield* night({ rules: { max_wait }, script: { start: answers(throttled(429, 10 * minute)) } })
    expect([startsOf(end), end.verdict("c-1")]).toEqual([[0, 10 * minute + 200], succeeded])
    const late = yield* night({
      rules: { max_wait },
      script: { start: () => throttled(429, 10 * minute + 1) },
    })
    expect([startsOf(late), endOf(late)]).toEqual([
      [0],
      settledWith("SERVICE_UNREACHABLE", "the service asked to wait 10m 1s"),
    ])
  })

  effect("is given up at once where its next try would lie past the deadline", function* () {
    const end = yield* night({ rules: { deadlineAt: 20 * second }, script: { start: () => notSent } })
    expect([startsOf(end), endOf(end)]).toEqual([[0], settledWith("SERVICE_UNREACHABLE")])
    const asked = yield* night({
      rules: { deadlineAt: 20 * second },
      script: { start: () => throttled(429, 2 * second) },
    })
    expect([startsOf(asked), endOf(asked)]).toEqual([[0], settledWith("SERVICE_UNREACHABLE")])
  })
})

describe("a further attempt", () => {
  effect("waits, is put off and is probed as if it were the first", function* () {
    const first = [lost, throttled(429, 100 * second), notSent, accepted("1")]
    const next = [notSent, notSent, lost, accepted("2")]
    const end = yield* night({
      rules: { max_wait: Duration.millis(4 * minute) },
      script: {
        // The first is owed its probe for three minutes, and found; the second is put off twice and lost once.
        start: answers(...first, ...next),
        state: (id) => (id === "e-1" ? temporary : completed),
      },
    })
    expect(intentsOf(end)).toEqual(["1", "1 probe", "1 probe", "1 probe", "2", "2", "2", "2 probe"])
    expect(end.verdict("c-1")).toBe(succeeded)
    const starts = startsOf(end)
    const [again = 0, once = 0, twice = 0] = starts.slice(4, 7)
    const shares = [(once - again - 200) / (30 * second), (twice - once - 200) / minute]
    expect(shares.map((share) => share >= 0.8 && share <= 1)).toEqual([true, true])
    expect(twice).toBeGreaterThan(4 * minute)
  })

  effect("that would end after the deadline leaves the end of the one before it, and its slot", function* () {
    const end = yield* night({
      tasks: [
        { customer: "c-1", needs: Duration.millis(30 * minute) },
        { customer: "c-2", needs: Duration.millis(2 * hour) },
        { customer: "c-3" },
      ],
      rules: { deadlineAt: 30 * minute, limits: oneSlot },
      script: { state: (id) => (id.startsWith("e-c-1") ? temporary : completed) },
    })
    // The first one ended just in time, had it been as long as expected.
    expect([startsOf(end).length, startsOf(end, "c-2").length, end.verdict("c-3")]).toEqual([1, 0, succeeded])
    expect([endOf(end), endOf(end, "c-2")]).toEqual([
      settledWith("OUT_OF_SERVICE"),
      settledWith("DEADLINE_REACHED", undefined, "c-2"),
    ])
  })
})

describe("a probe that is owed", () => {
  effect("is sent however near the deadline is: it starts nothing that is not running", function* () {
    const end = yield* night({
      tasks: [{ customer: "c-1", needs: Duration.millis(50 * minute) }],
      rules: { deadlineAt: hour },
      script: { start: answers(lost, throttled(429, 20 * minute)) },
    })
    expect([intentsOf(end), end.verdict("c-1")]).toEqual([["1", "1 probe", "1 probe"], succeeded])
  })

  effect("waits in the next process for as long as it was put off [decision 2 probe wait]", function* () {
    const place = makePlace()
    const start = answers(lost, throttled(429, 20 * minute))
    const before = yield* night({ place, script: { start }, killAfter: minute })
    const [{ until } = { until: "" }] = before.of("TaskWaits")
    const end = yield* night({ place, script: { start } })
    expect([intentsOf(end), end.verdict("c-1")]).toEqual([["1", "1 probe", "1 probe"], succeeded])
    const [, probedAt = 0, againAt = 0] = startsOf(end)
    expect([againAt, againAt - probedAt > 20 * minute]).toEqual([Date.parse(until), true])
  })
})

describe("a login of which nobody knows whether it is in use", () => {
  const tasks = [...sharing("one", "c-1", "c-2"), { customer: "c-3", fingerprint: "two" }]
  const blocked = state("AUTH_ERROR", "BLOCKED_USER", { authentication_status: "BLOCKED_USER" })
  const finding = (...all: ReadonlyArray<Start>): Script => {
    const ofFirst = answers(...all)
    return {
      start: (call, times) =>
        call.customer_id === "c-1" ? ofFirst(call, times) : accepted(call.customer_id),
      state: (id) => (id === "e-c-3" ? completed : blocked),
    }
  }

  effect.each<readonly [string, Start, string]>([
    ["throttled", throttled(429, 5 * minute), "SERVICE_UNREACHABLE"],
    ["in the way of somebody else", conflict("theirs", "x"), "ALREADY_EXECUTING"],
    ["refused a connection", notSent, "SERVICE_UNREACHABLE"],
  ])("is not sent for another customer while its probe is owed, which was %s", function* ([, answer, why]) {
    const told: Array<ProgressEvent> = []
    const end = yield* night({ tasks, told, script: finding(lost, answer) })
    const [, , again = 0] = startsOf(end)
    expect(waitsOf(told).map(([said, until]) => [said, Math.ceil(until)])).toEqual([[why, again]])
    expect([startsOf(end).length, startsOf(end, "c-2").length, end.rejections]).toEqual([
      3,
      0,
      [["one", "BLOCKED_USER"]],
    ])
    expect(end.verdicts("c-1", "c-2", "c-3")).toEqual([blockedUser, blockedUser, succeeded])
  })

  effect("is not sent for another customer before the probe of an earlier process", function* () {
    const facts = startedBefore("c-1", { answer: "lost" }, "one")
    const [first, other, third] = tasks
    const planned = [other, third, first].filter((one) => one !== undefined)
    const end = yield* night({ tasks: planned, facts, script: finding() })
    expect([startsOf(end).length, startsOf(end, "c-2").length, end.rejections]).toEqual([
      1,
      0,
      [["one", "BLOCKED_USER"]],
    ])
  })

  effect.each<readonly [string, Start]>([
    ["was lost too", lost],
    ["may not be sent in time", throttled(429, 4 * hour)],
  ])("is not sent for another customer in this night where the probe %s", function* ([, answer]) {
    const end = yield* night({ tasks, rules: { limits: oneSlot }, script: finding(lost, answer) })
    expect([end.isOver, startsOf(end).length, startsOf(end, "c-2").length]).toEqual([true, 2, 0])
    expect(end.verdicts("c-1", "c-2", "c-3")).toEqual([unknown, busy, succeeded])
  })
})

describe("a probe that is owed, of a task that may not be started any more,", () => {
  effect("is owed on: the task is no less unknown than before", function* () {
    const gone = { _tag: "Verdict", verdict: own("TOKEN_UNREADABLE") } as const
    const end = yield* night({
      tasks: [
        { customer: "c-1", fingerprint: "one", prepare: (times) => (times === 1 ? ready("one") : gone) },
      ],
      script: { start: answers(lost) },
    })
    // Its own login may be open for `max_wait`.
    const not_before = expect.any(Number) as number
    expect([startsOf(end).length, endOf(end)]).toEqual([1, { ...settledWith("START_UNKNOWN"), not_before }])
  })

  effect("is owed on by a task that the job does not name any more [decision 2 dropped]", function* () {
    const facts = startedBefore("c-1", { answer: "lost" })
    const end = yield* night({ tasks: [{ customer: "c-1", dropped: true }], facts })
    expect([startsOf(end), endOf(end)]).toEqual([[], settledWith("START_UNKNOWN")])
  })
})

describe("a defect of ours", () => {
  const tasks = [
    { customer: "c-1", fingerprint: "one" },
    { customer: "c-2", fingerprint: "two" },
  ]
  const failing = (tag: ProgressEvent["_tag"]) => (event: ProgressEvent) => {
    if (event._tag === tag && "task_id" in event && event.task_id === idOf("c-1"))
      throw new Error("a defect of ours")
  }

  effect("while a task waits to be started again ends it, and its login may be sent", function* () {
    const end = yield* night({
      tasks,
      hear: failing("Waiting"),
      rules: { limits: oneSlot },
      script: { start: (call, times) => (times === 1 ? notSent : accepted(`${call.customer_id}-1`)) },
    })
    expect([end.isOver, startsOf(end), startsOf(end, "c-2").length]).toEqual([true, [0], 2])
    expect([end.verdict("c-1"), end.verdict("c-2"), end.rejections]).toEqual([unusable, succeeded, []])
  })
})

effect(
  "a refused start whose token cannot be dropped over a defect of ours says nothing of its login",
  function* () {
    const sealed = { key: Redacted.make("7a".repeat(32)), service: "sandbox" }
    const store = TokenStore.layerOver(openTokenDatabase(":memory:"), sealed)
    const broken = Effect.map(TokenStore, (opened) =>
      Context.make(
        TokenStore,
        opened._tag === "Open" ? { ...opened, tokensOf: () => Effect.die("a defect of ours") } : opened,
      ),
    )
    const tokens = Layer.effectContext(broken).pipe(Layer.provide(store), Layer.orDie)
    const prepare = (): Prepared => ({ ...ready("one"), token: { name: "c-1", token_id: "t-1" } }) as Prepared
    const end = yield* night({
      place: { ...makePlace(), tokens },
      tasks: [
        { customer: "c-1", fingerprint: "one", prepare },
        { customer: "c-2", fingerprint: "one" },
      ],
      script: { start: answers(refused(400, "T10N_REJECTED")) },
    })
    expect([end.verdict("c-1"), end.verdict("c-2"), end.rejections]).toEqual([unusable, succeeded, []])
  },
)

effect(
  "every request of a task says which engine it is about, so that its 503 need not be the host's",
  function* () {
    const heard = new Set<string>()
    const hear = (verb: string, engine = "none") => void heard.add(`${verb} ${engine}`)
    const tasks = [{ customer: "c-1" }, { customer: "c-2", engine: "shop" }]
    const of = (engine: string) => ["start", "state", "results"].map((verb) => `${verb} ${engine}`)
    yield* night({ tasks, script: { hear } })
    expect([...heard].filter((text) => !text.startsWith("profile")).toSorted()).toEqual(
      [...of("bank"), ...of("shop")].toSorted(),
    )
  },
)

describe("a start", () => {
  effect("that is refused with the secret ends all that wait [end SECRET_REFUSED]", function* () {
    const secret = new SecretRefused({ http_status: 401, message: "no such application" })
    const tasks = ["c-1", "c-2", "c-3"].map((customer) => ({ customer }))
    const script = { start: () => secret, list: () => secret }
    const end = yield* night({ tasks, rules: { limits: oneSlot }, script })
    const verdicts = (of: NightEnd) => tasks.map(({ customer }) => of.verdict(customer))
    expect([end.starts, verdicts(end)]).toEqual([1, tasks.map(() => "unfinished SECRET_REFUSED engineer")])
    const next = yield* night({ tasks, facts: end.facts.slice(2) })
    expect(verdicts(next)).toEqual(tasks.map(() => succeeded))
  })

  effect("that is refused, unknown or a mistake in the job gives its slot to the next task", function* () {
    const end = yield* night({
      tasks: [
        { customer: "c-1" },
        { customer: "c-2" },
        { customer: "c-3", prepare: () => ({ _tag: "Verdict", verdict: own("ENGINE_UNKNOWN") }) },
        { customer: "c-4" },
      ],
      rules: { limits: oneSlot },
      script: {
        start: (call) =>
          call.customer_id === "c-1" ? refused(400) : call.customer_id === "c-2" ? lost : accepted("1"),
      },
    })
    expect(end.verdicts("c-1", "c-2", "c-3", "c-4")).toEqual([
      "failed UNEXPECTED_ANSWER engineer",
      unknown,
      "skipped ENGINE_UNKNOWN engineer",
      succeeded,
    ])
  })
})

describe("an execution", () => {
  effect("that cannot be stopped leaves its slot, but not its customer [decision 2 slot]", function* () {
    const end = yield* night({
      tasks: [{ customer: "c-1" }, { customer: "c-2" }, { customer: "c-1", engine: "bank:app" }],
      rules: { limits: oneSlot, max_wait: Duration.minutes(5) },
      script: { state: (id) => (id === "e-c-1-1" ? working : completed), abort: () => "not_stoppable" },
    })
    expect([end.verdict("c-1"), end.verdict("c-2"), end.verdict("c-1", "bank:app")]).toEqual([
      "unfinished NOT_STOPPABLE service",
      succeeded,
      busy,
    ])
    expect(startsOf(end).length).toBe(1)
  })

  effect(
    "that cannot be stopped is waited for by whoever needs its customer [promise 3 left tonight]",
    function* () {
      let isOpen = true
      const end = yield* night({
        tasks: [{ customer: "c-1" }, { customer: "c-1", engine: "bank:app" }],
        rules: { limits: oneSlot, max_wait: Duration.minutes(15) },
        acts: [[20 * minute, () => (isOpen = false)]],
        script: {
          start: (call) => accepted(call.engine_reference),
          state: (id) => (id === "e-bank" && isOpen ? working : completed),
          abort: () => "not_stoppable",
        },
      })
      expect(end.verdicts("c-1")).toEqual(["unfinished NOT_STOPPABLE service"])
      const [, later = 0] = end.timesOf("start")
      expect([end.verdict("c-1", "bank:app"), later > 20 * minute]).toEqual([succeeded, true])
    },
  )

  effect("whose task waits is not read again by the next process [decision 2 wait]", function* () {
    const place = makePlace()
    const script: Script = { start: answers(), state: (id) => (id === "e-c-1-1" ? temporary : completed) }
    const killed = yield* night({ place, script, killAfter: 10 * second })
    const until = killed.facts.flatMap((fact) => (fact._tag === "TaskWaits" ? [Date.parse(fact.until)] : []))
    expect([until.length, startsOf(killed).length, killed.countOf("results")]).toEqual([1, 1, 1])
    const end = yield* night({ place, script })
    expect(end.verdict("c-1")).toBe(succeeded)
    // One read of each execution, and the second start not before its time.
    expect(end.countOf("results")).toBe(2)
    expect(startsOf(end).slice(1)).toEqual(until)
  })
})
