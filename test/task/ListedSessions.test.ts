/** Flow sessions that a job lists, over several processes: watched until final, read again by the next run. */
import { describe, expect } from "@effect/vitest"
import { exitCodeOf } from "../../src/report/Finish.ts"
import { makePlace, minute, night, run_id, second, type NightEnd, succeeded } from "./ScriptedNight.ts"
import { lost, results, throttled, type Script } from "./ScriptedService.ts"
import { effect } from "../harness/Steps.ts"

const verdictOf = (end: NightEnd, session_id: string) => {
  const settled = end.state.tasks.get(`${run_id}/session/${session_id}`)?.settled?.fact
  return `${settled?.outcome} ${settled?.reason} ${settled?.who_acts}`
}
const named = [{ attachment_id: "doc-1" }]

describe("a flow session that a job lists", () => {
  effect("is read until its results are final, with its documents, and nothing is executed", function* () {
    const place = makePlace()
    const script: Script = {
      results: (_, times) =>
        times === 1 ? throttled(504, 20 * second) : times === 2 ? lost : results(times > 6, named),
    }
    const end = yield* night({ place, tasks: [], sessions: ["s-9"], script })
    expect(verdictOf(end, "s-9")).toBe(succeeded)
    const counts = ["start", "state", "results", "attachment", "profile", "delete"].map((verb) =>
      end.countOf(verb),
    )
    expect(counts).toEqual([0, 0, 7, 1, 0, 0])
    const landed = place.store.bodies.get(run_id) ?? []
    expect(landed.map(({ meta }) => [meta.kind, meta.session_id, meta.execution_id])).toEqual([
      ["results", "s-9", undefined],
      ["results", "s-9", undefined],
    ])
  })

  effect("of which a document did not come is read again for it, and a success meanwhile", function* () {
    const place = makePlace()
    const script = (answer: "document" | typeof lost): Script => ({
      results: () => results(true, named),
      attachment: () => answer,
    })
    const ends = [
      yield* night({ place, tasks: [], sessions: ["s-9"], script: script(lost) }),
      yield* night({ place, tasks: [], sessions: ["s-9"], script: script("document") }),
    ]
    expect(ends.map((end) => [verdictOf(end, "s-9"), exitCodeOf(end.state, "keep")])).toEqual([
      [succeeded, 4],
      [succeeded, 0],
    ])
  })

  effect("is read again by the next run while it is partial, and never again once it is final", function* () {
    const place = makePlace()
    const sessions = ["s-8", "s-9"]
    const slow: Script = { results: (id) => results(id === "s-8") }
    const first = yield* night({ place, tasks: [], sessions, script: slow })
    expect(sessions.map((id) => verdictOf(first, id))).toEqual([
      succeeded,
      "unfinished RESULTS_PARTIAL service",
    ])
    const readsBefore = first.countOf("results", "s-8")
    const firstReads = first.countOf("results", "s-9")
    expect([readsBefore, firstReads > 10]).toEqual([1, true])
    const lastRead = first.calls.at(-1)?.[0] ?? 0
    expect(lastRead).toBeGreaterThan(8 * minute)
    const next = yield* night({ place, tasks: [], sessions, script: {} })
    expect(sessions.map((id) => verdictOf(next, id))).toEqual([succeeded, succeeded])
    expect([next.countOf("results", "s-8"), next.countOf("results", "s-9")]).toEqual([1, firstReads + 1])
  })
})
