/** Faults in a service: in process, where virtual time passes, and over real sockets. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { HttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { SandboxClient } from "../../../src/sandbox/server/SandboxRoutes.ts"
import { Caller, inProcess, overHttp } from "../server/Caller.ts"
import { faultsSuite } from "./FaultsSuite.ts"

for (const [name, reach] of [
  ["in-process", inProcess],
  ["over HTTP", overHttp],
] as const) {
  describe(`faults, ${name}`, () => {
    faultsSuite(reach)
  })
}

describe("a fault of status", () => {
  it.effect("says when to come back in whole seconds, and JSON only of what is JSON", () =>
    Effect.gen(function* () {
      const url = `${SandboxClient.base_url}/config/engines/list`
      const answers = yield* Effect.forEach([1, 2, 3], () => HttpClient.get(url))
      expect(
        answers.map(({ status, headers }) => [status, headers["retry-after"], headers["content-type"]]),
      ).toEqual([
        [429, "3", "application/json"],
        [503, undefined, "text/plain"],
        [204, undefined, undefined],
      ])
    }).pipe(
      Effect.provide(
        SandboxClient.layer.pipe(
          Layer.provide(
            Sandbox.layer({
              seed: 7,
              faults: {
                faults: [
                  { on: "listEngines", script: [1], status: 429, retry_after: "2100 millis" },
                  { on: "listEngines", script: [2], status: 503, body: "<html>" },
                  { on: "listEngines", script: [3], status: 204 },
                ],
              },
            }),
          ),
        ),
      ),
    ),
  )
})

describe("time faults", () => {
  const slow = inProcess({
    seed: 7,
    faults: {
      faults: [
        { on: "readExecution", delay: "2 seconds", status: 503 },
        { on: "listEngines", hang: true },
      ],
    },
  })

  it.effect("an answer comes late in the service's own time, and what hangs never comes", () =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const late = yield* Effect.forkChild(caller.read("nobody"))
      const never = yield* Effect.forkChild(
        Effect.timeoutOption(caller.call("GET", `${caller.base_url}/config/engines/list`), "1 day"),
      )
      yield* TestClock.adjust(1_999)
      expect(late.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(1)
      expect((yield* Fiber.join(late)).status).toBe(503)
      yield* TestClock.adjust("1 day")
      expect(yield* Fiber.join(never)).toEqual(Option.none())
    }).pipe(Effect.provide(slow)),
  )
})
