/** Which facts an id names, and how they read. */
import { describe, expect, it } from "vitest"
import { anId } from "../harness/Id.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { summarise } from "../../src/report/Summary.ts"
import { renderRecorded, tasksNamedIn } from "../../src/report/Timeline.ts"
import { executed, idOf, planned, recorded, run_id, settled, started } from "./Samples.ts"
import { aFact } from "../harness/Facts.ts"

const facts = recorded([
  started,
  planned("a"),
  planned("b"),
  ...executed("a", { "accounts@x": 3 }),
  settled("a", "failed", "BLOCKED_USER", "customer", { message: "$& 5 $$" }),
  { _tag: "RunEnded", run_id, exit_code: 3, leftovers: true },
])

it("the tasks that an id names are found by their own id, their customer's, execution's and session's, and by nothing else", () => {
  const named = [idOf("a"), "a", "e-a", "s", "b", "accounts_read"].map((id) => [...tasksNamedIn(facts, id)])
  expect(named).toEqual([[idOf("a")], [idOf("a")], [idOf("a")], [idOf("a")], [idOf("b")], []])
})

it("renderRecorded prints each fact on one line with its time", () => {
  expect(facts.map(renderRecorded)).toEqual([
    "2026-11-21 02:00:00  run demo.2026-11-21 of jobs/demo.yaml began",
    "2026-11-21 02:00:01  planned: accounts_read",
    "2026-11-21 02:00:02  planned: accounts_read",
    "2026-11-21 02:00:03  attempt 1: start, external id nj-1",
    "2026-11-21 02:00:04  attempt 1: the service accepted the start (202); execution e-a, session s",
    "2026-11-21 02:00:05  attempt 1: closed with COMPLETED / COMPLETED, 3 products counted; " +
      "10 bytes landed in segment-000001.njl at 0",
    "2026-11-21 02:00:06  settled: failed, BLOCKED_USER, action needed from the customer: $& 5 $$",
    "2026-11-21 02:00:07  run ended with exit code 3; something is left at the service",
  ])
})

it("what happened to a run as a whole reads as a sentence, in the timeline as on stderr", () => {
  const of = { run_id, since: "2026-11-21T23:10:05.000Z" }
  const engine_reference = anId("bank")
  const told = recorded([
    { _tag: "RunSteered", run_id, order: "pause" },
    { _tag: "RunSteered", run_id, order: "resume" },
    { _tag: "RunSteered", run_id, order: "limit", max_in_flight: 9, per_engine: 2 },
    { _tag: "RunSteered", run_id, order: "drain" },
    { _tag: "RunSteered", run_id, order: "drain", because: "pause_over" },
    { _tag: "TroubleBegan", ...of, trouble: "silent", message: "refused connection" },
    { _tag: "TroubleEnded", ...of, trouble: "silent", failures: 9 },
    { _tag: "TroubleBegan", ...of, trouble: "throttled", message: "429" },
    { _tag: "TroubleEnded", ...of, trouble: "throttled", failures: 1 },
    {
      _tag: "TroubleBegan",
      ...of,
      trouble: "engine",
      engine_reference,
      message: "no execution can be started",
    },
    { _tag: "TroubleEnded", ...of, trouble: "engine", engine_reference, failures: 2 },
    { _tag: "TaskWaits", run_id, task_id: idOf("a"), reason: "TIMEOUT", until: "2026-11-21T23:40:00.000Z" },
    { _tag: "InterimPublished", run_id, version: 7, tasks: 39, of: 40 },
    { _tag: "InterimRefused", run_id, message: "the disk is full" },
  ])
  expect(told.map((one) => renderRecorded(one).slice(21))).toEqual([
    "the run was paused: it starts nothing until it is resumed",
    "the run was resumed after a pause",
    "the limits are now 9 in flight and 2 per engine",
    "the run is drained: it starts nothing more",
    "the run is drained, because its pause took too long: it starts nothing more",
    "the service has given no usable answer since 23:10:05: refused connection",
    "the service answers again (trouble since 23:10:05, 9 failed calls)",
    "the service has asked for fewer calls since 23:10:05: 429",
    "the service accepts all calls again (trouble since 23:10:05, 1 failed call)",
    "engine bank has been down since 23:10:05: no execution can be started",
    "engine bank is available again (trouble since 23:10:05, 2 failed calls)",
    "waits until 2026-11-21 23:40:00 and is tried again: TIMEOUT",
    "39 of 40 tasks published as version 7 while the run continues",
    "nothing was published while the run continues: the disk is full",
  ])
})

const task_id = idOf("c-1", "bank")
const token = { name: "c-1/bank", token_id: "t-1", customer_id: anId("c-1"), engine_reference: anId("bank") }
const attempt = { run_id, task_id, attempt: 1 }
const expires_at = Date.UTC(2026, 11, 1)

const ofTokens: ReadonlyArray<Fact> = [
  started,
  planned("c-1", "bank"),
  aFact("StartIntended", { ...attempt, token_id: "t-1", outside: ["x"] }),
  { _tag: "TicketIssued", ...attempt, execution_id: anId("e-1") },
  { _tag: "TicketDropped", ...attempt, execution_id: anId("e-1"), reason: "REFUSED" },
  { _tag: "TicketDropped", ...attempt, execution_id: anId("e-1"), reason: "NO_AUTH_OK" },
  { _tag: "TokenStored", run_id, task_id, ...token, features: ["accounts_read"], expires_at },
  { _tag: "TokenExpiring", run_id, task_id, ...token, expires_at },
  { _tag: "TokenDropped", run_id, task_id, ...token, reason: "LOCKED" },
  { _tag: "TokenRevoked", ...token },
]
const tokenFacts = recorded(ofTokens)

describe("facts about tokens", () => {
  it("have a sentence each", () => {
    expect(tokenFacts.slice(2).map((one) => renderRecorded(one).slice(21))).toEqual([
      "attempt 1: start, with token t-1, which does not cover x, external id x",
      "attempt 1: a ticket was issued; it is exchanged once the login has succeeded",
      "attempt 1: the ticket was not exchanged for a token: REFUSED",
      "attempt 1: the ticket was not exchanged for a token: NO_AUTH_OK",
      "token c-1/bank stored for accounts_read; expires on 2026-12-01",
      "token c-1/bank expires on 2026-12-01",
      "token c-1/bank is no longer used: LOCKED",
      "token c-1/bank was revoked by hand",
    ])
  })

  it("warn about what expires and what was requested without success, but not about a login that failed anyway", () => {
    const run = foldRun(tokenFacts)
    expect(run && summarise(run).warnings).toEqual([
      "1 task without features that the stored token does not cover: x [token-outside]",
      "1 stored token will expire within 14 days, the first on 2026-12-01 [tokens-expiring]",
      "1 ticket not exchanged for a token: REFUSED [ticket-dropped]",
      "1 stored token no longer used: LOCKED [token-dropped]",
    ])
  })
})
