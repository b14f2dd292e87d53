/**
 * What is known of the logins of accounts that were rejected, or whose end nobody has read: one row per
 * login, for JSON, for the service's support as CSV, and by incident for a terminal. An incident is what
 * happened to many accounts alike: one run, one engine, one answer. Pure.
 */
import { counted, isoTime, listed } from "../base/Text.ts"
import { AccountBook, heldOf, isOf, strikesFor, strikesMax } from "../ledger/Accounts.ts"
import type { Account, RejectedLogin, SentLogin } from "../ledger/Accounts.ts"
import { csvLine, harmless, plain, table, wrap } from "./TextTable.ts"
import { sourceOf } from "../service/Ids.ts"

const unprovenReason = "LOGIN_UNPROVEN" as const

/** `executionOf` is what the ledger knows of the attempt of a login that was not answered otherwise. */
export const loginsOf = (
  accounts: ReadonlyArray<Account>,
  executionOf: (login: SentLogin) => string | undefined,
) => {
  const book = new AccountBook(accounts)
  return accounts.flatMap((account) => {
    const { sent, rejected } = account
    if (sent.length + rejected.length === 0) return []
    const of = accountOf(account, book)
    return [...rejected, ...sent].map((login) => ({ ...of, ...loginOf(login, executionOf) }))
  })
}
export type LoginRow = ReturnType<typeof loginsOf>[number]

const accountOf = (account: Account, book: AccountBook) => {
  const { sent, rejected, good } = account
  const whole = { ...account, former: [] }
  const found = book.of(whole)
  const own = found.filter((one) => isOf(one, whole))
  // As a plan and a start decide it, which no list may contradict.
  const held = heldOf(found, whole)?.why
  const isHeld = held !== undefined && (held !== "unproven" || own.every(({ granted }) => granted === 0))
  const open = sent.length > 0 ? "unproven" : "rejected"
  const names = [...sent, ...rejected].flatMap(({ customer_id }) => customer_id ?? [])
  return {
    /** released: one more login was allowed, and is not sent yet. */
    state: isHeld ? "held" : held === undefined ? open : "released",
    account: account.account,
    /** Logins of it that may have failed. */
    strikes: strikesFor(own, whole),
    /** No login is sent to it. */
    account_held: isHeld,
    /** Why not. */
    held_by: !isHeld ? undefined : held === "unproven" ? unprovenReason : "rejections",
    /** All customers for whom something was sent to it. */
    customers: [...new Set<string>(names)],
    last_good_at: good === undefined ? undefined : isoTime(good.at),
  } as const
}

/** What is of one kind of login only, rejected or not proved, is undefined for the other. */
const loginOf = (login: RejectedLogin | SentLogin, executionOf: (login: SentLogin) => string | undefined) => {
  const { fingerprint, customer_id, engine_reference, run_id, task_id, at } = login
  const sent = "reason" in login ? undefined : login
  return {
    fingerprint,
    customer_id,
    engine_reference,
    /** Why the source rejected this login, or `LOGIN_UNPROVEN`. */
    reason: "reason" in login ? login.reason : unprovenReason,
    run_id,
    task_id,
    rejected_at: sent === undefined ? isoTime(at) : undefined,
    external_execution_id: sent?.external_execution_id,
    attempt: sent?.attempt,
    sent_at: sent && isoTime(at),
    sends: sent?.sends,
    /** Undefined while the answer is awaited, or its execution is open. */
    answer: sent?.answer,
    /** Its start was accepted, and nobody has read its end yet. */
    execution_id: sent === undefined || sent.answer !== undefined ? undefined : executionOf(sent),
  }
}

export const isUnproven = ({ sent_at }: LoginRow): boolean => sent_at !== undefined
const atOf = ({ sent_at, rejected_at }: LoginRow): string => sent_at ?? rejected_at ?? ""

/** Conditions; `reason` is that of a rejection which counts as one of the strikes. */
type Meant = Readonly<
  Partial<Record<"source" | "answer" | "from" | "to" | "run" | "reason", string | undefined>>
>

/** Accounts of which one login fits all of it; a reason may be that of another login of the account. */
export const heldAccounts = (rows: ReadonlyArray<LoginRow>, meant: Meant): ReadonlyArray<string> => {
  const { source, answer, from, to, run, reason } = meant
  const held = rows.filter(({ held_by }) => held_by === unprovenReason)
  const ofReason = new Set(held.filter((row) => row.reason === reason).map(({ account }) => account))
  const fits = held.filter(
    (row) =>
      isUnproven(row) &&
      (source === undefined || [sourceOf(row.engine_reference), row.engine_reference].includes(source)) &&
      (answer === undefined || row.answer === answer) &&
      (from === undefined || atOf(row) >= from) &&
      (to === undefined || atOf(row) <= to) &&
      (run === undefined || row.run_id === run) &&
      (reason === undefined || ofReason.has(row.account)),
  )
  return [...new Set(fits.map(({ account }) => account))]
}

