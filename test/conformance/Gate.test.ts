/** The gate before every endpoint of the contract (5, 7, 8): without a secret, with a wrong one, and when it asks to wait. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpApi } from "effect/http-api"
import type { Fault } from "../../src/sandbox/faults/Faults.ts"
import { ServiceApi } from "../../src/service/Api.ts"
import { Caller, inProcess } from "../sandbox/server/Caller.ts"

type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"

interface Endpoint {
  readonly name: string
  readonly method: Method
  readonly path: string
}

const endpoints: Array<Endpoint> = []
HttpApi.reflect(ServiceApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { identifier: name, method, path } }) =>
    void endpoints.push({
      name,
      method: method as Method,
      path: path.replaceAll(/:[a-z_]+/g, "65f0c0ffee65f0c0ffee65f0"),
    }),
})

/** The service refuses this endpoint so, to each of these secrets. */
const refuses = (
  { method, path }: Endpoint,
  secrets: ReadonlyArray<string | undefined>,
  [status, detail]: readonly [number, string],
  faults: ReadonlyArray<Fault> = [],
) =>
  Effect.gen(function* () {
    const { call, origin } = yield* Caller
    for (const secret of secrets) {
      const answer = yield* call(method, `${origin}${path}`, { secret })
      // A HEAD has no body.
      expect([answer.status, answer.json]).toEqual([status, method === "HEAD" ? undefined : { detail }])
    }
  }).pipe(Effect.provide(inProcess({ seed: 7, faults: { faults } })))

describe("the gate", () => {
  it("is in front of all endpoints of the contract", () => {
    expect(endpoints.length).toBe(19)
  })

  it.effect.each(endpoints)(
    "[auth-rule 1] [$name 401] answers 401 without an application secret",
    (endpoint) => refuses(endpoint, [undefined], [401, "X-APP-SECRET is missing"]),
  )

  const strangers = ["sandbox-app-9", "SANDBOX-APP-1", "sandbox-app-1x", ""]
  const knowsNobody = (endpoint: Endpoint) =>
    refuses(endpoint, strangers, [403, "unknown application secret"])
  it.effect.each(endpoints.filter(({ name }) => name !== "exchangeTicket"))(
    "[$name 403] answers 403 to an unknown application secret",
    knowsNobody,
  )

  // Its 403 has a meaning in the reference, which is another one.
  it.effect.each(endpoints.filter(({ name }) => name === "exchangeTicket"))(
    "$name answers 403 to an unknown application secret as well",
    knowsNobody,
  )

  it.effect.each(endpoints)("[any 429] $name may ask to wait", (endpoint) =>
    refuses(endpoint, ["sandbox-app-1"], [429, "an injected fault"], [{ on: endpoint.name, status: 429 }]),
  )
})
