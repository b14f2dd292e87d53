/** Tickets and tokens, over both ways to reach the service. */
import { describe } from "@effect/vitest"
import { inProcess, overHttp } from "../server/Caller.ts"
import { tokenStartSuite } from "./TokenStartSuite.ts"
import { tokenSuite } from "./TokenSuite.ts"

for (const [name, reach] of [
  ["in-process", inProcess],
  ["over HTTP", overHttp],
] as const) {
  describe(`tickets and tokens, ${name}`, () => {
    tokenSuite(reach)
    tokenStartSuite(reach)
  })
}
