/**
 * The key for logins and external ids, in the ledger's file beside its hash: a flipped bit in it must not
 * decide whether a login is sent again.
 */
import { randomBytes } from "node:crypto"
import type { DatabaseSync } from "node:sqlite"
import { sha256 } from "../base/Sha256.ts"
import { within } from "./Transaction.ts"

/** The content of the ledger has changed since it was written. */
export class Damage extends Error {}

/** SQLITE_CORRUPT and SQLITE_NOTADB: SQLite reports that the file is damaged. */
const damagedCodes: ReadonlySet<unknown> = new Set([11, 26])
export const isDamage = (cause: unknown): cause is Error =>
  cause instanceof Damage || (cause instanceof Error && "errcode" in cause && damagedCodes.has(cause.errcode))

export const keyIn = (database: DatabaseSync, name: string): Uint8Array | undefined => {
  const value = database.prepare("SELECT value FROM keys WHERE name = ?").get(name)?.["value"]
  return value instanceof Uint8Array ? value : undefined
}

/** Keeps existing entries. */
export const writeKey = (database: DatabaseSync, name: string, value: Uint8Array) =>
  database.prepare("INSERT OR IGNORE INTO keys (name, value) VALUES (?, ?)").run(name, value)

export const keyDamage = "the key for logins and external ids has changed since it was written"

export const fingerprintKeyIn = (database: DatabaseSync): Uint8Array => {
  if (keyIn(database, "fingerprint") === undefined)
    within(database, () => {
      const made = randomBytes(32)
      if (writeKey(database, "fingerprint", made).changes > 0)
        writeKey(database, "fingerprint.sha256", sha256(made))
    })
  const key = keyIn(database, "fingerprint")
  if (key === undefined || keyDiffers(database, key)) throw new Damage(keyDamage)
  return key
}

/** A ledger of an older version, read before it was ever opened for writing, has no hash of its key. */
export const keyDiffers = (database: DatabaseSync, key: Uint8Array): boolean => {
  const hash = keyIn(database, "fingerprint.sha256")
  return hash !== undefined && !sha256(key).equals(hash)
}
