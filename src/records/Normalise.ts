/**
 * Bodies in, rows out: every record becomes a row of its family's table with those of its lists, or a whole
 * row of `other_records` if no family claims it, or of `rejected_records` if its schema refuses it. Rows
 * found = rows written, and no record affects its neighbours.
 */
import { LongTexts, timestampCell, type Cell } from "./ColumnData.ts"
import { TableBuilder, type Disguise } from "./Columns.ts"
import { fetchedIn, isMisfit, lineageCells, routesOf, type Lineage } from "./CompileFamily.ts"
import { findRecords, isWithinDepth, namesOf, nothingCounted, pathText, tallyOf } from "./FindRecords.ts"
import { recordDepthMax, type Counts, type FoundRecord } from "./FindRecords.ts"
import { jsonText, type Json } from "./ExactNumber.ts"
import { canonicalText, numbered, numberedId, ownerOf, recordIds } from "./RecordIdentity.ts"
import type { FetchedOf, RecordIds } from "./RecordIdentity.ts"
import type { RecordFamily } from "./RecordSchema.ts"
import { markAll } from "./Flush.ts"
import { addUpFamilies, addUpMisfits, addUpRejected } from "./Misfits.ts"
import type { FamilyCount, MisfitCount, RejectedCount } from "../ledger/RunFacts.ts"
import { otherRecordsTable, recordTables, rejectedRecordsTable } from "./RecordTables.ts"

/** What other bodies of the same session contained: it may be read from several endpoints. */
export interface Beside {
  /** By content, the ids of records that are in the tables; those of this body are added, in order. */
  readonly seen: Map<string, ReturnType<IdsOfBody["of"]>>
  /** How many of them have the same id but for its number: the endpoints share the numbers. */
  readonly placed: Map<string, number>
  /** Families that another body has completely: this body only repeats them. */
  readonly isHeld: (sub_family: string) => boolean
}

/** For the first body of a session. */
export const nothingBeside = (): Omit<Beside, "isHeld"> => ({ seen: new Map(), placed: new Map() })

/** `isRepeated`: the tables have the record already. */
type IdsBeside = RecordIds & { readonly isRepeated?: true }

const idsBeside = (
  { seen, placed, isHeld }: Beside,
  sub_family: string,
  content: string,
  inBody: ReturnType<IdsOfBody["of"]>,
): IdsBeside => {
  const before = seen.get(content)
  if (before !== undefined || isHeld(sub_family)) return { ...(before ?? inBody), isRepeated: true }
  const { first } = inBody
  const occurrence = placed.get(first) ?? 0
  const ids = { ...inBody, record_id: numberedId(first, occurrence) }
  placed.set(first, occurrence + 1)
  seen.set(content, ids)
  return ids
}

/** Values that are not records are reported, but cut: a few of them must not fill the database. */
const strayTextMax = 65_536

/** Where a record was written; `refusedFor` is the table that it would have gone to. */
type Placement =
  | { readonly _tag: "InTable"; readonly table: string; readonly misfits: ReadonlyArray<MisfitCount> }
  | { readonly _tag: "Other" }
  | { readonly _tag: "Rejected"; readonly refusedFor: string }
  | { readonly _tag: "Repeated" }

/** How the records of one body get their ids: equal ones are told apart by their number in it. */
interface IdsOfBody {
  readonly of: ReturnType<typeof recordIds>
  readonly nth: ReturnType<typeof numbered>
  readonly named: Map<unknown, string> | undefined
}

export class Normaliser {
  readonly #builders: ReadonlyMap<string, TableBuilder>
  readonly #fetchedOf: FetchedOf
  readonly #routeOf: ReturnType<typeof routesOf>
  readonly #other: TableBuilder
  readonly #rejected: TableBuilder
  readonly #longTexts = new LongTexts()

  constructor(families: ReadonlyArray<RecordFamily>, disguise?: Disguise) {
    const builders = new Map(
      recordTables(families).map((spec) => [spec.name, new TableBuilder(spec, disguise)]),
    )
    const builder = (name: string): TableBuilder => builders.get(name)!
    this.#builders = builders
    this.#fetchedOf = fetchedIn(families)
    this.#routeOf = routesOf(families, this.#fetchedOf, builder)
    this.#other = builder(otherRecordsTable.name)
    this.#rejected = builder(rejectedRecordsTable.name)
  }

  /** One rejected row for a body that cannot be read at all. */
  refuse(lineage: Lineage, reason: string): Counts {
    const ids = recordIds(ownerOf(lineage))({ product: "", sub_family: "", key: undefined, content: reason })
    this.#reject(lineage, ids, null, null, reason, "", null)
    return { ...nothingCounted, strays: 1, refusedFor: [{ table: null, count: 1 }] }
  }

