/**
 * Acceptance bodies under a reading (section 2.5): optional fields that are present, absent or null, and
 * whose external id a conflict names (section 4.1).
 */
import type { FullReading } from "../state/Reading.ts"

type Fields = Readonly<Record<string, unknown>>

/** Fields that may be absent or null: if a reading wants them so, they are, even if there is a value. */
export const shapeOptionals = (
  { optionals }: Pick<FullReading, "optionals">,
  names: ReadonlyArray<string>,
  body: Fields,
): Fields => {
  if (optionals === "shown") return body
  const kept = Object.entries(body).filter(([name]) => !names.includes(name))
  const nulls = optionals === "null" ? names.map((name) => [name, null] as const) : []
  return Object.fromEntries([...kept, ...nulls])
}

/** 2.5 */
export const shapeAcceptance = (reading: FullReading, body: Fields): Fields =>
  shapeOptionals(reading, ["external_execution_id", "status_message"], body)

interface Request {
  readonly external_execution_id?: string
}
interface Running extends Request {
  readonly execution_id: string
}

/**
 * 4.1: the ids of the run in flight, with the external id that the reading asks for. It is null if the run
 * has none.
 */
export const withConflictId = <Ids extends Running>(
  { conflict_external_id }: Pick<FullReading, "conflict_external_id">,
  running: Ids,
  request: Request,
): Omit<Ids, "external_execution_id"> & { readonly external_execution_id?: string | null } => {
  const { external_execution_id: theirs, ...ids } = running
  switch (conflict_external_id) {
    case "running":
      return { ...ids, external_execution_id: theirs ?? null }
    case "request":
      return request.external_execution_id === undefined
        ? ids
        : { ...ids, external_execution_id: request.external_execution_id }
    case "absent":
      return ids
    case "null":
      return { ...ids, external_execution_id: null }
  }
}
