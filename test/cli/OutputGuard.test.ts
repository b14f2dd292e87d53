/** Which folders nightjar takes for its own, and that it changes nothing in any other. */
import { afterEach, describe, expect, it } from "vitest"
import { Effect } from "effect"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { markerName, markerState, prepareOutput } from "../../src/cli/OutputFolder.ts"

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
const refusal = (output: string) => {
  const result = prepared(output)
  return result._tag === "Failure" ? `${result.failure._tag}: ${result.failure.message}` : "prepared"
}

describe("a folder that is not ours", () => {
  it("is not changed, and the error says why", () => {
    const folder = folderWith(0o755, "b.txt", "a.txt", "d/e", "c.txt")
    expect(refusal(folder)).toBe(
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
    expect(refusal(folder)).toBe(`Refused: ${folder} is shared with others (mode 1777)`)
    expect([modeOf(folder), readdirSync(folder)]).toEqual(["1777", []])
  })

  it("may be a file", () => {
    const file = join(folderWith(0o755, "file"), "file")
    chmodSync(file, 0o666)
    expect(refusal(file)).toBe(`Refused: ${file} is not a folder`)
    expect([modeOf(file), readFileSync(file, "utf8")]).toEqual(["666", "x"])
  })
})

describe("a folder that is ours", () => {
  it.each([
    ["is not there yet", (root: string) => join(root, "new/output")],
    ["is empty", (root: string) => root],
  ])("because it %s: marked, then closed to others", (_, place) => {
    const folder = place(folderWith(0o755))
    expect(refusal(folder)).toBe("prepared")
    expect([modeOf(folder), readdirSync(folder).toSorted(), markerState(folder)]).toEqual([
      "700",
      [markerName, "runs"],
      "marked",
    ])
  })

  it("because it contains only a page about it, as in a checkout", () => {
    const folder = folderWith(0o755, "README.md", ".gitignore")
    expect([refusal(folder), markerState(folder)]).toEqual(["prepared", "marked"])
  })

  it("because it is marked, whatever else it contains", () => {
    const folder = folderWith(0o755)
    prepared(folder)
    writeFileSync(join(folder, "notes.txt"), "x")
    chmodSync(folder, 0o755)
    expect([refusal(folder), modeOf(folder)]).toEqual(["prepared", "700"])
  })

  it("because an earlier version worked there, or the marker was damaged since: it is marked again", () => {
    const folder = folderWith(0o755, "ledger.sqlite", "runs/x", "landing/x")
    expect([refusal(folder), markerState(folder)]).toEqual(["prepared", "marked"])
    writeFileSync(join(folder, markerName), "nightjar output golder\n")
    expect(markerState(folder)).toBe("damaged")
    expect([refusal(folder), markerState(folder)]).toEqual(["prepared", "marked"])
  })
})

describe("a ledger that is missing", () => {
  it("is reported if there are bodies or tables, and never replaced", () => {
    const ours = folderWith(0o700)
    prepared(ours)
    const told: Array<string> = []
    for (const name of ["landing", "tables"]) {
      mkdirSync(join(ours, name))
      told.push(refusal(ours))
      writeFileSync(join(ours, name, "x"), "x")
      told.push(refusal(ours))
      rmSync(join(ours, name), { recursive: true })
    }
    writeFileSync(join(ours, "nightjar.duckdb"), "x")
    told.push(refusal(ours))
    expect(told.map((text) => /the folder contains .*/.exec(text)?.[0] ?? text)).toEqual([
      "prepared",
      "the folder contains landing",
      "prepared",
      "the folder contains tables",
      "the folder contains nightjar.duckdb",
    ])
    expect(existsSync(join(ours, "ledger.sqlite"))).toBe(false)
  })
})
