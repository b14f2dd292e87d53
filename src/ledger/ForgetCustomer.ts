/**
 * Takes a customer out of the ledger and its archive. Months of the archive are written again first, under
 * new names: the transaction that replaces the facts also says that they stand there. The old files go
 * last, and whoever repeats a removal that was cut off removes them.
 */
import { Effect } from "effect"
import type { DurableFiles } from "../base/DurableFile.ts"
import { rewriteArchives, tidyArchives } from "./ArchiveFiles.ts"
import type { StoredFact } from "./ArchiveFiles.ts"
import { readerOf, rowOf } from "./FactRows.ts"
import type { CustomerForgotten } from "./ForgetFacts.ts"
import type { Replacement } from "./ForgetInLedger.ts"
import { attempt } from "./LedgerFailed.ts"
import type { accessLedger } from "./LedgerTables.ts"
import { withoutCustomer } from "./WithoutCustomer.ts"
import type { Forgotten } from "./WithoutCustomer.ts"

export interface ForgetPlace {
  readonly tables: ReturnType<typeof accessLedger>
  readonly read: ReturnType<typeof readerOf>
  readonly files: DurableFiles
  /** Of the archive. */
  readonly folder: string
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
  const isKnown = read(tables.receipts()).some(
    ({ fact }) => fact._tag === "CustomerForgotten" && fact.receipt === receipt.receipt,
  )
  if (replacements.length > 0 || moved.length > 0 || !isKnown)
    tables.replace(forgotten.customer_id, [...replacements, ...moved], (sealed_from) =>
      isKnown ? undefined : rowOf({ _tag: "CustomerForgotten", sealed_from, ...receipt }, at),
    )
  tables.scrub()
  return replacements.length
}
