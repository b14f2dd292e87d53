/**
 * Which of our own readings a job has: each table makes every publication dearer. Here because only this room
 * knows what the engines of the embedded service read by default.
 */
import type { Job } from "../jobs/Job.ts"
import { findEngine } from "../sandbox/engines/EngineCatalogue.ts"
import { noReadings, type Readings } from "../records/SchemasInForce.ts"

/** What a stranger's engine reads by itself, or a customer in a session of their own, is not known before. */
const any: Readings = { _tag: "Fed", features: undefined }

/**
 * On the embedded service all that the features feed, elsewhere those that the job names: what a stranger's
 * records look like is not known. With pseudonyms too, because nobody has chosen yet which of their columns
 * may be seen.
 */
export const readingsOf = ({
  record_schemas: chosen,
  service,
  pseudonyms,
  assignments,
  sessions,
}: Pick<Job, "record_schemas" | "service" | "pseudonyms" | "assignments" | "sessions">): Readings => {
  if (chosen === undefined && (service._tag !== "Embedded" || pseudonyms !== undefined)) return noReadings
  if (chosen !== undefined && chosen !== "all") return { _tag: "Named", tables: chosen }
  const codes = new Set<string>()
  for (const { engine_reference, features } of assignments) {
    const usual = service._tag === "Embedded" ? (findEngine(engine_reference)?.defaults ?? []) : undefined
    const read = features.length > 0 ? features.map(({ code }) => code) : usual
    if (read === undefined) return any
    for (const code of read) codes.add(code)
  }
  return sessions.length > 0 ? any : { _tag: "Fed", features: codes }
}
