/** What is asked for and recorded once an execution is closed, and read again of one that was kept. */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { StateView } from "../../src/client/Service.ts"
import { own } from "../../src/service/Ends.ts"
import type { ProgressEvent } from "../../src/task/Progress.ts"
import { lastAnswerWithin } from "../../src/task/Ending.ts"
import { hour, idOf, makePlace, night, rules, run_id, second, succeeded, minute } from "./ScriptedNight.ts"
import { outOfService } from "./ScriptedNight.ts"
import type { Night, NightEnd, Place } from "./ScriptedNight.ts"
import { accepted, counted, nothing, results, state, lost } from "./ScriptedService.ts"
import { acceptedAs, throttled } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import type { Rules } from "../../src/task/Work.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { exitCodeOf } from "../../src/report/Finish.ts"

const account = { product: "accounts", sub_family: "bank:account" }
const accounts = (count: number) => counted({ "bank:account@accounts": count })
const family = "bank:account"
const task = { run_id, task_id: idOf("c-1") }
const temporary = (more: Partial<StateView> = {}) =>
  state("TEMPORARY_ERROR", "OUT_OF_SERVICE", { authentication_status: "AUTH_OK", ...more })
const completedWith = (more: Partial<StateView> = {}) =>
  state("COMPLETED", "COMPLETED", { authentication_status: "AUTH_OK", ...more })
const settled = (reason: Parameters<typeof own>[0], message?: string) => ({
  _tag: "TaskSettled",
  ...task,
  ...own(reason),
  ...(message === undefined ? {} : { message }),
})
const ofAttempt = (attempt: number) => ({ ...task, attempt, execution_id: anId(`e-${attempt}`) })
const drained = (attempt: number, basis: string, families: ReadonlyArray<unknown>) => ({
  _tag: "AttemptDrained",
  ...ofAttempt(attempt),
  proof: { basis, families },
})
const kept = (attempt: number, reason: string, families: ReadonlyArray<unknown>, message: string) => ({
  _tag: "AttemptKept",
  ...ofAttempt(attempt),
  reason,
  families,
  message,
})

/** Executions are numbered over all processes of a place. */
const over = ({ place = makePlace(), ...given }: Night) => {
  const start = () => accepted(`${place.calls.filter(([, verb]) => verb === "start").length}`)
  return night({ ...given, place, script: { start, ...given.script } })
}
/** What is recorded once the (last) execution is closed, without the reads themselves. */
const recorded = ({ facts }: NightEnd) =>
  facts
    .slice(facts.findLastIndex(({ _tag }) => _tag === "AttemptClosed") + 1)
    .filter(({ _tag }) => _tag !== "ResultsRead")
/** What a further process records. */
const added = (before: NightEnd, after: NightEnd) =>
  after.facts.slice(before.facts.length).filter(({ _tag }) => _tag !== "ResultsRead")
const bodiesIn = ({ store }: Place) => store.bodies.get(run_id)?.length ?? 0

