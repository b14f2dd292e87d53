/** Facts of the ledger with the plainest value of whatever a test does not name; what is undefined is left out. */
import type { Brand } from "effect"
import type { Fact } from "../../src/ledger/Fact.ts"

/** Any text stands for an id. */
type Plain<Field> = Field extends Brand.Brand<string> ? string : Field
type Of<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>
type Fields<Tag extends Fact["_tag"]> = {
  readonly [Name in keyof Omit<Of<Tag>, "_tag">]?: Plain<Of<Tag>[Name]> | undefined
}

const usual = {
  RunStarted: {},
  TaskPlanned: { features: [] },
  StartIntended: { attempt: 1, external_execution_id: "x", probe: false },
  StartAnswered: { attempt: 1, answer: "accepted" },
  AttemptClosed: { attempt: 1, status_code: "COMPLETED", status_reason: "COMPLETED" },
  AttemptDrained: { attempt: 1 },
  AttemptKept: { attempt: 1, families: [] },
  ResultsRead: { session_id: "s-1", http_status: 200, kind: "results", is_closed: true },
  AttachmentRead: { session_id: "s-1", status: "downloaded" },
  CredentialRejected: { fingerprint: "f-1", reason: "BLOCKED_USER" },
  TaskSettled: { outcome: "failed", reason: "FAILED", who_acts: "engineer" },
  RunPublished: { version: 1, receipts: [] },
  RunEnded: { exit_code: 0, leftovers: false },
} satisfies { readonly [Tag in Fact["_tag"]]?: Fields<Tag> }

export const aFact = <Tag extends keyof typeof usual>(_tag: Tag, fields: Fields<Tag>): Of<Tag> => {
  const all = Object.entries({ _tag, ...usual[_tag], ...fields })
  return Object.fromEntries(all.filter(([, value]) => value !== undefined)) as unknown as Of<Tag>
}

/** The beginning of a run `JOB.DATE`. */
export const runStarted = (run_id: string, more: Fields<"RunStarted"> = {}): Of<"RunStarted"> => {
  const [job = "", run_date = ""] = run_id.split(".")
  const job_path = `${more.job ?? job}.yaml`
  return aFact("RunStarted", { run_id, job, job_path, run_date, tool_version: "0.1.0", ...more })
}
