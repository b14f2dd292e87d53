/**
 * Copies of an output folder that changes while it is copied: what the copied ledger calls landed or published is in
 * the copy, and what was cut off is no output folder.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FileCalls, machineCalls } from "../../src/base/DurableFile.ts"
import { backup } from "../../src/folder/Backup.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { copiesOf } from "../harness/CopiesOf.ts"
import {
  append,
  begin,
  foundation,
  layers,
  liveNight,
  namesIn,
  problemsIn,
  profileOf,
  publish,
  resultsOf,
  storeOf,
  succeed,
} from "../tables/night.ts"
import { live } from "../harness/Steps.ts"

const first = "nightly.2026-11-20"
const second = "nightly.2026-11-21"
const third = "nightly.2026-11-22"

const inPlace = <A, E>(root: string, work: Effect.Effect<A, E, Layer.Success<ReturnType<typeof layers>>>) =>
  Effect.provide(work, layers(root))

/** One folder at three moments: published; a second night has landed; the second night is published too. */
const lived = copiesOf((root) =>
  Effect.gen(function* () {
    const place = join(root, "live")
    mkdirSync(place)
    const keep = (moment: string) => cpSync(place, join(root, moment), { recursive: true })
    openTokenDatabase(join(place, "tokens.sqlite")).close()
    yield* inPlace(place, liveNight(first, "1", profileOf("Ana")))
    keep("published")
    yield* inPlace(place, append([begin(second, "2026-11-21")]))
    yield* inPlace(place, succeed(second, "2", "c-1", resultsOf(profileOf("Bea"))))
    keep("landed")
    yield* inPlace(place, publish(second))
    keep("again")
  }),
)
const moments = Effect.map(lived, (root) => (moment: string) => join(root, moment))

const become = (root: string, moment: string): void => {
  for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true })
  cpSync(moment, root, { recursive: true })
}

const problemsOf = (root: string) => Effect.provide(problemsIn(root), foundation(root))
const publishedIn = (root: string) => Effect.provide(namesIn(root), foundation(root))

/** Copies `from`; once the first file whose path matches was copied, `from` is as at another moment. */
const copyWhile = (from: string, to: string, passing: RegExp, moment: string) => {
  let isDue = true
  const calls: FileCalls = {
    ...machineCalls,
    copy: (source, copy) => {
      machineCalls.copy(source, copy)
      if (!isDue || !passing.test(source)) return
      isDue = false
      become(from, moment)
    },
  }
  return Effect.provideService(backup(from, to), FileCalls, calls)
}

describe("a copy of an output folder", () => {
  live(
    "holds all that its ledger names, for its owner only, although bodies land meanwhile [promise 6 copy]",
    function* () {
      const at = yield* moments
      // A process was cut off while it wrote a frame.
      appendFileSync(join(at("published"), `landing/${first}/segment-000001.njl`), '{"njl":1,"at":')
      // A document is being downloaded.
      const documents = join(at("published"), "attachments")
      mkdirSync(documents, { recursive: true })
      writeFileSync(join(documents, ".tmp-1-1"), "half")
      assert.deepStrictEqual(yield* problemsOf(at("published")), [])
      const holds = yield* copyWhile(at("published"), at("copy"), /segment-000001/, at("landed"))
      assert.deepStrictEqual(yield* problemsOf(at("copy")), [])
      assert.deepStrictEqual(yield* publishedIn(at("copy")), ["Ana"])
      assert.deepInclude(holds, { version: 1 })
      assert.isFalse(existsSync(join(at("copy"), "attachments/.tmp-1-1")))
      const modes = (readdirSync(at("copy"), { recursive: true }) as ReadonlyArray<string>).map((path) => {
        const found = statSync(join(at("copy"), path))
        return [found.isDirectory(), found.mode & 0o777].join()
      })
      assert.sameMembers([...new Set(modes)], ["true,448", "false,384"])
      assert.includeMembers(readdirSync(at("copy")), ["ledger.sqlite", "tokens.sqlite", "nightjar.duckdb"])
    },
  )

  live("has no bodies of a run that began once its ledger was copied [promise 6 copy begun]", function* () {
    const at = yield* moments
    let isDue = true
    const calls: FileCalls = {
      ...machineCalls,
      // The ledger is copied before the token store.
      remove: (path) => {
        machineCalls.remove(path)
        if (isDue && path.endsWith("tokens.sqlite.partial")) become(at("published"), at("landed"))
        if (path.endsWith("tokens.sqlite.partial")) isDue = false
      },
    }
    yield* Effect.provideService(backup(at("published"), at("copy")), FileCalls, calls)
    assert.deepStrictEqual(yield* problemsOf(at("copy")), [])
  })

  live("of which a version is published meanwhile has the tables that belong to its ledger", function* () {
    const at = yield* moments
    const holds = yield* copyWhile(at("landed"), at("copy"), /\.parquet$/, at("again"))
    assert.deepStrictEqual(yield* problemsOf(at("copy")), [])
    assert.deepStrictEqual(yield* publishedIn(at("copy")), ["Ana", "Bea"])
    assert.deepInclude(holds, { version: 2 })
  })

  live(
    "after a rollback holds the version that the next publication continues from [promise 6 copy rollback]",
    function* () {
      const at = yield* moments
      const again = at("again")
      yield* Effect.provide(Effect.flatMap(storeOf(again), rollback), layers(again))
      yield* Effect.provide(backup(again, at("copy")), layers(again))
      assert.deepStrictEqual([yield* problemsOf(at("copy")), yield* publishedIn(at("copy"))], [[], ["Ana"]])
      yield* Effect.provide(liveNight(third, "3", profileOf("Cia")), layers(at("copy")))
      assert.deepStrictEqual(
        [yield* problemsOf(at("copy")), yield* publishedIn(at("copy"))],
        [[], ["Ana", "Bea", "Cia"]],
      )
    },
  )

  live("that cannot be finished is removed, and one that was cut off has no ledger", function* () {
    const at = yield* moments
    const seen: Array<ReadonlyArray<string>> = []
    const full: FileCalls = {
      ...machineCalls,
      copy: (source, copy) => {
        if (source.endsWith(".parquet")) {
          seen.push(readdirSync(at("copy")))
          throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" })
        }
        machineCalls.copy(source, copy)
      },
    }
    const failure = yield* Effect.flip(
      Effect.provideService(backup(at("again"), at("copy")), FileCalls, full),
    )
    assert.match(failure.message, /no space left on device/)
    assert.deepStrictEqual(
      seen.map((names) => names.includes("ledger.sqlite") || names.includes(".nightjar")),
      [false],
    )
    assert.deepStrictEqual(readdirSync(at("copy")), [])
    assert.deepStrictEqual(yield* problemsOf(at("again")), [])
  })
})
