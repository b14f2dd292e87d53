/**
 * Tables with pseudonyms: what a job chooses, how a column is shown then, and the keyed hash that a value
 * becomes. What becomes of each column is declared with it. Pure.
 */
import { createHmac, createSecretKey } from "node:crypto"
import { isDeepStrictEqual } from "node:util"
import { Redacted, Schema } from "effect"
import { suggestion } from "../base/Text.ts"
import type { ColumnSpec, Kind, TableSpec, Treatment } from "../records/Columns.ts"
import type { RecordFamily } from "../records/RecordSchema.ts"
import { readKey } from "../tokens/StoredToken.ts"

/** What the tables of a version have in place of the customers: kept in its manifest. */
export const PseudonymPolicy = Schema.Struct({
  /** Of the key. */
  check: Schema.String,
  /** The chosen columns, by record table; tables and columns in order. */
  columns: Schema.Record(Schema.String, Schema.Array(Schema.String)),
})
export type PseudonymPolicy = typeof PseudonymPolicy.Type

/** Under this name a Parquet file says it of its rows. */
export const policyInFile = "pseudonyms"

/** One spelling of what a job chose, so that two can be compared. */
export const inOrder = (
  columns: Readonly<Record<string, ReadonlyArray<string>>>,
): PseudonymPolicy["columns"] =>
  Object.fromEntries(
    Object.entries(columns)
      .filter(([, names]) => names.length > 0)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([table, names]) => [table, [...new Set(names)].toSorted()]),
  )

/** Whether rows of the two may stand in one version; undefined has no pseudonyms. */
export const isSamePolicy = (one: PseudonymPolicy | undefined, other: PseudonymPolicy | undefined): boolean =>
  isDeepStrictEqual(one, other)

/** What a job has chosen is a pseudonym; all else is as it is declared. */
export const treatmentOf = (
  policy: PseudonymPolicy,
  table: string,
  { name, treatment }: Pick<ColumnSpec, "name" | "treatment">,
): Treatment => (policy.columns[table]?.includes(name) === true ? "value" : treatment)

/** What the comment of a column says of it then; of any other treatment, that it is a pseudonym. */
const sayings: Readonly<Partial<Record<Treatment, string>>> = {
  own: "",
  clear: "",
  task: " With the customer's pseudonym.",
  session: " A pseudonym where the job names the session.",
  withheld: " Withheld: NULL, because it may name the customer.",
}

/** A column as it is published: what was required may be withheld. */
const shownColumn = (spec: ColumnSpec, treatment: Treatment): ColumnSpec => ({
  ...spec,
  nullable: spec.nullable || treatment === "withheld",
  comment: `${spec.comment}${sayings[treatment] ?? " A pseudonym."}`,
})

export const shownTable = <Table extends TableSpec>(
  policy: PseudonymPolicy | undefined,
  table: Table,
): Table =>
  policy === undefined
    ? table
    : {
        ...table,
        columns: table.columns.map((spec) => shownColumn(spec, treatmentOf(policy, table.name, spec))),
      }

/** Why what the job chose cannot be made a pseudonym, each by its name; none if all of it can. */
export const columnTroubles = (
  columns: PseudonymPolicy["columns"],
  families: ReadonlyArray<RecordFamily>,
): ReadonlyArray<{ readonly table: string; readonly column?: string; readonly why: string }> => {
  const tables = new Map(families.flatMap((one) => [one, ...one.children].map((each) => [each.table, each])))
  const unknown = (what: string, name: string, known: Iterable<string>): string =>
    `${what} of this name${suggestion(name, [...known], 0)}`
  return Object.entries(columns).flatMap(([table, names]) => {
    const known = tables.get(table)
    if (known === undefined)
      return [{ table, why: unknown("no record schema has a table", table, tables.keys()) }]
    const types = new Map(known.columns.map(({ name, type }) => [name, type]))
    return names.flatMap((column) => {
      const type = types.get(column)
      if (type === undefined)
        return [{ table, column, why: unknown("its record schema has no column", column, types.keys()) }]
      if (type === "VARCHAR" || type === "VARCHAR[]") return []
      const why = `it is ${type}, and a pseudonym is text: only VARCHAR and VARCHAR[] can be`
      return [{ table, column, why }]
    })
  })
}

// Pseudonyms: a keyed hash of a value and its kind. Whoever lacks the key can neither find the value nor test
// a guess; whoever has it finds the same one in every run and job, so there is no list of who is who that
// could get lost. `value` is the kind of every chosen column, so that rows still join by it.

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
