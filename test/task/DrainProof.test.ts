/** Counted against landed: what is a proof, what is none, and what a task's end becomes of it. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { flowResultsSource, profileSource, readProductsCount } from "../../src/service/FlowResults.ts"
import { findingOf, isWanted, lackingProducts, proveDrain, shortfallOf } from "../../src/task/DrainProof.ts"
import { surplusOf, type SourceFinding } from "../../src/task/DrainProof.ts"

const record = (sub_family: string, product = sub_family.split(":")[0] ?? "") => ({ product, sub_family })
const many = (count: number, sub_family: string) => Array.from({ length: count }, () => record(sub_family))
const flow = (data: unknown, is_closed: unknown = true) => findingOf(flowResultsSource, { data, is_closed })
const counted = (counts: Readonly<Record<string, number>>) => readProductsCount(counts)
const two = counted({ "bank:account@accounts": 2 })

describe("a proof", () => {
  it("names the products that it lacks, if the count does [promise 17 lacking]", () => {
    const cards = { "bank:card@cards": 1, "bank:card@gifts": 0 }
    const keys = counted({ "bank:account@accounts": 2, ...cards, "a:b@a": 0 })
    const lacking = (...findings: ReadonlyArray<SourceFinding>) => lackingProducts(keys, findings)
    expect(lacking(flow(many(2, "bank:account")))).toEqual(new Set(["cards", "gifts"]))
    expect(lacking(flow(many(2, "bank:account"), false))?.size).toBe(3)
    expect(lacking(flow([...many(2, "bank:account"), record("bank:card")]))).toEqual(new Set())
    expect(lackingProducts(counted({ odd: 1 }), [])).toBeUndefined()
    const uncounted = readProductsCount(undefined)
    expect(lackingProducts(uncounted, [])).toBeUndefined()
    expect(lackingProducts(uncounted, [flow([], false)])).toBeUndefined()
    expect(lackingProducts(uncounted, [flow([])])).toEqual(new Set())
  })

  it("is complete when every counted family is landed in full, in one final body [promise 5 final]", () => {
    expect(proveDrain(two, [flow(many(2, "bank:account"))])).toEqual({
      isWhole: true,
      isCounted: true,
      families: [{ family: "bank:account", counted: 2, landed: 2 }],
    })
    for (const findings of [
      [],
      [flow(many(1, "bank:account"))],
      [flow(many(2, "bank:account"), false)],
      [flow(many(2, "bank:account"), "true")],
      // Two endpoints may show the same record: they do not add up.
      [flow(many(1, "bank:account")), flow(many(1, "bank:account"))],
      [flow(many(9, "bank:card"))],
    ])
      expect(proveDrain(two, findings).isWhole).toBe(false)
  })

  it("adds up the keys of one family, and treats a key without @ or : as its own family", () => {
    const keys = counted({ "bank:account@accounts": 1, "bank:account@savings": 2, odd: 1 })
    const enough = [...many(3, "bank:account"), record("odd")]
    expect(proveDrain(keys, [flow(enough)]).isWhole).toBe(true)
    expect(proveDrain(keys, [flow(enough.slice(1))]).isWhole).toBe(false)
    expect(proveDrain(keys, [flow(enough.slice(0, 3))]).isWhole).toBe(false)
  })

  it("compares counts by product if the endpoint's row says so: each of a family, and only those", () => {
    const byProduct = { ...flowResultsSource, counts: "product" } as const
    const data = [record("current", "accounts"), record("savings", "accounts")]
    const body = { data, is_closed: true }
    expect(proveDrain(two, [findingOf(byProduct, body)]).isWhole).toBe(true)
    expect(proveDrain(two, [findingOf(flowResultsSource, body)]).isWhole).toBe(false)
    expect(proveDrain(counted({ "bank:account": 2 }), [findingOf(byProduct, body)]).isWhole).toBe(false)
    const short = { data: data.slice(1), is_closed: true }
    expect(proveDrain(two, [findingOf(byProduct, short)]).isWhole).toBe(false)
    const found = (...products: ReadonlyArray<string>) =>
      findingOf(byProduct, { data: products.map((product) => record("any", product)), is_closed: true })
    const isWhole = (
      counts: Readonly<Record<string, number>>,
      ...findings: Parameters<typeof proveDrain>[1]
    ) => proveDrain(counted(counts), findings).isWhole
    expect([
      isWhole({ "a:b@p": 1, "a:b@q": 1 }, found("p", "q")),
      isWhole({ "a:b@p": 1, "a:b@q": 1 }, found("p")),
      isWhole({ "a:b@p": 1, "a:b@q": 1 }, found("p"), found("q")),
      isWhole({ "a:b@p": 1, "a:b@q": 0 }, found("p")),
      isWhole({ "a:b@p": 1, "c:d@q": 1 }, found("p"), found("q")),
    ]).toEqual([true, false, false, true, true])
  })

  it("is an endpoint's word if the job accepts it, for what it may return, whatever was counted", () => {
    const trusted = { ...flowResultsSource, counts: "none", families: ["bank:*"] } as const
    const body = { data: [], is_closed: true }
    const other = counted({ "bank:account@accounts": 2, "card:card@cards": 1 })
    expect([two, other].map((count) => proveDrain(count, [findingOf(trusted, body)]).isWhole)).toEqual([
      true,
      false,
    ])
  })

  it("of an unknown count is the word of an endpoint that may return everything, if the job accepts it", () => {
    const unknown = readProductsCount("2")
    const trusted = { ...flowResultsSource, counts: "none" } as const
    const body = { data: many(1, "bank:account"), is_closed: true }
    expect(proveDrain(unknown, [findingOf(flowResultsSource, body)]).isWhole).toBe(false)
    expect(proveDrain(unknown, [findingOf(trusted, body)])).toEqual({
      isWhole: true,
      isCounted: false,
      families: [{ family: "bank:account", landed: 1 }],
    })
    expect(proveDrain(unknown, [flow([], false), findingOf(trusted, body)]).isWhole).toBe(true)
    expect(proveDrain(unknown, []).isWhole).toBe(false)
    expect(proveDrain(unknown, [findingOf(trusted, { ...body, is_closed: false })]).isWhole).toBe(false)
    const narrow = { ...trusted, families: ["bank:*"] }
    expect(proveDrain(unknown, [findingOf(narrow, body)]).isWhole).toBe(false)
  })

  it("never holds with a record fewer than were counted [promise 5 counts]", () => {
    const families = fc.uniqueArray(fc.constantFrom("a:b", "a:c", "d:e", "f"), { minLength: 1 })
    const counts = families.chain((names) =>
      fc.tuple(fc.constant(names), fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 4, maxLength: 4 })),
    )
    fc.assert(
      fc.property(counts, fc.nat(), ([names, numbers], which) => {
        const key = (name: string) => (name.includes(":") ? `${name}@p` : name)
        const count = counted(
          Object.fromEntries(names.map((name, index) => [key(name), numbers[index] ?? 1])),
        )
        const all = names.flatMap((name, index) => many(numbers[index] ?? 1, name))
        const without = all.filter((_, index) => index !== which % all.length)
        expect(proveDrain(count, [flow(all)]).isWhole).toBe(true)
        expect(proveDrain(count, [flow(without)]).isWhole).toBe(false)
      }),
    )
  })
})

it("surplus and shortfall are counted family by family: one does not make up for another", () => {
  const families = [
    { family: "a:b", counted: 5, landed: 2 },
    { family: "c:d", counted: 1, landed: 3 },
    { family: "e:f", landed: 4 },
    { family: "g:h", counted: 2, landed: 2 },
  ]
  expect([surplusOf(families), shortfallOf(families)]).toEqual([6, 3])
  expect([surplusOf([]), shortfallOf([])]).toEqual([0, 0])
})

describe("another endpoint", () => {
  const profiles = counted({ "customer_information:user_profile@customer_information": 1 })

  it("is read while something is missing that it may return", () => {
    expect(isWanted(profileSource, profiles, [])).toBe(true)
    const none = counted({ "customer_information:user_profile@customer_information": 0 })
    expect(isWanted(profileSource, none, [])).toBe(false)
    expect(isWanted(profileSource, profiles, [flow(many(1, "customer_information:user_profile"))])).toBe(
      false,
    )
    expect(isWanted(profileSource, two, [])).toBe(false)
    expect(isWanted(profileSource, readProductsCount(null), [])).toBe(true)
    expect(isWanted(profileSource, readProductsCount(null), [flow([])])).toBe(false)
  })
})
