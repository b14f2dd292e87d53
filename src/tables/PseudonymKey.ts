/**
 * Pseudonyms: a keyed hash of a value and its kind. Whoever lacks the key can neither find the value nor test
 * a guess; whoever has it finds the same pseudonym in every run, table and job. Nothing has to be stored for
 * that, so there is no list of who is who that could get lost, or that a removal would have to clean.
 */
import { createHmac, createSecretKey } from "node:crypto"
import { Redacted } from "effect"
import { readKey } from "../tokens/StoredToken.ts"

/**
 * Equal values of one kind have one pseudonym, and values of different kinds never do: `value` is that of
 * every chosen column, so that rows still join by what two columns have in common.
 */
export type Kind =
  | "customer_id"
  | "session_id"
  | "value"
  | "record_id"
  | "content_id"
  | "locking_hash"
  | "landed_sha256"
  | "consent"

export interface PseudonymKey {
  /** Tells keys apart without saying anything about them. */
  readonly check: string
  readonly pseudonymOf: (kind: Kind, value: string) => string
}

/** 128 bits: among ten million values, two share a pseudonym with a chance of 1.5 in 10^25. */
export const pseudonymDigits = 32

/** Fewer different bytes are no random key: of 32 random ones, 30 differ. */
const distinctBytesMin = 16

const keyOver = (bytes: Uint8Array): PseudonymKey => {
  const key = createSecretKey(bytes)
  const digest = (purpose: string, value: string): string =>
    createHmac("sha256", key)
      .update(`nightjar pseudonym 1\n${purpose}\n${value}`)
      .digest("hex")
      .slice(0, pseudonymDigits)
  return {
    check: digest("check", ""),
    pseudonymOf: (kind, value) => digest(`kind ${kind}`, value),
  }
}

/** Undefined if it is not 32 random bytes in hexadecimal or base64. */
export const readPseudonymKey = (text: Redacted.Redacted<string>): PseudonymKey | undefined => {
  const bytes = readKey(text)
  return bytes === undefined || new Set(bytes).size < distinctBytesMin ? undefined : keyOver(bytes)
}
