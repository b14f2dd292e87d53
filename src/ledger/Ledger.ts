/**
 * What was decided and what happened, append-only, in SQLite: the source of resume. A fact that `append` has
 * acknowledged survives a crash; facts are never changed. Beside the facts live two small things that outlast
 * a run: cached engine forms and the key of the credential fingerprints.
 */
import { Clock, Context, Deferred, Effect, Layer, Schema } from "effect"
import { randomBytes } from "node:crypto"
import { chmodSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { KnownSecrets } from "../secrets/KnownSecrets.ts"
import { cleanFact } from "./CleanFact.ts"
import { Fact } from "./Fact.ts"
import type { CredentialRejected, Recorded, RunStarted } from "./Fact.ts"
import type { RunState } from "./RunState.ts"

/** The ledger could not be read or written; nothing may be started or deleted without it. */
export class LedgerFailed extends Schema.TaggedError<LedgerFailed>()("LedgerFailed", {
  message: Schema.String,
}) {}

export interface CachedForm {
  readonly engine_reference: string
  /** Milliseconds since the epoch. */
  readonly fetched_at: number
  /** The detail view as JSON text. */
  readonly body: string
}

export type RecordedAs<F extends Fact> = Omit<Recorded, "fact"> & { readonly fact: F }

/**
 * A run from outside; `ended` is undefined while it runs, and when it was cut off before its end was
 * published.
 */
export interface RunHeader extends RecordedAs<typeof RunStarted.Type> {
  readonly ended: RunState["ended"]
}

export class Ledger extends Context.Service<
  Ledger,
  {
    /**
     * Writes facts in one transaction; durable on return. Appends that meet share a transaction and its sync:
     * either all of them are written or none.
     */
    readonly append: (facts: ReadonlyArray<Fact>) => Effect.Effect<void, LedgerFailed>
    /** All facts of a run, in order. */
    readonly facts: (run_id: string) => Effect.Effect<ReadonlyArray<Recorded>, LedgerFailed>
    /** Facts that belong to no run: what was done by hand, in order. */
    readonly byHand: Effect.Effect<ReadonlyArray<Recorded>, LedgerFailed>
    /** The beginning and the end of every run, oldest first. */
    readonly runs: Effect.Effect<ReadonlyArray<RunHeader>, LedgerFailed>
    /** Rejected credentials that were not released since, by fingerprint. */
    readonly rejections: Effect.Effect<
      ReadonlyMap<string, RecordedAs<typeof CredentialRejected.Type>>,
      LedgerFailed
    >
    readonly cachedForm: (engine_reference: string) => Effect.Effect<CachedForm | undefined, LedgerFailed>
    readonly cacheForm: (form: CachedForm) => Effect.Effect<void, LedgerFailed>
    /** 32 random bytes, made once per output folder: fingerprints mean nothing elsewhere. */
    readonly fingerprintKey: Effect.Effect<Uint8Array, LedgerFailed>
  }
>()("nightjar/ledger/Ledger") {
  /** Opens (and makes, unless `readOnly`) the ledger file; ":memory:" is taken as SQLite takes it. */
  static readonly layer = (options: { readonly path: string; readonly readOnly?: boolean }) =>
    Layer.effect(
      Ledger,
      Effect.map(
        Effect.acquireRelease(
          attempt(() => openLedger(options)),
          (database) => Effect.sync(() => database.close()),
        ),
        (database) => Effect.map(KnownSecrets, (known) => makeLedger(database, known)),
      ).pipe(Effect.flatten),
    )

  /** A ledger over a database that outlives the layer, for simulated crashes. */
  static readonly layerOver = (database: DatabaseSync) =>
    Layer.effect(
      Ledger,
      Effect.map(KnownSecrets, (known) => makeLedger(database, known)),
    )
}

const attempt = <A>(read: () => A) =>
  Effect.try({
    try: read,
    catch: (cause) => new LedgerFailed({ message: cause instanceof Error ? cause.message : String(cause) }),
  })

/**
 * The few facts that are asked for over all runs. SQLite uses a partial index only where the query repeats
 * its condition.
 */
const indexed =
  "tag IN ('RunStarted', 'RunResumed', 'RunEnded', 'OutcomePublished', " +
  "'CredentialRejected', 'CredentialReleased')"

const tables = `
  CREATE TABLE IF NOT EXISTS facts (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    tag TEXT NOT NULL,
    run_id TEXT,
    task_id TEXT,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS facts_by_run ON facts (run_id, seq);
  CREATE INDEX IF NOT EXISTS facts_by_tag ON facts (tag, seq) WHERE ${indexed};
  CREATE TABLE IF NOT EXISTS engine_forms (
    engine_reference TEXT PRIMARY KEY, fetched_at INTEGER NOT NULL, body TEXT NOT NULL
  ) STRICT;
  CREATE TABLE IF NOT EXISTS keys (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
`

/** `path` may be ":memory:"; a read-only ledger must exist already. */
export const openLedger = (options: { readonly path: string; readonly readOnly?: boolean }): DatabaseSync => {
  const database = new DatabaseSync(options.path, { readOnly: options.readOnly ?? false, timeout: 10_000 })
  if (options.readOnly === true) return database
  try {
    if (options.path !== ":memory:") chmodSync(options.path, 0o600)
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
    database.exec(tables)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

const decodeFact = Schema.decodeUnknownSync(Fact)
const encodeFact = Schema.encodeSync(Fact)

const makeLedger = (database: DatabaseSync, known: KnownSecrets): Ledger["Service"] => {
  const insert = database.prepare("INSERT INTO facts (at, tag, run_id, task_id, body) VALUES (?, ?, ?, ?, ?)")
  const ofRun = database.prepare("SELECT seq, at, body FROM facts WHERE run_id = ? ORDER BY seq")
  const ofNoRun = database.prepare("SELECT seq, at, body FROM facts WHERE run_id IS NULL ORDER BY seq")
  const ofTags = database.prepare(
    `SELECT seq, at, body FROM facts WHERE ${indexed} AND tag IN (?, ?) ORDER BY seq`,
  )
  const ofHeaders = database.prepare(
    `SELECT seq, at, body FROM facts
      WHERE ${indexed} AND tag IN ('RunStarted', 'RunResumed', 'RunEnded', 'OutcomePublished') ORDER BY seq`,
  )
  const form = database.prepare(
    "SELECT engine_reference, fetched_at, body FROM engine_forms WHERE engine_reference = ?",
  )

  const read = (rows: ReadonlyArray<Record<string, unknown>>): ReadonlyArray<Recorded> =>
    rows.map((row) => ({
      seq: Number(row["seq"]),
      at: Number(row["at"]),
      fact: decodeFact(JSON.parse(String(row["body"]))),
    }))

  const write = (rows: ReadonlyArray<Row>) => {
    database.exec("BEGIN IMMEDIATE")
    try {
      for (const row of rows) insert.run(...row)
      database.exec("COMMIT")
    } catch (cause) {
      if (database.isTransaction) database.exec("ROLLBACK")
      throw cause
    }
  }

  return Ledger.of({
    append: groupCommit(write, known),
    facts: (run_id) => attempt(() => read(ofRun.all(run_id))),
    byHand: attempt(() => read(ofNoRun.all())),
    runs: attempt(() => foldHeaders(read(ofHeaders.all()))),
    rejections: attempt(() => foldRejections(read(ofTags.all("CredentialRejected", "CredentialReleased")))),
    cachedForm: (engine_reference) =>
      attempt(() => {
        const row = form.get(engine_reference)
        return row === undefined
          ? undefined
          : { engine_reference, fetched_at: Number(row["fetched_at"]), body: String(row["body"]) }
      }),
    cacheForm: ({ engine_reference, fetched_at, body }) =>
      attempt(() => {
        database
          .prepare(
            "INSERT OR REPLACE INTO engine_forms (engine_reference, fetched_at, body) VALUES (?, ?, ?)",
          )
          .run(engine_reference, Math.trunc(fetched_at), body)
      }),
    fingerprintKey: attempt(() => {
      const stored = database.prepare("SELECT value FROM keys WHERE name = 'fingerprint'")
      const known = stored.get()?.["value"]
      if (known instanceof Uint8Array) return known
      database
        .prepare("INSERT OR IGNORE INTO keys (name, value) VALUES ('fingerprint', ?)")
        .run(randomBytes(32))
      const made = stored.get()?.["value"]
      if (made instanceof Uint8Array) return made
      throw new Error("the ledger does not keep the key of the fingerprints")
    }),
  })
}

/** at, tag, run_id, task_id, body */
type Row = readonly [number, string, string | null, string | null, string]

const rowOf = (fact: Fact, at: number): Row => [
  at,
  fact._tag,
  "run_id" in fact ? fact.run_id : null,
  "task_id" in fact ? fact.task_id : null,
  JSON.stringify(encodeFact(fact)),
]

/**
 * A sync costs a hundred times the rows, and stops this process meanwhile. So the first append lets every
 * other fiber that is ready go first, and writes their facts with its own. It cannot be interrupted: others
 * wait for it.
 */
const groupCommit = (
  write: (rows: ReadonlyArray<Row>) => void,
  known: KnownSecrets,
): Ledger["Service"]["append"] => {
  let open: { readonly rows: Array<Row>; readonly written: Deferred.Deferred<void, LedgerFailed> } | undefined
  const commit = Effect.fnUntraced(function* (group: NonNullable<typeof open>) {
    yield* Effect.yieldNow
    open = undefined
    yield* Deferred.done(group.written, yield* Effect.exit(attempt(() => write(group.rows))))
  })
  return Effect.fnUntraced(function* (facts) {
    if (facts.length === 0) return
    const at = Math.trunc(yield* Clock.currentTimeMillis)
    const rows = yield* attempt(() => facts.map((fact) => rowOf(cleanFact(fact, known), at)))
    const joined = open
    const group = joined ?? { rows: [], written: Deferred.makeUnsafe<void, LedgerFailed>() }
    open = group
    group.rows.push(...rows)
    if (joined === undefined) yield* commit(group)
    yield* Deferred.await(group.written)
  }, Effect.uninterruptible)
}

const foldHeaders = (rows: ReadonlyArray<Recorded>): ReadonlyArray<RunHeader> => {
  const headers = new Map<string, RunHeader>()
  const ends = new Map<string, RunHeader["ended"]>()
  for (const { seq, at, fact } of rows) {
    if (fact._tag === "RunStarted") headers.set(fact.run_id, { seq, at, fact, ended: undefined })
    else if (fact._tag === "RunEnded") {
      const { exit_code, leftovers, kept = 0 } = fact
      ends.set(fact.run_id, { at, exit_code, leftovers, kept })
    } else if (fact._tag === "RunResumed" || fact._tag === "OutcomePublished") {
      const header = headers.get(fact.run_id)
      if (header === undefined) continue
      const ended = fact._tag === "RunResumed" ? undefined : ends.get(fact.run_id)
      headers.set(fact.run_id, { ...header, ended })
    }
  }
  return [...headers.values()]
}

const foldRejections = (rows: ReadonlyArray<Recorded>) => {
  const open = new Map<string, RecordedAs<typeof CredentialRejected.Type>>()
  for (const row of rows) {
    if (row.fact._tag === "CredentialRejected") open.set(row.fact.fingerprint, { ...row, fact: row.fact })
    else if (row.fact._tag === "CredentialReleased") open.delete(row.fact.fingerprint)
  }
  return open
}
