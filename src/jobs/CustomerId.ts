/**
 * Warnings about a `customer_id` that the service may store but that says too much about a person (4.1): it
 * resembles personal data, or it is also what the customer logs in with.
 */
import { Predicate, Redacted } from "effect"
import type { Context } from "./Decode.ts"
import type { ParameterSource } from "./Job.ts"
import { judgeCustomerId } from "./PersonalData.ts"
import type { Place } from "../base/FileProblem.ts"

const why = "the service stores it and may put it into webhook addresses"
const next = "use an id that says nothing about the person"

export const warnOfResemblance = ({ findings }: Context, id: string, place: Place): void => {
  const verdict = judgeCustomerId(id)
  if (verdict._tag !== "Resembles") return
  findings.warn(place, `this customer_id resembles ${verdict.kind}; ${why}: ${next}`, verdict.kind)
}

export const tellLoginId = (name: string): string =>
  `this customer_id is also the value of the parameter \`${name}\`; ${why}: ${next}`

export const isSameText = (id: string, value: unknown): boolean =>
  (Predicate.isString(value) || Predicate.isNumber(value)) &&
  String(value).trim().toLowerCase() === id.trim().toLowerCase()

/** Many customers log in with their own id number; references are compared once they are resolved. */
export const warnOfLoginId = (
  { findings }: Context,
  id: string,
  parameters: Readonly<Record<string, ParameterSource>>,
  place: Place,
): void => {
  for (const [name, source] of Object.entries(parameters)) {
    if (source._tag === "Literal" && isSameText(id, Redacted.value(source.value)))
      findings.warn(place, tellLoginId(name), `login ${name}`)
  }
}
