/**
 * One line of `nightjar doctor`: what was checked and what was found. Whatever is not in order has a message
 * of the catalogue, which says what to do about it.
 */
import { happened } from "../messages/Catalogue.ts"
import type { MessageId, ValuesOf } from "../messages/Catalogue.ts"

export interface Check {
  readonly what: string
  readonly verdict: "ok" | "warning" | "failed"
  readonly says: string
  /** Only for lines that are not ok. */
  readonly id?: MessageId
}

export const ok = (what: string, says: string): Check => ({ what, verdict: "ok", says })

const found =
  (verdict: "warning" | "failed") =>
  <Id extends MessageId>(what: string, id: Id, ...values: ValuesOf<Id>): Check => ({
    what,
    verdict,
    says: happened(id, ...values),
    id,
  })
export const warning = found("warning")
export const failed = found("failed")
