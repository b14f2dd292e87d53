/** One fact of each kind with every field that it may have, and one for each word that a field may hold. */
import { flowResultsSource } from "../../src/service/FlowResults.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { said } from "../service/Said.ts"
import { anId } from "../harness/Id.ts"

export const everyRun = anId("job.2026-11-21")
const run_id = everyRun
const task = { run_id, task_id: anId(`${run_id}/c-1/bank`) }
const attempt = { ...task, attempt: 2 }
const execution_id = anId("e-1")
const session_id = anId("s-1")
const access = { customer_id: anId("c-1"), engine_reference: anId("bank") }
const landed = { segment: "segment-000001.njl", offset: 7, bytes: 2, sha256: "ab" }
const families = [{ family: "a:b", counted: 2, landed: 1 }]
const token = { name: "c-1/bank", token_id: "t-1", ...access }
const old = (days: number) => ({ days, count: 1, examples: ["c-1 bank accounts_read"] })
const misfit = { table: "profiles", column: "name", count: 3 }
const steered = { _tag: "RunSteered", run_id } as const
const state = { status_code: "COMPLETED", status_reason: "DONE", authentication_status: "AUTH_OK" }

const ofRuns: ReadonlyArray<Fact> = [
  {
    _tag: "RunStarted",
    run_id,
    job: "job",
    job_path: "job.yaml",
    run_date: "2026-11-21",
    parent: "job.2026-11-20",
    tool_version: "0.1.0",
    missed: ["2026-11-19"],
    ahead: "job.2026-12-21",
  },
  { _tag: "ResultsSourcesSet", run_id, sources: [flowResultsSource] },
  { _tag: "RunResumed", run_id },
  { ...steered, order: "pause" },
  { ...steered, order: "resume", because: "pause_over" },
  { ...steered, order: "drain" },
  { ...steered, order: "limit", max_in_flight: 3, per_engine: 2 },
  { _tag: "TroubleBegan", run_id, trouble: "silent", since: "t", message: "no answer" },
  { _tag: "TroubleBegan", run_id, trouble: "throttled", since: "t", message: "429" },
  {
    _tag: "TroubleEnded",
    run_id,
    trouble: "engine",
    engine_reference: anId("bank"),
    since: "t",
    failures: 3,
  },
  { _tag: "InterimPublished", run_id, version: 3, tasks: 39, of: 40 },
  { _tag: "InterimRefused", run_id, message: "keys: 1 key of runs" },
  {
    _tag: "RunPublished",
    run_id,
    version: 3,
    without: ["job.2026-11-20"],
    receipts: [{ execution_id, landed_sha256: "ab", whole: true }],
    left_out: [
      { task_id: task.task_id, attempt: 2, execution_id, where: "segment-000001.njl:7", reason: "?" },
    ],
    delivered: [{ task_id: task.task_id, features: ["accounts_read"] }],
    misfits: [misfit],
    rejected: [
      { table: null, count: 1 },
      { table: "profiles", count: 2 },
    ],
    unfit: [misfit],
    models: [{ name: "model", why: "no such column" }],
    gone: ["profiles"],
    stale: { warned: old(3), failed: old(7), unknown: "the tables cannot be read" },
  },
  { _tag: "RunHeld", run_id, database: "held", gates: [{ gate: "rows", expected: "2", found: "1" }] },
  { _tag: "RunAccepted", run_id },
  {
    _tag: "RunEnded",
    run_id,
    exit_code: 4,
    leftovers: true,
    kept: 1,
    unread: 1,
    elsewhere: [{ run_id, service: "https://old.example", executions: 1 }],
    changes: { since: "job.2026-11-20", new: 1, still: 2, mended: 3 },
  },
  { _tag: "OutcomePublished", run_id },
  { _tag: "LandingPruned", run_id, bytes: 5 },
  { _tag: "AttachmentsPruned", run_id, bytes: 6 },
  { _tag: "FactsArchived", run_id, file: "2026-11.ndjson.zst", frames: [] },
]

