/**
 * A service that never ends, as a process against a real server: silent and dripping answers, a deadline and a signal in
 * the middle of them. How long each is waited for is in `test/client/AnswerTime.test.ts`, and what becomes of its task in
 * `test/task/Ending.test.ts`.
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
const quick = `execution: { max_wait: 3 seconds }
retry: { max_attempts: 2, base: 100 millis, max: 200 millis }
flow_results: { wait_final: 6 seconds }`

describe("answers that never end", () => {
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
