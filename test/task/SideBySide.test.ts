/** Which jobs may run side by side: whatever two of them share, they do one after the other. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { takeTurns, type TouchedLogin, type Touches } from "../../src/task/SideBySide.ts"
import { anId } from "../harness/Id.ts"

const access = (customer: string, engine: string) => ({
  customer_id: anId(customer),
  engine_reference: anId(engine),
})
const login = (engine_reference: string, values: Readonly<Record<string, string>>, isWhole = true) => ({
  engine_reference,
  values,
  isWhole,
})
const job = (name: string, touches: Partial<Touches> = {}): Touches => ({
  job: name,
  after: [],
  collects: [name],
  time: "machine",
  accesses: [],
  sessions: [],
  logins: [],
  isUnderWay: false,
  ...touches,
})
/** What keeps the second of two jobs waiting. */
const why = (first: Partial<Touches>, second: Partial<Touches>) =>
  takeTurns([job("a", first), job("b", second)])[1]?.waits

describe("a job waits for an earlier one", () => {
  it("that collects what runs of the same job left, as both may then have the same run [run replaced turns]", () => {
    const replaced = [{ why: "replaces", replaced: "old", job: "a" }]
    expect(why({ collects: ["a", "old"] }, { collects: ["b", "old"] })).toEqual(replaced)
    expect(why({ job: "old", collects: ["old"] }, { collects: ["b", "old"] })).toEqual([
      { why: "replaces", replaced: "old", job: "old" },
    ])
    expect(why({ collects: ["a", "old"] }, { collects: ["b", "other"] })).toEqual([])
  })

  it("that it names, that lives in another time, or that shares a customer on an engine or a session", () => {
    expect([
      why({}, { after: ["a", "elsewhere"] }),
      why({}, { time: "[7,300]" }),
      why(
        { accesses: [access("c-1", "bank"), access("c-2", "bank"), access("c-3", "bank")] },
        { accesses: [access("c-1", "tax"), access("c-3", "bank"), access("c-2", "bank")] },
      ),
      why({ sessions: ["s-1"] }, { sessions: ["s-2", "s-1"] }),
    ]).toEqual([
      [{ job: "a", why: "after" }],
      [{ job: "a", why: "time" }],
      [{ job: "a", why: "customer", shared: 2, example: access("c-3", "bank") }],
      [{ job: "a", why: "session", shared: 1, example: "s-1" }],
    ])
  })

  it("that logs the same customer in to the same source, or sends the same login there, by another engine", () => {
    const [website, api] = [access("c-1", "bank:website"), access("c-1", "bank:api")]
    const sent = (engine: string) => login(engine, { user: "u", password: "p" })
    expect([
      why({ accesses: [website] }, { accesses: [api] }),
      why({ logins: [sent("bank:website")] }, { logins: [sent("bank:api")] }),
      why({ accesses: [website] }, { accesses: [access("c-1", "tax:api")] }),
    ]).toEqual([
      [{ job: "a", why: "customer", shared: 1, example: api }],
      [{ job: "a", why: "login", engine_reference: "bank:api" }],
      [],
    ])
  })

  it("that may send the same login: also with a further parameter, or with one that nobody knows yet", () => {
    const whole = login("bank", { user: "u", password: "p" })
    const waits = (first: TouchedLogin, second: TouchedLogin) =>
      why({ logins: [first] }, { logins: [second] })?.length === 1
    expect({
      same: waits(whole, login("bank", { password: "p", user: "u" })),
      further: waits(whole, login("bank", { user: "u", password: "p", branch: "7" })),
      hidden: waits(whole, login("bank", { user: "u" }, false)),
      token: waits(whole, login("bank", {}, false)),
      none: waits(login("bank", {}), login("bank", {})),
    }).toEqual({ same: true, further: true, hidden: true, token: true, none: true })
    expect({
      engine: waits(whole, login("tax", { user: "u", password: "p" })),
      user: waits(whole, login("bank", { user: "v", password: "p" })),
      hidden: waits(whole, login("bank", { user: "v" }, false)),
      otherForm: waits(whole, login("bank", { user: "u", pin: "p" })),
      none: waits(whole, login("bank", {})),
    }).toEqual({ engine: false, user: false, hidden: false, otherForm: false, none: false })
  })

  it("and for every such one, in whatever order they share", () => {
    const shared = { accesses: [access("c-1", "bank")] }
    expect(
      takeTurns([job("a", shared), job("b"), job("c", shared), job("d", shared)]).map(({ waits }) =>
        waits.map((one) => one.job),
      ),
    ).toEqual([[], [], ["a"], ["a", "c"]])
  })
})

/** Logins as they are sent, and which of their parameters are known before. */
const sent = fc.record({
  engine: fc.constantFrom("bank", "tax"),
  values: fc.dictionary(fc.constantFrom("user", "password", "pin"), fc.constantFrom("x", "y", "z")),
  hidden: fc.constantFrom("user", "password", "none"),
  customer: fc.integer({ min: 0, max: 30 }),
})
type Sent = typeof sent extends fc.Arbitrary<infer A> ? A : never

const touched = (name: string, logins: ReadonlyArray<Sent>): Touches =>
  job(name, {
    accesses: logins.map(({ customer, engine }) => access(`c-${customer}`, engine)),
    logins: logins.map(({ engine, values, hidden }) => {
      const known = Object.entries(values).filter(([parameter]) => parameter !== hidden)
      return login(engine, Object.fromEntries(known), known.length === Object.keys(values).length)
    }),
  })

/** Everything that must not be in flight twice, as it is sent. */
const riskyKeys = (logins: ReadonlyArray<Sent>): ReadonlySet<string> =>
  new Set(
    logins.flatMap(({ engine, values, customer }) => [
      JSON.stringify(["customer", customer, engine]),
      JSON.stringify(["login", engine, Object.entries(values).toSorted()]),
    ]),
  )

it("jobs that run side by side share no customer on an engine and no login, whatever is known of the logins before [promise 3 jobs]", () => {
  const jobs = fc.array(fc.array(sent, { maxLength: 4 }), { minLength: 2, maxLength: 4 })
  fc.assert(
    fc.property(jobs, (given) => {
      const turns = takeTurns(given.map((logins, index) => touched(`job-${index}`, logins)))
      const keys = given.map(riskyKeys)
      turns.forEach(({ waits }, later) => {
        const waitsFor = new Set(waits.map((wait) => wait.job))
        for (let earlier = 0; earlier < later; earlier++) {
          const isShared = [...keys[later]!].some((key) => keys[earlier]!.has(key))
          if (isShared) expect(waitsFor).toContain(`job-${earlier}`)
        }
        // Only for earlier ones: nobody waits for ever.
        for (const name of waitsFor) expect(Number(name.slice(4))).toBeLessThan(later)
      })
    }),
    { numRuns: 300 },
  )
})
