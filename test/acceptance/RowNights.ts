/**
 * Nights made of rows: the fake, the place and the job of each, with a look into the published tables before every
 * deletion, and what users are to be told about a row.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import type { EndRow } from "./EndRows.ts"
import { FakeService } from "./FakeService.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"
import type { Ended } from "../harness/ProgramHere.ts"

export interface Night {
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

/** What goes on only until `max_wait` or `wait_final` is over gets little of it; the rest must not be short of it. */
const rules = {
  quick: `execution: { max_wait: 4 seconds }
retry: { max_attempts: 2, base: 100 millis, max: 200 millis }
flow_results: { wait_final: 6 seconds }`,
  patient: "retry: { max_attempts: 2, base: 100 millis, max: 200 millis }",
}

export const runRows = async (name: string, rows: ReadonlyArray<EndRow>): Promise<Night> => {
  const fake = await FakeService.listen()
  const place = new Workplace()
  for (const { id, script } of rows) fake.scripts.set(id, script)
  fake.beforeDelete = async ({ execution_id, session_id, customer_id }) => {
    if (!existsSync(join(place.output, "nightjar.duckdb"))) return `${customer_id}: deleted before any table`
    const [counts] = await place.rows(
      `SELECT (SELECT count(*) FROM ops.executions WHERE execution_id = '${execution_id}')::INT AS executions,
         (SELECT count(*) FROM nights.customer_profiles WHERE session_id = '${session_id}')::INT AS profiles`,
    )
    const read = (fake.sessionReads.get(session_id) ?? []).length > 0
    const wanted = read && !customer_id.startsWith("flow-4") && !customer_id.endsWith("-nothing") ? 1 : 0
    return counts?.["executions"] === 1 && Number(counts["profiles"]) >= wanted
      ? undefined
      : `${customer_id}: deleted before it was published (${JSON.stringify(counts)})`
  }
  place.write(
    "job.yaml",
    jobText(fake, {
      name,
      customers: customers(rows),
      rest: rows.some(({ expected }) => expected[4] === 4) ? rules.quick : rules.patient,
    }),
  )
  return { fake, place, rows, ended: await place.nightjar("run", "job.yaml") }
}

export const told = ({
  id,
  engine,
  attempts,
  expected: [outcome, reason, who_acts, executions],
}: EndRow) => ({
  customer_id: id,
  engine_reference: engine ?? "fake-bank:website",
  outcome,
  reason,
  who_acts,
  attempts: attempts ?? executions,
})
export const sorted = <A extends { readonly customer_id: string }>(rows: ReadonlyArray<A>) =>
  rows.toSorted((a, b) => (a.customer_id < b.customer_id ? -1 : 1))
