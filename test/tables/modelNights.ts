/**
 * Nights for the model of a whole folder: what each body has, with spellings drawn, the record schemas that change
 * between nights, and what the typed columns of a record are under each of them. Told to a real ledger and landing.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { Landing, type BodyMeta } from "../../src/landing/Landing.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { own } from "../../src/service/Ends.ts"
import type { drawing } from "../harness/Drawing.ts"
import { anId } from "../harness/Id.ts"
import type { Said, ToldRun, ToldTask } from "./model.ts"
import { append } from "./night.ts"

export const kinds = ["paper", "labor_check", "odd"] as const
export type Kind = (typeof kinds)[number]
const features = ["paper_a", "paper_b", "labor_check"]
export const customers = ["cust-one", "cust-two", "cust-three", "cust-four"]
const engines = ["bank:website", "bank:mobile"]

// Record schemas, and what a record is under them.

type AmountType = "DECIMAL(9,2)" | "INTEGER" | "VARCHAR"

/** The schemas in force. Of labor checks there never is one. */
export interface Schemas {
  readonly amount: AmountType | undefined
  readonly note: boolean
  /** Odd records have a schema, and a table. */
  readonly odds: boolean
}

export const writeSchemas = (folder: string, { amount, note, odds }: Schemas): void => {
  mkdirSync(folder, { recursive: true })
  const column = (name: string, type: string) => `  ${name}: { type: "${type}", comment: ${name} }\n`
  writeFileSync(
    join(folder, "papers.yaml"),
    "table: papers\ncomment: Papers.\nproduct: paper\nsub_families: ['paper:id']\nfeatures: [paper_a, paper_b]\n" +
      `key: [type]\ncolumns:\n${column("fetch_date", "TIMESTAMPTZ")}${column("type", "VARCHAR")}` +
      column("name", "VARCHAR") +
      (amount === undefined ? "" : column("amount", amount)) +
      (note ? column("note", "VARCHAR") : "") +
      "children:\n  lines: { comment: Lines., columns: { line: { type: VARCHAR, comment: Line } } }\n",
  )
  if (odds)
    writeFileSync(
      join(folder, "odds.yaml"),
      "table: odds\ncomment: Odds.\nproduct: odd\nsub_families: ['odd:x']\nfeatures: [labor_check]\n" +
        `columns:\n${column("fetch_date", "TIMESTAMPTZ")}${column("name", "VARCHAR")}`,
    )
}

export const feedsUnder =
  ({ odds }: Schemas) =>
  (feature: string, kind: string): boolean =>
    kind === "paper"
      ? feature.startsWith("paper_")
      : kind === "odd"
        ? !odds || feature === "labor_check"
        : feature === kind

/** A record as it stands in a body; `undefined` members are missing there. */
export interface BodyRow {
  readonly kind: Kind
  readonly type: string | null
  readonly name: string
  readonly amount: string | number | null | undefined
  readonly note: string | null | undefined
  readonly lines: ReadonlyArray<{ readonly line: string; readonly aside: number | undefined }> | undefined
  /** No schema has a column for it; in a line neither. */
  readonly aside: number | undefined
  readonly isEarlier: boolean
}

/** With which schemas a run's rows were derived; `takesNumbers`: an earlier one called the amount a number. */
export interface Derivation extends Schemas {
  readonly takesNumbers: boolean
}

/** The typed cells of a paper, as texts. */
interface Cells {
  readonly amount: string | null
  readonly note: string | null
  readonly extra: Readonly<Record<string, unknown>>
  readonly misfits: ReadonlyArray<string>
}

/** A value of a body as its column takes it; undefined if it does not fit. */
const cellOf = (
  type: AmountType,
  takesNumbers: boolean,
  value: NonNullable<BodyRow["amount"]>,
): string | undefined => {
  if (type === "VARCHAR") return typeof value === "string" || takesNumbers ? String(value) : undefined
  if (type === "INTEGER") return Number.isInteger(value) ? String(value) : undefined
  return toDecimal(String(value))
}

