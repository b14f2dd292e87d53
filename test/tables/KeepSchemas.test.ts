/** Each text of a record schema is kept once, under a number of its own, and a lost file comes back as it was. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DurableFiles, machineCalls, modesOf } from "../../src/base/DurableFile.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import {
  isOfOtherSchemas,
  keepSchemas,
  lostSchemas,
  namingSchemaFiles,
  repairSchemas,
} from "../../src/tables/KeepSchemas.ts"
import { filesBelow, layoutOf, manifestText, nothingPublished } from "../../src/tables/Manifest.ts"
import type { Manifest, Store } from "../../src/tables/Manifest.ts"
import { folder } from "./night.ts"
import { live } from "../harness/Steps.ts"

type Texts = Readonly<Record<string, string>>

/** A folder in which texts are kept, one publication after another. */
const place = Effect.map(folder, (root) => {
  const layout = layoutOf(root)
  const file = (name: string) => join(layout.schemas, name)
  const store = { layout, modes: modesOf("none"), files: new DurableFiles(machineCalls) } as Store
  return {
    root,
    layout,
    file,
    keep: (texts: Texts, current: Manifest = nothingPublished) =>
      keepSchemas({ ...store, schemas: { texts: new Map(Object.entries(texts)), gone: [] } }, current),
    named: (next: Manifest) => namingSchemaFiles(store, next),
    publish: (manifest: Manifest) =>
      Effect.sync(() => {
        machineCalls.makeFolder(layout.tables, 0o700)
        writeFileSync(layout.manifest, manifestText(manifest))
      }),
    kept: () =>
      Object.fromEntries(filesBelow(layout.schemas).map((name) => [name, readFileSync(file(name), "utf8")])),
  }
})

const version = (schemas: Readonly<Record<string, number>>, more: Partial<Manifest> = {}): Manifest => ({
  ...nothingPublished,
  version: 1,
  schemas,
  ...more,
})
const runWith = (schemas: Readonly<Record<string, number>>) => ({
  run_date: "2026-11-20",
  version: 1,
  schemas,
  files: [],
})

