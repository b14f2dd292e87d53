/**
 * What the sessions and the newest state of a task say together, as far as its coverage needs it: records
 * by table and product, what was counted, and whether there can be others. Pure.
 */
import type { TaskFindings } from "./CoverageRows.ts"
import { findingsKey } from "./DeriveSession.ts"
import type { SessionFindings } from "./DeriveSession.ts"
import type { SessionPicture } from "./RunPicture.ts"
import type { RunTables } from "./RunTables.ts"
import { isObject, objectsOf } from "./TakeFields.ts"
import type { Json } from "./TakeFields.ts"

export const taskFindings = (
  tables: RunTables,
  sessions: ReadonlyArray<SessionPicture>,
  state: Json | undefined,
): Omit<TaskFindings, "isLeftOut"> => {
  const read = sessions.filter(({ body }) => body !== undefined)
  const found = read.flatMap((session) => tables.found.get(findingsKey(session)) ?? [])
  const byTable = new Map<string, number>()
  const byProduct = new Map<string, number>()
  const add = (sums: Map<string, number>, name: string, count: number) =>
    sums.set(name, (sums.get(name) ?? 0) + count)
  for (const { counts, byProduct: products } of found) {
    for (const [table, count] of Object.entries(counts.byTable)) add(byTable, table, count)
    for (const [product, count] of products) add(byProduct, product, count)
  }
  const counts = state?.["products_count"]
  return {
    featureReasons: new Map(
      objectsOf(state?.["features"]).flatMap(([, { code, status_reason }]) =>
        typeof code === "string" && typeof status_reason === "string" ? [[code, status_reason] as const] : [],
      ),
    ),
    byTable: found.length === 0 ? undefined : byTable,
    byProduct,
    delivered: found.length < read.length ? undefined : deliveredBy(found),
    products_count: isObject(counts)
      ? Object.entries(counts).flatMap(([key, count]) =>
          typeof count === "number" && Number.isSafeInteger(count) ? [[key, count] as const] : [],
        )
      : undefined,
    retrieved: found.flatMap(({ retrieved }) => retrieved),
    session_id: (read.at(-1) ?? sessions.at(-1))?.session_id,
    as_of: read.at(-1)?.body?.meta.received_at,
  }
}

/** Products of all records; undefined if there may be others. */
const deliveredBy = (found: ReadonlyArray<SessionFindings>): TaskFindings["delivered"] => {
  const sources = found.flatMap((one) => one.sources)
  const isKnown = sources.length > 0 && sources.every(({ isFinal }) => isFinal)
  if (!isKnown || found.some(({ counts }) => counts.strays > 0)) return undefined
  return new Set(sources.flatMap(({ tally }) => [...tally.byProduct.keys()]))
}
