/**
 * When a stored token is no longer usable: what the closed run or the refused start that it logged in for
 * says about it (sections 3.1, 3.2 and 4.12). It is dropped before its task is settled, so that no later
 * run logs in with it again.
 */
import { Effect } from "effect"
import type { Access } from "../service/Ids.ts"
import type { AttemptClosed } from "../ledger/Fact.ts"
import { TokenStore } from "./TokenStore.ts"
import { taskKeys } from "../ledger/FactKeys.ts"
import type { TaskKeys } from "../ledger/FactKeys.ts"
import { append } from "../ledger/Ledger.ts"
import { tokenKeys } from "./StoredToken.ts"
import { refusalOf } from "../service/Ends.ts"

export interface TokenEnd {
  readonly reason: string
  /** The answer is not defined by the reference and may be about something else: the key is not destroyed. */
  readonly keepKey: boolean
}

/** 3.1: revoked or broken, and unreadable. The other T10N reasons are not about the token. */
const brokenReasons: ReadonlySet<string> = new Set(["T10N_REJECTED", "T10N_EXCEPTION"])
const loginFamilies: ReadonlySet<string> = new Set(["AUTH_ERROR", "UNHANDLED_AUTH_ERROR"])

/** What the end of a run says about the token that it logged in with; if undefined, it may be used again. */
export const tokenEndOf = ({
  status_code,
  status_reason,
  authentication_status,
}: Pick<typeof AttemptClosed.Type, "status_code" | "status_reason" | "authentication_status">):
  | TokenEnd
  | undefined => {
  if (brokenReasons.has(status_reason)) return { reason: status_reason, keepKey: false }
  // 3.2: a refused login locks the token with which it was tried.
  const isLocked = loginFamilies.has(status_code) || refusalOf(authentication_status) !== undefined
  return isLocked ? { reason: "LOCKED", keepKey: false } : undefined
}

/** The same for a start that was refused before anything ran. */
export const tokenEndOfRefusal = (status_reason: string): TokenEnd | undefined => {
  if (brokenReasons.has(status_reason)) return { reason: status_reason, keepKey: false }
  return status_reason === "TOKEN_UNKNOWN" ? { reason: status_reason, keepKey: true } : undefined
}

/** Drops the token with that id, if it still exists; the fact comes first. */
export const dropToken = Effect.fnUntraced(function* (
  about: TaskKeys & Access,
  token_id: string,
  { reason, keepKey }: TokenEnd,
) {
  const store = yield* TokenStore
  if (store._tag === "Closed") return
  const tokens = yield* store.tokensOf(about)
  const token = tokens.find(
    (one) => one.token_id === token_id && one.hasKey && one.dropped?.reason !== reason,
  )
  if (token === undefined) return
  yield* append({ _tag: "TokenDropped", ...taskKeys(about), ...tokenKeys(token), reason })
  yield* store.dropToken(token, reason, keepKey)
})
