/** Processes that are interrupted or killed at any moment, and the next ones that finish their run. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { makePlace, night, customers, succeeded } from "./ScriptedNight.ts"
import { accepted, completed, lost, results, state, working, type Script } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"

const temporary = state("TEMPORARY_ERROR", "OUT_OF_SERVICE")

/** A service that remembers what it runs, and answers a second start of the same customer with a conflict. */
const remembering = (mood: (times: number) => boolean) => {
  const open = new Map<string, string>()
  const made: Array<string> = []
  const script: Script = {
    start: (call, times) => {
      const external = open.get(call.customer_id)
      const id = `${call.customer_id}-${made.length}`
      if (external !== undefined)
        return {
          _tag: "AlreadyExecuting",
          body: { bytes: new Uint8Array(), json: undefined },
          view: {
            execution_id: anId(`e-${made.findLast((one) => one.startsWith(call.customer_id))}`),
            session_id: anId("s"),
            external_execution_id: external,
          },
        }
      open.set(call.customer_id, call.external_execution_id)
      made.push(id)
      return mood(times) ? lost : accepted(id)
    },
    state: (id, times) => {
      if (times < 4) return working
      open.delete(id.split("-").slice(1, 3).join("-"))
      return id.endsWith("-0") ? temporary : completed
    },
    results: (_, times) => results(times > 2),
  }
  return { script, made }
}

describe("an interruption", () => {
  /** One for each state of the three tasks that a process can leave, cut off or killed, and a few in between. */
  const cuts = [
    37, 98, 205, 231, 426, 888, 2_088, 3_848, 4_348, 7_089, 9_052, 10_228, 18_845, 21_295, 24_064, 27_192,
    30_727, 39_235, 44_335,
  ]

  /** Three tasks, and a second try for the one whose first execution met a temporary error. */
  const finish = Effect.fnUntraced(function* (
    cut: number,
    isLost: boolean,
    ends: ReadonlyArray<{ readonly killAfter: number } | { readonly cutAfter: number }>,
  ) {
    const place = makePlace()
    const service = remembering((times) => isLost && times === 1)
    const tasks = customers(3)
    for (const end of ends) yield* night({ place, tasks, script: service.script, ...end })
    const end = yield* night({ place, tasks, script: service.script })
    const attempts = [...end.state.tasks.values()].flatMap((task) => task.attempts)
    expect({
      cut,
      verdicts: tasks.map(({ customer }) => end.verdict(customer)),
      known: attempts.flatMap(({ execution_id }) => execution_id ?? []).toSorted(),
      count: service.made.length,
    }).toEqual({
      cut,
      verdicts: tasks.map(() => succeeded),
      known: service.made.map((id) => `e-${id}`).toSorted(),
      count: 4,
    })
    for (const attempt of attempts)
      expect([attempt.closed !== undefined, attempt.drained]).toEqual([true, true])
  })

  it.effect("at any moment leaves a ledger that the next process finishes, without an extra start", () =>
    Effect.forEach(cuts, (cut) => finish(cut, true, [{ cutAfter: cut }, { cutAfter: 2 * cut }]), {
      discard: true,
    }),
  )

  it.effect("by a kill does so too", () =>
    Effect.forEach(cuts, (cut) => finish(cut, false, [{ killAfter: cut }]), { discard: true }),
  )
})
