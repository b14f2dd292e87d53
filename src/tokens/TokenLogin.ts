/**
 * Which stored token logs in for a task, and what may be requested with it (section 2.6): pure. A job that
 * has parameters too uses the token that was made with exactly these parameters; other parameters are a new
 * login, which the old token must not replace.
 */
import { Clock, Effect, type Redacted } from "effect"
import { dayMs, isoDay } from "../base/Text.ts"
import type { StartLogin } from "../client/Service.ts"
import type { JobFeature } from "../jobs/Job.ts"
import type { AttemptClosed, Fact } from "../ledger/Fact.ts"
import { taskKeys, type TaskKeys } from "../ledger/FactKeys.ts"
import { belongsTo } from "../ledger/ForgetCustomer.ts"
import { append } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import { fingerprintLogin } from "../privacy/Fingerprint.ts"
import { isRejecting, refusalOf, refusingCodes, type Reason } from "../service/Ends.ts"
import type { Access, RunId } from "../service/Ids.ts"
import { defaultTokenName, tokenKeys, type EndingToken, type StoredToken } from "./StoredToken.ts"
import { TokenStore, type TokenStoreState } from "./TokenStore.ts"

/** How a task logs in. */
export type TaskLogin =
  | {
      readonly _tag: "Parameters"
      readonly parameters: Redacted.Redacted<Readonly<Record<string, unknown>>>
      readonly tokenized_access: boolean
    }
  | {
      readonly _tag: "Token"
      readonly token: StoredToken
      /** Those that the token replaces, if the job has them. */
      readonly parameters?: Redacted.Redacted<Readonly<Record<string, unknown>>>
    }

/** What a task needs to log in with a stored token. */
export interface LoginOfTask extends Access {
  readonly features: ReadonlyArray<JobFeature>
  /** Those of the job that the token does not cover. */
  readonly outside: ReadonlyArray<string>
  readonly fingerprint: string
  readonly start: { readonly login: TaskLogin }
}

/** Of any ids, whatever they contain. */
const keyOf = ({ customer_id, engine_reference }: Access): string =>
  JSON.stringify([customer_id, engine_reference])

/** The token store as one plan sees it; `now` is milliseconds since the epoch. */
export const makeShelf = (tokens: ReadonlyArray<StoredToken>, service: string, now: number) => {
  const ours = tokens.filter((token) => token.service === service)
  const byName = new Map([...tokens, ...ours].map((token) => [token.name, token]))
  const byAccess = Map.groupBy(ours, keyOf)
  const isOwn = (token: StoredToken) => token.name === defaultTokenName(token)
  for (const group of byAccess.values())
    group.sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)) || b.exchanged_at - a.exchanged_at)
  return {
    /** False if the job has no key: it neither uses nor stores tokens. */
    isOpen: true,
    service,
    now,
    /** The token with that name; one of another service only if this one has none. */
    named: (name: string) => byName.get(name),
    /** Tokens of a customer on an engine: the one with the job's default name first, then newest first. */
    of: (access: Access) => byAccess.get(keyOf(access)) ?? [],
  }
}

export type TokenShelf = ReturnType<typeof makeShelf>

export const closedShelf: TokenShelf = { ...makeShelf([], "", 0), isOpen: false }

const isExpired = (token: StoredToken, now: number): boolean => token.expires_at <= now
const isUsable = (token: StoredToken, now: number): boolean =>
  token.hasKey && token.dropped === undefined && !isExpired(token, now)

/**
 * The token that logs in instead of these parameters; `fingerprint` is undefined if they can no longer be
 * resolved. A token exchanged by hand does not say what it was made with, and is trusted.
 */
export const keptToken = (
  shelf: TokenShelf,
  access: Access,
  fingerprint: string | undefined,
): StoredToken | undefined =>
  shelf
    .of(access)
    .find(
      (token) =>
        isUsable(token, shelf.now) &&
        (fingerprint === undefined || token.fingerprint === undefined || token.fingerprint === fingerprint),
    )

/** Why a token that the job names cannot log in; the ends before a start. */
export interface TokenRefusal {
  readonly reason: Extract<Reason, `TOKEN${string}`>
  readonly message: string
}

export const noStore: TokenRefusal = {
  reason: "TOKENS_UNAVAILABLE",
  message: "the token store is not open: the job needs `tokens: { key }`",
}

