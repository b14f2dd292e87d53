/**
 * The output folder as commands use it: whether it is ours, what is in it, and `runs/<run_id>/`. Files are
 * written completely or not at all; what is published is shared with the group if the job says so.
 */
import { accessSync, chmodSync, constants, existsSync, readFileSync, readdirSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { Clock, Duration, Effect, Layer, Option } from "effect"
import type { DuckDb } from "../base/DuckDb.ts"
import {
  codeOf,
  durableFiles,
  modesOf,
  ownModes,
  type DurableFiles,
  type Share,
} from "../base/DurableFile.ts"
import { listed, suggestion, wordsOf } from "../base/Text.ts"
import { note, outputFolder } from "./Output.ts"
import { refuse, toolVersion, type Refused } from "./Failures.ts"
import { Wiring } from "./Wiring.ts"
import type { Job } from "../jobs/Job.ts"
import type { Landing } from "../landing/Landing.ts"
import type { Ledger, LedgerFailed } from "../ledger/Ledger.ts"
import type { RunState } from "../ledger/RunState.ts"
import { problemOf, withId, type Problem } from "../messages/Catalogue.ts"
import { RunId } from "../service/Ids.ts"
import type { Store } from "../tables/Manifest.ts"
import type { PseudonymKey } from "../tables/Treatments.ts"

// A folder is ours if it contains the marker, and a marker is only put into an empty folder, or into one that
// an earlier version used. Nothing is changed in any other folder.

export const markerName = ".nightjar"
const markerStart = "nightjar output folder\n"
const markerText = `${markerStart}Nightjar writes everything else in this folder.\n`

/** What a folder may contain and still count as empty: a page about it, and files of the file system. */
const harmless: ReadonlySet<string> = new Set(["README.md", ".gitignore", ".gitkeep", "lost+found"])
/** The sticky bit: everyone who shares such a folder may create files in it. */
const stickyBit = 0o1000
const entriesTold = 3

/** damaged: ours, but the marker was changed. */
export const markerState = (output: string): "marked" | "damaged" | "missing" => {
  const path = join(output, markerName)
  if (!existsSync(path)) return "missing"
  return readFileSync(path, "utf8") === markerText ? "marked" : "damaged"
}

/** Undefined for a folder that can be read, and where nothing is yet: one that is closed is not empty. */
export const refusalOfFile = (output: string): Refused | undefined => {
  if (!existsSync(output)) return undefined
  if (!statSync(output).isDirectory()) return refuse("output-not-a-folder", { output })
  const ledger = join(output, "ledger.sqlite")
  try {
    accessSync(output, constants.R_OK | constants.X_OK)
    if (existsSync(ledger)) accessSync(ledger, constants.R_OK)
    return undefined
  } catch (cause) {
    return refuse("output-refused", { output, why: wordsOf(cause) })
  }
}

/** Why the folder must not be touched; undefined if it is ours or may become so. */
export const refusalOf = (output: string): Refused | undefined => {
  if (!existsSync(output)) return undefined
  const file = refusalOfFile(output)
  if (file !== undefined) return file
  const found = statSync(output)
  const entries = new Set(readdirSync(output))
  if (entries.has(markerName) && markerState(output) === "marked") return undefined
  // An output folder of a version that had no marker.
  if (entries.has("ledger.sqlite") && entries.has("runs")) return undefined
  const mode = found.mode & 0o7777
  if ((mode & stickyBit) !== 0) return refuse("output-shared", { output, mode: mode.toString(8) })
  const strange = [...entries].filter((name) => !harmless.has(name) && !name.startsWith(markerName))
  if (strange.length === 0) return undefined
  return refuse("output-not-ours", { output, entries: listed(strange.toSorted(), entriesTold) })
}

/** Throws what the machine refuses; returns why not, or undefined once the folder has the marker. */
export const claimFolder = (files: DurableFiles, output: string, folderMode: number): Refused | undefined => {
  const refusal = refusalOf(output)
  if (refusal !== undefined) return refusal
  if (!existsSync(output)) files.makeFolder(output, folderMode)
  if (markerState(output) === "marked") return undefined
  // Two processes that claim the same folder write the same content, each through its own temporary file.
  const path = join(output, markerName)
  const own = `${path}.${process.pid}.tmp`
  checkLinks(files, own, `${path}.${process.pid}.link.tmp`)
  files.replace(path, markerText, 0o600, own)
  return undefined
}

/** Publications need both kinds, which some file systems lack: that would show after all logins only. */
const checkLinks = (files: DurableFiles, file: string, link: string): void => {
  files.write(file, markerText, 0o600)
  try {
    // An interrupted check may have left one.
    files.remove(link)
    files.link(file, link)
    files.remove(link)
    files.symlink(file, link)
    files.remove(link)
  } finally {
    files.remove(file)
  }
}

/** What a folder without its ledger contains; undefined if nothing is lost. */
export const lostLedger = (output: string): string | undefined => {
  if (existsSync(join(output, "ledger.sqlite"))) return undefined
  const beside = ["landing", "tables", "ledger-archive", "nightjar.duckdb"].filter((name) => {
    const path = join(output, name)
    return existsSync(path) && (name === "nightjar.duckdb" || readdirSync(path).length > 0)
  })
  return beside.length === 0 ? undefined : beside.join(", ")
}

/** What may change by tomorrow although nobody changed a setting. */
const passing: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EIO"])

const refusalOfLost = (output: string): Refused | undefined => {
  const found = lostLedger(output)
  return found === undefined ? undefined : refuse("ledger-missing", { output, found })
}

const claimed = (files: DurableFiles, output: string, share: Share): Refused | undefined => {
  const refusal = claimFolder(files, resolve(output), modesOf(share).folder) ?? refusalOfLost(output)
  if (refusal !== undefined) return refusal
  files.makeFolder(resolve(output), modesOf(share).folder)
  // Reports name the customers: where the tables do not, they are not for the same readers.
  const hasPseudonyms = existsSync(join(output, "pseudonyms.json"))
  files.makeFolder(resolve(output, "runs"), modesOf(hasPseudonyms ? "none" : share).folder)
  return undefined
}

/** Before the lock and the ledger, which are inside it. */
export const prepareOutput = Effect.fnUntraced(function* (output: string, shares: ReadonlyArray<Share>) {
  const files = yield* durableFiles
  const refusal = yield* Effect.try({
    try: () => claimed(files, output, shares.includes("group") ? "group" : "none"),
    catch: (cause) => {
      const why = wordsOf(cause)
      return passing.has(codeOf(cause))
        ? refuse("output-unwritable", { detail: `${output}: ${why}` })
        : refuse("output-refused", { output, why })
    },
  })
  if (refusal !== undefined) return yield* refusal
})

/** `works`: what is done, in words, for whoever finds the folder in use. */
export const holdOutput = Effect.fnUntraced(function* (
  output: string,
  shares: ReadonlyArray<Share>,
  works: ReadonlyArray<string> = [],
  longest = Duration.zero,
  until = Infinity,
) {
  const { awaitLock } = yield* Effect.promise(() => import("../base/FolderLock.ts"))
  const latest = Math.min(until, (yield* Clock.currentTimeMillis) + Duration.toMillis(longest))
  const onHolder = (holder: string) =>
    note(
      `Another process is working in this output folder: ${holder}. ` +
        `Waiting for it until ${new Date(latest).toISOString()} at the latest.`,
    )
  yield* prepareOutput(output, shares)
  const held = yield* awaitLock(`${output}/run.lock`, works, { longest, until, onHolder })
  // Whoever worked here may have changed it.
  if (held.waitedMs > 0) yield* prepareOutput(output, shares)
  // The lock file belongs to whoever works here, and contains nothing.
  yield* writing(() => chmodSync(join(output, "run.lock"), 0o600))
  return held
})

export const runFolder = (output: string, run_id: RunId): string => join(output, "runs", run_id)

const writing = Effect.fnUntraced(function* (work: (files: DurableFiles) => void) {
  const files = yield* durableFiles
  yield* Effect.try({
    try: () => work(files),
    catch: (cause) => refuse("output-unwritable", { detail: wordsOf(cause) }),
  })
})

/** A folder for its owner only, created if it is missing. */
export const makePrivate = (folder: string) => writing((files) => files.makeFolder(folder, ownModes.folder))

export const writeWhole = (folder: string, name: string, text: string, share: Share) =>
  writing((files) => {
    files.makeFolder(folder, modesOf(share).folder)
    files.replace(join(folder, name), text, modesOf(share).file)
  })

export interface FilesOfRun {
  readonly output: string
  readonly run_id: RunId
  readonly share: Share
}

export const writeRunFile = ({ output, run_id, share }: FilesOfRun, name: string, text: string) =>
  writeWhole(runFolder(output, run_id), name, text, share)

/** What is shared with the group stays shared. */
export const shareOf = (output: string) => ((statSync(output).mode & 0o050) === 0o050 ? "group" : "none")

/** Holds the folder and changes what is published; `opens` the store with the pseudonyms that this needs. */
export const inHeldStore = Effect.fnUntraced(function* <A, E, R, E1, R1>(
  output: string,
  work: (store: Store) => Effect.Effect<A, E, R | Landing | DuckDb | Ledger>,
  opens: (output: string, share: Share) => Effect.Effect<Store, E1, R1>,
) {
  const wiring = yield* Wiring
  const share = shareOf(output)
  yield* holdOutput(output, [share])
  const store = yield* opens(output, share)
  return yield* inFolder(output, Effect.provide(work(store), wiring.landing(output, "read-write")))
}, Effect.scoped)

/** Work with the database and the ledger of a folder that is held. */
export const inFolder = Effect.fnUntraced(function* <A, E, R>(output: string, work: Effect.Effect<A, E, R>) {
  const wiring = yield* Wiring
  return yield* Effect.provide(work, Layer.merge(wiring.database, wiring.ledger(output, "read-write")))
})

/** Where everything that is published is; no manifest if nothing is. */
export const publishedIn = Effect.fnUntraced(function* (output: string) {
  const { layoutOf, readManifest } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  const layout = layoutOf(output)
  return { layout, manifest: yield* Effect.sync(() => readManifest(layout.manifest)) }
})

/** Undefined if the published tables have no pseudonyms; refused if these are of another key. */
export const publishedKey = Effect.fnUntraced(function* (output: string) {
  const { checkBeside, keyPlace, standingIn } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
  const { layout } = yield* publishedIn(output)
  const policy = (yield* standingIn(layout))?.pseudonyms
  if (policy === undefined) return undefined
  const reference = yield* keyPlace(layout.pseudonyms, policy.check)
  if (reference === undefined) return yield* refuse("pseudonyms-key-unknown")
  const { columns } = policy
  const asked = yield* askedWith({ pseudonyms: { key: reference, columns } })
  yield* checkBeside(layout, asked)
  return asked?.key
})

const askedWith = Effect.fnUntraced(function* (job: {
  readonly pseudonyms?: Pick<NonNullable<Job["pseudonyms"]>, "key" | "columns">
}) {
  const wiring = yield* Wiring
  const { askedBy } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
  return yield* Effect.provide(askedBy(job), wiring.secrets)
})

/** As a run of the job would be refused: before it starts anything. */
export const refuseOtherPseudonyms = Effect.fnUntraced(function* (output: string, job: Job) {
  const { checkBeside } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
  const { layout } = yield* publishedIn(output)
  yield* checkBeside(layout, yield* askedWith(job))
})

const storeOptions = Effect.fnUntraced(function* (output: string, share: Share) {
  const { recordSchemas } = yield* Wiring
  // Only a run applies the job's `retain`.
  const versionsKept = Number.POSITIVE_INFINITY
  return { root: output, schemasFolder: recordSchemas, share, toolVersion, versionsKept }
})

const openedWith = Effect.fnUntraced(function* (output: string, share: Share, key?: PseudonymKey) {
  const { openStore } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
  return yield* openStore(yield* storeOptions(output, share), key)
})

export const openedStore = (output: string, share: Share = "none") => openedWith(output, share)

/** With the key of its pseudonyms, if it has any: rows can be derived, and those of a customer found. */
export const openedStoreWithKey = (output: string, share: Share) =>
  Effect.flatMap(publishedKey(output), (key) => openedWith(output, share, key))

/** To derive all rows again with what this job asks for in place of the customers. */
export const openedStoreAsked = (job: Job) =>
  Effect.fnUntraced(function* (output: string, share: Share) {
    const { openStoreAsked, ownSchemasOf } = yield* Effect.promise(() => import("../tables/OpenStore.ts"))
    const { readingsOf } = yield* Effect.promise(() => import("./ReadingsOfJob.ts"))
    const pseudonyms = yield* askedWith(job)
    const options = yield* storeOptions(output, share)
    const schemas = { ...ownSchemasOf(job), readings: readingsOf(job) }
    return yield* openStoreAsked({ ...options, ...schemas, ...(pseudonyms && { pseudonyms }) })
  })

/** What the published tables have in place of the customers; undefined if they name them. */
export const policyOf = (output: string) =>
  Effect.map(publishedIn(output), ({ manifest }) => manifest?.pseudonyms)

export const familiesOf = Effect.fnUntraced(function* (output: string) {
  const wiring = yield* Wiring
  const { schemasOfTables } = yield* Effect.promise(() => import("../records/SchemasInForce.ts"))
  const { layout, manifest } = yield* publishedIn(output)
  const folders = { package: wiring.recordSchemas, own: undefined, kept: layout.schemas }
  return (yield* schemasOfTables(folders, manifest ?? {})).families
})

const tokensName = "tokens.sqlite"

/** What is damaged in the token store; undefined if nothing is, or if the folder has none. */
export const damageOfTokens = Effect.fnUntraced(function* (output: string) {
  const { damageIn } = yield* Effect.promise(() => import("../tokens/TokenTables.ts"))
  return damageIn(join(output, tokensName))
})

export const problemsOf = Effect.fnUntraced(function* (output: string) {
  const wiring = yield* Wiring
  const { verify, verifyBeside, verifyTables } = yield* Effect.promise(() => import("../tables/Verify.ts"))
  const { layoutOf } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  const services = Layer.mergeAll(
    wiring.landing(output, "read-only"),
    wiring.database,
    wiring.ledger(output, "read-only"),
  )
  const look = Effect.flatMap(openedStore(output), (store) =>
    verify(store).pipe(
      Effect.provide(services),
      // Its ledger cannot be read; what is published can still be checked.
      Effect.catchTag("LedgerFailed", ({ message }) =>
        Effect.provide(verifyTables(store, message), wiring.database),
      ),
    ),
  )
  const ofMarker = markerState(output) === "damaged" ? [problemOf(markerName, "marker-damaged")] : []
  const detail = yield* damageOfTokens(output)
  const ofTokens = detail === undefined ? [] : [problemOf(tokensName, "token-store-damaged", { detail })]
  return [...ofMarker, ...ofTokens, ...(yield* verifyBeside(layoutOf(output), look))]
})

/** For commands that mend or copy: each problem with what to do about it. */
export const problemLines = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> =>
  problems.map(({ id, where, problem, next }) => `${where}: ${withId(id, problem)}. ${next}`)

/** The service; its room is loaded when it is first needed. */
export const openedLedger = Effect.flatMap(
  Effect.promise(() => import("../ledger/Ledger.ts")),
  (room) => room.Ledger,
)

/** Refuses a file, and an empty ledger in place of a lost one, which would claim that nothing ever ran. */
export const refuseLostLedger = Effect.fnUntraced(function* (output: string) {
  const refusal = refusalOfFile(output) ?? refusalOfLost(output)
  if (refusal !== undefined) return yield* refusal
})

const runsTold = 5

/** With an older copy, rejected logins would be sent again, and what is open would never be found. */
export const refuseOlderLedger = Effect.fnUntraced(function* (output: string) {
  const { runsHere } = yield* Effect.promise(() => import("../tables/Manifest.ts"))
  const { layout, manifest } = yield* publishedIn(output)
  const here = yield* Effect.sync(() => runsHere(layout, manifest))
  const known = new Set<string>((yield* (yield* openedLedger).runs).map(({ fact }) => fact.run_id))
  const unknown = here.filter((run_id) => !known.has(run_id))
  if (unknown.length > 0) return yield* refuse("ledger-older", { output, runs: listed(unknown, runsTold) })
})

const hasLedgerIn = (output: string) =>
  Effect.as(refuseLostLedger(output), existsSync(`${output}/ledger.sqlite`))

export const hasLedger = Effect.flatMap(outputFolder, hasLedgerIn)

/** Exit code 2 if nothing ever ran, or if the ledger of what ran is lost. */
export const requireLedger = Effect.fnUntraced(function* (output: string) {
  if (!(yield* hasLedgerIn(output))) return yield* refuse("nothing-ran", { output })
})

/** Runs a read of the ledger; exit code 2 if nothing ever ran. */
export const withLedger = Effect.fnUntraced(function* <A, E, R>(
  look: Effect.Effect<A, E, R | Ledger>,
  access: "read-only" | "read-write" = "read-only",
) {
  const output = yield* outputFolder
  const wiring = yield* Wiring
  yield* requireLedger(output)
  return yield* look.pipe(Effect.provide(wiring.ledger(output, access)))
})

/** The jobs that ran here, each with the path from which it was last started. */
export const knownJobs = Effect.gen(function* () {
  const runs = yield* withLedger(Effect.flatMap(openedLedger, (ledger) => ledger.runs))
  return new Map<string, string>(runs.map(({ fact }) => [fact.job, fact.job_path]))
})

type Reading<Run> = (
  ledger: Ledger["Service"],
) => (run_id: RunId) => Effect.Effect<Run | undefined, LedgerFailed>

const foundRun = Effect.fnUntraced(function* <Run>(named: Option.Option<string>, read: Reading<Run>) {
  const ledger = yield* openedLedger
  const ids = (yield* ledger.runs).map(({ fact }) => fact.run_id)
  const run_id = Option.match(named, { onNone: () => ids.at(-1), onSome: RunId.make })
  if (run_id === undefined) return yield* refuse("nothing-ran", { output: yield* outputFolder })
  if (!ids.includes(run_id)) return yield* refuse("run-unknown", { suggestion: suggestion(run_id, ids) })
  const run = yield* read(ledger)(run_id)
  return run ?? (yield* refuse("run-incomplete", { run_id }))
})

/** The named run, or else the newest one, as a summary reads it. */
export const findRun = (named: Option.Option<string>) => foundRun(named, ({ brief }) => brief)

export const findNight = Effect.fnUntraced(function* <Run extends Pick<RunState, "started">>(
  named: Option.Option<string>,
  read: Reading<Run>,
) {
  const { nightAround } = yield* Effect.promise(() => import("../ledger/WholeNight.ts"))
  const ledger = yield* openedLedger
  const state = yield* foundRun(named, read)
  return { state, night: yield* nightAround(ledger, state, read(ledger)) }
})
