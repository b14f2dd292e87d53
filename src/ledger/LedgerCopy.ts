/**
 * A ledger of an older format is copied before this version writes in it for the first time: the way back.
 * The copy is whole, synced and beside it, or the ledger stays as it was. What is cut off starts over.
 */
import { existsSync, readdirSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { dirname, join } from "node:path"
import { Clock, Effect } from "effect"
import { copyDatabase } from "../base/CopyDatabase.ts"
import { durableFiles } from "../base/DurableFile.ts"
import type { DurableFiles } from "../base/DurableFile.ts"
import { ledgerFailed, LedgerFailed } from "./LedgerFailed.ts"
import { olderFormat } from "./LedgerVersion.ts"

/** `ledger.format-1.2026-11-23.sqlite`: the format that it has, and the day in UTC. */
const copyPattern = /^ledger\.format-(\d+)\.\d{4}-\d\d-\d\d\.sqlite(?:\.tmp)?$/
const fileMode = 0o600

/** The copies in an output folder, whole or cut off. */
const copiesIn = (folder: string): ReadonlyArray<string> =>
  existsSync(folder) ? readdirSync(folder).filter((name) => copyPattern.test(name)) : []

const formatIn = (name: string): number => Number(copyPattern.exec(name)?.[1])

export interface LedgerCopy {
  /** The format of the copy. */
  readonly format: number
  readonly path: string
}

/** Undefined if the ledger has this version's format, or nothing is in it yet. */
export const copyIfOlder = Effect.fnUntraced(function* (path: string) {
  if (path === ":memory:" || !existsSync(path)) return undefined
  const files = yield* durableFiles
  const format = yield* Effect.try({ try: () => formatAt(path), catch: ledgerFailed })
  if (format === undefined) return undefined
  const folder = dirname(path)
  const day = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, "2026-11-23".length)
  const name = `ledger.format-${format}.${day}.sqlite`
  const [copy, building] = [join(folder, name), join(folder, `${name}.tmp`)]
  const made = Effect.gen(function* () {
    yield* Effect.try(() => {
      files.remove(building)
      copyDatabase(path, building, fileMode)
    })
    yield* files.settle(building, fileMode)
    yield* Effect.try(() => {
      files.rename(building, copy)
      files.syncFolder(folder)
      const others = copiesIn(folder).filter((one) => one !== name && formatIn(one) === format)
      for (const one of others) files.remove(join(folder, one))
    })
  })
  yield* made.pipe(
    Effect.onError(() => Effect.ignore(Effect.try(() => files.remove(building)))),
    Effect.mapError((cause) => {
      const why = "cause" in cause && cause.cause instanceof Error ? cause.cause.message : cause.message
      const what = `it has the older format ${format}, and no copy of it could be made before it is changed`
      return new LedgerFailed({ message: `${what}: ${why}; it is as it was` })
    }),
  )
  return { format, path: copy } satisfies LedgerCopy as LedgerCopy
})

const formatAt = (path: string): number | undefined => {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 10_000 })
  try {
    return olderFormat(database)
  } finally {
    database.close()
  }
}

/** They hold what the ledger said, also about a customer who is removed. */
export const removeCopies = (files: DurableFiles, folder: string): void => {
  const names = copiesIn(folder)
  for (const name of names) files.remove(join(folder, name))
  if (names.length > 0) files.syncFolder(folder)
}