/** Exactly, or not at all. */
const toDecimal = (text: string): string | undefined =>
  /^\d+(\.\d\d?)?$/.test(text) ? Number(text).toFixed(2) : undefined

const present = (members: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== null))

const derive = ({ amount: type, note, takesNumbers }: Derivation, row: BodyRow): Cells => {
  const isEmpty = row.amount === undefined || row.amount === null
  const cell =
    type === undefined || isEmpty ? null : cellOf(type, takesNumbers, row.amount as string | number)
  const isUnfit = type !== undefined && cell === undefined
  return {
    amount: cell ?? null,
    note: note ? (row.note ?? null) : null,
    extra: present({
      ...(type === undefined || isUnfit ? { amount: row.amount } : {}),
      ...(note ? {} : { note: row.note }),
      aside: row.aside,
    }),
    misfits: isUnfit ? ["amount"] : [],
  }
}

/** What rows that were derived under other schemas are under those of today: no version ends for it. */
const bring = (cells: Cells, from: Schemas, to: Derivation): Cells => {
  const extra = { ...cells.extra }
  const misfits = new Set(cells.misfits)
  let { amount, note } = cells
  if (from.note && !to.note) {
    if (note !== null) extra["note"] = note
    note = null
  } else if (!from.note && to.note && extra["note"] !== undefined) {
    note = String(extra["note"])
    delete extra["note"]
  }
  if (from.amount !== to.amount || to.takesNumbers) {
    // A cell does not say whether a DECIMAL was a text.
    if (amount !== null) extra["amount"] = from.amount === "VARCHAR" ? amount : Number(amount)
    const value = extra["amount"] as string | number | undefined
    amount = (value !== undefined && to.amount && cellOf(to.amount, to.takesNumbers, value)) || null
    if (amount !== null) delete extra["amount"]
    misfits.delete("amount")
    if (to.amount !== undefined && extra["amount"] !== undefined) misfits.add("amount")
  }
  return { amount, note, extra, misfits: [...misfits] }
}

interface Shown {
  readonly table: string
  readonly type?: unknown
  readonly name: unknown
  readonly amount?: unknown
  readonly note?: unknown
  readonly lines?: ReadonlyArray<unknown>
}
interface Beside {
  readonly extra?: Readonly<Record<string, unknown>> | null
  readonly misfits?: ReadonlyArray<unknown> | null
  readonly asides?: ReadonlyArray<unknown> | null
}

const text = (value: unknown) => (value === undefined || value === null ? null : String(value))

/** Everything of a record that counts, as one text: from the model, and from a row of the tables. */
export const contentText = ({ table, type, name, amount, note, lines }: Shown): string =>
  JSON.stringify([table, text(type), text(name), text(amount), text(note), lines ?? []])

/** The rest of it, likewise. */
export const besideText = ({ extra, misfits, asides }: Beside): string =>
  JSON.stringify([
    Object.entries(present(extra ?? {})).toSorted(([one], [other]) => (one < other ? -1 : 1)),
    (misfits ?? []).map((misfit) => String(misfit).split(":", 1)[0]),
    (asides ?? []).map(text),
  ])

export const saidOf = (row: BodyRow, derived: Derivation, now: Derivation): Said => {
  const { kind, isEarlier, type, name } = row
  if (kind !== "paper") {
    const table = kind === "odd" && derived.odds ? "odds" : "other_records"
    const content = contentText({ table, name, type: kind })
    return { kind, key: undefined, isEarlier, content, beside: besideText({}) }
  }
  const cells = bring(derive(derived, row), derived, now)
  const [lines, asides] = [row.lines?.map(({ line }) => line), row.lines?.map(({ aside }) => aside)]
  const content = contentText({ table: "papers", type, name, ...(lines && { lines }), ...cells })
  const beside = besideText({ ...cells, ...(asides && { asides }) })
  return { kind, key: String(type), isEarlier, content, beside }
}

