/** What a form may cost, counted with its references followed, however small it is written. */
import { describe, expect, it } from "vitest"
import { beyondBounds, beyondText, toJsonSchema } from "../../src/client/CompiledForm.ts"
import { loginForm, paramsForm } from "../task/Samples.ts"

const beyond = (
  properties: Readonly<Record<string, unknown>>,
  $defs: Readonly<Record<string, unknown>> = {},
) => beyondBounds(toJsonSchema(paramsForm(properties, { $defs })).schema)
const ref = (name: string | number) => ({ $ref: `#/$defs/${name}` })
const many = (amount: number, make: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: amount }, (_, index) => [`${index}`, make(index)]))
const tooMany = "it has more than 5,000 parts when its references are followed"

describe("a form", () => {
  it("of a real source, with references and alternatives, is within the limits", () => {
    expect(beyondBounds(toJsonSchema(loginForm).schema)).toBeUndefined()
    const share = { anyOf: [{ type: "integer" }, ref("Year")] }
    expect(
      beyond(
        many(200, () => ref("Share")),
        { Share: share, Year: { type: "string" } },
      ),
    ).toBeUndefined()
    expect(beyond({ place: { enum: Array.from({ length: 50_000 }, (_, at) => at) } })).toBeUndefined()
  })

  it("with thousands of fields is not", () => {
    expect([
      beyond(many(2_400, () => ({ type: "string" }))),
      beyond(many(2_600, () => ({ type: "string" }))),
    ]).toEqual([undefined, tooMany])
  })

  it("whose references double at each step is not", () => {
    for (const list of ["allOf", "anyOf", "oneOf"]) {
      const chain = many(40, (step) => (step === 39 ? {} : { [list]: [ref(step + 1), ref(step + 1)] }))
      expect(beyond({ a: ref(0) }, chain)).toBe(tooMany)
    }
  })

  it("that refers to itself in any way is not, but unused definitions do no harm", () => {
    const itself = "it refers to itself"
    expect(beyond({ a: ref("A") }, { A: ref("A") })).toBe(itself)
    expect(beyond({ a: ref("A") }, { A: { allOf: [ref("B")] }, B: { not: ref("A") } })).toBe(itself)
    expect(beyond({ a: ref("A") }, { A: { properties: { b: { items: ref("A") } } } })).toBe(itself)
    expect(beyond({ a: { type: "string" } }, { A: ref("A") })).toBeUndefined()
  })

  it("whose references lead too deep is not", () => {
    const chain = many(300, (step) => (step === 299 ? {} : ref(step + 1)))
    expect(beyond({ a: ref(0) }, chain)).toBe("it is nested more than 128 steps deep")
  })
})

describe("an engine's details", () => {
  const deep = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels))

  it("are limited in depth and number before anything reads them", () => {
    expect([beyondText(deep(100)), beyondText(deep(101)), beyondText(deep(200_000))]).toEqual([
      undefined,
      "its details are nested more than 100 levels deep",
      "its details are nested more than 100 levels deep",
    ])
    expect(beyondText(Array.from({ length: 200_001 }, () => 0))).toBe(
      "its details hold more than 200,000 values",
    )
  })
})
