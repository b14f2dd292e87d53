/**
 * What the service's support says of logins whose answer nobody read, from a CSV file: each external
 * execution id was never created, or it has an execution id. Everything is checked before anything changes.
 */
import { counted } from "../foundation/Counted.ts"
import { CsvReader } from "../jobs/Csv.ts"
import type { CsvRow } from "../jobs/Csv.ts"
import type { Account, SentLogin } from "../ledger/Accounts.ts"
import type { LoginJudged } from "../ledger/LoginFacts.ts"

/** A login whose account counts it, until somebody says what became of it. */
interface Counted {
  readonly account: string
  readonly login: SentLogin
}

export interface Settlement {
  readonly facts: ReadonlyArray<typeof LoginJudged.Type>
  readonly external_execution_ids: ReadonlyArray<string>
  /** With the line of each; if there are any, nothing may be settled. */
  readonly problems: ReadonlyArray<string>
}

const idColumn = "external_execution_id"
const saysColumn = "execution_id"
const neverCreated = "never_created"

/** `executionOf` is what the ledger knows of the attempt of a login. */
export const settleLogins = (
  text: string,
  accounts: ReadonlyArray<Account>,
  executionOf: (login: SentLogin) => string | undefined,
): Settlement => {
  const problems: Array<string> = []
  const rows = rowsOf(text, problems)
  const [header, ...body] = rows
  const columns = [idColumn, saysColumn].map((name) =>
    (header?.cells ?? []).findIndex((cell) => cell.trim() === name),
  )
  const missing = [idColumn, saysColumn].filter((_, at) => columns[at] === -1)
  if (missing.length > 0) problems.push(`line 1: no column \`${missing.join("` and no column `")}\``)
  if (problems.length > 0) return { facts: [], external_execution_ids: [], problems }
  const known = countedLogins(accounts)
  const named = new Map<string, { readonly line: number; readonly says: string }>()
  for (const { line, cells } of body) {
    const [id = "", says = ""] = columns.map((at) => (cells[at] ?? "").trim())
    // A row of the list that support did not fill in.
    if (says === "") continue
    const before = named.get(id)
    const problem =
      before === undefined
        ? problemOf(known.get(id) ?? [], says, executionOf)
        : before.says === says
          ? `the same as line ${before.line}`
          : `contradicts line ${before.line}`
    if (problem !== undefined) problems.push(`line ${line}: ${problem}`)
    if (before === undefined) named.set(id, { line, says })
  }
  if (named.size === 0 && problems.length === 0) problems.push(`nothing is said in column \`${saysColumn}\``)
  if (problems.length > 0) return { facts: [], external_execution_ids: [], problems }
  const ids = [...named.keys()]
  return { facts: ids.flatMap((id) => factsOf(known.get(id) ?? [])), external_execution_ids: ids, problems }
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

const countedLogins = (accounts: ReadonlyArray<Account>): ReadonlyMap<string, ReadonlyArray<Counted>> =>
  Map.groupBy(
    accounts.flatMap(({ account, sent }) => sent.map((login): Counted => ({ account, login }))),
    ({ login }) => login.external_execution_id ?? "",
  )

const problemOf = (
  logins: ReadonlyArray<Counted>,
  says: string,
  executionOf: (login: SentLogin) => string | undefined,
): string | undefined => {
  if (logins.every(({ login }) => login.external_execution_id === undefined))
    return "no login that is not proved has this external id"
  if (says !== neverCreated)
    return `only \`${neverCreated}\` can be settled: this version does not read an execution by its id`
  const execution = logins.map(({ login }) => executionOf(login)).find((id) => id !== undefined)
  return execution === undefined ? undefined : `the service created execution ${execution} for it`
}

/** Only its own strike is taken off: what else was sent to the account stays. */
const factsOf = (logins: ReadonlyArray<Counted>): ReadonlyArray<typeof LoginJudged.Type> =>
  logins.flatMap(({ account, login: { run_id, task_id, attempt, password, fingerprint } }) =>
    task_id === undefined
      ? []
      : [
          {
            _tag: "LoginJudged",
            run_id,
            task_id,
            attempt,
            account,
            password,
            ...(fingerprint === undefined ? {} : { fingerprint }),
            verdict: "neutral",
            said: neverCreated,
          },
        ],
  )

const problemsShown = 20

export const problemsText = (problems: ReadonlyArray<string>): string => {
  const left = problems.length - problemsShown
  const more = left > 0 ? [`… and ${counted(left, "more problem")}`] : []
  return [...problems.slice(0, problemsShown), ...more].join("\n")
}
