/**
 * How a family of records is made: the kinds (sub-families) it deals in turn, how many a source usually
 * has, and the maker of one record. Kinds follow from the position alone, so that products can be counted
 * without making records.
 */
import type { Draw } from "./Seeded.ts"

export interface RecordContext {
  readonly seed: number
  readonly customer_id: string
  readonly engine_reference: string
  readonly position: number
  readonly kind: string
  readonly detailed: boolean
  readonly draw: Draw
}

/** A record without `product`, `sub_family` and `fetch_date`, which every record gets. */
export type RecordBody = Readonly<Record<string, unknown>>

export interface RecordFamily {
  readonly product: string
  readonly kinds: readonly [string, ...ReadonlyArray<string>]
  /** How many records a source has, when no word says it: both bounds included. */
  readonly usual: readonly [min: number, max: number]
  readonly make: (context: RecordContext) => RecordBody
}

/** An amount of money as text with two decimals, as banks print it. */
export const amountOf = (draw: Draw, min: number, max: number): string =>
  (draw.int(min * 100, max * 100) / 100).toFixed(2)
