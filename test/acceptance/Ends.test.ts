/**
 * The contract's table of ends, against the fake: three nights, one per exit code, with every row in one of them. With
 * NIGHTJAR_ACCEPTANCE=all each row also has a night of its own, for its own exit code.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { endRows } from "./EndRows.ts"
import type { EndRow } from "./EndRows.ts"
import { FakeService } from "./FakeService.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"
import type { Ended } from "./Nightjar.ts"

interface Night {
  readonly fake: FakeService
  readonly place: Workplace
  readonly rows: ReadonlyArray<EndRow>
  readonly ended: Ended
}

const customers = (rows: ReadonlyArray<EndRow>) =>
  `customers:\n${rows
    .map(({ id, engine }) =>
      engine === undefined ? login(id) : login(id).replace(/ \}$/, `, engines: ["${engine}"] }`),
    )
    .join("\n")}\n`

const runRows = async (name: string, rows: ReadonlyArray<EndRow>): Promise<Night> => {
  const fake = await FakeService.listen()
  const place = new Workplace()
  for (const { id, script } of rows) fake.scripts.set(id, script)
  fake.beforeDelete = async ({ execution_id, session_id, customer_id }) => {
    if (!existsSync(join(place.output, "nightjar.duckdb"))) return `${customer_id}: deleted before any table`
    const [counts] = await place.rows(
      `SELECT (SELECT count(*) FROM executions WHERE execution_id = '${execution_id}')::INT AS executions,
         (SELECT count(*) FROM customer_profiles WHERE session_id = '${session_id}')::INT AS profiles`,
    )
    const read = (fake.sessionReads.get(session_id) ?? []).length > 0
    const wanted = read && !customer_id.startsWith("flow-4") && !customer_id.endsWith("-nothing") ? 1 : 0
    return counts?.["executions"] === 1 && Number(counts["profiles"]) >= wanted
      ? undefined
      : `${customer_id}: deleted before it was published (${JSON.stringify(counts)})`
  }
  place.write("job.yaml", jobText(fake, { name, customers: customers(rows) }))
  return { fake, place, rows, ended: await place.nightjar("run", "job.yaml") }
}

const codes = [0, 3, 4] as const
const nights = new Map<number, Night>()
const nightOf = (code: number): Night => {
  const night = nights.get(code)
  if (night === undefined) throw new Error(`no night for exit code ${code}`)
  return night
}

beforeAll(async () => {
  await Promise.all(
    codes.map(async (code) => {
      nights.set(code, await runRows(`ends-${code}`, endRows.filter(({ expected }) => expected[4] === code)))
    }),
  )
}, 60_000)
afterAll(async () => {
  for (const { fake, place } of nights.values()) {
    await fake.close()
    place.remove()
  }
})

const told = ({ id, engine, expected: [outcome, reason, who_acts] }: EndRow, attempts: number) => ({
  customer_id: id,
  engine_reference: engine ?? "fake-bank:website",
  outcome,
  reason,
  who_acts,
  attempts,
})
const sorted = <A extends { readonly customer_id: string }>(rows: ReadonlyArray<A>) =>
  rows.toSorted((a, b) => (a.customer_id < b.customer_id ? -1 : 1))

describe.each(codes)("a night whose ends say %i", (code) => {
  it("exits with it", () => {
    const { ended } = nightOf(code)
    expect([ended.code, ended.stderr.match(/defect/)]).toEqual([code, null])
  })

  it("tells outcome, reason, who acts and attempts of every row in `tasks`", async () => {
    const { place, rows } = nightOf(code)
    const found = await place.rows(
      "SELECT customer_id, engine_reference, outcome, reason, who_acts, attempts::INT AS attempts FROM tasks",
    )
    expect(sorted(found as ReadonlyArray<{ customer_id: string }>)).toEqual(
      sorted(rows.map((row) => told(row, row.expected[3]))),
    )
  })

  it("tells the same in `status --json`", async () => {
    const { place, rows } = nightOf(code)
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

  it("starts exactly as often as promised, and not one request breaks the reference's manners", () => {
    const { fake, rows } = nightOf(code)
    const executions = (id: string) =>
      [...fake.executions, ...fake.removed].filter(({ customer_id }) => customer_id === id).length
    expect(Object.fromEntries(rows.map(({ id }) => [id, executions(id)]))).toEqual(
      Object.fromEntries(rows.map(({ id, expected }) => [id, expected[3]])),
    )
    expect(fake.breaches).toEqual([])
  })

  it("deletes every execution but those whose records are still owed", () => {
    const { fake, rows } = nightOf(code)
    const kept = new Set(fake.executions.map(({ customer_id }) => customer_id))
    expect([...kept].toSorted()).toEqual(rows.flatMap(({ id, kept: stays }) => (stays ? [id] : [])).toSorted())
  })

  it("sends the secret with every request and nothing but JSON in bodies", () => {
    const { fake } = nightOf(code)
    expect(fake.seen.filter(({ headers }) => headers["x-app-secret"] !== "fake-secret-1")).toEqual([])
    const bodies = fake.seen.filter(({ body }) => body !== "")
    expect(new Set(bodies.map(({ method, headers }) => `${method} ${headers["content-type"]}`))).toEqual(
      new Set(["POST application/json"]),
    )
  })
})

describe("a lost start", () => {
  it("is probed once with the same external id", () => {
    const { fake } = nightOf(4)
    const ids = fake.startsOf("start-lost-twice").map((start) => start.external_execution_id)
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
  })
})

describe("somebody else's execution", () => {
  it("is never read, aborted or deleted", () => {
    expect(nightOf(4).fake.seen.filter(({ path }) => path.includes("somebody-elses"))).toEqual([])
  })
})

describe.runIf(process.env["NIGHTJAR_ACCEPTANCE"] === "all")("each row in a night of its own", () => {
  it.each(endRows.map((row) => [row.id, row] as const))(
    "%s",
    async (_, row) => {
      const { fake, place, ended } = await runRows("alone", [row])
      await fake.close()
      const [found] = await place.rows("SELECT outcome, reason, who_acts, attempts::INT AS attempts FROM tasks")
      const { outcome, reason, who_acts, attempts } = told(row, row.expected[3])
      expect([ended.code, found]).toEqual([row.expected[4], { outcome, reason, who_acts, attempts }])
      place.remove()
    },
    60_000,
  )
})
