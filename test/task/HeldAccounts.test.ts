/** Two rejected logins in a row hold the account: no further one is sent to it, in this run or a later one. */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { LeftOpen } from "../../src/task/Next.ts"
import { append } from "../../src/ledger/Ledger.ts"
import { openLongestMs } from "../../src/service/Execution.ts"
import { blockedUser, busy, idOf, keysOf, makePlace, minute, night, succeeded } from "./ScriptedNight.ts"
import type { Night, NightTask } from "./ScriptedNight.ts"
import { accepted, completed, state } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const blocked = (id: string) => state("AUTH_ERROR", id, { authentication_status: id })
/** Three engines of one source, each with a login of its own to the same account; c-2 has another account there. */
const tasks: ReadonlyArray<NightTask> = [
  { customer: "c-1", engine: "bank:website", fingerprint: "one", account: "A" },
  { customer: "c-1", engine: "bank:mobile", fingerprint: "two", account: "A" },
  { customer: "c-1", engine: "bank:api", fingerprint: "three", account: "A" },
  { customer: "c-2", engine: "bank:api", fingerprint: "four", account: "B" },
]
/** What the source says to each login, and how many executions of the others were open at once. */
const source = (ends: Readonly<Record<string, ReturnType<typeof state>>>) => {
  const open = new Set<string>()
  const seen = { most: 0, starts: new Array<string>() }
  const script: Night["script"] = {
    start: ({ customer_id, engine_reference }) => {
      const id = `${customer_id} ${engine_reference}`
      seen.starts.push(id)
      if (customer_id !== "c-2") open.add(`e-${id}`)
      seen.most = Math.max(seen.most, open.size)
      return accepted(id)
    },
    state: (id, times) => {
      if (times < 2) return state("ONGOING", "RUNNING")
      open.delete(id)
      return ends[id.slice("e-".length)] ?? completed
    },
  }
  return { script, seen }
}
describe("an account", () => {
  const rejecting = {
    "c-1 bank:website": blocked("INCORRECT_CREDENTIALS"),
    "c-1 bank:mobile": blocked("BLOCKED_USER"),
  }
  effect("is sent no third login until a release [promise 4 accounts] [promise 4 told]", function* () {
    const place = makePlace()
    const { script, seen } = source(rejecting)
    const end = yield* night({ place, tasks, script })
    expect(seen).toEqual({ most: 1, starts: ["c-2 bank:api", "c-1 bank:website", "c-1 bank:mobile"] })
    expect(end.verdict("c-1", "bank:api")).toBe(blockedUser)
    // A corrected login would not be sent either.
    expect(end.state.tasks.get(idOf("c-1", "bank:api"))?.settled?.fact.message).toMatch(
      /no login is sent, not even a corrected one, until `nightjar credentials release two`\. Correct the login first: after a release, the next run sends what the job has, even the login that was rejected last$/,
    )
    const changed: ReadonlyArray<NightTask> = [
      { customer: "c-1", engine: "bank:api", fingerprint: "five", account: "A" },
    ]
    const later = (on: typeof place) =>
      night({ place: on, tasks: changed, facts: [], script, misread: (of) => ({ ...of, tasks: new Map() }) })
    yield* later(place)
    expect(seen.starts.length).toBe(3)
    yield* Effect.provide(append({ _tag: "CredentialReleased", fingerprint: "one" }), place.ledger)
    yield* later(place)
    expect(seen.starts.slice(3)).toEqual(["c-1 bank:api"])
  })

  effect(
    "gets no login beside an execution that could not be stopped, although its time is up [promise 3 account opened]",
    function* () {
      const shared = ["one", "two"].map((fingerprint, index) => ({
        customer: `c-${index}`,
        fingerprint,
        account: "A",
      }))
      const end = yield* night({
        tasks: shared,
        rules: { max_wait: Duration.minutes(1) },
        script: { state: () => state("ONGOING", "RUNNING"), abort: () => "not_stoppable" },
      })
      expect([end.starts, ...end.verdicts("c-0", "c-1")]).toEqual([
        1,
        "unfinished NOT_STOPPABLE service",
        "unfinished ALREADY_EXECUTING service",
      ])
      const notBefore = (customer: string) =>
        end.state.tasks.get(idOf(customer))?.settled?.fact.not_before ?? 0
      // A rerun follows the open one at once, and waits with the other.
      expect(notBefore("c-0")).toBe(0)
      expect(notBefore("c-1")).toBeGreaterThanOrEqual(openLongestMs)
    },
  )

  effect(
    "gets its login once what another run left open is gone, and has no slot meanwhile [promise 3 left gone]",
    function* () {
      const left = (job: string): ReadonlyArray<LeftOpen> => {
        const of = { run_id: anId(`${job}.2026-11-20`), task_id: anId(`${job}.2026-11-20/c-9/bank`), job }
        const sent = { attempt: 1, probed: false, intended_at: 0, external_execution_id: "x", drained: false }
        const attempt = {
          ...sent,
          orphanSuspected: false,
          execution_id: anId("e-left"),
          ...keysOf("one", "A"),
        }
        const access = { customer_id: anId("c-9"), engine_reference: anId("bank") }
        const open = {
          isSeen: true,
          until: openLongestMs,
          service: undefined,
          fingerprint: "one",
          account: "A",
        }
        return [{ ...of, ...access, ...open, attempt }]
      }
      const lookedAt = (job: string) =>
        night({
          tasks: [
            { customer: "c-1", fingerprint: "one", account: "A" },
            { customer: "c-2", fingerprint: "two", account: "B" },
          ],
          elsewhere: left(job),
          rules: { limits: { max_in_flight: 1, per_engine: 1 } },
          script: {
            state: (id, times) => {
              if (id === "e-left") return times < 3 ? state("ONGOING", "RUNNING") : { _tag: "NotFound" }
              return times < 2 ? state("ONGOING", "RUNNING") : completed
            },
          },
        })
      const own = yield* lookedAt("job")
      expect(own.verdicts()).toEqual([succeeded, succeeded])
      const looks = own.timesOf("state", "e-left")
      const [other, waited] = own.timesOf("start")
      // Gone is what the service did not find for ten minutes.
      expect([other! < minute, waited! - looks[2]! >= 10 * minute, looks.length < 9]).toEqual([
        true,
        true,
        true,
      ])
      // Another job's execution may be there, although this one's secret does not show it.
      expect((yield* lookedAt("other")).verdicts()).toEqual([busy, succeeded])
    },
  )

  effect("that two channels open with other fields gets one login at a time [promise 4 begin]", function* () {
    const { script, seen } = source({})
    const channels: ReadonlyArray<NightTask> = [
      { customer: "c-1", engine: "bank:website", fingerprint: "one", account: "A", identity: ["user"] },
      { customer: "c-3", engine: "bank:mobile", fingerprint: "two", account: "A+", identity: ["user", "id"] },
    ]
    yield* night({ tasks: channels, script })
    expect(seen).toEqual({ most: 1, starts: ["c-1 bank:website", "c-3 bank:mobile"] })
  })
})
