/**
 * What the credential breaker remembers of a login: a keyed hash of the engine and everything sent to log
 * in. Equal credentials have equal fingerprints, whoever uses them. Without the output folder's key nobody
 * can test a guess against one, so it may appear in the ledger and in reports.
 */
import { createHmac, createSecretKey } from "node:crypto"
import type { KeyObject } from "node:crypto"

/** Making a key costs six times as much as the hash, and a run has one key. */
const keys = new WeakMap<Uint8Array, KeyObject>()
const keyOf = (bytes: Uint8Array): KeyObject => {
  const known = keys.get(bytes) ?? createSecretKey(bytes)
  keys.set(bytes, known)
  return known
}

/**
 * HMAC-SHA256, hexadecimal. `parameters` are those sent: types matter, the order of keys does not.
 */
export const fingerprintLogin = (
  key: Uint8Array,
  engine_reference: string,
  parameters: Readonly<Record<string, unknown>>,
): string =>
  createHmac("sha256", keyOf(key))
    .update(canonicalJson([engine_reference, parameters]))
    .digest("hex")

/**
 * The JSON text of a value with the keys of every object in order; what JSON cannot express is left out,
 * as it is when sent.
 */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`).join(",")}}`
}
