/**
 * What happened to the deletion of one execution at the service: a fold of its intents and answers. The
 * hash is the receipt with which it was requested.
 */
import type { Fact } from "./Fact.ts"

export interface Deletion {
  readonly asked_at: number
  readonly landed_sha256: string
  readonly http_status: number | undefined
  /** When the service said that it was deleted or gone. */
  readonly deleted_at: number | undefined
  readonly outcome: "deleted" | "gone" | "pending"
}

export const foldDeletion = (
  deletion: Deletion | undefined,
  fact: Extract<Fact, { _tag: "DeleteIntended" | "DeleteAnswered" }>,
  at: number,
): Deletion =>
  fact._tag === "DeleteIntended"
    ? {
        asked_at: at,
        landed_sha256: fact.landed_sha256,
        http_status: undefined,
        deleted_at: undefined,
        outcome: "pending",
      }
    : {
        asked_at: deletion?.asked_at ?? at,
        landed_sha256: deletion?.landed_sha256 ?? "",
        http_status: fact.http_status,
        deleted_at: fact.outcome === "pending" ? undefined : at,
        outcome: fact.outcome,
      }
