/**
 * The accounts in the ledger's file: a projection of its facts, written in the same transaction as they are,
 * so that a start that was never answered counts without code of its own, and a command reads what is open
 * instead of all that ever happened. It stays when facts are archived or pruned.
 */
import type { DatabaseSync } from "node:sqlite"
import { Schema, Struct } from "effect"
import { sha256 } from "../base/Hashes.ts"
import { given } from "../base/Schemas.ts"
import type { AccountKeys } from "../privacy/Fingerprint.ts"
import * as Accounts from "./Accounts.ts"
import type { Account, RejectedLogin, SentLogin } from "./Accounts.ts"
import type { Recorded, StartAnswered, StartIntended } from "./Fact.ts"
import { eachOf } from "./FactRows.ts"
import { foldRun } from "./FoldRun.ts"
import { remainsAny } from "./RunState.ts"
import type { CredentialRejected, CredentialReleased, LoginJudged } from "./LoginFacts.ts"
import { Damage, columns, factOf, hasTable, type Row } from "./LedgerKeys.ts"

/** A fact and its time. */
type Told = Pick<Recorded, "at" | "fact">

const tables = (schema: "main" | "temp"): string => `
  CREATE TABLE ${schema}.accounts (
    account TEXT PRIMARY KEY, state TEXT NOT NULL, sha256 BLOB NOT NULL
  ) STRICT;
  CREATE TABLE ${schema}.account_names (
    name TEXT NOT NULL, account TEXT NOT NULL, PRIMARY KEY (name, account)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ${schema}.account_names_of ON account_names (account);
`

/** In a transaction, or beside a ledger that is only read: with what the facts of an earlier version say. */
export const makeAccounts = (database: DatabaseSync, schema: "main" | "temp"): void => {
  if (hasTable(database, "accounts")) return
  database.exec(tables(schema))
  const { project } = accountsIn(database)
  const rows = database
    .prepare(
      `SELECT ${columns} FROM facts WHERE
        tag IN ('CredentialRejected', 'CredentialReleased', 'LoginAccepted') ORDER BY seq`,
    )
    .all()
  project(eachOf(database, rows.map(factOf)))
  project(lostStarts(database))
}

/** Starts of an earlier version without a known answer, in open runs; each counts once: nobody is held. */
const lostStarts = (database: DatabaseSync): ReadonlyArray<Told> => {
  const newestEnd = `(SELECT body FROM facts AS newest WHERE newest.run_id = begun.run_id AND
    newest.tag = 'RunEnded' ORDER BY seq DESC LIMIT 1)`
  const live = `SELECT begun.run_id FROM facts AS begun WHERE begun.tag = 'RunStarted' AND
    coalesce(json_extract(${newestEnd}, '$.leftovers'), 1)`
  const rows = database
    .prepare(
      `SELECT ${columns} FROM facts WHERE run_id IN (${live}) AND
        tag IN ('RunStarted', 'TaskPlanned', 'StartIntended', 'StartAnswered') ORDER BY seq`,
    )
    .all()
    .map(factOf)
  return [...Map.groupBy(rows, ({ run_id }) => run_id).values()].flatMap((ofRun) => {
    const facts = [...eachOf(database, ofRun)]
    const newest = new Map(
      facts.flatMap(({ at, fact }) =>
        fact._tag === "StartIntended" ? [[`${fact.attempt} ${fact.task_id}`, { at, fact }] as const] : [],
      ),
    )
    const tasks = [...(foldRun(facts)?.tasks.values() ?? [])]
    return tasks.flatMap(({ attempts, planned: { task_id, customer_id, engine_reference } }) =>
      attempts.flatMap((one) => {
        const isLost = one.accepted_at === undefined && remainsAny(one, "unseen")
        const sent = isLost ? newest.get(`${one.attempt} ${task_id}`) : undefined
        return sent ? [{ ...sent, fact: { ...sent.fact, ...given({ customer_id, engine_reference }) } }] : []
      }),
    )
  })
}

const decodeAccount = Schema.decodeUnknownSync(Schema.fromJsonString(Accounts.Account))

const accountOf = (row: Row): Account => {
  const state = String(row["state"])
  const seal = row["sha256"]
  if (!(seal instanceof Uint8Array) || !sha256(state).equals(seal)) throw new Damage(damaged)
  return decodeAccount(state)
}

/** Under which names an account is found, each with the account. */
const namesOf = (account: Account): ReadonlyArray<readonly [account: string, name: string]> =>
  [...new Set(Accounts.namesOf(account))].map((name) => [account.account, name])

const damaged = "what is known of an account has changed since it was written"

