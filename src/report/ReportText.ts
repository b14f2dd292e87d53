/**
 * The words that the report's sections share: times in one zone, durations, shares, and what each change is
 * called.
 */
import { span } from "./TextTable.ts"
import type { ChangeKind } from "./Changes.ts"

export interface Clock {
  /** `2026-11-22 23:05`, or with seconds. */
  readonly moment: (at: number) => string
  /** `23:05`. */
  readonly time: (at: number) => string
}

export const clockIn = (timeZone: string): Clock => {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  })
  const partsAt = (at: number) =>
    Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
  return {
    moment: (at) => {
      const { year, month, day, hour, minute } = partsAt(at)
      return `${year}-${month}-${day} ${hour}:${minute}`
    },
    time: (at) => {
      const { hour, minute } = partsAt(at)
      return `${hour}:${minute}`
    },
  }
}

export const duration = (ms: number | undefined): string => (ms === undefined ? "–" : span(ms))

/** `0 %`, `<1 %`, `12 %`. */
export const share = (part: number, whole: number): string => {
  if (whole === 0 || part === 0) return "0 %"
  const percent = (100 * part) / whole
  return percent < 1 ? "<1 %" : `${Math.floor(percent)} %`
}

export const changeTitles: Readonly<Record<ChangeKind, string>> = {
  new: "New",
  still: "Unchanged",
  mended: "Resolved",
}
