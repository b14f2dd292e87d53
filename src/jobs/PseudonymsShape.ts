/**
 * `pseudonyms` in a job file: the key, and the columns of record tables that have pseudonyms beside
 * `customer_id`. Which columns there are is known where tables are made (`tables/PseudonymsOfJob.ts`).
 */
import { Schema } from "effect"
import { parseReference } from "./Reference.ts"
import { ruled, text } from "./Scalars.ts"
import { optional, required } from "./ShapeKeys.ts"

/** Later commands look it up where it was, and no command of a job file may wait for them. */
const keyReference = ruled(
  (value) => /^(?:env|file):/.test(value) && parseReference(value, "") !== undefined,
  "env:NAME or file:PATH: the key is never written into a job file",
  "(?:env:[A-Za-z_][A-Za-z0-9_]*|file:.+)",
)

export const PseudonymsShape = Schema.Struct({
  key: required(keyReference, "32 random bytes in hexadecimal or base64: env:NAME or file:PATH."),
  columns: optional(
    Schema.Record(Schema.String, Schema.Array(text)),
    "Further columns by record table, such as `customer_profiles: [name]`; VARCHAR and VARCHAR[] only.",
  ),
})
