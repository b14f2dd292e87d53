/** A sample of `npm run canaries`: every eighty-third place, so that in time each kind of answer is among them. */
import { expect, it } from "vitest"
import { echoPlaces } from "./EchoPlaces.ts"
import { tryEchoes } from "./EchoCampaign.ts"

it("lists every answer of the contract whose body this program reads, with each known and unknown field", () => {
  const of = (operation: string, status: number) =>
    echoPlaces
      .filter((place) => place.operation === operation && place.status === status && place.how === "map")
      .map(({ path }) => path.join("."))
  expect(new Set(echoPlaces.map(({ operation }) => operation)).size).toBe(12)
  expect(of("startExecution", 202)).toEqual(expect.arrayContaining(["", "ticket", "session_token"]))
  const deep = ["products_count.key", "features.0.status_reason", "messages.0.loc.0", "locking_hash"]
  expect(of("readExecution", 200)).toEqual(expect.arrayContaining(deep))
  expect(of("readExecution", 423)).toContain("producer")
})

it(
  "lets no secret out if a service repeats it anywhere [promise 12] [exit telemetry canary]",
  { timeout: 300_000 },
  async () => {
    const { leaks, controlIn, exitCodes, echoed, places, unreached, sentBytes } = await tryEchoes(83)
    expect(leaks).toEqual([])
    expect(sentBytes).toBeGreaterThan(10_000)
    // The search does find what must be kept.
    for (const where of ["landing/", '"store".', "read_parquet"]) {
      expect(controlIn.filter((found) => found.includes(where)).length, where).toBeGreaterThan(0)
    }
    expect({ echoed, unreached }).toEqual({ echoed: places, unreached: [] })
    expect(Object.values(exitCodes).filter((code) => code === null || code === 1)).toEqual([])
  },
)
