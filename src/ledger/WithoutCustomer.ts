/**
 * What becomes of each fact when a customer is removed: pure. A fact about the customer is replaced whole; of
 * what a run says about many customers, only the customer's part goes. A rejected login stays rejected: its
 * fingerprint is a keyed hash and says nothing about whose login it is.
 */
import type { CustomerId } from "../contract/Ids.ts"
import type { CredentialRejected, Fact } from "./Fact.ts"
import { withoutName } from "./OtherCustomer.ts"

/** Whose facts are removed. A task id names its run, so it identifies the task in the whole ledger. */
export interface Forgotten {
  readonly customer_id: CustomerId
  readonly tasks: ReadonlySet<string>
  readonly executions: ReadonlySet<string>
}

const isAbout = (fact: Fact, { customer_id, tasks }: Forgotten): boolean =>
  ("task_id" in fact && fact.task_id !== undefined && tasks.has(fact.task_id)) ||
  ("customer_id" in fact && fact.customer_id === customer_id)

/** A rejection of which only the login's keyed fingerprint is left. */
const anonymous = ({
  _tag,
  run_id,
  fingerprint,
  engine_reference,
  reason,
}: typeof CredentialRejected.Type): Fact => ({ _tag, run_id, fingerprint, engine_reference, reason })

/** The message of another customer's task may name this one. */
const unnamed = (fact: Fact, { customer_id }: Forgotten): Fact => {
  if (fact._tag !== "TaskSettled" || fact.message === undefined) return fact
  const message = withoutName(fact.message, customer_id)
  return message === fact.message ? fact : { ...fact, message }
}

/** What a fact becomes: pure. The same object if nothing in it is about the customer. */
export const withoutCustomer = (
  fact: Fact,
  forgotten: Forgotten,
  { receipt, staysRejected }: { readonly receipt: string; readonly staysRejected: boolean },
): Fact => {
  if (fact._tag === "RunPublished") {
    const receipts = fact.receipts.filter(({ execution_id }) => !forgotten.executions.has(execution_id))
    const left_out = fact.left_out?.filter(({ task_id }) => !forgotten.tasks.has(task_id))
    const isSame = receipts.length === fact.receipts.length && left_out?.length === fact.left_out?.length
    if (isSame) return fact
    const { left_out: _, ...rest } = fact
    return { ...rest, receipts, ...(left_out === undefined || left_out.length === 0 ? {} : { left_out }) }
  }
  if (!isAbout(fact, forgotten)) return unnamed(fact, forgotten)
  if (fact._tag === "CredentialRejected" && staysRejected) return anonymous(fact)
  const run_id = "run_id" in fact ? fact.run_id : undefined
  return { _tag: "FactForgotten", receipt, ...(run_id === undefined ? {} : { run_id }) }
}
