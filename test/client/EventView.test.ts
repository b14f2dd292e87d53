/** Reading deliveries whose shape nobody has shown. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { eventBytesMax, readEvent } from "../../src/client/Views.ts"

const read = (json: unknown, query = "") =>
  readEvent(new URLSearchParams(query), Buffer.from(JSON.stringify(json)))
const textsOf = (json: unknown, query = "") => [...(read(json, query)?.texts ?? [])].toSorted()
const dateOf = (date: unknown) => read({ date })?.dateMs
const nested = (depth: number): unknown => (depth === 0 ? "e-1" : [nested(depth - 1)])

describe("an event", () => {
  it("concerns everything it names, anywhere in its body or in the URL", () => {
    expect(
      textsOf({ a: "e-1", b: { c: ["s-1", 7, null, { d: "x-1" }] } }, "nightjar_execution=x-2&a=1"),
    ).toEqual(["1", "e-1", "s-1", "x-1", "x-2"])
    expect(textsOf("e-1")).toEqual(["e-1"])
    expect(readEvent(new URLSearchParams("a=e-1"), new Uint8Array())).toEqual({
      texts: new Set(["e-1"]),
      dateMs: undefined,
    })
  })

  it("names nothing with a key, a number or a string that is too long for an id", () => {
    expect(textsOf({ "e-1": 12, long: "x".repeat(513) })).toEqual([])
  })

  it("has its own date in UTC, even if it does not say so, and no invalid date [field event.date]", () => {
    const at = Date.parse("2026-11-21T02:00:00Z")
    for (const date of [
      "2026-11-21T02:00:00Z",
      "2026-11-21T02:00:00",
      "2026-11-21 02:00",
      "2026-11-21T03:00:00.000+01:00",
    ])
      expect([date, dateOf(date)]).toEqual([date, at])
    expect(dateOf("2026-11-21T02:00:00.123456Z")).toBe(at + 123)
    for (const date of ["soon", "2026-99-21T02:00:00Z", "2026", "", 7, null, {}])
      expect(dateOf(date)).toBeUndefined()
    expect(read({ data: { date: "2026-11-21T02:00:00Z" } })?.dateMs).toBeUndefined()
  })

  it("is searched from the outside in, up to the size of an event: data in it hides no id", () => {
    const records = Array.from({ length: 9_000 }, (_, index) => ({ id: `r-${index}`, deeper: ["x"] }))
    const texts = textsOf({ data: records, session_id: "s-1", more: { execution_id: "e-1" } })
    expect([texts.includes("s-1"), texts.includes("e-1"), texts.length < 10_000]).toEqual([true, true, true])
    expect(textsOf(nested(32))).toEqual(["e-1"])
    expect(textsOf(nested(33))).toEqual([])
    expect(textsOf(Array.from({ length: 20_000 }, (_, index) => `e-${index}`)).length).toBe(9_999)
  })

  it("is refused if it is not JSON, or only brackets", () => {
    expect(readEvent(new URLSearchParams(), Buffer.from("{"))).toBeUndefined()
    expect(readEvent(new URLSearchParams(), Buffer.from([0x22, 0xff, 0x22]))).toBeUndefined()
    const deepest = "[".repeat(eventBytesMax / 2) + "]".repeat(eventBytesMax / 2)
    expect(readEvent(new URLSearchParams(), Buffer.from(deepest))).toBeUndefined()
  })

  it("never throws, whatever it holds", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((text) => Buffer.from(text)),
        ),
        fc.string(),
        (body, query) => {
          readEvent(new URLSearchParams(query), body)
        },
      ),
    )
  })
})
