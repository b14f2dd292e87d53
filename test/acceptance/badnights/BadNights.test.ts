/**
 * A bad night, recorded: what the engineer on call is told of it is right and agrees, and the suggested commands,
 * followed as they stand, end what can be ended. `recorded/` has what was printed. Nights that are killed and resumed
 * are in `faults`, those that wait for their service in `run/LogicalNights`.
 */
import { describe, it, vi } from "vitest"
import { BadNight, recordsOf, type Customer } from "./BadNight.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 600_000 })

const quick = "queue-2+run-4"

describe("a bad night", () => {
  it("with failures of every class ends with what nobody can mend", async ({ expect, onTestFinished }) => {
    const wrong = { id: "wrong", words: `${quick}+end-INCORRECT_CREDENTIALS` }
    const customers: ReadonlyArray<Customer> = [
      { id: "ok", words: quick, records: 6 },
      { id: "odd", words: `${quick}+odd+records-6` },
      { id: "blocked", words: `${quick}+heal-1-BLOCKED_USER`, records: 3 },
      { id: "offline", words: `${quick}+heal-2-ENGINE_UNAVAILABLE`, records: 3 },
      { id: "half", words: `${quick}+partial+records-6` },
      { id: "nothing", words: `${quick}+end-FAILED` },
      { id: "asked", words: `${quick}+challenge-123456` },
      { id: "conflict", words: quick, records: 3 },
      { id: "foreign", words: `${quick}+foreign-60`, records: 3 },
      { id: "unusable", words: quick, records: 3 },
      { id: "lost", words: quick, records: 3 },
      { id: "storm", words: quick, records: 3 },
    ]
    const night = new BadNight({
      customers: [...customers, wrong],
      job: [
        "retry: { max_attempts: 2, base: 5 seconds, max: 10 seconds }",
        "flow_results: { wait_final: 30 seconds }",
        // The lost start cannot be open any more when the first rerun comes.
        "execution: { max_wait: 3 minutes }",
      ],
      faults: [
        "{ on: deleteExecution, customer: conflict, first: 3, status: 409 }",
        `{ on: readFlowResults, customer: unusable, body: '${"[".repeat(200)}${"]".repeat(200)}' }`,
        "{ on: startExecution, customer: lost, first: 2, status: 500 }",
        "{ on: readExecution, customer: storm, first: 3, status: 503 }",
      ],
    })
    onTestFinished(() => night.place.remove())
    const first = await night.do("nightjar run job.yaml")
    expect(await night.disagreements(first)).toEqual([])
    // In the morning the service is well again, and people do what they are asked for.
    night.faults([])
    const corrected = [...customers, { ...wrong, words: quick, records: 3 }]
    const last = await night.follow(first, async () => {
      night.customers(corrected)
      await night.release("blocked")
      await night.settle()
    })
    expect(await night.disagreements(last)).toEqual([])
    await expect(night.told.join("\n")).toMatchFileSnapshot("recorded/every-class.txt")
    // The customer has unblocked it, and it was released: it is right that it was sent once more.
    expect([last.code, night.left()]).toEqual([3, { kept: [], broken: ["rejected_login_repeated blocked"] }])
    expect(await night.records()).toEqual(expect.objectContaining(recordsOf(corrected)))
  })
})
