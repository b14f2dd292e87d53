/**
 * How much of long texts a table may hold. A database reads 2,048 rows of a text at once and holds all of them in
 * memory. Texts up to `shortUnits` may stand in each of them; what is longer fills a bucket that each row drains
 * by as much, so that no 2,048 rows of a run hold more than twice `bucketUnits`, whatever the bodies hold.
 */
import { BoundBroken } from "../contract/BodyBounds.ts"

/** UTF-16 units. */
const shortUnits = 64 * 1024
const bucketUnits = 128 * 1024 * 1024

export class LongTexts {
  #levels = new Map<string, number>()

  /** Counts one row of a table and the text of it that has no natural length; throws where it does not fit. */
  add(table: string, units: number): void {
    const level = Math.max(0, (this.#levels.get(table) ?? 0) - shortUnits)
    const filled = units > shortUnits ? level + units : level
    if (filled > bucketUnits)
      throw new BoundBroken(`${table} could not hold its long texts beside those before them`)
    this.#levels.set(table, filled)
  }

  /** Puts everything back as it is now. */
  mark(): () => void {
    const levels = new Map(this.#levels)
    return () => {
      this.#levels = levels
    }
  }
}
