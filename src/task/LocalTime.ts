/**
 * Local dates and times of day: the date of a run and the instant of its deadline, in the job's time zone,
 * across daylight saving changes. Pure; the caller passes the time.
 */
import { DateTime, Option } from "effect"

/** If the zone is unknown or missing, the machine's is used. */
const zoned = (atMs: number, timezone: string | undefined): DateTime.Zoned => {
  const utc = DateTime.makeUnsafe(atMs)
  const zone = timezone === undefined ? Option.none() : DateTime.zoneMakeNamed(timezone)
  return DateTime.setZone(utc, Option.getOrElse(zone, DateTime.zoneMakeLocal))
}

/** `YYYY-MM-DD` in the zone. */
export const localDate = (atMs: number, timezone: string | undefined): string =>
  DateTime.formatIsoDate(zoned(atMs, timezone))

/** `HH:MM` in the zone. */
export const localTime = (atMs: number, timezone: string | undefined): string => {
  const { hour, minute } = DateTime.toParts(zoned(atMs, timezone))
  return [hour, minute].map((part) => String(part).padStart(2, "0")).join(":")
}

const atTimeOfDay = (day: DateTime.Zoned, days: number, timeOfDay: string): number => {
  const [hour = 0, minute = 0] = timeOfDay.split(":").map(Number)
  const at = DateTime.setParts(DateTime.add(day, { days }), { hour, minute, second: 0, millisecond: 0 })
  return DateTime.toEpochMillis(at)
}

/**
 * The first time after `atMs` at which the clocks of the zone show `HH:MM`; milliseconds since the epoch.
 * If they show it twice in a night, the first one is meant; if they skip it, the moment an hour later.
 */
export const nextTimeOfDay = (atMs: number, timeOfDay: string, timezone: string | undefined): number => {
  const today = zoned(atMs, timezone)
  for (let days = 0; ; days++) {
    const instant = atTimeOfDay(today, days, timeOfDay)
    if (instant > atMs) return instant
  }
}

/** The last time at or before `atMs` at which the clocks show `HH:MM`, by the same rules. */
export const lastTimeOfDay = (atMs: number, timeOfDay: string, timezone: string | undefined): number => {
  const today = zoned(atMs, timezone)
  for (let days = 0; ; days--) {
    const instant = atTimeOfDay(today, days, timeOfDay)
    if (instant <= atMs) return instant
  }
}
