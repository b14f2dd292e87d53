/** What was started at one service, and is looked for by a later process whose job names another one. */
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { leftElsewhere } from "../../src/task/MovedService.ts"
import { makePlace, night, second, succeeded } from "./ScriptedNight.ts"
import type { Night, Place } from "./ScriptedNight.ts"
import { accepted, completed, counted, results, silent, state, working } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const moved = { service: "http://new" }
const gone: Script["state"] = () => ({ _tag: "NotFound" })
const left = "unfinished SERVICE_MOVED engineer"
const untouched = ["abort", "results", "delete", "start"] as const

const sent = ({ calls }: Place, from: number) =>
  calls.slice(from).flatMap(([, verb]) => (untouched.some((one) => one === verb) ? [verb] : []))

/** A process that dies while its execution is open; then what another one at the new service makes of it. */
const resumed = (scriptOf: (ours: string | undefined) => Script, more: Partial<Night> = {}) =>
  Effect.gen(function* () {
    const place = makePlace()
    const begun = yield* night({
      place,
      script: { start: () => accepted("1"), state: () => working },
      killAfter: 30 * second,
    })
    const from = place.calls.length
    const script = scriptOf(begun.of("StartIntended")[0]?.external_execution_id)
    const end = yield* night({ place, rules: moved, script, ...more })
    return { place, end, sent: sent(place, from) }
  })

describe("an execution that was started at another service", () => {
  effect(
    "stays open where the present one does not know it, and nothing of it is asked [promise 2 moved] [end SERVICE_MOVED]",
    function* () {
      for (const mode of ["night", "collect"] as const) {
        const { place, end, sent: asked } = yield* resumed(() => ({ state: gone }), { mode })
        expect([end.verdict("c-1"), asked, end.of("AttemptClosed")]).toEqual([left, [], []])
        expect(end.state.tasks.values().next().value?.settled?.fact.message).toBe(
          "it was started at http://old, and http://new did not show it",
        )
        expect(leftElsewhere(end.state, "http://new", "delete")).toEqual([
          { run_id: end.state.started.run_id, service: "http://old", executions: 1 },
        ])
        expect(leftElsewhere(end.state, "http://old", "delete")).toEqual([])
        const back = yield* night({ place, script: { state: () => completed, whose: () => undefined } })
        expect(back.verdict("c-1")).toBe(succeeded)
      }
    },
  )

  effect(
    "is not taken for one of the same id there, whose state does not name it as ours [promise 2 moved ours]",
    function* () {
      for (const whose of ["theirs", undefined]) {
        const { end, sent: asked } = yield* resumed(() => ({ state: () => completed, whose: () => whose }))
        const found = [...end.of("AttemptFound"), ...end.of("AttemptDisowned"), ...end.of("AttemptClosed")]
        expect([end.verdict("c-1"), asked, found]).toEqual([left, [], []])
      }
    },
  )

  effect("goes on as before where the service has only moved: its state names it as ours", function* () {
    const { end } = yield* resumed((ours) => ({
      state: (_, times) => (times < 5 ? working : completed),
      whose: () => ours,
    }))
    expect([end.verdict("c-1"), end.of("AttemptFound").map(({ service }) => service)]).toEqual([
      succeeded,
      ["http://new"],
    ])
    expect(leftElsewhere(end.state, "http://new", "delete")).toEqual([])
  })

  effect(
    "is not read again while it is not found, and stays kept as it is [promise 2 moved kept]",
    function* () {
      const two = state("COMPLETED", "COMPLETED", {
        authentication_status: "AUTH_OK",
        products_count: counted({ "bank:account@accounts": 2 }),
      })
      const place = makePlace()
      const first = yield* night({
        place,
        script: { start: () => accepted("1"), state: () => two, results: () => results(true) },
      })
      const from = place.calls.length
      const second = yield* night({ place, rules: moved, mode: "collect", script: { state: gone } })
      expect([sent(place, from), second.facts.length - first.facts.length]).toEqual([[], 0])
      expect(second.verdict("c-1")).toBe("partial RECORDS_SHORT engineer")
    },
  )

  effect(
    "is known by where its own start was sent, if its run went on there [promise 2 moved start]",
    function* () {
      const place = makePlace()
      yield* night({ place, tasks: [{ customer: "c-1", prepare: () => silent }], killAfter: second })
      const start = () => accepted("1")
      yield* night({ place, rules: moved, script: { start, state: () => silent }, killAfter: second })
      const end = yield* night({ place, script: { state: gone } })
      expect([end.of("StartIntended").map(({ service }) => service), end.verdict("c-1")]).toEqual([
        ["http://new"],
        left,
      ])
    },
  )
})
