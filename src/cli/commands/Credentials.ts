/**
 * Accounts of which logins were rejected or are not proved. A rejected login is not sent again until it
 * changes or somebody releases it; an account that another login may lock gets none at all.
 */
import { Clock, Effect, Option, Record, Stream } from "effect"
import { Command } from "effect/cli"
import { readTextFile } from "../../base/DurableFile.ts"
import { given } from "../../base/Schemas.ts"
import { counted, listed } from "../../base/Text.ts"
import { command } from "../CommandRow.ts"
import { refuse } from "../Failures.ts"
import { argument, jobFlags, note, optionalFlag, severalArguments, switchFlag, writeOut } from "../Output.ts"
import { hasLedger, holdOutput, openedLedger, withLedger } from "../OutputFolder.ts"
import { Wiring } from "../Wiring.ts"
import { jobsOf } from "./Forget.ts"
import { Service } from "../../client/Service.ts"
import { CsvReader, type CsvRow } from "../../jobs/Csv.ts"
import { rejectedInARowMax, strikesMax, type Account, type SentLogin } from "../../ledger/Accounts.ts"
import type { CredentialReleased } from "../../ledger/LoginFacts.ts"
import type { AttemptState, RunState } from "../../ledger/RunState.ts"
import { heldAccounts, incidentsText, isUnproven, loginsOf, unprovenCsv } from "../../report/Logins.ts"
import type { LoginRow } from "../../report/Logins.ts"
import type { Reason } from "../../service/Ends.ts"
import { ExecutionId } from "../../service/Ids.ts"
import { isOurs } from "../../task/Attempt.ts"
import { answeredBy } from "../../task/Ending.ts"
import { judgeFound, type JudgedLogin, type LoginOrder } from "../../task/StartAttempt.ts"

// What the service's support says of logins whose answer nobody read, from a CSV file: each was never
// created, or has an execution, which is read. Nothing changes if a row is wrong.

/** A login whose account counts it, until somebody says what became of it. */
interface Counted {
  readonly account: Account
  readonly login: SentLogin
  /** What the states of its execution said of it, as far as they were read. */
  readonly before: string | undefined
}

interface Named {
  readonly line: number
  readonly external_execution_id: string
  /** Undefined: it was never created. */
  readonly execution_id: ExecutionId | undefined
  readonly logins: ReadonlyArray<Counted>
}

/** The attempt that sent a login; none if the execution that the service named for it is somebody else's. */
type AttemptOf = (
  login: SentLogin,
) => Pick<AttemptState, "execution_id" | "authentication_status"> | undefined

const idColumn = "external_execution_id"
const saysColumn = "execution_id"
const neverCreated = "never_created"

/** With problems, nothing may be settled. */
export const readSettlement = (
  text: string,
  accounts: ReadonlyArray<Account>,
  attemptOf: AttemptOf,
): Readonly<{ named: ReadonlyArray<Named>; problems: ReadonlyArray<string> }> => {
  const problems: Array<string> = []
  const rows = rowsOf(text, problems)
  const [header, ...body] = rows
  const columns = [idColumn, saysColumn].map((name) =>
    (header?.cells ?? []).findIndex((cell) => cell.trim() === name),
  )
  const missing = [idColumn, saysColumn].filter((_, at) => columns[at] === -1)
  if (missing.length > 0) problems.push(`line 1: no column \`${missing.join("` and no column `")}\``)
  if (problems.length > 0) return { named: [], problems }
  const sent = accounts.flatMap((account) =>
    account.sent.map((login): Counted => {
      const before = attemptOf(login)?.authentication_status
      return { account, login, before }
    }),
  )
  const known = Map.groupBy(sent, ({ login }) => login.external_execution_id ?? "")
  const named = new Map<string, Named>()
  for (const { line, cells } of body) {
    const [external_execution_id = "", says = ""] = columns.map((at) => (cells[at] ?? "").trim())
    // A row of the list that support did not fill in.
    if (says === "") continue
    const execution_id = says === neverCreated ? undefined : ExecutionId.make(says)
    const row = { line, external_execution_id, execution_id, logins: known.get(external_execution_id) ?? [] }
    const before = named.get(external_execution_id)
    const problem =
      before === undefined
        ? problemOf(row, attemptOf)
        : before.execution_id === execution_id
          ? `the same as line ${before.line}`
          : `contradicts line ${before.line}`
    if (problem !== undefined) problems.push(`line ${line}: ${problem}`)
    if (before === undefined) named.set(external_execution_id, row)
  }
  if (named.size === 0 && problems.length === 0)
    problems.push(`no row has anything in column \`${saysColumn}\``)
  const atOf = ({ logins }: Named) => Math.max(...logins.map(({ login }) => login.at))
  // In their order, so that a good login speaks for those before it, and for no later one.
  const inOrder = [...named.values()].toSorted((one, other) => atOf(one) - atOf(other))
  return { named: problems.length === 0 ? inOrder : [], problems }
}