describe("a closed execution", () => {
  const nothingHeld: Partial<StateView> = { authentication_status: "not-performed" }

  effect.each<readonly [string, ReturnType<typeof state>, number]>([
    ["that counted a record", state("FAILED", "FAILED", { ...nothingHeld, products_count: accounts(1) }), 1],
    [
      "of which nobody knows what it counted",
      state("FAILED", "FAILED", { ...nothingHeld, products_count: { _tag: "Unknown", why: "x" } }),
      1,
    ],
    ["whose login was accepted", state("FAILED", "FAILED", { authentication_status: "AUTH_OK" }), 1],
    ["aborted with an accepted login", state("ABORTED", "TIMEOUT", { authentication_status: "AUTH_OK" }), 1],
    ["that completed", state("COMPLETED", "COMPLETED", nothingHeld), 1],
    ["that completed in part", state("PARTIAL", "PARTIAL", nothingHeld), 1],
    ["that failed before its login and counted nothing", state("FAILED", "FAILED", nothingHeld), 0],
  ])("%s is asked for its results, or not at all", function* ([, closed, asked]) {
    const end = yield* over({ script: { state: () => closed, results: () => results(true, [account]) } })
    expect(end.countOf("results")).toBe(asked)
  })

  effect("is drained without a look where it holds nothing, or where the job wants no results", function* () {
    const failed = state("FAILED", "FAILED", nothingHeld)
    const empty = yield* over({ script: { state: () => failed } })
    expect(recorded(empty)).toEqual([drained(1, "counted", []), settled("FAILED")])
    const flow_results = { ...rules.flow_results, enabled: false }
    const script = { state: () => completedWith({ products_count: accounts(3) }) }
    const unwanted = yield* over({ script, rules: { flow_results } })
    expect([unwanted.countOf("results"), recorded(unwanted)]).toEqual([
      0,
      [drained(1, "unwanted", []), settled("COMPLETED")],
    ])
  })

  effect("is kept where it names no session to ask, unless nothing was counted", function* () {
    const accepting: Script["start"] = () => acceptedAs({ execution_id: anId("e-1") })
    const sources = rules.sources.filter(({ name }) => name === "flow_results")
    const closing = (products_count: NonNullable<StateView["products_count"]>) =>
      over({
        rules: { sources },
        script: { start: accepting, state: () => completedWith({ products_count }) },
      })
    const line = { family, counted: 2, landed: 0 }
    const [none, two, unknown] = [
      yield* closing(accounts(0)),
      yield* closing(accounts(2)),
      yield* closing({ _tag: "Unknown", why: "x" }),
    ]
    const short = `${family} 0 of 2`
    const why = "the state's products_count is missing or cannot be read"
    expect([none, two, unknown].map(recorded)).toEqual([
      [drained(1, "counted", [{ family, counted: 0, landed: 0 }]), settled("COMPLETED")],
      [kept(1, "RECORDS_UNREACHABLE", [line], short), settled("RECORDS_UNREACHABLE", short)],
      [kept(1, "RECORDS_UNREACHABLE", [], why), settled("RECORDS_UNREACHABLE", why)],
    ])
  })

  effect("that the service forgot is not asked for anything, and nothing of it is recorded", function* () {
    const end = yield* over({ script: { state: () => ({ _tag: "NotFound" }) } })
    expect([end.countOf("results"), recorded(end)]).toEqual([0, [settled("EXECUTION_GONE")]])
  })
})

describe("a temporary error", () => {
  effect("whose results are still partial is not tried again: they are read to the end first", function* () {
    const end = yield* over({ script: { state: () => temporary(), results: () => results(false) } })
    expect([end.starts, recorded(end)]).toEqual([1, [settled("RESULTS_PARTIAL")]])
  })

  effect("is not tried again at the very moment of the deadline, only before it", function* () {
    const retry = { max_attempts: 2, base: Duration.zero, max: Duration.zero }
    const script: Script = { state: () => temporary() }
    const free = yield* over({ script, rules: { retry } })
    const readAt = (free.timesOf("results")[0] ?? 0) + 200
    const starts = []
    for (let ms = 0; ms < 20; ms += 1) {
      const told: Array<ProgressEvent> = []
      const deadlineAt = readAt + ms
      const end = yield* over({ told, script, rules: { retry, deadlineAt } })
      const late = told.filter((event) => event._tag === "Waiting" && event.until >= deadlineAt)
      expect([deadlineAt, late, end.verdict("c-1")]).toEqual([deadlineAt, [], outOfService])
      starts.push(end.starts)
    }
    expect([starts[0], starts.at(-1)]).toEqual([1, 2])
  })
})

effect(
  "results that are partial at the deadline are left then: their last read is before the night is cut off",
  function* () {
    const place = makePlace()
    const wait_final = Duration.hours(5)
    const end = yield* over({
      place,
      rules: { deadlineAt: hour, flow_results: { ...rules.flow_results, wait_final } },
      script: { results: () => results(false) },
    })
    expect(recorded(end)).toEqual([settled("RESULTS_PARTIAL")])
    expect(place.world.now()).toBeLessThanOrEqual(hour + Duration.toMillis(lastAnswerWithin))
  },
)

