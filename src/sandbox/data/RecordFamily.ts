/**
 * How a family of records is made: the kinds (sub-families) it has in turn, how many a source usually has,
 * and the function that makes one record. Kinds depend only on the position, so that products can be
 * counted without making records.
 */
import type { ResolvedSettings } from "../state/FeatureSettings.ts"
import type { Draw } from "../state/Seeded.ts"

export interface RecordContext {
  readonly seed: number
  readonly customer_id: string
  readonly engine_reference: string
  readonly position: number
  readonly kind: string
  /** Its position among the records of its kind: what makes it the same record under other filters. */
  readonly nth: number
  readonly settings: ResolvedSettings
  /** Its protected fields were not unlocked. */
  readonly shielded: boolean
  /** The day of the start. */
  readonly today: string
  /** The customer is a company, whatever the seed. */
  readonly company: boolean
  readonly draw: Draw
}

/** What the number of records depends on if dates select them. */
export type DatesContext = Pick<
  RecordContext,
  "seed" | "customer_id" | "engine_reference" | "settings" | "today"
>

/** A record without `product`, `sub_family` and `fetch_date`, which every record gets. */
export type RecordBody = Readonly<Record<string, unknown>>

export interface RecordFamily {
  readonly product: string
  readonly kinds: readonly [string, ...ReadonlyArray<string>]
  /** How many records a source has if no word sets it: both limits included. */
  readonly usual: readonly [min: number, max: number]
  /** How many there are if dates select them, per kind; in place of `usual`. */
  readonly countByDates?: (context: DatesContext) => number
  readonly make: (context: RecordContext) => RecordBody
}

/** An amount of money as a string with two decimals, as banks print it. */
export const amountOf = (draw: Draw, min: number, max: number): string =>
  (draw.int(min * 100, max * 100) / 100).toFixed(2)
