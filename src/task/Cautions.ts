/**
 * Warnings of a plan about a login that may still be sent: a secret written in a file, an id that is the
 * login itself. Field names only, never a value.
 */
import { Redacted } from "effect"
import { isSameText, tellLoginId } from "../jobs/Assignments.ts"
import type { Assignment } from "../jobs/Job.ts"
import type { EngineFinding } from "../client/EngineForms.ts"
import type { ResolvedLogin } from "./Logins.ts"

export const cautionsOf = (
  { customer_id, login }: Assignment,
  resolved: ResolvedLogin,
  finding: EngineFinding,
): ReadonlyArray<string> => {
  if (login._tag === "Token") return []
  const secret = finding._tag === "Known" ? finding.engine.secret : undefined
  const values = resolved._tag === "Resolved" ? Redacted.value(resolved.parameters) : {}
  return Object.entries(login.parameters).flatMap(([name, source]) => {
    // A literal id was reported when the job was loaded, with its place.
    if (source._tag === "Reference")
      return Object.hasOwn(values, name) && isSameText(customer_id, values[name]) ? [tellLoginId(name)] : []
    return secret?.has(name) === true
      ? [`${name} is a secret written out in a file: use env:, file: or exec:`]
      : []
  })
}
