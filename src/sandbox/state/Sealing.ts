/**
 * The cryptography behind tickets and tokens (sections 2.6 and 3.3): AES-256-GCM under keys that
 * HKDF-SHA256 derives from what only the caller has. The service stores only what these functions return,
 * and that opens nothing without the ticket or the `token_key`. Every secret encrypts only one text, so key
 * and nonce may both be derived from it.
 */
import { createCipheriv, createDecipheriv, hkdfSync, timingSafeEqual } from "node:crypto"

const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const prefix = "v1."

const derive = (secret: string, salt: string, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, salt, `nightjar sandbox: ${purpose}`, bytes))

/** The key and the context it is bound to: with another context, the text cannot be opened. */
export interface Seal {
  readonly secret: string
  readonly purpose: "ticket" | "token"
  readonly context: string
}

const keyAndNonce = ({ secret, purpose, context }: Seal): readonly [Buffer, Buffer] => {
  const material = derive(secret, context, `${purpose} seal`, keyBytes + nonceBytes)
  return [material.subarray(0, keyBytes), material.subarray(keyBytes)]
}

export const sealText = (seal: Seal, text: string): string => {
  const cipher = createCipheriv("aes-256-gcm", ...keyAndNonce(seal)).setAAD(Buffer.from(seal.context))
  const sealed = [cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]
  return `${prefix}${Buffer.concat(sealed).toString("base64url")}`
}

/** Undefined if the secret or the context differs, or the encrypted text is damaged. */
export const openSealed = (seal: Seal, sealed: string): string | undefined => {
  const bytes = Buffer.from(sealed.slice(prefix.length), "base64url")
  if (!sealed.startsWith(prefix) || bytes.length < tagBytes) return undefined
  const decipher = createDecipheriv("aes-256-gcm", ...keyAndNonce(seal), { authTagLength: tagBytes })
    .setAAD(Buffer.from(seal.context))
    .setAuthTag(bytes.subarray(bytes.length - tagBytes))
  try {
    const opened = [decipher.update(bytes.subarray(0, bytes.length - tagBytes)), decipher.final()]
    return Buffer.concat(opened).toString("utf8")
  } catch {
    return undefined
  }
}

/** An encrypted text with its last byte changed: it fits its context but cannot be opened. */
export const damageSealed = (sealed: string): string => {
  const bytes = Buffer.from(sealed.slice(prefix.length), "base64url")
  const last = bytes.length - 1
  bytes.writeUInt8(bytes.readUInt8(last) ^ 1, last)
  return `${prefix}${bytes.toString("base64url")}`
}

/**
 * A ticket for one start: seeded, but not derivable from the seed alone, because the login that it protects
 * is part of it.
 */
export const ticketFor = (seed: number, execution_id: string, login: string): string =>
  derive(login, `${seed}.${execution_id}`, "ticket", keyBytes).toString("hex")

/** The caller's half of a token's key: derived from the ticket, which the service does not keep. */
export const tokenKeyFor = (seed: number, token_id: string, ticket: string): string =>
  derive(ticket, `${seed}.${token_id}`, "token_key", keyBytes).toString("base64url")

/** The service's half; it stays with the service, and alone it opens nothing. */
export const serviceHalfFor = (seed: number, token_id: string): string =>
  derive(String(seed), token_id, "service half", keyBytes).toString("base64url")

/** What is kept of a ticket, and of a `token_key`: enough to recognise it, not enough to use it. */
export const verifierOf = (kind: "ticket" | "token_key", secret: string, salt: string): string =>
  derive(secret, salt, `${kind} verifier`, keyBytes).toString("hex")

export const isVerified = (expected: string, given: string): boolean => {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