effect(
  "results of an execution are those of its own session, however alike those of another one are",
  function* () {
    const place = makePlace()
    const data = { accounts: [account], document: { attachment_id: "doc-1" } }
    const script: Script = {
      state: (id) => (id === "e-1" ? temporary() : completedWith()),
      results: () => results(true, data),
    }
    yield* over({ place, script, rules: { retry: { ...rules.retry, max_attempts: 1 } } })
    const end = yield* over({ place, script })
    const reads = end.facts.flatMap((fact) =>
      fact._tag === "ResultsRead" || fact._tag === "AttachmentRead"
        ? [[fact._tag, fact.session_id, "execution_id" in fact ? fact.execution_id : undefined]]
        : [],
    )
    expect(reads).toEqual([
      ["ResultsRead", "s-1", "e-1"],
      ["AttachmentRead", "s-1", undefined],
      ["ResultsRead", "s-2", "e-2"],
      ["AttachmentRead", "s-2", undefined],
    ])
    const landed = end.landed
    expect(landed.flatMap(({ meta }) => (meta.kind === "results" ? [meta.session_id] : []))).toEqual([
      "s-1",
      "s-2",
    ])
  },
)

describe("an execution that is kept at the service", () => {
  const short = (landed: number, of = 3) => `${family} ${landed} of ${of}`
  const line = (landed: number, of = 3) => ({ family, counted: of, landed })
  const three = completedWith({ products_count: accounts(3) })
  const holding = (count: number, isFinal = true): Script => ({
    state: () => three,
    results: () =>
      results(
        isFinal,
        Array.from({ length: count }, () => account),
      ),
  })
  /** A night that keeps it, and one that reads it again; then what the second one recorded and how long it took. */
  const twice = (first: Script, again: Script, more: Partial<Night> = {}) =>
    Effect.gen(function* () {
      const place = makePlace()
      const before = yield* over({ ...more, place, script: first })
      const [since, readsBefore] = [place.world.now(), before.countOf("results")]
      const bodiesBefore = bodiesIn(place)
      const after = yield* over({ ...more, place, script: again, mode: "collect" })
      return {
        before,
        facts: added(before, after),
        newFacts: after.facts.length - before.facts.length,
        newBodies: bodiesIn(place) - bodiesBefore,
        reads: after.countOf("results") - readsBefore,
        tookMs: place.world.now() - since,
      }
    })

  effect("is told once, and again only where something else is found", function* () {
    const same = yield* twice(holding(1), holding(1))
    expect([same.newFacts, same.newBodies, same.reads]).toEqual([0, 0, 1])
    expect([recorded(same.before), same.facts]).toEqual([
      [kept(1, "RECORDS_SHORT", [line(1)], short(1)), settled("RECORDS_SHORT", short(1))],
      [],
    ])
    expect((yield* twice(holding(1), holding(2))).facts).toEqual([
      kept(1, "RECORDS_SHORT", [line(2)], short(2)),
      settled("RECORDS_SHORT", short(2)),
    ])
    const away = yield* twice(holding(1), { state: () => three, results: () => nothing(404) })
    const message = `${short(0)}; flow_results: 404`
    expect(away.facts).toEqual([
      kept(1, "RECORDS_UNREACHABLE", [line(0)], message),
      settled("RECORDS_UNREACHABLE", message),
    ])
  })

  effect("is looked at once where its results are partial again, and stays as it was", function* () {
    const { facts, reads, tookMs } = yield* twice(holding(1), holding(3, false))
    expect([facts, reads, tookMs < 10 * second]).toEqual([[], 1, true])
  })

  const off: Partial<Rules> = { flow_results: { ...rules.flow_results, enabled: false } }

  effect(
    "stays as it is while the job's results are off, and is read once they are on [promise 5 off]",
    function* () {
      const place = makePlace()
      const first = yield* over({ place, script: holding(1) })
      const without = yield* over({ place, script: holding(3), rules: off, mode: "collect" })
      const again = yield* over({ place, script: holding(3), mode: "collect" })
      expect([added(first, without), added(without, again)]).toEqual([
        [],
        [drained(1, "counted", [line(3)]), settled("COMPLETED")],
      ])
    },
  )

  effect("for partial results stays as it is likewise, whatever its task ends with", function* () {
    const place = makePlace()
    const first = yield* over({ place, script: holding(1, false) })
    const without = yield* over({ place, script: holding(3), rules: off, mode: "collect" })
    const again = yield* over({ place, script: holding(3), mode: "collect" })
    const why = "`flow_results` was switched off after its start: the next run with results reads them"
    expect([first, without].map((end) => exitCodeOf(end.state, "delete"))).toEqual([4, 4])
    expect([added(first, without), added(without, again)]).toEqual([
      [settled("RESULTS_PARTIAL", why)],
      [drained(1, "counted", [line(3)]), settled("COMPLETED")],
    ])
  })

  effect("says nothing of a task that ended with something else", function* () {
    const failed = state("FAILED", "FAILED", {
      authentication_status: "AUTH_OK",
      products_count: accounts(3),
    })
    const { before, facts } = yield* twice(
      { ...holding(1), state: () => failed },
      { ...holding(3), state: () => failed },
    )
    expect([recorded(before).at(-1), facts]).toEqual([settled("FAILED"), [drained(1, "counted", [line(3)])]])
  })
})