const newToken = "`nightjar tokens exchange` stores a new one"

/** The token with that name, if it may log in here. */
export const namedToken = (
  shelf: TokenShelf,
  name: string,
  { customer_id, engine_reference }: Access,
): { readonly token: StoredToken } | TokenRefusal => {
  if (!shelf.isOpen) return noStore
  const token = shelf.named(name)
  if (token === undefined)
    return { reason: "TOKEN_UNKNOWN", message: `no stored token has this name: ${newToken}` }
  if (token.service !== shelf.service)
    return { reason: "TOKEN_MISMATCH", message: "the token of this name belongs to another service" }
  if (token.customer_id !== customer_id || token.engine_reference !== engine_reference) {
    const message =
      `the token of this name ${belongsTo(token.customer_id)}${token.engine_reference}: ` +
      "a token opens one customer's access to one engine"
    return { reason: "TOKEN_MISMATCH", message }
  }
  if (isExpired(token, shelf.now))
    return {
      reason: "TOKEN_EXPIRED",
      message: `the token expired on ${isoDay(token.expires_at)}: ${newToken}`,
    }
  if (!token.hasKey) {
    const { reason = "unknown" } = token.dropped ?? {}
    return { reason: "TOKEN_DROPPED", message: `the token is no longer used (${reason}): ${newToken}` }
  }
  return { token }
}

/** The login behind a token, for the breaker: the parameters it was made with, if they are known. */
export const tokenFingerprint = (key: Uint8Array, token: StoredToken): string =>
  token.fingerprint ?? fingerprintLogin(key, token.engine_reference, { token_id: token.token_id })

/** If none are named, all that the token covers, because the engine's defaults could be more. */
export const narrowFeatures = (
  features: ReadonlyArray<JobFeature>,
  token: StoredToken,
): { readonly features: ReadonlyArray<JobFeature>; readonly outside: ReadonlyArray<string> } => {
  if (token.features.length === 0) return { features, outside: [] }
  if (features.length === 0)
    return { features: token.features.map((code) => ({ code, configurations: undefined })), outside: [] }
  const allowed = new Set<string>(token.features)
  return {
    features: features.filter(({ code }) => allowed.has(code)),
    outside: features.flatMap(({ code }) => (allowed.has(code) ? [] : [code])),
  }
}

/** From here on, a plan and a run say that a token expires. */
export const expiryWarningMs = 14 * dayMs

export const endsSoon = (token: StoredToken, now: number): boolean =>
  token.expires_at - now <= expiryWarningMs

export const daysLeft = (token: Pick<StoredToken, "expires_at">, now: number): number =>
  Math.max(0, Math.floor((token.expires_at - now) / dayMs))

/** Instead of which a task is to send its parameters: the token that would log in, had it not expired. */
export const expiredToken = (shelf: TokenShelf, task: LoginOfTask): StoredToken | undefined => {
  const { login } = task.start
  if (login._tag === "Token" || !login.tokenized_access) return undefined
  return keptToken({ ...shelf, now: -Infinity }, task, task.fingerprint)
}

// When a stored token is no longer usable (3.1, 3.2, 4.12). It is dropped before its task is settled, so that
// no later run logs in with it again.

export interface TokenEnd {
  readonly reason: string
  /** The answer is not defined by the reference and may be about something else: the key is not destroyed. */
  readonly keepKey: boolean
}

/** 3.1: revoked or broken, and unreadable. The other T10N reasons are not about the token. */
const brokenReasons: ReadonlySet<string> = new Set(["T10N_REJECTED", "T10N_EXCEPTION"])

/** 3.2: a refused login locks the token with which it was tried. */
const locked: TokenEnd = { reason: "LOCKED", keepKey: false }

/** What the end of a run says about the token that it logged in with; if undefined, it may be used again. */
export const tokenEndOf = ({
  status_code,
  status_reason,
  authentication_status,
}: Pick<typeof AttemptClosed.Type, "status_code" | "status_reason" | "authentication_status">):
  | TokenEnd
  | undefined => {
  if (brokenReasons.has(status_reason)) return { reason: status_reason, keepKey: false }
  const isLocked = refusingCodes.has(status_code) || refusalOf(authentication_status) !== undefined
  return isLocked ? locked : undefined
}

