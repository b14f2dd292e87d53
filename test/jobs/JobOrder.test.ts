/** The order of jobs that are given together, and what is wrong with one that cannot be kept. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { inOrder, orderProblems, sessionWarnings, type OrderedJob } from "../../src/jobs/Job.ts"
import { anId } from "../harness/Id.ts"

const job = (name: string, ...after: ReadonlyArray<string>): OrderedJob => ({
  name,
  after: after.map((other, index) => ({
    job: other,
    place: { file: `${name}.yaml`, line: 2, column: index + 9 },
  })),
})
const names = (jobs: ReadonlyArray<OrderedJob>) => jobs.map(({ name }) => name).join(" ")

describe("jobs", () => {
  it("come after those that they name, else where they were given", () => {
    expect(names(inOrder([job("a", "c"), job("b"), job("c"), job("d", "elsewhere")]))).toBe("b c a d")
    expect(names(inOrder([job("a", "b"), job("b", "a")]))).toBe("a b")
  })

  it("that would wait for themselves are refused where that is written, each circle once", () => {
    const { errors } = orderProblems([
      job("d", "a"),
      job("a", "x", "c"),
      job("b", "a"),
      job("c", "b"),
      job("e", "e"),
    ])
    expect(errors).toEqual([
      {
        file: "a.yaml",
        line: 2,
        column: 10,
        message: "a job would wait for itself: `a` after `c` after `b` after `a`",
      },
      { file: "e.yaml", line: 2, column: 9, message: "a job would wait for itself: `e` after `e`" },
    ])
  })

  it("that name one that is not given are warned, unless they are given alone", () => {
    expect(orderProblems([job("b", "a")])).toEqual({ errors: [], warnings: [] })
    expect(orderProblems([job("b", "nigthly"), job("nightly")]).warnings).toEqual([
      {
        file: "b.yaml",
        line: 2,
        column: 9,
        message: "no job of this name was given, so there is nothing to wait for; did you mean `nightly`?",
      },
    ])
  })

  it("that list a session for two customers are warned at the later one [session shared jobs]", () => {
    const listing = (name: string, ...sessions: ReadonlyArray<readonly [string, string?]>) => ({
      name,
      sessions: sessions.map(([id, customer], index) => ({
        session_id: anId(id),
        customer_id: customer === undefined ? undefined : anId(customer),
        place: { file: `${name}.yaml`, line: index + 3, column: 5 },
      })),
    })
    const first = listing("a", ["s-1", "c-1"], ["s-2", "c-2"], ["s-3"])
    expect(sessionWarnings([first, listing("b", ["s-2", "c-2"], ["s-1", "c-9"])])).toEqual([
      {
        file: "b.yaml",
        line: 4,
        column: 5,
        message:
          "the job `a` lists this session for another customer, so its records would be in the tables " +
          "twice: list it in one job, with its own customer",
      },
    ])
    expect(sessionWarnings([first, listing("b", ["s-3"])])).toEqual([])
    expect(sessionWarnings([first, listing("b", ["s-3", "c-3"])])).toHaveLength(1)
  })

  it("all keep their order unless one of them is told to wait for itself", () => {
    const given = fc.array(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 3 }), { maxLength: 6 })
    fc.assert(
      fc.property(given, (afters) => {
        const jobs = afters.map((after, index) => job(`${index}`, ...after.map(String)))
        const order = inOrder(jobs)
        expect(order.toSorted((one, other) => Number(one.name) - Number(other.name))).toEqual(jobs)
        if (orderProblems(jobs).errors.length > 0) return
        const place = new Map(order.map(({ name }, index) => [name, index]))
        for (const { name, after = [] } of order)
          for (const one of after) expect(place.get(one.job) ?? -1).toBeLessThan(place.get(name)!)
      }),
    )
  })
})
