/** When a version is published while a run goes on, and that the run is as if there had been none. */
import { describe, expect, it } from "vitest"
import { Duration, Effect } from "effect"
import { Progress } from "../../src/task/Progress.ts"
import type { Job } from "../../src/jobs/Job.ts"
import type { Fact, Recorded } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { mayHaveInterims, nextInterimAt, tasksOver } from "../../src/run/PublishMeanwhile.ts"
import { Publisher, PublishFailed, type Interim } from "../../src/tables/Publisher.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { anId } from "../harness/Id.ts"
import { customer, features, jobOf, live, makeNights, options } from "../harness/SmallNights.ts"
import { executed, idOf, planned, run_id, runOf, settled } from "../report/Samples.ts"

const minute = 60_000
const begunAt = Date.UTC(2026, 10, 21, 22)

/** Customers by the minutes that their executions take. */
const jobFor = (minutes: ReadonlyArray<number>, more: Partial<Job> = {}): Job => ({
  ...jobOf(
    minutes.map((each) => {
      const one = customer(`c-${each}`, `queue-${each * 60}+run-1`)
      const login = one.login._tag === "Parameters" ? { ...one.login, tokenized_access: false } : one.login
      return { ...one, login, features: features("customer_information_read") }
    }),
  ),
  name: "long",
  publish: { every: Duration.minutes(10) },
  ...more,
})

type Publish = Publisher["Service"]["publishInterim"]

/** A night, its interim versions with minute and tasks, and what was told of them. */
const nightOf = (job: Job, instead?: (real: Publish) => Publish) => {
  const { world, layers, history } = makeNights()
  const told: Array<string> = []
  const found = live(
    { world, layers },
    Effect.gen(function* () {
      const { run_id, exit_code } = yield* runNight(job, options)
      const ledger = yield* Ledger
      const facts = yield* ledger.facts(run_id)
      const { executions } = yield* Effect.flatMap(Sandbox, ({ truth }) => truth)
      const deleted = executions.filter(({ deleted_at }) => deleted_at !== undefined).length
      return { exit_code, facts, deleted, starts: executions.length }
    }).pipe(
      Effect.provideService(Progress, {
        tell: (event) =>
          Effect.sync(() => {
            if (event._tag !== "Noted") return
            const { fact } = event
            if (fact._tag === "InterimPublished") told.push(`${fact.tasks} of ${fact.of}`)
            if (fact._tag === "InterimRefused") told.push(fact.message)
          }),
      }),
      Effect.updateService(Publisher, (real) =>
        instead === undefined ? real : { ...real, publishInterim: instead(real.publishInterim) },
      ),
    ),
  )
  return { ...found, told, interims: history.store.interims, versions: history.versions.length }
}

const minutesOf = (facts: ReadonlyArray<Recorded>, tag: Fact["_tag"]): ReadonlyArray<number> =>
  facts.flatMap(({ at, fact }) => (fact._tag === tag ? [Math.round((at - begunAt) / minute)] : []))