const rowsOf = (text: string, problems: Array<string>): ReadonlyArray<CsvRow> => {
  const rows: Array<CsvRow> = []
  const reader = new CsvReader(
    (row) => rows.push(row),
    ({ line }, message) => problems.push(`line ${line}: ${message}`),
  )
  reader.push(text)
  reader.end()
  return rows
}

const problemOf = (
  { external_execution_id, execution_id, logins }: Named,
  attemptOf: AttemptOf,
): string | undefined => {
  if (external_execution_id === "" || logins.length === 0)
    return "no login that is not proved has this external id"
  const known = logins.map(({ login }) => attemptOf(login)?.execution_id).find((id) => id !== undefined)
  return known === undefined || known === execution_id
    ? undefined
    : `the service created execution ${known} for it`
}

/** As the attempt that sent it knew it; none if its customer was removed since. */
const ordersOf = ({ logins }: Named) =>
  logins.flatMap(({ account: { account, identity, row }, login, before }) => {
    const { run_id, task_id, attempt, customer_id, engine_reference, password, written, fingerprint } = login
    if (task_id === undefined || customer_id === undefined) return []
    const of = { account, identity, password, former: [], isByHand: true, ...given({ row, written }) }
    const order = { run_id, task_id, attempt, customer_id, engine_reference, fingerprint, account: of }
    return [{ ...(order satisfies LoginOrder), sends: login.sends, before }]
  })

interface Settled extends Pick<Named, "external_execution_id" | "execution_id"> {
  readonly became: Became
  readonly facts: ReadonlyArray<JudgedLogin>
}

/** Only its own strike is taken off: what else was sent to the account stays. */
const neverCreatedOf = (named: Named): Settled => {
  const facts = ordersOf(named).flatMap(({ run_id, task_id, attempt, fingerprint, account: of, sends }) => {
    const login = { account: of.account, password: of.password, ...given({ fingerprint }) }
    const task = { _tag: "LoginJudged", run_id, task_id, attempt } as const
    const fact = { ...task, ...login, verdict: "neutral", said: neverCreated } satisfies JudgedLogin
    // The start, and its probe if one was sent.
    return Array.from({ length: sends }, () => fact)
  })
  return settled(named, "never_created", facts)
}

const readWithinMs = 60_000

/** Needs the service of the job whose login it was; fails with what is wrong in its row. */
const readNamed = Effect.fnUntraced(function* (of: Named) {
  const { line, external_execution_id, execution_id } = of
  if (execution_id === undefined) return neverCreatedOf(of)
  const service = yield* Service
  const until = (yield* Clock.currentTimeMillis) + readWithinMs
  const read = answeredBy(service.readExecution(execution_id), until)
  const answer = yield* Effect.catch(read, () => Effect.void)
  if (answer === undefined) return settled(of, "unread")
  if (answer._tag === "NotFound")
    return yield* Effect.fail(`line ${line}: the service does not know execution ${execution_id}`)
  const orders = ordersOf(of)
  const isTheirs = orders.every((order) => isOurs(answer, { ...order, external_execution_id }))
  if (!isTheirs)
    return yield* Effect.fail(
      `line ${line}: execution ${execution_id} does not say that it is the one of ${external_execution_id}`,
    )
  const judged = orders.map((order) => judgeFound(order, execution_id, order.before, answer))
  const facts = judged.flatMap((some) => some ?? [])
  return judged.includes(undefined) ? settled(of, "open") : settled(of, becameOf(facts), facts)
})

const settled = (
  { external_execution_id, execution_id }: Pick<Settled, "external_execution_id" | "execution_id">,
  became: Became,
  facts: ReadonlyArray<JudgedLogin> = [],
): Settled => ({ external_execution_id, execution_id, became, facts })

const becameOf = (facts: ReadonlyArray<JudgedLogin>): Became => {
  if (facts.some(({ _tag }) => _tag === "CredentialRejected")) return "rejected"
  return facts.some((fact) => fact._tag === "LoginJudged" && fact.verdict === "good")
    ? "accepted"
    : "no_login"
}

const becameTexts = {
  never_created: "that the service never created",
  accepted: "that the source accepted",
  rejected: "that the source rejected",
  no_login: "that never reached the source",
  open: "whose execution is still open: they count as before",
  unread: "whose execution could not be read: they count as before",
} as const
type Became = keyof typeof becameTexts

const settledText = (all: ReadonlyArray<Settled>): string =>
  Object.entries(becameTexts)
    .flatMap(([became, text]) => {
      const count = all.filter((one) => one.became === became).length
      return count === 0 ? [] : [`  ${counted(count, "login")} ${text}`]
    })
    .join("\n")

