/**
 * The accounts that logins open, over all runs: what was sent to each without a known end, what its source
 * rejected, and when it last accepted a login. Pure: how a fact changes an account, and whether a login may
 * be sent. A *strike* is a login that may have failed. Sources lock an account after a few in a row: none
 * sees more than three, over any number of nights; only a login that was accepted sets them to zero.
 */
import { Schema, Struct } from "effect"
import type { AttemptKeys } from "./FactKeys.ts"
import { given } from "../base/Schemas.ts"
import type { AccountKeys } from "../privacy/Fingerprint.ts"
import { openLongestMs } from "../service/Execution.ts"
import { CustomerId, EngineReference, RunId, TaskId, sourceOf } from "../service/Ids.ts"

/** Of every login that an account remembers. */
const ofLogin = {
  run_id: RunId,
  engine_reference: EngineReference,
  /** Absent once the customer was removed (`nightjar forget`), as the external id. */
  task_id: Schema.optionalKey(TaskId),
  customer_id: Schema.optionalKey(CustomerId),
  /** In rejections of earlier versions, the fingerprint. */
  password: Schema.String,
  secret: Schema.optionalKey(Schema.String),
  /** As in `AccountKeys`; absent in ledgers from before it was recorded. */
  written: Schema.optionalKey(Schema.String),
}
/** Logins of one attempt whose end nobody has read: the start, and the probe if it was sent. */
export const SentLogin = Schema.Struct({
  ...ofLogin,
  attempt: Schema.Int,
  external_execution_id: Schema.optionalKey(Schema.String),
  fingerprint: Schema.optionalKey(Schema.String),
  /** Milliseconds; of the last request. */
  at: Schema.Int,
  /** Milliseconds: how long its run waits for it to close; absent in ledgers from before it was recorded. */
  max_wait: Schema.optionalKey(Schema.Int),
  sends: Schema.Int,
  /** The service named its execution, and nobody has read its end; absent in ledgers from before. */
  open: Schema.optionalKey(Schema.Literal(true)),
  /** What came back, for people: a status or `no answer`. Absent while the answer is awaited. */
  answer: Schema.optionalKey(Schema.String),
  /** What came back to the request before the last one. */
  earlier: Schema.optionalKey(Schema.String),
  /** Its last request is one that a person allowed beyond the bound. */
  granted: Schema.optionalKey(Schema.Literal(true)),
})
export type SentLogin = typeof SentLogin.Type

export const RejectedLogin = Schema.Struct({
  ...ofLogin,
  fingerprint: Schema.String,
  reason: Schema.String,
  at: Schema.Int,
  /** When it was sent; unknown for those of earlier versions. */
  sent_at: Schema.optionalKey(Schema.Int),
  /** No login that was sent later is known to be accepted. */
  counts: Schema.Boolean,
  /** Logins that it stands for, if more than one: the start that was lost before its probe was rejected. */
  logins: Schema.optionalKey(Schema.Int),
})
export type RejectedLogin = typeof RejectedLogin.Type

export const Account = Schema.Struct({
  account: Schema.String,
  /** Empty for an account that only an earlier version knew. */
  identity: Schema.Array(Schema.String),
  /** As in `AccountKeys`, of the last login that had any. */
  plain: Schema.optionalKey(Schema.Array(Schema.String)),
  row: Schema.optionalKey(Schema.String),
  /** Names that earlier versions gave to the account or to a login of it. */
  former: Schema.Array(Schema.String),
  sent: Schema.Array(SentLogin),
  rejected: Schema.Array(RejectedLogin),
  good: Schema.optionalKey(
    Schema.Struct({ password: Schema.String, fingerprint: Schema.String, at: Schema.Int }),
  ),
  /** The changed password that was sent although the account was held; there is one until a good login. */
  bought: Schema.optionalKey(Schema.String),
  /** Logins that a person allowed beyond the bound. */
  granted: Schema.Int,
})
export type Account = typeof Account.Type

export const newAccount = ({
  account,
  identity,
  plain,
  row,
}: Pick<AccountKeys, "account" | "identity" | "plain" | "row">): Account => ({
  account,
  identity,
  ...given({ plain, row }),
  former: [],
  sent: [],
  rejected: [],
  granted: 0,
})

/** Strikes of an account that are borne: with this many, nothing more is sent. */
export const strikesMax = 3
/** Different passwords of one account that may be rejected in a row. */
export const rejectedInARowMax = 2

const containsAll = (all: ReadonlyArray<string>, some: ReadonlyArray<string>): boolean =>
  some.every((one) => all.includes(one))

