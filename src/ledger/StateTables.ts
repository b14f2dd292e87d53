/**
 * The states of runs in the ledger's file: what a fold of their facts came to, so that a command and a
 * resumed run read what has become of each task and only the facts since then. Nothing but a cache: a row
 * that has changed, or that another version wrote, is made again from the facts.
 */
import type { DatabaseSync } from "node:sqlite"
import { isDeepStrictEqual } from "node:util"
import { sha256 } from "../base/Hashes.ts"
import { within } from "./LedgerKeys.ts"
import { briefOf, runsLearntFrom } from "./RunState.ts"
import type { RunBrief, RunState, TaskBrief, TaskState } from "./RunState.ts"
import { RunId } from "../service/Ids.ts"

/** Raised whenever a fact comes to something else in a state: `test/ledger/StateTables.test.ts` notices. */
export const foldVersion = 14

/** Facts that are folded again and again before a state is worth a row for each task. */
export const factsUnkept = 500

/** The newest runs, which are looked at every night: what the file keeps does not grow with its age. */
const runsKept = 2 * runsLearntFrom

/**
 * `place` 0 is the run itself, then its tasks as they were planned. Once it has ended, what a summary reads
 * of them is in -1, -2 and so on, many tasks in each: few rows are read in half the time of a row for each
 * task, and for a task that changes later one of them is written again.
 */
export const stateTable = (schema: "main" | "temp"): string => `
  CREATE TABLE IF NOT EXISTS ${schema}.run_states (
    run_id TEXT NOT NULL, place INTEGER NOT NULL, body TEXT NOT NULL, sha256 BLOB NOT NULL,
    PRIMARY KEY (run_id, place)
  ) STRICT, WITHOUT ROWID;
`

/** Tasks in a row of what a summary reads: about 40 kB. */
const briefsInRow = 50
const rowsOfBriefs = (tasks: number): number => Math.ceil(tasks / briefsInRow)
const inRows = (tasks: RunState["tasks"]): ReadonlyArray<ReadonlyArray<TaskState>> => {
  const all = [...tasks.values()]
  return Array.from({ length: rowsOfBriefs(all.length) }, (_, row) =>
    all.slice(row * briefsInRow, (row + 1) * briefsInRow),
  )
}

/** The first row of a run. */
interface Head {
  readonly fold: number
  readonly tasks: number
  readonly run: Omit<RunState, "tasks">
}

const headOf = ({ tasks, ...run }: RunState): Head => ({ fold: foldVersion, tasks: tasks.size, run })

const hashOf = (run_id: RunId, place: number, body: string): Buffer => sha256(`${run_id} ${place} ${body}`)

const byId = <Task extends TaskBrief>(tasks: ReadonlyArray<Task>): ReadonlyMap<string, Task> =>
  new Map(tasks.map((task) => [task.planned.task_id, task]))

/** In order; empty if one of them is not as it was written. */
const bodiesIn = (database: DatabaseSync) => {
  const rows = database.prepare(
    "SELECT place, body, sha256 FROM run_states WHERE run_id = ? AND place BETWEEN ? AND ? ORDER BY place",
  )
  return (run_id: RunId, first: number, last = Number.MAX_SAFE_INTEGER): ReadonlyArray<string> => {
    const bodies: Array<string> = []
    for (const row of rows.iterate(run_id, first, last)) {
      const [place, body, hash] = [first + bodies.length, String(row["body"]), row["sha256"]]
      if (row["place"] !== place || !(hash instanceof Uint8Array)) return []
      if (!hashOf(run_id, place, body).equals(hash)) return []
      bodies.push(body)
    }
    return bodies
  }
}

