/**
 * How many customer profiles a second go from landed bytes to Parquet bytes, step by step, on one thread:
 * `node test/records/throughput.ts [PROFILES] [PROFILES_PER_BODY]`.
 */
import { NodeFileSystem } from "@effect/platform-node"
import { Effect } from "effect"
import { loadRecordSchemas } from "../../src/records/LoadRecordSchemas.ts"
import { makeNormaliser } from "../../src/records/Normalise.ts"
import { parquetBytes } from "../../src/records/Parquet.ts"
import { parseBody } from "../../src/records/ParseBody.ts"

const profiles = Number(process.argv[2] ?? 50_000)
const perBody = Number(process.argv[3] ?? 1)
const folder = new URL("../../schemas/records", import.meta.url).pathname
const families = await Effect.runPromise(loadRecordSchemas(folder).pipe(Effect.provide(NodeFileSystem.layer)))

const profile = (n: number) => ({
  product: "customer_information",
  sub_family: "customer_information:user_profile",
  fetch_date: `2026-11-20T03:${String(n % 60).padStart(2, "0")}:12.${String(n % 1000).padStart(3, "0")}Z`,
  type: "person",
  name: n % 3 === 0 ? `María José ${n}` : `Peter ${n}`,
  name_extra: `García Núñez ${n % 977}`,
  alias: null,
  identification_numbers: [
    {
      type: "es:dni",
      value: `${10_000_000 + n}X`,
      validated: true,
      country: "ES",
      valid_until: "2031-05-01",
    },
    { type: "es:ssn", value: `28${n}`, validated: false },
  ],
  birth_date: `19${String(40 + (n % 60))}-0${1 + (n % 9)}-1${n % 10}`,
  birth_country: "ES",
  nationality_country: "ES",
  residence_country: "ES",
  gender: n % 2 === 0 ? "female" : "male",
  civil_status: "married",
  number_of_children: n % 4,
  emails: [`person${n}@example.org`],
  phones: [`+346${10_000_000 + n}`, `+349${10_000_000 + n}`],
  addresses: [
    {
      title: "home",
      street: `Calle Mayor ${n % 200}`,
      street_extra: "3º B",
      municipality: "Madrid",
      city: "Madrid",
      state: "Madrid",
      country: "ES",
      zip_code: `28${String(n % 1000).padStart(3, "0")}`,
    },
  ],
  language: "es",
  member_since: "2011-02-03",
})

const bodies: Array<Uint8Array> = []
for (let n = 0; n < profiles; n += perBody) {
  const data = Array.from({ length: Math.min(perBody, profiles - n) }, (_, i) => profile(n + i))
  bodies.push(
    Buffer.from(JSON.stringify({ data, retrieved_features: ["customer_information_read"], is_closed: true })),
  )
}

const measure = () => {
  const normaliser = makeNormaliser(families)
  const spent = { parse: 0, normalise: 0, arrow: 0, parquet: 0 }
  let bytes = 0
  const flush = (): void => {
    const before = performance.now()
    const flushed = normaliser.flush()
    const built = performance.now()
    for (const { spec, table } of flushed) bytes += parquetBytes(spec, table, { run_id: "r" }).length
    spent.arrow += built - before
    spent.parquet += performance.now() - built
  }
  const start = performance.now()
  bodies.forEach((body, i) => {
    const lineage = {
      run_id: "nightly.2026-11-20",
      task_id: `nightly.2026-11-20/c-${i}/es-tax-agency:website`,
      execution_id: `65f0c0ffee65f0c0${i}`,
      session_id: `75f0c0ffee65f0c0${i}`,
      customer_id: `c-${i}`,
      engine_reference: "es-tax-agency:website",
    }
    const before = performance.now()
    const parsed = parseBody(body)
    const read = performance.now()
    if (parsed._tag === "ReadableBody") normaliser.add(lineage, Reflect.get(Object(parsed.value), "data"))
    spent.parse += read - before
    spent.normalise += performance.now() - read
    if (normaliser.isFull) flush()
  })
  flush()
  return { ms: performance.now() - start, spent, bytes }
}

/** The peer: reading the same bodies as JSON, and nothing else. */
const parseOnly = (): number => {
  const start = performance.now()
  for (const body of bodies) JSON.parse(body.toString())
  return performance.now() - start
}

for (let round = 0; round < 3; round++) {
  const peer = parseOnly()
  const { ms, spent, bytes } = measure()
  const steps = Object.entries(spent).map(([step, each]) => `${step} ${each.toFixed(0)} ms`)
  const rate = Math.round(profiles / (ms / 1000))
  const size = `${(bytes / 1e6).toFixed(1)} MB of Parquet`
  console.log(`${rate} profiles/s (${steps.join(", ")}), ${size}, ${(ms / peer).toFixed(1)} x JSON.parse`)
}
