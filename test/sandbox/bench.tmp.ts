import { Effect, Layer } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { Sandbox } from "../../src/sandbox/Sandbox.ts"
import { SandboxClient } from "../../src/sandbox/SandboxClient.ts"
const program = Effect.gen(function* () {
  const client = yield* HttpClient.HttpClient
  const ids: string[] = []
  const t0 = performance.now()
  for (let i = 0; i < 2000; i++) {
    const r = HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${SandboxClient.base_url}/executions/init/v1/parametrized`, { headers: { "x-app-secret": "sandbox-app-1" } }), { engine_reference: "sandbox-bank:website", customer_id: "c" + i, parameters: { username: i % 2 ? "ok" : "queue-0+run-0", password: "abcd" } })
    const res = yield* client.execute(r)
    const body = yield* res.json as Effect.Effect<{execution_id: string}>
    ids.push(body.execution_id)
  }
  const t1 = performance.now()
  console.log("starts/s", 2000 / (t1 - t0) * 1000)
  for (let round = 0; round < 3; round++) {
    const a = performance.now()
    const n = 10000
    for (let i = 0; i < n; i++) {
      const res = yield* client.execute(HttpClientRequest.get(`${SandboxClient.base_url}/executions/handler/v1/${ids[i % 2000]}`, { headers: { "x-app-secret": "sandbox-app-1" } }))
      yield* res.text
    }
    console.log("reads/s", n / (performance.now() - a) * 1000, Math.round(process.memoryUsage().heapUsed / 1e6), "MB")
  }
})
await Effect.runPromise(program.pipe(Effect.provideService(HttpClient.TracerDisabledWhen, () => true), Effect.provide(SandboxClient.layer.pipe(Layer.provideMerge(Sandbox.layer({ seed: 7 }))))))
