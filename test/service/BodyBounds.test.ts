/** What a body would cost, counted before anybody parses it; and what is cut or taken off the end of a text. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  bodyBounds,
  cutText,
  measureBody,
  measureLargeBody,
  withoutEnd,
} from "../../src/service/BodyBounds.ts"
import { checkAddress } from "../../src/client/Service.ts"
import { parseServiceUrl } from "../../src/jobs/Scalars.ts"

const measured = (text: string) => measureBody(Buffer.from(text))
const brokenOf = (text: string) => measured(text).broken

describe("the measure of a body", () => {
  it("counts depth and the longest string, and ignores brackets inside strings", () => {
    const { depth, textBytes } = measured('{"a":[{"b":"[[[[\\"]"}],"cc":"ñ"}')
    expect({ depth, textBytes }).toEqual({ depth: 3, textBytes: 7 })
  })

  it("never throws, whatever the bytes are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        expect(measureBody(bytes).depth).toBeLessThanOrEqual(bytes.length)
      }),
    )
    fc.assert(fc.property(fc.json(), (text) => brokenOf(text) === undefined))
  })

  it("accepts 60,000 customer profiles and the string of a scanned document", () => {
    const list = ["x@example.org", "y@example.org"]
    const address = { title: "home", street: "Calle Mayor 3", city: "Madrid", zip_code: "28001" }
    const numbers = [{ type: "es:dni", value: "10000000X", validated: true, country: "ES" }]
    const profile = JSON.stringify({
      product: "customer_information",
      sub_family: "customer_information:user_profile",
      fetch_date: "2026-11-20T03:04:05Z",
      ...Object.fromEntries(Array.from({ length: 16 }, (_, at) => [`field_${at}`, "value 12345"])),
      identification_numbers: [...numbers, ...numbers],
      emails: list,
      phones: list,
      addresses: [address],
    })
    const body = `{"data":[${Array.from({ length: 60_000 }, () => profile).join()}]}`
    expect(brokenOf(body)).toBeUndefined()
    expect(brokenOf(JSON.stringify({ pdf: "A".repeat(23 * 1024 * 1024) }))).toBeUndefined()
  })

  for (const [name, text] of [
    ["objects", `[${"{},".repeat(7_300_000)}0]`],
    ["lists", `[${"[],".repeat(7_300_000)}0]`],
    ["numbers", `[${"0,".repeat(7_000_000)}0]`],
    ["keys", `[${Array.from({ length: 400_000 }, (_, n) => `{"${n.toString(36)}x":0}`).join()}]`],
    ["keys that are numbers", `[${'{"1000000":0},'.repeat(400_000)}0]`],
  ] as const)
    it(`refuses ${(text.length / 1e6).toFixed(0)} MB of ${name} that would fill the memory`, () => {
      const allowed = bodyBounds.denseValueBytesMax + bodyBounds.valueBytesPerByteMax * text.length
      expect(brokenOf(text)).toBe(`its values would take more than ${allowed} bytes of memory`)
    })

  it("refuses what exceeds its limits by one", () => {
    const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
    expect(brokenOf(deep(bodyBounds.depthMax))).toBeUndefined()
    expect(brokenOf(deep(bodyBounds.depthMax + 1))).toBe("it is nested deeper than 250000 levels")
    expect(brokenOf(`"${"x".repeat(bodyBounds.textBytesMax)}"`)).toBeUndefined()
    const broken = "one of its texts is longer than 25165824 bytes"
    expect(brokenOf(`"${"x".repeat(bodyBounds.textBytesMax + 1)}"`)).toBe(broken)
  })

  it("is skipped for bodies that are too small to exceed anything", () => {
    expect(measureLargeBody(Buffer.from("[".repeat(16 * 1024))).depth).toBe(0)
    expect(measureLargeBody(Buffer.from("[".repeat(16 * 1024 + 1))).depth).toBe(16 * 1024 + 1)
  })
})

it("a text that is too long is cut with a mark that gives its length, and in no half of a character", () => {
  expect(cutText("x".repeat(40), 40)).toBe("x".repeat(40))
  expect(cutText("x".repeat(41), 40)).toBe(`${"x".repeat(18)}… [cut: 41 characters]`)
  expect(cutText("x".repeat(41), 5)).toBe("… [cut: 41 characters]")
  expect(cutText(`${"x".repeat(17)}😀${"x".repeat(31)}`, 40)).toBe(
    `${"x".repeat(17)}\ufffd… [cut: 50 characters]`,
  )
})

it("the end of a text loses any of the characters, and no others; a megabyte of them in its middle costs no time", () => {
  const texts = ["pass\r\n\n", "\n", "", "a\nb", " x \n "]
  expect(texts.map((text) => withoutEnd(text, "\r\n"))).toEqual(["pass", "", "", "a\nb", " x \n "])
  const middle = `${"\r".repeat(1_000_000)}x`
  expect(withoutEnd(middle, "\r\n") === middle).toBe(true)
  const address = `https://service.example/${"/".repeat(1_000_000)}x`
  expect(parseServiceUrl(`${address}//`) === address).toBe(true)
  expect(checkAddress("base_url", address)).toMatchObject({ _tag: "Success", success: address })
})
