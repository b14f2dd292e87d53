/**
 * The job of the night that is measured: customers in a CSV file as a large job has them, mostly going well, some
 * with rejected logins and some with errors that pass. What each customer must end as is known beforehand.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"

export interface NightSize {
  readonly customers: number
  readonly inFlight: number
  /** In the queue: from this, growing over the customers to twice as much. */
  readonly queueSeconds: number
  /** Of work, once begun. */
  readonly runSeconds: number
  /** Before a second attempt. */
  readonly retry: string
  /** Where logs, metrics and traces go, if anywhere. */
  readonly otlp?: string
}

interface Kind {
  readonly words: string
  readonly outcome: "succeeded" | "failed"
  readonly reason: string
}

const records = 6
const fine: Kind = { words: `ok+records-${records}`, outcome: "succeeded", reason: "COMPLETED" }
const kinds: ReadonlyArray<Kind> = [
  ...Array.from({ length: 17 }, () => fine),
  { words: "end-INCORRECT_CREDENTIALS", outcome: "failed", reason: "INCORRECT_CREDENTIALS" },
  { ...fine, words: `heal-1-NETWORK_ERROR+records-${records}` },
  { ...fine, words: `ok+async-5+records-${records}` },
]

const engines = ["sandbox-bank:website", "sandbox-bank:website", "sandbox-tax:website", "es-utility:mobile"]

export interface ExpectedNight {
  /** "succeeded COMPLETED" → how many tasks. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly records: number
  readonly exit_code: number
}

/** Writes `night.yaml` and `customers.csv` into a folder, and answers what the night must come to. */
export const writeNightJob = (folder: string, size: NightSize): ExpectedNight => {
  const rows = ["customer_id,engine_reference,username,password"]
  const outcomes: Record<string, number> = {}
  let expectedRecords = 0
  for (let n = 0; n < size.customers; n++) {
    const { words, outcome, reason } = kinds[n % kinds.length] ?? fine
    const queue = Math.round(size.queueSeconds * (1 + n / size.customers))
    const engine = engines[Math.floor(n / kinds.length) % engines.length]
    rows.push(
      `c-${String(n).padStart(5, "0")},${engine},queue-${queue}+run-${size.runSeconds}+${words}+c${n},password-${n}`,
    )
    outcomes[`${outcome} ${reason}`] = (outcomes[`${outcome} ${reason}`] ?? 0) + 1
    expectedRecords += outcome === "succeeded" ? records : 0
  }
  writeFileSync(join(folder, "customers.csv"), `${rows.join("\n")}\n`, { mode: 0o600 })
  writeFileSync(join(folder, "night.yaml"), jobText(size))
  return { outcomes, records: expectedRecords, exit_code: outcomes["failed INCORRECT_CREDENTIALS"] ? 3 : 0 }
}

/** Polling and flow results are the defaults, those of a real night. */
const jobText = ({ inFlight, retry, otlp }: NightSize): string => `name: night
${otlp === undefined ? "" : `telemetry: { otlp: "${otlp}" }\n`}service:
  base_url: http://127.0.0.1:9/api
  flows_url: http://127.0.0.1:9/flows
  app_secret: env:NIGHTJAR_APP_SECRET
timezone: UTC
concurrency: { max_in_flight: ${inFlight}, per_engine: ${inFlight} }
retry: { base: ${retry} }
engines: [${[...new Set(engines)].join(", ")}]
customers:
  - from: customers.csv
`
