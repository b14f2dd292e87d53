/**
 * Engine forms in the ledger's file: not facts, but a cache that outlasts a run, each with a hash of what was
 * written.
 */
import type { DatabaseSync } from "node:sqlite"
import { sha256 } from "../base/Sha256.ts"
import type { EngineReference } from "../service/Ids.ts"

export interface CachedForm {
  readonly engine_reference: EngineReference
  /** Milliseconds since the epoch. */
  readonly fetched_at: number
  /** The detail view as JSON text. */
  readonly body: string
}

/** A cached form that has changed is not used: it is fetched again. */
export const accessForms = (database: DatabaseSync) => ({
  cachedForm: (engine_reference: EngineReference): CachedForm | undefined => {
    const row = database
      .prepare("SELECT * FROM engine_forms WHERE engine_reference = ?")
      .get(engine_reference)
    if (row === undefined) return undefined
    const [fetched_at, body, hash] = [Number(row["fetched_at"]), String(row["body"]), row["sha256"]]
    const isWhole = hash instanceof Uint8Array && sha256(formText(fetched_at, body)).equals(hash)
    return isWhole ? { engine_reference, fetched_at, body } : undefined
  },
  cacheForm: ({ engine_reference, fetched_at, body }: CachedForm) => {
    const at = Math.trunc(fetched_at)
    database
      .prepare(
        `INSERT OR REPLACE INTO engine_forms (engine_reference, fetched_at, body, sha256)
          VALUES (?, ?, ?, ?)`,
      )
      .run(engine_reference, at, body, sha256(formText(at, body)))
  },
})
const formText = (fetched_at: number, body: string): string => `${fetched_at} ${body}`