effect(
  "a flow session that its customer ran alone is read by a run that did not plan it, and a task is started likewise",
  function* () {
    const place = makePlace()
    yield* over({ place })
    const end = yield* over({ place, tasks: [{ customer: "c-2" }], sessions: ["s-9"] })
    const verdicts = end.of("TaskSettled").map((fact) => [fact.task_id, fact.reason])
    expect(verdicts.slice(1).toSorted()).toEqual([
      [idOf("c-2"), "COMPLETED"],
      [`${run_id}/session/s-9`, "COMPLETED"],
    ])
  },
)

const verdictOf = (end: NightEnd, session_id: string) => {
  const settled = end.state.tasks.get(`${run_id}/session/${session_id}`)?.settled?.fact
  return `${settled?.outcome} ${settled?.reason} ${settled?.who_acts}`
}
const named = [{ attachment_id: "doc-1" }]

describe("a flow session that a job lists", () => {
  effect("is read until its results are final, with its documents, and nothing is executed", function* () {
    const script: Script = {
      results: (_, times) =>
        times === 1 ? throttled(504, 20 * second) : times === 2 ? lost : results(times > 6, named),
    }
    const end = yield* night({ tasks: [], sessions: ["s-9"], script })
    expect(verdictOf(end, "s-9")).toBe(succeeded)
    const counts = ["start", "state", "results", "attachment", "profile", "delete"].map((verb) =>
      end.countOf(verb),
    )
    expect(counts).toEqual([0, 0, 7, 1, 0, 0])
    const landed = end.landed
    expect(landed.map(({ meta }) => [meta.kind, meta.session_id, meta.execution_id])).toEqual([
      ["results", "s-9", undefined],
      ["results", "s-9", undefined],
    ])
  })

  effect("of which a document did not come is read again for it, and a success meanwhile", function* () {
    const place = makePlace()
    const script = (answer: "document" | typeof lost): Script => ({
      results: () => results(true, named),
      attachment: () => answer,
    })
    const ends = [
      yield* night({ place, tasks: [], sessions: ["s-9"], script: script(lost) }),
      yield* night({ place, tasks: [], sessions: ["s-9"], script: script("document") }),
    ]
    expect(ends.map((end) => [verdictOf(end, "s-9"), exitCodeOf(end.state, "keep")])).toEqual([
      [succeeded, 4],
      [succeeded, 0],
    ])
  })

  effect("is read again by the next run while it is partial, and never again once it is final", function* () {
    const place = makePlace()
    const sessions = ["s-8", "s-9"]
    const slow: Script = { results: (id) => results(id === "s-8") }
    const first = yield* night({ place, tasks: [], sessions, script: slow })
    expect(sessions.map((id) => verdictOf(first, id))).toEqual([
      succeeded,
      "unfinished RESULTS_PARTIAL service",
    ])
    const readsBefore = first.countOf("results", "s-8")
    const firstReads = first.countOf("results", "s-9")
    expect([readsBefore, firstReads > 10]).toEqual([1, true])
    const lastRead = first.calls.at(-1)?.[0] ?? 0
    expect(lastRead).toBeGreaterThan(8 * minute)
    const next = yield* night({ place, tasks: [], sessions, script: {} })
    expect(sessions.map((id) => verdictOf(next, id))).toEqual([succeeded, succeeded])
    expect([next.countOf("results", "s-8"), next.countOf("results", "s-9")]).toEqual([1, firstReads + 1])
  })
})