/** What a login is recognised by, besides its account; and what other accounts are found by, too. */
type Named = Pick<AccountKeys, "identity" | "plain" | "former">
export type Beside = Named & Pick<AccountKeys, "row">

/** What was sent to an account, and what earlier versions called it. */
const formerNames = ({ former, sent, rejected, good }: Account): ReadonlyArray<string> => [
  ...former,
  ...[...sent, ...rejected].flatMap((one) => one.written ?? []),
  ...[...sent, ...rejected, good].flatMap((one) => one?.fingerprint ?? []),
]

/**
 * Whether the login opens this account: all values that name the user of the one are sent for the other, too,
 * or it was sent before.
 */
export const isOf = (account: Account, login: Named): boolean =>
  (account.identity.length > 0 &&
    (containsAll(account.plain ?? account.identity, login.identity) ||
      containsAll(login.plain ?? login.identity, account.identity))) ||
  formerNames(account).some((one) => login.former.includes(one))

/** Many users may send one value that names none of them: only who is named by it finds them. */
const onlySent = (value: string): string => `sent ${value}`

/** Under these names an account is found. */
export const namesOf = (account: Account): ReadonlyArray<string> => [
  ...account.identity,
  ...(account.plain ?? []).map(onlySent),
  ...formerNames(account),
  ...(account.row === undefined ? [] : [account.row]),
]
/** Under these names a login finds the accounts that it is beside, and perhaps others. */
export const soughtBy = ({ identity, plain = identity, former, row }: Beside): ReadonlyArray<string> => [
  ...plain,
  ...identity.map(onlySent),
  ...former,
  ...(row === undefined ? [] : [row]),
]
/** What a decision reads of the accounts, in the transaction that writes what it decides. */
export interface KnownAccounts {
  readonly ofLogin: (login: Beside) => ReadonlyArray<Account>
}

/** Whether the login opens the account or shares its row. */
export const isBeside = (account: Account, login: Beside): boolean =>
  isOf(account, login) || (login.row !== undefined && account.row === login.row)

export const isSameAttempt = (
  one: Partial<AttemptKeys>,
  { run_id, task_id, attempt }: Partial<AttemptKeys>,
): boolean => one.run_id === run_id && one.task_id === task_id && one.attempt === attempt

const distinct = (texts: ReadonlyArray<string>): number => new Set(texts).size

/** Rejected since the account last accepted a login, the newest last. */
const countedRejections = (accounts: ReadonlyArray<Account>): ReadonlyArray<RejectedLogin> =>
  accounts
    .flatMap(({ rejected }) => rejected.filter(({ counts }) => counts))
    .toSorted((one, other) => one.at - other.at)

const unproven = (accounts: ReadonlyArray<Account>): number =>
  accounts.flatMap(({ sent }) => sent).reduce((all, { sends }) => all + sends, 0)

/** Of one password that was rejected to several of the accounts, those that saw it most often count. */
const rejectedLogins = (accounts: ReadonlyArray<Account>): number => {
  const logins = new Map<string, number>()
  for (const { password, logins: one = 1 } of countedRejections(accounts))
    logins.set(password, Math.max(one, logins.get(password) ?? 0))
  return [...logins.values()].reduce((all, one) => all + one, 0)
}

export const strikesOf = (accounts: ReadonlyArray<Account>): number =>
  unproven(accounts) + rejectedLogins(accounts)

/** The account that a login names, and its password if it is known. */
type Login = Named & Pick<AccountKeys, "account" | "secret"> & Partial<Pick<AccountKeys, "password">>

/** By which logins with other fields are compared. */
export const secretOf = ({ secret, password }: Pick<Login, "secret" | "password">): string | undefined =>
  secret ?? password

/**
 * What counts for a login. Accounts under other names may be somebody else's: a good login to one of them
 * ends what was sent to the others before, for whoever sends another password; they lose nothing by it.
 */
export const countedFor = (accounts: ReadonlyArray<Account>, login: Login): ReadonlyArray<Account> => {
  const goodAt = Math.max(-Infinity, ...accounts.flatMap(({ good }) => good?.at ?? []))
  return accounts.map((one) =>
    one.account === login.account ? one : forgive(one, goodAt, (sent) => secretOf(sent) !== secretOf(login)),
  )
}

const ownOf = (accounts: ReadonlyArray<Account>, login: Login): ReadonlyArray<Account> =>
  countedFor(
    accounts.filter((account) => isOf(account, login)),
    login,
  )

/** Logins that may have failed, as they count for this one; `accounts` as in `holdOf`. */
export const strikesFor = (accounts: ReadonlyArray<Account>, login: Login): number =>
  strikesOf(ownOf(accounts, login))

