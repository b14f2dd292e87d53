/**
 * The ledger's side of the archive: which facts of a run leave, and what stays of them. Whatever is asked
 * across all runs stays: beginnings and ends, rejected logins, what was removed. Of what leaves, the ids
 * stay with their tasks, and the hash that the next fact continues from.
 */
import { closeSync, existsSync, openSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { Effect } from "effect"
import { codeOf, ownModes, quietly, readFully } from "../base/DurableFile.ts"
import type { AppendedFile, DurableFiles } from "../base/DurableFile.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { pack, unpack } from "../base/Zstd.ts"
import type { Archive, ArchivedFrame, FactsArchived } from "./Fact.ts"
import { Damage, attempt, ledgerFailed, type StoredFact } from "./LedgerKeys.ts"
import { acrossRuns, idFields, kinds } from "./LedgerSchema.ts"
import type { RunId } from "../service/Ids.ts"

/** Facts that are compressed together, and held in memory at once. */
export const factsAtOnce = 10_000

/** The facts of a run that leave the ledger's file. */
export const leaving = `run_id = ?1 AND NOT ${acrossRuns}`

export interface ArchivedId {
  readonly kind: number
  readonly id: string
  /** Without the run's id, if it begins with it; then it begins with a slash. */
  readonly task: string
}

/** The ids by which an archived fact is found. */
export const idsIn = (run_id: string, { body }: StoredFact): ReadonlyArray<ArchivedId> => {
  const fields = idFields.filter(({ tag }) => body.includes(`"_tag":"${tag}"`))
  if (fields.length === 0) return []
  const fact: Readonly<Record<string, unknown>> = JSON.parse(body)
  const task_id = typeof fact["task_id"] === "string" ? fact["task_id"] : ""
  const task = task_id.startsWith(`${run_id}/`) ? task_id.slice(run_id.length) : task_id
  return fields.flatMap(({ kind, tag, field }) => {
    const id = fact["_tag"] === tag ? fact[field] : undefined
    return typeof id === "string" ? [{ kind, id, task }] : []
  })
}

/** After the fact at `archive`. Throws if others leave than those that were written to the archive. */
export const removeArchived = (
  database: DatabaseSync,
  run_id: RunId,
  {
    archive,
    facts,
    ids,
  }: { readonly archive: number; readonly facts: number; readonly ids: ReadonlyArray<ArchivedId> },
): void => {
  database
    .prepare(
      `INSERT OR REPLACE INTO archived_links SELECT seq, chain FROM facts WHERE ${leaving} AND seq + 1 NOT IN
        (SELECT seq FROM facts WHERE ${leaving})`,
    )
    .run(run_id)
  const { changes } = database.prepare(`DELETE FROM facts WHERE ${leaving}`).run(run_id)
  if (Number(changes) !== facts) throw new Error("the run went on while its facts were archived")
  database.exec("DELETE FROM archived_links WHERE seq + 1 NOT IN (SELECT seq FROM facts)")
  const insert = database.prepare("INSERT OR IGNORE INTO archived_ids VALUES (?, ?, ?, ?)")
  for (const { kind, id, task } of ids) insert.run(kind, id, archive, task)
}

/** The ids of a customer's tasks go; those of the others stay. */
export const forgetArchivedIds = (database: DatabaseSync, customer_id: string): void => {
  database
    .prepare(
      `DELETE FROM archived_ids WHERE (archive, task) IN
        (SELECT archive, task FROM archived_ids WHERE kind = ${kinds.customer} AND id = ?)`,
    )
    .run(customer_id)
}

/** Free pages that stay in the file: the next nights fill them. */
const keptPages = (pages: number): number => Math.max(4_096, Math.floor(pages / 8))
/** About 8 MB at once. */
const pagesAtOnce = 2_000

const number = (database: DatabaseSync, pragma: string): number =>
  Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0)

/**
 * One step of giving free pages back to the disk; true while there are more. A file that an older version
 * made is written again once, when most of it is free; from then on it goes by steps.
 */
