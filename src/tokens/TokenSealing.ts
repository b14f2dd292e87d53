/**
 * How secrets of the token store are encrypted: AES-256-GCM under a key derived from the user's own key and
 * the store's salt (HKDF-SHA256), each value bound to the entry it belongs to, so that none can be moved to
 * another. A value that does not open says only that: no error repeats a key or a value.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto"
import { Redacted, Schema } from "effect"

/** The token store cannot be used with this key, or at all; nothing was started. */
export class TokenStoreRefused extends Schema.TaggedError<TokenStoreRefused>()("TokenStoreRefused", {
  message: Schema.String,
}) {}

const keyBytes = 32
const ivBytes = 12
const tagBytes = 16
const algorithm = "aes-256-gcm"

/** Opens and seals; the text it binds a value to must be the same both times. */
export interface SealingKey {
  readonly seal: (value: Redacted.Redacted<string>, boundTo: string) => Uint8Array
  /** Undefined if it does not open: another key, another entry, or a changed byte. */
  readonly open: (sealed: Uint8Array, boundTo: string) => Redacted.Redacted<string> | undefined
}

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

export const deriveKey = (master: Uint8Array, salt: Uint8Array): SealingKey => {
  const key = Buffer.from(hkdfSync("sha256", master, salt, "nightjar token store 1", keyBytes))
  return {
    seal: (value, boundTo) => {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv(algorithm, key, iv).setAAD(Buffer.from(boundTo))
      const body = Buffer.concat([cipher.update(Redacted.value(value), "utf8"), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), body])
    },
    open: (sealed, boundTo) => {
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
