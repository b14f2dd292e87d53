/** What comes next for a task: in its process, and after it was cut off, anywhere. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import {
  attemptsToReadAgain,
  cutVerdict,
  next,
  startsAt,
  triesOf,
  unseenOf,
  verdictLeft,
} from "../../src/task/Next.ts"
import type { Mode } from "../../src/task/Next.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { courseOf, type Waits } from "../../src/ledger/RunState.ts"
import { own } from "../../src/service/Ends.ts"
import { answered, closed, drained, fold, intended, lives, observed, run_id, settled } from "./Lives.ts"
import { task_id } from "./Lives.ts"
import { anId } from "../harness/Id.ts"

const taskOf = (facts: ReadonlyArray<Fact>) => fold(facts).tasks.get(task_id)
const resumed = (facts: ReadonlyArray<Fact>, mode: Mode = "night") => next(taskOf(facts), mode)
const ids = { run_id, task_id, attempt: 1, execution_id: anId("e-1") }
const ended = [intended(1), answered(1, "accepted"), closed(1, "TEMPORARY_ERROR", "OUT_OF_SERVICE")]
const told = (facts: ReadonlyArray<Fact>, mode: Mode = "night") => {
  const to = resumed(facts, mode)
  switch (to._tag) {
    case "Start":
      return `${to.probe ? "probe" : "start"} ${to.attempt}`
    case "Follow":
      return `follow ${to.last.execution_id}`
    case "Read":
      return `read ${to.last.closed.fact.execution_id}`
    case "Settle":
      return to.verdict.reason
    case "Refuse":
      return `refused: ${to.status_reason}`
    default:
      return to._tag
  }
}

it("a task that was cut off anywhere in its life never repeats a start that was answered, probes a lost one once, and follows what is open", () => {
  fc.assert(
    fc.property(lives, fc.nat(), fc.constantFrom<Mode>("night", "collect"), (life, at, mode) => {
      const known = life.slice(0, at % (life.length + 1))
      const task = taskOf(known)
      const to = resumed(known, mode)
      const sent = (attempt: number) =>
        known.filter((fact) => "attempt" in fact && fact.attempt === attempt && fact._tag === "StartIntended")
      const last = task?.attempts.at(-1)
      if (to._tag === "Start") {
        const answers = known.flatMap((fact) =>
          fact._tag === "StartAnswered" && fact.attempt === to.attempt ? [fact.answer] : [],
        )
        // What was accepted, adopted or refused is never sent again.
        expect(answers.filter((answer) => ["accepted", "adopted", "refused"].includes(answer))).toEqual([])
        const newest = known.findLast((fact) => fact._tag === "StartIntended" && fact.attempt === to.attempt)
        const isUnanswered = newest !== undefined && known.at(-1) === newest
        const wasLost = answers.includes("lost")
        // It is a probe exactly where an earlier request may have had an effect.
        expect(to.probe).toBe(isUnanswered || wasLost)
        // A probe that was lost, or whose answer is not known, is not sent a second time.
        if (to.probe && isUnanswered) expect(newest?._tag === "StartIntended" && newest.probe).toBe(false)
        expect(answers.filter((answer) => answer === "lost").length).toBeLessThanOrEqual(1)
        // A further attempt begins only once the one before is closed.
        for (const earlier of task?.attempts ?? [])
          if (earlier.attempt < to.attempt) expect(earlier.closed).toBeDefined()
        if (sent(to.attempt).length === 0) expect(mode).toBe("night")
      }
      // An execution of ours that is open is followed, whatever else happened.
      if (last?.execution_id !== undefined && last.closed === undefined)
        expect(to).toMatchObject({ _tag: "Follow", last: { execution_id: last.execution_id } })
      // An end without a verdict is finished.
      if (last?.closed !== undefined && task?.settled === undefined) expect(to._tag).toBe("Read")
    }),
    { numRuns: 500 },
  )
})

describe("resuming", () => {
  it("starts nothing again, and holds the login, if what may run is not looked for [promise 3 unseen]", () => {
    const sent = { ...intended(1), max_wait: 3_600_000 } as Fact
    const over = (how: "taken" | "unusable" | "lost") => [
      sent,
      answered(1, how),
      settled("failed", "NOT_OURS"),
    ]
    const answers = ["taken", "unusable", "lost"] as const
    expect(answers.map((how) => told(over(how)))).toEqual(["Done", "Done", "Done"])
    // Its customer and its login stay held.
    const held = (facts: ReadonlyArray<Fact>, now: number) => unseenOf(taskOf(facts), now).length
    expect(answers.map((how) => held(over(how), 4_000))).toEqual([1, 1, 1])
    const strange: Fact = { _tag: "AttemptDisowned", ...ids }
    expect(held([intended(1), answered(1, "accepted"), strange], 4_000)).toBe(1)
    expect([held(over("taken"), 3_700_000), held([intended(1)], 4_000), held([], 0)]).toEqual([0, 0, 0])
  })

  it("waits no longer than it was said, even if the clock was set back, nor less than was asked, a day at most by an earlier run [promise 9 waits] [promise 10 a day]", () => {
    const waits = { until: 9_000, at: 4_000 }
    const task = { ...taskOf([])!, waits }
    const due = (now: number, asked?: Waits) => startsAt({ asked }, task, now)
    expect([due(5_000), due(1_000), due(9_000), due(5_000, { until: 9_500, at: 4_500 })]).toEqual([
      9_000, 6_000, 0, 9_500,
    ])
    const [hour, day] = [3_600_000, 24 * 3_600_000]
    const month = { until: 30 * day, at: 0 }
    expect([hour, day, 2 * day].map((now) => startsAt({ asked: month }, undefined, now))).toEqual([day, 0, 0])
  })

  it("counts the tries that were made since the last verdict, even if the next process reads the last one", () => {
    const tries = (facts: ReadonlyArray<Fact>) => triesOf(fold(facts).tasks.get(task_id)!)
    const over = [...ended, settled("unfinished", "OUT_OF_SERVICE")]
    expect([
      tries(ended),
      tries([...ended, intended(2), answered(2, "accepted"), closed(2, "TEMPORARY_ERROR")]),
      tries([...ended, intended(2), answered(2, "accepted")]),
      tries([...ended, intended(2), answered(2, "not_created")]),
      tries(over),
      tries([...over, intended(2), answered(2, "accepted")]),
      tries([intended(1), answered(1, "foreign"), settled("unfinished", "ALREADY_EXECUTING")]),
      // An end that came after the last verdict counts for the next one.
      tries([intended(1), answered(1, "accepted"), settled("unfinished", "NOT_STOPPABLE"), closed(1)]),
      // A start with a token that the service refused, and one with the parameters behind it.
      tries([intended(1), answered(1, "refused"), intended(2), answered(2, "accepted"), closed(2, "FAILED")]),
    ]).toEqual([1, 2, 2, 1, 0, 1, 0, 1, 1])
    expect([told(over), told(over, "collect"), next(undefined, "night")]).toEqual([
      "start 2",
      "Done",
      { _tag: "Start", attempt: 1, probe: false, byParameters: false },
    ])
  })

  it("waits for its next start until the time that was said, without reading its last end again", () => {
    const waits: Fact = { _tag: "TaskWaits", run_id, task_id, reason: "x", until: "2026-11-21T02:00:00Z" }
    const waiting = [...ended, drained(1), waits]
    expect([told(waiting), told(waiting, "collect")]).toEqual(["start 2", "OUT_OF_SERVICE"])
    // The promise of a further start replaces a verdict, and is over with that start.
    expect(told([...ended, settled("unfinished", "RESULTS_PARTIAL"), drained(1), waits])).toBe("start 2")
    expect(told([...waiting, intended(2), answered(2, "accepted"), closed(2)])).toBe("read e-2")
    // One that was only put off keeps its attempt, and a verdict before it.
    expect(told([intended(1), answered(1, "foreign"), waits])).toBe("start 1")
    const refused = [intended(1), answered(1, "refused", "BAD_PROXY_CONFIGURATION")]
    expect(told([...refused, settled("unfinished", "BAD_PROXY_CONFIGURATION"), waits])).toBe("start 2")
  })

  it("is left with what was last found if nothing more can be done for it", () => {
    const away: Fact = {
      ...(answered(1, "lost") as Extract<Fact, { _tag: "StartAnswered" }>),
      http_status: 503,
    }
    const left = (...facts: ReadonlyArray<Fact>) => verdictLeft(taskOf(facts))?.reason
    expect([
      left(),
      left(intended(1), answered(1, "not_created")),
      left(intended(1)),
      left(intended(1), answered(1, "lost")),
      left(intended(1), away),
      left(...ended, intended(2), answered(2, "foreign")),
      left(...ended, settled("unfinished", "OUT_OF_SERVICE")),
    ]).toEqual([
      undefined,
      undefined,
      "START_UNKNOWN",
      "START_UNKNOWN",
      "ENGINE_UNAVAILABLE",
      "OUT_OF_SERVICE",
      undefined,
    ])
  })

  it("is unproven if its login holds the account, wherever its process ended [promise 4 third] [promise 4 gone third]", () => {
    const third = (probe = false): Fact => ({ ...intended(1, probe), holds_account: true }) as Fact
    const [lost, none] = [answered(1, "lost"), answered(1, "not_created")]
    const probed = [intended(1), lost, third(true)]
    const gone = { ...closed(1, "UNKNOWN", "EXECUTION_GONE") } as Extract<Fact, { _tag: "AttemptClosed" }>
    const { landed: _, ...forgotten } = gone
    const left = (...facts: ReadonlyArray<Fact>) => verdictLeft(taskOf(facts))
    expect(left(third(), lost)).toEqual(own("LOGIN_UNPROVEN"))
    expect([
      left(third())?.reason,
      told([third(), lost], "collect"),
      cutVerdict(taskOf([third(), lost])).reason,
      told(probed),
      told([...probed, lost]),
      left(third(), answered(1, "accepted"), forgotten)?.reason,
    ]).toEqual(Array.from({ length: 6 }, () => "LOGIN_UNPROVEN"))
    // Its probe is still looked for, and one that created nothing was no login.
    expect([told([third(), lost]), left(...probed, none)?.reason]).toEqual(["probe 1", "START_UNKNOWN"])
    // An answer to the cut request may still come: its execution is not forgotten.
    expect(cutVerdict(taskOf([third()])).reason).toBe("SERVICE_UNREACHABLE")
    expect(told([third(), lost, settled("failed", "LOGIN_UNPROVEN")])).toBe("Done")
    const accepted = { ...forgotten, authentication_status: "AUTH_OK" } as Fact
    expect(left(third(), answered(1, "accepted"), accepted)?.reason).toBe("EXECUTION_GONE")
  })

  it("is cut off with what its facts show", () => {
    const cut = (...facts: ReadonlyArray<Fact>) => cutVerdict(taskOf(facts)).reason
    const lost = [intended(1), answered(1, "lost")]
    const open = [intended(1), answered(1, "accepted")]
    expect([
      cutVerdict(undefined).reason,
      cut(),
      cut(intended(1)),
      cut(...lost),
      cut(...lost, intended(1, true)),
      cut(...open),
      cut(...open, closed(1)),
    ]).toEqual([
      "DEADLINE_REACHED",
      "DEADLINE_REACHED",
      "SERVICE_UNREACHABLE",
      "START_UNKNOWN",
      "START_UNKNOWN",
      "SERVICE_UNREACHABLE",
      "RESULTS_PARTIAL",
    ])
  })

  it("reads again only what is closed, kept, not proved and not about to be deleted", () => {
    const kept = { ...drained(1), _tag: "AttemptKept", reason: "RECORDS_SHORT", families: [] } as Fact
    const open = [intended(1), answered(1, "accepted")]
    const verdict = settled("failed", "RECORDS_SHORT")
    const { attempt: _, ...of } = ids
    const deletion: Fact = { _tag: "DeleteIntended", ...of, landed_sha256: "ab" }
    const read = (...facts: ReadonlyArray<Fact>) =>
      attemptsToReadAgain(taskOf(facts)).map(({ last }) => last.execution_id)
    expect([
      read(...open, closed(1), kept, verdict),
      read(...open, closed(1), kept),
      read(...open, kept, verdict),
      read(...open, closed(1), verdict),
      read(...open, closed(1), kept, drained(1), verdict),
      read(...open, closed(1), kept, verdict, deletion),
      attemptsToReadAgain(undefined),
    ]).toEqual([["e-1"], [], [], [], [], [], []])
  })

  it("takes a task for ended without its documents only if it is over, with the end of that execution", () => {
    const isEnd = (code: string, reason: string, ...verdict: Parameters<typeof settled>) => {
      const kept = { ...drained(1), _tag: "AttemptKept", reason: "DOCUMENTS_SHORT", families: [] } as Fact
      const facts = [intended(1), answered(1, "accepted"), closed(1, code, reason), kept, settled(...verdict)]
      return attemptsToReadAgain(taskOf(facts)).map((one) => one.isEnd)
    }
    expect([
      isEnd("COMPLETED", "COMPLETED", "succeeded", "COMPLETED"),
      isEnd("COMPLETED", "COMPLETED", "skipped", "NOT_IN_JOB"),
      isEnd("TEMPORARY_ERROR", "OUT_OF_SERVICE", "unfinished", "OUT_OF_SERVICE"),
    ]).toEqual([[true], [false], [false]])
  })

  it("starts unfinished tasks again, and nothing that is settled for good", () => {
    for (const outcome of ["succeeded", "partial", "failed", "skipped"] as const)
      expect(told([...ended, settled("unfinished", "OUT_OF_SERVICE"), settled(outcome, "FAILED")])).toBe(
        "Done",
      )
    expect(told([settled("unfinished", "ENGINE_UNAVAILABLE")])).toBe("start 1")
    expect(told([settled("unfinished", "START_UNKNOWN"), intended(1)])).toBe("probe 1")
  })

  it("sends the login of a forgotten execution once more in a run only if it was accepted", () => {
    const goneAs = (authentication_status: string | undefined) => [
      intended(1),
      answered(1, "accepted"),
      { ...closed(1, "UNKNOWN", "EXECUTION_GONE"), authentication_status } as Fact,
      settled("unfinished", "EXECUTION_GONE"),
    ]
    const tellings = [undefined, "not-performed", "AUTH_OK"].map((said) => told(goneAs(said)))
    expect(tellings).toEqual(["Done", "Done", "start 2"])
  })

  it("sends a probe that was never sent, and none after one that was", () => {
    const unknown = settled("unfinished", "START_UNKNOWN")
    const owed = [intended(1), answered(1, "lost"), unknown]
    const lost = [intended(1), answered(1, "lost"), intended(1, true), answered(1, "lost"), unknown]
    const notCreated = [...lost.slice(0, 3), answered(1, "not_created"), unknown]
    expect([told(owed), told(lost), told(notCreated)]).toEqual(["probe 1", "Done", "probe 1"])
    expect(told([...lost.slice(0, 3), unknown])).toBe("Done")
  })

  it("continues to read partial results instead of starting again", () => {
    const begun = [intended(1), answered(1, "accepted"), closed(1)]
    const partial = [...begun, settled("unfinished", "RESULTS_PARTIAL")]
    expect([told(partial), told(partial, "collect")]).toEqual(["read e-1", "read e-1"])
  })

  it("collects what an older run left in flight, and starts nothing for it", () => {
    expect([
      told([], "collect"),
      told([intended(1), answered(1, "foreign")], "collect"),
      told([intended(1)], "collect"),
      told([intended(1), answered(1, "accepted")], "collect"),
      told([settled("unfinished", "NIGHT_OVER")], "collect"),
      told(
        [intended(1), answered(1, "refused"), settled("unfinished", "BAD_PROXY_CONFIGURATION")],
        "collect",
      ),
    ]).toEqual(["NIGHT_OVER", "NIGHT_OVER", "START_UNKNOWN", "follow e-1", "Done", "Done"])
    expect(next(undefined, "collect")).toEqual({ _tag: "Done" })
  })

  it("continues with the parameters if the service refused a start with a token, but not in a collected run", () => {
    const withToken = { ...intended(1), token_id: "t-1" } as Fact
    const refusedAs = (http_status: number): Fact => ({
      ...(answered(1, "refused", "BAD_CONFIGURATIONS") as Extract<Fact, { _tag: "StartAnswered" }>),
      http_status,
    })
    const refused = "refused: BAD_CONFIGURATIONS"
    expect([
      told([withToken, refusedAs(405)]),
      told([withToken, refusedAs(404)]),
      told([intended(1), refusedAs(405)]),
      told([withToken, refusedAs(405)], "collect"),
      told([withToken, answered(1, "lost"), { ...withToken, probe: true } as Fact, refusedAs(405)]),
    ]).toEqual(["start 2", refused, refused, refused, refused])
  })
})

describe("every state of a task, after every fact", () => {
  const waits: Fact = { _tag: "TaskWaits", run_id, task_id, reason: "x", until: "2026-11-21T02:00:00Z" }
  const open = [intended(1), answered(1, "accepted")]
  const over = [...open, closed(1), drained(1)]
  const lost = [intended(1), answered(1, "lost")]
  const states: ReadonlyArray<readonly [string, ReadonlyArray<Fact>]> = [
    ["not begun", []],
    ["sent", [intended(1)]],
    ["lost", lost],
    ["probed", [...lost, intended(1, true)]],
    ["probed in vain", [...lost, intended(1, true), answered(1, "not_created")]],
    ["not created", [intended(1), answered(1, "not_created")]],
    ["refused", [intended(1), answered(1, "refused", "T10N_FORBIDDEN")]],
    ["refused for no reason", [intended(1), answered(1, "refused")]],
    ["taken", [intended(1), answered(1, "taken")]],
    ["unusable", [intended(1), answered(1, "unusable")]],
    ["open", open],
    ["over", over],
    ["to start again", [...over, waits]],
    ["succeeded", [...over, settled("succeeded", "COMPLETED")]],
    ["given up", [...open, settled("unfinished", "NOT_STOPPABLE")]],
  ]
  const created = ["accepted", "adopted", "taken", "unusable", "lost"] as const
  const answers = [...created, "refused", "not_created", "foreign"] as const
  const facts: ReadonlyArray<readonly [string, Fact]> = [
    ["again", intended(1)],
    ["probe", intended(1, true)],
    ["next", intended(2)],
    ...answers.map((one) => [one, answered(1, one, "T10N_FORBIDDEN")] as const),
    ["observed", observed(1)],
    ["abort", { _tag: "AbortIntended", ...ids, why: "max_wait" }],
    ["disowned", { _tag: "AttemptDisowned", ...ids }],
    ["closed", closed(1)],
    ["drained", drained(1)],
    ["kept", { _tag: "AttemptKept", ...ids, reason: "RECORDS_SHORT", families: [], message: "" }],
    ["waits", waits],
    ["settled", settled("unfinished", "SERVICE_UNREACHABLE")],
  ]
  const courseAnd = (all: ReadonlyArray<Fact>) => {
    const { attempts, waits: until } = fold(all).tasks.get(task_id)!
    return `${courseOf({ attempts, ...(until === undefined ? {} : { waits: until }) })._tag} ${told(all)}`
  }

  const begun = { probe: "Starting START_UNKNOWN", next: "Starting probe 2", closed: "Reading read e-1" }
  const answered_ = {
    next: "Starting probe 2",
    accepted: "Running follow e-1",
    adopted: "Running follow e-1",
    refused: "Waiting refused: T10N_FORBIDDEN",
    taken: "Unknown NOT_OURS",
    unusable: "Unknown Unusable",
    closed: "Reading read e-1",
  }

  /** What is not named changes nothing. Facts of a request that was never sent, or was answered, are among it. */
  it.each<readonly [string, string, Readonly<Record<string, string>>]>([
    [
      "not begun",
      "Planned start 1",
      { again: "Starting probe 1", probe: "Starting probe 1", next: begun.next },
    ],
    [
      "sent",
      "Starting probe 1",
      {
        ...answered_,
        probe: begun.probe,
        not_created: "Waiting start 1",
        foreign: "Waiting start 1",
        lost: "Unknown probe 1",
      },
    ],
    ["lost", "Unknown probe 1", { ...begun, again: "Starting probe 1" }],
    [
      "probed",
      "Starting START_UNKNOWN",
      {
        ...answered_,
        not_created: "Unknown probe 1",
        foreign: "Unknown probe 1",
        lost: "Unknown START_UNKNOWN",
        settled: "Starting Done",
      },
    ],
    // It remembers that a probe was sent, whatever was sent after it.
    ["probed in vain", "Unknown probe 1", { ...begun, again: begun.probe }],
    ["not created", "Waiting start 1", { ...begun, again: "Starting probe 1" }],
    [
      "refused",
      "Waiting refused: T10N_FORBIDDEN",
      { ...begun, again: "Starting probe 1", settled: "Waiting start 2" },
    ],
    [
      "refused for no reason",
      "Waiting refused: UNEXPECTED_ANSWER",
      { ...begun, again: "Starting probe 1", settled: "Waiting start 2" },
    ],
    ["taken", "Unknown NOT_OURS", { ...begun, again: "Starting probe 1", settled: "Unknown Done" }],
    ["unusable", "Unknown Unusable", { ...begun, again: "Starting probe 1", settled: "Unknown Done" }],
    ["open", "Running follow e-1", { next: begun.next, disowned: "Running NOT_OURS", closed: begun.closed }],
    ["over", begun.closed, { next: begun.next, waits: "Waiting start 2", settled: "Reading start 2" }],
    [
      "to start again",
      "Waiting start 2",
      { again: begun.closed, probe: begun.closed, next: begun.next, settled: "Reading start 2" },
    ],
    [
      "succeeded",
      "Reading Done",
      { ...begun, again: begun.closed, probe: begun.closed, settled: "Reading start 2" },
    ],
    ["given up", "Running follow e-1", { next: begun.next, disowned: "Running Done", closed: begun.closed }],
  ])("that is %s: %s", (state, at, expected) => {
    const before = states.find(([name]) => name === state)?.[1] ?? []
    const after = facts.map(([name, fact]) => [name, courseAnd([...before, fact])] as const)
    expect([
      courseAnd(before),
      Object.fromEntries(after.filter(([, one]) => one !== courseAnd(before))),
    ]).toEqual([at, expected])
  })
})
