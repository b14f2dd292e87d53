/** Which jobs may run side by side: whatever two of them share, they do one after the other. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { takeTurns, type Touches } from "../../src/task/SideBySide.ts"
import { anId } from "../harness/Id.ts"

const access = (customer: string, engine: string) => ({
  customer_id: anId(customer),
  engine_reference: anId(engine),
})
const job = (name: string, touches: Partial<Touches> = {}): Touches => ({
  job: name,
  after: [],
  collects: [name],
  time: "machine",
  accesses: [],
  sessions: [],
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

  it("that logs the same customer in to the same source, by another engine", () => {
    const [website, api] = [access("c-1", "bank:website"), access("c-1", "bank:api")]
    expect([
      why({ accesses: [website] }, { accesses: [api] }),
      why({ accesses: [website] }, { accesses: [access("c-1", "tax:api")] }),
    ]).toEqual([[{ job: "a", why: "customer", shared: 1, example: api }], []])
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

const named = fc.array(
  fc.record({ customer: fc.constantFrom("c-1", "c-2", "c-3"), engine: fc.constantFrom("bank", "tax") }),
  { maxLength: 4 },
)

it("jobs that run side by side share no customer on an engine [promise 3 jobs]", () => {
  fc.assert(
    fc.property(fc.array(named, { minLength: 2, maxLength: 4 }), (given) => {
      const accesses = given.map((all) => all.map(({ customer, engine }) => access(customer, engine)))
      const turns = takeTurns(accesses.map((own, index) => job(`job-${index}`, { accesses: own })))
      const keys = accesses.map((own) => new Set(own.map((one) => JSON.stringify(one))))
      turns.forEach(({ waits }, later) => {
        const shares = keys
          .slice(0, later)
          .map((earlier) => [...earlier].some((key) => keys[later]!.has(key)))
        const waitsFor = new Set(waits.map((wait) => wait.job))
        // Only for earlier ones: nobody waits for ever.
        expect([...waitsFor]).toEqual(shares.flatMap((isShared, at) => (isShared ? [`job-${at}`] : [])))
      })
    }),
    { numRuns: 300 },
  )
})
