/**
 * Which parts of a fact may contain a secret that the service repeated: everything except the fields named
 * here. Those are our own ids and words, and the ids that are needed to resume a run and to call the service.
 */
import { cleanValue } from "../privacy/CleanValue.ts"
import type { KnownSecrets } from "../privacy/KnownSecrets.ts"
import type { Fact } from "./Fact.ts"

/** A field that is not listed here is cleaned; `test/ledger/CleanFact.test.ts` checks all of them. */
export const keptFields: ReadonlySet<string> = new Set([
  // ids
  "run_id",
  "parent",
  "task_id",
  "customer_id",
  "engine_reference",
  "external_execution_id",
  "execution_id",
  "session_id",
  "attachment_id",
  "fingerprint",
  "account",
  "login",
  "password",
  "token_id",
  "name",
  // text of this program, or names from the job
  "_tag",
  "job",
  "job_path",
  "run_date",
  "missed",
  "tool_version",
  "answer",
  "kind",
  "outcome",
  "who_acts",
  "why",
  "basis",
  "status",
  "source",
  "sources",
  // paths of landed bodies and documents
  "landed",
  "landed_sha256",
  "sha256",
  "path",
])

export const cleanFact = (fact: Fact, known: KnownSecrets): Fact =>
  cleanValue(fact, known, "own", keptFields) as Fact
