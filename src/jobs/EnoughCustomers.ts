/**
 * Refuses a job with too few customers before anything starts: an export that came back empty, or was cut
 * off, must not pass for a quiet night.
 */
import { counted } from "../base/Counted.ts"
import type { Context } from "./Decode.ts"
import type { Job } from "./Job.ts"
import type { MinCustomers } from "./NightShape.ts"

/** Both forms of `min_customers` as one. */
export const fewestCustomers = (
  written: typeof MinCustomers.Type | undefined,
): Exclude<typeof MinCustomers.Type, number> =>
  typeof written === "number" ? { number: written } : (written ?? {})

export const checkNumberOfCustomers = (
  { document, findings }: Context,
  { assignments, sessions }: Pick<Job, "assignments" | "sessions">,
  customersMin: number | undefined,
): void => {
  // A customer with a mistake is missing from the assignments until it is corrected.
  if (findings.errors().length > 0) return
  const customers = new Set(assignments.map(({ customer_id }) => customer_id)).size
  if (customersMin !== undefined && customers < customersMin)
    findings.error(
      document.place(["min_customers"]),
      `the job has ${counted(customers, "customer")}, and \`min_customers\` is ${customersMin}`,
    )
  else if (customers === 0 && sessions.length === 0)
    findings.error(
      document.place(["customers"]),
      "the job has no customers and no sessions: there is nothing to run",
    )
}
