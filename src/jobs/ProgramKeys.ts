/**
 * The keys that the program itself uses, as a job names them: of the token store, and of the pseudonyms in
 * the published tables, with what a job must not be called if its tables may not name a customer.
 */
import { isInsideSize } from "../privacy/SecretValue.ts"
import type { Context } from "./Decode.ts"
import type { Job } from "./Job.ts"
import type { Parts } from "./JobParts.ts"
import { parseReference } from "./Reference.ts"

/** A run's id begins with the job's name and is published: it may contain no customer's id. */
const checkName = (
  { document, findings }: Context,
  name: string | undefined,
  customers: ReadonlyArray<string>,
): void => {
  const isIn = (id: string) => isInsideSize(id) && name?.includes(id.toLowerCase()) === true
  if (customers.some(isIn))
    findings.error(
      document.place(["name"]),
      "the name contains the id of a customer, and with `pseudonyms` the tables must not: every run_id " +
        "begins with it. Rename the job",
    )
}

/** The keys that the program itself uses: of the token store and of the pseudonyms. */
export const readKeys = (
  context: Context,
  { name, tokens, pseudonyms: written }: Pick<Parts, "name" | "tokens" | "pseudonyms">,
  folder: string,
  named: Pick<Job, "assignments" | "sessions">,
): Pick<Job, "tokens_key" | "pseudonyms"> => {
  const tokens_key = tokens === undefined ? undefined : parseReference(tokens.key, folder)
  const key = written === undefined ? undefined : parseReference(written.key, folder)
  if (written === undefined || key === undefined) return { tokens_key }
  const customers = [...named.assignments, ...named.sessions].flatMap(({ customer_id }) => customer_id ?? [])
  checkName(context, name, customers)
  const place = context.document.place(["pseudonyms"], "key")
  return { tokens_key, pseudonyms: { key, columns: written.columns ?? {}, place } }
}
