/**
 * Limits the long texts of a table. DuckDB reads 2,048 rows of a column at once and keeps all their texts in
 * memory. Every row may have a text of up to `shortUnits`; longer ones fill a bucket that each row drains by
 * that amount, so that no 2,048 rows of a run have more than twice `bucketUnits`, whatever bodies contain.
 */
import { BoundBroken } from "../service/BodyBounds.ts"

/** UTF-16 units. */
const shortUnits = 64 * 1024
const bucketUnits = 64 * 1024 * 1024

export class LongTexts {
  #levels = new Map<string, number>()

  /** Counts one row of a table and its text; throws if the text does not fit. */
  add(table: string, units: number): void {
    const before = this.#levels.get(table)
    if (before === undefined && units <= shortUnits) return
    const level = Math.max(0, (before ?? 0) - shortUnits)
    const filled = units > shortUnits ? level + units : level
    if (filled > bucketUnits) throw new BoundBroken(`${table} has no room left for its long texts`)
    this.#levels.set(table, filled)
  }

  /** Restores what was counted until now. */
  mark(): () => void {
    const levels = new Map(this.#levels)
    return () => {
      this.#levels = levels
    }
  }
}