/** What a login of an earlier version is filed under: that version knew no account, or another one. */
type FormerKeys = Pick<AccountKeys, "account" | "identity" | "plain" | "former">
const formerKeys = (names: ReadonlyArray<string>): FormerKeys => ({
  account: names.join("+"),
  identity: [],
  former: names,
})

/** Statements on the rows, each with its names. */
const rowsIn = (database: DatabaseSync) => {
  const one = database.prepare("SELECT state, sha256 FROM accounts WHERE account = ?")
  const all = database.prepare("SELECT account, state, sha256 FROM accounts ORDER BY account")
  const named = database.prepare(
    `SELECT state, sha256 FROM accounts WHERE account IN
      (SELECT account FROM account_names WHERE name IN (SELECT value FROM json_each(?))) ORDER BY account`,
  )
  const put = database.prepare("INSERT OR REPLACE INTO accounts (account, state, sha256) VALUES (?, ?, ?)")
  const remove = database.prepare("DELETE FROM accounts WHERE account = ?")
  // Names that stay are not written again: each is a page of its own.
  const unname = database.prepare(
    "DELETE FROM account_names WHERE account = ? AND name NOT IN (SELECT value FROM json_each(?))",
  )
  const name = database.prepare("INSERT OR IGNORE INTO account_names SELECT value, ?1 FROM json_each(?2)")
  const find = (account: string): Account | undefined => {
    const row = one.get(account)
    return row === undefined ? undefined : accountOf(row)
  }
  const findNamed = (names: ReadonlyArray<string>): ReadonlyArray<Account> =>
    named.all(JSON.stringify(names)).map(accountOf)
  return {
    find,
    findNamed,
    all: (): ReadonlyArray<Account> => all.all().map(accountOf),
    /** Accounts that a login opens, and those that share its row. */
    ofLogin: (login: Accounts.Beside): ReadonlyArray<Account> =>
      findNamed(Accounts.soughtBy(login)).filter((account) => Accounts.isBeside(account, login)),
    write: (account: Account): void => {
      const state = JSON.stringify(account)
      const names = JSON.stringify(Accounts.namesOf(account))
      put.run(account.account, state, sha256(state))
      unname.run(account.account, names)
      name.run(account.account, names)
    },
    forget: ({ account }: Account): void => {
      remove.run(account)
      unname.run(account, "[]")
    },
    /** Whether every row is as it was written. */
    isWhole: (): boolean => {
      try {
        const pair = (account: unknown, each: unknown) => JSON.stringify([account, each])
        const [keys, accounts] = [all.all(), all.all().map(accountOf)]
        const wanted = new Set(accounts.flatMap(namesOf).map(([account, each]) => pair(account, each)))
        const kept = database.prepare("SELECT name, account FROM account_names").all()
        return (
          kept.length === wanted.size &&
          kept.every((row) => wanted.has(pair(row["account"], row["name"]))) &&
          keys.every(({ account }, index) => account === accounts[index]?.account)
        )
      } catch {
        // Whatever cannot be read has changed: it was written by this version.
        return false
      }
    },
  }
}
type Rows = ReturnType<typeof rowsIn>

const isFormer = ({ identity }: Account): boolean => identity.length === 0

const sent = (rows: Rows, at: number, fact: typeof StartIntended.Type): void => {
  const { login: keys, fingerprint, engine_reference } = fact
  // A login that is not known, or of an earlier version.
  const login = keys ?? (fingerprint === undefined ? undefined : formerKeys([fingerprint]))
  if (login === undefined || engine_reference === undefined) return
  let account = {
    ...(rows.find(login.account) ?? Accounts.newAccount(login)),
    ...given({ plain: login.plain }),
  }
  for (const old of keys?.former === undefined ? [] : rows.findNamed(keys.former).filter(isFormer)) {
    account = {
      ...account,
      sent: [...account.sent, ...old.sent],
      rejected: [...account.rejected, ...old.rejected],
    }
    rows.forget(old)
  }
  const password = keys?.password ?? fingerprint ?? ""
  const one: SentLogin = {
    ...Struct.pick(fact, ["run_id", "task_id", "attempt", "external_execution_id"]),
    engine_reference,
    ...Struct.pick(fact, ["customer_id", "fingerprint", "max_wait"]),
    ...given({ secret: keys?.secret, written: keys?.written }),
    password,
    at,
    sends: 1,
  }
  const others = besides(rows, account, login.former).filter((other) => Accounts.isOf(other, account))
  const all = [account, ...others]
  const isBeyond =
    Accounts.strikesOf(
      Accounts.countedFor(all, { ...account, ...given({ secret: keys?.secret }), password }),
    ) >= Accounts.strikesMax
  const isGranted = all.some(({ granted }) => granted > 0)
  // What a person allowed is for one login, whichever of the accounts it was given to.
  for (const other of others)
    if (isBeyond && other.granted > 0) rows.write({ ...other, granted: other.granted - 1 })
  const renamed = { ...account, former: login.former ?? account.former }
  const by = isGranted ? "granted" : "bought"
  rows.write(Accounts.addSent(renamed, one, isBeyond ? by : undefined))
}

