/**
 * The execution state and the challenge under a reading (sections 2.3, 2.4 and 4.2): pure functions from
 * today's body to that of the reading. The result may break the types of the contract: that is the purpose
 * of a reading.
 */
import { Predicate } from "effect"
import type { FullReading } from "../state/Reading.ts"
import { shapeOptionals } from "./ShapeAcceptance.ts"

type Fields = Readonly<Record<string, unknown>>
type Shape = (reading: FullReading, body: Fields) => Fields

const fieldsOf = (value: unknown): Fields => (Predicate.isObject(value) ? { ...value } : {})
const itemsOf = (value: unknown): ReadonlyArray<Fields> => (Array.isArray(value) ? value.map(fieldsOf) : [])
const without = (body: Fields, name: string): Fields =>
  Object.fromEntries(Object.entries(body).filter(([key]) => key !== name))

const shapeCounts = (reading: FullReading["products_count"], counts: Fields): unknown => {
  const each = (change: (count: number) => unknown) =>
    Object.fromEntries(Object.entries(counts).map(([key, count]) => [key, change(Number(count))]))
  if (reading === "null") return null
  if (reading === "text") return each(String)
  if (reading === "float") return each((count) => count + 0.5)
  return Object.entries(counts).map(([key, count]) => ({ key, count }))
}

const shapeProducts: Shape = ({ products_count }, body) => {
  if (products_count === "shown" || !("products_count" in body)) return body
  if (products_count === "absent") return without(body, "products_count")
  return { ...body, products_count: shapeCounts(products_count, fieldsOf(body["products_count"])) }
}

const errorLists = ["parameters_errors", "configurations_errors"] as const

const shapeErrors: Shape = ({ error_lists }, body) =>
  error_lists === "absent" ? body : { parameters_errors: [], configurations_errors: [], ...body }

const shapeMessages: Shape = ({ messages }, body) =>
  messages === "shown" || itemsOf(body["messages"]).length > 0 ? body : without(body, "messages")

/** 4.2: a rejected run answers 200, closed or not; one that is not closed has not ended. */
const shapeRejected: Shape = ({ rejected_state }, body) => {
  const rejected =
    body["status_code"] === "CONFIGURATION_ERROR" && errorLists.some((name) => itemsOf(body[name]).length > 0)
  if (rejected_state === "closed" || !rejected) return body
  return { ...without(body, "date_ended"), is_closed: false }
}

const dated = [
  "date_created",
  "date_started",
  "date_ended",
  "action_required_expires",
  "next_kick_date",
] as const
const rewritten = (reading: FullReading["dates"], date: unknown): unknown =>
  Predicate.isString(date) ? date.replace(/Z$/, reading === "offset" ? "+00:00" : "") : date

const shapeDates: Shape = ({ dates }, body) => {
  if (dates === "zulu") return body
  const there = dated.filter((name) => name in body)
  return {
    ...body,
    ...Object.fromEntries(there.map((name) => [name, rewritten(dates, body[name])])),
    ...("messages" in body
      ? {
          messages: itemsOf(body["messages"]).map((item) => ({
            ...item,
            date: rewritten(dates, item["date"]),
          })),
        }
      : {}),
  }
}

const shapeStateOptionals: Shape = (reading, body) => ({
  ...shapeOptionals(reading, ["external_execution_id", "status_message", "locking_hash"], body),
  features: itemsOf(body["features"]).map((item) => shapeOptionals(reading, ["status_message"], item)),
})

/** 2.4 and 4.2. `body` is a state of today. */
export const shapeState: Shape = (reading, body) =>
  [shapeRejected, shapeErrors, shapeMessages, shapeProducts, shapeDates, shapeStateOptionals].reduce(
    (shaped, shape) => shape(reading, shaped),
    body,
  )

/** 2.3 */
export const shapeForm = ({ form_optionals }: Pick<FullReading, "form_optionals">, form: Fields): Fields =>
  form_optionals === "null" ? { $defs: null, required: null, "x-meta": null, ...form } : form

/** 2.4, 423: the four fields, beside a state if the reading wants one. */
export const shapeChallenge: Shape = (reading, body) => ({
  ...("execution_id" in body ? shapeState(reading, body) : shapeDates(reading, body)),
  form_schema: shapeForm(reading, fieldsOf(body["form_schema"])),
})

/** 2.2, detail view. */
export const shapeEngine: Shape = (reading, body) => ({
  ...body,
  parameters: shapeForm(reading, fieldsOf(body["parameters"])),
  configurations: shapeForm(reading, fieldsOf(body["configurations"])),
  features: itemsOf(body["features"]).map((feature) => ({
    ...feature,
    configurations: shapeForm(reading, fieldsOf(feature["configurations"])),
  })),
})