/** Whether one more login that may have failed holds the account; `accounts` as in `holdOf`. */
export const isNextTheLast = (accounts: ReadonlyArray<Account>, login: Login): boolean =>
  strikesFor(accounts, login) >= strikesMax - 1

export type Hold =
  /** This very login was rejected; or so many of the account were that another one might lock it. */
  | { readonly why: "rejected" | "rejections"; readonly by: RejectedLogin }
  /** `LOGIN_UNPROVEN` */
  | { readonly why: "unproven"; readonly strikes: number; readonly last: SentLogin | RejectedLogin }
  /**
   * Another login of the account may be open at the service until then (milliseconds). `isUnknown`: the
   * answers to it have come, and none says whether it runs.
   */
  | { readonly why: "busy"; readonly until: number; readonly isUnknown: boolean }
  /** The third strike, after those of these runs: it waits until the engine accepts other accounts. */
  | { readonly why: "third"; readonly runs: ReadonlyArray<RunId> }

export type Held = Hold & { readonly why: "rejections" | "unproven" }

/** Why nothing is sent to an account, whatever the login, or undefined; `accounts` as in `holdOf`. */
export const heldOf = (accounts: ReadonlyArray<Account>, login: Login): Held | undefined => {
  const inARow = countedRejections(countedFor(accounts, login))
  const last = inARow.at(-1)
  if (last !== undefined && distinct(inARow.map(({ password }) => password)) >= rejectedInARowMax)
    return { why: "rejections", by: last }
  const own = ownOf(accounts, login)
  const strikes = strikesOf(own)
  if (strikes < strikesMax) return undefined
  const counted = [...own.flatMap((account) => account.sent), ...countedRejections(own)]
  const newest = counted.toSorted((one, other) => one.at - other.at).at(-1)
  return newest === undefined ? undefined : { why: "unproven", strikes, last: newest }
}

export interface Moment {
  readonly now: number
  /** The attempt that asks: what it sent itself is not in its way. */
  readonly self?: AttemptKeys
}

/** Another version of the form calls other fields the password, but nobody has written anything else. */
const isWrittenAs = ({ written }: Pick<RejectedLogin, "written">, login: AccountKeys): boolean =>
  written !== undefined && written === login.written

/** Another channel asks for other fields: that they differ is no correction, only other secrets are. */
const isElsewhere = (one: SentLogin | RejectedLogin, login: AccountKeys): boolean =>
  login.engine !== undefined && one.engine_reference !== login.engine && secretOf(one) === secretOf(login)

/**
 * Why a login is not sent now; undefined if it may be. `accounts` are those that it opens, and those that
 * share its row. Asked when a plan is made, before a start and before a probe.
 */
export const holdOf = (
  accounts: ReadonlyArray<Account>,
  login: AccountKeys,
  moment: Moment,
): Hold | undefined => {
  // A login that was sent before, or a token made with one, tells its password by its fingerprint.
  const passwords = new Set([login.password])
  for (const one of accounts.flatMap(({ sent, rejected, good }) => [...sent, ...rejected, good]))
    if (one?.fingerprint !== undefined && login.former.includes(one.fingerprint)) passwords.add(one.password)
  const isSame = (one: RejectedLogin) =>
    passwords.has(one.password) || isWrittenAs(one, login) || (one.counts && isElsewhere(one, login))
  const same = accounts.flatMap(({ rejected }) => rejected).findLast(isSame)
  if (same !== undefined) return { why: "rejected", by: same }
  const held = heldOf(accounts, login)
  const opened = accounts.filter((account) => isOf(account, login))
  const own = ownOf(accounts, login)
  const until = busyUntil(opened, moment)
  const isBusy = until > moment.now
  // A login that is followed may still end well.
  const over = own.map((one) => ({ ...one, sent: one.sent.filter(({ answer }) => answer !== undefined) }))
  const isOpen = isBusy && held?.why === "unproven" && strikesOf(over) < strikesMax
  if (held !== undefined && !isOpen && (held.why === "rejections" || !mayExceed(own, login))) return held
  if (isBusy) return { why: "busy", until, isUnknown: busyUntil(unanswered(opened), moment) <= moment.now }
  if (strikesOf(own) !== strikesMax - 1) return undefined
  const sent = own.flatMap((one) => one.sent.flatMap(({ run_id, sends }) => Array(sends).fill(run_id)))
  const refused = countedRejections(own).flatMap(({ run_id, logins = 1 }) => Array(logins).fill(run_id))
  return { why: "third", runs: [...sent, ...refused] }
}