const ofTasks: ReadonlyArray<Fact> = [
  { _tag: "TaskPlanned", ...task, ...access, features: ["accounts_read"], fingerprint: "f-1", session_id },
  { _tag: "TaskWaits", ...task, reason: "ENGINE_OFFLINE", until: "2026-11-21T03:00:00Z" },
  {
    _tag: "StartIntended",
    ...attempt,
    external_execution_id: "x-2",
    fingerprint: "f-1",
    token_id: "t-1",
    probe: true,
    max_wait: 1,
    results_off: true,
    service: "https://new.example",
  },
  ...(["accepted", "adopted", "refused", "not_created", "foreign", "taken", "unusable", "lost"] as const).map(
    (answer): Fact => ({
      _tag: "StartAnswered",
      ...attempt,
      answer,
      http_status: 202,
      status_reason: "DONE",
      execution_id,
      session_id,
    }),
  ),
  { _tag: "OrphanSuspected", ...attempt, external_execution_id: "x-2" },
  { _tag: "AttemptObserved", ...attempt, execution_id, session_id, ...state },
  ...(["challenge", "max_wait", "deadline"] as const).map((why): Fact => ({
    _tag: "AbortIntended",
    ...attempt,
    execution_id,
    why,
  })),
  {
    _tag: "AttemptClosed",
    ...attempt,
    execution_id,
    session_id,
    ...state,
    products_count: { "a:b@p": 2 },
    took: 68_000,
    landed,
  },
  ...(["counted", "final", "unwanted"] as const).map((basis): Fact => ({
    _tag: "AttemptDrained",
    ...attempt,
    execution_id,
    proof: { basis, families },
  })),
  ...(["RECORDS_SHORT", "RECORDS_UNREACHABLE", "DOCUMENTS_SHORT", "ANSWER_UNUSABLE"] as const).map(
    (reason): Fact => ({
      _tag: "AttemptKept",
      ...attempt,
      execution_id,
      reason,
      families,
      message: "a:b 1 of 2",
    }),
  ),
  { _tag: "AttemptDisowned", ...attempt, execution_id },
  { _tag: "AttemptFound", ...attempt, execution_id, service: "https://new.example" },
  { _tag: "AnswerRefused", ...task, execution_id, what: "state", why: "too deep", landed },
  ...(["results", "profile"] as const).map((kind): Fact => ({
    _tag: "ResultsRead",
    ...task,
    session_id,
    execution_id,
    http_status: 200,
    kind,
    source: "flow_results",
    is_closed: true,
    landed,
  })),
  ...(["downloaded", "missing", "refused", "not_delivered", "failed"] as const).map((status): Fact => ({
    _tag: "AttachmentRead",
    ...task,
    session_id,
    attachment_id: "a-1",
    status,
    media_type: "application/pdf",
    bytes: 9,
    sha256: "cd",
    path: "attachments/cd",
  })),
  ...(["succeeded", "partial", "failed", "skipped", "unfinished"] as const).map((outcome): Fact => ({
    _tag: "TaskSettled",
    ...task,
    outcome,
    reason: said("FAILED"),
    who_acts: "engineer",
    message: "a message",
  })),
  { _tag: "CredentialRejected", ...task, fingerprint: "f-1", ...access, reason: "BLOCKED_USER" },
  {
    _tag: "CredentialRejected",
    ...task,
    fingerprint: "f-1",
    account: "a-1",
    ...access,
    reason: "BLOCKED_USER",
  },
  {
    _tag: "LoginJudged",
    ...attempt,
    account: "a-1",
    password: "p-1",
    fingerprint: "f-1",
    verdict: "unproven",
    said: "502",
  },
  { _tag: "LoginAccepted", ...task, account: "a-1" },
  { _tag: "DeleteIntended", ...task, execution_id, landed_sha256: "ab" },
  ...(["deleted", "gone", "pending"] as const).map((outcome): Fact => ({
    _tag: "DeleteAnswered",
    ...task,
    execution_id,
    http_status: 204,
    outcome,
  })),
]

const ofTokens: ReadonlyArray<Fact> = [
  { _tag: "TicketIssued", ...attempt, execution_id },
  { _tag: "TicketDropped", ...attempt, execution_id, reason: "REFUSED" },
  { _tag: "TokenStored", ...task, ...token, features: ["accounts_read"], expires_at: 9 },
  { _tag: "TokenExpiring", ...task, ...token, expires_at: 9 },
  { _tag: "TokenDropped", ...task, ...token, reason: "LOCKED" },
  { _tag: "TokenRevoked", ...token },
]

const counts = {
  runs: 1,
  facts: 2,
  bodies: 3,
  documents: 4,
  rows: 5,
  held: 6,
  tokens: 7,
  recordings: 8,
  deleted: 9,
  given_up: 10,
  left_at_service: 11,
  logins_kept: 12,
}

export const everyFact: ReadonlyArray<Fact> = [
  ...ofRuns,
  ...ofTasks,
  ...ofTokens,
  { _tag: "CredentialReleased", fingerprint: "f-1" },
  { _tag: "FactForgotten", run_id, receipt: "receipt-1" },
  { _tag: "CustomerForgotten", receipt: "receipt-1", sealed_from: 1, ...counts },
  { _tag: "ForgetFinished", receipt: "receipt-1" },
]
