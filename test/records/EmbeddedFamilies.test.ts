/** Our own readings of what the reference does not show fit every record of the embedded service. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { features } from "../../src/service/Vocabulary.ts"
import { readingTables } from "../../src/jobs/Settings.ts"
import { readRecordSchemas, refuseClashes } from "../../src/records/RecordSchema.ts"
import { Normaliser } from "../../src/records/Normalise.ts"
import { engineDefinitions } from "../../src/sandbox/engines/EngineCatalogue.ts"
import { planTimeline, readBehaviour } from "../../src/sandbox/executions/Behaviour.ts"
import { planResults, recordsPlanned } from "../../src/sandbox/executions/PlanResults.ts"
import { retrievalData } from "../../src/sandbox/executions/Results.ts"
import type { Retrieval } from "../../src/sandbox/state/ResultsPlan.ts"
import { seeded } from "../../src/sandbox/state/Reading.ts"
import { families, flushOf, lineage, readingsFolder } from "./families.ts"

const files = await Effect.runPromise(
  readRecordSchemas(readingsFolder).pipe(Effect.provide(NodeFileSystem.layer)),
)
const readings = files.map(({ family }) => family)
const all = [...families, ...readings]

const at = Date.UTC(2026, 10, 21, 3)

/** What an engine that offers everything answers to one customer with these words and settings. */
const resultsOf = (
  seed: number,
  { reference: engine_reference, features: offered }: (typeof engineDefinitions)[number],
  words: string,
  configurations: Readonly<Record<string, unknown>>,
) => {
  const customer_id = `c-${seed}`
  const behaviour = readBehaviour(words)
  const about = { seed, customer_id, engine_reference, behaviour }
  // The last one that has a record also has the documents of its source.
  const turn = Math.floor(seed / 2) % offered.length
  const order = [...offered.slice(turn), ...offered.slice(0, turn)]
  const asked = order.map((code, position) => ({ code, configurations, position }))
  const unlocked = seed % 2 === 0
  const results = planResults({ ...about, asked, end: "COMPLETED", at, unlocked })
  const plan = { ...about, ordinal: 0, application: "a", interaction: false, timeoutMs: 60_000 }
  const retrieval: Retrieval = {
    started: {
      at,
      session_id: `s-${seed}`,
      customer_id,
      engine_reference,
      timeline: planTimeline(plan),
      results,
    },
    phases: [
      {
        from: at,
        status_code: "COMPLETED",
        status_reason: "COMPLETED",
        authentication_status: "AUTH_OK",
        spends: "nothing",
        attempted: true,
      },
    ],
  }
  return { records: recordsPlanned(results), data: retrievalData(seed, [{ retrieval, final: true }], at) }
}

/** Every setting that changes records, each now and then. */
const settingsOf = (seed: number) => {
  const draw = seeded("settings", seed)
  return {
    from_date: draw.pick(["30 days ago", "2026-01-01", "yesterday"]),
    read_transactions: draw.chance(0.5),
    read_holders: draw.chance(0.5),
    read_point_movements: draw.chance(0.5),
    simple_vehicle_report: draw.chance(0.5),
    contribution_base_report: draw.chance(0.5),
    last_n_years: draw.int(0, 5),
    ...(draw.chance(0.3) ? { filter_by_type: ["financial_card:mixed"] } : {}),
    ...(draw.chance(0.3) ? { preferred_type: "credit_registry_data:es_cirbe_aggregated" } : {}),
  }
}

/** Twice as many as the most features that an engine has. */
const seeds = Array.from({ length: 30 }, (_, index) => index)
const wordsOf = (seed: number) =>
  seed % 2 === 1 ? "ok+records-8+attach-2" : (["ok", "ok+company", "ok+records-10"][seed % 3] ?? "ok")

/** Records of one customer and engine by the key of their family; a word that sets their number repeats some. */
const keysOf = (data: object) =>
  readings.flatMap(({ product, key }) => {
    const records: ReadonlyArray<object> = Object.entries(data).find(([name]) => name === product)?.[1] ?? []
    return records.map((record) => {
      const values = new Map(Object.entries(record))
      return JSON.stringify([product, ...["sub_family", ...key].map((name) => values.get(name) ?? null)])
    })
  })

describe("our own readings", () => {
  it("are one for each product that the reference does not show, and each feature has one or is shown", async () => {
    expect(files.map(({ name }) => name)).toEqual(readingTables.map((table) => `${table}.yaml`))
    expect(readings.map(({ table, product }) => [table, product])).toEqual(
      readingTables.map((table) => [table, table]),
    )
    expect(new Set(all.flatMap((family) => family.features))).toEqual(new Set(features))
    await Effect.runPromise(refuseClashes([...files]))
    for (const { assumed, children, columns } of readings)
      expect([
        assumed,
        ...children.map((child) => child.assumed),
        columns.some((one) => one.required),
      ]).toEqual([true, ...children.map(() => true), false])
  })

  it("take every record of every engine with any settings, each with a key of its own", () => {
    const normaliser = new Normaliser(all)
    for (const seed of seeds)
      for (const engine of engineDefinitions) {
        const words = wordsOf(seed)
        const { records, data } = resultsOf(seed, engine, words, settingsOf(seed))
        const counts = normaliser.add(lineage, data)
        expect(counts).toMatchObject({ records, other: 0, rejected: 0, strays: 0, misfits: [] })
        const keys = words.includes("records") ? [] : keysOf(data)
        expect(keys).toEqual([...new Set(keys)])
      }
    const flushed = new Map(flushOf(normaliser).map(({ spec, rows, table }) => [spec.name, { rows, table }]))
    const empty = readings.flatMap((family) =>
      [family, ...family.children].flatMap(({ table, columns }) => {
        const held = flushed.get(table)
        const isEmpty = (name: string) => held?.table.getChild(name)?.nullCount === held?.rows
        expect([table, isEmpty("extra"), isEmpty("misfits")]).toEqual([table, true, true])
        return columns.filter(({ name }) => isEmpty(name)).map(({ name }) => `${table}.${name}`)
      }),
    )
    expect(empty).toEqual([])
  })

  it("lose nothing of a stranger's record that has their names and another shape", () => {
    const normaliser = new Normaliser(all)
    const stranger = {
      product: "accounts",
      sub_family: "account:checking",
      fetch_date: "2026-11-21T03:00:00Z",
      number: 7,
      balance: { amount: 3 },
      opened_on: 2001,
      holders: ["Ana"],
    }
    const counts = normaliser.add(lineage, [stranger])
    const misfits = counts.misfits.map(({ table, column }) => `${table}.${column}`)
    expect([counts.inTables, misfits]).toEqual([
      1,
      ["accounts.balance", "accounts.opened_on", "account_holders.item"],
    ])
    const tables = new Map(flushOf(normaliser).map(({ spec, table }) => [spec.name, table]))
    const extraOf = (table: string): unknown => tables.get(table)?.getChild("extra")?.get(0)
    expect(["accounts", "account_holders"].map(extraOf)).toEqual([
      '{"number":7,"balance":{"amount":3},"opened_on":2001}',
      '{"item":"Ana"}',
    ])
  })
})
