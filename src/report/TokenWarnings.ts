/**
 * What the summary says of stored tokens: those that expire soon, were dropped, or were refused by the
 * service. Pure; no token is named.
 */
import { counted } from "../base/Counted.ts"
import type { TaskState, TokenNote } from "../ledger/RunState.ts"
import { told } from "../messages/Catalogue.ts"
import { dayOf } from "../tokens/TokenLogin.ts"

/** Tokens that expire soon, were dropped, or were requested without success. */
export const tokenWarnings = (notes: ReadonlyArray<TokenNote>): ReadonlyArray<string> => {
  const ending = notes.filter((note) => note._tag === "TokenExpiring")
  const groups = new Map<string, { readonly tag: string; readonly reason: string; readonly count: number }>()
  for (const note of notes) {
    if (note._tag !== "TokenDropped" && note._tag !== "TicketDropped") continue
    // A login that did not succeed has its own verdict.
    if (note.reason === "NO_AUTH_OK") continue
    const key = JSON.stringify([note._tag, note.reason])
    const group = groups.get(key)
    groups.set(key, { tag: note._tag, reason: note.reason, count: (group?.count ?? 0) + 1 })
  }
  const first = ending.toSorted((a, b) => a.expires_at - b.expires_at)[0]
  return [
    ...(first === undefined
      ? []
      : [
          told("tokens-expiring", {
            tokens: counted(ending.length, "stored token"),
            day: dayOf(first.expires_at),
          }),
        ]),
    ...[...groups.values()].map(({ tag, reason, count }) =>
      tag === "TokenDropped"
        ? told("token-dropped", { tokens: counted(count, "stored token"), reason })
        : told("ticket-dropped", { tickets: counted(count, "ticket"), reason }),
    ),
  ]
}

/** Starts with a token that the service refused; the parameters behind it were sent instead. */
export const refusedTokens = (tasks: ReadonlyArray<TaskState>): ReadonlyArray<string> => {
  const refused = tasks.filter(({ attempts }) =>
    attempts.some(
      ({ token_id, answer }, index) =>
        token_id !== undefined && answer?.answer === "refused" && attempts[index + 1]?.token_id === undefined,
    ),
  )
  return refused.length === 0
    ? []
    : [told("token-start-refused", { starts: counted(refused.length, "start") })]
}
