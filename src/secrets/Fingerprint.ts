/**
 * What the credential breaker remembers of a login: a keyed hash of the engine and everything sent to log
 * in. Equal credentials have equal fingerprints, whoever uses them. Without the output folder's key nobody
 * can test a guess against one, so it may appear in the ledger and in reports.
 */
import { createHmac, createSecretKey } from "node:crypto"
import type { KeyObject } from "node:crypto"
import { isEncrypted } from "../contract/Execution.ts"

/** Making a key costs six times as much as the hash, and a run has one key. */
const keys = new WeakMap<Uint8Array, KeyObject>()
const keyOf = (bytes: Uint8Array): KeyObject => {
  const known = keys.get(bytes) ?? createSecretKey(bytes)
  keys.set(bytes, known)
  return known
}

/** HMAC-SHA256, hexadecimal. */
const keyedHash = (key: Uint8Array, value: unknown): string =>
  createHmac("sha256", keyOf(key)).update(canonicalJson(value)).digest("hex")

/** `parameters` are those sent: types matter, the order of keys does not. */
export const fingerprintLogin = (
  key: Uint8Array,
  engine_reference: string,
  parameters: Readonly<Record<string, unknown>>,
): string => keyedHash(key, [engine_reference, parameters])

/** Where a task comes in a run whose order says nothing; its text is compared. */
export const keyedPlace = (key: Uint8Array, run_id: string, subject: string): string =>
  keyedHash(key, ["place", run_id, subject])

/** A login as the breaker knows it: all that is sent, and the account that it opens. */
export interface LoginKeys {
  readonly fingerprint: string | undefined
  /** Absent if nothing says which parameters stay the same for a user. */
  readonly account?: string | undefined
}

/** Only the keys of a login. */
export const loginKeysOf = ({
  fingerprint,
  account,
}: LoginKeys): LoginKeys & { readonly account?: string } => ({
  fingerprint,
  ...(account === undefined ? {} : { account }),
})

/** What is hashed for every encrypted value; no value that is written out becomes it. */
const unreadable = "ENCRYPTED"

/**
 * The account that a login opens: the customer's, at this provider, with these values of the parameters that
 * never change for a user (2.3: `locking_fields`), however they are written. Encrypted values cannot be
 * compared: they count as the same, and a login with any counts as one to the same account even if none of
 * those parameters is sent. Otherwise it is undefined then.
 */
export const fingerprintAccount = (
  key: Uint8Array,
  { customer_id, provider }: { readonly customer_id: string; readonly provider: string },
  locking: ReadonlyArray<string>,
  parameters: Readonly<Record<string, unknown>>,
): string | undefined => {
  const values = new Set<string>()
  for (const name of locking) {
    const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    if (isPlain && value !== "")
      values.add(isEncrypted(value) ? unreadable : String(value).trim().toLowerCase())
  }
  if (values.size === 0 && Object.values(parameters).some(isEncrypted)) values.add(unreadable)
  return values.size === 0
    ? undefined
    : keyedHash(key, ["account", customer_id, provider, [...values].toSorted()])
}

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
