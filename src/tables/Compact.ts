/**
 * Combines the nightly Parquet files of each table by month, once it is over: a version with the same rows,
 * each run's compared, in place of the one before. The database stays as it is but for its number.
 */
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { sumOf } from "../base/Text.ts"
import { inMemory } from "./BuildDatabase.ts"
import { fileStep, gapsOf, publishedIn } from "./Manifest.ts"
import type { Manifest, Store } from "./Manifest.ts"
import { monthFiles, writeShared, Instead, type Choice, type MonthFile } from "./SharedFile.ts"
import { databaseFailed, PublishFailed } from "./Publisher.ts"
import { change, type Standing } from "./Version.ts"

interface Size {
  readonly files: number
  readonly bytes: number
}

/** What became, or would become, of one table in one month. */
export interface CompactedTable {
  readonly table: string
  readonly month: string
  readonly runs: number
  readonly rows: number
  readonly before: Size
  /** Undefined if nothing was written. */
  readonly after: Size | undefined
}

export interface CompactOptions extends Choice {
  readonly isDry: boolean
  /** The most months that are done at once, oldest first. */
  readonly monthsMax: number
}

/** What becomes of each of these files; where `work` fails, those of the month are `left` as they are. */
const telling = Effect.fnUntraced(function* <R>(
  files: ReadonlyArray<MonthFile>,
  work: (file: MonthFile) => Effect.Effect<Size | undefined, PublishFailed, R>,
) {
  const tables: Array<CompactedTable> = []
  const left: Array<Pick<CompactedTable, "table" | "month"> & { readonly reason: string }> = []
  for (const file of files) {
    const { table, month, parts, sources } = file
    const done = yield* Effect.result(work(file))
    if (done._tag === "Failure") left.push({ table, month, reason: done.failure.message })
    else {
      const before = { files: sources.length, bytes: sumOf(sources.map(({ bytes }) => bytes)) }
      const rows = sumOf(parts.map((part) => part.rows))
      tables.push({ table, month, runs: parts.length, rows, before, after: done.success })
    }
  }
  return { tables, left }
})

const chosen = (store: Store, manifest: Manifest, { monthsMax, ...choice }: CompactOptions) => {
  const all = monthFiles(manifest, store.families, choice)
  const months = [...new Set(all.map(({ month }) => month))].toSorted().slice(0, monthsMax)
  return all.filter(({ month }) => months.includes(month))
}

export const compact = Effect.fn("Publishing.compact")(function* (store: Store, options: CompactOptions) {
  const standing = yield* publishedIn(store)
  const isRolledBack = standing.returned !== undefined
  const planned = isRolledBack ? [] : chosen(store, standing, options)
  // What a crash left is finished even if nothing is due any more.
  const wasCut = yield* fileStep(() => existsSync(store.layout.next))
  if (options.isDry || (planned.length === 0 && !wasCut)) {
    const told = yield* telling(planned, (file) => Effect.as(checkIntact(store, file), undefined))
    return { version: undefined, ...told, isRolledBack }
  }
  const put = Effect.fnUntraced(function* (now: Standing) {
    const due = now.current.returned === undefined ? chosen(store, now.current, options) : []
    return { ...(yield* writeMonths(store, now, due)), leaves: true }
  })
  const done = yield* change(store, put)
  return { version: done.version, ...done.told }
})
export type Compacted = Effect.Success<ReturnType<typeof compact>>

const writeMonths = Effect.fnUntraced(function* (
  store: Store,
  { current, version }: Standing,
  due: ReadonlyArray<MonthFile>,
) {
  const instead = new Instead()
  const connection = yield* Effect.mapError(inMemory, databaseFailed)
  const to = { version, taken: new Set<string>(), folder: store.layout.root }
  const write = Effect.fnUntraced(function* (file: MonthFile) {
    yield* checkIntact(store, file)
    const { bytes } = yield* writeShared(store, connection, file, to, instead)
    return { files: 1, bytes }
  })
  const told = { ...(yield* telling(due, write)), isRolledBack: current.returned !== undefined }
  const done = { told, isInstead: true }
  return told.tables.length === 0 ? done : { ...done, next: instead.in(current) }
}, Effect.scoped)

/** Fails if a file that is to become part of another one is missing or damaged. */
const checkIntact = Effect.fnUntraced(function* (store: Store, { sources }: MonthFile) {
  const [gap] = yield* gapsOf(store, sources)
  if (gap !== undefined) return yield* new PublishFailed({ message: `${gap.path} is ${gap.state}` })
})
