/** The fold of a run's facts: what every reader of the ledger sees. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { builtInSources, flowResultsSource } from "../../src/service/FlowResults.ts"
import { own } from "../../src/service/Ends.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { attemptKeys, taskKeys } from "../../src/ledger/FactKeys.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { executionsOf, newestAnswer, verdictOfTask } from "../../src/ledger/RunState.ts"
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

const taskOf = (facts: ReadonlyArray<Fact>) => {
  const task = fold(facts).tasks.get(task_id)
  if (task === undefined) throw new Error("no task")
  return task
}
const deletion = (http_status: number, outcome: "deleted" | "gone" | "pending"): ReadonlyArray<Fact> => [
  {
    _tag: "DeleteIntended",
    run_id,
    task_id,
    execution_id: anId("e-1"),
    landed_sha256: "ab",
  },
  {
    _tag: "DeleteAnswered",
    run_id,
    task_id,
    execution_id: anId("e-1"),
    http_status,
    outcome,
  },
]

it("the keys of a task or an attempt are those that a fact takes, and nothing else of what has them", () => {
  const has = { run_id, task_id, attempt: 2, login: "secret" }
  expect([taskKeys(has), attemptKeys(has)]).toStrictEqual([
    { run_id, task_id },
    { run_id, task_id, attempt: 2 },
  ])
})

describe("the state of a run", () => {
  it("does not exist without a beginning, and ignores tasks and attempts that were never planned", () => {
    expect(foldRun([])).toBeUndefined()
    expect(foldRun(recorded([settled("failed", "FAILED")]))).toBeUndefined()
    const strange: Fact = {
      _tag: "TaskSettled",
      run_id,
      task_id: anId("?"),
      outcome: "failed",
      reason: "FAILED",
      who_acts: "nobody",
    }
    expect([...fold([strange, observed(7)]).tasks.keys()]).toEqual([task_id])
    expect(taskOf([observed(7)]).attempts).toEqual([])
  })

  it("shows what an attempt's facts said last", () => {
    const attemptOf = (...facts: ReadonlyArray<Fact>) => taskOf(facts).attempts[0]
    const lost = answered(1, "lost")
    expect(attemptOf(intended(1), lost)).toEqual({
      attempt: 1,
      external_execution_id: "x-1",
      fingerprint: "f-1",
      intended_at: 3_000,
      probed: false,
      answer: lost,
      accepted_at: undefined,
      execution_id: undefined,
      session_id: undefined,
      status_code: undefined,
      status_reason: undefined,
      authentication_status: undefined,
      abort: undefined,
      closed: undefined,
      orphanSuspected: false,
      drained: false,
      deletion: undefined,
    })
    for (const answer of ["accepted", "adopted"] as const)
      expect(attemptOf(intended(1), answered(1, answer))).toMatchObject({
        accepted_at: 4_000,
        execution_id: "e-1",
        session_id: "s-1",
      })
    const end = { ...closed(1), authentication_status: "AUTH_OK" } as Fact
    const proof = { basis: "counted", families: [] } as const
    const proven = { ...drained(1), proof } as Fact
    const kept = { ...drained(1), _tag: "AttemptKept", reason: "RECORDS_SHORT", families: [] } as Fact
    const life = [intended(1), answered(1, "accepted"), observed(1), end]
    expect(attemptOf(...life)).toMatchObject({
      status_code: "COMPLETED",
      status_reason: "COMPLETED",
      authentication_status: "AUTH_OK",
      closed: { seq: 6, at: 6_000, fact: end },
    })
    expect(attemptOf(...life, proven, drained(1))).toMatchObject({ drained: true, proof })
    expect(attemptOf(...life, proven, kept)).toMatchObject({ drained: false, kept })
    const again = attemptOf(...life, kept, proven)
    expect([again?.drained, again && "kept" in again]).toEqual([true, false])
  })

  it("ends, and continues when it is resumed", () => {
    const ended: Fact = { _tag: "RunEnded", run_id, exit_code: 4, leftovers: true }
    expect(fold([ended]).ended).toEqual({ at: 3_000, exit_code: 4, leftovers: true, kept: 0 })
    expect(fold([ended, { _tag: "RunResumed", run_id }]).ended).toBeUndefined()
  })

  it("says when each stage was last over; what is collected after the end moves no other", () => {
    const published: Fact = { _tag: "RunPublished", run_id, version: 1, receipts: [] }
    const ended: Fact = { _tag: "RunEnded", run_id, exit_code: 4, leftovers: true }
    const verdict = settled("succeeded", "COMPLETED")
    const [, removed] = deletion(204, "deleted")
    const night = [verdict, published, ...(removed === undefined ? [] : [removed]), ended]
    expect(fold([]).stages).toEqual({})
    const stages = { executed: 3_000, published: 4_000, deleted: 5_000 }
    expect(fold(night).stages).toEqual(stages)
    const later = [...night, published, ...deletion(204, "deleted"), verdict]
    expect(fold(later).stages).toEqual({ ...stages, collected: 7_000 })
    expect(fold([...later, { _tag: "RunResumed", run_id }, verdict]).stages).toEqual({
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
    const published: Fact = { _tag: "RunPublished", run_id, version: 1, receipts: [] }
    const standing = { seq: 3, at: 3_000, fact: held }
    expect([
      gatesOf(),
      gatesOf(held),
      gatesOf(held, accepted),
      gatesOf(held, accepted, published),
      gatesOf(held, accepted, published, { _tag: "OutcomePublished", run_id }),
    ]).toEqual([
      [false, false],
      [standing, false],
      [standing, true],
      [false, true],
      [false, false],
    ])
  })

  it("says where the newest answer of a task is, whether a state or results", () => {
    const read: Fact = {
      _tag: "ResultsRead",
      run_id,
      task_id,
      session_id: anId("s-1"),
      http_status: 200,
      kind: "results",
      is_closed: true,
    }
    const life = [intended(1), answered(1, "accepted")]
    expect(
      [[], life, [...life, closed(1)], [...life, read, closed(1)], [...life, closed(1), read]].map((facts) =>
        newestAnswer(taskOf(facts)),
      ),
    ).toEqual([0, 0, 5, 6, 6])
  })

  it("keeps the newest publication, with its place among the facts", () => {
    const publish = (version: number): Fact => ({
      _tag: "RunPublished",
      run_id,
      version,
      receipts: [],
    })
    expect(fold([publish(1), publish(2)]).published).toEqual({ seq: 4, at: 4_000, fact: publish(2) })
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

  it("has no answer for a start that was sent again, and remembers a probe", () => {
    const [again] = taskOf([intended(1), answered(1, "not_created"), intended(1)]).attempts
    expect([again?.answer, again?.probed]).toEqual([undefined, false])
    const [probed] = taskOf([
      intended(1),
      answered(1, "lost"),
      intended(1, true),
      answered(1, "accepted"),
    ]).attempts
    expect([probed?.answer?.answer, probed?.probed, probed?.execution_id]).toEqual(["accepted", true, "e-1"])
    expect(probed?.accepted_at).toBe(6_000)
  })

  it("needs a verdict for an end that came after the last one", () => {
    const left = [intended(1), answered(1, "accepted"), settled("unfinished", "NOT_STOPPABLE")]
    expect(taskOf(left).settled).toEqual({
      seq: 5,
      at: 5_000,
      fact: settled("unfinished", "NOT_STOPPABLE"),
    })
    expect(taskOf([...left, closed(1)]).settled).toBeUndefined()
    expect(taskOf([...left, closed(1), settled("succeeded", "COMPLETED")]).settled?.fact.outcome).toBe(
      "succeeded",
    )
  })

  it("shows what each fact said about an attempt, and nothing else", () => {
    const attempt = { run_id, task_id, attempt: 1, execution_id: anId("e-1") }
    const kept: Fact = {
      _tag: "AttemptKept",
      ...attempt,
      reason: "RECORDS_SHORT",
      families: [],
      message: "a:b 1 of 2",
    }
    const proof = { basis: "counted", families: [{ family: "a:b", counted: 2, landed: 2 }] } as const
    const bare = {
      attempt: 1,
      external_execution_id: "x-1",
      fingerprint: "f-1",
      intended_at: 3_000,
      probed: false,
      answer: undefined,
      accepted_at: undefined,
      execution_id: undefined,
      session_id: undefined,
      status_code: undefined,
      status_reason: undefined,
      authentication_status: undefined,
      abort: undefined,
      closed: undefined,
      orphanSuspected: false,
      drained: false,
      deletion: undefined,
    }
    const accepted = {
      ...bare,
      answer: answered(1, "accepted"),
      accepted_at: 4_000,
      execution_id: anId("e-1"),
      session_id: anId("s-1"),
    }
    const seen = {
      ...accepted,
      status_code: "ONGOING",
      status_reason: "RUNNING",
      authentication_status: "AUTH_OK",
      session_id: anId("s-2"),
    }
    const steps: ReadonlyArray<readonly [Fact, object]> = [
      [intended(1), bare],
      [answered(1, "accepted"), accepted],
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
      [observed(1), { ...seen, authentication_status: undefined }],
      [
        { _tag: "AbortIntended", ...attempt, why: "max_wait" },
        { ...seen, authentication_status: undefined, abort: "max_wait" },
      ],
    ]
    steps.forEach(([, expected], index) =>
      expect(taskOf(steps.slice(0, index + 1).map(([fact]) => fact)).attempts).toStrictEqual([expected]),
    )
    const over = [...steps.map(([fact]) => fact), closed(1, "ABORTED", "TIMEOUT"), kept]
    const end = {
      ...seen,
      session_id: anId("s-1"),
      authentication_status: undefined,
      abort: "max_wait",
      status_code: "ABORTED",
      status_reason: "TIMEOUT",
      closed: { seq: 8, at: 8_000, fact: closed(1, "ABORTED", "TIMEOUT") },
    }
    expect(taskOf(over).attempts).toStrictEqual([{ ...end, kept }])
    const orphan: Fact = {
      _tag: "OrphanSuspected",
      run_id,
      task_id,
      attempt: 1,
      external_execution_id: "x-1",
    }
    // What proves it takes the place of why it was kept.
    expect(
      taskOf([
        ...over,
        { _tag: "AttemptDrained", ...attempt, proof },
        orphan,
        { _tag: "AttemptDisowned", ...attempt },
      ]).attempts,
    ).toStrictEqual([{ ...end, drained: true, proof, orphanSuspected: true, disowned: true }])
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
    expect(taskOf([intended(1), answered(1, "accepted"), nameless]).attempts[0]?.session_id).toBe("s-1")
  })

  it("contains the endpoints that the run reads from", () => {
    const source = { ...flowResultsSource, name: "own" }
    expect(fold([]).sources).toEqual(builtInSources)
    expect(fold([{ _tag: "ResultsSourcesSet", run_id, sources: [source] }]).sources).toContainEqual(source)
  })

  it("keeps every note of a task's tickets and tokens, in order", () => {
    const dropped = (reason: string): Fact => ({
      _tag: "TicketDropped",
      run_id,
      task_id,
      attempt: 1,
      execution_id: anId("e-1"),
      reason,
    })
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

  it("also knows a deletion by its answer, if its intent is in no fact", () => {
    expect(
      taskOf([intended(1), answered(1, "accepted"), closed(1), ...deletion(204, "deleted").slice(1)])
        .attempts[0]?.deletion,
    ).toEqual({ asked_at: 6_000, landed_sha256: "", http_status: 204, deleted_at: 6_000, outcome: "deleted" })
  })

  it("knows a deletion that has no answer yet, and one that was asked for again, as pending", () => {
    const over = [intended(1), answered(1, "accepted"), closed(1), drained(1)]
    const [asked] = deletion(409, "pending")
    const again = asked === undefined ? [] : [asked]
    const pending = { landed_sha256: "ab", http_status: undefined, deleted_at: undefined, outcome: "pending" }
    const found = [again, [...deletion(500, "pending"), ...again]].map(
      (facts) => taskOf([...over, ...facts]).attempts[0]?.deletion,
    )
    expect(found).toEqual([
      { ...pending, asked_at: 7_000 },
      { ...pending, asked_at: 9_000 },
    ])
  })

  it("does not take a deletion that was answered and is still pending for one that is over", () => {
    const over = [intended(1), answered(1, "accepted"), closed(1), drained(1)]
    expect(taskOf([...over, ...deletion(409, "pending")]).attempts[0]?.deletion).toEqual({
      asked_at: 7_000,
      landed_sha256: "ab",
      http_status: 409,
      deleted_at: undefined,
      outcome: "pending",
    })
  })

  it("keeps every answer that could not be used, in order, and none where there was none", () => {
    const refused = (why: string): Fact => ({ _tag: "AnswerRefused", run_id, task_id, what: "start", why })
    expect(taskOf([refused("one"), refused("two")]).refused).toEqual([refused("one"), refused("two")])
    expect("refused" in taskOf([intended(1)])).toBe(false)
  })

  it("keeps the verdict of a task where something is learnt of an execution that was over before", () => {
    const facts = [intended(1), answered(1, "accepted"), closed(1), settled("failed", "FAILED")]
    expect(taskOf([...facts, drained(1)]).settled).toEqual(taskOf(facts).settled)
    expect([taskOf(facts), taskOf([])].map(verdictOfTask)).toEqual([
      settled("failed", "FAILED"),
      own("IN_PROGRESS"),
    ])
  })

  it("is not changed by what is no matter of a task or its attempts", () => {
    const ids = { run_id, task_id } as const
    const access = { customer_id: anId("c-1"), engine_reference: anId("bank") } as const
    const before = taskOf([intended(1), answered(1, "accepted")])
    for (const fact of [
      { _tag: "CredentialRejected", ...ids, fingerprint: "f-1", ...access, reason: "BLOCKED_USER" },
      { _tag: "TicketIssued", ...ids, attempt: 1, execution_id: anId("e-1") },
    ] satisfies ReadonlyArray<Fact>)
      expect(taskOf([intended(1), answered(1, "accepted"), fact])).toStrictEqual(before)
  })

  it("replaces what was known of a document and of a deletion, and keeps every read of results", () => {
    const read: Fact = {
      _tag: "ResultsRead",
      run_id,
      task_id,
      session_id: anId("s-1"),
      http_status: 200,
      kind: "results",
      is_closed: false,
      landed,
    }
    const document = (attachment_id: string, status: "failed" | "downloaded"): Fact => ({
      _tag: "AttachmentRead",
      run_id,
      task_id,
      session_id: anId("s-1"),
      attachment_id,
      status,
    })
    const task = taskOf([
      intended(1),
      answered(1, "accepted"),
      closed(1),
      read,
      read,
      document("a", "failed"),
      document("b", "failed"),
      document("a", "downloaded"),
      drained(1),
      ...deletion(500, "pending"),
      ...deletion(404, "gone"),
    ])
    expect(task.results.map(({ seq }) => seq)).toEqual([6, 7])
    expect(task.attachments).toEqual([document("b", "failed"), document("a", "downloaded")])
    expect(task.attempts[0]?.deletion).toEqual({
      asked_at: 14_000,
      landed_sha256: "ab",
      http_status: 404,
      deleted_at: 15_000,
      outcome: "gone",
    })
  })

  it("counts as executions what exists or may exist, and not what certainly created nothing", () => {
    const count = (facts: ReadonlyArray<Fact>) => executionsOf(taskOf(facts)).length
    expect([
      count([intended(1)]),
      count([intended(1), answered(1, "lost")]),
      count([intended(1), answered(1, "accepted")]),
      count([intended(1), answered(1, "lost"), intended(1, true), answered(1, "not_created")]),
      count([intended(1), answered(1, "not_created")]),
      count([intended(1), answered(1, "foreign")]),
      count([intended(1), answered(1, "refused")]),
      count([intended(1), answered(1, "taken")]),
    ]).toEqual([1, 1, 1, 1, 0, 0, 0, 1])
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
