/**
 * `nightjar credentials list|release`: logins that a source rejected. They are not sent again until they
 * change or somebody who knows better releases them. An account of which two in a row were rejected is held:
 * it gets no login at all.
 */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { counted } from "../../foundation/Counted.ts"
import { table } from "../../report/TextTable.ts"
import { rejectedInARowMax } from "../../ledger/Accounts.ts"
import type { RejectedLogin } from "../../ledger/Accounts.ts"
import { jsonFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { hasLedger, openedLedger, withLedger } from "../LedgerOf.ts"
import { Output, say, sayJson } from "../Output.ts"

const rejected = Effect.gen(function* () {
  const ledger = yield* openedLedger
  const isHeld = (logins: ReadonlyArray<RejectedLogin>): boolean =>
    logins.filter(({ counts }) => counts).length >= rejectedInARowMax
  return (yield* ledger.accounts).flatMap(({ rejected: logins }) =>
    logins.map((login) => ({
      fingerprint: login.fingerprint,
      customer_id: login.customer_id,
      engine_reference: login.engine_reference,
      reason: login.reason,
      rejected_at: new Date(login.at).toISOString(),
      account_held: isHeld(logins),
      task_id: login.task_id,
    })),
  )
})

const list = Command.make(
  "list",
  { json: jsonFlag },
  Effect.fn("Credentials.list")(function* ({ json }) {
    const rows = (yield* hasLedger) ? yield* withLedger(rejected) : []
    if (json) return yield* sayJson(rows)
    if (rows.length === 0) return yield* say("No credentials are rejected.")
    const { out } = yield* Output
    const header = ["fingerprint", "customer", "engine", "reason", "rejected at", "account"]
    const cells = rows.map((row) => [
      row.fingerprint.slice(0, fingerprintShown),
      row.customer_id ?? "(removed)",
      row.engine_reference,
      row.reason,
      row.rejected_at,
      row.account_held ? "held" : "",
    ])
    yield* say(table(header, cells, { width: out.width }))
    if (rows.some(({ account_held }) => account_held)) yield* say(heldText)
    yield* say("`nightjar credentials release FINGERPRINT` lets the next run send a login again.")
  }),
).pipe(Command.withDescription("Lists rejected credentials; they are not sent again unchanged"))

const heldText =
  `An account is held after ${rejectedInARowMax} rejected logins in a row: another one may lock it. ` +
  "No login is sent to it, not even a changed one, until one of them is released."

const fingerprintShown = 16
const prefixMin = 6

/** Fingerprints by their first characters, as `list` shows them; undefined if one is ambiguous or unknown. */
export const resolveFingerprint = (given: string, known: ReadonlyArray<string>): string | undefined => {
  const found = known.filter((one) => one === given || (given.length >= prefixMin && one.startsWith(given)))
  return found.length === 1 ? found[0] : undefined
}

const release = Command.make(
  "release",
  {
    fingerprints: Argument.String("FINGERPRINT").pipe(
      Argument.withDescription("As `credentials list` shows it; at least 6 characters"),
      Argument.variadic({ min: 1 }),
    ),
    json: jsonFlag,
  },
  Effect.fn("Credentials.release")(function* ({ fingerprints, json }) {
    const released = yield* withLedger(
      Effect.gen(function* () {
        const known = (yield* rejected).map(({ fingerprint }) => fingerprint)
        const resolved = fingerprints.map((given) => resolveFingerprint(given, known))
        const missing = resolved.indexOf(undefined)
        if (missing >= 0) return yield* refuse("credentials-unknown", { position: missing + 1 })
        const chosen = [...new Set(resolved.filter((one) => one !== undefined))]
        const ledger = yield* openedLedger
        yield* ledger.append(chosen.map((fingerprint) => ({ _tag: "CredentialReleased", fingerprint })))
        return chosen
      }),
      "read-write",
    )
    if (json) return yield* sayJson(released)
    yield* say(`${counted(released.length, "login")} released for the next run.`)
  }),
).pipe(Command.withDescription("Releases rejected credentials, so the next run sends them again"))

export const credentials = Command.make("credentials").pipe(
  Command.withDescription("Lists or releases credentials that a source rejected"),
  Command.withSubcommands([list, release]),
)