// Runs, as they are drawn.

/** What may become of a task with partial results: they stay so, or the service answers otherwise by then. */
const lastWords = [
  "RESULTS_PARTIAL",
  "SESSION_GONE",
  "SERVICE_UNREACHABLE",
  "ANSWER_UNUSABLE",
  "FAILED",
] as const

export interface Task {
  readonly customer: string
  /** Null of a session that was only read. */
  readonly engine: string | null
  readonly features: ReadonlyArray<string>
  readonly told: ReadonlyArray<string>
  readonly succeeded: ReadonlyArray<string>
  /** Its results did not become final: what did not fail may lack records. */
  readonly isShort: boolean
  /** Its job wanted no results: nobody looked for records, whatever it ended with. */
  readonly isUnread: boolean
  /** The word that it was settled with last, long after they were read: it says nothing about them. */
  readonly word: (typeof lastWords)[number]
  readonly rows: ReadonlyArray<BodyRow>
}

export interface Night {
  readonly run_id: string
  readonly job: string
  readonly date: string
  readonly kind: ToldRun["kind"]
  readonly parent: string | undefined
  readonly replaces: ReadonlyArray<string>
  readonly tasks: ReadonlyArray<Task>
  /** In seconds after a fixed time: that of all its records. */
  readonly fetched: number
}

export const taskId = ({ run_id }: Pick<Night, "run_id">, { customer, engine }: Task): string =>
  engine === null ? `${run_id}/session/s-${customer}` : `${run_id}/${customer}/${engine}`
/** Of a session that was only read there is one: the same in all nights. */
export const sessionOf = (run: Pick<Night, "run_id">, task: Task, isEarlier: boolean): string =>
  task.engine === null
    ? `s-${task.customer}`
    : `s-${run.run_id}-${task.customer}-${task.engine.replace(":", "-")}-${isEarlier ? 1 : 2}`

export type Draw = ReturnType<typeof drawing>

const drawRow = ({ pick, chance, some }: Draw, kind: Kind): BodyRow => {
  const isPaper = kind === "paper"
  // Half of them are the same in most nights, but for how they are spelled and what does not count.
  const isUsual = chance(0.5)
  return {
    kind,
    type: isPaper ? (isUsual ? "person" : pick(["person", "company", null])) : null,
    name: isUsual ? "Ana" : pick(["Ana", "Bea"]),
    amount: isPaper
      ? pick(isUsual ? ["1.00", "1.0", 1] : ["1.00", "2.50", 2.5, "2.505", "none", null, undefined])
      : undefined,
    note: isPaper ? (isUsual ? "n" : pick(["n", "m", null, undefined])) : undefined,
    lines:
      isPaper && (isUsual || chance(0.8))
        ? (isUsual ? ["x"] : some(["x", "y"], 0.4)).map((line) => ({ line, aside: drawAside(pick) }))
        : undefined,
    aside: isPaper ? drawAside(pick) : undefined,
    isEarlier: chance(0.08),
  }
}

const drawAside = (pick: Draw["pick"]): number | undefined => pick([1, 2, undefined, undefined])

export const drawTask = (draw: Draw, customer: string, engine: string | null): Task => {
  const { chance, int, some } = draw
  const asked = engine === null || chance(0.1) ? [] : some(features, 0.8)
  const isFailed = engine !== null && chance(0.15)
  const told = isFailed ? asked : asked.length === 0 ? features : asked
  const succeeded = isFailed ? [] : engine === null ? told : some(told, 0.8)
  const isUnread = engine !== null && !isFailed && chance(0.1)
  const delivered = isFailed || isUnread ? [] : kinds.filter(() => chance(0.75))
  const rows = delivered.flatMap((kind) => Array.from({ length: int(0, 2) }, () => drawRow(draw, kind)))
  const drawn = engine === null ? rows.map((row) => ({ ...row, isEarlier: false })) : rows
  const isShort = !isFailed && !isUnread && chance(0.15)
  const word = lastWords[rows.length % lastWords.length] ?? "FAILED"
  return { customer, engine, features: asked, told, succeeded, isShort, isUnread, word, rows: drawn }
}

