/**
 * What a publication says about the tables, for people: gates that held it back, runs whose files are
 * missing, answers that are not in the tables, columns whose values did not fit, records that were rejected.
 * All of it comes from the fact of the newest publication.
 */
import { counted, listed } from "../base/Counted.ts"
import type { RunHeld } from "../ledger/RunFacts.ts"
import type { RunState } from "../ledger/RunState.ts"
import type { StaleData } from "../ledger/StaleData.ts"
import type { DeltaNote, MisfitCount, OtherRecords, RejectedCount } from "../ledger/TableNotes.ts"
import { told } from "../messages/Catalogue.ts"

const namedMax = 3

/** Tables of earlier runs that could not be published again completely. */
const gapWarnings = (without: ReadonlyArray<string>): ReadonlyArray<string> =>
  without.length === 0 ? [] : [told("tables-incomplete", { runs: listed(without, namedMax) })]

/** Bodies that are landed but not in the tables; the first is named. */
const leftOutWarnings = ({ started, published }: RunState): ReadonlyArray<string> => {
  const { left_out = [] } = published?.fact ?? {}
  const [first] = left_out
  if (first === undefined) return []
  const where = `landing/${started.run_id}/${first.where}`
  const answers = counted(left_out.length, "answer")
  return [told("answers-left-out", { answers, where, reason: first.reason })]
}

const sum = (counts: ReadonlyArray<{ readonly count: number }>): number =>
  counts.reduce((total, { count }) => total + count, 0)

/** One line per table, the columns with the most misfits first. */
const misfitWarnings = (
  id: "values-misfit" | "values-unfit",
  misfits: ReadonlyArray<MisfitCount>,
): ReadonlyArray<string> =>
  [...Map.groupBy(misfits, ({ table }) => table)].map(([table, own]) => {
    const columns = own
      .toSorted((a, b) => b.count - a.count)
      .map(({ column, count }) => `${table}.${column} (${count})`)
    return told(id, { values: counted(sum(own), "value"), columns: listed(columns, namedMax) })
  })

const rejectedWarnings = (rejected: ReadonlyArray<RejectedCount>): ReadonlyArray<string> => {
  const records = rejected.filter(({ table }) => table !== null)
  const strays = rejected.filter(({ table }) => table === null)
  const tables = records
    .toSorted((a, b) => b.count - a.count)
    .map(({ table, count }) => `${table ?? ""} (${count})`)
  return [
    ...(records.length === 0
      ? []
      : [
          told("records-rejected", {
            records: counted(sum(records), "record"),
            tables: listed(tables, namedMax),
          }),
        ]),
    ...(strays.length === 0 ? [] : [told("values-stray", { values: counted(sum(strays), "value") })]),
  ]
}

/** The values of `records-without-schema`: the same words in the summary of a run and in `doctor`. */
export const otherRecordsTold = ({ records, families, most }: OtherRecords) => {
  const names = most.slice(0, namedMax).map((one) => `${one.product} of ${one.sub_family} (${one.records})`)
  return {
    records: counted(records, "record"),
    families: counted(families, "family", "families"),
    names: `${names.join(", ")}${families > names.length ? ` and ${families - names.length} more` : ""}`,
  }
}

const otherWarnings = (other: OtherRecords | undefined): ReadonlyArray<string> =>
  other === undefined || other.records === 0 ? [] : [told("records-without-schema", otherRecordsTold(other))]

export interface FromTables {
  /** The gates that held the tables of the run back, and where they are kept; absent if none did. */
  readonly held?: Pick<typeof RunHeld.Type, "database" | "gates">
  /** Data that is older than the job allows; absent if there is none. */
  readonly stale?: StaleData
}

export const fromTables = ({ held, published }: RunState): FromTables => ({
  ...(held === undefined ? {} : { held: { database: held.fact.database, gates: held.fact.gates } }),
  ...(published?.fact.stale === undefined ? {} : { stale: published.fact.stale }),
})

const staleWarnings = (stale: StaleData | undefined): ReadonlyArray<string> => [
  ...(stale?.failed === undefined ? [] : [told("data-too-old", tellStale(stale.failed))]),
  ...(stale?.warned === undefined ? [] : [told("data-old", tellStale(stale.warned))]),
  ...(stale?.unknown === undefined ? [] : [told("freshness-unknown", { why: stale.unknown })]),
]

const tellStale = ({ days, count, examples }: NonNullable<StaleData["warned"]>) => ({
  features: counted(count, "feature"),
  age: counted(days, "day"),
  examples: `${examples.join(", ")}${count > examples.length ? ` and ${count - examples.length} more` : ""}`,
})

/** One line per gate, then where the version is. */
const gateWarnings = ({ held }: RunState): ReadonlyArray<string> =>
  held === undefined
    ? []
    : [
        ...held.fact.gates.map(({ gate, expected, found }) => told("gate-failed", { gate, expected, found })),
        told("version-held", { database: held.fact.database }),
      ]

/** Logs that fail do so for one reason, most often; of tables that are left out each needs to be named. */
export const deltaWarnings = (notes: ReadonlyArray<DeltaNote>): ReadonlyArray<string> => {
  const failed = notes.filter(({ is_left_out }) => is_left_out !== true)
  const [first] = failed
  const tables = listed(
    failed.map(({ table }) => table),
    namedMax,
  )
  return [
    ...(first === undefined ? [] : [told("delta-log-failed", { tables, why: first.why })]),
    ...notes
      .filter(({ is_left_out }) => is_left_out === true)
      .map(({ table, why }) => told("delta-left-out", { table, why })),
  ]
}

export const tableWarnings = (run: RunState): ReadonlyArray<string> => {
  const {
    without = [],
    misfits = [],
    rejected = [],
    other,
    unfit = [],
    gone = [],
    models = [],
    delta = [],
    stale,
  } = run.published?.fact ?? {}
  return [
    ...gateWarnings(run),
    ...staleWarnings(stale),
    ...gapWarnings(without),
    ...leftOutWarnings(run),
    ...misfitWarnings("values-misfit", misfits),
    ...rejectedWarnings(rejected),
    ...otherWarnings(other),
    ...misfitWarnings("values-unfit", unfit),
    ...models.map(({ name, why }) => told("model-failed", { name, why })),
    ...deltaWarnings(delta),
    ...(gone.length === 0 ? [] : [told("schemas-gone", { tables: listed(gone, namedMax) })]),
  ]
}
