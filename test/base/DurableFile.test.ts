/** What is written is there whole, or what was there before is; whichever step the disk refuses. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { DurableFiles, FileFailed } from "../../src/base/DurableFile.ts"
import { faultyCalls, refusal, type CallName, type Faults } from "./FaultyCalls.ts"
import { live } from "../harness/Steps.ts"
import { freshFolders } from "../harness/Folder.ts"

const fresh = freshFolders()
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
const once = (name: CallName, failing: number): Faults => ({
  refuse: (_, nth) => (nth === failing ? refusal("EIO", name) : undefined),
})

/** What was thrown, with the folder's name left out. */
const complaint = (folder: string, work: () => void): string => {
  try {
    work()
    return "done"
  } catch (cause) {
    return cause instanceof FileFailed
      ? cause.message.replaceAll(`${folder}/`, "")
      : `not told: ${String(cause)}`
  }
}

const text = "é".repeat(1_000)

describe("a file that is written", () => {
  it("is complete even if each write takes only a few bytes", () => {
    const folder = fresh()
    const { files, done } = faultyCalls({ writeBytesMax: 7 })
    const at = (name: string) => join(folder, name)
    files.write(at("written"), text, 0o600)
    files.replace(at("replaced"), text, 0o600)
    files.create(at("created"), text)
    const log = files.append(at("appended"), "a", 0o600)
    log.append(text.slice(0, 500))
    log.append(text.slice(500))
    log.close()
    expect(readdirSync(folder).map((name) => readFileSync(at(name), "utf8") === text)).toStrictEqual([
      true,
      true,
      true,
      true,
    ])
    assert.isAbove(done.filter((name) => name === "write").length, 1_000)
  })

  it("does not wait for a machine that accepts nothing more", () => {
    const folder = fresh()
    const { files } = faultyCalls({ writeBytesMax: 0 })
    assert.strictEqual(
      complaint(folder, () => files.write(join(folder, "f"), text, 0o600)),
      "f: cannot write: no more bytes can be written",
    )
  })

  it("has the requested mode, whatever was there before and whatever the machine masks [promise 12 modes]", () => {
    const folder = fresh()
    const { files } = faultyCalls({})
    const file = join(folder, "manifest.json.tmp")
    writeFileSync(file, "left behind")
    chmodSync(file, 0o666)
    files.write(file, "new", 0o600)
    const tables = join(folder, "tables")
    mkdirSync(tables)
    chmodSync(tables, 0o777)
    files.makeFolder(tables, 0o750)
    // No umask leaves a bit for everybody: only a mode that is set can have it.
    const open = join(folder, "open.json")
    files.write(open, "new", 0o666)
    assert.deepStrictEqual([file, tables, open].map(modeOf), ["600", "750", "666"])
  })
})

describe("a file that is replaced", () => {
  it("is the complete old or new version, whichever step fails, and the error says which", () => {
    const eio = (step: string, outcome: string) => `summary.json: cannot ${step}: i/o error (EIO); ${outcome}`
    const kept = "the file is as it was before"
    const unsure = "the new file is in place, but a power failure may undo it"
    const steps: ReadonlyArray<readonly [name: CallName, said: string, stands: "old" | "new"]> = [
      ["open", eio("open", kept), "old"],
      ["setMode", eio("set the mode", kept), "old"],
      ["write", eio("write", kept), "old"],
      ["sync", eio("sync", kept), "old"],
      ["close", eio("close", kept), "old"],
      ["rename", eio("rename", kept), "old"],
      ["open", eio("open", unsure), "new"],
      ["sync", eio("sync the folder", unsure), "new"],
      ["close", eio("close", unsure), "new"],
    ]
    const found = steps.map(([name], index) => {
      const folder = fresh()
      const path = join(folder, "summary.json")
      writeFileSync(path, "old")
      const { files, done } = faultyCalls(once(name, index + 1))
      const said = complaint(folder, () => files.replace(path, "new", 0o600))
      return [done[index], said, readFileSync(path, "utf8"), ...readdirSync(folder)]
    })
    expect(found).toStrictEqual(steps.map((step) => [...step, "summary.json"]))
  })
})

