/**
 * What becomes of each fact when a customer is removed: pure. A fact about the customer is replaced whole; of
 * what a run says about many customers, only the customer's part goes. A rejected login stays rejected: its
 * fingerprint is a keyed hash and says nothing about whose login it is.
 */
import { isDeepStrictEqual } from "node:util"
import type { CustomerId } from "../service/Ids.ts"
import type { Fact } from "./Fact.ts"
import type { CredentialRejected } from "./LoginFacts.ts"
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

/** Only the keyed hashes of the login and of its account are left. */
const anonymous = (rejected: typeof CredentialRejected.Type): Fact => {
  const { _tag, run_id, fingerprint, login, account, engine_reference, reason } = rejected
  const known = {
    ...(login === undefined ? {} : { login }),
    ...(account === undefined ? {} : { account }),
  }
  return { _tag, run_id, fingerprint, ...known, engine_reference, reason }
}

/** The message of another customer's task may name this one, and so may the words of a person. */
const unnamed = (fact: Fact, { customer_id }: Forgotten): Fact => {
  if (fact._tag === "CredentialReleased" && fact.because?.includes(customer_id) === true)
    return { ...fact, because: "(named a removed customer)" }
  if (fact._tag !== "TaskSettled" || fact.message === undefined) return fact
  const message = withoutName(fact.message, customer_id)
  return message === fact.message ? fact : { ...fact, message }
}

type RunPublished = Extract<Fact, { readonly _tag: "RunPublished" }>

/** A customer is the first word of an example of old data. */
const withoutExamples = <Beyond extends { readonly examples: ReadonlyArray<string> }>(
  beyond: Beyond,
  customer_id: CustomerId,
): Beyond => ({ ...beyond, examples: beyond.examples.filter((one) => !one.startsWith(`${customer_id} `)) })

/** What a publication says about all customers, without this one's part: counts stay as they were. */
const publishedWithout = (
  fact: RunPublished,
  { customer_id, tasks, executions }: Forgotten,
): RunPublished => {
  const { left_out = [], delivered = [], stale = {}, ...rest } = fact
  const isOther = ({ task_id }: { readonly task_id: string }) => !tasks.has(task_id)
  const { warned, failed, ...unknown } = stale
  const kept = {
    left_out: left_out.filter(isOther),
    delivered: delivered.filter(isOther),
    stale: {
      ...unknown,
      ...(warned === undefined ? {} : { warned: withoutExamples(warned, customer_id) }),
      ...(failed === undefined ? {} : { failed: withoutExamples(failed, customer_id) }),
    },
  }
  const without: RunPublished = {
    ...rest,
    receipts: fact.receipts.filter(({ execution_id }) => !executions.has(execution_id)),
    ...(kept.left_out.length === 0 ? {} : { left_out: kept.left_out }),
    ...(kept.delivered.length === 0 ? {} : { delivered: kept.delivered }),
    ...(fact.stale === undefined ? {} : { stale: kept.stale }),
  }
  return isDeepStrictEqual(without, fact) ? fact : without
}

/** What a fact becomes: pure. The same object if nothing in it is about the customer. */
export const withoutCustomer = (fact: Fact, forgotten: Forgotten, receipt: string): Fact => {
  if (fact._tag === "RunPublished") return publishedWithout(fact, forgotten)
  if (!isAbout(fact, forgotten)) return unnamed(fact, forgotten)
  if (fact._tag === "CredentialRejected") return anonymous(fact)
  const run_id = "run_id" in fact ? fact.run_id : undefined
  return { _tag: "FactForgotten", receipt, ...(run_id === undefined ? {} : { run_id }) }
}