export const giveBackStep = (database: DatabaseSync): boolean => {
  const [free, pages] = [number(database, "freelist_count"), number(database, "page_count")]
  const surplus = free - keptPages(pages)
  if (surplus <= 0) return false
  if (number(database, "auto_vacuum") !== 2) {
    if (free > pages / 2) database.exec("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
    return false
  }
  database.exec(`PRAGMA incremental_vacuum(${Math.min(surplus, pagesAtOnce)})`)
  return surplus > pagesAtOnce
}

// `ledger-archive/2026-01.ndjson.zst`: one file per month. A frame counts once the ledger names it; what is
// behind the last one is overwritten. Nothing in a file changes: it is written again under another name.

export const archiveName = "ledger-archive"

const lineOf = ({ seq, at, body }: StoredFact): string => `{"seq":${seq},"at":${at},"fact":${body}}\n`
const linePattern = /^\{"seq":(\d+),"at":(-?\d+),"fact":(.*)\}$/

const contentOf = (facts: ReadonlyArray<StoredFact>): Buffer => Buffer.from(facts.map(lineOf).join(""))

/** Throws if a line is not what `contentOf` writes. */
export const factsIn = (content: Buffer): ReadonlyArray<StoredFact> =>
  content
    .toString("utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const [, seq, at, body] = linePattern.exec(line) ?? []
      if (body === undefined) throw new Damage("a line of archived facts cannot be read")
      return { seq: Number(seq), at: Number(at), body }
    })

const namePattern = /^(\d{4}-\d{2}|undated)(?:-(\d+))?\.ndjson\.zst$/
const monthIn = (name: string): string => namePattern.exec(name)?.[1] ?? ""
const rewritingIn = (name: string): number => Number(namePattern.exec(name)?.[2] ?? 1)

/** Where the ledger's part of a file ends. */
const endOf = (archives: ReadonlyArray<Archive>, file: string): number =>
  archives.reduce(
    (end, { fact }) =>
      fact.file === file ? fact.frames.reduce((far, one) => Math.max(far, one.offset + one.bytes), end) : end,
    0,
  )

/** The file for a run of this date, and where it ends. */
export const placeFor = (archives: ReadonlyArray<Archive>, run_date: string) => {
  const month = /^\d{4}-\d{2}(?=-)/.exec(run_date)?.[0] ?? "undated"
  const known = archives.find(({ fact }) => monthIn(fact.file) === month)?.fact.file
  const file = known ?? `${month}.ndjson.zst`
  return { file, end: endOf(archives, file) }
}

/** The content of a frame; throws `Damage` unless it is what the ledger says. */
export const readFrame = (folder: string, file: string, frame: ArchivedFrame): Buffer => {
  const where = `${archiveName}/${file}`
  const packed = Buffer.alloc(frame.bytes)
  try {
    if (!namePattern.test(file)) throw new Error("not a file of the archive")
    const descriptor = openSync(join(folder, file), "r")
    try {
      readFully(descriptor, packed, frame.offset)
    } finally {
      closeSync(descriptor)
    }
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause
    throw new Damage(`${where} is missing`)
  }
  if (sha256Hex(packed) !== frame.sha256) throw new Damage(`${where} has changed since it was written`)
  return unpack(packed)
}

/** The archived facts of a run after this place, in order. */
export const archivedFacts = (
  folder: string,
  { file, frames }: FactsArchived,
  after: number,
): ReadonlyArray<StoredFact> =>
  frames
    .filter(({ to }) => to > after)
    .flatMap((frame) => factsIn(readFrame(folder, file, frame)))
    .filter(({ seq }) => seq > after)

