/**
 * Whether a text or a value names a customer: by the customer's id, a task, or an id that the service gave.
 * Pure. Ids are compared whole: a customer whose id begins with this one's is somebody else.
 */
import { Effect } from "effect"
import { Ledger } from "../ledger/Ledger.ts"
import { keptModels } from "../tables/Models.ts"
import type { Store } from "../tables/Manifest.ts"

export interface Named {
  readonly customer_id: string
  readonly tasks: ReadonlySet<string>
  /** Of executions, sessions and the like. */
  readonly ids: ReadonlyArray<string>
}

/** Shorter ids may be part of any text. */
const uniqueLength = 12

const spellings = (text: string): ReadonlyArray<string> => [
  ...new Set([
    text,
    JSON.stringify(text).slice(1, -1),
    JSON.stringify(text).slice(1, -1).replaceAll("<", "\\u003c"),
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;"),
    text.replaceAll('"', '""'),
  ]),
]

const partOfId = /[\p{L}\p{N}_-]/u

/** A text in any format; may be true for a text that only looks like it. */
export const mentionsIn = ({ customer_id, tasks, ids }: Named, text: string): boolean =>
  [...tasks].flatMap(spellings).some((task) => text.includes(task)) ||
  ids.some((id) => (id.length >= uniqueLength ? text.includes(id) : hasWhole(text, id))) ||
  spellings(customer_id).some((id) => hasWhole(text, id))

/** None of these signs continues the id on either side. */
const hasWhole = (text: string, id: string, signs = partOfId): boolean => {
  for (let at = text.indexOf(id); at !== -1; at = text.indexOf(id, at + 1))
    if (!signs.test(text.charAt(at - 1)) && !signs.test(text.charAt(at + id.length))) return true
  return false
}

/** A value of JSON, at any depth. */
export const mentions = (named: Named, value: unknown, key = ""): boolean => {
  if (typeof value === "string")
    return (
      (key === "customer_id" && value === named.customer_id) ||
      named.tasks.has(value) ||
      named.ids.some((id) => (id.length >= uniqueLength ? value.includes(id) : value === id))
    )
  if (Array.isArray(value)) return value.some((item) => mentions(named, item, key))
  if (typeof value !== "object" || value === null) return false
  return Object.entries(value).some(([name, item]) => mentions(named, name) || mentions(named, item, name))
}

// Where a customer's id stays although the customer is removed: in names that people chose for more than this
// customer, and in their own SQL. Nightjar does not change those; it tells where they are.

const partOfWord = /[\p{L}\p{N}]/u

/** In a name, hyphens and the like separate words, and `C-1` becomes `c-1`. */
export const isInName = (name: string, customer_id: string): boolean =>
  hasWhole(name.toLowerCase(), customer_id.toLowerCase(), partOfWord)

export const namesLeft = Effect.fn("Keeping.namesLeft")(function* (store: Store, customer_id: string) {
  const ledger = yield* Ledger
  const runs = yield* ledger.runs
  const named = (names: ReadonlyArray<string>) =>
    [...new Set(names)].filter((name) => isInName(name, customer_id))
  const models = yield* keptModels(store)
  const { root } = store.layout
  return {
    jobs: named(runs.map(({ fact }) => fact.job)),
    /** Job files, as the ledger names them. */
    jobPaths: named(runs.map(({ fact }) => fact.job_path)),
    folder: isInName(root, customer_id) ? root : undefined,
    models: models.filter(({ name, sql }) => isInName(`${name} ${sql}`, customer_id)),
  }
})
