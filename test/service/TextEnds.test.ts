/** What is taken off the end of a text, and that a megabyte of it takes no hour. */
import { expect, it } from "vitest"
import { withoutEnd } from "../../src/service/BodyBounds.ts"
import { checkAddress } from "../../src/client/Service.ts"
import { parseServiceUrl } from "../../src/jobs/Scalars.ts"

it("removes any of the characters at the end, and no others", () => {
  expect(["pass\r\n\n", "\n", "", "a\nb", " x \n "].map((text) => withoutEnd(text, "\r\n"))).toEqual([
    "pass",
    "",
    "",
    "a\nb",
    " x \n ",
  ])
})

it("leaves a megabyte of them in the middle of a text, at once", () => {
  const middle = `${"\r".repeat(1_000_000)}x`
  expect(withoutEnd(middle, "\r\n") === middle).toBe(true)
  const address = `https://service.example/${"/".repeat(1_000_000)}x`
  expect(parseServiceUrl(`${address}//`) === address).toBe(true)
  expect(checkAddress("base_url", address)).toMatchObject({ _tag: "Success", success: address })
})