/** The tasks of a night: of some customers, on some engines. */
export const drawTasks = (draw: Draw, among: ReadonlyArray<string>, share: number): ReadonlyArray<Task> => {
  const { chance, pick, some } = draw
  const subjects = among.flatMap((customer) =>
    some(engines, share).map((engine) => [customer, engine] as const),
  )
  const sessions = among.length > 0 && chance(0.12) ? [[pick(among), null] as const] : []
  return [...subjects, ...sessions].map(([customer, engine]) => drawTask(draw, customer, engine))
}

/** As the model takes it; of a run that goes on, `over` are the tasks that are in the tables. */
export const toldOf = (
  run: Night,
  derived: Derivation,
  now: Derivation,
  over?: ReadonlySet<string>,
): ToldRun => ({
  ...run,
  ...(over === undefined ? {} : { isInterim: true }),
  tasks: run.tasks.map((task): ToldTask => ({
    subject:
      task.engine === null
        ? `session ${sessionOf(run, task, false)}|${task.customer}`
        : `${task.customer}|${task.engine}`,
    isAlone: task.engine === null,
    session: sessionOf(run, task, false),
    features: task.features,
    told: task.told,
    succeeded: task.isShort || task.isUnread ? [] : task.succeeded,
    rows: task.rows.map((row) => saidOf(row, derived, now)),
    isOpen: over !== undefined && !over.has(taskId(run, task)),
  })),
})

// What the ledger and landing are told.

const encoder = new TextEncoder()
export const epoch = Date.parse("2026-01-01T00:00:00Z")
export const subFamilies = { paper: "paper:id", labor_check: "labor_check:x", odd: "odd:x" }

const recordOf = ({ kind, type, name, amount, note, lines, aside }: BodyRow, fetched: number) => ({
  product: kind,
  sub_family: subFamilies[kind],
  fetch_date: new Date(epoch + fetched * 1000).toISOString(),
  name,
  ...(kind === "paper" ? { type, amount, note, lines, aside } : {}),
})

const land = Effect.fnUntraced(function* (
  meta: Omit<BodyMeta, "http_status" | "received_at">,
  body: unknown,
) {
  const landing = yield* Landing
  return yield* landing.land(
    { ...meta, http_status: 200, received_at: epoch },
    encoder.encode(JSON.stringify(body)),
  )
})

export const beginNight = ({ run_id, job, date, kind, parent, replaces }: Night) =>
  append([
    {
      _tag: "RunStarted",
      run_id: anId(run_id),
      job,
      job_path: `jobs/${job}.yaml`,
      run_date: date,
      tool_version: "0.1.0",
      ...(parent === undefined ? {} : { parent }),
      ...(kind === "part" ? { part: run_id } : {}),
      ...(replaces.length === 0 ? {} : { replaces }),
    },
  ])

const keysOf = (run: Night, task: Task) => ({ run_id: anId(run.run_id), task_id: anId(taskId(run, task)) })

export const planTasks = (run: Night, tasks: ReadonlyArray<Task>) =>
  append(
    tasks.map((task): Fact => ({
      _tag: "TaskPlanned",
      ...keysOf(run, task),
      customer_id: anId(task.customer),
      ...(task.engine === null
        ? { session_id: anId(sessionOf(run, task, false)) }
        : { engine_reference: anId(task.engine) }),
      features: task.features,
    })),
  )

