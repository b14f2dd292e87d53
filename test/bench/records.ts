/**
 * How many customer profiles a second go from landed bytes to Parquet bytes on one thread: read, checked, normalised
 * into columns, written. The peer only reads the same bodies as JSON.
 */
import { families } from "../records/families.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"
import { flushAll, flushFull, type Flushed } from "../../src/records/Flush.ts"
import { Normaliser } from "../../src/records/Normalise.ts"
import { parquetBytes } from "../../src/records/Flush.ts"
import { parseBody } from "../../src/records/FindRecords.ts"
import { median, type Benchmark } from "./Figure.ts"
import { profile, resultsBody } from "./ProfileBodies.ts"
import { anId } from "../harness/Id.ts"

const rounds = 3

const bodiesOf = (profiles: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: profiles }, (_, n) => Buffer.from(JSON.stringify(resultsBody([profile(n)]))))

const lineage = (n: number) => ({
  run_id: anId("nightly.2026-11-20"),
  run_date: "2026-11-20",
  task_id: anId(`nightly.2026-11-20/c-${n}/es-tax-agency:website`),
  execution_id: anId(`65f0c0ffee65f0c0${n}`),
  session_id: anId(`75f0c0ffee65f0c0${n}`),
  customer_id: anId(`c-${n}`),
  engine_reference: anId("es-tax-agency:website"),
})

interface Round {
  readonly perSecond: number
  readonly rows: Readonly<Record<string, number>>
}

const normaliseAll = (families: ReadonlyArray<RecordFamily>, bodies: ReadonlyArray<Uint8Array>): Round => {
  const normaliser = new Normaliser(families)
  const rows: Record<string, number> = {}
  const write = (flushed: Iterable<Flushed>): void => {
    for (const { spec, table, rows: count } of flushed) {
      parquetBytes(spec, table, { run_id: anId("r") })
      rows[spec.name] = (rows[spec.name] ?? 0) + count
    }
  }
  const startedAt = performance.now()
  bodies.forEach((body, n) => {
    const parsed = parseBody(body)
    if (parsed._tag === "ReadableBody") normaliser.add(lineage(n), Reflect.get(Object(parsed.value), "data"))
    write(flushFull(normaliser.tables().values()))
  })
  write(flushAll(normaliser.tables().values()))
  return { perSecond: (bodies.length * 1_000) / (performance.now() - startedAt), rows }
}

const parseAll = (bodies: ReadonlyArray<Uint8Array>): number => {
  const startedAt = performance.now()
  for (const body of bodies) JSON.parse(body.toString())
  return (bodies.length * 1_000) / (performance.now() - startedAt)
}

export const records: Benchmark = {
  name: "records",
  about: "customer profiles a second, from landed bytes to Parquet bytes in four tables",
  run: async ({ sample }) => {
    const bodies = bodiesOf(sample ? 1_000 : 50_000)
    const peers = new Array<number>()
    const runs = new Array<Round>()
    for (let n = 0; n < rounds; n++) {
      peers.push(parseAll(bodies))
      runs.push(normaliseAll(families, bodies))
    }
    const complaints = runs.flatMap(({ rows }) =>
      rows["customer_profiles"] === bodies.length
        ? []
        : [`${rows["customer_profiles"] ?? 0} of ${bodies.length} profiles are in their table`],
    )
    const peer = { name: "JSON.parse alone", value: median(peers) }
    const value = median(runs.map(({ perSecond }) => perSecond))
    return { figures: [{ name: "profiles", value, unit: "profiles/s", peer }], complaints }
  },
}
