/** What planning makes of an engine's answer, from the bytes on: of a form, of none, and of one that says to come back. */
import { describe, expect } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { FormCache } from "../../src/client/EngineForms.ts"
import { Service } from "../../src/client/Service.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { FormCheckerInProcess } from "../harness/FormCheckerInProcess.ts"
import { assignment, planOn, grounds, login } from "../task/Samples.ts"
import { engineDetails } from "./Examples.ts"
import { stageInProcess } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const decisionFor = (status: number, body: string, list = status) =>
  Effect.gen(function* () {
    const stages = yield* Effect.all({
      page: stageInProcess({ status, body }),
      list: stageInProcess({ status: list, body: "[]" }),
    })
    const listEngines = Service.use((service) => service.listEngines).pipe(Effect.provide(stages.list.layer))
    const layer = Layer.effect(
      Service,
      Effect.map(Service, (service) => Service.of({ ...service, listEngines })),
    ).pipe(Layer.provide(stages.page.layer))
    const cache = FormCache.layer.pipe(
      Layer.provide(FormCheckerInProcess.layer),
      Layer.provide(layer),
      Layer.provide(Ledger.layer({ path: ":memory:" })),
    )
    const looking = Effect.flatMap(FormCache, (forms) => forms.look(anId("bank:website"))).pipe(
      Effect.provide(cache),
    )
    const fiber = yield* Effect.forkChild(looking)
    yield* TestClock.adjust("1 hours")
    const finding = yield* Fiber.join(fiber)
    const decision = planOn(assignment({ features: [] }), login({ username: "u" }), finding, grounds())
    return decision._tag === "Task" ? { availability: decision.task.availability } : decision.verdict
  })

const verdict = (found: string) => ({
  task_id: "nightly.2026-11-21/c-1/bank:website",
  customer_id: "c-1",
  engine_reference: "bank:website",
  features: [],
  outcome: "failed",
  reason: "UNEXPECTED_ANSWER",
  who_acts: "engineer",
  message: `showEngine: ${found}; no login is sent without its form: report this to the service's support`,
})

describe("an engine in planning", () => {
  effect("is ready if its form has no format and its features no settings", function* () {
    const details = {
      ...engineDetails,
      parameters: { type: "object", properties: {} },
      configurations: null,
      features: [{ code: "accounts_read", configurations: null }],
    }
    expect(yield* decisionFor(200, JSON.stringify(details))).toEqual({
      availability: "ready",
    })
  })

  effect("needs an engineer if its form cannot be read, without waiting until the deadline", function* () {
    const details = JSON.stringify({ ...engineDetails, parameters: "username, password" })
    const cannot = "the engine's details cannot be read"
    expect(yield* decisionFor(200, details)).toEqual(
      verdict(`${cannot}: \`parameters\` is not a form (reference, 2.3) (200)`),
    )
    expect(yield* decisionFor(200, "{}")).toEqual(verdict(`${cannot}: \`reference\` is not a string (200)`))
  })

  effect("needs an engineer if it alone is refused, not the list [run refused engine]", function* () {
    const alone = yield* decisionFor(403, "", 200)
    expect(alone).toEqual(verdict("the service does not show this engine to the application (403)"))
    const whole = yield* Effect.exit(decisionFor(403, ""))
    expect(String(whole)).toContain("the service refuses the application secret (403)")
  })

  effect("is waited for if there is no answer, or one that asks to wait", function* () {
    const away = { availability: "unavailable" }
    expect(yield* decisionFor(200, "<html>")).toEqual(away)
    expect(yield* decisionFor(503, '{"detail":"maintenance"}')).toEqual(away)
    expect(yield* decisionFor(500, "")).toEqual(away)
    expect(yield* decisionFor(404, "<html>not found</html>")).toEqual(away)
  })
})
