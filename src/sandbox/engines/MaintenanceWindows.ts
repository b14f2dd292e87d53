/**
 * Recurring maintenance (section 4.9: an engine can be unusable for a while). Whether an engine is in its
 * window depends only on the time of the call: no timer opens or closes it, and runs in flight are not
 * affected. When windows occur is not shown; own choice.
 */

/** Times in milliseconds of UTC: every `everyMs` since midnight, from `fromMs` on, for `lengthMs`. */
export interface MaintenanceWindow {
  readonly everyMs: number
  readonly fromMs: number
  readonly lengthMs: number
  /** For `engine_issues`. */
  readonly said: string
}

const minuteMs = 60_000

/** Short and frequent, so that a test meets one on any clock. */
export const lastTenMinutesOfEveryHour: MaintenanceWindow = {
  everyMs: 60 * minuteMs,
  fromMs: 50 * minuteMs,
  lengthMs: 10 * minuteMs,
  said: "En mantenimiento del minuto 50 al 60 de cada hora (UTC).",
}

export const isInMaintenance = ({ everyMs, fromMs, lengthMs }: MaintenanceWindow, at: number): boolean => {
  const since = (((at - fromMs) % everyMs) + everyMs) % everyMs
  return since < lengthMs
}