/** What the ledger knows of a login's attempt; each run is folded once. */
const knownAttempts = Effect.fnUntraced(function* (sent: ReadonlyArray<SentLogin>) {
  const ledger = yield* openedLedger
  const states = new Map<string, RunState | undefined>()
  for (const { run_id } of sent) if (!states.has(run_id)) states.set(run_id, yield* ledger.state(run_id))
  const attemptOf: AttemptOf = ({ run_id, task_id, attempt }) => {
    const task = task_id === undefined ? undefined : states.get(run_id)?.tasks.get(task_id)
    const found = task?.attempts.find((one) => one.attempt === attempt)
    return found?.disowned === true ? undefined : found
  }
  return attemptOf
})

const logins = Effect.gen(function* () {
  const accounts = yield* (yield* openedLedger).accounts
  const unanswered = accounts.flatMap(({ sent }) => sent.filter(({ answer }) => answer === undefined))
  const attemptOf = yield* knownAttempts(unanswered)
  return loginsOf(accounts, (login) => attemptOf(login)?.execution_id)
})

const heldTexts = {
  rejections:
    `An account is held after ${rejectedInARowMax} rejected logins in a row: another one may lock it. ` +
    "Until a release nothing is sent, not even a corrected login. Correct it first: a release allows the " +
    "rejected login itself, too.",
  LOGIN_UNPROVEN:
    `An account is held as LOGIN_UNPROVEN after ${strikesMax} logins in a row that may have failed: ` +
    "another one may lock it. A corrected password is sent once; otherwise nothing is sent until a release.",
} as const

const heldText = (rows: ReadonlyArray<LoginRow>): ReadonlyArray<string> =>
  Record.toEntries(heldTexts).flatMap(([why, text]) =>
    rows.some(({ held_by }) => held_by === why) ? [text] : [],
  )

const openText =
  "An open execution counts as a login that may have failed until its end is read: `nightjar run` with the " +
  "job that started it reads it."

const notOursText =
  "NOT_OURS: the service answered the start with an execution that is somebody else's, which no run reads. " +
  "The login counts as one that may have failed until it is released, or until `nightjar credentials " +
  "settle` is told what the service's support says of its external id."