const unanswered = (accounts: ReadonlyArray<Account>): ReadonlyArray<Account> =>
  accounts.map((one) => ({ ...one, sent: one.sent.filter(({ answer }) => answer === undefined) }))

/**
 * How long a login may be open at the service once it was sent (milliseconds): as long as its run waits for
 * it, and if its execution is known, at least as long as one can last, because its run may be dead or unable
 * to stop it. A service that never closes one does not hold its account for longer.
 */
export const openMs = (isKnown: boolean, max_wait = openLongestMs): number =>
  isKnown ? Math.max(max_wait, openLongestMs) : max_wait

/** Until when a login that was sent may be open at the service (milliseconds), whoever asks. */
export const busyUntil = (accounts: ReadonlyArray<Account>, { now, self }: Moment): number =>
  Math.max(
    -Infinity,
    ...accounts
      .flatMap(({ sent }) => sent)
      .filter((one) => self === undefined || !isSameAttempt(one, self))
      // A clock that was set back makes nobody wait longer than one execution may take.
      .map(({ at, open, max_wait }) => Math.min(at, now) + openMs(open === true, max_wait)),
  )

/**
 * A person released one login, or corrected the password: that buys one login, once until a login is
 * accepted. A value that changes by itself is no correction.
 */
const mayExceed = (own: ReadonlyArray<Account>, login: AccountKeys): boolean => {
  if (own.some(({ granted }) => granted > 0)) return true
  const sent = own.flatMap((account) => account.sent)
  return (
    login.isByHand &&
    own.every(({ bought }) => bought === undefined) &&
    distinct(sent.map((one) => secretOf(one) ?? "")) <= 1 &&
    !sent.some((one) => one.password === login.password || isWrittenAs(one, login) || isElsewhere(one, login))
  )
}

/** A request leaves. `by`: it is beyond the bound, and what allows it is used up. */
export const addSent = (account: Account, login: SentLogin, by?: "granted" | "bought"): Account => {
  const before = account.sent.find((one) => isSameAttempt(one, login))
  const { answer, granted: _granted, open: _open, ...known } = before ?? login
  const sends = (before?.sends ?? 0) + 1
  const one = {
    ...known,
    ...given({ earlier: answer }),
    at: login.at,
    ...given({ max_wait: login.max_wait }),
    sends,
    ...(by === "granted" ? { granted: true as const } : {}),
  }
  return {
    ...account,
    sent: [...account.sent.filter((other) => other !== before), one],
    ...(by === "bought" ? { bought: login.password } : {}),
    granted: by === undefined ? account.granted : Math.max(0, account.granted - 1),
  }
}

/** The service named the execution of its last request: until its end is read, nothing else is sent. */
export const markOpen = (account: Account, attempt: Partial<AttemptKeys>): Account => ({
  ...account,
  sent: account.sent.map((one) => (isSameAttempt(one, attempt) ? { ...one, open: true } : one)),
})

/** What became of the login of an attempt; what is known of none stays. */
export const loginVerdicts = ["not_sent", "unproven", "away", "neutral", "good"] as const
export type LoginVerdict = (typeof loginVerdicts)[number]

/**
 * not_sent: the last request created nothing. neutral: its execution made no login, or nothing says how that
 * ended. An earlier request keeps its strike, and what allowed the last one allows another. unproven: it is
 * not known whether a login was made. away: the same, but its engine says that none was: none is waited for.
 */
export const judgeSent = (
  account: Account,
  attempt: AttemptKeys,
  verdict: Exclude<LoginVerdict, "good">,
  answer: string | undefined,
): Account => {
  const judged = account.sent.find((login) => isSameAttempt(login, attempt))
  if (judged === undefined) return account
  const { open: _, ...one } = judged
  const replaced = (by: ReadonlyArray<SentLogin>) =>
    account.sent.flatMap((login) => (login === judged ? by : [login]))
  if (verdict === "unproven" || verdict === "away") {
    const over = verdict === "away" ? { max_wait: 0 } : {}
    return answer === undefined ? account : { ...account, sent: replaced([{ ...one, answer, ...over }]) }
  }
  const { granted: wasGranted, ...known } = one
  // The service accepts no start of a customer's engine while an earlier one runs (4.1): none is waited for.
  const over = verdict === "neutral" ? { answer: one.earlier ?? "no answer", max_wait: 0 } : {}
  const left = one.sends > 1 ? [{ ...known, ...over, sends: one.sends - 1 }] : []
  const granted = account.granted + (wasGranted === true ? 1 : 0)
  return withoutUnused({ ...account, sent: replaced(left), granted })
}