/** Adds frames from `end` on, whatever a crash left there; on return they are synced and read back. */
export const writeFrames = Effect.fnUntraced(function* (
  files: DurableFiles,
  folder: string,
  place: { readonly file: string; readonly end: number },
  given: Iterable<ReadonlyArray<StoredFact>>,
) {
  const isNew = !existsSync(join(folder, place.file))
  const pages = given[Symbol.iterator]()
  const frames: Array<ArchivedFrame> = []
  yield* Effect.acquireUseRelease(
    attempt(() => openAt(files, folder, place)),
    Effect.fnUntraced(function* (file) {
      const next = attempt(() => {
        const page = pages.next()
        return page.done === true ? undefined : appendFrame(file, page.value)
      })
      for (let frame = yield* next; frame !== undefined; frame = yield* next) {
        frames.push(frame)
        yield* Effect.yieldNow
      }
      yield* Effect.mapError(file.sync, ledgerFailed)
    }),
    (file) => Effect.sync(() => quietly(() => file.close())),
  )
  if (isNew) yield* attempt(() => files.syncFolder(folder))
  for (const frame of frames) {
    yield* attempt(() => readFrame(folder, place.file, frame))
    yield* Effect.yieldNow
  }
  return frames as ReadonlyArray<ArchivedFrame>
})

const openAt = (
  files: DurableFiles,
  folder: string,
  { file, end }: { readonly file: string; readonly end: number },
): AppendedFile => {
  files.makeFolder(folder, ownModes.folder)
  const opened = files.append(join(folder, file), "a", ownModes.file)
  if (opened.size < end) {
    opened.close()
    throw new Damage(`${archiveName}/${file} is shorter than it was`)
  }
  opened.cut(end)
  return opened
}

/** How many bytes of the archive facts take. */
export const packedBytes = (facts: ReadonlyArray<StoredFact>): number => pack(contentOf(facts)).length

const appendFrame = (file: AppendedFile, facts: ReadonlyArray<StoredFact>): ArchivedFrame => {
  const content = contentOf(facts)
  const packed = pack(content)
  if (!unpack(packed).equals(content)) throw new Error("facts read back differently once they are compressed")
  const offset = file.size
  file.append(packed)
  const [from, to] = [facts[0]?.seq ?? 0, facts.at(-1)?.seq ?? 0]
  return { offset, bytes: packed.length, sha256: sha256Hex(packed), facts: facts.length, from, to }
}

/** Under new names; the old files stay. Returns the archives that moved, and how many facts changed. */
export const rewriteArchives = Effect.fnUntraced(function* (
  files: DurableFiles,
  folder: string,
  archives: ReadonlyArray<Archive>,
  change: (fact: StoredFact) => StoredFact,
) {
  const moved: Array<Archive> = []
  let changed = 0
  for (const [file, own] of Map.groupBy(archives, ({ fact }) => fact.file)) {
    const all = own.flatMap((archive) => archive.fact.frames.map((frame) => ({ archive, frame })))
    const before = changed
    for (const { frame } of all) {
      const facts = yield* attempt(() => factsIn(readFrame(folder, file, frame)))
      changed += yield* attempt(() => facts.filter((fact) => change(fact) !== fact).length)
      yield* Effect.yieldNow
    }
    if (changed === before) continue
    const next = `${monthIn(file)}-${rewritingIn(file) + 1}.ndjson.zst`
    const again = function* () {
      for (const { frame } of all) yield factsIn(readFrame(folder, file, frame)).map(change)
    }
    const frames = yield* writeFrames(files, folder, { file: next, end: 0 }, again())
    for (const archive of own) {
      const theirs = frames.filter((_, index) => all[index]?.archive === archive)
      moved.push({ ...archive, fact: { ...archive.fact, file: next, frames: theirs } })
    }
  }
  return { moved: moved as ReadonlyArray<Archive>, changed }
})

/** Removes what the ledger does not name: what a crash left, and months that were written again. */
export const tidyArchives = (files: DurableFiles, folder: string, archives: ReadonlyArray<Archive>): void => {
  if (!existsSync(folder)) return
  const named = new Set(archives.map(({ fact }) => fact.file))
  let isLess = false
  for (const name of readdirSync(folder).filter((one) => namePattern.test(one))) {
    const path = join(folder, name)
    if (!named.has(name)) {
      files.remove(path)
      isLess = true
    } else if (statSync(path).size > endOf(archives, name)) {
      const grown = files.append(path, "a", ownModes.file)
      grown.cut(endOf(archives, name))
      grown.close()
    }
  }
  if (isLess) files.syncFolder(folder)
}
