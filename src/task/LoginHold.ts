/**
 * Which account the login of a task opens, and what follows if no login may be sent to it: the verdict of the
 * task, and what a person is told.
 */
import { Predicate, Redacted } from "effect"
import { isoTime } from "../base/Text.ts"
import type { Access, CustomerId, RunId } from "../service/Ids.ts"
import { own, verdictOfRejected, type Verdict } from "../service/Ends.ts"
import type { SeenEngine } from "../client/EngineForms.ts"
import { rejectedInARowMax, type AccountBook, type Hold } from "../ledger/Accounts.ts"
import { thenUnder } from "../ledger/ForgetCustomer.ts"
import { accountKeys, noRoles, tokenAccountKeys } from "../privacy/Fingerprint.ts"
import type { AccountKeys, FieldRoles } from "../privacy/Fingerprint.ts"
import type { TaskLogin } from "../tokens/TokenLogin.ts"

/** The account that a login opens, as far as the form says what identifies a user. */
export const accountOf = (
  task: Access & { readonly isByHand: boolean; readonly written?: string | undefined },
  login: TaskLogin,
  {
    engine,
    fingerprint,
    key,
    accounts,
  }: {
    readonly engine: SeenEngine | undefined
    readonly fingerprint: string
    readonly key: Uint8Array
    readonly accounts: AccountBook
  },
): AccountKeys => {
  if (login.parameters === undefined) {
    const made = login._tag === "Token" ? login.token.login : undefined
    return tokenAccountKeys(key, task, { fingerprint, login: made })
  }
  const sent = Redacted.value(login.parameters)
  const roles = engine === undefined ? noRoles : rolesOf(engine)
  const keys = accountKeys(
    key,
    task,
    { sent, roles, isByHand: task.isByHand, written: task.written },
    accounts.formerEngines(task.engine_reference),
  )
  // The token was made with these parameters, or nobody knows otherwise; no person has just changed it.
  return login._tag === "Token" ? { ...keys, isByHand: false } : keys
}

const rolesOf = ({ details, secret }: SeenEngine): FieldRoles => {
  const { properties, "x-meta": meta } = details.parameters
  const selectors = Object.entries(properties).flatMap(([name, field]) => (isSelector(field) ? [name] : []))
  return { locking: meta?.locking_fields ?? [], selectors: new Set(selectors), secret }
}

const isSelector = (field: unknown): boolean =>
  Predicate.isObject(field) && ("enum" in field || "const" in field || field["type"] === "boolean")

/** A login that is held until a person acts; any other hold is for the run to decide when its turn comes. */
type LastingHold = Exclude<Hold, { readonly why: "busy" | "third" }>

export const isLasting = (hold: Hold): hold is LastingHold => hold.why !== "busy" && hold.why !== "third"

/** How a task ends whose login is held. */
export const verdictOfHold = (hold: LastingHold): Verdict =>
  hold.why === "unproven" ? own("LOGIN_UNPROVEN") : verdictOfRejected(hold.by.reason)

/** Why no other login is sent yet: the last one may be open until then. */
export const busyText = (until: number): string =>
  `a login to this account may be open until ${isoTime(until)}: no answer to its start says whether ` +
  "it ran, and no other one is sent before then"

export const thirdText =
  "two logins to this account failed or nobody knows how they ended; a third one is sent on another date, " +
  "once its engine accepts other accounts or, in a run of the whole job, none of them is left to try it"

/**
 * Not with two of this night before it; if none is, it may lead where nobody else is left to show that the
 * engine is well. A rerun or a part of the job cannot tell who is left.
 */
export const chanceOf = (
  { runs }: Extract<Hold, { readonly why: "third" }>,
  { run_id, isWhole }: { readonly run_id: RunId; readonly isWhole: boolean },
): "not_tonight" | "with_others" | "alone" => {
  const tonight = runs.filter((run) => dateOf(run) === dateOf(run_id)).length
  return tonight >= 2 ? "not_tonight" : tonight === 1 || !isWhole ? "with_others" : "alone"
}

/** Of `<job>.<date>`, and of `<job>.<date>.2`, which is a further run of the date. */
const dateOf = (run_id: RunId): string => /\.(\d{4}-\d{2}-\d{2})(?:\.\d+)?$/.exec(run_id)?.[1] ?? run_id

/** Why a login is held, and what a person can do about it. */
export const holdText = (hold: LastingHold, customer_id: CustomerId): string => {
  if (hold.why === "unproven") {
    const { last, strikes } = hold
    return (
      `the last ${strikes} logins to this account failed or nobody knows how they ended, the newest one ` +
      `sent at ${isoTime(last.at)} on ${last.engine_reference}; another one might lock it. ` +
      "`nightjar credentials list` names them"
    )
  }
  const { by } = hold
  const isOther = by.customer_id !== undefined && by.customer_id !== customer_id
  const whose = isOther ? thenUnder(by.customer_id) : ""
  const release = `\`nightjar credentials release ${by.fingerprint}\``
  return hold.why === "rejected"
    ? `the source rejected these credentials with ${by.reason} at ${isoTime(by.at)}${whose}, ` +
        `so they are not sent again unchanged; ${release} allows it`
    : `the source rejected the last ${rejectedInARowMax} logins to this account, the last one with ` +
        `${by.reason} at ${isoTime(by.at)}; another rejection may lock it, so no login is sent, ` +
        `not even a corrected one, until ${release}. Correct the login first: after a release, the next ` +
        "run sends what the job has, even the login that was rejected last"
}