/** For the service's support, who fill in the last column: `never_created`, or the execution's id. */
const supportColumns: Readonly<Record<string, (row: LoginRow) => string | undefined>> = {
  account: ({ account }) => account,
  customers: ({ customers }) => customers.join(" "),
  engine_reference: (row) => row.engine_reference,
  external_execution_id: (row) => row.external_execution_id,
  sent_at: ({ sent_at }) => sent_at,
  answer: ({ answer }) => answer,
  execution_id: () => "",
}

export const unprovenCsv = (rows: ReadonlyArray<LoginRow>): string => {
  const columns = Object.values(supportColumns)
  const cells = rows.filter(isUnproven).map((row) => columns.map((of) => harmless(of(row) ?? "")))
  return [Object.keys(supportColumns), ...cells].map(csvLine).join("")
}

/** Those with the most accounts first. */
const incidentsOf = (rows: ReadonlyArray<LoginRow>) => {
  const alike = Map.groupBy(rows, (row) =>
    JSON.stringify([row.engine_reference, whatOf(row), isUnproven(row), row.run_id]),
  )
  return [...alike.values()]
    .flatMap((group) => {
      const sorted = group.toSorted((one, other) => (atOf(one) < atOf(other) ? -1 : 1))
      const [first] = sorted
      if (first === undefined) return []
      const { engine_reference, run_id } = first
      const to = atOf(sorted.at(-1) ?? first)
      const accounts = new Set(sorted.map(({ account }) => account)).size
      return [
        { engine_reference, what: whatOf(first), run_id, from: atOf(first), to, rows: sorted, accounts },
      ]
    })
    .toSorted((one, other) => other.accounts - one.accounts || (one.from < other.from ? -1 : 1))
}

const whatOf = (row: LoginRow): string => {
  if (!isUnproven(row)) return row.reason
  return row.answer ?? (row.execution_id === undefined ? "answer awaited" : "execution open")
}

/** `2026-11-20 22:31–22:41`, UTC. */
const within = ({ from, to }: Readonly<Record<"from" | "to", string>>): string => {
  const [day, minute] = [from.slice(0, 10), from.slice(11, 16)]
  if (from.slice(0, 16) === to.slice(0, 16)) return `${day} ${minute}`
  return day === to.slice(0, 10)
    ? `${day} ${minute}–${to.slice(11, 16)}`
    : `${day} ${minute} – ${to.slice(0, 10)} ${to.slice(11, 16)}`
}

const stateText = ({ state, strikes, held_by, execution_id }: LoginRow): string => {
  if (state === "unproven" && execution_id !== undefined) return `open, counts as ${strikes} of ${strikesMax}`
  if (state === "unproven") return `unproven ${strikes} of ${strikesMax}`
  if (state === "released") return "released, one login"
  if (state === "rejected") return "rejected"
  return held_by === unprovenReason ? `held ${unprovenReason}` : "held"
}

const incidentsMax = 20
const accountsMax = 10
const customersMax = 3
const idShown = 16
/** Below this, a table would cut the names that `release` accepts. */
const tableWidthMin = 120

/** Bounded, however many accounts there are: the rest is in `--json` and `--csv`. */
export const incidentsText = (rows: ReadonlyArray<LoginRow>, width: number): ReadonlyArray<string> => {
  const incidents = incidentsOf(rows)
  const told = incidents.slice(0, incidentsMax).flatMap((incident) => {
    const { engine_reference, what, run_id, accounts } = incident
    const many = `${accounts.toLocaleString("en-US")} ${accounts === 1 ? "account" : "accounts"}`
    const held = new Set(incident.rows.flatMap((row) => (row.account_held ? row.account : [])))
    const now = held.size === 0 ? [] : [`${held.size.toLocaleString("en-US")} held`]
    const head = [many, engine_reference, what, run_id, within(incident), ...now].map(plain).join(", ")
    const header = ["login or account", "state", "customers", "at (UTC)", "external id", "before"]
    const shown = incident.rows
      .slice(0, accountsMax)
      .map((row) => [
        ((isUnproven(row) ? undefined : row.fingerprint) ?? row.account).slice(0, idShown),
        stateText(row),
        row.customers.length === 0 ? "(removed)" : listed(row.customers, customersMax),
        atOf(row).slice(0, 19).replace("T", " "),
        row.external_execution_id ?? "",
        row.last_good_at === undefined ? "no good login" : `good on ${row.last_good_at.slice(0, 10)}`,
      ])
    const more = incident.rows.length - shown.length
    return [
      wrap(head, width, "", "  "),
      ...(width < tableWidthMin
        ? shown.map((cells) => wrap(cells.filter((cell) => cell !== "").join(", "), width, "  ", "    "))
        : [table(header, shown, { width: width - 2 }).replaceAll(/^/gm, "  ")]),
      ...(more > 0 ? [`  … and ${counted(more, "more login", "more logins")}`] : []),
      "",
    ]
  })
  const left = incidents.slice(incidentsMax)
  const more = left.reduce((sum, { rows: all }) => sum + all.length, 0)
  if (more === 0) return told
  return [...told, `${counted(left.length, "more incident")} with ${counted(more, "login")}.`, ""]
}