describe("a text of a record schema", () => {
  live("is kept once, under a number of its own, however often others come between", function* () {
    const { keep, kept, file } = yield* place
    const versions = [
      yield* keep({ cars: "a", vans: "x" }),
      yield* keep({ cars: "a", vans: "y" }),
      yield* keep({ cars: "b" }),
      yield* keep({ cars: "a", vans: "y" }),
      yield* keep({ cars: "b", vans: "x" }),
    ]
    assert.deepStrictEqual(versions, [
      { cars: 1, vans: 1 },
      { cars: 1, vans: 2 },
      { cars: 2 },
      { cars: 1, vans: 2 },
      { cars: 2, vans: 1 },
    ])
    // Earlier versions wrote a text again: the one in force stays, else the newest of them.
    writeFileSync(file("cars.v11.yaml"), "a")
    assert.deepStrictEqual(yield* keep({ cars: "a" }, version({ cars: 1 })), { cars: 1 })
    assert.deepStrictEqual(yield* keep({ cars: "a" }), { cars: 11 })
    assert.deepStrictEqual(yield* keep({ cars: "c" }), { cars: 12 })
    assert.deepStrictEqual(kept(), {
      "cars.v1.yaml": "a",
      "cars.v2.yaml": "b",
      "cars.v11.yaml": "a",
      "cars.v12.yaml": "c",
      "vans.v1.yaml": "x",
      "vans.v2.yaml": "y",
    })
  })

  live("whose file is lost is written under its number again, and no other text ever is", function* () {
    const { keep, kept, file } = yield* place
    yield* keep({ cars: "a" })
    const current = version({ cars: 1 }, { schema_files: { "cars.v1.yaml": sha256Hex("a") } })
    for (const lose of [() => rmSync(file("cars.v1.yaml")), () => writeFileSync(file("cars.v1.yaml"), "A")]) {
      lose()
      assert.deepStrictEqual(yield* keep({ cars: "a" }, current), { cars: 1 })
      assert.deepStrictEqual(kept(), { "cars.v1.yaml": "a" })
    }
    rmSync(file("cars.v1.yaml"))
    assert.deepStrictEqual(yield* keep({ cars: "b" }, current), { cars: 2 })
    // Nobody knows what text it was, only that a run was derived with it.
    rmSync(file("cars.v2.yaml"))
    const older = { ...nothingPublished, runs: { one: runWith({ cars: 3 }) } }
    assert.deepStrictEqual(yield* keep({ cars: "a" }, older), { cars: 4 })
    assert.deepStrictEqual(kept(), { "cars.v4.yaml": "a" })
  })

  live(
    "has its hash in the manifest from its first publication on, whatever becomes of the file",
    function* () {
      const { keep, file, named, publish, layout } = yield* place
      assert.deepStrictEqual(yield* named(nothingPublished), nothingPublished)
      yield* keep({ cars: "a", vans: "x" })
      const first = yield* named(version({ cars: 1 }, { runs: { one: runWith({ vans: 1, bikes: 1 }) } }))
      const hashes = { "cars.v1.yaml": sha256Hex("a"), "vans.v1.yaml": sha256Hex("x") }
      assert.deepStrictEqual(first.schema_files, hashes)
      yield* publish(first)
      writeFileSync(file("cars.v1.yaml"), "changed")
      rmSync(file("vans.v1.yaml"))
      const second = yield* named(version({ cars: 1 }))
      assert.deepStrictEqual(second.schema_files, hashes)
      const lost = (current: Manifest, newest = current) =>
        lostSchemas(layout, { current, newest }).map(({ name, state }) => `${name} ${state}`)
      assert.deepStrictEqual(lost(second), ["cars.v1.yaml changed"])
      assert.deepStrictEqual(lost(first), [
        "cars.v1.yaml changed",
        "vans.v1.yaml missing",
        "bikes.v1.yaml missing",
      ])
      assert.deepStrictEqual(lost(second, version({ vans: 1 })), [
        "cars.v1.yaml changed",
        "vans.v1.yaml missing",
      ])
      // A manifest of an older version has no hashes.
      assert.deepStrictEqual(lost(version({ cars: 1, vans: 1 })), ["vans.v1.yaml missing"])
    },
  )

  live("is looked for only while it is lost, and taken only if it is the same to the byte", function* () {
    const { root, keep, kept, file, named, publish } = yield* place
    const asked: Array<string> = []
    const has = (name: string, ...texts: ReadonlyArray<string>) =>
      Effect.sync(() => {
        asked.push(name)
        return texts.map((text) => ({ text }))
      })
    const sources = [has("program", "a", "x "), has("jobs", "x")]
    const repaired = repairSchemas({ root, share: "none" }, sources)
    assert.deepStrictEqual([yield* repaired, existsSync(join(root, "schemas"))], [[], false])
    yield* keep({ cars: "a", vans: "x", bikes: "z" })
    yield* publish(yield* named(version({ cars: 1, vans: 1, bikes: 1 })))
    assert.deepStrictEqual([yield* repaired, asked.splice(0)], [[], []])
    writeFileSync(file("cars.v1.yaml"), "")
    assert.deepStrictEqual([yield* repaired, asked.splice(0)], [["cars.v1.yaml"], ["program"]])
    rmSync(join(root, "schemas"), { recursive: true })
    assert.deepStrictEqual(
      [yield* repaired, asked.splice(0)],
      [
        ["cars.v1.yaml", "vans.v1.yaml"],
        ["program", "jobs"],
      ],
    )
    assert.deepStrictEqual(kept(), { "cars.v1.yaml": "a", "vans.v1.yaml": "x" })
  })
})

describe("the schemas of a run", () => {
  it("are others than those in force if one of them is; of older versions nobody knows", () => {
    const schemas = { cars: 1, vans: 2 }
    assert.deepStrictEqual(
      [
        isOfOtherSchemas({ schemas }, schemas),
        isOfOtherSchemas({ schemas }, { ...schemas, vans: 3 }),
        isOfOtherSchemas({ schemas }, { cars: 1 }),
        isOfOtherSchemas({ schemas }, { ...schemas, bikes: 1 }),
        isOfOtherSchemas({}, schemas),
        isOfOtherSchemas({ schemas }, undefined),
      ],
      [false, true, true, true, false, false],
    )
  })
})
