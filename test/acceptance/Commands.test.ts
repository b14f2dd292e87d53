/**
 * The commands beside a night, against the fake and the embedded service: what they print, their JSON, their exit
 * codes, and that none of them starts anything.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { FakeService } from "./FakeService.ts"
import { jobText, login, Workplace } from "./Nightjar.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const place = new Workplace()
let fake: FakeService
beforeAll(async () => {
  fake = await FakeService.listen()
  place.environment["NIGHTJAR_BASE_URL"] = fake.base_url
  place.environment["NIGHTJAR_FLOWS_URL"] = fake.flows_url
  place.environment["NIGHTJAR_APP_SECRET"] = "fake-secret-1"
  const customers = [
    login("one"),
    login("two").replace(" }", ", pin: 1 }"),
    '  - { id: always, parameters: { username: u, password: pppp }, engines: ["fake-always:website"] }',
    '  - { id: nobody, parameters: { username: u, password: pppp }, engines: ["not/../there:website"] }',
  ]
  place.write(
    "job.yaml",
    jobText(fake, { name: "commands", customers: `customers:\n${customers.join("\n")}\n` }),
  )
})
afterAll(async () => {
  await fake.close()
  place.remove()
})

describe.concurrent("a read-only command", () => {
  it("`plan` names tasks, what is skipped and why, and an expected duration; exit 0; nothing is started", async () => {
    const plan = (await place.json("plan", "job.yaml")) as ReadonlyArray<Record<string, unknown>>
    expect(plan).toMatchObject([
      {
        job: "commands",
        tasks: [{ customer_id: "one", starts: true }, { customer_id: "two" }],
        settled: [
          {
            customer_id: "always",
            outcome: "skipped",
            reason: "CUSTOMER_INTERVENTION_REQUIRED",
            who_acts: "engineer",
          },
          { customer_id: "nobody", outcome: "skipped", reason: "ENGINE_UNKNOWN", who_acts: "engineer" },
        ],
        expected_ms: expect.any(Number),
      },
    ])
    expect([fake.starts, fake.breaches]).toEqual([[], []])
  })

  it("`engines list` and `engines show` print the catalogue and a form", async () => {
    const [list, shown, unknown] = await Promise.all([
      place.json("engines", "list"),
      place.nightjar("engines", "show", "fake-odd:api"),
      place.nightjar("engines", "show", "not-there:website"),
    ])
    const references = (list as ReadonlyArray<{ reference: string }>).map(({ reference }) => reference)
    expect(references).toContain("fake-bank:website")
    expect([shown.code, shown.stdout.includes("nif"), shown.stdout.includes("pin")]).toEqual([0, true, true])
    expect([unknown.code, unknown.stdout]).toEqual([2, ""])
  })

  it("`init` writes a commented job file that is valid, and overwrites nothing", async () => {
    const first = await place.spawned("init", "mine")
    const second = await place.spawned("init", "mine")
    const text = readFileSync(join(place.folder, "jobs/mine.yaml"), "utf8")
    expect([first.code, second.code, text.includes("#"), text.includes("name: mine")]).toEqual([
      0,
      2,
      true,
      true,
    ])
    const { code, stderr } = await place.nightjar("validate", "jobs/mine.yaml")
    expect([code, stderr.split("\n").filter((line) => !line.startsWith("warning: ") && line !== "")]).toEqual(
      [0, []],
    )
  })

  it("says that there is no run yet if one is needed", async () => {
    const asked = await Promise.all(
      [
        ["status"],
        ["query", "SELECT 1 FROM ops.tasks"],
        ["infer"],
        ["explain", "x"],
        ["rerun", "--dry-run"],
        ["credentials", "list"],
      ].map((args) => place.nightjar(...args, "--output", "empty")),
    )
    expect(asked.map(({ code, stderr }) => [code, /defect/.test(stderr)])).toEqual([
      [2, false],
      [2, false],
      [2, false],
      [2, false],
      [2, false],
      [0, false],
    ])
  })
})
