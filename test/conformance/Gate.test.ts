/**
 * The gate before every endpoint (sections 5, 7 and 8), for each endpoint of the contract: without the
 * application secret, with a wrong one, and when the service asks to wait.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpApi } from "effect/http-api"
import { ServiceApi } from "../../src/service/Api.ts"
import { Caller, inProcess, type Answer } from "../sandbox/server/Caller.ts"

type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"

interface Endpoint {
  readonly name: string
  readonly method: Method
  readonly path: string
}

const endpoints: ReadonlyArray<Endpoint> = (() => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(ServiceApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) =>
      void found.push({
        name: endpoint.identifier,
        method: endpoint.method as Method,
        path: endpoint.path.replaceAll(/:[a-z_]+/g, "65f0c0ffee65f0c0ffee65f0"),
      }),
  })
  return found
})()

const ask = ({ method, path }: Endpoint, secret: string | undefined) =>
  Effect.flatMap(Caller, ({ call, base_url }) =>
    call(method, `${base_url.replace(/\/api$/, "")}${path}`, { secret }),
  )

/** Status and body; a HEAD has none. */
const told = ({ status, json }: Answer) => [status, json]
const expected = (method: Method, status: number, detail: string) => [
  status,
  method === "HEAD" ? undefined : { detail },
]

describe("the gate", () => {
  it("is in front of all endpoints of the contract", () => {
    expect(endpoints.length).toBe(19)
  })

  it.effect.each(endpoints)(
    "[auth-rule 1] [$name 401] answers 401 without an application secret",
    (endpoint) =>
      Effect.gen(function* () {
        expect(told(yield* ask(endpoint, undefined))).toEqual(
          expected(endpoint.method, 401, "X-APP-SECRET is missing"),
        )
      }).pipe(Effect.provide(inProcess({ seed: 7 }))),
  )

  const knowsNobody = (endpoint: Endpoint) =>
    Effect.gen(function* () {
      for (const secret of ["sandbox-app-9", "SANDBOX-APP-1", "sandbox-app-1x", ""]) {
        expect(told(yield* ask(endpoint, secret))).toEqual(
          expected(endpoint.method, 403, "unknown application secret"),
        )
      }
    }).pipe(Effect.provide(inProcess({ seed: 7 })))

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
    Effect.gen(function* () {
      expect(told(yield* ask(endpoint, "sandbox-app-1"))).toEqual(
        expected(endpoint.method, 429, "an injected fault"),
      )
    }).pipe(Effect.provide(inProcess({ seed: 7, faults: { faults: [{ on: endpoint.name, status: 429 }] } }))),
  )
})
