/**
 * A short sample of the campaign over shared accounts, and the judge's own proof: it finds nothing wrong with a client
 * that keeps the rule, and finds each fault that is put into that client. The long one is `npm run accounts -- --seeds N`.
 */
import { describe, expect, it } from "vitest"
import { nightMs, runAccountNights } from "./AccountNights.ts"
import type { AccountsPlan, Use } from "./AccountNights.ts"
import { complaintsOf } from "./AccountsJudge.ts"
import type { Complaint } from "./AccountsJudge.ts"
import { planAccounts } from "./AccountsPlan.ts"
import { carefulClient } from "./CarefulClient.ts"
import type { PlantedFault } from "./CarefulClient.ts"
import { calm } from "./FaultyNetwork.ts"
import type { Storm } from "./HostileService.ts"

/** Each fault shows in one of these campaigns. */
const seeds = [1, 2, 7, 10]
const careful = (plan: AccountsPlan, fault?: PlantedFault) =>
  complaintsOf(runAccountNights(plan, carefulClient(plan, fault)))

describe("accounts that customers, channels and jobs share", () => {
  it("are safe in nights with hostile start answers", () => {
    // These meet every kind of start answer but one.
    const wrong = [2, 3, 4, 6, 8].flatMap((seed) => {
      const complaints = complaintsOf(runAccountNights(planAccounts(seed, 5)))
      return complaints.slice(0, 1).map(({ rule, what }) => `seed ${seed}: ${rule}: ${what}`)
    })
    expect(wrong).toEqual([])
  })

  it("see the same for the same seed", () => {
    const hash = () => runAccountNights(planAccounts(7, 3)).eventsHash
    expect(hash()).toBe(hash())
  })
})

/** A world of one engine, in which only what is said goes wrong. */
const world = (nights: number, customers: number, storms: ReadonlyArray<Partial<Storm>>): AccountsPlan => {
  const engine = "es-a:website"
  const base = planAccounts(1, nights)
  const all = { engines: [engine], fromMs: 0, untilMs: Infinity, rate: 1, page: "available" as const }
  return {
    ...base,
    channels: [{ reference: engine, fields: ["username", "password"], locking: ["username"] }],
    uses: Array.from({ length: customers }, (_, index): Use => {
      const name = `user${index}`
      return { job: 0, customer: name, engine, username: name, password: () => "right-password" }
    }),
    rightPassword: () => "right-password",
    storms: storms.map((storm) => ({ ...all, answer: "lost: reset", made: true, ...storm })),
    commands: Array.from({ length: nights }, (_, night) => ({ night, jobs: [0] })),
    accidents: [],
    rates: () => calm,
  }
}
const within = (night: number) => ({ fromMs: nightMs(night), untilMs: nightMs(night + 1) })

/** In which of the drawn campaigns, or in which world, a fault shows, and as what. */
const planted: ReadonlyArray<readonly [PlantedFault, Complaint["rule"], AccountsPlan?]> = [
  ["counts nothing", "above its bound"],
  ["forgets strikes over night", "above its bound"],
  [
    "any end sets strikes to zero",
    "above its bound",
    world(
      10,
      3,
      Array.from({ length: 10 }, (_, night) => ({
        ...within(night),
        accounts: ["es-a/user0"],
        answer: night % 2 === 0 ? ("lost: reset" as const) : ("network error" as const),
      })),
    ),
  ],
  ["an account for each customer", "two logins at once"],
  ["an account for each channel", "two logins at once"],
  ["an account for each spelling", "refused login again"],
  ["sends refused logins again", "refused login again"],
  ["does not wait for a lost login", "busy account"],
  ["does not wait for an open execution", "two logins at once"],
  ["never in doubt about an engine", "too many exposed", world(2, 60, [{ ...within(0), answer: "502" }])],
  [
    "counts a maintenance as strikes",
    "held without cause",
    world(6, 1, [{ fromMs: 0, untilMs: nightMs(5), answer: "503", made: false, page: "detail" }]),
  ],
  ["risks the third strike anywhere", "held by an outage"],
  ["never trusts an engine again", "not read after an outage"],
  ["probes without end", "twice a night"],
]

describe("the judge", () => {
  it("finds nothing wrong with a client that keeps the rule", () => {
    for (const seed of seeds)
      expect({ seed, complaints: careful(planAccounts(seed, 12)) }).toEqual({ seed, complaints: [] })
    for (const [, , plan] of planted) if (plan !== undefined) expect(careful(plan)).toEqual([])
  })

  it.each(planted.map(([fault, rule, plan]) => ({ fault, rule, plan })))(
    "finds this fault: $fault",
    ({ fault, rule, plan }) => {
      const drawn = plan === undefined ? seeds.map((seed) => planAccounts(seed, 20)) : [plan]
      const isFound = drawn.some((one) => careful(one, fault).some((complaint) => complaint.rule === rule))
      expect({ rule, isFound }).toEqual({ rule, isFound: true })
    },
  )
})
