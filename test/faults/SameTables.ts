/**
 * Whether two nights of equal data published equal tables: whole rows of every table, but for times, attempts and
 * remote ids. What is left out stands here by name: remote ids are replaced by what they refer to (so that a row
 * that refers to the wrong execution still differs), times and receipts by whether they are there.
 */
import type { Column, Json } from "../../src/base/DuckDb.ts"
import type { TableRows, Tables } from "./PublishedTables.ts"

export interface Comparison {
  /** Only rows of this job's run are compared; those of earlier runs must be equal to the letter. */
  readonly job: string
  /** Tasks with a possible orphan: their older attempts, and how many there were, are left out. */
  readonly orphaned: ReadonlySet<string>
}

type Row = Readonly<Record<string, Json>>
const emptyTable: TableRows = { columns: [], rows: [] }

const documentTables: ReadonlySet<string> = new Set(["ops.attachments", "ops.documents"])
/** Whose content depends on the session's id at the embedded service. */
const documentColumns: ReadonlySet<string> = new Set(["attachment_id", "bytes", "sha256", "path"])
/** Hashes over what the service sent, times included; our own ids, which hang on the folder's key; the process. */
const receiptColumns: ReadonlySet<string> = new Set(["landed_sha256", "external_execution_id", "worker"])
/** A deletion whose answer was lost is asked for again: the service then knows the execution no more. */
const answerColumns: ReadonlySet<string> = new Set(["http_status", "outcome"])
const away: ReadonlySet<Json> = new Set(["deleted", "gone", 204, 404])

/** What every id of a night stands for. */
interface Names {
  readonly remote: ReadonlyMap<string, string>
  readonly newest: ReadonlySet<string>
  readonly documents: ReadonlySet<string>
  readonly run_id: string
  readonly records: Map<string, string>
}

const table = (tables: Tables, name: string): TableRows => tables.get(name) ?? emptyTable
const text = (value: Json | undefined): string => (typeof value === "string" ? value : JSON.stringify(value))

const ofJob = (rows: ReadonlyArray<Row>, job: string): ReadonlyArray<Row> =>
  rows.filter((row) => text(row["run_id"]).startsWith(`${job}.`))

/** Executions are named by task and by how many attempts came after them; sessions by their execution. */
const namesOf = (tables: Tables, job: string): Names => {
  const executions = ofJob(table(tables, "ops.executions").rows, job)
  const run_id = text(executions[0]?.["run_id"] ?? `${job}.none`)
  const byTask = Map.groupBy(executions, (row) => text(row["task_id"]).replace(run_id, "<run>"))
  const remote = new Map<string, string>()
  const newest = new Set<string>()
  for (const [task, attempts] of byTask) {
    const sorted = attempts.toSorted((a, b) => Number(b["attempt"]) - Number(a["attempt"]))
    sorted.forEach((row, older) => {
      remote.set(text(row["execution_id"]), `<execution of ${task}, ${older} before the last>`)
      remote.set(text(row["session_id"]), `<session of ${task}, ${older} before the last>`)
      if (older > 0) return
      newest.add(text(row["execution_id"]))
      newest.add(text(row["session_id"]))
    })
  }
  const documents = ofJob(table(tables, "ops.attachments").rows, job).map((row) => text(row["attachment_id"]))
  return { remote, newest, documents: new Set(documents), run_id, records: new Map() }
}

const timePattern = /"\d{4}-\d\d-\d\dT[\d:.]+Z"/g
const idPattern = /[0-9a-f][0-9a-f-]{22,34}[0-9a-f]/g

/** Text of any cell: the run's date, remote ids and times within JSON are replaced. */
const plainText = (value: string, isJson: boolean, names: Names): string => {
  const dated = value.replaceAll(names.run_id, "<run>")
  const named = dated.replaceAll(idPattern, (id) =>
    names.documents.has(id) ? "<document>" : (names.remote.get(id) ?? id),
  )
  return isJson ? named.replaceAll(timePattern, '"<time>"') : named
}

/** Only a night that was disturbed has these times. */
const disturbedTimes: ReadonlySet<string> = new Set(["resumed_at", "collected_at"])

const plainCell = (name: string, type: string, value: Json, names: Names): Json => {
  if (value === null || disturbedTimes.has(name)) return null
  if (type === "TIMESTAMPTZ" || type === "TIMESTAMP WITH TIME ZONE") return "<time>"
  if (name === "run_date") return "<date>"
  if (receiptColumns.has(name)) return "<receipt>"
  if (name === "record_id") return names.records.get(text(value)) ?? "<unknown record>"
  return typeof value === "string" ? plainText(value, type === "JSON", names) : value
}

