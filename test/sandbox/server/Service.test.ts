/** One suite, two ways to reach the service: in the caller's own fiber, and through a real server. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Caller, inProcess, overHttp } from "./Caller.ts"
import { challengeSuite } from "../executions/ChallengeSuite.ts"
import { executionSuite } from "../executions/ExecutionSuite.ts"
import { flowSuite } from "../flows/FlowSuite.ts"

describe("the embedded service, in-process", () => executionSuite(inProcess))
describe("the embedded service, over HTTP", () => executionSuite(overHttp))
describe("challenges", challengeSuite)
describe("the flow API, the catalogue and the gate", flowSuite)

describe("the in-process service", () => {
  it("answers within the caller's own step: no Promise, no timer, so that runs can be simulated", () => {
    const read = Effect.flatMap(Caller, (caller) => caller.read("nobody")).pipe(
      Effect.provide(inProcess({ seed: 7 })),
    )
    expect(Effect.runSync(read)).toMatchObject({ status: 404, json: { detail: "no such execution" } })
  })

  it("is one origin: any other is refused like a connection", () => {
    const elsewhere = Effect.flatMap(Caller, (caller) => caller.call("GET", "http://elsewhere.invalid/api"))
    expect(Effect.runSyncExit(elsewhere.pipe(Effect.provide(inProcess({ seed: 7 }))))._tag).toBe("Failure")
  })
})
