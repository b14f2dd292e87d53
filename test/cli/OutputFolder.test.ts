/** Which folders nightjar takes for its own, and that it changes nothing in any other. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { markerName, markerState, prepareOutput } from "../../src/cli/OutputFolder.ts"
import { faultyCalls, refusingFrom, withCalls } from "../base/FaultyCalls.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { effect } from "../harness/Steps.ts"

const roots: Array<string> = []
afterEach(() => roots.splice(0).forEach((root) => rmSync(root, { recursive: true, force: true })))

/** A folder with these files in it and this mode. */
const folderWith = (mode: number, ...names: ReadonlyArray<string>): string => {
  const root = mkdtempSync(join(tmpdir(), "nightjar-guard-"))
  roots.push(root)
  const folder = join(root, "folder")
  mkdirSync(folder)
  for (const name of names) {
    mkdirSync(join(folder, name, ".."), { recursive: true })
    writeFileSync(join(folder, name), "x")
  }
  chmodSync(folder, mode)
  return folder
}
const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8)
const prepared = (output: string) => Effect.runSync(Effect.result(prepareOutput(output, ["none"])))
const refusedAs = (output: string) => {
  const result = prepared(output)
  return result._tag === "Failure" ? `${result.failure._tag}: ${result.failure.message}` : "prepared"
}

describe("a folder that is not ours", () => {
  it("is not changed, and the error says why", () => {
    const folder = folderWith(0o755, "b.txt", "a.txt", "d/e", "c.txt")
    expect(refusedAs(folder)).toBe(
      `Refused: ${folder} is not an output folder of nightjar: ` +
        "it contains a.txt, b.txt, c.txt and 1 more",
    )
    expect([modeOf(folder), readdirSync(folder).toSorted()]).toEqual([
      "755",
      ["a.txt", "b.txt", "c.txt", "d"],
    ])
  })

  it("is any folder that everybody shares, even an empty one", () => {
    const folder = folderWith(0o1777)
    expect(refusedAs(folder)).toBe(`Refused: ${folder} is shared with others (mode 1777)`)
    expect([modeOf(folder), readdirSync(folder)]).toEqual(["1777", []])
  })

  it("may be a file", () => {
    const file = join(folderWith(0o755, "file"), "file")
    chmodSync(file, 0o666)
    expect(refusedAs(file)).toBe(`Refused: ${file} is not a folder`)
    expect([modeOf(file), readFileSync(file, "utf8")]).toEqual(["666", "x"])
  })
})

describe("a folder that is ours", () => {
  it.each([
    ["is not there yet", (root: string) => join(root, "new/output")],
    ["is empty", (root: string) => root],
  ])("because it %s: marked, then closed to others", (_, place) => {
    const folder = place(folderWith(0o755))
    expect(refusedAs(folder)).toBe("prepared")
    expect([modeOf(folder), readdirSync(folder).toSorted(), markerState(folder)]).toEqual([
      "700",
      [markerName, "runs"],
      "marked",
    ])
  })

  it("because it contains only a page about it, as in a checkout", () => {
    const folder = folderWith(0o755, "README.md", ".gitignore")
    expect([refusedAs(folder), markerState(folder)]).toEqual(["prepared", "marked"])
  })

  it("because it is marked, whatever else it contains", () => {
    const folder = folderWith(0o755)
    prepared(folder)
    writeFileSync(join(folder, "notes.txt"), "x")
    chmodSync(folder, 0o755)
    expect([refusedAs(folder), modeOf(folder)]).toEqual(["prepared", "700"])
  })

  it("because an earlier version worked there, or the marker was damaged since: it is marked again", () => {
    const folder = folderWith(0o755, "ledger.sqlite", "runs/x", "landing/x")
    expect([refusedAs(folder), markerState(folder)]).toEqual(["prepared", "marked"])
    writeFileSync(join(folder, markerName), "nightjar output golder\n")
    expect(markerState(folder)).toBe("damaged")
    expect([refusedAs(folder), markerState(folder)]).toEqual(["prepared", "marked"])
  })
})

it("a ledger that is missing is reported if there are bodies or tables, and never replaced", () => {
  const ours = folderWith(0o700)
  prepared(ours)
  const told: Array<string> = []
  for (const name of ["landing", "tables"]) {
    mkdirSync(join(ours, name))
    told.push(refusedAs(ours))
    writeFileSync(join(ours, name, "x"), "x")
    told.push(refusedAs(ours))
    rmSync(join(ours, name), { recursive: true })
  }
  writeFileSync(join(ours, "nightjar.duckdb"), "x")
  told.push(refusedAs(ours))
  expect(told.map((text) => /the folder contains .*/.exec(text)?.[0] ?? text)).toEqual([
    "prepared",
    "the folder contains landing",
    "prepared",
    "the folder contains tables",
    "the folder contains nightjar.duckdb",
  ])
  expect(existsSync(join(ours, "ledger.sqlite"))).toBe(false)
})

const base = sharedFolder()
const fresh = (): string => mkdtempSync(join(base, "o-"))

effect(
  "the folder of reports and logs is shared with the group, unless the tables have pseudonyms",
  function* () {
    const output = join(fresh(), "new")
    const modes = () => [output, join(output, "runs")].map((path) => statSync(path).mode & 0o777)
    yield* prepareOutput(output, ["group"])
    assert.deepStrictEqual(modes(), [0o750, 0o750])
    writeFileSync(join(output, "pseudonyms.json"), "{}")
    yield* prepareOutput(output, ["group"])
    assert.deepStrictEqual(modes(), [0o750, 0o700])
  },
)

effect.each(["link", "symlink"] as const)(
  "a new folder on a file system without links is refused before anything starts: %s [refused links]",
  function* (kind) {
    const { calls } = faultyCalls({
      refuse: (name) => (name === kind ? Object.assign(new Error("no"), { code: "EPERM" }) : undefined),
    })
    const output = join(fresh(), "new")
    const refused = yield* Effect.flip(withCalls(calls)(prepareOutput(output, ["none"])))
    assert.match(refused.message, /^the output folder .*new cannot be used \(.*: cannot link: /)
    assert.deepStrictEqual(readdirSync(output), [])
  },
)

effect(
  "an output folder that cannot be claimed is reported at whichever step the disk fails, and contains no half marker",
  function* () {
    const undisturbed = faultyCalls({})
    yield* withCalls(undisturbed.calls)(prepareOutput(join(fresh(), "new"), ["none"]))
    const steps = undisturbed.done.length
    assert.isAbove(steps, 10)
    for (let failing = 1; failing <= steps; failing++) {
      const output = join(fresh(), "new")
      const { _tag, message } = yield* Effect.flip(
        withCalls(refusingFrom(failing).calls)(prepareOutput(output, ["none"])),
      )
      assert.strictEqual(_tag, "Refused")
      assert.match(message, /^the output folder cannot be written: .*: cannot .* i\/o error \(EIO\)/)
      const marker = join(output, ".nightjar")
      if (existsSync(marker))
        assert.match(readFileSync(marker, "utf8"), /\nNightjar writes everything else.*\n$/)
      yield* prepareOutput(output, ["none"])
      assert.deepStrictEqual(
        readdirSync(output).filter((name) => !name.endsWith(".tmp")),
        [".nightjar", "runs"],
      )
    }
  },
)
