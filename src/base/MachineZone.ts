/**
 * The time zone of this machine, for what no job names a zone for. A TZ that is no known zone makes Node.js
 * count in UTC and give the zone no name.
 */

/** Undefined if TZ names a zone that is not known here. */
export const knownZone = (): string | undefined => Intl.DateTimeFormat().resolvedOptions().timeZone

/** The zone that times are in. */
export const machineZone = (): string => knownZone() ?? "UTC"