/** A changed password that was not sent in the end, or that was followed by a good login, may be changed. */
const withoutUnused = ({ bought, ...account }: Account): Account => {
  const counted = [...account.sent, ...countedRejections([account])]
  return bought !== undefined && counted.some(({ password }) => password === bought)
    ? { ...account, bought }
    : account
}

/**
 * The strikes of its attempt become a rejection: a start that was lost before was rejected, too, if it
 * arrived. Older ones stay: they may be failures.
 */
export const addRejected = (account: Account, attempt: number | undefined, login: RejectedLogin): Account => {
  const { run_id, task_id } = login
  const own = account.sent.find((one) => isSameAttempt(one, given({ run_id, task_id, attempt })))
  const isSame = (one: RejectedLogin) =>
    one.password === login.password && one.run_id === run_id && one.task_id === task_id
  // The end of an execution says again what the answer to its start has said.
  if (own === undefined && account.rejected.some(isSame)) return account
  const logins = own?.sends ?? 1
  const rejected = own === undefined ? login : { ...login, sent_at: own.at }
  return {
    ...account,
    sent: account.sent.filter((one) => one !== own),
    rejected: [
      ...account.rejected.filter(({ password }) => password !== login.password),
      logins > 1 ? { ...rejected, logins } : rejected,
    ],
  }
}

/**
 * The source accepted a login that was sent at `until`: what was sent until then no longer counts, if it is
 * of the same login. What was rejected is still not sent again.
 */
export const forgive = (
  account: Account,
  until = Infinity,
  isOwn: (login: SentLogin | RejectedLogin) => boolean = () => true,
): Account => {
  const isOver = (one: SentLogin | RejectedLogin) =>
    isOwn(one) && ("reason" in one ? (one.sent_at ?? one.at) : one.at) <= until
  if (![...account.sent, ...account.rejected].some(isOver)) return account
  const sent = account.sent.filter((one) => !isOver(one))
  const rejected = account.rejected.map((one) =>
    one.counts && isOver(one) ? { ...one, counts: false } : one,
  )
  const left = { ...account, sent, rejected }
  return withoutUnused(strikesOf([left]) < strikesMax ? { ...left, granted: 0 } : left)
}

/** A person allows the login again: one more, or all that the bound allows. */
export const release = (account: Account, fingerprint: string | undefined, logins: number | undefined) => {
  const rejected = account.rejected.filter((one) => one.fingerprint !== fingerprint)
  return logins === undefined ? forgive({ ...account, rejected }) : { ...account, rejected, granted: logins }
}

const bareOf = <One extends SentLogin | RejectedLogin>(one: One, customer_id: string): One =>
  one.customer_id === customer_id
    ? (Struct.omit(one as SentLogin, ["task_id", "customer_id", "external_execution_id"]) as One)
    : one

/** Nobody can tell any more whose logins these were; the counts stay. */
export const withoutCustomer = (account: Account, customer_id: string): Account => ({
  ...account,
  sent: account.sent.map((one) => bareOf(one, customer_id)),
  rejected: account.rejected.map((one) => bareOf(one, customer_id)),
})

// The accounts of a ledger as a plan asks for them: once for each task, without a further read. Pure; the
// names by which an account is found are those of the ledger's own rows.

/** The accounts of a ledger, as a plan asks for them. */
export class AccountBook {
  readonly #named = new Map<string, Array<Account>>()
  readonly #engines = new Map<string, Set<string>>()

  constructor(accounts: ReadonlyArray<Account>) {
    for (const account of accounts) {
      const { identity, sent, rejected } = account
      for (const name of namesOf(account)) {
        const known = this.#named.get(name) ?? []
        this.#named.set(name, known)
        known.push(account)
      }
      if (identity.length > 0) continue
      for (const { engine_reference } of [...sent, ...rejected]) {
        const source = sourceOf(engine_reference)
        this.#engines.set(source, (this.#engines.get(source) ?? new Set()).add(engine_reference))
      }
    }
  }

  /** Those that a login opens, and those that share its row. */
  of(login: Beside): ReadonlyArray<Account> {
    const found = new Set(soughtBy(login).flatMap((name) => this.#named.get(name) ?? []))
    return [...found].filter((account) => isBeside(account, login))
  }

  /** Engines of its source on which an earlier version knew rejected or lost logins. */
  formerEngines(engine_reference: string): ReadonlyArray<string> {
    return [...(this.#engines.get(sourceOf(engine_reference)) ?? [])]
  }
}
