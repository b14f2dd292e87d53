/**
 * The ids that a run passes on, distinguished by type: an execution is never requested with the id of its
 * session, nor a task with that of its run. They are opaque: nothing is assumed about their text. They are
 * created where data comes in (job files, the ledger, answers of the service, the command line), and
 * trusted inside.
 */
import { Schema } from "effect"

/** One run of one job. */
export const RunId = Schema.String.pipe(Schema.brand("RunId"))
export type RunId = typeof RunId.Type
/** What one run does for one customer on one engine, or for one listed session. */
export const TaskId = Schema.String.pipe(Schema.brand("TaskId"))
export type TaskId = typeof TaskId.Type
/** The service's id of an execution; never the external id that a start was sent with. */
export const ExecutionId = Schema.String.pipe(Schema.brand("ExecutionId"))
export type ExecutionId = typeof ExecutionId.Type
/** The service's id of the session that holds an execution's results. */
export const SessionId = Schema.String.pipe(Schema.brand("SessionId"))
export type SessionId = typeof SessionId.Type
/** The job's id of a customer. */
export const CustomerId = Schema.String.pipe(Schema.brand("CustomerId"))
export type CustomerId = typeof CustomerId.Type
export const EngineReference = Schema.String.pipe(Schema.brand("EngineReference"))
export type EngineReference = typeof EngineReference.Type

/** A customer on an engine: what one login opens. */
export interface Access {
  readonly customer_id: CustomerId
  readonly engine_reference: EngineReference
}
/** An access as one text, as it stands in a `task_id`. */
export const accessKey = ({ customer_id, engine_reference }: Access): string =>
  `${customer_id}/${engine_reference}`
/** A session as one text, likewise. */
export const sessionKey = ({ session_id }: { readonly session_id: SessionId }): string =>
  `session/${session_id}`
/** Only the fields of an access. */
export const accessOf = ({ customer_id, engine_reference }: Access): Access => ({
  customer_id,
  engine_reference,
})

/**
 * One path segment, or undefined for an id that cannot be one: an empty id; `.` and `..`, which URL parsers
 * resolve even when percent-encoded; and lone surrogates, which have no UTF-8.
 */
export const encodeSegment = (id: string): string | undefined =>
  id === "" || id === "." || id === ".." || !id.isWellFormed() ? undefined : encodeURIComponent(id)

/**
 * The source that an engine logs in to: the text before the last colon. What stands after it is one of
 * several channels into the same source (section 2.2), whether it is listed or not.
 */
export const sourceOf = (engine_reference: string): string => {
  const end = engine_reference.lastIndexOf(":")
  return end > 0 ? engine_reference.slice(0, end) : engine_reference
}
/** A customer at a source, whichever of its engines is used. */
export const customerKey = ({ customer_id, engine_reference }: Access): string =>
  JSON.stringify([customer_id, sourceOf(engine_reference)])
