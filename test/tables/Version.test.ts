/**
 * Every edit of the tables, cut off at any call that changes a file, or with that call alone refused: what was current
 * stays, or what the edit makes is there, whole; what was left over goes with the next start.
 * `NIGHTJAR_CUTS_EVERY=1` tries every call.
 */
import { cpSync, existsSync, rmSync } from "node:fs"
import { basename, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { recover } from "../../src/tables/Version.ts"
import { compact } from "../../src/tables/Compact.ts"
import { forgetRows } from "../../src/tables/ForgetRows.ts"
import { keptVersions } from "../../src/tables/KeptVersions.ts"
import { filesBelow, filesOf, gapsOf, layoutOf, nothingPublished } from "../../src/tables/Manifest.ts"
import { readManifest } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { restoreRows } from "../../src/tables/Repair.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import type { Store } from "../../src/tables/Manifest.ts"
import { faultyCalls, refusal } from "../base/FaultyCalls.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  folder,
  foundation,
  layers,
  liveNight,
  opened,
  problemsIn,
  profileOf,
  publish,
  resultsOf,
  storeOf,
  succeed,
  deletes,
  taskOf,
} from "./night.ts"
import { live } from "../harness/Steps.ts"

const [first, second, third, next] = ["2025-10-30", "2025-10-31", "2025-11-20", "2025-11-21"].map(
  (date) => `nightly.${date}`,
) as [string, string, string, string]

/** Three published nights, the newest with an outcome to be told, and one that is not published. */
const prepared = copiesOf((root) =>
  Effect.gen(function* () {
    yield* liveNight(first, "1", profileOf("Ana"))
    yield* append([begin(second, "2025-10-31")])
    yield* succeed(second, "2", "c-1", resultsOf(profileOf("Bea")))
    yield* succeed(second, "3", "c-2", resultsOf(profileOf("Cy")))
    yield* publish(second)
    const { receipts } = yield* liveNight(third, "4", profileOf("Dee"))
    yield* deletes(third, "4", receipts[0]?.landed_sha256)
    yield* append([{ _tag: "RunEnded", run_id: anId(third), exit_code: 0, leftovers: false }])
    yield* append([begin(next, "2025-11-21")])
    yield* succeed(next, "5", "c-1", resultsOf(profileOf("Eve")))
  }).pipe(Effect.scoped, Effect.provide(layers(root))),
)

type Within = Layer.Success<ReturnType<typeof layers>>
interface EditCase {
  readonly edit: string
  readonly prepare?: (root: string) => Effect.Effect<unknown, { readonly _tag: string }, Within>
  readonly work: (root: string) => Effect.Effect<unknown, { readonly _tag: string }, Within>
  readonly isHeld?: true
  /** A table that it cannot write stays as it is, and the others are done. */
  readonly isByTable?: true
  /** What `verify` says once it is done: a ledger from which nobody was removed. */
  readonly leaves?: ReadonlyArray<string>
}

const inStore =
  <A, E, R>(work: (store: Store) => Effect.Effect<A, E, R>) =>
  (root: string) =>
    Effect.flatMap(storeOf(root), work)
const publisher =
  <A, E>(work: (one: Publisher["Service"]) => Effect.Effect<A, E>) =>
  () =>
    Effect.flatMap(Publisher, work)

const manifestIn = (root: string) => readManifest(layoutOf(root).manifest) ?? nothingPublished
const lostFile = (root: string): string =>
  manifestIn(root).runs[first]?.files.find(({ table }) => table === "customer_profiles")?.path ?? ""
const forgotten = {
  customer_id: anId("c-2"),
  tasks: new Set([taskOf(second, "c-2").task_id]),
  executions: new Set(["e-3"]),
}

const cases: ReadonlyArray<EditCase> = [
  { edit: "publish", work: publisher((one) => one.publish(anId(next))) },
  { edit: "held", isHeld: true, work: publisher((one) => one.publish(anId(next))) },
  {
    edit: "interim",
    work: publisher((one) => one.publishInterim(anId(next), new Set([taskOf(next).task_id]))),
  },
  { edit: "outcome", work: publisher((one) => one.publishOutcome(anId(third))) },
  { edit: "rebuild", work: inStore((store) => rebuild(store, true)) },
  { edit: "rollback", work: inStore(rollback) },
  {
    edit: "compact",
    isByTable: true,
    work: inStore((store) =>
      compact(store, { overBy: Date.parse("2025-11-15"), isDry: false, monthsMax: 12 }),
    ),
  },
  { edit: "forget", work: inStore((store) => forgetRows(store, forgotten)), leaves: ["e-3"] },
  {
    edit: "publish where a file is lost",
    prepare: (root) => Effect.sync(() => rmSync(join(root, lostFile(root)))),
    work: publisher((one) => one.publish(anId(next))),
  },
  {
    edit: "restore",
    prepare: (root) =>
      Effect.gen(function* () {
        yield* append([{ _tag: "LandingPruned", run_id: anId(first), bytes: 1 }])
        rmSync(join(root, lostFile(root)))
      }),
    work: (root) =>
      Effect.flatMap(storeOf(root), (store) =>
        restoreRows(store, [{ path: lostFile(root), state: "damaged" }]),
      ),
  },
]

