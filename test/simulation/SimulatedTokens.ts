/**
 * Tokens in a simulated night: the store that outlives the pipeline's processes, somebody who revokes tokens between
 * two nights, and the ear at the service that learns every ticket and token_key there ever was, so that the observer
 * can look for them where they must not be.
 */
import { DatabaseSync } from "node:sqlite"
import { Effect, Layer, Redacted } from "effect"
import { HttpClient, HttpClientRequest, HttpServerResponse } from "effect/http"
import { TokenStore } from "../../src/tokens/TokenStore.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import type { SimulatedService } from "./SimulatedService.ts"

const key = Redacted.make("11".repeat(32))
export const ourSecret = "sandbox-app-1"
export const ourApplication = "65f0c0ffee00000000000001"

export const openTokens = (): DatabaseSync => openTokenDatabase(":memory:")
export const tokenStore = (database: DatabaseSync | undefined) =>
  database === undefined ? Layer.empty : TokenStore.layerOver(database, { key, service: "sandbox" })

/** What was heard at the service's door. */
export interface Heard {
  /** Every ticket and token_key that the service handed out to anybody. */
  readonly secrets: Set<string>
  /** How often each execution's ticket was sent in. */
  readonly exchanges: Map<string, number>
}
export const nothingHeard = (): Heard => ({ secrets: new Set(), exchanges: new Map() })

const textAt = (json: unknown, ...path: ReadonlyArray<string>): string | undefined => {
  let value = json
  for (const name of path)
    value = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined
  return typeof value === "string" ? value : undefined
}

const bodyOf = (request: HttpClientRequest.HttpClientRequest): unknown =>
  request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : undefined

/** The same service, heard. */
export const heardService = (service: SimulatedService, heard: Heard): SimulatedService => ({
  ...service,
  client: HttpClient.make((request) => {
    const concerns = /\/(init\/v1\/parametrized|t10n)$/.test(request.url)
    if (!concerns) return service.client.execute(request)
    return Effect.gen(function* () {
      const execution_id = request.method === "PUT" ? textAt(bodyOf(request), "execution_id") : undefined
      if (execution_id !== undefined)
        heard.exchanges.set(execution_id, (heard.exchanges.get(execution_id) ?? 0) + 1)
      const response = yield* service.client.execute(request)
      const text = yield* response.text
      const json: unknown = JSON.parse(text)
      for (const secret of [textAt(json, "ticket"), textAt(json, "token", "token_key")])
        if (secret !== undefined) heard.secrets.add(secret)
      const { status, headers } = response
      return HttpServerResponse.toClientResponse(
        HttpServerResponse.text(text, {
          status,
          headers,
          contentType: headers["content-type"] ?? "application/json",
        }),
        { request },
      )
    })
  }),
})

/** Between two nights somebody revokes one of ours, in the service's own console. */
export const revokeOne = (service: SimulatedService, random: () => number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const active = service
      .truth()
      .tokens.filter(
        ({ application, revoked_at }) => application === ourApplication && revoked_at === undefined,
      )
    const token = active[Math.floor(random() * active.length)]
    if (token === undefined) return Effect.void
    const request = HttpClientRequest.delete(`${SandboxClient.base_url}/executions/t10n/${token.token_id}`, {
      headers: { "X-APP-SECRET": ourSecret },
    })
    return service.perform(Effect.orDie(Effect.asVoid(service.client.execute(request))))
  })
