/**
 * A service in miniature that decides its answers by itself, so that the behaviour suite is tried before it
 * judges others: executions are named after the state they are in.
 */
import { Effect, Layer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { settingsFor } from "./FakeService.ts"
import { engineDetails, startCall } from "./Examples.ts"
import type { Behaviours } from "./ServiceContract.ts"
import { anId } from "../harness/Id.ts"

const makeClient = () => {
  const started = new Set<string>()
  const deleted = new Set<string>()
  const start = (body: string): number => {
    if (body.includes("refused")) return 400
    if (body.includes("malformed")) return 422
    if (body.includes("away")) return 503
    if (started.has(body)) return 409
    started.add(body)
    return 202
  }
  const read = (id: string): number => ({ running: 202, closed: 200, waiting: 423 })[id] ?? 404
  const remove = (id: string): number => {
    if (id === "running") return 409
    if (read(id) === 404 || deleted.has(id)) return 404
    deleted.add(id)
    return 204
  }
  const abort = (id: string): number => ({ running: 204, closed: 304 })[id] ?? 404
  const answer = (method: string, path: string, body: string): number => {
    const id = /(?:handler\/v1|manager|engines)\/([^/]+)/.exec(path)?.[1] ?? ""
    if (method === "POST") return start(body)
    if (path.endsWith("/abort")) return abort(id)
    if (path.endsWith("/delete")) return remove(id)
    if (path.endsWith("/results")) return id === "unstarted" ? 412 : 200
    if (path.includes("/engines/")) return id === "away" ? 503 : id === "none" ? 404 : 200
    return read(id)
  }
  return HttpClient.make((request, url) =>
    Effect.sync(() => {
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      const status = answer(request.method, url.pathname, body)
      const json = url.pathname.endsWith("/list") ? [] : engineDetails
      const text = status === 204 || status === 304 ? null : JSON.stringify(json)
      return HttpClientResponse.fromWeb(request, new Response(text, { status }))
    }),
  )
}

const behaviours: Behaviours = {
  accepted: startCall(),
  refused: startCall({ customer_id: anId("refused") }),
  malformed: startCall({ customer_id: anId("malformed") }),
  engineUnavailable: startCall({ customer_id: anId("away") }),
  runningExecution: "running",
  closedExecution: "closed",
  deletableExecution: "closed",
  waitingExecution: "waiting",
  finishedSession: "finished",
  unstartedSession: "unstarted",
  engine: "bank",
  unknownEngine: "none",
  engineInMaintenance: "away",
}

export const ServiceSmall = {
  layer: ServiceHttp.layer(settingsFor("http://localhost")).pipe(
    Layer.provide(Layer.sync(HttpClient.HttpClient, makeClient)),
  ),
  behaviours: Effect.succeed(behaviours),
}