it("a file that is new never overwrites an existing one, and no half of it is left", () => {
  const folder = fresh()
  const path = join(folder, "job.yaml")
  const created = (faults: Faults) => complaint(folder, () => faultyCalls(faults).files.create(path, text))
  for (const [index, name] of (["write", "sync", "close"] as const).entries()) {
    assert.include(created(once(name, index + 2)), `job.yaml: cannot ${name}: `)
    assert.isFalse(existsSync(path))
  }
  writeFileSync(path, "mine")
  assert.strictEqual(created({}), "job.yaml: cannot open: file already exists (EEXIST)")
  assert.strictEqual(readFileSync(path, "utf8"), "mine")
})

describe("a file that grows", () => {
  it("keeps no half of a failed append, even if it could not be cut off at once", () => {
    const folder = fresh()
    const path = join(folder, "log.ndjson")
    writeFileSync(path, "before\n")
    const broken = { isBroken: false }
    const { files } = faultyCalls({
      writeBytesMax: 3,
      refuse: (name, nth) =>
        broken.isBroken && (name === "cut" || (name === "write" && nth % 2 === 0))
          ? refusal("EIO", name)
          : undefined,
    })
    const log = files.append(path, "a", 0o600)
    log.append("first\n")
    const whole = log.size
    broken.isBroken = true
    const appended = (line: string) => complaint(folder, () => log.append(line))
    assert.strictEqual(appended("second\n"), "log.ndjson: cannot write: i/o error (EIO)")
    assert.isAbove(statSync(path).size, whole)
    assert.strictEqual(appended("third\n"), "log.ndjson: cannot cut: i/o error (EIO)")
    broken.isBroken = false
    log.append("fourth\n")
    log.close()
    assert.strictEqual(readFileSync(path, "utf8"), "before\nfirst\nfourth\n")
  })

  live("reports that it could not be synced", function* () {
    const path = join(fresh(), "segment")
    const { files } = faultyCalls({
      refuse: (name) => (name === "syncData" ? refusal("EIO", name) : undefined),
    })
    const file = files.append(path, "ax", 0o600)
    file.append("frame")
    expect(yield* Effect.flip(file.sync)).toStrictEqual(
      new FileFailed({ path, step: "sync", code: "EIO", reason: "i/o error (EIO)" }),
    )
    file.close()
  })
})

describe("a file that somebody else wrote", () => {
  live("gets its mode and is synced, or the failed step is reported", function* () {
    const path = join(fresh(), "nightjar.duckdb.build")
    writeFileSync(path, "database")
    chmodSync(path, 0o666)
    const told: Array<string> = []
    for (const [failing, name] of (["setMode", "open", "syncData", "sync"] as const).entries()) {
      const { files } = faultyCalls(once(name, failing + 1))
      told.push((yield* Effect.flip(files.settle(path, 0o640))).step)
    }
    assert.deepStrictEqual(told, ["set the mode", "open", "sync", "sync"])
    const { files, done } = faultyCalls({})
    yield* files.settle(path, 0o640)
    assert.deepStrictEqual([modeOf(path), done], ["640", ["setMode", "open", "syncData", "sync", "close"]])
  })
})

describe("a folder that is made", () => {
  it("is synced into its parent, and so is each folder that was missing above it", () => {
    const folder = fresh()
    const { files, done } = faultyCalls({})
    files.makeFolder(join(folder, "a/b"), 0o700)
    const synced = ["makeFolder", "open", "sync", "close"] as const
    assert.deepStrictEqual(done, [...synced, ...synced, "setMode"])
  })

  it("is left alone if another process created it and its entry cannot be synced", () => {
    const folder = fresh()
    const path = join(folder, "theirs")
    const { calls } = faultyCalls({ refuse: (name) => (name === "sync" ? refusal("EIO", name) : undefined) })
    const theirs = {
      ...calls,
      makeFolder: (made: string, mode: number) => {
        mkdirSync(made, mode)
        calls.makeFolder(made, mode)
      },
    }
    const told = complaint(folder, () => new DurableFiles(theirs).makeFolder(path, 0o700))
    expect([told, existsSync(path)]).toEqual([`${folder}: cannot sync the folder: i/o error (EIO)`, true])
  })

  it("is reported if it cannot be created or synced", () => {
    const folder = fresh()
    const told = (["makeFolder", "open", "sync"] as const).map((name, index) => {
      const { files } = faultyCalls(once(name, index + 1))
      return complaint(folder, () => files.makeFolder(join(folder, name), 0o700))
    })
    assert.deepStrictEqual(told, [
      "makeFolder: cannot make the folder: i/o error (EIO)",
      `${folder}: cannot open: i/o error (EIO)`,
      `${folder}: cannot sync the folder: i/o error (EIO)`,
    ])
  })
})
