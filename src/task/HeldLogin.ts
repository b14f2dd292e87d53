/**
 * Whether the login of a task may be sent now, as the ledger knows its account and this run its engine. Asked
 * before each start and before each probe.
 */
import { Clock, Duration, Effect } from "effect"
import { cutText } from "../service/BodyBounds.ts"
import { own } from "../service/Ends.ts"
import type { Verdict } from "../service/Ends.ts"
import { holdOf, openSame } from "../ledger/Accounts.ts"
import type { Hold } from "../ledger/Accounts.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { holdText, chanceOf, isLasting, thirdText, verdictOfHold } from "./LoginHold.ts"
import { candidateOf } from "./Night.ts"
import type { StartAct } from "./Next.ts"
import type { Night, Row } from "./Night.ts"
import { SlotsBeside } from "./SharedSlots.ts"

export type Held =
  | { readonly _tag: "Ended"; readonly verdict: Verdict }
  /** Until then (milliseconds); without it, as for somebody else's run. */
  | { readonly _tag: "Waits"; readonly until?: number }

/** Undefined if it may be sent: then no other login to its account may, until its start is answered. */
export const heldLogin = Effect.fnUntraced(function* (night: Night, row: Row, { attempt, probe }: StartAct) {
  const { account } = row.keys
  if (account === undefined) return undefined
  const { task_id, customer_id } = row.work
  const ledger = yield* Ledger
  // Two channels may log in to one account with different fields, which no schedule can see.
  const isTaken = [...ledger.leaving].some(([other, keys]) => other !== task_id && openSame(keys, account))
  if (isTaken) return yield* waitOthers(night)
  ledger.leaving.set(task_id, account)
  const accounts = yield* ledger.accountsOf(account)
  const absorbs = accounts.flatMap(({ identity, former }) => (identity.length === 0 ? former : []))
  if (absorbs.length > 0) row.keys = { ...row.keys, account: { ...account, absorbs } }
  const now = yield* Clock.currentTimeMillis
  const self = { run_id: night.run_id, task_id, attempt }
  const hold = holdOf(accounts, account, { now, maxWaitMs: Duration.toMillis(night.rules.max_wait), self })
  if (hold === undefined) return undefined
  if (isLasting(hold)) return ended({ ...verdictOfHold(hold), message: cutText(holdText(hold, customer_id)) })
  if (hold.why === "third") return thirdLogin(night, row, { hold, now, probe })
  return yield* waitOthers(night)
})

/** Another login of the account is waited for as long as this run, or one beside it, has executions open. */
const waitOthers = Effect.fnUntraced(function* ({ active, restingCount }: Night) {
  const beside = yield* SlotsBeside
  const isWorthIt = active + restingCount > 1 || beside?.areOpen() === true
  return isWorthIt ? ({ _tag: "Waits" } satisfies Held as Held) : ended(own("ALREADY_EXECUTING"))
})

const ended = (verdict: Verdict): Held => ({ _tag: "Ended", verdict })

/** How long a third login waits until the engine is asked again whether it accepts others. */
const thirdWaitMs = Duration.toMillis("1 minute")

/** It is risked only where others pass, or by one account where nobody else is left to show it. */
const thirdLogin = (
  night: Night,
  row: Row,
  {
    hold,
    now,
    probe,
  }: {
    readonly hold: Extract<Hold, { readonly why: "third" }>
    readonly now: number
    readonly probe: boolean
  },
): Held | undefined => {
  const { breaker, schedule, run_id, rules } = night
  const { engine_reference } = row.work
  const account = row.keys.account?.account
  const chance = chanceOf(hold, run_id)
  const kept = ended({ ...own("START_UNKNOWN"), message: thirdText, not_before: "next_date" })
  if (chance === "not_tonight") return kept
  if (breaker.isWell(engine_reference, account, now)) return undefined
  const third = { candidate: candidateOf(row), mayLead: !probe && chance === "alone" }
  const waiting = schedule.hopefulOn(engine_reference).filter((other) => other.account !== account)
  const turn = breaker.turnOfThird(third, waiting)
  if (turn === "goes") return undefined
  if (turn === "stays") return kept
  const lastAt = (row.deferredSince ??= now) + Duration.toMillis(rules.max_wait)
  if (now + thirdWaitMs > lastAt) return breaker.hasPassed(engine_reference, account) ? undefined : kept
  breaker.noteThird(third)
  return { _tag: "Waits", until: now + thirdWaitMs }
}