describe("a night that publishes while it goes on", () => {
  it("does so as often as the job says, once something is over that was not in the version before", () => {
    const { facts, told, interims, versions, exit_code } = nightOf(jobFor([5, 6, 35, 75]))
    expect(minutesOf(facts, "InterimPublished")).toEqual([10, 40])
    expect(told).toEqual(["2 of 4", "3 of 4"])
    const taskOf = (minutes: number) => anId(`long.2026-11-21/c-${minutes}/sandbox-bank:website`)
    expect(interims.map(({ tasks }) => tasks)).toEqual([
      [taskOf(5), taskOf(6)],
      [taskOf(5), taskOf(6), taskOf(35)],
    ])
    expect([versions, exit_code]).toEqual([1, 0])
  })

  it("starts, deletes and ends as a night without [interim receipts]", () => {
    const { publish: _, ...job } = jobFor([5, 6, 35, 75])
    const without = nightOf(job)
    // Nor does one in which all is over at once publish before its end.
    expect([without.told, nightOf(jobFor([15, 16])).told]).toEqual([[], []])
    const acts = ({ facts, deleted, starts, exit_code }: ReturnType<typeof nightOf>) => ({
      deleted,
      starts,
      exit_code,
      facts: facts.flatMap(({ at, fact }) =>
        fact._tag === "InterimPublished" ? [] : [`${at} ${fact._tag}`],
      ),
    })
    expect(acts(nightOf(jobFor([5, 6, 35, 75])))).toEqual(acts(without))
  })

  it("interrupts a version that is being made when the run is over, and publishes the run", () => {
    let interrupted = 0
    const endless: (real: Publish) => Publish = () => () =>
      Effect.onInterrupt(Effect.never, () => Effect.sync(() => (interrupted += 1)))
    const { facts, told, versions, exit_code } = nightOf(jobFor([5, 35]), endless)
    expect([interrupted, told, versions, exit_code]).toEqual([1, [], 1, 0])
    expect(minutesOf(facts, "RunEnded")).toEqual(minutesOf(nightOf(jobFor([5, 35])).facts, "RunEnded"))
  })

  it("costs a night that cannot publish one line, and nothing else", () => {
    const run_id = anId("long.2026-11-21")
    const refused: Interim = { _tag: "InterimRefused", run_id, message: "a gate did not pass" }
    const failing: ReadonlyArray<readonly [string, Effect.Effect<Interim, PublishFailed>]> = [
      ["no space left", Effect.fail(new PublishFailed({ message: "no space left" }))],
      ["a gate did not pass", Effect.succeed(refused)],
      ["a defect in the program (TypeError)", Effect.die(new TypeError("a secret of a record"))],
    ]
    for (const [line, failure] of failing) {
      const { facts, told, deleted, exit_code } = nightOf(jobFor([5, 35, 75]), () => () => failure)
      expect([told, deleted, exit_code]).toEqual([[line], 3, 0])
      expect(minutesOf(facts, "InterimRefused")).toEqual([10])
      expect(minutesOf(facts, "InterimPublished")).toEqual([])
    }
  })
})

describe("the moment of the next version", () => {
  it("is after the job's interval, and after a rest of four times what the last one took", () => {
    const at = (tookMinutes: number) =>
      nextInterimAt({ every: Duration.minutes(10), begunAt: 0, doneAt: tookMinutes * minute }) / minute
    expect([0, 1, 2, 3, 60].map(at)).toEqual([10, 10, 10, 15, 300])
  })
})

const succeeded = (name: string) => settled(name, "succeeded", "COMPLETED", "nobody")
const unfinished = (name: string) => settled(name, "unfinished", "SERVICE_UNREACHABLE", "service")
const kept = (name: string): Fact => {
  const of = { run_id, task_id: idOf(name), attempt: 1, execution_id: anId(`e-${name}`) }
  return { _tag: "AttemptKept", ...of, reason: "RECORDS_SHORT", families: [], message: "1 record is missing" }
}

describe("the tasks that are over in a run that was taken up again", () => {
  const before: ReadonlyArray<Fact> = [
    ...["done", "again", "open", "short", "new"].map((name) => planned(name)),
    ...executed("done", {}),
    succeeded("done"),
    unfinished("again"),
    ...executed("short", {}),
    kept("short"),
    settled("short", "partial", "RECORDS_SHORT", "engineer"),
  ]
  const over = (since: ReadonlyArray<Fact>) =>
    [...tasksOver(runOf(...before), runOf(...before, ...since))].map((id) => id.split("/")[1])

  it("are those that it leaves or settled itself, not those read again or ended since [interim over]", () => {
    expect(over([])).toEqual(["done"])
    expect(over([succeeded("new"), unfinished("again")])).toEqual(["done", "again", "new"])
    expect(over([succeeded("short")])).toEqual(["done"])
    expect(over([unfinished("open"), ...executed("open", {})])).toEqual(["done"])
  })
})

describe("a run that was published before", () => {
  const published: Fact = { _tag: "RunPublished", run_id, version: 1, receipts: [] }
  const gates = [{ gate: "keys", expected: "none", found: "1" }]
  const held: Fact = { _tag: "RunHeld", run_id, database: "held", gates }

  it("is published again only as a whole, unless nothing had been done in it by then", () => {
    const may = (...facts: ReadonlyArray<Fact>) => mayHaveInterims(runOf(...facts))
    expect([
      may(planned("a"), unfinished("a")),
      may(published, planned("a"), planned("b"), unfinished("b")),
      may(planned("a"), unfinished("a"), published),
      may(planned("a"), ...executed("a", {}), published),
      may(planned("a"), held),
      may(planned("a"), held, { _tag: "RunAccepted", run_id }),
    ]).toEqual([true, true, false, false, false, false])
  })
})
