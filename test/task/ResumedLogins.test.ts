/** A refusal belongs to the login that was sent, whatever the job says by now. */
import { describe, expect } from "@effect/vitest"
import { hour, night, startedBefore, succeeded, unusable, unknown, blockedUser } from "./ScriptedNight.ts"
import type { Night, NightEnd, NightTask } from "./ScriptedNight.ts"
import { bodyOf, completed, conflict, lost, state, working, acceptedAs, accepted } from "./ScriptedService.ts"
import type { StateAnswer } from "../../src/client/Service.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const blocked = state("AUTH_ERROR", "BLOCKED_USER", { authentication_status: "BLOCKED_USER" })
const sent: NightTask = { customer: "c-1", fingerprint: "old" }
/** By now the job has new credentials for c-1; others use the old and the new ones. */
const tasks: ReadonlyArray<NightTask> = [
  { customer: "c-1", fingerprint: "new" },
  { customer: "c-2", fingerprint: "old" },
  { customer: "c-3", fingerprint: "new" },
]
const script: Night["script"] = {
  state: (id, times) =>
    id === "e-c-1-1" ? blocked : state(times > 1 ? "COMPLETED" : "ONGOING", "COMPLETED"),
}
const verdicts = (end: NightEnd) => tasks.map(({ customer }) => end.verdict(customer))
const refused = blockedUser

describe("credentials that changed while an execution was in flight", () => {
  effect("are not rejected by it: those that were sent are, for everybody, and only those", function* () {
    const cut = yield* night({ tasks: [sent], cutAfter: "1 second", script: { state: () => working } })
    const end = yield* night({ tasks, facts: cut.facts.slice(2), script })
    expect(end.rejections).toEqual([["old", "BLOCKED_USER"]])
    expect(verdicts(end)).toEqual([refused, refused, succeeded])
    expect([end.countOf("start", "c-1"), end.countOf("start", "c-2")]).toEqual([0, 0])
  })

  effect("keep the old ones from being sent while it is open", function* () {
    const cut = yield* night({ tasks: [sent], cutAfter: "1 second", script: { state: () => working } })
    let isOpen = true
    const starts: Array<readonly [string, boolean]> = []
    yield* night({
      tasks,
      facts: cut.facts.slice(2),
      acts: [[hour, () => (isOpen = false)]],
      script: {
        start: ({ customer_id }) => (starts.push([customer_id, isOpen]), accepted(`${customer_id}-1`)),
        state: (id, times) =>
          id === "e-c-1-1" && isOpen ? working : times > 1 ? state("COMPLETED", "COMPLETED") : working,
      },
    })
    expect(starts).toEqual([
      ["c-3", true],
      ["c-2", false],
    ])
  })

  effect("are not held back for an answer to the old ones that could not be used", function* () {
    const past = startedBefore("c-1", { answer: "unusable", http_status: 202 }, "old")
    const end = yield* night({ tasks, facts: past, script })
    expect(end.rejections).toEqual([])
    // What may run unseen keeps its own login, and no other one, for the rest of the run.
    expect([verdicts(end), end.countOf("start", "c-2")]).toEqual([[unusable, unknown, succeeded], 0])
  })
})