const gates = { keys: false, tests: [{ name: "nobody", sql: "SELECT 1 FROM nights.customer_profiles" }] }
const inFolder = (root: string, { isHeld }: Pick<EditCase, "isHeld">, calls: FileCalls = machineCalls) =>
  layers(root, { parquet: ["current", "history"], ...(isHeld === true ? { gates } : {}) }, calls)

/** What readers see: rows, deletions and files. */
const seen = Effect.fnUntraced(function* (root: string) {
  const { rows } = yield* opened(root)
  const namesOf = (table: string) =>
    Effect.map(rows(`SELECT name FROM ${table} ORDER BY ALL`), (all) => all.map(({ name }) => name))
  const [deletions] = yield* rows("SELECT count(*)::INTEGER AS n FROM ops.deletions")
  return JSON.stringify({
    names: yield* namesOf("nights.customer_profiles"),
    current: yield* namesOf("customer_profiles"),
    deletions: deletions?.["n"],
    files: filesBelow(join(root, "tables")).length,
    held: filesBelow(join(root, "published/held")),
    parquet: filesBelow(join(root, "published")).filter((path) => path.startsWith("parquet-")),
  })
}, Effect.scoped)

/** What does not depend on how many files hold the rows. */
const withoutFiles = (state: string): string => state.replace(/"files":\d+/, "")

interface Cut {
  /** The number of the call that is refused. */
  readonly at: number
  /** And every call after it, as after a kill. */
  readonly isKill: boolean
}

/** What readers see after a start, and what `verify` says of it if it is asked. */
const restarted = (root: string, isVerified = true) =>
  Effect.gen(function* () {
    yield* Effect.flatMap(storeOf(root), recover)
    const state = yield* seen(root)
    const problems = isVerified ? yield* problemsIn(root) : []
    return { state, problems: problems.map(({ where }) => where) }
  }).pipe(Effect.provide(foundation(root)))

/** Applies an edit to a copy, cut off or not; `killed` are the folders as a kill would leave them at its commit. */
const applied = Effect.fnUntraced(function* (
  from: string,
  one: EditCase,
  { at, isKill }: Cut,
  killed: ReadonlyArray<string> = [],
) {
  const root = yield* folder
  cpSync(from, root, { recursive: true })
  const { calls, done } = faultyCalls({
    refuse: (name, nth) => ((isKill ? nth >= at : nth === at) ? refusal("EIO", name) : undefined),
  })
  const commits: Array<number> = []
  const rename: FileCalls["rename"] = (source, to) => {
    const isCommit = to.includes(one.isHeld === true ? "/held/" : "/manifest.next.json")
    if (isCommit) commits.push(done.length + 1)
    const [before, after] = isCommit && commits.length === 1 ? killed : []
    if (before !== undefined) cpSync(root, before, { recursive: true })
    calls.rename(source, to)
    if (after !== undefined) cpSync(root, after, { recursive: true })
  }
  const exit = yield* Effect.exit(one.work(root)).pipe(
    Effect.provideService(FileCalls, { ...calls, rename }),
    Effect.provide(inFolder(root, one, { ...calls, rename })),
    Effect.scoped,
  )
  const [commit = 0] = commits
  const last = done.findLastIndex((name) => name === "rename") + 1
  return { root, exit: exit._tag, calls: done.length, commit, last }
})

const every = Number(process.env["NIGHTJAR_CUTS_EVERY"] ?? 0)

/** Beside the kills at the commit: of one edit, its last rename alone. */
const cutsOf = ({ edit }: EditCase, { calls, last }: { readonly calls: number; readonly last: number }) => {
  const all = Array.from({ length: every > 0 ? calls : 0 }, (_, index) => index + 1)
  const some = all
    .filter((at) => at % every === 0)
    .flatMap((at) => [true, false].map((isKill) => ({ at, isKill })))
  return edit === "publish" ? [...some, { at: last, isKill: false }] : some
}

