/** Facts about tickets and tokens as people read them: in the timeline and in the summary's warnings. */
import { describe, expect, it } from "vitest"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { summarise } from "../../src/report/Summary.ts"
import { renderRecorded } from "../../src/report/Timeline.ts"
import { anId } from "../harness/Id.ts"

const run_id = anId("nightly.2026-11-21")
const task_id = anId(`${run_id}/c-1/bank`)
const token = { name: "c-1/bank", token_id: "t-1", customer_id: anId("c-1"), engine_reference: anId("bank") }
const attempt = { run_id, task_id, attempt: 1 }
const expires_at = Date.UTC(2026, 11, 1)

const facts: ReadonlyArray<Fact> = [
  { _tag: "RunStarted", run_id, job: "j", job_path: "j", run_date: "2026-11-21", tool_version: "0" },
  {
    _tag: "TaskPlanned",
    run_id,
    task_id,
    customer_id: anId("c-1"),
    engine_reference: anId("bank"),
    features: [],
  },
  {
    _tag: "StartIntended",
    ...attempt,
    external_execution_id: "x",
    token_id: "t-1",
    probe: false,
  },
  { _tag: "TicketIssued", ...attempt, execution_id: anId("e-1") },
  { _tag: "TicketDropped", ...attempt, execution_id: anId("e-1"), reason: "REFUSED" },
  { _tag: "TicketDropped", ...attempt, execution_id: anId("e-1"), reason: "NO_AUTH_OK" },
  { _tag: "TokenStored", run_id, task_id, ...token, features: ["accounts_read"], expires_at },
  { _tag: "TokenExpiring", run_id, task_id, ...token, expires_at },
  { _tag: "TokenDropped", run_id, task_id, ...token, reason: "LOCKED" },
  { _tag: "TokenRevoked", ...token },
]
const recorded = facts.map((fact, index) => ({ seq: index, at: Date.UTC(2026, 10, 21, 3), fact }))

describe("facts about tokens", () => {
  it("have a sentence each", () => {
    expect(recorded.slice(2).map((one) => renderRecorded(one).slice(21))).toEqual([
      "attempt 1: start, with token t-1, external id x",
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
    const run = foldRun(recorded)
    expect(run && summarise(run).warnings).toEqual([
      "1 stored token will expire within 14 days, the first on 2026-12-01 [tokens-expiring]",
      "1 ticket not exchanged for a token: REFUSED [ticket-dropped]",
      "1 stored token no longer used: LOCKED [token-dropped]",
    ])
  })

  it("are in the state of their task, and of an attempt that a token logged in for", () => {
    const task = foldRun(recorded)?.tasks.get(task_id)
    expect([task?.attempts[0]?.token_id, task?.tokens?.length]).toEqual(["t-1", 5])
    const plain = foldRun(recorded.slice(0, 2))?.tasks.get(task_id)
    expect(plain !== undefined && "tokens" in plain).toBe(false)
  })
})