describe("a refusal that a state showed while its execution went on", () => {
  const gone = { _tag: "NotFound" } as const
  const refusing = state("ONGOING", "RUNNING", { authentication_status: "INCORRECT_CREDENTIALS" })
  const isRefused = (end: NightEnd) => {
    expect(end.rejections).toEqual([["old", "INCORRECT_CREDENTIALS"]])
    expect([end.countOf("start", "c-1"), end.countOf("start", "c-2")]).toEqual([1, 0])
    expect(end.verdicts("c-1", "c-2")).toEqual([
      "failed INCORRECT_CREDENTIALS customer",
      "failed INCORRECT_CREDENTIALS customer",
    ])
  }
  const twice: ReadonlyArray<NightTask> = [sent, { customer: "c-2", fingerprint: "old" }]

  const said = { authentication_status: "not-performed" }
  /** A 202, whatever family it names. */
  const open = (...shown: Parameters<typeof state>): StateAnswer => {
    const [status_code, status_reason, more] = shown
    const view = { status_code, status_reason, ...more, is_closed: false }
    return { _tag: "Working", body: bodyOf(view), view }
  }
  const ends = [gone, state("TEMPORARY_ERROR", "NETWORK_ERROR", said)]
  effect.each([
    ["family, and none was tried", open("AUTH_ERROR", "INCORRECT_CREDENTIALS", said)],
    ["family alone", open("AUTH_ERROR", "INCORRECT_CREDENTIALS")],
    ["reason alone", open("ONGOING", "INCORRECT_CREDENTIALS", said)],
    ["own field", refusing],
  ] as const)(
    "counts, however it ends, although the state named it by its %s [promise 4 told family]",
    function* ([, shown]) {
      for (const last of ends) {
        const state_ = (_: string, times: number) => (times === 1 ? shown : last)
        isRefused(yield* night({ tasks: twice, script: { state: state_ } }))
      }
    },
  )

  effect("counts although it came with a challenge [promise 4 told challenge]", function* () {
    const view = { authentication_status: "INCORRECT_CREDENTIALS" }
    const refused: StateAnswer = { _tag: "ActionRequired", body: bodyOf({ form_schema: {} }), view }
    const state_ = (_: string, times: number) =>
      times === 1 ? refused : state("ABORTED", "CLIENT_CANCELLED", said)
    const end = yield* night({ tasks: [sent], script: { state: state_ } })
    expect([end.rejections, end.starts]).toEqual([[["old", "INCORRECT_CREDENTIALS"]], 1])
  })

  effect("no longer counts once the source accepts the login, by whichever field it was named", function* () {
    const good = state("COMPLETED", "COMPLETED", { authentication_status: "AUTH_OK" })
    for (const shown of [open("AUTH_ERROR", "BLOCKED_USER", said), refusing]) {
      const state_ = (_: string, times: number) => (times === 1 ? shown : good)
      const end = yield* night({ tasks: [sent], script: { state: state_ } })
      expect([end.rejections, end.verdict("c-1")]).toEqual([[], succeeded])
    }
  })

  effect("counts although only the read that found a lost start again showed it", function* () {
    let ours = ""
    const script: Night["script"] = {
      start: (call, times) => {
        ours = call.external_execution_id
        return times === 1 ? lost : conflict("c-1-1", ours)
      },
      state: (_, times) =>
        times === 1
          ? state("ONGOING", "RUNNING", {
              authentication_status: "INCORRECT_CREDENTIALS",
              external_execution_id: ours,
            })
          : gone,
    }
    const done = yield* night({ tasks: [sent], script })
    expect([done.rejections, done.verdict("c-1")]).toEqual([
      [["old", "INCORRECT_CREDENTIALS"]],
      "failed INCORRECT_CREDENTIALS customer",
    ])
    // The same for a process that died right after it.
    const adopted = done.facts.findIndex((fact) => fact._tag === "AttemptObserved")
    const past = done.facts.slice(2, adopted + 1)
    const end = yield* night({ tasks: twice, facts: past, script: { state: () => gone } })
    expect(past.map(({ _tag }) => _tag)).toContain("StartAnswered")
    expect([end.rejections, end.starts]).toEqual([[["old", "INCORRECT_CREDENTIALS"]], 0])
  })

  const refusedAtOnce = acceptedAs({
    execution_id: anId("e-c-1-1"),
    session_id: anId("s-c-1-1"),
    status_code: "AUTH_ERROR",
    status_reason: "INCORRECT_CREDENTIALS",
  })
  const atOnce = "counts at once if the answer to its start named it, although the execution %s"
  effect.each([
    ["is never found [promise 4 accepted]", gone, "failed INCORRECT_CREDENTIALS customer"],
    ["completes after all", completed, succeeded],
    ["says it again", state("AUTH_ERROR", "INCORRECT_CREDENTIALS"), "failed INCORRECT_CREDENTIALS customer"],
  ] as const)(atOnce, function* ([, last, verdict]) {
    const script = { start: () => refusedAtOnce, state: () => last }
    const done = yield* night({ tasks: [sent], script })
    expect([done.rejections[0], done.verdict("c-1")]).toEqual([["old", "INCORRECT_CREDENTIALS"], verdict])
    const answered = done.facts.findIndex(({ _tag }) => _tag === "StartAnswered")
    expect(done.facts.slice(answered, answered + 3).map(({ _tag }) => _tag)).toEqual([
      "StartAnswered",
      "AttemptObserved",
      "CredentialRejected",
    ])
    // Followed to its end and collected like any other.
    expect([done.of("AttemptClosed").length, done.of("AttemptDrained").length]).toEqual([
      1,
      last === gone ? 0 : 1,
    ])
    const next = yield* night({
      tasks: [{ customer: "c-2", fingerprint: "old" }],
      facts: done.facts.slice(2),
    })
    expect([next.starts, next.verdict("c-2")]).toEqual([0, "failed INCORRECT_CREDENTIALS customer"])
  })
})