export const statesIn = (database: DatabaseSync) => {
  const bodiesOf = bodiesIn(database)
  const remove = database.prepare("DELETE FROM run_states WHERE run_id = ?")
  const put = database.prepare("INSERT OR REPLACE INTO run_states VALUES (?, ?, ?, ?)")
  const removeOlder = database.prepare(
    `DELETE FROM run_states WHERE run_id IN (SELECT run_id FROM run_states WHERE place = 0
      ORDER BY json_extract(body, '$.run.sequence') DESC LIMIT -1 OFFSET ${runsKept})`,
  )
  const newestOf = database.prepare(
    "SELECT json_extract(body, '$.run.newest') AS newest FROM run_states WHERE run_id = ? AND place = 0",
  )
  /** Of a run with so many tasks; undefined if one of them is not as it was written. */
  const briefsIn: BriefsIn = (run_id, tasks) => {
    const bodies = bodiesOf(run_id, -rowsOfBriefs(tasks), -1)
    return bodies.length === rowsOfBriefs(tasks) ? bodies.toReversed() : undefined
  }
  const write = (run_id: RunId, place: number, value: object): void => {
    const body = JSON.stringify(value)
    put.run(run_id, place, body, hashOf(run_id, place, body))
  }
  return {
    /** Undefined if there is none, or none that can be used. */
    read: (run_id: RunId): RunState | undefined => {
      const [first, ...bodies] = bodiesOf(run_id, 0)
      if (first === undefined) return undefined
      const { fold, tasks, run }: Head = JSON.parse(first)
      if (fold !== foldVersion || tasks !== bodies.length) return undefined
      // Made again with the rest if it has changed.
      if (run.ended !== undefined && briefsIn(run_id, tasks) === undefined) return undefined
      return { ...run, tasks: byId<TaskState>(bodies.map((body) => JSON.parse(body))) }
    },
    /** The same, of a run that has ended. Others may write between its reads: then facts have come since. */
    readBrief: (run_id: RunId): RunBrief | undefined => {
      const [first] = bodiesOf(run_id, 0, 0)
      if (first === undefined) return undefined
      const { fold, tasks, run }: Head = JSON.parse(first)
      // A run that was resumed has some from its end before.
      if (fold !== foldVersion || run.ended === undefined) return undefined
      const bodies = briefsIn(run_id, tasks)
      return bodies && { ...run, tasks: byId(bodies.flatMap((body): Array<TaskBrief> => JSON.parse(body))) }
    },
    /** `before` is the state that was last read or written: what it shares with the new one is there. */
    write: (after: RunState, before: RunState | undefined): void => {
      const { run_id } = after.started
      within(database, () => {
        const isThere = before !== undefined && newestOf.get(run_id)?.["newest"] === before.newest
        if (!isThere) remove.run(run_id)
        write(run_id, 0, headOf(after))
        const isNew = (task: TaskState) => !isThere || before.tasks.get(task.planned.task_id) !== task
        for (const [index, task] of [...after.tasks.values()].entries())
          if (isNew(task)) write(run_id, index + 1, task)
        // Before the end they would change with each fact, and nobody reads them.
        if (after.ended !== undefined)
          for (const [row, some] of inRows(after.tasks).entries())
            if (before?.ended === undefined || some.some(isNew)) write(run_id, -row - 1, some.map(briefOf))
        if (!isThere) removeOlder.run()
      })
    },
    /** In a transaction. */
    remove: (run_id: RunId): void => void remove.run(run_id),
    /** In a transaction: they are made again from the facts that are left. */
    removeAll: (): void => database.exec("DELETE FROM run_states"),
    problems: problemsOf(database, bodiesOf, briefsIn),
  }
}

type BriefsIn = (run_id: RunId, tasks: number) => ReadonlyArray<string> | undefined

/** Runs whose state is not what `fold` makes of their facts up to that place. */
const problemsOf =
  (database: DatabaseSync, bodiesOf: ReturnType<typeof bodiesIn>, briefsIn: BriefsIn) =>
  (fold: (run_id: RunId, newest: number) => RunState | undefined): ReadonlyArray<string> =>
    database
      .prepare("SELECT DISTINCT run_id FROM run_states")
      .all()
      .flatMap((row) => {
        const run_id = RunId.make(String(row["run_id"]))
        const [first, ...bodies] = bodiesOf(run_id, 0)
        const head: Head | undefined = first === undefined ? undefined : JSON.parse(first)
        if (head !== undefined && head.fold !== foldVersion) return []
        const state = head === undefined ? undefined : fold(run_id, head.run.newest)
        const ended = state?.ended && state.tasks
        const briefs = ended && briefsIn(run_id, ended.size)
        const told = [head, ...[...bodies, ...(briefs ?? [])].map((body) => JSON.parse(body))]
        const rows = ended === undefined ? [] : inRows(ended).map((some) => some.map(briefOf))
        const folded = [state && headOf(state), ...(state?.tasks.values() ?? []), ...rows]
        const isSame = isDeepStrictEqual(told, JSON.parse(JSON.stringify(folded)))
        return isSame ? [] : [`the state of the run ${run_id} has changed since it was written`]
      })
