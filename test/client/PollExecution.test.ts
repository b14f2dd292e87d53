/** HEAD over the port: which status says what, and that a service that does not answer is asked once. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Service } from "../../src/client/Service.ts"
import { stageInProcess, stageOverHttp } from "./FakeService.ts"
import type { MakeStage } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const statuses = [200, 202, 204, 301, 400, 401, 403, 404, 405, 410, 422, 423, 429, 500, 501, 502, 503, 504]
const listed: Readonly<Record<number, string>> = {
  200: "changed",
  202: "working",
  404: "changed",
  423: "changed",
  429: "Throttled",
  503: "Throttled",
}

const poll = Effect.flatMap(Service, (service) => service.pollExecution(anId("e-1"))).pipe(
  Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: (answer): string => answer }),
)

const describePolls = (title: string, makeStage: MakeStage): void => {
  describe(title, () => {
    effect(
      "is still working at 202, changed if a read says more, otherwise not answered [pollExecution 202]",
      function* () {
        const seen = yield* Effect.forEach(statuses, (status) =>
          Effect.gen(function* () {
            const stage = yield* makeStage({ status, headers: { location: "/elsewhere" } })
            return [status, yield* Effect.provide(poll, stage.layer)] as const
          }),
        )
        const expected = statuses.map((status) => [status, listed[status] ?? "unanswered"])
        assert.deepStrictEqual(
          seen.map((one) => [...one]),
          expected,
        )
      },
    )

    effect("is sent once if it is not answered, and again if the service asks to wait", function* () {
      for (const [status, times] of [
        [405, 1],
        [500, 1],
        [401, 1],
        [202, 3],
        [429, 3],
        [503, 3],
      ] as const) {
        const stage = yield* makeStage({ status })
        yield* Effect.andThen(poll, Effect.andThen(poll, poll)).pipe(Effect.provide(stage.layer))
        const sent = stage.requests.map(({ method, url, body }) => [method, url, body])
        const expected = Array.from({ length: times }, () => ["HEAD", "/api/executions/handler/v1/e-1", ""])
        assert.deepStrictEqual(sent, expected, String(status))
      }
    })
  })
}

describePolls("HEAD in process", stageInProcess)
describePolls("HEAD over HTTP", stageOverHttp)
