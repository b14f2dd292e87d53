/**
 * `nightjar credentials list|release|settle`: accounts of which logins were rejected or are not proved. A
 * rejected login is not sent again until it changes or somebody who knows better releases it; an account that
 * may be locked by another login gets none at all.
 */
import { Effect, Option, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { counted } from "../../foundation/Counted.ts"
import { readTextFile } from "../../foundation/RegularFile.ts"
import { rejectedInARowMax, strikesMax } from "../../ledger/Accounts.ts"
import type { SentLogin } from "../../ledger/Accounts.ts"
import type { CredentialReleased } from "../../ledger/LoginFacts.ts"
import type { RunState } from "../../ledger/RunState.ts"
import { heldAccounts, incidentsText, isUnproven, loginsOf, unprovenCsv } from "../../report/Logins.ts"
import type { LoginRow } from "../../report/Logins.ts"
import { jsonFlag, optionalFlag, switchFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { hasLedger, openedLedger, withLedger } from "../LedgerOf.ts"
import { note, Output, say, sayJson, writeOut } from "../Output.ts"
import { problemsText, settleLogins } from "../SettleLogins.ts"

const logins = Effect.gen(function* () {
  const ledger = yield* openedLedger
  return loginsOf(yield* ledger.accounts)
})

const heldText =
  `An account is held after ${rejectedInARowMax} rejected logins in a row, or after ${strikesMax} that may ` +
  "have failed: another one may lock it. Only changed credentials or a release send one again."

const list = Command.make(
  "list",
  {
    unproven: switchFlag("unproven", "Only logins whose end nobody has read"),
    csv: switchFlag("csv", "With --unproven: print CSV, for the service's support"),
    json: jsonFlag,
  },
  Effect.fn("Credentials.list")(function* ({ unproven, csv, json }) {
    if (csv && (!unproven || json)) return yield* refuse("csv-without-unproven")
    const all = (yield* hasLedger) ? yield* withLedger(logins) : []
    const rows = unproven ? all.filter(isUnproven) : all
    if (csv) return yield* writeOut(Stream.make(unprovenCsv(rows)))
    if (json) return yield* sayJson(rows)
    if (rows.length === 0)
      return yield* say(unproven ? "No login is unproven." : "No credentials are rejected, held or unproven.")
    const { out } = yield* Output
    yield* say(incidentsText(rows, out.width).join("\n"))
    if (rows.some(({ account_held }) => account_held)) yield* say(heldText)
    yield* say("`nightjar credentials release FINGERPRINT` lets the next run send a login again.")
    if (rows.some(isUnproven))
      yield* say("`nightjar credentials list --unproven --csv` is for the service's support.")
  }),
).pipe(Command.withDescription("Lists accounts that are rejected, unproven or held, by incident"))

const prefixMin = 6

/** Fingerprints by their first characters, as `list` shows them; undefined if one is ambiguous or unknown. */
export const resolveFingerprint = (given: string, known: ReadonlyArray<string>): string | undefined => {
  const found = known.filter((one) => one === given || (given.length >= prefixMin && one.startsWith(given)))
  return found.length === 1 ? found[0] : undefined
}

type Released = typeof CredentialReleased.Type

/** Each as it was named: a login by its fingerprint, or all of an account. */
const releasedOnes = Effect.fnUntraced(function* (
  rows: ReadonlyArray<LoginRow>,
  given: ReadonlyArray<string>,
  because: string | undefined,
) {
  const fingerprints = new Set(rows.flatMap(({ fingerprint }) => fingerprint ?? []))
  const known = [...new Set([...fingerprints, ...rows.map(({ account }) => account)])]
  const resolved = given.map((one) => resolveFingerprint(one, known))
  const missing = resolved.indexOf(undefined)
  if (missing >= 0) return yield* refuse("credentials-unknown", { position: missing + 1 })
  const why = because === undefined ? {} : { because }
  return [...new Set(resolved.filter((one) => one !== undefined))].map((one): Released => ({
    _tag: "CredentialReleased",
    ...(fingerprints.has(one) ? { fingerprint: one } : { account: one }),
    ...why,
  }))
})

const isoTime = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/

/** In UTC, if it does not say otherwise, as `list` shows times. */
const timeGiven = Effect.fnUntraced(function* (flag: string, given: Option.Option<string>) {
  if (Option.isNone(given)) return undefined
  const text = given.value.replace(" ", "T")
  const zoned = /T.*(Z|[+-]\d\d:\d\d)$/.test(text) || !text.includes("T") ? text : `${text}Z`
  const at = isoTime.test(given.value) ? Date.parse(zoned) : Number.NaN
  return Number.isNaN(at) ? yield* refuse("time-unreadable", { flag }) : new Date(at).toISOString()
})

const releaseFlags = {
  unproven: switchFlag("unproven", "All accounts that are held as LOGIN_UNPROVEN: one login each"),
  source: optionalFlag("source", "SOURCE", "With --unproven: only of this source or engine"),
  answer: optionalFlag("answer", "STATUS", "With --unproven: only where the answer was this, such as 502"),
  from: optionalFlag("from", "TIME", "With --unproven: only if sent then or later (UTC)"),
  to: optionalFlag("to", "TIME", "With --unproven: only if sent then or before (UTC)"),
  run: optionalFlag("run", "RUN", "With --unproven: only if sent by this run"),
  reason: optionalFlag("reason", "REASON", "With --unproven: only if a login was also rejected so"),
  because: optionalFlag("because", "TEXT", "Why, for the ledger; required with --unproven"),
  yes: switchFlag("yes", "With --unproven: release them; without this, nothing is released"),
  dryRun: switchFlag("dry-run", "Show what would be released"),
  json: jsonFlag,
}

const release = Command.make(
  "release",
  {
    fingerprints: Argument.String("FINGERPRINT").pipe(
      Argument.withDescription("Of a login or account, as `list` shows it; at least 6 characters"),
      Argument.variadic({ min: 0 }),
    ),
    ...releaseFlags,
  },
  Effect.fn("Credentials.release")(function* ({ fingerprints, unproven, yes, dryRun, json, ...given }) {
    const [source, answer, run, reason, because] = [
      given.source,
      given.answer,
      given.run,
      given.reason,
      given.because,
    ].map((one) => Option.getOrUndefined(one))
    const from = yield* timeGiven("--from", given.from)
    const to = yield* timeGiven("--to", given.to)
    const meant = { source, answer, from, to, run, reason }
    const isNarrowed = Object.values(meant).some((one) => one !== undefined)
    if (unproven === fingerprints.length > 0 || (isNarrowed && !unproven))
      return yield* refuse("release-unclear")
    if (unproven && !dryRun && (because ?? "").trim() === "") return yield* refuse("release-because-missing")
    const needsYes = unproven && !yes
    const chosen = yield* withLedger(
      Effect.gen(function* () {
        const rows = yield* logins
        const facts: ReadonlyArray<Released> = unproven
          ? heldAccounts(rows, meant).map((account) => ({
              _tag: "CredentialReleased",
              account,
              logins: 1,
              because: because ?? "",
            }))
          : yield* releasedOnes(rows, fingerprints, because)
        if (!dryRun && !needsYes && facts.length > 0) yield* (yield* openedLedger).append(facts)
        return facts
      }),
      dryRun || needsYes ? "read-only" : "read-write",
    )
    const what = unproven ? counted(chosen.length, "held account") : counted(chosen.length, "login")
    if (!dryRun && needsYes && chosen.length > 0) return yield* refuse("release-unconfirmed", { what })
    if (json) return yield* sayJson(chosen.map(({ fingerprint, account }) => fingerprint ?? account))
    if (dryRun) return yield* say(`${what} would be released${unproven ? ", for one login each" : ""}.`)
    yield* say(`${what} released for the next run${unproven ? ", one login each" : ""}.`)
  }),
).pipe(
  Command.withDescription(
    "Releases credentials, so the next run sends them again\n\n" +
      "By name: nothing that was sent to the account counts any more, and the named\n" +
      "login may be sent again. With --unproven: each account that is held gets one\n" +
      "login, and only if the source accepts it, nothing counts any more.",
  ),
  Command.withShortDescription("Releases credentials, so the next run sends them again"),
  Command.withExamples([
    {
      command: "nightjar credentials release --unproven --answer 502 --dry-run",
      description: "How many accounts an outage has left held",
    },
  ]),
)

const fileBytesMax = 64_000_000

/** The execution that the ledger knows of a login's attempt; each run is folded once. */
const knownExecutions = Effect.fnUntraced(function* (sent: ReadonlyArray<SentLogin>) {
  const ledger = yield* openedLedger
  const states = new Map<string, RunState | undefined>()
  for (const { run_id } of sent) if (!states.has(run_id)) states.set(run_id, yield* ledger.state(run_id))
  return ({ run_id, task_id, attempt }: SentLogin): string | undefined => {
    const task = task_id === undefined ? undefined : states.get(run_id)?.tasks.get(task_id)
    return task?.attempts.find((one) => one.attempt === attempt)?.execution_id
  }
})

const settle = Command.make(
  "settle",
  {
    file: Argument.String("FILE").pipe(
      Argument.withDescription("CSV with the columns external_execution_id and execution_id"),
    ),
    dryRun: switchFlag("dry-run", "Check the file, and change nothing"),
    json: jsonFlag,
  },
  Effect.fn("Credentials.settle")(function* ({ file, dryRun, json }) {
    const read = readTextFile(file, fileBytesMax)
    const text = yield* read.pipe(Effect.catch((why) => refuse("settle-file-unreadable", { why })))
    const ids = yield* withLedger(
      Effect.gen(function* () {
        const ledger = yield* openedLedger
        const accounts = yield* ledger.accounts
        const executionOf = yield* knownExecutions(accounts.flatMap(({ sent }) => sent))
        const { facts, external_execution_ids, problems } = settleLogins(text, accounts, executionOf)
        if (problems.length > 0) {
          yield* note(problemsText(problems))
          return yield* refuse("settle-refused", { problems: counted(problems.length, "problem") })
        }
        if (!dryRun) yield* ledger.append(facts)
        return external_execution_ids
      }),
      dryRun ? "read-only" : "read-write",
    )
    if (json) return yield* sayJson(ids)
    const what = `${counted(ids.length, "login")} that the service never created`
    yield* say(dryRun ? `No longer counted would be ${what}.` : `No longer counted: ${what}.`)
  }),
).pipe(
  Command.withDescription(
    "Takes back logins that the service's support says were never created\n\n" +
      "The file is that of `credentials list --unproven --csv`, with `never_created` in\n" +
      "the column execution_id of each login that the service does not know. Rows where\n" +
      "it is empty change nothing. If one row is wrong, nothing is changed.",
  ),
  Command.withShortDescription("Takes back logins that were never created, from a CSV file"),
)

export const credentials = Command.make("credentials").pipe(
  Command.withDescription("Lists, releases or settles credentials that are rejected or unproven"),
  Command.withSubcommands([list, release, settle]),
)
