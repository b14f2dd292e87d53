/** Commands that need no night: the catalogue of a service, a new job file, and what is said before any run. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { FakeService } from "./FakeService.ts"
import { Workplace } from "./Nightjar.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const place = new Workplace()
let fake: FakeService
beforeAll(async () => {
  fake = await FakeService.listen()
  place.environment["NIGHTJAR_BASE_URL"] = fake.base_url
  place.environment["NIGHTJAR_FLOWS_URL"] = fake.flows_url
  place.environment["NIGHTJAR_APP_SECRET"] = "fake-secret-1"
})
afterAll(async () => {
  await fake.close()
  place.remove()
})

describe.concurrent("a command without a night", () => {
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
