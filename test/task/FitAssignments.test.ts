/** One engine's form among those of others: whatever it does, the others' customers are planned. */
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { FormCache } from "../../src/client/EngineForms.ts"
import { Service } from "../../src/client/Service.ts"
import { fitAssignments, fitTask } from "../../src/task/Assignment.ts"
import { FormChecker } from "../../src/client/FormProcess.ts"
import { FormCheckerInProcess } from "../harness/FormCheckerInProcess.ts"
import { planTasks } from "../../src/task/Plan.ts"
import { assignment, engineDetails, grounds, login, planOn } from "./Samples.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"

const engines = new Map([
  ["bank:website", engineDetails()],
  ["slow:api", engineDetails({ reference: "slow:api", name: "SLOW" })],
])

const service = Layer.mock(Service, {
  showEngine: (reference) => {
    const engine = engines.get(reference)
    return Effect.succeed(engine === undefined ? { _tag: "EngineUnknown" } : { _tag: "Engine", engine })
  },
})
/** As the thread answers a form that takes too long once values are checked against it. */
const checker = Layer.effect(
  FormChecker,
  Effect.map(FormChecker, ({ check }) => ({
    check: (request) =>
      request.body.includes("SLOW") && request.cases.length > 0
        ? Effect.succeed({ _tag: "Unusable", why: "checking it takes longer than 5s" } as const)
        : check(request),
  })),
).pipe(Layer.provide(FormCheckerInProcess.layer))
const { effect } = withLayer(
  FormCache.layer.pipe(Layer.provide(Layer.mergeAll(service, checker, Ledger.layer({ path: ":memory:" })))),
)

const good = login({ username: "user", password: "pass" })
const assignments = ["bank:website", "slow:api", "bank:website"].map((engine_reference, at) =>
  assignment({ customer_id: anId(`c-${at}`), engine_reference: anId(engine_reference) }),
)
const logins = [good, good, login({ username: "u" })]
const cannot = (why: string) =>
  `the engine's form cannot be used (${why}); no login is sent without its form: report this to the ` +
  "service's support"

describe("a plan over several engines", () => {
  effect("starts tasks with a usable form, and settles those of each engine that has none", function* () {
    const forms = yield* FormCache
    const found = yield* forms.findAll(assignments.map(({ engine_reference }) => engine_reference))
    const fitted = yield* fitAssignments(assignments, logins, found)
    const { tasks, settled } = planTasks({
      sessions: [],
      grounds: grounds(),
      ...fitted,
    })
    assert.deepStrictEqual(
      tasks.map(({ customer_id, availability }) => [customer_id, availability]),
      [["c-0", "ready"]],
    )
    const broken = "password is missing; the form requires it; username must NOT have fewer than 2 characters"
    assert.deepStrictEqual(
      settled.map(({ customer_id, outcome, reason, who_acts, message }) => [
        customer_id,
        outcome,
        reason,
        who_acts,
        message,
      ]),
      [
        ["c-1", "failed", "ANSWER_UNUSABLE", "engineer", cannot("checking it takes longer than 5s")],
        ["c-2", "failed", "INCORRECT_PARAMETERS_FORMAT", "engineer", broken],
      ],
    )
  })

  effect("checks an engine again before a start, when its form may have become unusable", function* () {
    const task = (engine_reference: string) => {
      const of = assignment({ engine_reference: anId(engine_reference) })
      const decision = planOn(of, good, { _tag: "Unavailable" }, grounds())
      return decision._tag === "Task" ? decision.task : assert.fail("it is no task")
    }
    assert.deepStrictEqual(yield* fitTask(task("slow:api")), {
      finding: { _tag: "Unusable", why: "checking it takes longer than 5s" },
    })
    const bank = yield* fitTask(task("bank:website"))
    assert.deepStrictEqual([bank.finding._tag, bank.fit?.settings.errors], ["Known", []])
    assert.deepStrictEqual(yield* fitTask(task("gone:api")), { finding: { _tag: "Unknown" } })
  })
})
