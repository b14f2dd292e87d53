/**
 * What of a fact may hold a secret that the service repeated: everything but the fields named here. Those are
 * our own ids and words, and the ids that resuming a night and asking the service rest on.
 */
import { cleanValue } from "../secrets/CleanValue.ts"
import type { KnownSecrets } from "../secrets/KnownSecrets.ts"
import type { Fact } from "./Fact.ts"

/** A field that is not here is cleaned; `test/ledger/CleanFact.test.ts` goes through all of them. */
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
  "token_id",
  "name",
  // what this program says in words of its own, or takes from the job
  "_tag",
  "job",
  "job_path",
  "run_date",
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
  // where landed bodies and documents stand
  "landed",
  "landed_sha256",
  "sha256",
  "path",
])

export const cleanFact = (fact: Fact, known: KnownSecrets): Fact =>
  cleanValue(fact, known, "own", keptFields) as Fact