  /** Returns what takes everything back that is added from here on; valid until the next `flush`. */
  mark(beside: Beside | undefined): () => void {
    const takeBackRows = markAll(this.#builders.values())
    const takeBackTexts = this.#longTexts.mark()
    const { seen, placed } = beside ?? nothingBeside()
    const seenBefore = seen.size
    return () => {
      takeBackRows()
      takeBackTexts()
      for (const [content, { first }] of [...seen].slice(seenBefore)) {
        seen.delete(content)
        placed.set(first, placed.get(first)! - 1)
      }
    }
  }

  /** Adds all records of one body's `data`, of which some are here if it throws. `named` gets their ids. */
  add(lineage: Lineage, data: unknown, beside?: Beside, named?: Map<unknown, string>): Counts {
    const { records, strays } = findRecords(data)
    const ids = { of: recordIds(ownerOf(lineage)), nth: numbered(), named }
    const byTable: Record<string, number> = {}
    const byProduct = new Map<string, number>()
    const misfits: Array<MisfitCount> = []
    const refusedFor: Array<RejectedCount> = []
    const otherBy: Array<FamilyCount> = []
    let [rejected, repeated] = [0, 0]
    for (let i = 0; i < records.length; i++) {
      const record = records[i]!
      const placed = this.#route(lineage, record, ids, beside)
      if (placed._tag === "Repeated") {
        repeated++
        continue
      }
      byProduct.set(record.product, (byProduct.get(record.product) ?? 0) + 1)
      if (placed._tag === "Other") {
        const { product, sub_family } = record
        otherBy.push({ product, sub_family, records: 1 })
      } else if (placed._tag === "Rejected") {
        rejected++
        refusedFor.push({ table: placed.refusedFor, count: 1 })
      } else {
        byTable[placed.table] = (byTable[placed.table] ?? 0) + 1
        misfits.push(...placed.misfits)
      }
    }
    for (const { value, reason, place } of strays) {
      const text = jsonText(value)
      const own = ids.of({ product: "", sub_family: "", key: undefined, content: this.#contentOf(value) })
      const isLong = text.length > strayTextMax
      const told = isLong ? `${reason}; its ${text.length} characters are in landing` : reason
      this.#reject(lineage, own, ...namesOf(value), told, pathText(place), isLong ? null : text)
    }
    const other = otherBy.length
    const inTables = records.length - other - rejected - repeated
    return {
      records: records.length,
      inTables,
      other,
      rejected,
      repeated,
      byTable,
      byProduct,
      strays: strays.length,
      tally: tallyOf(records),
      misfits: addUpMisfits(misfits),
      otherBy: addUpFamilies(otherBy),
      refusedFor: addUpRejected([...refusedFor, { table: null, count: strays.length }]),
    }
  }

  /** Of what has no columns: canonical, or as it is written where it is nested too deep for that. */
  #contentOf(value: unknown): string {
    if (isWithinDepth(value)) return canonicalText(value, this.#fetchedOf)
    if (Array.isArray(value)) return jsonText(value)
    const fetched = this.#fetchedOf(value as Json)
    return jsonText(
      Object.fromEntries(Object.entries(value as object).filter(([name]) => !fetched.includes(name))),
    )
  }

  /** Writes one record's rows and returns where, unless it is already in the tables. */
  #route(
    lineage: Lineage,
    record: FoundRecord,
    { of, nth, named }: IdsOfBody,
    beside: Beside | undefined,
  ): Placement {
    const { value, product, sub_family, place } = record
    const route = this.#routeOf(product, sub_family)
    const isShallow = isWithinDepth(value)
    const result = isShallow ? route?.compiled(value, place) : undefined
    const cells = result === undefined || isMisfit(result) ? undefined : result
    const identity =
      route !== undefined && cells !== undefined
        ? route.identity(cells)
        : { key: undefined, content: this.#contentOf(value) }
    const inBody = of({ product, sub_family, ...identity })
    const ids: IdsBeside =
      beside === undefined ? inBody : idsBeside(beside, sub_family, nth(inBody.content_id), inBody)
    named?.set(value, ids.record_id)
    if (ids.isRepeated === true) return { _tag: "Repeated" }
    if (route !== undefined && cells !== undefined) {
      const { own, children, misfits } = cells
      const first = lineageCells(lineage, ids)
      this.#append(route.own, first, own)
      for (let i = 0; i < children.length; i++) {
        for (const row of children[i]!) this.#append(route.children[i]!, first, row)
      }
      return { _tag: "InTable", table: route.table, misfits }
    }
    if (route === undefined && isShallow) {
      const fetched = timestampCell(value["fetch_date"]) ?? null
      this.#append(this.#other, lineageCells(lineage, ids), [product, sub_family, fetched, jsonText(value)])
      return { _tag: "Other" }
    }
    const wrong =
      result !== undefined && isMisfit(result)
        ? result
        : { reason: `nested deeper than ${recordDepthMax} levels`, place }
    this.#reject(lineage, ids, product, sub_family, wrong.reason, pathText(wrong.place), jsonText(value))
    return { _tag: "Rejected", refusedFor: route?.table ?? otherRecordsTable.name }
  }

  #reject(
    lineage: Lineage,
    ids: RecordIds,
    product: string | null,
    sub_family: string | null,
    reason: string,
    path: string,
    whole: string | null,
  ): void {
    this.#append(this.#rejected, lineageCells(lineage, ids), [product, sub_family, reason, path, whole])
  }

  #append(builder: TableBuilder, lineage: ReadonlyArray<Cell>, cells: ReadonlyArray<Cell>): void {
    this.#longTexts.add(builder.spec.name, builder.appendAfter(lineage, cells))
  }

  /** The builders by table name. */
  tables(): ReadonlyMap<string, TableBuilder> {
    return this.#builders
  }
}
