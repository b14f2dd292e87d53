/** Tickets and tokens. */
import { describe } from "@effect/vitest"
import { tokenStartSuite } from "./TokenStartSuite.ts"
import { tokenSuite } from "./TokenSuite.ts"

describe("tickets and tokens", () => {
  tokenSuite()
  tokenStartSuite()
})
