/**
 * Bad nights that last hours, in virtual time: a start that is lost twice and a deadline that passes. The summary is the
 * one that is printed, and its command is followed as it stands.
 */
import { describe, expect, it, vi } from "vitest"
import { Duration, Effect } from "effect"
import { HttpClient, HttpClientError } from "effect/http"
import { ends } from "../../../src/service/Ends.ts"
import { selectTasks, tasksMeant, type Selection } from "../../../src/cli/commands/Run.ts"
import type { Assignment, Job } from "../../../src/jobs/Job.ts"
import { deliveredInNight } from "../../../src/ledger/WholeNight.ts"
import { subjectOf } from "../../../src/ledger/RunState.ts"
import { runNight, type NightResult } from "../../../src/run/Nightly.ts"
import { renderSummary } from "../../../src/report/RenderSummary.ts"
import { summarise } from "../../../src/report/Summary.ts"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { customer, jobOf, live, makeNights, options } from "../../harness/SmallNights.ts"
import { isOurs, suggested } from "./BadNight.ts"

// Long nights on a busy machine take their time, too.
vi.setConfig({ testTimeout: 300_000 })

/** 22:30 in Madrid. */
const startMs = Date.UTC(2026, 10, 21, 21, 30)

const job = (customers: Job["assignments"]): Job => ({
  ...jobOf(customers),
  name: "night",
  path: "night.yaml",
  timezone: "Europe/Madrid",
  night: { starts: "22:30", until: "07:00" },
})

const told = ({ state, night }: NightResult): string =>
  renderSummary(summarise(state, night), { width: Infinity, colour: false })

/** A command as `rerun` and `run` take it, without a process. */
const runsOf = (of: Job, command: string, { night }: NightResult) => {
  const [, name, target, ...flags] = command.split(" ")
  if (name === "run") return runNight(of, options)
  const state = night.find(({ started }) => started.run_id === target)
  if (name !== "rerun" || state === undefined) throw new Error(`no such command: ${command}`)
  const only = flags.filter((word) => word !== "--only")
  const selection: Selection = { failed: false, only, never: [], customers: [], engines: [], features: [] }
  const tasks = selectTasks(tasksMeant(night, state, true), selection, deliveredInNight(night))
  return runNight(of, { ...options, further: true, parent: target, only: new Set(tasks.map(subjectOf)) })
}

/** Lives the night and what its summaries suggest, half an hour after each; returns what was told. */
const liveAndFollow = Effect.fnUntraced(function* (of: Job) {
  const story: Array<string> = []
  let result = yield* runNight(of, options)
  const first = told(result)
  const summary = summarise(result.state, result.night)
  story.push(`nightjar run night.yaml → ${result.exit_code}`)
  for (let step = 0; step < 4; step += 1) {
    const command = suggested(told(result))
    if (command === undefined) break
    yield* Effect.sleep("30 minutes")
    result = yield* runsOf(of, command, result)
    story.push(`${command} → ${result.exit_code}`)
  }
  const { executions, ruleBreaks } = yield* Effect.flatMap(Sandbox, ({ truth }) => truth)
  return {
    story,
    first,
    summary,
    left: executions.filter((one) => isOurs(one) && one.deleted_at === undefined).length,
    broken: ruleBreaks.map(({ rule }) => rule),
    started: executions.map(({ started_at }) => started_at),
  }
})

/** Without tokens. */
const plain = (...of: Parameters<typeof customer>): Assignment => {
  const one = customer(...of)
  return one.login._tag === "Parameters" ? { ...one, login: { ...one.login, tokenized_access: false } } : one
}

/** The answers to the first starts are cut off, and nothing was created. */
const lostStarts = (count: number) => {
  let lost = 0
  return (client: HttpClient.HttpClient) =>
    HttpClient.transform(client, (answer, request) => {
      if (request.method !== "POST" || !request.url.endsWith("/parametrized") || lost === count) return answer
      lost += 1
      return Effect.fail(
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.TransportError({
            request,
            description: "reset",
            cause: Object.assign(new Error("reset"), { code: "ECONNRESET", syscall: "read" }),
          }),
        }),
      )
    })
}

/** Which records have no schema is not what these tests are about. */
const isOfTheNight = (line: string): boolean => !line.includes("[records-without-schema]")

const seed = 1

describe("a night of hours", () => {
  it("whose start was lost twice suggests no rerun that would send nothing", () => {
    const of: Job = {
      ...job([plain("lost", "queue-60+run-60+records-3")]),
      execution: { ...jobOf([]).execution, max_wait: Duration.hours(1) },
    }
    const { story, first, left, broken } = live(
      makeNights({}, { startMs, seed, through: lostStarts(2) }),
      liveAndFollow(of),
    )
    expect(first).toContain("\n\nWhat did not finish waits for the next nightly run: ")
    expect([story, left, broken]).toEqual([["nightjar run night.yaml → 4"], 0, []])
  })

  it("whose deadline passes with tasks running and waiting", () => {
    const customers = [
      plain("quick", "queue-60+run-60"),
      plain("running", "queue-40000+run-60"),
      plain("waiting", "run-60+foreign-40000"),
      plain("queued-a", "queue-20000+run-60"),
      plain("queued-b", "queue-20000+run-90"),
      plain("queued-c", "queue-20000+run-30"),
      plain("queued-d", "queue-20000+run-20"),
    ]
    const of: Job = {
      ...job(customers),
      execution: { ...jobOf([]).execution, max_wait: Duration.hours(20) },
      concurrency: { max_in_flight: 3, per_engine: 3 },
    }
    const { story, first, left, broken } = live(makeNights({}, { startMs, seed }), liveAndFollow(of))
    const rerun = "nightjar rerun night.2026-11-21 --only CLIENT_CANCELLED --only DEADLINE_REACHED"
    expect([story, left, broken]).toEqual([["nightjar run night.yaml → 4", `${rerun} → 0`], 0, []])
    const { CLIENT_CANCELLED: cancelled, DEADLINE_REACHED: late } = ends
    expect(first.split("\n").filter((line) => isOfTheNight(line) && !line.includes("counted"))).toEqual([
      "night.2026-11-21: took 8 h 30 min, exit code 4",
      "7 tasks: 3 succeeded, 4 unfinished",
      "",
      "Left for the next run (4 tasks)",
      "   3  CLIENT_CANCELLED (unfinished)",
      `      ${["running", "queued-c", "queued-d"].map((id) => `${id} sandbox-bank:website`).join(", ")}`,
      `      ${cancelled.means} ${cancelled.next}`,
      "   1  DEADLINE_REACHED (unfinished)",
      "      waiting sandbox-bank:website",
      `      ${late.means} ${late.next}`,
      "",
      "Executions: 6 deleted at the service.",
      "Exit code 4: something is left that a rerun can finish.",
      "",
      "This command collects what is still at the service and runs again what did not finish:",
      `  ${rerun}`,
    ])
  })
})
