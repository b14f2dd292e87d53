/**
 * Randomness that depends on what is drawn, never on when or in which order: a draw is a small generator
 * seeded by the sandbox seed and stable inputs (customer, engine, feature …). Two runs with the same seed
 * therefore see the same service, whatever the order of their calls.
 */
import { sha256Hex } from "../../base/Hashes.ts"
import type { FullReading } from "./Reading.ts"

export interface Draw {
  /** In [0, 1). */
  readonly unit: () => number
  /** Both limits included. */
  readonly int: (min: number, max: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <const Values extends readonly [unknown, ...ReadonlyArray<unknown>]>(
    values: Values,
  ) => Values[number]
  readonly digits: (length: number) => string
}

export type SeedInput = string | number

/** Four 32-bit words of the inputs; a length before each input keeps ("ab","c") apart from ("a","bc"). */
const mix = (inputs: ReadonlyArray<SeedInput>): [number, number, number, number] => {
  const text = inputs.map((input) => `${String(input).length}:${input}`).join("|")
  let a = 1779033703
  let b = 3144134277
  let c = 1013904242
  let d = 2773480762
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    a = b ^ Math.imul(a ^ code, 597399067)
    b = c ^ Math.imul(b ^ code, 2869860233)
    c = d ^ Math.imul(c ^ code, 951274213)
    d = a ^ Math.imul(d ^ code, 2716044179)
  }
  a = Math.imul(c ^ (a >>> 18), 597399067)
  b = Math.imul(d ^ (b >>> 22), 2869860233)
  c = Math.imul(a ^ (c >>> 17), 951274213)
  d = Math.imul(b ^ (d >>> 19), 2716044179)
  return [a >>> 0, b >>> 0, c >>> 0, d >>> 0]
}

/** The sfc32 generator over the mixed inputs. */
export const seeded = (...inputs: ReadonlyArray<SeedInput>): Draw => {
  let [a, b, c, d] = mix(inputs)
  const unit = () => {
    const t = (a + b + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return (t >>> 0) / 4294967296
  }
  for (let warm = 0; warm < 8; warm += 1) unit()
  const int = (min: number, max: number) => min + Math.floor(unit() * (max - min + 1))
  return {
    unit,
    int,
    chance: (probability) => unit() < probability,
    pick: (values) => values[int(0, values.length - 1)] ?? values[0],
    digits: (length) => Array.from({ length }, () => int(0, 9)).join(""),
  }
}

/** Hex of a SHA-256 over the inputs, for ids and fingerprints that must not collide. */
export const fingerprint = (...inputs: ReadonlyArray<SeedInput>): string =>
  sha256Hex(inputs.map((input) => `${String(input).length}:${input}`).join("|"))

type IdForms = Pick<FullReading, "execution_id_form" | "session_id_form">

const idOf = (hex: string, form: "uuid" | "hex" | "object_id"): string => {
  if (form === "hex") return hex.slice(0, 32)
  if (form === "object_id") return hex.slice(0, 24)
  return [8, 12, 16, 20, 32].map((end, index) => hex.slice([0, 8, 12, 16, 20][index], end)).join("-")
}

/**
 * 2.4: two ids that must never be confused, even if a reading makes them equal. Today UUID-shaped for
 * executions, ObjectId-shaped for sessions.
 */
export const executionIds = (
  { execution_id_form, session_id_form }: IdForms,
  seed: number,
  ...parts: ReadonlyArray<SeedInput>
) => {
  const execution_id = idOf(fingerprint("execution", seed, ...parts), execution_id_form)
  const session_id =
    session_id_form === "execution_id"
      ? execution_id
      : idOf(fingerprint("session", seed, ...parts), session_id_form)
  return { execution_id, session_id }
}
