/**
 * Which stored token logs in for a task, and what may be requested with it (section 2.6): pure. A job that
 * has parameters too uses the token that was made with exactly these parameters; other parameters are a new
 * login, which the old token must not replace.
 */
import type { Redacted } from "effect"
import type { Reason } from "../service/Ends.ts"
import type { Access } from "../service/Ids.ts"
import { belongsTo } from "../ledger/OtherCustomer.ts"
import type { JobFeature } from "../jobs/Job.ts"
import type { StoredToken } from "./StoredToken.ts"
import { defaultTokenName } from "./StoredToken.ts"
import { fingerprintLogin } from "../privacy/Fingerprint.ts"

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
  readonly fingerprint: string
  readonly start: { readonly login: TaskLogin }
}

/** The token store as one plan sees it. */
export interface TokenShelf {
  /** False if the job has no key: it neither uses nor stores tokens. */
  readonly isOpen: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly named: (name: string) => StoredToken | undefined
  /** Whether another service has a token with that name. */
  readonly isElsewhere: (name: string) => boolean
  /** Tokens of a customer on an engine: the one with the job's default name first, then newest first. */
  readonly of: (access: Access) => ReadonlyArray<StoredToken>
}

export const closedShelf: TokenShelf = {
  isOpen: false,
  now: 0,
  named: () => undefined,
  isElsewhere: () => false,
  of: () => [],
}

const accessKey = ({ customer_id, engine_reference }: Access): string =>
  JSON.stringify([customer_id, engine_reference])

export const makeShelf = (tokens: ReadonlyArray<StoredToken>, service: string, now: number): TokenShelf => {
  const ours = tokens.filter((token) => token.service === service)
  const byName = new Map(ours.map((token) => [token.name, token]))
  const elsewhere = new Set(tokens.filter((token) => token.service !== service).map(({ name }) => name))
  const byAccess = Map.groupBy(ours, accessKey)
  const isOwn = (token: StoredToken) =>
    token.name === defaultTokenName(token.customer_id, token.engine_reference)
  for (const group of byAccess.values())
    group.sort((a, b) => Number(isOwn(b)) - Number(isOwn(a)) || b.exchanged_at - a.exchanged_at)
  return {
    isOpen: true,
    now,
    named: (name) => byName.get(name),
    isElsewhere: (name) => elsewhere.has(name),
    of: (access) => byAccess.get(accessKey(access)) ?? [],
  }
}

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
  if (token === undefined) {
    return shelf.isElsewhere(name)
      ? { reason: "TOKEN_MISMATCH", message: "the token of this name belongs to another service" }
      : { reason: "TOKEN_UNKNOWN", message: `no stored token has this name: ${newToken}` }
  }
  if (token.customer_id !== customer_id || token.engine_reference !== engine_reference) {
    const message =
      `the token of this name ${belongsTo(token.customer_id)}${token.engine_reference}: ` +
      "a token opens one customer's access to one engine"
    return { reason: "TOKEN_MISMATCH", message }
  }
  if (isExpired(token, shelf.now) || token.dropped?.reason === "EXPIRED")
    return {
      reason: "TOKEN_EXPIRED",
      message: `the token expired on ${dayOf(token.expires_at)}: ${newToken}`,
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

/**
 * Which of the wanted features may be requested with a token; if none are named, all that it covers,
 * because the engine's defaults could be more.
 */
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

const dayMs = 24 * 60 * 60_000
/** From here on, a plan and a run say that a token expires. */
export const expiryWarningMs = 14 * dayMs

export const endsSoon = (token: StoredToken, now: number): boolean =>
  token.expires_at - now <= expiryWarningMs

export const daysLeft = (token: Pick<StoredToken, "expires_at">, now: number): number =>
  Math.max(0, Math.floor((token.expires_at - now) / dayMs))

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Expired tokens of this access that were not dropped yet. */
export const expiredTokens = (shelf: TokenShelf, access: Access): ReadonlyArray<StoredToken> =>
  shelf.of(access).filter((token) => token.dropped === undefined && isExpired(token, shelf.now))
