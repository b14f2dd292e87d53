/** The fold of a run's facts: what every reader of the ledger sees. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { builtInSources, flowResultsSource } from "../../src/service/FlowResults.ts"
import { own } from "../../src/service/Ends.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { attemptKeys, taskKeys } from "../../src/ledger/FactKeys.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import {
  executionsOf,
  isOpenAtService,
  isToDelete,
  keptOf,
  mayRun,
  newestAnswer,
  remainsOf,
  verdictOfTask,
} from "../../src/ledger/RunState.ts"
import {
  answered,
  begun,
  closed,
  drained,
  fold,
  intended,
  landed,
  lives,
  observed,
  recorded,
  run_id,
  settled,
  task_id,
} from "../task/Lives.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"

const taskOf = (facts: ReadonlyArray<Fact>) => {
  const task = fold(facts).tasks.get(task_id)
  if (task === undefined) throw new Error("no task")
  return task
}
const ids = { run_id, task_id }
const attempt = { ...ids, attempt: 1, execution_id: anId("e-1") }
const asked: Fact = { _tag: "DeleteIntended", ...ids, execution_id: anId("e-1"), landed_sha256: "ab" }
const removed = (http_status: number, outcome: "deleted" | "gone" | "pending"): Fact => ({
  _tag: "DeleteAnswered",
  ...ids,
  execution_id: anId("e-1"),
  http_status,
  outcome,
})
const published = (version = 1): Fact => ({ _tag: "RunPublished", run_id, version, receipts: [] })
const resumed: Fact = { _tag: "RunResumed", run_id }
const ended: Fact = { _tag: "RunEnded", run_id, exit_code: 4, leftovers: true }
const began = [intended(1), answered(1, "accepted")]

it("the keys of a task or an attempt are those that a fact takes, and nothing else of what has them", () => {
  const has = { run_id, task_id, attempt: 2, login: "secret" }
  expect([taskKeys(has), attemptKeys(has)]).toStrictEqual([
    { run_id, task_id },
    { run_id, task_id, attempt: 2 },
  ])
})

describe("the state of a run", () => {
  it("says that results were off at a start only if they were at each of its requests [promise 5 off probe]", () => {
    const sent = (probe: boolean, isOff: boolean): Fact =>
      ({ ...intended(1, probe), ...(isOff ? { results_off: true } : {}) }) as Fact
    const both = [true, false].flatMap((first) => [true, false].map((again) => [first, again] as const))
    const offs = both.map(([first, again]) => {
      const facts = [sent(false, first), answered(1, "lost"), sent(true, again)]
      return taskOf(facts).attempts.map(({ results_off }) => results_off)
    })
    expect(offs).toEqual([[true], [undefined], [undefined], [undefined]])
  })

  it("does not exist without a beginning, and ignores tasks and attempts that were never planned", () => {
    expect(foldRun([])).toBeUndefined()
    expect(foldRun(recorded([settled("failed", "FAILED")]))).toBeUndefined()
    const strange: Fact = aFact("TaskSettled", { run_id, task_id: "?", who_acts: "nobody" })
    expect([...fold([strange, observed(7)]).tasks.keys()]).toEqual([task_id])
    expect(taskOf([observed(7)]).attempts).toEqual([])
  })

  it("ends, and continues when it is resumed", () => {
    expect(fold([ended]).ended).toEqual({ at: 3_000, exit_code: 4, leftovers: true, kept: 0 })
    expect(fold([ended, resumed]).ended).toBeUndefined()
  })

  it("says when each stage was last over; what is collected after the end moves no other", () => {
    const verdict = settled("succeeded", "COMPLETED")
    const night = [verdict, published(), removed(204, "deleted"), ended]
    expect(fold([]).stages).toEqual({})
    const stages = { executed: 3_000, published: 4_000, deleted: 5_000 }
    expect(fold(night).stages).toEqual(stages)
    const later = [...night, published(), asked, removed(204, "deleted"), verdict]
    expect(fold(later).stages).toEqual({ ...stages, collected: 7_000 })
    expect(fold([...later, resumed, verdict]).stages).toEqual({
      ...stages,
      collected: 7_000,
      resumed: 11_000,
      executed: 12_000,
    })
  })

  it("is held back until it is published, and accepted by a person until its new end is published", () => {
    const held: Fact = { _tag: "RunHeld", run_id, database: "held", gates: [] }
    const gatesOf = (...facts: ReadonlyArray<Fact>) => {
      const run = fold(facts)
      return ["held" in run && run.held, "accepted" in run && run.accepted]
    }
    const accepted: Fact = { _tag: "RunAccepted", run_id }
    const standing = { seq: 3, at: 3_000, fact: held }
    expect([
      gatesOf(),
      gatesOf(held),
      gatesOf(held, accepted),
      gatesOf(held, accepted, published()),
      gatesOf(held, accepted, published(), { _tag: "OutcomePublished", run_id }),
    ]).toEqual([
      [false, false],
      [standing, false],
      [standing, true],
      [false, true],
      [false, false],
    ])
  })

  it("says where the newest answer of a task is, whether a state or results", () => {
    const read: Fact = aFact("ResultsRead", { run_id, task_id })
    const lives = [[], began, [...began, closed(1)], [...began, read, closed(1)], [...began, closed(1), read]]
    expect(lives.map((facts) => newestAnswer(taskOf(facts)))).toEqual([0, 0, 5, 6, 6])
  })

  it("keeps the newest publication, with its place among the facts, and its receipts with the attempts [decision 10 receipts] [promise 5 newest receipts]", () => {
    const receipt = { execution_id: anId("e-1"), landed_sha256: "ab" }
    const first = { ...published(1), receipts: [{ ...receipt, whole: true }] } as Fact
    const receiptsOf = (...facts: ReadonlyArray<Fact>) =>
      taskOf([...began, ...facts]).attempts.map((one) => one.receipt)
    expect([receiptsOf(), receiptsOf(first), receiptsOf(first, published(2))]).toEqual([
      [undefined],
      ["ab"],
      [undefined],
    ])
    const { receipts: _, ...told } = published(2) as Extract<Fact, { _tag: "RunPublished" }>
    expect(fold([first, published(2)]).published).toEqual({ seq: 4, at: 4_000, fact: told })
  })

  it("holds one attempt for each number, in order, and never forgets an execution", () => {
    fc.assert(
      fc.property(lives, fc.nat(), (life, at) => {
        const known = life.slice(0, at % (life.length + 1))
        const { attempts, settled: verdict, attemptsBefore } = taskOf(known)
        expect(attempts.map(({ attempt }) => attempt)).toEqual(attempts.map((_, index) => index + 1))
        const opened = known.flatMap((fact) =>
          fact._tag === "StartAnswered" && fact.execution_id !== undefined ? [fact.execution_id] : [],
        )
        expect(attempts.flatMap(({ execution_id }) => execution_id ?? [])).toEqual(opened)
        const ends = known.filter((fact) => fact._tag === "AttemptClosed")
        expect(attempts.flatMap((attempt) => attempt.closed?.fact ?? [])).toEqual(ends)
        const last = known.findLast(({ _tag }) =>
          ["TaskSettled", "StartIntended", "AttemptClosed"].includes(_tag),
        )
        expect(verdict?.fact).toEqual(last?._tag === "TaskSettled" ? last : undefined)
        expect(attemptsBefore).toBe(last?._tag === "TaskSettled" ? attempts.length : 0)
        for (const { drained: isDrained, closed: end } of attempts) if (isDrained) expect(end).toBeDefined()
      }),
      { numRuns: 500 },
    )
  })

  it("needs a verdict for an end that came after the last one", () => {
    const left = [...began, settled("unfinished", "NOT_STOPPABLE")]
    const again = settled("succeeded", "COMPLETED")
    expect(
      [left, [...left, closed(1)], [...left, closed(1), again]].map((facts) => taskOf(facts).settled),
    ).toEqual([{ seq: 5, at: 5_000, fact: left[2] }, undefined, { seq: 7, at: 7_000, fact: again }])
  })

  it("shows what each fact said about an attempt, and nothing else [decision 2 abort again]", () => {
    const kept: Fact = aFact("AttemptKept", { ...attempt, reason: "RECORDS_SHORT", message: "m" })
    const proof = { basis: "counted", families: [{ family: "a:b", counted: 2, landed: 2 }] } as const
    const bare = {
      attempt: 1,
      external_execution_id: "x-1",
      fingerprint: "f-1",
      intended_at: 3_000,
      probed: false,
      orphanSuspected: false,
      drained: false,
    }
    const lost = { ...bare, answer: answered(1, "lost") }
    const adopted = {
      ...bare,
      probed: true,
      answer: answered(1, "adopted"),
      accepted_at: 7_000,
      execution_id: anId("e-1"),
      session_id: anId("s-1"),
    }
    const seen = {
      ...adopted,
      seen_at: 8_000,
      status_code: "ONGOING",
      status_reason: "RUNNING",
      authentication_status: "AUTH_OK",
      session_id: anId("s-2"),
      sessions_before: [anId("s-1")],
    }
    const steps: ReadonlyArray<readonly [Fact, object]> = [
      [intended(1), bare],
      [answered(1, "lost"), lost],
      // Earlier versions wrote this of a probe that was held back: a request has one answer.
      [answered(1, "not_created"), lost],
      [intended(1, true), { ...bare, probed: true }],
      [answered(1, "adopted"), adopted],
      [
        {
          _tag: "AttemptObserved",
          ...attempt,
          status_code: "ONGOING",
          status_reason: "RUNNING",
          authentication_status: "AUTH_OK",
          session_id: anId("s-2"),
        },
        seen,
      ],
      [observed(1), { ...seen, seen_at: 9_000, authentication_status: undefined }],
      [
        { _tag: "AbortIntended", ...attempt, why: "max_wait" },
        { ...seen, seen_at: 10_000, authentication_status: undefined, abort: "max_wait" },
      ],
      // By a later process, which may not have found it.
      [
        { _tag: "AbortIntended", ...attempt, why: "max_wait" },
        { ...seen, seen_at: 10_000, authentication_status: undefined, abort: "max_wait" },
      ],
    ]
    steps.forEach(([, expected], index) =>
      expect(taskOf(steps.slice(0, index + 1).map(([fact]) => fact)).attempts).toStrictEqual([expected]),
    )
    const last = { ...closed(1, "ABORTED", "TIMEOUT"), authentication_status: "AUTH_OK" } as Fact
    const over = [...steps.map(([fact]) => fact), last, kept]
    const end = {
      ...seen,
      seen_at: 10_000,
      session_id: anId("s-1"),
      sessions_before: [anId("s-2")],
      abort: "max_wait",
      status_code: "ABORTED",
      status_reason: "TIMEOUT",
      closed: { seq: 12, at: 12_000, fact: last },
    }
    expect(taskOf(over).attempts).toStrictEqual([{ ...end, kept }])
    const orphan: Fact = { _tag: "OrphanSuspected", ...ids, attempt: 1, external_execution_id: "x-1" }
    const proven: Fact = { _tag: "AttemptDrained", ...attempt, proof }
    // What proves it takes the place of why it was kept, and what is kept after all is no longer drained.
    expect(
      taskOf([...over, proven, drained(1), orphan, { _tag: "AttemptDisowned", ...attempt }]).attempts,
    ).toStrictEqual([{ ...end, drained: true, proof, orphanSuspected: true, disowned: true }])
    expect(taskOf([...over, proven, kept]).attempts).toStrictEqual([{ ...end, drained: false, proof, kept }])
  })

  it("takes the login of the request that was sent last, and keeps a session that an end does not name", () => {
    const withToken = { ...intended(1), token_id: "t-1" } as Fact
    const { session_id: _, ...nameless } = closed(1) as Extract<Fact, { _tag: "AttemptClosed" }>
    const tokenOf = (...facts: ReadonlyArray<Fact>) => taskOf(facts).attempts.map(({ token_id }) => token_id)
    expect([tokenOf(withToken), tokenOf(intended(1), withToken), tokenOf(withToken, intended(1))]).toEqual([
      ["t-1"],
      ["t-1"],
      [undefined],
    ])
    expect("token_id" in (taskOf([withToken, intended(1)]).attempts[0] ?? {})).toBe(false)
    expect(taskOf([...began, nameless]).attempts[0]?.session_id).toBe("s-1")
  })

  it("contains the endpoints that the run reads from", () => {
    const source = { ...flowResultsSource, name: "own" }
    expect(fold([]).sources).toEqual(builtInSources)
    expect(fold([{ _tag: "ResultsSourcesSet", run_id, sources: [source] }]).sources).toContainEqual(source)
  })

  it("keeps every note of a task's tickets and tokens, and every answer that could not be used, in order", () => {
    const dropped = (reason: string): Fact => ({ _tag: "TicketDropped", ...attempt, reason })
    const access = { customer_id: anId("c-1"), engine_reference: anId("bank") } as const
    const token = { run_id, task_id, name: "c-1/bank", token_id: "t-1", ...access } as const
    const notes: ReadonlyArray<Fact> = [
      dropped("A"),
      { _tag: "TokenStored", ...token, features: [], expires_at: 9 },
      { _tag: "TokenExpiring", ...token, expires_at: 9 },
      { _tag: "TokenDropped", ...token, reason: "LOCKED" },
      dropped("B"),
    ]
    expect(taskOf(notes).tokens).toEqual(notes)
    expect("tokens" in taskOf([intended(1)])).toBe(false)
  })

  it.each<readonly [string, ReadonlyArray<Fact>, object]>([
    [
      "by its answer, if its intent is in no fact",
      [removed(204, "deleted")],
      { asked_at: 7_000, landed_sha256: "", http_status: 204, deleted_at: 7_000, outcome: "deleted" },
    ],
    ["as pending without an answer", [asked], { asked_at: 7_000 }],
    ["as pending once it is asked for again", [asked, removed(500, "pending"), asked], { asked_at: 9_000 }],
    ["as pending by an answer", [asked, removed(409, "pending")], { asked_at: 7_000, http_status: 409 }],
    [
      "by the newest answer",
      [asked, removed(500, "pending"), asked, removed(404, "gone")],
      { asked_at: 9_000, http_status: 404, deleted_at: 10_000, outcome: "gone" },
    ],
  ])("knows a deletion %s", (_, facts, expected) => {
    const pending = { landed_sha256: "ab", http_status: undefined, deleted_at: undefined, outcome: "pending" }
    const [known] = taskOf([...began, closed(1), drained(1), ...facts]).attempts
    expect(known?.deletion).toEqual({ ...pending, ...expected })
    const refused = (why: string): Fact => ({ _tag: "AnswerRefused", run_id, task_id, what: "start", why })
    expect(taskOf([refused("one"), refused("two")]).refused).toEqual([refused("one"), refused("two")])
    expect("refused" in taskOf([intended(1)])).toBe(false)
  })

  it("keeps the verdict of a task where something is learnt of an execution that was over before", () => {
    const verdict = settled("failed", "FAILED")
    const facts = [...began, closed(1), verdict]
    expect(taskOf([...facts, drained(1)]).settled).toEqual(taskOf(facts).settled)
    expect([facts, []].map((all) => verdictOfTask(taskOf(all)))).toEqual([verdict, own("IN_PROGRESS")])
  })

  it("replaces what was known of a document, and keeps every read of results", () => {
    const session = { ...ids, session_id: anId("s-1") }
    const read: Fact = aFact("ResultsRead", { ...session, is_closed: false, landed })
    const document = (attachment_id: string, status: "failed" | "downloaded"): Fact =>
      aFact("AttachmentRead", { ...session, attachment_id, status })
    const [failed, other, here] = [
      document("a", "failed"),
      document("b", "failed"),
      document("a", "downloaded"),
    ]
    const task = taskOf([...began, closed(1), read, read, failed, other, here])
    expect(task.results.map(({ seq }) => seq)).toEqual([6, 7])
    expect(task.attachments).toEqual([other, here])
  })

  it("counts as executions what exists or may exist, and not what certainly created nothing", () => {
    const lost = [intended(1), answered(1, "lost")]
    const probed = [...lost, intended(1, true), answered(1, "not_created")]
    const maybe = [[intended(1)], lost, began, probed, [intended(1), answered(1, "taken")]]
    const nothing = (["not_created", "foreign", "refused"] as const).map((one) => [
      intended(1),
      answered(1, one),
    ])
    const count = (facts: ReadonlyArray<Fact>) => executionsOf(taskOf(facts)).length
    expect([maybe.map(count), nothing.map(count)]).toEqual([
      [1, 1, 1, 1, 1],
      [0, 0, 0],
    ])
  })

  it("says of each attempt what the service may have of it [promise 5 left]", () => {
    const lost = [intended(1), answered(1, "lost")]
    const kept: Fact = aFact("AttemptKept", { ...attempt, reason: "RECORDS_SHORT", message: "1" })
    const gone: Fact = aFact("AttemptClosed", {
      ...attempt,
      status_code: "UNKNOWN",
      status_reason: "EXECUTION_GONE",
    })
    const cases: ReadonlyArray<readonly [ReturnType<typeof remainsOf>, ...ReadonlyArray<Fact>]> = [
      ["unseen", intended(1)],
      ["unseen", ...lost],
      ["unseen", ...lost, intended(1, true), answered(1, "not_created")],
      ["unseen", ...lost, intended(1, true), answered(1, "lost")],
      ["unseen", intended(1), answered(1, "taken")],
      ["unseen", intended(1), answered(1, "unusable")],
      ["nothing", intended(1), answered(1, "not_created")],
      ["nothing", intended(1), answered(1, "foreign")],
      ["nothing", intended(1), answered(1, "refused")],
      ["open", ...began],
      ["open", ...began, observed(1)],
      ["foreign", ...began, { _tag: "AttemptDisowned", ...attempt }],
      ["nothing", ...began, asked, removed(204, "deleted")],
      ["forgotten", ...began, gone],
      ["unread", ...began, closed(1)],
      ["kept", ...began, closed(1), kept],
      ["kept", ...began, closed(1), drained(1), kept],
      ["kept", ...began, closed(1), drained(1), asked, kept],
      ["due", ...began, closed(1), drained(1)],
      ["due", ...began, closed(1), kept, drained(1)],
      ["asked", ...began, closed(1), drained(1), asked],
      ["asked", ...began, closed(1), drained(1), asked, removed(409, "pending")],
      ["nothing", ...began, closed(1), drained(1), asked, removed(404, "gone")],
      ["nothing", ...began, closed(1), drained(1), asked, removed(204, "deleted"), kept],
    ]
    for (const [left, ...facts] of cases) {
      const over = taskOf([...facts, settled("partial", "RESULTS_PARTIAL")])
      const [one] = over.attempts
      if (one === undefined) throw new Error("no attempt")
      expect({
        facts,
        left: remainsOf(one),
        open: isOpenAtService(one),
        runs: mayRun(one),
        deletes: isToDelete(one),
        keeps: [keptOf(over).length, keptOf(taskOf(facts)).length],
      }).toEqual({
        facts,
        left,
        open: left === "open",
        runs: ["open", "unseen", "foreign"].includes(left),
        deletes: ["due", "asked"].includes(left),
        keeps: [["unread", "kept"].includes(left) ? 1 : 0, 0],
      })
    }
  })

  it("replaces the plan of a task by a later one, without a second task", () => {
    const better: Fact = {
      ...(begun[1] as Extract<Fact, { _tag: "TaskPlanned" }>),
      features: ["accounts_read"],
    }
    expect(taskOf([better]).planned).toEqual(better)
    expect(taskOf([intended(1), better]).attempts).toEqual(taskOf([intended(1)]).attempts)
    expect(fold([better]).tasks.size).toBe(1)
  })
})
