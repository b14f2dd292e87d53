/**
 * The rows of a run where tables have pseudonyms: in the order of these, and masked as their cells leave
 * their builder, so that Parquet files, database and every later derivation agree. Landing, ledger, log and
 * report keep the customer's id: they are the operator's.
 */
import { Effect } from "effect"
import { CustomerId } from "../service/Ids.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import type { Cell, Disguise, Kind, TableSpec, Treatment } from "../records/Columns.ts"
import { isInsideSize } from "../privacy/KnownSecrets.ts"
import type { Forgotten } from "../ledger/ForgetCustomer.ts"
import { ledgerFailed, PublishFailed } from "./Publisher.ts"
import { shownTable, treatmentOf, type PseudonymKey, type PseudonymPolicy } from "./Treatments.ts"
import type { RunPicture } from "./RunPicture.ts"
import type { Store } from "./Manifest.ts"

type Column = ReadonlyArray<Cell>

/** The ids by which a job names a task; a session that it names may be of no known customer. */
interface Ids {
  readonly customer_id?: string | undefined
  readonly session_id?: string | undefined
}

/** What is published of a task's ids, and what becomes of the texts in which they are. */
interface Subject {
  readonly task_id: string
  /** Rows are published in the order of these texts. */
  readonly place: string
  readonly shown: (text: string) => string
}

/** Whose rows have no pseudonym come last: pseudonyms are hexadecimal. */
const afterAll = "~"

/** Too short an id may be part of any text; whatever may hold one by intent has a decision of its own. */
const replacing = (id: string | undefined, pseudonym: string): ((text: string) => string) => {
  if (id === undefined || !isInsideSize(id)) return (text) => text
  const spellings = [...new Set([id, JSON.stringify(id).slice(1, -1)])]
  return (text) =>
    spellings.reduce((left, one) => (left.includes(one) ? left.replaceAll(one, pseudonym) : left), text)
}

/** A run has no slash in its id; after it come customer and engine, or `session` and the id of a session. */
const subjectOf = (key: PseudonymKey, task_id: string, { customer_id, session_id }: Ids): Subject => {
  const customer = customer_id === undefined ? afterAll : key.pseudonymOf("customer_id", customer_id)
  const session = key.pseudonymOf("session_id", session_id ?? "")
  const [ofCustomer, ofSession] = [replacing(customer_id, customer), replacing(session_id, session)]
  const shown = (text: string) => (text === session_id ? session : ofCustomer(ofSession(text)))
  const run = task_id.slice(0, task_id.indexOf("/") + 1)
  const own = `${run}${customer_id}/`
  const taskShown = () => {
    if (session_id !== undefined) return `${run}session/${session}`
    return task_id.startsWith(own) ? `${run}${customer}/${task_id.slice(own.length)}` : shown(task_id)
  }
  const published = taskShown()
  return { task_id: published, place: `${customer} ${published}`, shown }
}

const subjectsOf = (state: RunState, key: PseudonymKey): ReadonlyMap<string, Subject> =>
  new Map([...state.tasks].map(([task_id, { planned }]) => [task_id, subjectOf(key, task_id, planned)]))

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
    case "session":
      return cells.map((cell, row) => {
        const subject = subjectAt(row)
        if (subject === undefined) return cell
        return overTexts(cell, subject.shown) ?? cell
      })
    default: {
      const pseudonymOf = remembering(key, treatment)
      // A pseudonym is text: if a schema has made something else of the column, it is withheld.
      return cells.map((cell) => overTexts(cell, pseudonymOf) ?? null)
    }
  }
}

export const disguiseOf =
  (policy: PseudonymPolicy, key: PseudonymKey, subjects: ReadonlyMap<string, Subject>): Disguise =>
  (spec: TableSpec) => {
    const treatments = spec.columns.map((each) => treatmentOf(policy, spec.name, each))
    const tasks = treatments.indexOf("task")
    return {
      spec: shownTable(policy, spec),
      mask: (columns) => {
        const subjectAt = (row: number) => subjects.get(String(columns[tasks]?.[row]))
        return columns.map((cells, index) => disguised(key, treatments[index]!, cells, subjectAt))
      },
    }
  }

/** The tasks by what is published of them, and the engines by name: then no table is in the job's order. */
const inOrder = (picture: RunPicture, subjects: ReadonlyMap<string, Subject>): RunPicture => {
  const placeOf = (id: string) => subjects.get(id)?.place ?? afterAll
  const tasks = [...picture.state.tasks].toSorted(([a], [b]) => (placeOf(a) < placeOf(b) ? -1 : 1))
  return {
    ...picture,
    state: { ...picture.state, tasks: new Map(tasks) },
    engines: picture.engines.toSorted((a, b) => (a.engine_reference < b.engine_reference ? -1 : 1)),
  }
}

/**
 * A run as its rows are published, and what becomes of them; as it is if the tables have no pseudonyms. Fails
 * if they have and the key is not known here.
 */
export const disguisePicture = Effect.fnUntraced(function* ({ pseudonyms }: Store, picture: RunPicture) {
  if (pseudonyms === undefined) return { picture, disguise: undefined }
  const { policy, key = yield* keyMissing } = pseudonyms
  const subjects = subjectsOf(picture.state, key)
  return { picture: inOrder(picture, subjects), disguise: disguiseOf(policy, key, subjects) }
})

const keyMissing = Effect.fail(
  new PublishFailed({ message: "the tables have pseudonyms, and their key is not known here" }),
)

/** As the published rows name whom the ledger names so. */
export const forgottenInTables = Effect.fnUntraced(function* ({ pseudonyms }: Store, forgotten: Forgotten) {
  if (pseudonyms === undefined) return forgotten
  const key = pseudonyms.key ?? (yield* keyMissing)
  const { customer_id } = forgotten
  const shown = (task_id: string) => subjectOf(key, task_id, { customer_id, session_id: sessionIn(task_id) })
  return {
    ...forgotten,
    customer_id: CustomerId.make(key.pseudonymOf("customer_id", customer_id)),
    tasks: new Set([...forgotten.tasks].map((task_id) => shown(task_id).task_id)),
  } satisfies Forgotten as Forgotten
})

/** The session that the job names, if the task is to read one. */
const sessionIn = (task_id: string): string | undefined => /^[^/]*\/session\/(.*)$/s.exec(task_id)?.[1]

/** From a pseudonym to the customer whom the ledger knows; whom it does not know keeps the pseudonym. */
export const revealer = Effect.fnUntraced(function* ({ pseudonyms }: Pick<Store, "pseudonyms">) {
  if (pseudonyms === undefined) return (customer_id: string): string => customer_id
  const key = pseudonyms.key ?? (yield* keyMissing)
  const ledger = yield* Ledger
  const customers = yield* Effect.mapError(ledger.customers, ledgerFailed)
  const names = new Map(customers.map((id) => [key.pseudonymOf("customer_id", id), id] as const))
  return (pseudonym: string): string => names.get(pseudonym) ?? pseudonym
})
