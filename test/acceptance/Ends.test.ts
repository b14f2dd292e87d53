/**
 * The contract's table of ends, against the fake: three nights, one per exit code, with every row in one of them. With
 * NIGHTJAR_ACCEPTANCE=all there is a night of storms too, and each row has one of its own, for its own exit code.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { endRows, stormRows } from "./EndRows.ts"
import { runRows, sorted, told } from "./RowNights.ts"
import type { Night } from "./RowNights.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const all = process.env["NIGHTJAR_ACCEPTANCE"] === "all"
const everyKind = ["well", "persons", "later", "storms"] as const
const kinds = everyKind.filter((kind) => all || kind !== "storms")
type Kind = (typeof everyKind)[number]
const codes = { well: 0, persons: 3, later: 4, storms: 0 } as const
const rowsOf = (kind: Kind) =>
  kind === "storms" ? stormRows : endRows.filter(({ expected }) => expected[4] === codes[kind])
const nights = new Map<Kind, Night>()
const nightOf = (kind: Kind): Night => {
  const night = nights.get(kind)
  if (night === undefined) throw new Error(`no night ${kind}`)
  return night
}

beforeAll(async () => {
  await Promise.all(
    kinds.map(async (kind) => {
      nights.set(kind, await runRows(`ends-${kind}`, rowsOf(kind)))
    }),
  )
})
afterAll(async () => {
  for (const { fake, place } of nights.values()) {
    await fake.close()
    place.remove()
  }
})

describe.each(kinds)("the run `%s`", (kind) => {
  it("exits with the code of its worst row", () => {
    const { ended } = nightOf(kind)
    expect([ended.code, ended.stderr.match(/defect/)]).toEqual([codes[kind], null])
  })

  it("records outcome, reason, who acts and attempts of every row in `tasks`", async () => {
    const { place, rows } = nightOf(kind)
    const found = await place.rows(
      "SELECT customer_id, engine_reference, outcome, reason, who_acts, attempts::INT AS attempts FROM ops.tasks",
    )
    expect(sorted(found as ReadonlyArray<{ customer_id: string }>)).toEqual(sorted(rows.map(told)))
  })

  it("prints the same in `status --json`", async () => {
    const { place, rows } = nightOf(kind)
    const status = (await place.json("status")) as { readonly tasks: ReadonlyArray<Record<string, unknown>> }
    const found = status.tasks.map(({ customer_id, outcome, reason, who_acts }) => ({
      customer_id: String(customer_id),
      outcome,
      reason,
      who_acts,
    }))
    const expected = rows.map(({ id, expected: [outcome, reason, who_acts] }) => ({
      customer_id: id,
      outcome,
      reason,
      who_acts,
    }))
    expect(sorted(found)).toEqual(sorted(expected))
  })

  it("starts exactly as often as promised, and no request breaks a rule of the reference", () => {
    const { fake, rows } = nightOf(kind)
    const executions = (id: string) =>
      [...fake.executions, ...fake.removed].filter(({ customer_id }) => customer_id === id).length
    expect(Object.fromEntries(rows.map(({ id }) => [id, executions(id)]))).toEqual(
      Object.fromEntries(rows.map(({ id, expected }) => [id, expected[3]])),
    )
    expect(fake.breaches).toEqual([])
  })

  it("deletes every execution except those with missing records", () => {
    const { fake, rows } = nightOf(kind)
    const kept = new Set(fake.executions.map(({ customer_id }) => customer_id))
    expect([...kept].toSorted()).toEqual(
      rows.flatMap(({ id, kept: stays }) => (stays ? [id] : [])).toSorted(),
    )
  })

  it("sends the secret with every request and nothing but JSON in bodies", () => {
    const { fake } = nightOf(kind)
    expect(fake.seen.filter(({ headers }) => headers["x-app-secret"] !== "fake-secret-1")).toEqual([])
    const bodies = fake.seen.filter(({ body }) => body !== "")
    expect(new Set(bodies.map(({ method, headers }) => `${method} ${headers["content-type"]}`))).toEqual(
      new Set(["POST application/json"]),
    )
  })
})

describe("a lost start", () => {
  it("is probed once with the same external id", () => {
    const { fake } = nightOf("later")
    const ids = fake.startsOf("start-lost-twice").map((start) => start.external_execution_id)
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
  })
})

describe("somebody else's execution", () => {
  it("is never read, aborted or deleted", () => {
    expect(nightOf("later").fake.seen.filter(({ path }) => path.includes("somebody-elses"))).toEqual([])
  })
})

if (all) {
  describe("each row in its own run", () => {
    it.concurrent.each([...endRows, ...stormRows].map((row) => [row.id, row] as const))(
      "%s",
      async (_, row) => {
        const { fake, place, ended } = await runRows("alone", [row])
        await fake.close()
        const [found] = await place.rows(
          "SELECT outcome, reason, who_acts, attempts::INT AS attempts FROM ops.tasks",
        )
        const { outcome, reason, who_acts, attempts } = told(row)
        expect([ended.code, found]).toEqual([row.expected[4], { outcome, reason, who_acts, attempts }])
        place.remove()
      },
      180_000,
    )
  })
}
