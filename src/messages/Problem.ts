/**
 * A finding with its place: what `verify` and `repair` list one by one, for people with its id in brackets
 * and for programs as JSON.
 */
import { happened, messageOf } from "./Catalogue.ts"
import type { MessageId, ValuesOf } from "./Catalogue.ts"

export interface Problem {
  readonly id: MessageId
  readonly problem: string
  /** A path below the output folder, a table, or an id. */
  readonly where: string
  readonly next: string
}

export const problemOf = <Id extends MessageId>(where: string, id: Id, ...values: ValuesOf<Id>): Problem => ({
  id,
  problem: happened(id, ...values),
  where,
  next: messageOf(id).next,
})