const answered = (rows: Rows, fact: typeof StartAnswered.Type): void => {
  const account = fact.account === undefined ? undefined : rows.find(fact.account)
  if (account !== undefined) rows.write(Accounts.markOpen(account, fact))
}

/** The other accounts that its logins open, and those that share its row. */
const besides = (rows: Rows, account: Account, former: ReadonlyArray<string> = []): ReadonlyArray<Account> =>
  rows.ofLogin({ ...account, former }).filter((other) => other.account !== account.account)

const judged = (rows: Rows, fact: typeof LoginJudged.Type): void => {
  const { account: of, verdict, said, fingerprint, password } = fact
  const account = rows.find(of)
  const login = account?.sent.find((one) => Accounts.isSameAttempt(one, fact))
  if (account === undefined || login === undefined) return
  if (verdict !== "good") return rows.write(Accounts.judgeSent(account, fact, verdict, said))
  const { at, customer_id } = login
  const former = fingerprint === undefined ? [] : [fingerprint]
  // Another account that may be the same one, but also somebody else's, keeps what others sent to it.
  const isOwn = (one: SentLogin | RejectedLogin) =>
    Accounts.secretOf(one) === Accounts.secretOf(login) ||
    (fingerprint !== undefined && one.fingerprint === fingerprint) ||
    (customer_id !== undefined && one.customer_id === customer_id)
  for (const other of besides(rows, account, former))
    if (Accounts.isOf(other, { ...account, former })) rows.write(Accounts.forgive(other, at, isOwn))
  const good = fingerprint === undefined ? {} : { good: { password, fingerprint, at } }
  rows.write({ ...Accounts.forgive(account, at), ...good })
}

const rejected = (rows: Rows, at: number, fact: typeof CredentialRejected.Type): void => {
  const { run_id, engine_reference, task_id, customer_id, fingerprint, reason, login, of_attempt } = fact
  const old = formerKeys([fact.account ?? fingerprint])
  const known = rows.find((login ?? old).account)
  const account = known ?? Accounts.newAccount(login ?? old)
  const password = login?.password ?? fingerprint
  const of = { run_id, engine_reference, fingerprint, password, reason, at, counts: true }
  const whose = given({ task_id, customer_id, secret: login?.secret, written: login?.written })
  const former = login === undefined ? old.former : account.former
  rows.write(Accounts.addRejected({ ...account, former }, of_attempt, { ...of, ...whose }))
}

const released = (rows: Rows, fact: typeof CredentialReleased.Type): void => {
  const { account, fingerprint, logins } = fact
  const names = [account, fingerprint].filter((one) => one !== undefined)
  const meant = [...rows.findNamed(names), ...names.flatMap((one) => rows.find(one) ?? [])]
  // One login more, or nothing counts any more: then also not in what the same login opens.
  const all = logins === undefined ? meant.flatMap((one) => [one, ...besides(rows, one)]) : meant
  for (const each of new Map(all.map((one) => [one.account, one])).values())
    rows.write(Accounts.release(each, fingerprint, logins))
}

export const accountsIn = (database: DatabaseSync) => {
  const rows = rowsIn(database)
  return {
    /** What facts say of logins, in the transaction that writes them. */
    project: (facts: Iterable<Told>): void => {
      for (const { at, fact } of facts)
        if (fact._tag === "StartIntended") sent(rows, at, fact)
        else if (fact._tag === "StartAnswered") answered(rows, fact)
        else if (fact._tag === "LoginJudged") judged(rows, fact)
        else if (fact._tag === "CredentialRejected") rejected(rows, at, fact)
        else if (fact._tag === "CredentialReleased") released(rows, fact)
        else if (fact._tag === "LoginAccepted")
          for (const each of rows.findNamed([fact.account])) rows.write(Accounts.forgive(each))
    },
    ofLogin: rows.ofLogin,
    all: rows.all,
    /** Empty if every row is as it was written. */
    problems: (): ReadonlyArray<string> => (rows.isWhole() ? [] : [damaged]),
    /** The counts stay; nobody can tell any more whose they were. */
    withoutCustomer: (customer_id: string): void => {
      for (const account of rows.all()) {
        const without = Accounts.withoutCustomer(account, customer_id)
        if (JSON.stringify(without) !== JSON.stringify(account)) rows.write(without)
      }
    },
  }
}
