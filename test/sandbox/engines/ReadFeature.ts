/**
 * Reads one feature with settings and gives the state that its run ends in and the records that it brought, so
 * that what a setting does can be compared.
 */
import { Effect } from "effect"
import { Caller, field, textField } from "../server/Caller.ts"

export type Settings = Readonly<Record<string, unknown>>
export type Row = Readonly<Record<string, unknown>>

const isRow = (value: unknown): value is Row => typeof value === "object" && value !== null
export const rowsOf = (value: unknown): ReadonlyArray<Row> =>
  Array.isArray(value) ? value.filter(isRow) : []

const engines: Readonly<Record<string, string>> = {
  accounts_read: "es-bank:api",
  credits_read: "es-bank:api",
  cards_read: "es-bank:api",
  credit_registry_data: "es-bank:api",
  client_invoices_read: "es-utility:mobile",
  supplier_invoices_read: "es-utility:mobile",
}
export const engineOf = (code: string) => engines[code] ?? "sandbox-tax:website"

/** Without what every run has of its own: when it read, and its documents. */
const lasting = (record: Row): Row =>
  Object.fromEntries(Object.entries(record).filter(([name]) => !/^fetch_date$|attachment/.test(name)))

/** One feature read with these settings: the state that it ends in, and its records without their dates. */
export const readFeature = Effect.fnUntraced(function* (
  code: string,
  configurations: Settings,
  more: Readonly<Record<string, unknown>> = {},
  words = "queue-0+run-0",
) {
  const caller = yield* Caller
  const started = yield* caller.start(words, {
    engine_reference: engineOf(code),
    features: [{ code, configurations }],
    ...more,
  })
  const state = yield* caller.read(textField(started, "execution_id"))
  const results = yield* caller.results(textField(started, "session_id"))
  const data = field(results, "data")
  const records = isRow(data) ? Object.values(data).flatMap(rowsOf) : []
  return { state, records: records.filter((row) => Object.hasOwn(row, "sub_family")).map(lasting) }
})

/** Features whose settings name a window of days. */
export const windows = [
  "accounts_read",
  "credits_read",
  "cards_read",
  "client_invoices_read",
  "supplier_invoices_read",
] as const