/** The same for a start that was refused before anything ran. */
export const tokenEndOfRefusal = (status_reason: string): TokenEnd | undefined => {
  if (brokenReasons.has(status_reason)) return { reason: status_reason, keepKey: false }
  if (isRejecting(status_reason) || refusingCodes.has(status_reason)) return locked
  return status_reason === "TOKEN_UNKNOWN" ? { reason: status_reason, keepKey: true } : undefined
}

/** Drops the token with that id, if it still exists; the fact comes first. */
export const dropToken = Effect.fnUntraced(function* (
  about: TaskKeys & Access,
  token_id: string,
  { reason, keepKey }: TokenEnd,
) {
  const store = yield* TokenStore
  if (store._tag === "Closed") return
  const tokens = yield* store.tokensOf(about)
  const token = tokens.find(
    (one) => one.token_id === token_id && one.hasKey && one.dropped?.reason !== reason,
  )
  if (token === undefined) return
  yield* append({ _tag: "TokenDropped", ...taskKeys(about), ...tokenKeys(token), reason })
  yield* store.dropToken(token, reason, keepKey)
})

// Stored tokens on their way to a start. A key leaves the store only for the request that needs it.

interface TokensOfPlan {
  readonly run_id: RunId
  readonly expired: ReadonlyArray<EndingToken>
  readonly expiring: ReadonlyArray<EndingToken>
}

/** The current content of the token store: all of it, or what one task may use. */
export const readShelf = Effect.fnUntraced(function* (store: TokenStoreState, task?: Access) {
  if (store._tag === "Closed") return closedShelf
  const now = yield* Clock.currentTimeMillis
  const tokens = task === undefined ? yield* store.tokens : yield* store.tokensOf(task)
  return makeShelf(tokens, store.service, now)
})

/**
 * Tokens that new tasks log in with and that expire soon, and those that they do not, as they have expired.
 * These keep their keys: only this machine's clock says so, and a key that is erased is lost for good.
 */
export const endingFacts = (
  { plan }: { readonly plan: TokensOfPlan },
  known: RunState | undefined,
): ReadonlyArray<Fact> => {
  const isNew = ({ task_id }: EndingToken) => known?.tasks.has(task_id) !== true
  const factOf = ({ task_id, token }: EndingToken) => ({ run_id: plan.run_id, task_id, ...tokenKeys(token) })
  return [
    ...plan.expired
      .filter(isNew)
      .map((one): Fact => ({ _tag: "TokenDropped", ...factOf(one), reason: "EXPIRED" })),
    ...plan.expiring
      .filter(isNew)
      .map((one): Fact => ({ _tag: "TokenExpiring", ...factOf(one), expires_at: one.token.expires_at })),
  ]
}

/** Another attempt in the same run uses the token that an earlier one obtained. */
export const withNewToken = <Task extends LoginOfTask>(task: Task, tokens: TokenShelf): Task => {
  const { login } = task.start
  if (login._tag === "Token" || !login.tokenized_access) return task
  const token = keptToken(tokens, task, task.fingerprint)
  if (token === undefined) return task
  const { parameters } = login
  return {
    ...task,
    ...narrowFeatures(task.features, token),
    start: { ...task.start, login: { _tag: "Token", token, parameters } },
  }
}

/** Undefined if the token is gone, or cannot be decrypted. */
export const loginOf = Effect.fnUntraced(function* (
  { start: { login } }: Pick<LoginOfTask, "start">,
  store: TokenStoreState,
) {
  if (login._tag === "Parameters") return { _tag: "Parameters", parameters: login.parameters } as const
  const token_key = store._tag === "Open" ? yield* store.tokenKey(login.token) : undefined
  if (token_key === undefined) return undefined
  return { _tag: "Token", token_id: login.token.token_id, token_key } as const
})

/** The parameters that the job has besides the token: for a service that refuses such a start. */
export const parametersBehind = ({ start: { login } }: Pick<LoginOfTask, "start">): StartLogin | undefined =>
  login._tag === "Token" && login.parameters !== undefined
    ? { _tag: "Parameters", parameters: login.parameters }
    : undefined

export const tokenOf = ({ start: { login } }: Pick<LoginOfTask, "start">): { readonly token?: StoredToken } =>
  login._tag === "Token" ? { token: login.token } : {}