const list = command(
  "list",
  {
    flags: {
      unproven: switchFlag("unproven", "Only logins whose end is unknown"),
      csv: switchFlag("csv", "With --unproven: print CSV, for the service's support"),
    },
    run: function* ({ unproven, csv }, output, isJson) {
      if (csv && (!unproven || isJson)) return yield* refuse("csv-without-unproven")
      const isNew = !(yield* hasLedger)
      if (isNew) yield* note(`No run has been started in ${output} yet.`)
      const all = isNew ? [] : yield* withLedger(logins)
      return unproven ? all.filter(isUnproven) : all
    },
    text: (rows, out, { unproven, csv }) => {
      if (csv) return writeOut(Stream.make(unprovenCsv(rows)))
      if (rows.length === 0)
        return unproven ? "No login is unproven." : "No credentials are rejected, held or unproven."
      return [
        ...incidentsText(rows, out.width),
        ...heldText(rows),
        ...(rows.some(({ execution_id }) => execution_id !== undefined) ? [openText] : []),
        ...(rows.some(({ answer }) => answer === ("NOT_OURS" satisfies Reason)) ? [notOursText] : []),
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

/** Each login that was named, by its fingerprint or by its account; an account without one as it is. */
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
  const loginsOfIt = (named: string | undefined): ReadonlyArray<string> => {
    const own = rows.flatMap(({ account, fingerprint }) => (account === named ? (fingerprint ?? []) : []))
    return own.length > 0 || named === undefined ? own : [named]
  }
  return [...new Set(resolved.flatMap(loginsOfIt))].map((one): Released => ({
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

const release = command(
  "release",
  {
    more: `
      By name: nothing that was sent to the account counts against it any more, and the named login, or each
      of a named account, may be sent again. With --unproven: each account that is held gets one login, and
      only if the source accepts it, nothing counts any more.`,
    examples: {
      "nightjar credentials release --unproven --answer 502 --dry-run":
        "How many accounts an outage has left held",
    },
    flags: {
      fingerprints: severalArguments("FINGERPRINT", "First characters, of a login or account"),
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
    },
    run: function* ({ fingerprints, unproven, yes, dryRun, ...asked }) {
      const { source, answer, run, reason, because } = Record.map(asked, Option.getOrUndefined)
      const from = yield* timeGiven("--from", asked.from)
      const to = yield* timeGiven("--to", asked.to)
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
    },
    json: ({ chosen }) => chosen.map(({ fingerprint, account }) => fingerprint ?? account),
    text: ({ what }, _, { unproven, dryRun }) =>
      dryRun
        ? `${what} would be released${unproven ? ", for one login each" : ""}.`
        : `${what} released for the next run${unproven ? ", one login each" : ""}.`,
  },
  "Releases credentials, so the next run sends them again",
)

const fileBytesMax = 64_000_000

/** Reads the executions that are named, each at the service of the job that asked for it. */
const readAll = Effect.fnUntraced(function* (
  output: string,
  named: ReadonlyArray<Named>,
  given: ReadonlyArray<string>,
) {
  const wiring = yield* Wiring
  const ledger = yield* openedLedger
  const runs = new Map((yield* ledger.runs).map(({ fact }) => [fact.run_id, fact]))
  const runOf = ({ logins }: Named) => logins.flatMap(({ login }) => runs.get(login.run_id) ?? []).at(0)
  const wanted = new Set(named.map((one) => runOf(one)?.job ?? ""))
  const { jobs, jobOf } = yield* jobsOf(
    [...runs.values()].filter(({ job }) => wanted.has(job)),
    given,
  )
  const missing = new Set(
    named.map(runOf).flatMap((run) => (jobOf(run) === undefined ? [run?.job ?? ""] : [])),
  )
  if (missing.size > 0) return yield* refuse("settle-job-needed", { jobs: listed([...missing], jobsTold) })
  yield* holdOutput(
    output,
    jobs.map(({ share }) => share),
  )
  const read = yield* Effect.forEach(jobs, (job) =>
    Effect.partition(
      named.filter((one) => jobOf(runOf(one)) === job),
      readNamed,
      { concurrency: readsAtOnce },
    ).pipe(Effect.provide(wiring.tokens(job, output))),
  )
  return { settled: read.flatMap(([settled]) => settled), problems: read.flatMap(([, problems]) => problems) }
}, Effect.scoped)

const readsAtOnce = 8
const jobsTold = 5

const problemsShown = 20

const refused = Effect.fnUntraced(function* (problems: ReadonlyArray<string>) {
  if (problems.length === 0) return
  const left = problems.length - problemsShown
  const more = left > 0 ? [`… and ${counted(left, "more problem")}`] : []
  yield* note([...problems.slice(0, problemsShown), ...more].join("\n"))
  return yield* refuse("settle-refused", { problems: counted(problems.length, "problem") })
})

const settle = command(
  "settle",
  {
    more: `
      The file is that of \`credentials list --unproven --csv\`. In the column execution_id of each login,
      support writes \`never_created\`, or the id of its execution: that is read, and counts as it ended. A
      login that the source accepted takes off those that were sent before it, and none that were sent later.
      Rows where the column is empty change nothing. If one row is wrong, nothing is changed.`,
    flags: {
      file: argument("FILE", "CSV with the columns external_execution_id and execution_id"),
      jobs: jobFlags,
      dryRun: switchFlag("dry-run", "Check the file and read the executions, and change nothing"),
    },
    run: function* ({ file, jobs, dryRun }, output) {
      const read = readTextFile(file, fileBytesMax)
      const text = yield* read.pipe(Effect.catch((why) => refuse("settle-file-unreadable", { why })))
      return yield* withLedger(
        Effect.gen(function* () {
          const ledger = yield* openedLedger
          const accounts = yield* ledger.accounts
          const attemptOf = yield* knownAttempts(accounts.flatMap(({ sent }) => sent))
          const { named, problems } = readSettlement(text, accounts, attemptOf)
          yield* refused(problems)
          const toRead = named.filter(({ execution_id }) => execution_id !== undefined)
          const found =
            toRead.length === 0 ? { settled: [], problems: [] } : yield* readAll(output, toRead, jobs)
          yield* refused(found.problems)
          const never = named.filter(({ execution_id }) => execution_id === undefined).map(neverCreatedOf)
          const places = named.map((one) => one.external_execution_id)
          const placeOf = (one: Settled) => places.indexOf(one.external_execution_id)
          const inOrder = found.settled.toSorted((one, other) => placeOf(one) - placeOf(other))
          const settled = [...never, ...inOrder]
          const facts = settled.flatMap((one) => one.facts)
          if (!dryRun && facts.length > 0) yield* ledger.append(facts)
          return settled
        }),
        dryRun ? "read-only" : "read-write",
      )
    },
    json: (settled) => settled.map(({ facts: _facts, ...told }) => told),
    text: (settled, _, { dryRun }) =>
      `${dryRun ? "This would be settled" : "Settled"}:\n${settledText(settled)}`,
  },
  "Settles unproven logins, with what the service's support says",
)

export const credentials = Command.make("credentials").pipe(Command.withSubcommands([list, release, settle]))
