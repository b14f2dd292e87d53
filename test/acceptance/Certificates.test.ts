/**
 * A service whose certificate nobody vouches for, met by the program as a process: what the environment says switches
 * nothing off, what the job says is told each time.
 */
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { selfSigned, type SelfSigned } from "../client/SelfSigned.ts"
import { login, Workplace } from "./Nightjar.ts"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const place = new Workplace()
const scope = Scope.makeUnsafe()
let server: SelfSigned
beforeAll(async () => {
  server = await Effect.runPromise(Scope.provide(selfSigned, scope))
  for (const [name, more] of [
    ["checked", ""],
    ["unchecked", "accept_any_certificate: true, "],
  ] as const)
    place.write(
      `${name}.yaml`,
      `name: ${name}
service: { ${more}base_url: ${server.origin}/api, flows_url: ${server.origin}/flows, app_secret: env:FAKE_SECRET }
engines: [fake-bank:website]
customers:
${login("c-1", "user-1")}
`,
    )
})
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  place.remove()
})

const warning =
  "warning: unchecked.yaml:2:12: certificates are not checked: whoever answers at these addresses receives the " +
  "application secret and every login. To trust an authority of your own, name its file in NODE_EXTRA_CA_CERTS instead\n"

describe("an untrusted certificate", () => {
  it("is accepted if the job says so, and every command warns about it", async () => {
    const { stderr } = await place.start(["engines", "list", "--job", "unchecked.yaml"]).ended
    expect([stderr.startsWith(warning), server.requests[0]?.headers["x-app-secret"]]).toEqual([
      true,
      "fake-secret-1",
    ])
    const checked = await place.start(["validate", "unchecked.yaml"]).ended
    expect(checked).toEqual({ code: 0, stdout: "unchecked.yaml: valid, 1 task\n", stderr: warning })
  })
})
