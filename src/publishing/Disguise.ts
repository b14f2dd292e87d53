/**
 * The rows of a run as they are published where tables have pseudonyms: applied to the cells of every table
 * as they are taken out of their builder, so that Parquet files, database and every later derivation agree.
 * Landing, ledger, log and report keep the customer's id: they are the operator's.
 */
import { Effect } from "effect"
import { CustomerId } from "../contract/Ids.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import type { Cell, Disguise, TableSpec } from "../records/Columns.ts"
import { isInsideSize } from "../secrets/SecretValue.ts"
import type { Forgotten } from "../ledger/WithoutCustomer.ts"
import { ledgerFailed, PublishFailed } from "./Publisher.ts"
import type { Kind, PseudonymKey } from "./PseudonymKey.ts"
import type { Store } from "./Store.ts"
import { shownTable, treatmentOf } from "./Treatments.ts"
import type { PseudonymPolicy, Treatment } from "./Treatments.ts"

type Column = ReadonlyArray<Cell>

/** What is known of the customer of a task: its id, and the spellings of it that are looked for in texts. */
interface Subject {
  readonly task_id: string
  readonly pseudonym: string
  readonly spellings: ReadonlyArray<string>
}

/** Too short an id may be part of any text; whatever may hold one by intent has a decision of its own. */
const spellingsOf = (customer_id: string): ReadonlyArray<string> =>
  isInsideSize(customer_id) ? [...new Set([customer_id, JSON.stringify(customer_id).slice(1, -1)])] : []

const withoutId = (text: string, { spellings, pseudonym }: Omit<Subject, "task_id">): string =>
  spellings.reduce((left, id) => (left.includes(id) ? left.replaceAll(id, pseudonym) : left), text)

/** A task's id as it is published. A run's has no slash; after it comes the customer's, or `session`. */
const taskShown = (task_id: string, customer_id: string, subject: Omit<Subject, "task_id">): string => {
  const at = task_id.indexOf("/")
  const middle = `/${customer_id}/`
  return at !== -1 && task_id.startsWith(middle, at)
    ? `${task_id.slice(0, at)}/${subject.pseudonym}/${task_id.slice(at + middle.length)}`
    : withoutId(task_id, subject)
}

const subjectOf = (key: PseudonymKey, customer_id: string): Omit<Subject, "task_id"> => ({
  pseudonym: key.pseudonymOf("customer_id", customer_id),
  spellings: spellingsOf(customer_id),
})

const subjectsOf = (state: RunState, key: PseudonymKey): ReadonlyMap<string, Subject> =>
  new Map(
    [...state.tasks.values()].flatMap(({ planned: { task_id, customer_id } }) => {
      if (customer_id === undefined) return []
      const subject = subjectOf(key, customer_id)
      return [[task_id, { ...subject, task_id: taskShown(task_id, customer_id, subject) }] as const]
    }),
  )

/** A cell with each of its texts changed; undefined if it is no text. */
const overTexts = (cell: Cell, change: (text: string) => string): Cell | undefined => {
  if (typeof cell === "string") return change(cell)
  return Array.isArray(cell) ? cell.map((text) => change(text)) : undefined
}

/** Adjacent rows mostly have the same value: those of a record's lists, and those of one customer. */
const remembering = (key: PseudonymKey, kind: Kind) => {
  let [value, pseudonym] = ["", key.pseudonymOf(kind, "")]
  return (text: string): string => {
    if (text !== value) [value, pseudonym] = [text, key.pseudonymOf(kind, text)]
    return pseudonym
  }
}

const disguised = (
  key: PseudonymKey,
  treatment: Treatment,
  cells: Column,
  subjectAt: (row: number) => Subject | undefined,
): Column => {
  switch (treatment) {
    case "own":
      return cells
    case "withheld":
      return cells.map(() => null)
    case "task":
      return cells.map((cell, row) => subjectAt(row)?.task_id ?? cell)
    case "clear":
      return cells.map((cell, row) => {
        const subject = subjectAt(row)
        if (subject === undefined) return cell
        return overTexts(cell, (text) => withoutId(text, subject)) ?? cell
      })
    default: {
      const pseudonymOf = remembering(key, treatment)
      // A pseudonym is text: if a schema has made something else of the column, it is withheld.
      return cells.map((cell) => overTexts(cell, pseudonymOf) ?? null)
    }
  }
}

/** For the tables of one run. */
export const disguiseOf = (policy: PseudonymPolicy, key: PseudonymKey, state: RunState): Disguise => {
  const subjects = subjectsOf(state, key)
  return (spec: TableSpec) => {
    const treatments = spec.columns.map(({ name }) => treatmentOf(policy, spec.name, name))
    const tasks = treatments.indexOf("task")
    return {
      spec: shownTable(policy, spec),
      mask: (columns) => {
        const subjectAt = (row: number) => subjects.get(String(columns[tasks]?.[row]))
        return columns.map((cells, index) => disguised(key, treatments[index]!, cells, subjectAt))
      },
    }
  }
}

/** Undefined if the tables have no pseudonyms; fails if they have and the key is not known here. */
export const disguiseIn = Effect.fnUntraced(function* ({ pseudonyms }: Store, state: RunState) {
  if (pseudonyms === undefined) return undefined
  const { policy, key } = pseudonyms
  return disguiseOf(policy, key ?? (yield* keyMissing), state)
})

const keyMissing = Effect.fail(
  new PublishFailed({ message: "the tables have pseudonyms, and their key is not known here" }),
)

/** As the published rows name whom the ledger names so. */
export const forgottenInTables = Effect.fnUntraced(function* ({ pseudonyms }: Store, forgotten: Forgotten) {
  if (pseudonyms === undefined) return forgotten
  const key = pseudonyms.key ?? (yield* keyMissing)
  const { customer_id } = forgotten
  const subject = subjectOf(key, customer_id)
  const tasks = new Set([...forgotten.tasks].map((task_id) => taskShown(task_id, customer_id, subject)))
  return {
    ...forgotten,
    customer_id: CustomerId.make(subject.pseudonym),
    tasks,
  } satisfies Forgotten as Forgotten
})

/** From a pseudonym to the customer whom the ledger knows; whom it does not know keeps the pseudonym. */
export const revealer = Effect.fnUntraced(function* ({ pseudonyms }: Pick<Store, "pseudonyms">) {
  if (pseudonyms === undefined) return (customer_id: string): string => customer_id
  const key = pseudonyms.key ?? (yield* keyMissing)
  const ledger = yield* Ledger
  const customers = yield* Effect.mapError(ledger.customers, ledgerFailed)
  const names = new Map(customers.map((id) => [key.pseudonymOf("customer_id", id), id] as const))
  return (pseudonym: string): string => names.get(pseudonym) ?? pseudonym
})
