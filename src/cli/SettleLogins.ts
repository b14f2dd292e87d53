/**
 * What the service's support says of logins whose answer nobody read, from a CSV file: each external
 * execution id was never created, or it has an execution id, which is read. Nothing changes if a row is
 * wrong.
 */
import { Clock, Effect } from "effect"
import { ExecutionId } from "../service/Ids.ts"
import type { JudgedLogin, LoginOrder } from "../task/StartAttempt.ts"
import { counted } from "../base/Text.ts"
import { CsvReader } from "../jobs/Csv.ts"
import type { CsvRow } from "../jobs/Csv.ts"
import type { Account, SentLogin } from "../ledger/Accounts.ts"
import { Service } from "../client/Service.ts"
import { isOurs } from "../task/Attempt.ts"
import { answeredBy } from "../task/Ending.ts"
import { judgeFound } from "../task/StartAttempt.ts"

/** A login whose account counts it, until somebody says what became of it. */
interface Counted {
  readonly account: Account
  readonly login: SentLogin
}

/** What one row says. */
interface Named {
  readonly line: number
  readonly external_execution_id: string
  /** Undefined: it was never created. */
  readonly execution_id: ExecutionId | undefined
  readonly logins: ReadonlyArray<Counted>
}

export interface Settlement {
  readonly named: ReadonlyArray<Named>
  /** With the line of each; if there are any, nothing may be settled. */
  readonly problems: ReadonlyArray<string>
}

const idColumn = "external_execution_id"
const saysColumn = "execution_id"
const neverCreated = "never_created"

/** What the rows say; `executionOf` is what the ledger knows of the attempt of a login. */
export const readSettlement = (
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
  if (problems.length > 0) return { named: [], problems }
  const known = countedLogins(accounts)
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
        ? problemOf(row, executionOf)
        : before.execution_id === execution_id
          ? `the same as line ${before.line}`
          : `contradicts line ${before.line}`
    if (problem !== undefined) problems.push(`line ${line}: ${problem}`)
    if (before === undefined) named.set(external_execution_id, row)
  }
  if (named.size === 0 && problems.length === 0)
    problems.push(`no row has anything in column \`${saysColumn}\``)
  return { named: problems.length === 0 ? [...named.values()] : [], problems }
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
    accounts.flatMap((account) => account.sent.map((login): Counted => ({ account, login }))),
    ({ login }) => login.external_execution_id ?? "",
  )

const problemOf = (
  { external_execution_id, execution_id, logins }: Named,
  executionOf: (login: SentLogin) => string | undefined,
): string | undefined => {
  if (external_execution_id === "" || logins.length === 0)
    return "no login that is not proved has this external id"
  const known = logins.map(({ login }) => executionOf(login)).find((id) => id !== undefined)
  return known === undefined || known === execution_id
    ? undefined
    : `the service created execution ${known} for it`
}

/** As the attempt that sent it knew it; undefined if its customer was removed since. */
const orderOf = ({ account: { account, identity, row }, login }: Counted): LoginOrder | undefined => {
  const { run_id, task_id, attempt, customer_id, engine_reference, password, fingerprint } = login
  if (task_id === undefined || customer_id === undefined) return undefined
  return {
    run_id,
    task_id,
    attempt,
    customer_id,
    engine_reference,
    fingerprint,
    account: {
      account,
      identity,
      password,
      former: [],
      isByHand: true,
      ...(row === undefined ? {} : { row }),
    },
  }
}

/** open, unread: it counts as before. The others are verdicts on the login. */
type Became = "never_created" | "accepted" | "rejected" | "no_login" | "open" | "unread"

export interface Settled extends Pick<Named, "external_execution_id" | "execution_id"> {
  readonly became: Became
  readonly facts: ReadonlyArray<JudgedLogin>
}

/** Only its own strike is taken off: what else was sent to the account stays. */
export const neverCreatedOf = ({ external_execution_id, execution_id, logins }: Named): Settled => ({
  external_execution_id,
  execution_id,
  became: "never_created",
  facts: logins.flatMap((one): ReadonlyArray<JudgedLogin> => {
    const order = orderOf(one)
    if (order?.account === undefined) return []
    const { run_id, task_id, attempt, fingerprint } = order
    const { account, password } = order.account
    const login = { account, password, ...(fingerprint === undefined ? {} : { fingerprint }) }
    return [
      {
        _tag: "LoginJudged",
        run_id,
        task_id,
        attempt,
        ...login,
        verdict: "neutral",
        said: neverCreated,
      },
    ]
  }),
})

const readWithinMs = 60_000

/** Needs the service of the job whose login it was; fails with what is wrong in its row. */
export const readNamed = Effect.fnUntraced(function* ({ line, logins, ...of }: Named) {
  const { external_execution_id, execution_id } = of
  if (execution_id === undefined) return neverCreatedOf({ line, logins, ...of })
  const service = yield* Service
  const until = (yield* Clock.currentTimeMillis) + readWithinMs
  const read = answeredBy(service.readExecution(execution_id), until)
  const answer = yield* Effect.catch(read, () => Effect.void)
  if (answer === undefined) return settled(of, "unread")
  if (answer._tag === "NotFound")
    return yield* Effect.fail(`line ${line}: the service does not know execution ${execution_id}`)
  const orders = logins.flatMap((one) => orderOf(one) ?? [])
  const isTheirs = orders.every((order) => isOurs(answer, { ...order, external_execution_id }))
  if (!isTheirs)
    return yield* Effect.fail(
      `line ${line}: execution ${execution_id} does not say that it is the one of ${external_execution_id}`,
    )
  const judged = orders.map((order) => judgeFound(order, execution_id, answer))
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
  no_login: "of which nothing reached the source",
  open: "whose execution is still open: they count as before",
  unread: "whose execution could not be read: they count as before",
} satisfies Readonly<Record<Became, string>>

export const settledText = (all: ReadonlyArray<Settled>): string =>
  Object.entries(becameTexts)
    .flatMap(([became, text]) => {
      const count = all.filter((one) => one.became === became).length
      return count === 0 ? [] : [`  ${counted(count, "login")} ${text}`]
    })
    .join("\n")

const problemsShown = 20

export const problemsText = (problems: ReadonlyArray<string>): string => {
  const left = problems.length - problemsShown
  const more = left > 0 ? [`… and ${counted(left, "more problem")}`] : []
  return [...problems.slice(0, problemsShown), ...more].join("\n")
}
