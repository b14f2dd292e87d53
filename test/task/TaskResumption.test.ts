/** Where a task goes on after its process was cut off, anywhere. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { resumeAttempt } from "../../src/task/Attempt.ts"
import { attemptsToReadAgain, resumeTask } from "../../src/task/TaskResumption.ts"
import type { Mode } from "../../src/task/TaskResumption.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import {
  answered,
  closed,
  drained,
  fold,
  intended,
  lives,
  observed,
  run_id,
  settled,
  task_id,
} from "./Lives.ts"
import { anId } from "../harness/Id.ts"

const taskOf = (facts: ReadonlyArray<Fact>) => fold(facts).tasks.get(task_id)
const resumed = (facts: ReadonlyArray<Fact>, mode: Mode = "night") => resumeTask(taskOf(facts), mode)
const told = (facts: ReadonlyArray<Fact>, mode: Mode = "night") => {
  const to = resumed(facts, mode)
  switch (to._tag) {
    case "Start":
      return `${to.probe ? "probe" : "start"} ${to.attempt}`
    case "Follow":
      return `follow ${to.execution_id}`
    case "Finish":
      return `finish ${to.closed.execution_id}`
    default:
      return to._tag
  }
}

describe("a task that was cut off anywhere in its life", () => {
  it("never repeats a start that was answered, probes a lost one once, and follows what is open", () => {
    fc.assert(
      fc.property(lives, fc.nat(), fc.constantFrom<Mode>("night", "collect"), (life, at, mode) => {
        const known = life.slice(0, at % (life.length + 1))
        const task = taskOf(known)
        const to = resumed(known, mode)
        const sent = (attempt: number) =>
          known.filter(
            (fact) => "attempt" in fact && fact.attempt === attempt && fact._tag === "StartIntended",
          )
        const last = task?.attempts.at(-1)
        if (to._tag === "Start") {
          const answers = known.flatMap((fact) =>
            fact._tag === "StartAnswered" && fact.attempt === to.attempt ? [fact.answer] : [],
          )
          // What was accepted, adopted or refused is never sent again.
          expect(answers.filter((answer) => ["accepted", "adopted", "refused"].includes(answer))).toEqual([])
          const newest = known.findLast(
            (fact) => fact._tag === "StartIntended" && fact.attempt === to.attempt,
          )
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
          expect(to.attemptsMade).toBeLessThanOrEqual(task?.attempts.length ?? 0)
          if (sent(to.attempt).length === 0) expect(mode).toBe("night")
        }
        // An execution of ours that is open is followed, whatever else happened.
        if (last?.execution_id !== undefined && last.closed === undefined)
          expect(to).toMatchObject({ _tag: "Follow", execution_id: last.execution_id })
        // An end without a verdict is finished.
        if (last?.closed !== undefined && task?.settled === undefined) expect(to._tag).toBe("Finish")
      }),
      { numRuns: 2_000 },
    )
  })
})

describe("resuming", () => {
  it("continues an attempt exactly where its facts end", () => {
    const lost = [intended(1), answered(1, "lost")]
    expect([
      told([]),
      told([intended(1)]),
      told([intended(1), answered(1, "not_created")]),
      told([intended(1), answered(1, "foreign")]),
      told(lost),
      told([...lost, intended(1, true)]),
      told([...lost, intended(1, true), answered(1, "not_created")]),
      told([...lost, intended(1, true), answered(1, "foreign")]),
      told([...lost, intended(1, true), answered(1, "lost")]),
      told([...lost, intended(1, true), answered(1, "adopted")]),
      told([intended(1), answered(1, "refused", "T10N_FORBIDDEN")]),
      told([intended(1), answered(1, "accepted"), observed(1)]),
      told([intended(1), answered(1, "accepted"), closed(1)]),
      told([intended(1), answered(1, "accepted"), closed(1), drained(1)]),
    ]).toEqual([
      "start 1",
      "probe 1",
      "start 1",
      "start 1",
      "probe 1",
      "StartUnknown",
      "probe 1",
      "probe 1",
      "StartUnknown",
      "follow e-1",
      "Refused",
      "follow e-1",
      "finish e-1",
      "finish e-1",
    ])
  })

  it("starts a task that is not in the ledger yet, but not in a collected run", () => {
    const first = { _tag: "Start", attempt: 1, probe: false, attemptsMade: 0 }
    expect([resumeTask(undefined, "night"), resumeTask(undefined, "collect"), resumed([])]).toEqual([
      first,
      { _tag: "Nothing" },
      first,
    ])
  })

  it("starts nothing again if the answer could not be used or named another attempt's execution", () => {
    const of = (answer: "taken" | "unusable") => [intended(1), answered(1, answer)]
    expect(resumed(of("taken"))).toEqual({ _tag: "NotOurs" })
    expect(resumed(of("unusable"))).toEqual({
      _tag: "Unusable",
      attempt: taskOf(of("unusable"))?.attempts[0],
    })
  })

  it("counts the tries that were made, even if the next process finishes the last one", () => {
    const one = [intended(1), answered(1, "accepted"), closed(1, "TEMPORARY_ERROR")]
    const two = [...one, intended(2), answered(2, "accepted"), closed(2, "TEMPORARY_ERROR")]
    expect([resumed(one), resumed(two)]).toMatchObject([
      { _tag: "Finish", attemptsMade: 1 },
      { _tag: "Finish", attemptsMade: 2 },
    ])
    const over = [...one, settled("unfinished", "NETWORK_ERROR")]
    expect([resumed(over, "night"), resumed(over, "collect")]).toEqual([
      { _tag: "Start", attempt: 2, probe: false, attemptsMade: 0 },
      { _tag: "Nothing" },
    ])
  })

  it("reads again only what is closed, kept, not proved and not about to be deleted", () => {
    const kept = { ...drained(1), _tag: "AttemptKept", reason: "RECORDS_SHORT", families: [] } as Fact
    const open = [intended(1), answered(1, "accepted")]
    const verdict = settled("failed", "RECORDS_SHORT")
    const deletion: Fact = {
      _tag: "DeleteIntended",
      run_id,
      task_id,
      execution_id: anId("e-1"),
      landed_sha256: "ab",
    }
    const read = (...facts: ReadonlyArray<Fact>) => attemptsToReadAgain(taskOf(facts)).length
    expect([
      read(...open, closed(1), kept, verdict),
      read(...open, closed(1), kept),
      read(...open, kept, verdict),
      read(...open, closed(1), verdict),
      read(...open, closed(1), kept, drained(1), verdict),
      read(...open, closed(1), kept, verdict, deletion),
      attemptsToReadAgain(undefined).length,
    ]).toEqual([1, 0, 0, 0, 0, 0, 0])
  })

  it("probes a start that was sent again and whose answer is not known", () => {
    expect(told([intended(1), answered(1, "not_created"), intended(1)])).toBe("probe 1")
  })

  it("remembers that a probe was sent, whatever was sent after it", () => {
    const probed = [intended(1), answered(1, "lost"), intended(1, true), answered(1, "not_created")]
    expect([told([...probed, intended(1)]), taskOf([...probed, intended(1)])?.attempts[0]?.probed]).toEqual([
      "StartUnknown",
      true,
    ])
  })

  it("starts unfinished tasks again, and nothing that is settled for good", () => {
    const temporary = [
      intended(1),
      answered(1, "accepted"),
      closed(1, "TEMPORARY_ERROR", "OUT_OF_SERVICE"),
      settled("unfinished", "OUT_OF_SERVICE"),
    ]
    expect(resumed(temporary)).toEqual({ _tag: "Start", attempt: 2, probe: false, attemptsMade: 0 })
    for (const outcome of ["succeeded", "partial", "failed", "skipped"] as const)
      expect(resumed([...temporary, settled(outcome, "FAILED")])).toEqual({ _tag: "Nothing" })
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
    expect(tellings).toEqual(["Nothing", "Nothing", "start 2"])
  })

  it("sends a probe that was never sent, and none after one that was", () => {
    const unknown = settled("unfinished", "START_UNKNOWN")
    const owed = [intended(1), answered(1, "lost"), unknown]
    const lost = [intended(1), answered(1, "lost"), intended(1, true), answered(1, "lost"), unknown]
    const notCreated = [...lost.slice(0, 3), answered(1, "not_created"), unknown]
    expect([told(owed), told(lost), told(notCreated)]).toEqual(["probe 1", "Nothing", "probe 1"])
    expect(told([...lost.slice(0, 3), unknown])).toBe("Nothing")
  })

  it("continues to read partial results instead of starting again", () => {
    const partial = [
      intended(1),
      answered(1, "accepted"),
      closed(1),
      settled("unfinished", "RESULTS_PARTIAL"),
    ]
    expect([told(partial), told(partial, "collect")]).toEqual(["finish e-1", "finish e-1"])
  })

  it("finishes an execution that was given up and closed later, before any further start", () => {
    const givenUp = [intended(1), answered(1, "accepted"), settled("unfinished", "NOT_STOPPABLE")]
    expect(told(givenUp)).toBe("follow e-1")
    expect(told([...givenUp, closed(1)])).toBe("finish e-1")
    expect(told([...givenUp, closed(1)], "collect")).toBe("finish e-1")
  })

  it("repeats no start that the service itself could not accept, but makes a new one", () => {
    const refused = [intended(1), answered(1, "refused", "BAD_PROXY_CONFIGURATION")]
    expect(told(refused)).toBe("Refused")
    const verdict = settled("unfinished", "BAD_PROXY_CONFIGURATION")
    expect([told([...refused, verdict]), told([...refused, verdict], "collect")]).toEqual([
      "start 2",
      "Nothing",
    ])
  })

  it("collects what an older run left in flight, and starts nothing for it", () => {
    expect([
      told([], "collect"),
      told([intended(1), answered(1, "foreign")], "collect"),
      told([intended(1)], "collect"),
      told([intended(1), answered(1, "accepted")], "collect"),
      told([settled("unfinished", "NIGHT_OVER")], "collect"),
    ]).toEqual(["NightOver", "NightOver", "StartUnknown", "follow e-1", "Nothing"])
    expect(resumeTask(undefined, "collect")).toEqual({ _tag: "Nothing" })
  })

  it("continues with the parameters if the service refused a start with a token, but not in a collected run", () => {
    const withToken = { ...intended(1), token_id: "t-1" } as Fact
    const refusedAs = (http_status: number): Fact => ({
      ...(answered(1, "refused", "BAD_CONFIGURATIONS") as Extract<Fact, { _tag: "StartAnswered" }>),
      http_status,
    })
    expect([
      told([withToken, refusedAs(405)]),
      told([withToken, refusedAs(404)]),
      told([intended(1), refusedAs(405)]),
      told([withToken, refusedAs(405)], "collect"),
      told([withToken, answered(1, "lost"), { ...withToken, probe: true } as Fact, refusedAs(405)]),
    ]).toEqual(["start 2", "Refused", "Refused", "Refused", "Refused"])
  })

  it("counts the executions since the last verdict: a resumed run gives a task new attempts", () => {
    const made = (facts: ReadonlyArray<Fact>) => {
      const to = resumed(facts)
      return "attemptsMade" in to ? to.attemptsMade : undefined
    }
    const one = [intended(1), answered(1, "accepted"), closed(1, "TEMPORARY_ERROR", "OUT_OF_SERVICE")]
    expect([
      made([...one, intended(2), answered(2, "accepted")]),
      made([...one, intended(2), answered(2, "not_created")]),
      made([...one, settled("unfinished", "OUT_OF_SERVICE"), intended(2), answered(2, "accepted")]),
      made([intended(1), answered(1, "foreign"), settled("unfinished", "ALREADY_EXECUTING")]),
      made([
        intended(1),
        answered(1, "foreign"),
        settled("unfinished", "ALREADY_EXECUTING"),
        intended(1),
        answered(1, "accepted"),
      ]),
      // A start with a token that the service refused, and one with the parameters behind it.
      made([intended(1), answered(1, "refused"), intended(2), answered(2, "accepted"), closed(2, "FAILED")]),
    ]).toEqual([2, 1, 1, 0, 1, 1])
  })

  it("settles a refusal without a reason as an unlisted answer", () => {
    expect([
      resumed([intended(1), answered(1, "refused")]),
      resumed([intended(1), answered(1, "refused", "T10N_FORBIDDEN")]),
    ]).toEqual([
      { _tag: "Refused", status_reason: "UNEXPECTED_ANSWER" },
      { _tag: "Refused", status_reason: "T10N_FORBIDDEN" },
    ])
  })

  it("treats a closed attempt as closed, before anything else", () => {
    const attempt = taskOf([intended(1), answered(1, "accepted"), closed(1)])?.attempts[0]
    expect(attempt === undefined ? undefined : resumeAttempt(attempt)).toEqual({ _tag: "Closed" })
  })
})

describe("executions that are kept at the service", () => {
  const kept: Fact = {
    _tag: "AttemptKept",
    run_id,
    task_id,
    attempt: 1,
    execution_id: anId("e-1"),
    reason: "RECORDS_SHORT",
    families: [],
    message: "a:b 1 of 2",
  }
  const over = [intended(1), answered(1, "accepted"), closed(1)]
  const read = (facts: ReadonlyArray<Fact>) =>
    attemptsToReadAgain(taskOf(facts)).map(({ closed: { execution_id } }) => execution_id)

  it("are read again once their task is settled, unless they are drained or being deleted", () => {
    const short = settled("partial", "RECORDS_SHORT")
    const asked: Fact = {
      _tag: "DeleteIntended",
      run_id,
      task_id,
      execution_id: anId("e-1"),
      landed_sha256: "ab",
    }
    expect([
      read([...over, kept, short]),
      read([...over, kept]),
      read([...over, short]),
      read([...over, kept, drained(1), short]),
      read([...over, kept, short, asked]),
      attemptsToReadAgain(undefined),
    ]).toEqual([["e-1"], [], [], [], [], []])
  })
})
