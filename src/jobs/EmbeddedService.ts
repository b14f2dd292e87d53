/**
 * Which embedded services are one: runs of such jobs share it, with its clock, and only they can go on beside
 * each other.
 */
import type { ServiceTarget } from "./Job.ts"

export type Embedded = Extract<ServiceTarget, { _tag: "Embedded" }>

/** Equal for two that are alike. */
export const embeddedKey = ({ seed, speed, faults, reading }: Embedded): string =>
  JSON.stringify([seed, speed, faults, reading])
