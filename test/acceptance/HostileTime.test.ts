/**
 * A service that never ends, as processes against a real server: silent and dripping answers, absurd waits, a deadline
 * and a signal in the middle of it. Who was asked for nothing else but that gets it for himself alone.
 */
import { setTimeout as wait } from "node:timers/promises"
import { afterAll, describe, expect, it, vi } from "vitest"
import { ended, FakeService, profileOf, resultsBody, working, type Script } from "./FakeService.ts"
import type { Reply } from "./FakeEngines.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"

// Processes on a busy machine take their time; what is judged here are minutes against seconds.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

const scenes: Array<{ readonly fake: FakeService; readonly place: Workplace }> = []
const scene = async (customers: Readonly<Record<string, Script>>, rest: string) => {
  const made = { fake: await FakeService.listen(), place: new Workplace() }
  scenes.push(made)
  for (const [id, script] of Object.entries(customers)) made.fake.scripts.set(id, script)
  const lines = Object.keys(customers).map((id) => login(id))
  const parts = { name: "slow", customers: `customers:\n${lines.join("\n")}\n`, rest }
  made.place.write("job.yaml", jobText(made.fake, parts))
  return made
}
afterAll(async () => {
  for (const { fake, place } of scenes) {
    await fake.close()
    place.remove()
  }
})

const silent: Reply = { status: 200, slow: "silent" }
const drips: Reply = { status: 200, slow: "drips", headers: { "content-type": "application/json" } }
const never = (value: string): Reply => ({ status: 429, headers: { "retry-after": value }, body: {} })
const counted: Script["state"] = (execution) =>
  ended(execution, "COMPLETED", "COMPLETED", {
    products_count: { "customer_information:user_profile@customer_information": 1 },
  })
const innocent: Script = { state: counted }
const documents: Script = {
  state: counted,
  results: ({ customer_id }) =>
    resultsBody({ profile: profileOf(customer_id, { attachments: [{ attachment_id: "doc-1" }] }) }),
  attachment: () => ({ ...drips, headers: { "content-type": "application/pdf" } }),
}
const published = async ({ place }: { readonly place: Workplace }) =>
  (await place.rows("SELECT DISTINCT customer_id AS id FROM nights.customer_profiles ORDER BY 1")).map(
    ({ id }) => id,
  )
const reasons = async ({ place }: { readonly place: Workplace }) =>
  Object.fromEntries(
    (await place.rows("SELECT customer_id, reason FROM ops.tasks")).map(({ customer_id, reason }) => [
      customer_id,
      reason,
    ]),
  )

const quick = `execution: { max_wait: 3 seconds }
retry: { max_attempts: 2, base: 100 millis, max: 200 millis }
flow_results: { wait_final: 6 seconds }`

// Each waits half a minute for what never comes: they wait together.
describe.concurrent("answers that never end", () => {
  it("affect only their own tasks, until seconds after max_wait", async () => {
    const made = await scene(
      {
        "c-1": innocent,
        "c-2": innocent,
        silent: { state: () => silent, abort: () => silent },
        dripping: { state: () => drips },
        "no-state": { state: () => never("99999999") },
        "no-results": { ...innocent, results: () => never("Fri, 01 Jan 2099 00:00:00 GMT") },
        unreadable: { ...innocent, results: ({ reads }) => (reads === 1 ? never("-5") : undefined) },
      },
      quick,
    )
    const begun = performance.now()
    const { code } = await made.place.nightjar("run", "job.yaml")
    expect(performance.now() - begun).toBeLessThan(90_000)
    expect([code, await reasons(made), await published(made), made.fake.breaches]).toEqual([
      4,
      {
        "c-1": "COMPLETED",
        "c-2": "COMPLETED",
        silent: "SERVICE_UNREACHABLE",
        dripping: "CLIENT_CANCELLED",
        "no-state": "SERVICE_UNREACHABLE",
        "no-results": "RESULTS_PARTIAL",
        unreadable: "COMPLETED",
      },
      // What an execution had retrieved before it was stopped is read.
      ["c-1", "c-2", "dripping", "unreadable"],
      [],
    ])
    // What asked to be left alone for years is not asked again.
    for (const id of ["no-state", "no-results"]) {
      const execution = made.fake.executions.find(({ customer_id }) => customer_id === id)
      expect(id === "no-state" ? execution?.looks : execution?.reads).toBe(1)
    }
  })

  it("end with SIGTERM within seconds, and are resumed", async () => {
    const hanging: { state: Script["state"] } = { state: () => silent }
    const made = await scene(
      {
        "c-1": innocent,
        silent: { state: (execution) => hanging.state?.(execution) },
        start: { start: (count) => (count === 1 ? { ...silent, created: true } : undefined) },
        document: { ...documents, attachment: () => (hanging.state === undefined ? { status: 404 } : drips) },
      },
      quick.replace("3 seconds", "1 hour"),
    )
    const running = made.place.spawn(["run", "job.yaml"])
    const asked = () =>
      made.fake.calls("GET", "attachments").length > 0 &&
      made.fake.startsOf("start").length > 0 &&
      (made.fake.executions.find(({ customer_id }) => customer_id === "silent")?.looks ?? 0) > 0
    while (!asked()) await wait(50)
    const signalled = performance.now()
    running.kill("SIGTERM")
    const { code } = await running.ended
    expect([code, performance.now() - signalled < 40_000]).toEqual([143, true])
    hanging.state = undefined
    const again = await made.place.nightjar("run", "job.yaml")
    expect([again.code, made.fake.startsOf("start").length, made.fake.breaches]).toEqual([0, 2, []])
    expect(await published(made)).toEqual(["c-1", "document", "silent", "start"])
  })
})

/** The next full minute but one, where the machine's clock is UTC. */
const minuteAhead = () => new Date(Date.now() + 75_000).toISOString().slice(11, 16)

// It takes two minutes, as a deadline is a minute of the day.
/** A check that takes too long for every day is only there where NIGHTJAR_ACCEPTANCE=all asks for it. */
const describeAll = process.env["NIGHTJAR_ACCEPTANCE"] === "all" ? describe : () => undefined
describeAll("the deadline", () => {
  it("publishes finished tasks while an attachment stalls and a state gets no answer", async () => {
    const made = await scene(
      { "c-1": innocent, document: documents, silent: { state: () => silent }, open: { state: working } },
      quick.replace("3 seconds", "1 hour") + `\ndeadline: "${minuteAhead()}"\ntimezone: UTC`,
    )
    const begun = performance.now()
    const { code } = await made.place.nightjar("run", "job.yaml")
    expect([code, performance.now() - begun < 180_000]).toEqual([4, true])
    expect(await published(made)).toContain("c-1")
    expect(await made.place.rows("SELECT attachment_id, status FROM ops.attachments")).toEqual([
      { attachment_id: "doc-1", status: "failed" },
    ])
  })
})
