/**
 * How many values did not fit their columns, by table and column, and how many records were rejected: what a
 * person has to know about tables that are complete in rows, but not in every cell.
 */

/** `column` is `extra` for fields that the schema does not have, if its mode notes them. */
export interface MisfitCount {
  readonly table: string
  readonly column: string
  readonly count: number
}

/** `table` is null for values that are not records, and for bodies that cannot be read. */
export interface RejectedCount {
  readonly table: string | null
  readonly count: number
}

/** One count per table and column, in the order in which they first appear. */
export const addUpMisfits = (all: Iterable<MisfitCount>): ReadonlyArray<MisfitCount> => {
  const sums = new Map<string, MisfitCount>()
  for (const each of all) {
    // Names are those of schemas: none has a dot.
    const key = `${each.table}.${each.column}`
    sums.set(key, { ...each, count: each.count + (sums.get(key)?.count ?? 0) })
  }
  return [...sums.values()]
}

export const addUpRejected = (all: Iterable<RejectedCount>): ReadonlyArray<RejectedCount> => {
  const sums = new Map<string | null, number>()
  for (const { table, count } of all) sums.set(table, count + (sums.get(table) ?? 0))
  return [...sums].flatMap(([table, count]) => (count > 0 ? [{ table, count }] : []))
}
