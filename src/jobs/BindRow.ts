/**
 * Binds a customer of a file to its engines: those of its row, or every engine of the job. A row may have its
 * own features, and a stored token instead of parameters, in columns that the job names.
 */
import { CustomerId } from "../service/Ids.ts"
import { add, everyEngine, warnOfFeature, warnOfLoginId, warnOfResemblance } from "./Assignments.ts"
import type { Binding, Surroundings } from "./Assignments.ts"
import type { CustomerRow } from "./CustomersFile.ts"
import type { JobFeature, Login } from "./Job.ts"
import { judgeCustomerId } from "./PersonalData.ts"
import { idTooLong, isIdTooLong, personalDataReason } from "./Scalars.ts"

/** A feature that the engine has in the job keeps the settings it has there. */
const featuresOf = (
  codes: ReadonlyArray<string> | undefined,
  ofEngine: ReadonlyArray<JobFeature>,
): ReadonlyArray<JobFeature> =>
  codes === undefined
    ? ofEngine
    : codes.map((code) => ofEngine.find((one) => one.code === code) ?? { code, configurations: undefined })

const checkRow = ({ context }: Surroundings, row: CustomerRow): void => {
  const { findings } = context
  const verdict = judgeCustomerId(row.customer_id)
  if (verdict._tag === "Certain") findings.error(row.place, `expected ${personalDataReason(verdict.kind)}`)
  for (const id of [row.customer_id, row.engine_reference ?? "", row.token ?? "", ...(row.features ?? [])])
    if (isIdTooLong(id)) findings.error(row.place, idTooLong(id))
  if (row.token !== undefined && Object.keys(row.parameters).length > 0)
    findings.error(row.place, "a token replaces the parameters of this row: leave one of the two empty")
  const features = new Set(row.features)
  if (features.size < (row.features?.length ?? 0)) findings.error(row.place, "this row lists a feature twice")
  for (const code of features) warnOfFeature(findings, row.place, code, "rows")
  warnOfResemblance(context, row.customer_id, row.place)
  warnOfLoginId(context, row.customer_id, row.parameters, row.place)
}

export const bindRow = (
  surroundings: Surroundings,
  binding: Binding,
  row: CustomerRow,
  tokenized_access: boolean,
): void => {
  checkRow(surroundings, row)
  const { engine_reference: reference, token, parameters } = row
  const login: Login =
    token === undefined
      ? { _tag: "Parameters", parameters, tokenized_access }
      : { _tag: "Token", name: token }
  const plain = { features: [], configurations: {}, hooks_extra_data: {} }
  const engines =
    reference === undefined
      ? everyEngine(surroundings, row.place, "rows")
      : [surroundings.engines.get(reference) ?? { engine_reference: reference, ...plain }]
  const source = `${row.place.file}:${row.place.line}`
  for (const engine of engines) {
    const features = featuresOf(row.features, engine.features)
    const customer_id = CustomerId.make(row.customer_id)
    add(surroundings, binding, row.place, { customer_id, ...engine, features, login, source })
  }
}