describe("an edit of the tables that is cut off leaves what was current or what it makes, whole", () => {
  it.live.each(cases)(
    "$edit [promise 6] [promise 7]",
    (one) =>
      Effect.gen(function* () {
        const from = yield* prepared
        if (one.prepare !== undefined) yield* Effect.provide(Effect.scoped(one.prepare(from)), layers(from))
        const before = yield* Effect.provide(seen(from), foundation(from))
        const damaged = filesOf(manifestIn(from)).filter(({ path }) => !existsSync(join(from, path)))
        const killed = [yield* folder, yield* folder]
        const whole = yield* applied(from, one, { at: Infinity, isKill: true }, killed)
        const made = yield* Effect.provide(seen(whole.root), foundation(whole.root))
        assert.notStrictEqual(made, before)
        assert.deepStrictEqual(
          [whole.exit, whole.commit > 0],
          [one.isHeld === true ? "Failure" : "Success", true],
        )
        const lost = damaged.map(({ path }) => path)
        const leaves = one.leaves ?? []
        const kills = yield* Effect.forEach(killed, (root, at) => restarted(root, at === 1))
        assert.deepStrictEqual(kills, [
          { state: before, problems: [] },
          { state: made, problems: leaves },
        ])
        for (const { at, isKill } of cutsOf(one, whole)) {
          const { root, exit } = yield* applied(from, one, { at, isKill })
          const { state, problems } = yield* restarted(root)
          const where = `${one.edit}: call ${at} of ${whole.calls}, ${isKill ? "and all after it" : "alone"}`
          if (one.isByTable === true && !isKill) {
            assert.include(withoutFiles(made), withoutFiles(state), where)
            continue
          }
          assert.include([before, made], state, where)
          // What failed before the commit changed nothing, and what succeeded is there, if without some help.
          if (exit === "Failure" && at <= whole.commit && one.isHeld !== true)
            assert.strictEqual(state, before, where)
          if (exit === "Success") assert.strictEqual(state, made, where)
          assert.deepStrictEqual(problems, state === made ? leaves : lost, where)
        }
      }).pipe(Effect.scoped),
    every > 0 ? 1_800_000 : 120_000,
  )
})

/**
 * The folder as a kill before each rename would leave it, and as it is afterwards; of a run's files, which have one name
 * and are moved one after the other, before every fifth.
 */
const killed = Effect.fnUntraced(function* (work: EditCase["work"]) {
  const [root, copies] = [yield* prepared, yield* folder]
  const folders: Array<string> = []
  const keep = () => {
    const copy = join(copies, String(folders.length))
    cpSync(root, copy, { recursive: true, verbatimSymlinks: true })
    folders.push(copy)
  }
  let [name, nth] = ["", 0]
  const rename: FileCalls["rename"] = (source, to) => {
    nth = basename(to) === name ? nth + 1 : 0
    name = basename(to)
    if (nth % 5 === 0) keep()
    machineCalls.rename(source, to)
  }
  const calls = { ...machineCalls, rename }
  yield* work(root).pipe(
    Effect.provideService(FileCalls, calls),
    Effect.provide(inFolder(root, {}, calls)),
    Effect.scoped,
  )
  keep()
  return folders
})

describe("`verify` where a publication was killed", () => {
  live("says that, and nothing of what the next start does [verify interrupted]", function* () {
    const folders = yield* killed(publisher((one) => one.publish(anId(next))))
    const told = yield* Effect.forEach(folders, (root) =>
      Effect.gen(function* () {
        const found = (yield* problemsIn(root)).map(({ id }) => id)
        const ready = existsSync(layoutOf(root).next)
        yield* Effect.flatMap(storeOf(root), recover)
        return [ready, found, (yield* problemsIn(root)).map(({ id }) => id)] as const
      }).pipe(Effect.provide(foundation(root))),
    )
    const cut = ["publication-interrupted"]
    assert.isAbove(told.filter(([ready]) => ready).length, 5)
    for (const [ready, found, after] of told) {
      assert.deepStrictEqual(found, ready || found.length > 0 ? cut : [])
      assert.deepStrictEqual(after, [])
    }
    assert.deepStrictEqual(told.at(-1)?.[1], [])
  })
})

describe("a removal that is cut off", () => {
  live("leaves kept versions whose files no later publication replaces", function* () {
    const root = yield* prepared
    let isCut = false
    const rename: FileCalls["rename"] = (source, to) => {
      isCut ||= to.endsWith("manifest.next.json")
      if (isCut) throw refusal("EIO", "rename")
      machineCalls.rename(source, to)
    }
    const calls = { ...machineCalls, rename }
    const removing = Effect.flatMap(storeOf(root), (store) => forgetRows(store, forgotten))
    const cut = Effect.provide(removing, inFolder(root, {}, calls)).pipe(
      Effect.provideService(FileCalls, calls),
    )
    assert.strictEqual((yield* Effect.exit(cut))._tag, "Failure")
    assert.isTrue(isCut)
    yield* Effect.provide(publish(second), layers(root))
    const store = yield* Effect.provide(storeOf(root), foundation(root))
    const damaged = yield* Effect.forEach(keptVersions(store), (kept) => gapsOf(store, filesOf(kept)))
    assert.deepStrictEqual(damaged.flat(), [])
  })
})
