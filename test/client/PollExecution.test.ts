/** HEAD over the port: which status says what, and that a service that does not answer is asked once. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Service } from "../../src/client/Service.ts"
import { stageInProcess, stageOverHttp, type MakeStage } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const listed: Readonly<Record<number, string>> = {
  200: "changed",
  202: "working",
  404: "changed",
  423: "changed",
  429: "Throttled",
  503: "Throttled",
}
const others = [204, 301, 400, 401, 403, 405, 410, 422, 500, 501, 502, 504]

const poll = Effect.flatMap(Service, (service) => service.pollExecution(anId("e-1"))).pipe(
  Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: (answer): string => answer }),
)

const places: ReadonlyArray<readonly [string, MakeStage]> = [
  ["in process", stageInProcess],
  ["over HTTP", stageOverHttp],
]
describe.each(places)("HEAD %s", (_, makeStage) => {
  effect(
    "is working at 202, changed if a read says more, otherwise not answered [pollExecution 202]",
    function* () {
      for (const status of [...Object.keys(listed).map(Number), ...others]) {
        const stage = yield* makeStage({ status, headers: { location: "/elsewhere" } })
        const seen = yield* Effect.provide(poll, stage.layer)
        assert.strictEqual(seen, listed[status] ?? "unanswered", String(status))
      }
    },
  )

  effect("is sent once if it is not answered, and again if the service asks to wait", function* () {
    const times = { 405: 1, 500: 1, 401: 1, 202: 3, 429: 3, 503: 3 }
    for (const [status, count] of Object.entries(times)) {
      const stage = yield* makeStage({ status: Number(status) })
      yield* Effect.provide(Effect.all([poll, poll, poll]), stage.layer)
      const sent = stage.requests.map(({ method, url, body }) => [method, url, body])
      const expected = Array.from({ length: count }, () => ["HEAD", "/api/executions/handler/v1/e-1", ""])
      assert.deepStrictEqual(sent, expected, status)
    }
  })
})
