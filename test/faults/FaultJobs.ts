/**
 * The jobs of the campaigns: a dozen customers who live through everything that ends a task for good, so that every
 * undisturbed night ends with exit code 3 and nothing is left over. `slow` adds what takes several reads of a
 * session, five seconds apart.
 */
import { timezone } from "../harness/Environment.ts"

export type Pace = "quick" | "slow"

interface Customer {
  readonly id: string
  readonly words: string
  readonly engines?: ReadonlyArray<string>
}

const bank = "sandbox-bank:website"
const tax = "sandbox-tax:website"

const quick: ReadonlyArray<Customer> = [
  { id: "c-01", words: "ok+queue-2+run-4+records-12" },
  { id: "c-02", words: "ok+queue-1+run-2+records-30" },
  { id: "c-03", words: "end-INCORRECT_CREDENTIALS+queue-1+run-2" },
  { id: "c-04", words: "heal-1-NETWORK_ERROR+queue-1+run-2+records-6" },
  { id: "c-05", words: "partial+queue-1+run-3+records-9" },
  { id: "c-06", words: "ok+odd+queue-3+run-3+records-9" },
  { id: "c-07", words: "ok+attach-2+queue-3+run-3+records-9", engines: [tax] },
  { id: "c-08", words: "challenge-1234+queue-1+run-2" },
  { id: "c-09", words: "ok+queue-6+run-9+records-15", engines: [bank, tax] },
  { id: "c-10", words: "end-FAILED+queue-1+run-2" },
  { id: "c-11", words: "ok", engines: ["sandbox-always:website"] },
  { id: "c-12", words: "heal-2-OUT_OF_SERVICE+queue-1+run-1+records-3" },
]

const slow: ReadonlyArray<Customer> = [
  { id: "c-13", words: "late-30+queue-1+run-2+records-8" },
  { id: "c-14", words: "noflow+queue-1+run-2+records-4" },
]

const customerLine = ({ id, words, engines = [bank] }: Customer): string =>
  `  - { id: ${id}, engines: [${engines.join(", ")}], ` +
  `parameters: { username: ${words}, password: pass-of-${id} } }`

const jobText = (name: string, customers: ReadonlyArray<Customer>): string =>
  [
    `name: ${name}`,
    "service:",
    "  base_url: http://127.0.0.1:9/api",
    "  flows_url: http://127.0.0.1:9/flows",
    "  app_secret: env:NIGHTJAR_APP_SECRET",
    `timezone: ${timezone}`,
    "execution: { max_wait: 30 minutes }",
    "concurrency: { max_in_flight: 30, per_engine: 20 }",
    "polling: { min: 100 millis, max: 200 millis }",
    "retry: { max_attempts: 3, base: 100 millis, max: 200 millis }",
    "flow_results: { min_interval: 5 seconds, wait_final: 1 minute }",
    // As often as it can be: every night of a campaign has versions that are made while it goes on.
    "publish: { every: 1 second }",
    "after_export: delete",
    "customers:",
    ...customers.map(customerLine),
    "",
  ].join("\n")

export const nightJob = "nightly"

/** The night that is disturbed. */
export const nightText = (pace: Pace): string =>
  jobText(nightJob, pace === "quick" ? quick : [...quick, ...slow])

export const earlierJob = "before"

/** A night of another job that the output folder holds already: what a crash must leave as it was. */
export const earlierText = jobText(earlierJob, [
  { id: "b-01", words: "ok+queue-1+run-2+records-9" },
  { id: "b-02", words: "ok+attach-1+queue-1+run-1+records-5", engines: [tax] },
])

export const longJob = "long"

/** One execution that is open for so many seconds of the service. */
export const longText = (seconds: number): string =>
  jobText(longJob, [{ id: "l-01", words: `ok+queue-${seconds}+run-1+records-3` }])
