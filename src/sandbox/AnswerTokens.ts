/**
 * Tickets and tokens as answers of the contract (sections 4.6, 4.7 and 4.12).
 */
import { Effect } from "effect"
import type { TokenizedStartRequest } from "../contract/Token.ts"
import type { Application } from "./DecideStart.ts"
import type { Sandbox } from "./Sandbox.ts"

const notFound = { _tag: "NotFound" as const, detail: "no such token" }

/** 4.12 */
export const startTokenized = (
  _: Sandbox["Service"],
  _application: Application,
  _payload: TokenizedStartRequest,
) => Effect.fail(notFound)

/** 4.6: one answer for every failure. */
export const exchangeTicket = (
  _: Sandbox["Service"],
  _application: Application,
  _payload: { readonly execution_id: string; readonly ticket: string },
) => Effect.fail({ _tag: "Forbidden" as const, detail: "the ticket cannot be exchanged" })

/** 4.12 */
export const readToken = (_: Sandbox["Service"], _application: Application, _token_id: string) =>
  Effect.fail(notFound)

/** 4.7 */
export const revokeToken = (_: Sandbox["Service"], _application: Application, _token_id: string) =>
  Effect.fail(notFound)
