/**
 * Where a customer's id stays although the customer is removed: in names that people chose for more than this
 * customer, and in their own SQL. Nightjar does not change those; it tells where they are.
 */
import { Effect } from "effect"
import { Ledger } from "../ledger/Ledger.ts"
import { keptModels } from "../tables/Models.ts"
import type { Store } from "../tables/Store.ts"

export interface NamesLeft {
  readonly jobs: ReadonlyArray<string>
  /** Job files, as the ledger names them. */
  readonly jobPaths: ReadonlyArray<string>
  readonly folder: string | undefined
  readonly models: ReadonlyArray<{ readonly job: string; readonly name: string }>
}

const edge = /[\p{L}\p{N}]/u

/** In a name, hyphens and the like separate words, and `C-1` becomes `c-1`. */
export const isInName = (name: string, customer_id: string): boolean => {
  const [text, id] = [name.toLowerCase(), customer_id.toLowerCase()]
  for (let at = text.indexOf(id); at !== -1; at = text.indexOf(id, at + 1))
    if (!edge.test(text.charAt(at - 1)) && !edge.test(text.charAt(at + id.length))) return true
  return false
}

export const namesLeft = Effect.fn("Keeping.namesLeft")(function* (store: Store, customer_id: string) {
  const ledger = yield* Ledger
  const runs = yield* ledger.runs
  const named = (names: ReadonlyArray<string>) =>
    [...new Set(names)].filter((name) => isInName(name, customer_id))
  const models = yield* keptModels(store)
  const { root } = store.layout
  return {
    jobs: named(runs.map(({ fact }) => fact.job)),
    jobPaths: named(runs.map(({ fact }) => fact.job_path)),
    folder: isInName(root, customer_id) ? root : undefined,
    models: models.filter(({ name, sql }) => isInName(`${name} ${sql}`, customer_id)),
  } satisfies NamesLeft as NamesLeft
})
