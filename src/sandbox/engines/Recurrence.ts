/**
 * What happens at a source day after day: invoices, transactions, employments. They recur on days that
 * depend only on customer and source, so that the dates in a feature's settings (section 4.1) select from
 * the same history, whoever asks and when.
 */
import { dayNumber, numberedDay } from "../state/RelativeDate.ts"
import { seeded } from "../state/Seeded.ts"
import type { SeedInput } from "../state/Seeded.ts"

/** The occurrence `n` is on day `offset + n * everyDays` since 1970-01-01. */
export interface Recurrence {
  readonly everyDays: number
  readonly offset: number
}

export const recurrenceOf = (
  [min, max]: readonly [min: number, max: number],
  ...inputs: ReadonlyArray<SeedInput>
): Recurrence => {
  const draw = seeded("recurrence", ...inputs)
  const everyDays = draw.int(min, max)
  return { everyDays, offset: draw.int(0, everyDays - 1) }
}

export const occurrenceDay = ({ everyDays, offset }: Recurrence, occurrence: number): string =>
  numberedDay(offset + occurrence * everyDays)

/** The newest occurrence up to `day`, that day included. */
export const newestOccurrence = ({ everyDays, offset }: Recurrence, day: string): number =>
  Math.floor((dayNumber(day) - offset) / everyDays)

/** How many occurrences there are from one day to another, both included. */
export const countOccurrences = (recurrence: Recurrence, from: string, to: string): number => {
  const before = Math.ceil((dayNumber(from) - recurrence.offset) / recurrence.everyDays)
  return Math.max(0, newestOccurrence(recurrence, to) - before + 1)
}
