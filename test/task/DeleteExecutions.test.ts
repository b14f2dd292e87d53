/** What may be deleted at the service, and what becomes of it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { pendingDeletions } from "../../src/ledger/RunState.ts"
import { deleteAll, dueDeletions } from "../../src/task/DeleteExecutions.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { answered, begun, closed, drained, fold, intended, lives, observed, run_id } from "./Lives.ts"
import { settled, task_id } from "./Lives.ts"
import { makePlace } from "./ScriptedNight.ts"
import { completed, lost, notSent, scripted, silent, state, throttled } from "./ScriptedService.ts"
import { unexpected } from "./ScriptedService.ts"
import type { Call, Script } from "./ScriptedService.ts"
import type { StateAnswer } from "../../src/client/Service.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const published = (...executions: ReadonlyArray<string>): Fact => ({
  _tag: "RunPublished",
  run_id,
  version: 1,
  receipts: executions.map((id) => ({ execution_id: anId(id), landed_sha256: "ab", whole: true })),
})
const open = [intended(1), answered(1, "accepted"), observed(1)]
const done = [...open, closed(1), drained(1), settled("succeeded", "COMPLETED")]
const dueOf = (facts: ReadonlyArray<Fact>) =>
  dueDeletions(fold(facts)).map(({ execution_id }) => execution_id)

describe("an execution may be deleted", () => {
  it("once it is closed, drained, settled and published with its receipt, in this order", () => {
    expect(dueDeletions(fold([...done, published("e-1")]))).toEqual([
      {
        task_id,
        engine_reference: anId("bank:website"),
        execution_id: anId("e-1"),
        landed_sha256: "ab",
        only: { counted: undefined, wasRunning: false },
      },
    ])
  })

  it("not without each of what it takes, nor once it is kept [promise 5 deletions]", () => {
    for (const whole of [{ whole: false }, {}]) {
      const receipts = [{ execution_id: anId("e-1"), landed_sha256: "ab", ...whole }]
      expect(dueOf([...done, { _tag: "RunPublished", run_id, version: 1, receipts }])).toEqual([])
    }
    const kept = { ...drained(1), _tag: "AttemptKept", reason: "RECORDS_SHORT", families: [] } as Fact
    expect([
      dueOf([...done, kept, published("e-1")]),
      dueOf(done),
      dueOf([...done, published()]),
      dueOf([...done, published("e-2")]),
      dueOf([...done, published("e-1"), published()]),
      dueOf([...open, settled("unfinished", "NOT_STOPPABLE"), published("e-1")]),
      dueOf([...open, closed(1), settled("unfinished", "RESULTS_PARTIAL"), published("e-1")]),
      dueOf([...open, closed(1), drained(1), published("e-1")]),
      dueOf([published("e-1"), ...done]),
      dueOf([...done.slice(0, -1), published("e-1"), settled("succeeded", "COMPLETED")]),
    ]).toEqual(Array.from({ length: 10 }, () => []))
    const { landed: _, ...unlanded } = closed(1) as Extract<Fact, { _tag: "AttemptClosed" }>
    const over = [drained(1), settled("succeeded", "COMPLETED"), published("e-1")]
    expect([dueOf([...open, unlanded, ...over]), dueOf([...open, ...over])]).toEqual([[], []])
    const undecided = [...open, closed(1), drained(1), published("e-1")]
    expect(
      [[...open, unlanded, ...over], [...open, ...over], undecided].map((facts) =>
        pendingDeletions(fold(facts)),
      ),
    ).toEqual([0, 0, 0])
  })

  it("not again once the service said 204 or 404, but again while it is pending", () => {
    const of = { run_id, task_id, execution_id: anId("e-1") }
    const answer = (outcome: "deleted" | "gone" | "pending"): ReadonlyArray<Fact> => [
      { _tag: "DeleteIntended", ...of, landed_sha256: "ab" },
      { _tag: "DeleteAnswered", ...of, http_status: 1, outcome },
    ]
    const ready = [...done, published("e-1")]
    const both = (facts: ReadonlyArray<Fact>) => [dueOf(facts), pendingDeletions(fold(facts))]
    expect([
      both(ready),
      both([...ready, ...answer("deleted")]),
      both([...ready, ...answer("gone")]),
      both([...ready, ...answer("pending")]),
      both([...ready, ...answer("pending").slice(0, 1)]),
    ]).toEqual([
      [["e-1"], 1],
      [[], 0],
      [[], 0],
      [["e-1"], 1],
      [["e-1"], 1],
    ])
  })

  it("only if it is ours, whatever a publication says and wherever the run was cut off", () => {
    fc.assert(
      fc.property(lives, fc.nat(), (life, at) => {
        const known = life.slice(0, at % (life.length + 1))
        const due = dueOf([...known, published("e-1", "e-2", "e-3", "theirs")])
        for (const execution_id of due)
          for (const tag of ["StartAnswered", "AttemptClosed", "AttemptDrained"] as const)
            expect(
              known.some(
                (fact) => fact._tag === tag && "execution_id" in fact && fact.execution_id === execution_id,
              ),
            ).toBe(true)
        const last = known.at(-1)?._tag
        expect(due.length > 0 && last !== "TaskSettled").toBe(false)
      }),
    )
  })
})

const manyDone = (count: number): ReadonlyArray<Fact> => {
  const ids = Array.from({ length: count }, (_, index) => `${run_id}/c-${index}/bank`)
  const facts = ids.flatMap((id, index) =>
    [begun[1], ...done].flatMap((fact): ReadonlyArray<Fact> =>
      fact === undefined
        ? []
        : [
            {
              ...fact,
              ...("task_id" in fact ? { task_id: id } : {}),
              ...("execution_id" in fact ? { execution_id: anId(`e-${index}`) } : {}),
            } as Fact,
          ],
    ),
  )
  const started = begun.slice(0, 1).map((fact) => ({ ...fact, service: "http://old" }) as Fact)
  return [...started, ...facts, published(...ids.map((_, index) => `e-${index}`))]
}

const asItClosed = state("COMPLETED", "COMPLETED", { products_count: { _tag: "Unknown", why: "none" } })

const deleted = (
  count: number,
  answer: NonNullable<Script["remove"]>,
  untilAt = Infinity,
  {
    hear,
    whose,
    looked = asItClosed,
    runs = 1,
    here = "http://old",
  }: Pick<Script, "hear" | "whose"> & { looked?: StateAnswer; runs?: number; here?: string } = {},
) => {
  const calls: Array<Call> = []
  const { world, ledger: place } = makePlace()
  const deletions = Effect.gen(function* () {
    const ledger = yield* Ledger
    yield* ledger.append(manyDone(count))
    for (let night = 0; night < runs; night++) {
      const before = foldRun(yield* ledger.facts(run_id))
      if (before === undefined) return yield* Effect.die("no beginning")
      yield* deleteAll({ run: before, here }, dueDeletions(before), untilAt)
    }
    const run = foldRun(yield* ledger.facts(run_id))
    if (run === undefined) return yield* Effect.die("no beginning")
    return {
      endedAt: world.now(),
      calls,
      written: (yield* ledger.facts(run_id)).flatMap(({ fact }) =>
        fact._tag === "DeleteIntended" || fact._tag === "DeleteAnswered" ? [fact._tag] : [],
      ),
      pending: pendingDeletions(run),
      told: [...run.tasks.values()].map(({ attempts }) => {
        const deletion = attempts[0]?.deletion
        return deletion && `${deletion.http_status} ${deletion.outcome}`
      }),
    }
  }).pipe(
    Effect.provide([
      place,
      scripted(
        { remove: answer, state: () => looked, ...(hear && { hear }), ...(whose && { whose }) },
        calls,
      ),
    ]),
  )
  return Effect.suspend(() => world.run(deletions))
}

describe("deleting", () => {
  effect("ends when it has to, whatever is not answered, and leaves the rest pending", function* () {
    const quiet = yield* deleted(40, (id) => (id === "e-7" ? "deleted" : silent), 30_000)
    expect([quiet.endedAt, quiet.pending, quiet.calls.length]).toEqual([30_000, 39, 17])
    expect([quiet.told[7], quiet.told[0], quiet.told[39]]).toEqual(["204 deleted", "0 pending", undefined])
    const running = yield* deleted(1, () => "still_running", 3_000)
    expect([running.endedAt < 3_000, running.told]).toEqual([true, ["409 pending"]])
  })

  effect(
    "asks another service for nothing that it does not show as ours [promise 2 moved deletion]",
    function* () {
      const removed = (looked: StateAnswer, whose?: (id: string) => string | undefined) =>
        Effect.map(
          deleted(2, () => "deleted", Infinity, { here: "http://new", looked, ...(whose && { whose }) }),
          ({ calls, written, pending }) => ({
            asked: calls.filter(([, verb]) => verb === "delete").length,
            written: written.length,
            pending,
          }),
        )
      const left = { asked: 0, written: 0, pending: 2 }
      expect(yield* removed({ _tag: "NotFound" })).toEqual(left)
      expect(yield* removed(asItClosed, () => "theirs")).toEqual(left)
      expect(yield* removed(asItClosed, () => undefined)).toEqual(left)
      expect(yield* removed(asItClosed, () => "x-1")).toEqual({ asked: 2, written: 4, pending: 0 })
    },
  )

  effect("says which engine each deletion is about", function* () {
    const heard: Array<string | undefined> = []
    yield* deleted(2, () => "deleted", Infinity, { hear: (_, engine) => heard.push(engine) })
    expect(heard).toEqual(["bank:website", "bank:website"])
  })

  effect(
    "records the answer, intent first; 404 ends it if a read says so too [promise 5 there]",
    function* () {
      const answer = (id: string, times: number) =>
        id !== "e-1" ? "deleted" : times < 2 ? lost : ("gone" as const)
      const looked: StateAnswer = { _tag: "NotFound" }
      const { told, pending } = yield* deleted(3, answer, Infinity, { looked })
      expect([told, pending]).toEqual([["204 deleted", "404 gone", "204 deleted"], 0])
      const there = yield* deleted(3, answer, Infinity, { runs: 2 })
      expect([there.told, there.pending]).toEqual([["204 deleted", "404 pending", "204 deleted"], 1])
      expect((yield* deleted(1, () => "deleted")).written).toEqual(["DeleteIntended", "DeleteAnswered"])
    },
  )

  effect("retries while the service is overloaded, and leaves the rest pending", function* () {
    const { told, pending, calls } = yield* deleted(5, (id, times) => {
      if (id === "e-0") return times < 4 ? throttled() : "deleted"
      if (id === "e-1") return "still_running"
      if (id === "e-2") return times < 2 ? lost : "deleted"
      return id === "e-3" ? notSent : unexpected
    })
    expect([told, pending]).toEqual([
      ["204 deleted", "409 pending", "204 deleted", "0 pending", "418 pending"],
      3,
    ])
    const asked = calls.flatMap(([at, verb, id]) => (id === "e-1" && verb === "delete" ? [at] : []))
    // Each request takes 200 ms, and before a further one its state is read.
    expect(asked.slice(1).map((at, index) => at - (asked[index] ?? 0))).toEqual([4_400, 8_400])
  })

  effect("asks again only for what is as it was when it closed [promise 5 running]", function* () {
    const remove = (_: string, times: number) => (times < 2 ? "still_running" : "deleted")
    const others: ReadonlyArray<StateAnswer> = [
      state("ONGOING", "RUNNING"),
      state("COMPLETED", "COMPLETED", { is_closed: false }),
      completed,
    ]
    for (const looked of others) {
      const { calls, told } = yield* deleted(1, remove, Infinity, { looked, runs: 3 })
      expect([calls.filter(([, verb]) => verb === "delete").length, told]).toEqual([1, ["409 pending"]])
    }
    for (const looked of [asItClosed, { _tag: "NotFound" } as const])
      expect((yield* deleted(1, remove, Infinity, { looked })).told).toEqual(["204 deleted"])
  })

  effect("sends nothing if its time is up, and does not wait beyond it", function* () {
    const late = yield* deleted(1, () => "deleted", 0)
    expect([late.calls, late.written, late.told]).toEqual([[], [], [undefined]])
    const last = yield* deleted(1, () => "deleted", 1)
    expect([last.calls, last.told]).toEqual([[[0, "delete", "e-0"]], ["0 pending"]])
    // The second question would leave at the very moment at which no answer is waited for any more.
    const running = yield* deleted(1, () => "still_running", 4_200)
    expect([running.endedAt, running.calls, running.told]).toEqual([
      200,
      [[0, "delete", "e-0"]],
      ["409 pending"],
    ])
  })

  effect("tries six times for one execution whose answers are lost", function* () {
    const { calls, told } = yield* deleted(1, () => lost)
    expect([calls.length, told]).toEqual([6, ["0 pending"]])
  })

  effect("continues with the others after a defect of ours, which counts as no answer", function* () {
    const defect = (): never => {
      throw new TypeError("in our own code")
    }
    const one = yield* deleted(3, (id) => (id === "e-1" ? defect() : "deleted"))
    expect([one.told, one.pending]).toEqual([["204 deleted", "undefined pending", "204 deleted"], 1])
    const all = yield* deleted(60, defect)
    expect([all.pending, all.calls.length]).toEqual([60, 47])
  })

  it.effect("sends nothing if its intent cannot be written, and fails", () => {
    const database = openLedger({ path: ":memory:" })
    const calls: Array<Call> = []
    return Effect.gen(function* () {
      const ledger = yield* Ledger
      yield* ledger.append(manyDone(3))
      const run = foldRun(yield* ledger.facts(run_id))
      if (run === undefined) return yield* Effect.die("no beginning")
      database.exec(
        `CREATE TRIGGER full BEFORE INSERT ON facts WHEN NEW.tag = 'DeleteIntended'
          BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
      )
      const failure = yield* Effect.flip(deleteAll({ run, here: "http://old" }, dueDeletions(run), Infinity))
      expect([failure._tag, failure.message, calls]).toEqual(["LedgerFailed", "disk full", []])
    }).pipe(Effect.provide([Ledger.layerOver(database), scripted({}, calls)]))
  })

  effect("gives up if the service is unreachable, instead of trying every execution", function* () {
    const { calls, pending } = yield* deleted(100, () => lost)
    expect(pending).toBe(100)
    const asked = new Set(calls.map(([, , id]) => id)).size
    // The last of 32 finds fifteen others under way.
    expect(asked).toBe(47)
  })

  effect("continues with a service that answers now and then", function* () {
    const number = (id: string) => Number(id.slice("e-".length))
    const { calls } = yield* deleted(100, (id) => (number(id) % 10 === 9 ? "deleted" : lost))
    expect(new Set(calls.map(([, , id]) => id)).size).toBe(100)
    // The answer is the last one of the sixteen that are asked together: 31 without one follow it, and that
    // is not enough to give the others up.
    const defect = (): never => {
      throw new TypeError("in our own code")
    }
    const seldom = yield* deleted(100, (id) =>
      number(id) === 0 || number(id) > 15 + 31 ? "deleted" : defect(),
    )
    expect([seldom.calls.length, seldom.pending]).toEqual([100, 15 + 31])
  })
})
