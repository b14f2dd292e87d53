/**
 * Values for the `?` of a statement, with the SQL type each is bound as. A value passed as a parameter can
 * never become SQL.
 */
import {
  BIGINT,
  BOOLEAN,
  DOUBLE,
  HUGEINT,
  INTEGER,
  LIST,
  listValue,
  SQLNULL,
  VARCHAR,
} from "@duckdb/node-api"
import type { DuckDBType, DuckDBValue } from "@duckdb/node-api"

/** Lists are VARCHAR[]. */
export type Parameter = null | boolean | number | bigint | string | ReadonlyArray<string>

/** Types are explicit: DuckDB could not guess one from an empty list. */
export const bound = (
  parameters: ReadonlyArray<Parameter>,
): [values?: Array<DuckDBValue>, types?: Array<DuckDBType>] => {
  if (parameters.length === 0) return []
  const values = parameters.map((value) => (isList(value) ? listValue([...value]) : value))
  return [values, parameters.map((value) => (isList(value) ? LIST(VARCHAR) : scalarType(value)))]
}

const isList = (value: Parameter): value is ReadonlyArray<string> => Array.isArray(value)

const int32Max = 2_147_483_647
const int64Max = 9_223_372_036_854_775_807n

const scalarType = (value: Exclude<Parameter, ReadonlyArray<string>>): DuckDBType => {
  if (value === null) return SQLNULL
  if (typeof value === "boolean") return BOOLEAN
  if (typeof value === "string") return VARCHAR
  if (typeof value === "bigint") return value <= int64Max && value >= -int64Max ? BIGINT : HUGEINT
  if (!Number.isSafeInteger(value)) return DOUBLE
  return Math.abs(value) <= int32Max ? INTEGER : BIGINT
}
