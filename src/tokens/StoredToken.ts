/**
 * Tokens and tickets as the store keeps them (section 2.6), without their secrets: what plans, commands and
 * reports may see.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"
import { Redacted, Schema } from "effect"
import type { KeptKeys } from "../privacy/Fingerprint.ts"
import { accessKey, accessOf, type Access, type ExecutionId, type TaskId } from "../service/Ids.ts"

/** What tokens and tickets have. Times are milliseconds since the epoch. */
interface Entry extends Access {
  /** Whose it is: the origin of `base_url`, or `sandbox`. */
  readonly service: string
  /** A token's fixed list (2.6): a run may request fewer, never more. A ticket's is that of its start. */
  readonly features: ReadonlyArray<string>
  /** The login that it was made with, as the breaker identifies it; undefined if it was exchanged by hand. */
  readonly fingerprint: string | undefined
  /** The account of that login; absent in stores from before it was kept, too. */
  readonly login?: KeptKeys
}

/** A stored token without its key. */
export interface StoredToken extends Entry {
  readonly name: string
  readonly token_id: string
  readonly app_id: string | undefined
  readonly locking_hash: string | undefined
  readonly exchanged_at: number
  readonly expires_at: number
  /** It is no longer used; its key is kept only if the reason leaves a doubt. */
  readonly dropped: { readonly reason: string; readonly at: number } | undefined
  readonly hasKey: boolean
}

/** A ticket that was issued and is not exchanged yet. */
export interface PendingTicket extends Entry {
  readonly execution_id: ExecutionId
  readonly issued_at: number
  /** Exchanges that were begun, each recorded before its request was sent. */
  readonly tries: number
}

/** What a fact says about a token. */
export const tokenKeys = (token: Pick<StoredToken, "name" | "token_id" | keyof Access>) => ({
  name: token.name,
  token_id: token.token_id,
  ...accessOf(token),
})

/** 2.6: the lifetime of a token, from its exchange; use does not extend it. */
export const tokenLifetimeMs = 90 * 24 * 60 * 60_000

/** The default name of a token that a job keeps. */
export const defaultTokenName = accessKey

export type NewToken = Omit<StoredToken, "service" | "dropped" | "hasKey">
export type NewTicket = Omit<PendingTicket, "service" | "tries">

export interface TokenStoreOptions {
  readonly key: Redacted.Redacted<string>
  /** Tokens belong to a service; those of others are visible but never used. */
  readonly service: string
}

/** A stored token that expires soon, or has expired, and the task that it concerns. */
export interface EndingToken {
  readonly task_id: TaskId
  readonly token: StoredToken
}

// AES-256-GCM under a key derived from the user's key and the store's salt (HKDF-SHA256), each value bound to
// its entry, so that none can be moved. No error repeats a key or a value.

/** The token store cannot be used with this key, or at all; nothing was started. */
export class TokenStoreRefused extends Schema.TaggedError<TokenStoreRefused>()("TokenStoreRefused", {
  message: Schema.String,
  /** The content of the file has changed since it was written. */
  damaged: Schema.optionalKey(Schema.Boolean),
}) {}

const keyBytes = 32
const ivBytes = 12
const tagBytes = 16
const algorithm = "aes-256-gcm"

const hexadecimal = /^[0-9a-f]{64}$/i
/** 32 bytes are 43 characters of base64 and one of padding; both alphabets are in use. */
const base64 = /^[A-Za-z0-9+/_-]{43}=?$/

/** The 32 bytes of a key in hexadecimal or base64; undefined if it is neither. */
export const readKey = (text: Redacted.Redacted<string>): Uint8Array | undefined => {
  const spelled = Redacted.value(text).trim()
  if (hexadecimal.test(spelled)) return Buffer.from(spelled, "hex")
  if (!base64.test(spelled)) return undefined
  const bytes = Buffer.from(spelled, "base64")
  return bytes.length === keyBytes ? bytes : undefined
}

export const malformedKey =
  "the key of the token store is not 32 bytes in hexadecimal or base64; " +
  "`openssl rand -base64 32` generates one: keep it where `tokens.key` points"

export const makeSalt = (): Uint8Array => randomBytes(keyBytes)

/** Opens and seals; the text it binds a value to must be the same both times. */
export const deriveKey = (master: Uint8Array, salt: Uint8Array) => {
  const key = Buffer.from(hkdfSync("sha256", master, salt, "nightjar token store 1", keyBytes))
  return {
    seal: (value: Redacted.Redacted<string>, boundTo: string): Uint8Array => {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv(algorithm, key, iv).setAAD(Buffer.from(boundTo))
      const body = Buffer.concat([cipher.update(Redacted.value(value), "utf8"), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), body])
    },
    /** Undefined if it does not open: another key, another entry, or a changed byte. */
    open: (sealed: Uint8Array, boundTo: string) => {
      if (sealed.length < ivBytes + tagBytes) return undefined
      try {
        const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, ivBytes), {
          authTagLength: tagBytes,
        })
        decipher.setAAD(Buffer.from(boundTo)).setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes))
        const body = [decipher.update(sealed.subarray(ivBytes + tagBytes)), decipher.final()]
        return Redacted.make(Buffer.concat(body).toString("utf8"))
      } catch {
        return undefined
      }
    },
  }
}
export type SealingKey = ReturnType<typeof deriveKey>
