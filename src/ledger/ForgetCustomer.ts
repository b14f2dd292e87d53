/**
 * Takes a customer out of the ledger and its archive. Months of the archive are written again first, under
 * new names: the transaction that replaces the facts also says that they stand there. The old files go
 * last, and whoever repeats a removal that was cut off removes them.
 */
import { isDeepStrictEqual } from "node:util"
import { Effect } from "effect"
import type { DurableFiles } from "../base/DurableFile.ts"
import { given } from "../base/Schemas.ts"
import type { CustomerForgotten, Fact, Recorded } from "./Fact.ts"
import { rowOf } from "./FactRows.ts"
import type { Replacement, accessLedger } from "./LedgerTables.ts"
import { rewriteArchives, tidyArchives } from "./LedgerArchive.ts"
import { attempt, type StoredFact } from "./LedgerKeys.ts"
import type { CredentialRejected } from "./LoginFacts.ts"
import type { RunPublished, StaleData } from "./RunFacts.ts"
import type { CustomerId } from "../service/Ids.ts"

// The words with which a message names another customer, kept here so that the name can be taken out again.

const removed = "a removed customer"

/** Who used the same login before; undefined if that customer was removed. */
export const thenUnder = (customer_id: string | undefined): string =>
  customer_id === undefined ? ` (then under ${removed})` : ` (then under customer ${customer_id})`

/** Whose token has the name that a task gives. */
export const belongsTo = (customer_id: string): string => `belongs to ${customer_id} on `

/** The message without this customer's id. */
const withoutName = (message: string, customer_id: string): string =>
  message
    .replaceAll(thenUnder(customer_id), thenUnder(undefined))
    .replaceAll(belongsTo(customer_id), belongsTo(removed))

// What becomes of each fact: one about the customer is replaced whole; of what a run says about many, only
// the customer's part goes. A rejected login stays rejected: its keyed hash names nobody.

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
  return { _tag, run_id, fingerprint, ...given({ login, account }), engine_reference, reason }
}

/** The message of another customer's task may name this one, and so may the words of a person. */
const unnamed = (fact: Fact, { customer_id }: Forgotten): Fact => {
  if (fact._tag === "CredentialReleased" && fact.because?.includes(customer_id) === true)
    return { ...fact, because: "(named a removed customer)" }
  if (fact._tag !== "TaskSettled" || fact.message === undefined) return fact
  const message = withoutName(fact.message, customer_id)
  return message === fact.message ? fact : { ...fact, message }
}

/** A customer is the first word of an example of old data. */
const staleWithout = ({ warned, failed, unknown }: typeof StaleData.Type, customer_id: CustomerId) => {
  const without = (beyond: typeof warned) =>
    beyond && { ...beyond, examples: beyond.examples.filter((one) => !one.startsWith(`${customer_id} `)) }
  return given({ unknown, warned: without(warned), failed: without(failed) })
}

/** What a publication says about all customers, without this one's part: counts stay as they were. */
const publishedWithout = (
  fact: typeof RunPublished.Type,
  { customer_id, tasks, executions }: Forgotten,
): typeof RunPublished.Type => {
  const { left_out = [], delivered = [], stale, ...rest } = fact
  const others = <One extends { readonly task_id: string }>(all: ReadonlyArray<One>) => {
    const left = all.filter(({ task_id }) => !tasks.has(task_id))
    return left.length === 0 ? undefined : left
  }
  const without: typeof RunPublished.Type = {
    ...rest,
    receipts: fact.receipts.filter(({ execution_id }) => !executions.has(execution_id)),
    ...given({
      left_out: others(left_out),
      delivered: others(delivered),
      stale: stale && staleWithout(stale, customer_id),
    }),
  }
  return isDeepStrictEqual(without, fact) ? fact : without
}

/** What a fact becomes: pure. The same object if nothing in it is about the customer. */
export const withoutCustomer = (fact: Fact, forgotten: Forgotten, receipt: string): Fact => {
  if (fact._tag === "RunPublished") return publishedWithout(fact, forgotten)
  if (!isAbout(fact, forgotten)) return unnamed(fact, forgotten)
  if (fact._tag === "CredentialRejected") return anonymous(fact)
  const run_id = "run_id" in fact ? fact.run_id : undefined
  return { _tag: "FactForgotten", receipt, ...given({ run_id }) }
}

/** What reads and changes a ledger with its archive. */
export interface LedgerPlace {
  readonly tables: ReturnType<typeof accessLedger>
  readonly files: DurableFiles
  /** Of the archive. */
  readonly folder: string
}

interface ForgetPlace extends LedgerPlace {
  readonly read: (rows: Iterable<StoredFact>) => ReadonlyArray<Recorded>
}

type Receipt = Omit<CustomerForgotten, "_tag" | "sealed_from">

/** Returns how many facts were replaced. */
export const forgetCustomer = Effect.fnUntraced(function* (
  place: ForgetPlace,
  forgotten: Forgotten,
  { at, receipt }: { readonly at: number; readonly receipt: Receipt },
) {
  const { tables, read, files, folder } = place
  const change = (stored: StoredFact): StoredFact => {
    const [recorded] = mayName(stored.body, forgotten) ? read([stored]) : []
    if (recorded === undefined) return stored
    const fact = withoutCustomer(recorded.fact, forgotten, receipt.receipt)
    return fact === recorded.fact ? stored : { ...stored, body: rowOf(fact, recorded.at).body }
  }
  const archives = yield* attempt(() => tables.archives())
  const { moved, changed } = yield* rewriteArchives(files, folder, archives, change)
  return yield* attempt(() => {
    const told = moved.map(({ seq, at: then, fact }) => ({ seq, row: rowOf(fact, then) }))
    const replaced = replaceIn(place, forgotten, { at, receipt, moved: told })
    tidyArchives(files, folder, tables.archives())
    return replaced + changed
  })
})

/** Whether it is worth a closer look: every fact about the customer names the id. */
const mayName = (body: string, { customer_id }: Forgotten): boolean =>
  body.includes(JSON.stringify(customer_id).slice(1, -1)) || body.includes('"_tag":"RunPublished"')

const replaceIn = (
  { tables, read }: ForgetPlace,
  forgotten: Forgotten,
  {
    at,
    receipt,
    moved,
  }: { readonly at: number; readonly receipt: Receipt; readonly moved: ReadonlyArray<Replacement> },
): number => {
  const replacements = read(tables.maybeAbout([...forgotten.tasks], forgotten.customer_id)).flatMap(
    (recorded) => {
      const fact = withoutCustomer(recorded.fact, forgotten, receipt.receipt)
      return fact === recorded.fact ? [] : [{ seq: recorded.seq, row: rowOf(fact, recorded.at) }]
    },
  )
  const known = read(tables.receipts()).filter(
    ({ fact }) => fact._tag === "CustomerForgotten" && fact.receipt === receipt.receipt,
  )
  // It counts what has come since, too.
  const counted = known.flatMap(({ seq, at: then, fact }) => {
    const now = { ...fact, ...receipt } as Fact
    return isDeepStrictEqual(fact, now) ? [] : [{ seq, row: rowOf(now, then) }]
  })
  if (replacements.length + moved.length + counted.length > 0 || known.length === 0)
    tables.replace(forgotten.customer_id, [...replacements, ...moved, ...counted], (sealed_from) =>
      known.length > 0 ? undefined : rowOf({ _tag: "CustomerForgotten", sealed_from, ...receipt }, at),
    )
  tables.scrub()
  return replacements.length
}