const plainRow = (
  tableName: string,
  columns: ReadonlyArray<Column>,
  row: Row,
  names: Names,
  orphaned: boolean,
): string => {
  const whole = JSON.stringify(row)
  const namesDocument = [...names.documents].some((id) => whole.includes(id))
  const cells = columns.map(({ name, type }): Json => {
    const value = row[name] ?? null
    // Made of all content, documents' ids too.
    if (name === "content_id" && namesDocument) return "<content>"
    if (documentTables.has(tableName) && documentColumns.has(name))
      return value === null ? null : "<document>"
    if (tableName === "ops.documents" && name === "record_id") return value === null ? null : "<record>"
    if (tableName === "ops.deletions" && answerColumns.has(name) && away.has(value)) return "<away>"
    if (orphaned && (name === "attempts" || name === "attempt")) return "<attempts>"
    return plainCell(name, type, value, names)
  })
  return JSON.stringify(Object.fromEntries(columns.map(({ name }, index) => [name, cells[index] ?? null])))
}

const isOrphaned = (row: Row, names: Names, { orphaned }: Comparison): boolean => {
  const id = text(row["execution_id"] ?? row["session_id"] ?? null)
  const task = text(row["task_id"] ?? names.remote.get(id) ?? "")
  return [...orphaned].some((each) => task === each || task.includes(each.replace(names.run_id, "<run>")))
}

/** Of an orphaned task only the newest attempt counts. */
const counts = (tableName: string, row: Row, names: Names, comparison: Comparison): boolean => {
  if (tableName === "ops.tasks" || tableName === "ops.coverage" || !isOrphaned(row, names, comparison))
    return true
  const id = row["execution_id"] ?? row["session_id"] ?? null
  return id === null || names.newest.has(text(id))
}

/** Parents first: a child's `record_id` is replaced by all that its parent says. */
const parentsFirst = (tables: Tables): ReadonlyArray<string> =>
  [...tables.keys()].toSorted((a, b) => {
    const isChild = (name: string) =>
      Number(table(tables, name).columns.some((each) => each.name === "position"))
    return isChild(a) - isChild(b) || (a < b ? -1 : 1)
  })

const plainTables = (tables: Tables, comparison: Comparison): ReadonlyMap<string, ReadonlyArray<string>> => {
  const names = namesOf(tables, comparison.job)
  const plain = new Map<string, ReadonlyArray<string>>()
  for (const name of parentsFirst(tables)) {
    const { columns, rows } = table(tables, name)
    const isParent =
      name !== "ops.documents" &&
      columns.some((each) => each.name === "record_id") &&
      !columns.some((each) => each.name === "position")
    const lines = ofJob(rows, comparison.job)
      .filter((row) => counts(name, row, names, comparison))
      .map((row) => {
        const record = isParent ? text(row["record_id"]) : undefined
        if (record !== undefined) names.records.set(record, "<record>")
        const line = plainRow(name, columns, row, names, isOrphaned(row, names, comparison))
        if (record !== undefined) names.records.set(record, line)
        return line
      })
    plain.set(name, lines.toSorted())
  }
  return plain
}

/** To the letter, times and ids too. */
const exactTables = (tables: Tables, otherThan: string): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(
    [...tables].map(([name, { rows }]) => [
      name,
      rows
        .filter((row) => !text(row["run_id"]).startsWith(`${otherThan}.`))
        .map((row) => JSON.stringify(row))
        .toSorted(),
    ]),
  )

const shown = (line: string | undefined): string => (line === undefined ? "" : line.slice(0, 700))

/** Lines of one side that the other does not have, each as often as it is there. */
const missingFrom = (lines: ReadonlyArray<string>, other: ReadonlyArray<string>): ReadonlyArray<string> => {
  const left = new Map<string, number>()
  for (const line of other) left.set(line, (left.get(line) ?? 0) + 1)
  return lines.filter((line) => {
    const count = left.get(line) ?? 0
    left.set(line, count - 1)
    return count <= 0
  })
}

const differences = (
  expected: ReadonlyMap<string, ReadonlyArray<string>>,
  found: ReadonlyMap<string, ReadonlyArray<string>>,
  what: string,
): ReadonlyArray<string> =>
  [...new Set([...expected.keys(), ...found.keys()])].flatMap((name) => {
    const lost = missingFrom(expected.get(name) ?? [], found.get(name) ?? [])
    const added = missingFrom(found.get(name) ?? [], expected.get(name) ?? [])
    return lost.length + added.length === 0
      ? []
      : [
          `${what}: ${name} lost ${lost.length} and gained ${added.length} rows\n` +
            `    expected ${shown(lost[0])}\n    found    ${shown(added[0])}`,
        ]
  })

/** What two databases say otherwise, in any order of their rows. */
export const differingDatabases = (expected: Tables, found: Tables, what: string): ReadonlyArray<string> => {
  const lines = (tables: Tables) =>
    new Map([...tables].map(([name, { rows }]) => [name, rows.map((row) => JSON.stringify(row))]))
  return differences(lines(expected), lines(found), what)
}

/** What the tables of a disturbed night say otherwise than those of an undisturbed one. */
export const differingTables = (
  undisturbed: Tables,
  disturbed: Tables,
  comparison: Comparison,
): ReadonlyArray<string> => [
  ...differences(
    plainTables(undisturbed, comparison),
    plainTables(disturbed, comparison),
    "the night differs",
  ),
  ...differences(
    exactTables(undisturbed, comparison.job),
    exactTables(disturbed, comparison.job),
    "an earlier night changed",
  ),
]
