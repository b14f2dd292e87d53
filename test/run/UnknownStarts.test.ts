/**
 * A start of which nobody knows whether it ran stays unknown for its own night, and costs no further one: whole
 * nights against the embedded service.
 */
import { describe, expect, it } from "vitest"
import { Effect } from "effect"
import { runNight } from "../../src/run/Nightly.ts"
import { AnswerLost, Service } from "../../src/client/Service.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { customer, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"

const job = jobOf([customer("c-1", "ok+queue-1+run-1")])

const told = Effect.fnUntraced(function* () {
  const { run_id, exit_code, state } = yield* runNight(job, options)
  const [task] = state.tasks.values()
  return `${run_id}: ${exit_code} ${task?.settled?.fact.reason}`
})

/** Every start leaves, and nothing of it arrives. */
const unanswered = (service: Service["Service"]): Service["Service"] => ({
  ...service,
  startExecution: (_, leaving) =>
    Effect.andThen(leaving, Effect.fail(new AnswerLost({ message: "nothing came back" }))),
})

describe("a start whose answer and whose probe's answer are lost", () => {
  it("is left alone by its own run, and the next run starts the customer again", () => {
    const nights = Effect.gen(function* () {
      const first = yield* Effect.provideService(told(), Service, unanswered(yield* Service))
      const again = yield* told()
      yield* wait(1)
      const next = yield* told()
      const { executions } = yield* (yield* Sandbox).truth
      const last = (yield* (yield* Ledger).runs).map(({ fact }) => fact.run_id)
      return { told: [first, again, next], executions: executions.length, last }
    })
    expect(live(makeNights(), nights)).toEqual({
      told: [
        "tokens.2026-11-21: 4 START_UNKNOWN",
        "tokens.2026-11-21: 4 START_UNKNOWN",
        "tokens.2026-11-22: 0 COMPLETED",
      ],
      executions: 1,
      last: ["tokens.2026-11-21", "tokens.2026-11-22"],
    })
  })
})
