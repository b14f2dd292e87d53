/**
 * Dates of feature settings (section 4.1): a date, or a relative phrase such as `30 days ago`, resolved at
 * the time of the start. The grammar of the phrases is not shown beyond its examples; own choice: `today`,
 * `yesterday` and `<n> days|weeks|months|years ago`. Days are those of UTC.
 */

const dayMs = 86_400_000
const phrase = /^(\d{1,4}) (day|week|month|year)s? ago$/
const written = /^(\d{4})-(\d{2})-(\d{2})(T.*)?$/

/** `YYYY-MM-DD` of a moment. */
export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** The number of a day since 1970-01-01, and back. */
export const dayNumber = (day: string): number => Math.floor(Date.parse(`${day}T00:00:00Z`) / dayMs)
export const numberedDay = (number: number): string => dayOf(number * dayMs)

/** The same day some months earlier; the 31st becomes the last day of a shorter month. */
export const monthsBefore = (at: number, months: number): string => {
  const date = new Date(at)
  const first = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months, 1)
  const month = new Date(first)
  const last = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 0)).getUTCDate()
  return dayOf(first + (Math.min(date.getUTCDate(), last) - 1) * dayMs)
}

const ago = (count: number, unit: string, at: number): string => {
  switch (unit) {
    case "day":
      return dayOf(at - count * dayMs)
    case "week":
      return dayOf(at - count * 7 * dayMs)
    case "month":
      return monthsBefore(at, count)
    default:
      return monthsBefore(at, 12 * count)
  }
}

const isCalendarDay = (day: string): boolean =>
  !Number.isNaN(Date.parse(`${day}T00:00:00Z`)) && dayOf(Date.parse(`${day}T00:00:00Z`)) === day

/** The day that a text means at `at`, as `YYYY-MM-DD`; undefined if it is neither a date nor a phrase. */
export const readDate = (text: string, at: number): string | undefined => {
  const said = text.trim().toLowerCase()
  if (said === "today") return dayOf(at)
  if (said === "yesterday") return dayOf(at - dayMs)
  const [, count, unit] = phrase.exec(said) ?? []
  if (count !== undefined && unit !== undefined) return ago(Number(count), unit, at)
  const [, year, month, day] = written.exec(text.trim()) ?? []
  if (year === undefined || Number.isNaN(Date.parse(text.trim()))) return undefined
  const date = `${year}-${month}-${day}`
  return isCalendarDay(date) ? date : undefined
}
