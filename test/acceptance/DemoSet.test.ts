/** The job of `jobs/` that logs in with tokens; those with webhooks and with sessions only are in `test/cli/Webhooks`. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it, vi } from "vitest"
import { Workplace } from "./Nightjar.ts"

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const jobs = fileURLToPath(new URL("../../jobs/", import.meta.url))

const inPlace = async (check: (place: Workplace) => Promise<void>): Promise<void> => {
  const place = new Workplace()
  try {
    await check(place)
  } finally {
    place.remove()
  }
}

/** Every file of the output folder but the token store, as bytes. */
const filesOf = (place: Workplace) =>
  readdirSync(place.output, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith("tokens.sqlite"))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)))

describe.concurrent("the demo set", () => {
  it("jobs/tokens.yaml logs in with parameters in its first run and only with tokens in its second", () =>
    inPlace(async (place) => {
      const first = await place.nightjar("run", join(jobs, "tokens.yaml"), "--no-progress")
      expect({ code: first.code, said: first.stdout.includes("4 tasks: 4 succeeded") }).toEqual({
        code: 0,
        said: true,
      })
      const tokens = (await place.json("tokens", "list")) as ReadonlyArray<Readonly<Record<string, unknown>>>
      expect(tokens.map(({ name }) => name)).toEqual([
        "t-001/sandbox-bank:website",
        "t-002/sandbox-bank:website",
        "t-003/sandbox-tax:website",
        "t-004/sandbox-bank:website",
      ])
      const second = await place.nightjar("run", join(jobs, "tokens.yaml"), "--new", "--no-progress")
      expect({ code: second.code, said: second.stdout.includes("4 tasks: 4 succeeded") }).toEqual({
        code: 0,
        said: true,
      })
      const explained = await place.nightjar("explain", "t-001")
      expect(explained.stdout).toContain(`with token ${String(tokens[0]?.["token_id"])}`)
      // What was started with parameters in the second night would have brought a second token.
      const again = (await place.json("tokens", "list")) as ReadonlyArray<Readonly<Record<string, unknown>>>
      expect(again.map(({ token_id }) => token_id)).toEqual(tokens.map(({ token_id }) => token_id))
      const password = readFileSync(join(jobs, "demo-password.txt"))
      expect(filesOf(place).filter((bytes) => bytes.includes(password.subarray(0, -1)))).toEqual([])
    }))
})
