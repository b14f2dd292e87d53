/**
 * `nightjar credentials list|release|settle`: accounts of which logins were rejected or are not proved. A
 * rejected login is not sent again until it changes or somebody who knows better releases it; an account that
 * may be locked by another login gets none at all.
 */
import { Effect, Option, Record, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import { counted, listed } from "../../base/Text.ts"
import { readTextFile } from "../../base/DurableFile.ts"
import { rejectedInARowMax, strikesMax } from "../../ledger/Accounts.ts"
import type { SentLogin } from "../../ledger/Accounts.ts"
import type { CredentialReleased } from "../../ledger/LoginFacts.ts"
import type { RunState } from "../../ledger/RunState.ts"
import { heldAccounts, incidentsText, isUnproven, loginsOf, unprovenCsv } from "../../report/Logins.ts"
import type { LoginRow } from "../../report/Logins.ts"
import { command } from "../CommandRow.ts"
import { jobFlags, optionalFlag, switchFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { jobsOf } from "./Forget.ts"
import { hasLedger, openedLedger, withLedger } from "../LookAtFolder.ts"
import { note, writeOut } from "../Output.ts"
import { holdOutput } from "../RunFolder.ts"
import { neverCreatedOf, problemsText, readNamed, readSettlement, settledText } from "../SettleLogins.ts"
import type { Settled, Settlement } from "../SettleLogins.ts"
import { Wiring } from "../Wiring.ts"

const logins = Effect.gen(function* () {
  const ledger = yield* openedLedger
  return loginsOf(yield* ledger.accounts)
})

const heldText =
  `An account is held after ${rejectedInARowMax} rejected logins in a row, or after ${strikesMax} that may ` +
  "have failed: another one may lock it. Only changed credentials or a release send one again."

const list = command(
  "list",
  {
    flags: {
      unproven: switchFlag("unproven", "Only logins whose end nobody has read"),
      csv: switchFlag("csv", "With --unproven: print CSV, for the service's support"),
    },
    run: ({ unproven, csv }, _, isJson) =>
      Effect.gen(function* () {
        if (csv && (!unproven || isJson)) return yield* refuse("csv-without-unproven")
        const all = (yield* hasLedger) ? yield* withLedger(logins) : []
        return unproven ? all.filter(isUnproven) : all
      }),
    text: (rows, out, { unproven, csv }) => {
      if (csv) return writeOut(Stream.make(unprovenCsv(rows)))
      if (rows.length === 0)
        return unproven ? "No login is unproven." : "No credentials are rejected, held or unproven."
      return [
        ...incidentsText(rows, out.width),
        ...(rows.some(({ account_held }) => account_held) ? [heldText] : []),
        "`nightjar credentials release FINGERPRINT` lets the next run send a login again.",
        ...(rows.some(isUnproven)
          ? ["`nightjar credentials list --unproven --csv` is for the service's support."]
          : []),
      ]
    },
  },
  "Lists accounts that are rejected, unproven or held, by incident",
)

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
  unproven: switchFlag("unproven", "One login for each account held as LOGIN_UNPROVEN"),
  source: optionalFlag("source", "SOURCE", "Of --unproven: only of this source or engine"),
  answer: optionalFlag("answer", "STATUS", "Of --unproven: only with this answer, such as 502"),
  from: optionalFlag("from", "TIME", "Of --unproven: only if sent then or later (UTC)"),
  to: optionalFlag("to", "TIME", "Of --unproven: only if sent then or before (UTC)"),
  run: optionalFlag("run", "RUN", "Of --unproven: only if sent by this run"),
  reason: optionalFlag("reason", "REASON", "Of --unproven: only if a login was also rejected so"),
  because: optionalFlag("because", "TEXT", "Why, for the ledger; required with --unproven"),
  yes: switchFlag("yes", "Release what --unproven names; required with it"),
  dryRun: switchFlag("dry-run", "Show what would be released"),
}

const release = command(
  "release",
  {
    more: `
      By name: nothing that was sent to the account counts any more, and the named login may be sent again. With
      --unproven: each account that is held gets one login, and only if the source accepts it, nothing counts any
      more.`,
    examples: {
      "nightjar credentials release --unproven --answer 502 --dry-run":
        "How many accounts an outage has left held",
    },
    flags: {
      fingerprints: Argument.String("FINGERPRINT").pipe(
        Argument.withDescription("First characters, of a login or account"),
        Argument.variadic({ min: 0 }),
      ),
      ...releaseFlags,
    },
    run: ({ fingerprints, unproven, yes, dryRun, ...given }) =>
      Effect.gen(function* () {
        const { source, answer, run, reason, because } = Record.map(given, Option.getOrUndefined)
        const from = yield* timeGiven("--from", given.from)
        const to = yield* timeGiven("--to", given.to)
        const meant = { source, answer, from, to, run, reason }
        const isNarrowed = Object.values(meant).some((one) => one !== undefined)
        if (unproven === fingerprints.length > 0 || (isNarrowed && !unproven))
          return yield* refuse("release-unclear")
        if (unproven && !dryRun && (because ?? "").trim() === "")
          return yield* refuse("release-because-missing")
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
        const what = counted(chosen.length, unproven ? "held account" : "login")
        if (!dryRun && needsYes && chosen.length > 0) return yield* refuse("release-unconfirmed", { what })
        return { what, chosen }
      }),
    json: ({ chosen }) => chosen.map(({ fingerprint, account }) => fingerprint ?? account),
    text: ({ what }, _, { unproven, dryRun }) =>
      dryRun
        ? `${what} would be released${unproven ? ", for one login each" : ""}.`
        : `${what} released for the next run${unproven ? ", one login each" : ""}.`,
  },
  "Releases credentials, so the next run sends them again",
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

/** Reads the executions that are named, each at the service of the job that asked for it. */
const readAll = Effect.fnUntraced(function* (
  output: string,
  named: Settlement["named"],
  given: ReadonlyArray<string>,
) {
  const wiring = yield* Wiring
  const ledger = yield* openedLedger
  const runs = new Map((yield* ledger.runs).map(({ fact }) => [fact.run_id, fact]))
  const jobOf = ({ logins }: Settlement["named"][number]) =>
    logins.flatMap(({ login }) => runs.get(login.run_id)?.job ?? []).at(0) ?? ""
  const paths = new Map([...runs.values()].map(({ job, job_path }) => [job, job_path]))
  const wanted = new Set(named.map(jobOf))
  const jobs = yield* jobsOf({ paths: new Map([...paths].filter(([name]) => wanted.has(name))) }, given)
  const missing = [...wanted].filter((name) => !jobs.some((job) => job.name === name))
  if (missing.length > 0) return yield* refuse("settle-job-needed", { jobs: listed(missing, jobsTold) })
  yield* holdOutput(
    output,
    jobs.map(({ share }) => share),
  )
  const problems: Array<string> = []
  const settled: Array<Settled> = []
  for (const job of jobs)
    yield* Effect.forEach(
      named.filter((one) => jobOf(one) === job.name),
      (one) =>
        Effect.match(readNamed(one), {
          onFailure: (problem) => void problems.push(problem),
          onSuccess: (became) => void settled.push(became),
        }),
      { concurrency: readsAtOnce, discard: true },
    ).pipe(Effect.provide(wiring.tokens(job, output)))
  return { problems, settled }
}, Effect.scoped)

const readsAtOnce = 8
const jobsTold = 5

const refused = Effect.fnUntraced(function* (problems: ReadonlyArray<string>) {
  if (problems.length === 0) return
  yield* note(problemsText(problems))
  return yield* refuse("settle-refused", { problems: counted(problems.length, "problem") })
})

const settle = command(
  "settle",
  {
    more: `
      The file is that of \`credentials list --unproven --csv\`. In the column execution_id of each login, support writes
      \`never_created\`, or the id of its execution: that is read, and counts as it ended. Rows where the column is empty
      change nothing. If one row is wrong, nothing is changed.`,
    flags: {
      file: Argument.String("FILE").pipe(
        Argument.withDescription("CSV with the columns external_execution_id and execution_id"),
      ),
      jobs: jobFlags,
      dryRun: switchFlag("dry-run", "Check the file and read the executions, and change nothing"),
    },
    run: ({ file, jobs, dryRun }, output) =>
      Effect.gen(function* () {
        const read = readTextFile(file, fileBytesMax)
        const text = yield* read.pipe(Effect.catch((why) => refuse("settle-file-unreadable", { why })))
        return yield* withLedger(
          Effect.gen(function* () {
            const ledger = yield* openedLedger
            const accounts = yield* ledger.accounts
            const executionOf = yield* knownExecutions(accounts.flatMap(({ sent }) => sent))
            const { named, problems } = readSettlement(text, accounts, executionOf)
            yield* refused(problems)
            const toRead = named.filter(({ execution_id }) => execution_id !== undefined)
            const found =
              toRead.length === 0 ? { problems: [], settled: [] } : yield* readAll(output, toRead, jobs)
            yield* refused(found.problems)
            const never = named.filter(({ execution_id }) => execution_id === undefined).map(neverCreatedOf)
            const settled = [...never, ...found.settled]
            const facts = settled.flatMap((one) => one.facts)
            if (!dryRun && facts.length > 0) yield* ledger.append(facts)
            return settled
          }),
          dryRun ? "read-only" : "read-write",
        )
      }),
    json: (settled) => settled.map(({ facts: _facts, ...told }) => told),
    text: (settled, _, { dryRun }) =>
      `${dryRun ? "This would be settled" : "Settled"}:\n${settledText(settled)}`,
  },
  "Settles unproven logins, with what the service's support says",
)

export const credentials = Command.make("credentials").pipe(Command.withSubcommands([list, release, settle]))
