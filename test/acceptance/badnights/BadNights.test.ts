/**
 * Bad nights, recorded: what the engineer on call is told of each is right and agrees, and the suggested commands,
 * followed as they stand, end every night that can be ended. `recorded/` has what was printed.
 */
import { afterAll, describe, it, vi } from "vitest"
import { BadNight, recordsOf, suggested, type Customer, type Scene } from "./BadNight.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 600_000 })

const nights: Array<BadNight> = []
const nightOf = (scene: Scene): BadNight => {
  const night = new BadNight(scene)
  nights.push(night)
  return night
}
afterAll(() => nights.forEach(({ place }) => place.remove()))

const run = "nightjar run job.yaml"
/** Slow enough that no night is over before its commands are, on a busy machine too. */
const speed = 60
const quick = "queue-2+run-4"
const nothingLeft = { kept: [], broken: [] }

describe.concurrent("a bad night", () => {
  it("with failures of every class ends with what nobody can mend", async ({ expect }) => {
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
    const night = nightOf({
      customers: [...customers, wrong],
      speed,
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
    const first = await night.do(run)
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

  it("whose service is down from the start until after the deadline is begun again by day", async ({
    expect,
  }) => {
    const customers: ReadonlyArray<Customer> = [{ id: "ok", words: quick, records: 3 }]
    const down = ['{ on: "*", reset: before }']
    const night = nightOf({ customers, speed: 2_400, untilMinutes: 60, faults: down })
    await night.do(run)
    const morning = await night.do("nightjar status")
    night.faults([])
    night.pace(speed)
    const last = await night.follow(morning)
    await expect(night.told.join("\n")).toMatchFileSnapshot("recorded/down-all-night.txt")
    expect([last.code, night.left()]).toEqual([0, nothingLeft])
    expect(await night.records()).toEqual(recordsOf(customers))
  })

  it("that is killed while it executes and again while it deletes is resumed by what `status` suggests", async ({
    expect,
  }) => {
    const customers = ["quick", "open"].map((id): Customer => ({ id, words: quick, records: 3 }))
    const night = nightOf({ customers, speed, faults: ["{ on: readExecution, customer: open, hang: true }"] })
    await night.killed(run, "AttemptClosed")
    const first = await night.do("nightjar status")
    // Neither killed run can end before it is killed, however late that is.
    night.faults(["{ on: deleteExecution, hang: true }"])
    await night.killed(suggested(first.stdout) ?? "", "DeleteIntended")
    const second = await night.do("nightjar status")
    night.faults([])
    const last = await night.follow(second)
    expect(night.story).toEqual([
      "nightjar run job.yaml # killed → null",
      "nightjar status → 0",
      "nightjar run /job.yaml --output /output # killed → null",
      "nightjar status → 0",
      "nightjar run /job.yaml --output /output → 0",
    ])
    expect([last.code, night.left()]).toEqual([0, nothingLeft])
    expect(await night.records()).toEqual(recordsOf(customers))
  })
})
