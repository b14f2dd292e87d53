/** What the publication of a run leaves in the ledger: its receipts, what is not in the tables, and what stays remotely. */
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { Progress, type ProgressEvent } from "../../src/task/Progress.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import type { LeftOutBody } from "../../src/ledger/RunFacts.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishStage, runIn } from "../../src/run/PublishMeanwhile.ts"
import { PublicationHeld, PublishFailed, Publisher, type Published } from "../../src/tables/Publisher.ts"
import { anId } from "../harness/Id.ts"
import { executed, idOf, planned, run_id, started } from "../report/Samples.ts"
import { effect, withLayer } from "../harness/Steps.ts"

const drained = (customer: string): Fact => ({
  _tag: "AttemptDrained",
  run_id,
  task_id: idOf(customer),
  attempt: 1,
  execution_id: anId(`e-${customer}`),
})
/** A customer whose execution is here in full. */
const whole = (customer: string): ReadonlyArray<Fact> => [
  planned(customer),
  ...executed(customer, { a: 1 }),
  drained(customer),
]
const body = (customer: string, more: Partial<LeftOutBody> = {}): LeftOutBody => ({
  task_id: idOf(customer),
  execution_id: anId(`e-${customer}`),
  where: "segment-000001.njl@10",
  reason: "it is no JSON",
  ...more,
})
const other = { records: 0, families: 0, most: [] }
const plain: Published = {
  version: 7,
  receipts: [{ execution_id: anId("e-c"), landed_sha256: "aa", whole: true }],
  left_out: [],
  misfits: [],
  rejected: [],
  delivered: [],
  other,
}
const fact = (more: object = {}) => {
  const { receipts } = plain
  return { _tag: "RunPublished", run_id, version: 7, receipts, other, ...more }
}
const kept = (customer: string, reason = "it is no JSON") => ({
  _tag: "AttemptKept",
  run_id,
  task_id: idOf(customer),
  attempt: 1,
  execution_id: anId(`e-${customer}`),
  reason: "ANSWER_UNUSABLE",
  families: [],
  message: `landing/${run_id}/segment-000001.njl@10 is not in the tables: ${reason}`,
})

const inLedger = withLayer(Ledger.layer({ path: ":memory:" }))
const noInterim = () => Effect.die("no version while the run goes on")

/** What the stage returns, and what it adds to a ledger with these facts. */
const publish = (
  facts: ReadonlyArray<Fact>,
  answer: Effect.Effect<Published, PublishFailed | PublicationHeld>,
) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    yield* ledger.append([started, ...facts])
    const publisher = { publish: () => answer, publishInterim: noInterim, publishOutcome: () => Effect.void }
    const told: Array<ProgressEvent> = []
    const released = yield* publishStage(run_id).pipe(
      Effect.provideService(Publisher, publisher),
      Effect.provideService(Progress, { tell: (event) => Effect.sync(() => void told.push(event)) }),
      Effect.result,
    )
    const all = (yield* ledger.facts(run_id)).map((one) => one.fact)
    return { released, told, added: all.slice(facts.length + 1) }
  }).pipe(Effect.provide(Ledger.layer({ path: ":memory:" })))

describe("a publication", () => {
  effect("records its receipts, and what it says about the tables where there is something", function* () {
    const quiet = yield* publish(whole("c"), Effect.succeed(plain))
    expect([quiet.added, quiet.told]).toEqual([[fact()], [{ _tag: "Stage", run_id, stage: "publishing" }]])
    const notes = {
      without: ["demo.2026-11-20"],
      restored: ["demo.2026-11-19"],
      unfit: [{ table: "t", column: "c", count: 2 }],
      models: [{ name: "m", why: "no" }],
      gone: ["old"],
      misfits: [{ table: "t", column: "extra", count: 1 }],
      rejected: [{ table: null, count: 3 }],
      other: { records: 2, families: 1, most: [{ product: "a", sub_family: "b", records: 2 }] },
    }
    const { added } = yield* publish(whole("c"), Effect.succeed({ ...plain, ...notes }))
    expect(added).toEqual([fact(notes)])
  })

  effect(
    "keeps each execution with a body that is not in the tables once, for the last reason",
    function* () {
      const left_out = [body("c"), body("d"), body("c", { reason: "too deep" })]
      const { added } = yield* publish([...whole("c"), ...whole("d")], Effect.succeed({ ...plain, left_out }))
      expect(added).toEqual([fact({ left_out }), kept("c", "too deep"), kept("d")])
    },
  )

  effect("keeps nothing that is not drained, or whose end and execution are not known", function* () {
    const facts: ReadonlyArray<Fact> = [
      planned("undrained"),
      ...executed("undrained", { a: 1 }),
      ...whole("unnamed"),
      planned("open"),
      ...executed("open", {}).filter(({ _tag }) => _tag !== "AttemptClosed"),
      drained("open"),
    ]
    const { execution_id: _, ...unnamed } = body("unnamed")
    const left_out = [
      body("undrained"),
      unnamed,
      body("open"),
      body("of-nobody"),
      body("unnamed", { execution_id: anId("e-of-another-attempt") }),
    ]
    const { added } = yield* publish(facts, Effect.succeed({ ...plain, left_out }))
    expect(added).toEqual([fact({ left_out })])
  })

  effect("that a gate holds back records that alone, and failing records nothing", function* () {
    const gates = [{ gate: "rows", expected: "more", found: "less" }]
    const held = yield* publish(
      whole("c"),
      Effect.fail(new PublicationHeld({ run_id, database: "published/held/x.duckdb", gates })),
    )
    expect(held.added).toEqual([{ _tag: "RunHeld", run_id, database: "published/held/x.duckdb", gates }])
    expect(held.released).toMatchObject({ _tag: "Success", success: [] })
    const failed = yield* publish(whole("c"), Effect.fail(new PublishFailed({ message: "disk full" })))
    expect(failed.added).toEqual([])
    expect(failed.released).toMatchObject({ _tag: "Failure", failure: { message: "disk full" } })
  })

  inLedger.effect(
    "publishes the runs that were held back before it with receipts of their own",
    function* () {
      const earlier = anId("demo.2026-11-20")
      const move = (one: Fact): Fact =>
        JSON.parse(JSON.stringify(one).replaceAll(`${run_id}`, `${earlier}`)) as Fact
      const ledger = yield* Ledger
      yield* ledger.append([started, ...whole("c"), ...[started, ...whole("d")].map(move)])
      const of = { receipts: [{ execution_id: anId("e-d"), landed_sha256: "dd", whole: false }] }
      const left_out = [body("d", { task_id: anId(`${earlier}/d/bank:website`) })]
      const released = [{ run_id: earlier, ...of, left_out, misfits: [], rejected: [], delivered: [], other }]
      const publisher = {
        publish: () => Effect.succeed({ ...plain, released }),
        publishInterim: noInterim,
        publishOutcome: () => Effect.void,
      }
      const told = yield* Effect.provideService(publishStage(run_id), Publisher, publisher)
      expect(told).toEqual([earlier])
      expect((yield* ledger.facts(earlier)).slice(-2).map((one) => one.fact)).toEqual([
        { _tag: "RunPublished", run_id: earlier, version: 7, ...of, left_out, other },
        move(kept("d") as Fact),
      ])
      expect((yield* ledger.facts(run_id)).at(-1)?.fact).toEqual(fact())
    },
  )
})

inLedger.effect("a run that the ledger does not know is a defect that names it", function* () {
  const exit = yield* Effect.exit(runIn(yield* Ledger, anId("demo.2026-11-19")))
  expect(String(exit)).toContain("the ledger has no run demo.2026-11-19")
})