const bodyOf = (run: Night, task: Task, isEarlier: boolean) => ({
  data: task.rows.filter((row) => row.isEarlier === isEarlier).map((row) => recordOf(row, run.fetched)),
  retrieved_features: isEarlier ? [] : task.succeeded,
  is_closed: !task.isShort,
})

/** One execution, from its start to its results. */
const execute = Effect.fnUntraced(function* (run: Night, task: Task, attempt: number, isEarlier: boolean) {
  const keys = keysOf(run, task)
  const session_id = anId(sessionOf(run, task, isEarlier))
  const execution = { execution_id: anId(`e${String(session_id).slice(1)}`), session_id }
  const isFailed =
    task.told.length > 0 && task.succeeded.length === 0 && task.rows.length === 0 && !task.isUnread
  const status = isEarlier
    ? "TEMPORARY_ERROR"
    : isFailed
      ? "FAILED"
      : task.succeeded.length < task.told.length
        ? "PARTIAL"
        : "COMPLETED"
  const end = { status_code: status, status_reason: status }
  const meta = { ...keys, ...execution, attempt, customer_id: anId(task.customer) }
  const of = { ...meta, engine_reference: anId(task.engine ?? "") }
  const states = task.told.map((code) => ({
    code,
    status_reason: task.succeeded.includes(code) ? "FEATURE_COMPLETED" : "FEATURE_FAILED",
  }))
  const external_execution_id = `x${String(session_id).slice(1)}`
  const state = yield* land(
    { ...of, kind: "state" },
    {
      ...execution,
      customer_id: task.customer,
      external_execution_id,
      engine_reference: task.engine,
      ...end,
      is_closed: true,
      features: isEarlier ? [] : states,
    },
  )
  yield* append([
    { _tag: "StartIntended", ...keys, attempt, external_execution_id, probe: false },
    { _tag: "StartAnswered", ...keys, attempt, answer: "accepted", http_status: 202, ...execution },
    { _tag: "AttemptClosed", ...keys, attempt, ...execution, ...end, landed: state },
  ])
  if (task.isUnread) {
    const proof = { basis: "unwanted", families: [] } as const
    const { execution_id } = execution
    yield* append([{ _tag: "AttemptDrained", ...keys, attempt, execution_id, proof }])
    return status
  }
  const landed = yield* land({ ...of, kind: "results" }, bodyOf(run, task, isEarlier))
  yield* append([
    {
      _tag: "ResultsRead",
      ...keys,
      ...execution,
      http_status: 200,
      kind: "results",
      is_closed: !task.isShort,
      landed,
    },
  ])
  return status
})

/** Does a task that is planned, and settles it. */
export const doTask = Effect.fnUntraced(function* (run: Night, task: Task) {
  const keys = keysOf(run, task)
  if (task.engine === null) {
    const session_id = anId(sessionOf(run, task, false))
    const of = { ...keys, session_id, customer_id: anId(task.customer) }
    const landed = yield* land({ ...of, kind: "results" }, bodyOf(run, task, false))
    yield* append([
      {
        _tag: "ResultsRead",
        ...keys,
        session_id,
        http_status: 200,
        kind: "results",
        is_closed: !task.isShort,
        landed,
      },
      { _tag: "TaskSettled", ...keys, ...own(task.isShort ? task.word : "COMPLETED") },
    ])
    return
  }
  const isRetried = task.rows.some(({ isEarlier }) => isEarlier)
  if (isRetried) yield* execute(run, task, 1, true)
  const status = yield* execute(run, task, isRetried ? 2 : 1, false)
  const outcome = status === "COMPLETED" ? "succeeded" : status === "PARTIAL" ? "partial" : "failed"
  const who_acts = outcome === "succeeded" ? "nobody" : "engineer"
  const end = task.isShort ? own(task.word) : ({ outcome, reason: anId(status) as never, who_acts } as const)
  yield* append([{ _tag: "TaskSettled", ...keys, ...end }])
})
