/** Where requests go, and the secret with them: the three configured roots, and nowhere else. */
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import type { CallFailure, Service } from "../../src/client/Service.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { calls } from "./ServiceContract.ts"
import { effect } from "../harness/Steps.ts"

const secret = "app-secret-canary-1"

const rootsAsked = Effect.fnUntraced(function* (
  roots: Readonly<Record<"base_url" | "flows_url" | "attachments_url", string>>,
) {
  const seen = new Map<string, Set<string>>()
  const client = HttpClient.make((request, url) =>
    Effect.sync(() => {
      const root = `${url.origin}${url.pathname.split("/").slice(0, 2).join("/")}`
      seen.set(root, (seen.get(root) ?? new Set()).add(request.headers["x-app-secret"] ?? "none"))
      return HttpClientResponse.fromWeb(
        request,
        new Response(null, { status: 307, headers: { location: "https://evil.example/" } }),
      )
    }),
  )
  const layer = ServiceHttp.layer({ ...roots, app_secret: Redacted.make(secret) }).pipe(
    Layer.provide(Layer.succeed(HttpClient.HttpClient, client)),
  )
  const all: ReadonlyArray<Effect.Effect<unknown, CallFailure, Service>> = Object.values(calls)
  for (const call of all) yield* Effect.ignore(Effect.provide(call, layer))
  return Object.fromEntries([...seen].map(([root, secrets]) => [root, [...secrets]]))
})

describe("the application secret", () => {
  effect("goes to the configured roots only, whatever a redirect says [auth-rule 1]", function* () {
    const apart = {
      base_url: "https://legacy.example/api/",
      flows_url: "http://[::1]:3000/flows",
      attachments_url: "https://files.example/documents",
    }
    assert.deepStrictEqual(yield* rootsAsked(apart), {
      "https://legacy.example/api": [secret],
      "http://[::1]:3000/flows": [secret],
      "https://files.example/documents": [secret],
    })
    const beside = { base_url: "https://a.example/x", flows_url: "https://a.example/y" }
    const asked = yield* rootsAsked({ ...beside, attachments_url: beside.flows_url })
    assert.deepStrictEqual(asked, { "https://a.example/x": [secret], "https://a.example/y": [secret] })
  })
})
