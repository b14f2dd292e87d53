/**
 * Proves that the linter really refuses what the house forbids: every rule of `oxlint.config.ts` is broken
 * once in a temporary folder of the same layout, and the complaints are compared whole.
 */
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "boundaries-"))

/** The order of the rooms, written down a second time on purpose. */
const order =
  "base service messages sandbox privacy jobs ledger client tokens landing records task tables report folder run cli".split(
    " ",
  )
const inside = "state engines data faults readings core executions tokens flows hooks admin server".split(" ")
const above = (room: string) =>
  room === "sandbox"
    ? ["base", "service"]
    : order.slice(0, order.indexOf(room)).filter((other) => other !== "sandbox" || room === "cli")
const pure = ["service", "task", "report"]
const ofTables = ["base", "jobs", "records", "tables", "cli"]
const ofSqlite = ["ledger", "tokens", "base"]

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

interface Complaint {
  readonly code: string
  readonly filename: string
  readonly message: string
}

const lint = (): ReadonlyArray<Complaint> => {
  const bin = join(root, "node_modules/oxlint/bin/oxlint")
  const run = spawnSync(process.execPath, [bin, "-f", "json"], { cwd: folder, encoding: "utf8" })
  expect({ status: run.status, stderr: run.stderr }).toEqual({ status: 1, stderr: "" })
  return (JSON.parse(run.stdout) as { diagnostics: ReadonlyArray<Complaint> }).diagnostics
}

const importing = (specifiers: ReadonlyArray<string>) =>
  specifiers.map((specifier, index) => `export { x as x${index} } from "${specifier}"\n`).join("")

const machine = "@duckdb/node-api apache-arrow p-limit node:sqlite node:fs node:fs/promises vitest".split(" ")
/** One of every room's files, as a file so many folders below `src` names it. */
const roomsFrom = (depth: number) => order.map((other) => `${"../".repeat(depth)}${other}/X.ts`)
const lookups = (depth: number) => [
  `${"../".repeat(depth)}main.ts`,
  `${"../".repeat(depth + 1)}test/x.ts`,
  `${"../".repeat(depth + 1)}src/cli/X.ts`,
]
const everything = (depth: number) => [...roomsFrom(depth), ...lookups(depth), ...machine]
const insideRooms = inside.map((other) => `../${other}/X.ts`)
const long = (lines: number) => Array.from({ length: lines }, (_, index) => `  use(${index})\n`).join("")

const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    order.flatMap((room) =>
      room === "sandbox" ? [] : [[`src/${room}/Breaks.ts`, importing(everything(1))] as const],
    ),
  ),
  ...Object.fromEntries(
    inside.map((room) => [`src/sandbox/${room}/Breaks.ts`, importing([...everything(2), ...insideRooms])]),
  ),
  "src/cli/commands/Breaks.ts": importing([...everything(2), "../Output.ts"]),
  "src/cli/Kit.ts": importing(["./commands/Run.ts", "./Output.ts"]),
  "src/cli/Nightjar.ts": importing(["./commands/Run.ts", "./Output.ts"]),
  "src/Loose.ts": importing(["./jobs/Job.ts", "effect"]),
  "src/cellar/Breaks.ts": importing(["../jobs/Job.ts", "effect"]),
  "src/jobs/deeper/Breaks.ts": importing(["../Job.ts", "../../cli/Output.ts"]),
  "src/sandbox/Loose.ts": importing(["../service/Api.ts", "./state/X.ts"]),
  "src/landing/Landing.ts": importing(["node:fs", "../ledger/Fact.ts"]),
  "src/main.ts": importing(["./cli/run.ts", "./night/Nightly.ts", "./sandbox/server/X.ts", "p-limit"]),
  "src/jobs/Impure.ts":
    "export const all = [Date.now(), Math.random(), performance.now(), crypto.randomUUID(), process.hrtime()]\n" +
    "setTimeout(() => {}, 1)\nsetInterval(() => {}, 1)\nqueueMicrotask(() => {})\nconsole.log(fetch)\n" +
    "globalThis.setImmediate(() => {})\n",
  "src/jobs/Default.ts": "export default 1\n",
  "src/jobs/LongFile.ts": `const use = (n: number) => n\n${long(500)}`,
  "src/jobs/LongFunction.ts": `const use = (n: number) => n\nexport const f = () => {\n${long(69)}}\n`,
  "src/jobs/Any.ts": "export const a: any = 1\n",
  "src/jobs/CycleA.ts": 'import { b } from "./CycleB.ts"\nexport const a = () => b\n',
  "src/jobs/CycleB.ts": 'import { a } from "./CycleA.ts"\nexport const b = () => a\n',
  "src/jobs/TypeCycleA.ts":
    'import type { B } from "./TypeCycleB.ts"\nexport interface A { readonly b: B }\n',
  "src/jobs/TypeCycleB.ts":
    'import type { A } from "./TypeCycleA.ts"\nexport interface B { readonly a: A }\n',
}

let complaints: ReadonlyArray<Complaint> = []
beforeAll(() => {
  cpSync(join(root, "oxlint.config.ts"), join(folder, "oxlint.config.ts"))
  for (const [path, text] of Object.entries(files)) write(path, text)
  complaints = lint()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const refusedImports = (file: string) =>
  complaints
    .filter((one) => one.filename === file && one.code === "eslint(no-restricted-imports)")
    .map((one) => /^'([^']+)'/.exec(one.message)?.[1])
    .toSorted()

describe("boundaries", () => {
  for (const room of order.filter((one) => one !== "sandbox")) {
    it(`src/${room} may import only the rooms above it, and the embedded service only if it is cli`, () => {
      const allowed = [room, ...above(room)].map((other) => `../${other}/X.ts`)
      if (room === "base") allowed.push("@duckdb/node-api", "p-limit")
      if (ofTables.includes(room)) allowed.push("apache-arrow")
      if (ofSqlite.includes(room)) allowed.push("node:sqlite")
      if (!pure.includes(room)) allowed.push("node:fs", "node:fs/promises")
      expect(refusedImports(`src/${room}/Breaks.ts`)).toEqual(
        everything(1)
          .filter((one) => !allowed.includes(one))
          .toSorted(),
      )
    })
  }

  for (const room of inside) {
    it(`src/sandbox/${room} may import only the service, the base and the sandbox's rooms below it`, () => {
      const below = inside.slice(0, inside.indexOf(room) + 1)
      const allowed = [
        ...["sandbox", ...above("sandbox")].map((other) => `../../${other}/X.ts`),
        ...below.map((other) => `../${other}/X.ts`),
        "node:fs",
        "node:fs/promises",
      ]
      expect(refusedImports(`src/sandbox/${room}/Breaks.ts`)).toEqual(
        [...everything(2), ...insideRooms].filter((one) => !allowed.includes(one)).toSorted(),
      )
    })
  }

  it("commands import shared code and every room; shared code imports no commands, except the list of them", () => {
    expect(refusedImports("src/cli/commands/Breaks.ts")).toEqual(
      ["../../main.ts", "../../../test/x.ts", "../../../src/cli/X.ts", "@duckdb/node-api", "p-limit"]
        .concat("node:sqlite", "vitest")
        .toSorted(),
    )
    expect(refusedImports("src/cli/Kit.ts")).toEqual(["./commands/Run.ts"])
    expect(refusedImports("src/cli/Nightjar.ts")).toEqual([])
  })

  it("a file outside all rooms may import nothing", () => {
    expect({
      loose: refusedImports("src/Loose.ts"),
      unknown: refusedImports("src/cellar/Breaks.ts"),
      deeper: refusedImports("src/jobs/deeper/Breaks.ts"),
      before: refusedImports("src/sandbox/Loose.ts"),
    }).toEqual({
      loose: ["./jobs/Job.ts", "effect"],
      unknown: ["../jobs/Job.ts", "effect"],
      deeper: ["../../cli/Output.ts", "../Job.ts"],
      before: ["../service/Api.ts", "./state/X.ts"],
    })
  })

  it("the port of landing never touches a disk", () => {
    expect(refusedImports("src/landing/Landing.ts")).toEqual(["node:fs"])
  })

  it("the wiring knows every room", () => {
    expect(refusedImports("src/main.ts")).toEqual(["p-limit"])
  })

  it("time, randomness, timers, fetch and console are refused in src", () => {
    const named = complaints
      .filter((one) => one.filename === "src/jobs/Impure.ts")
      .map((one) => `${one.code} ${/'([^']+)'/.exec(one.message)?.[1]}`)
      .toSorted()
    expect(named).toEqual([
      "eslint(no-restricted-globals) console",
      "eslint(no-restricted-globals) fetch",
      "eslint(no-restricted-globals) queueMicrotask",
      "eslint(no-restricted-globals) setImmediate",
      "eslint(no-restricted-globals) setInterval",
      "eslint(no-restricted-globals) setTimeout",
      "eslint(no-restricted-properties) Date.now",
      "eslint(no-restricted-properties) Math.random",
      "eslint(no-restricted-properties) crypto.randomUUID",
      "eslint(no-restricted-properties) performance.now",
      "eslint(no-restricted-properties) process.hrtime",
    ])
  })

  it("long files, long functions, default exports, any and import cycles are refused in src", () => {
    const codes = (file: string) => complaints.filter((one) => one.filename === file).map((one) => one.code)
    expect({
      file: codes("src/jobs/LongFile.ts"),
      function: codes("src/jobs/LongFunction.ts"),
      default: codes("src/jobs/Default.ts"),
      any: codes("src/jobs/Any.ts"),
      cycle: codes("src/jobs/CycleA.ts"),
      ofTypes: codes("src/jobs/TypeCycleA.ts"),
    }).toEqual({
      file: ["eslint(max-lines)"],
      function: ["eslint(max-lines-per-function)"],
      default: ["import(no-default-export)"],
      any: ["typescript(no-explicit-any)"],
      cycle: ["import(no-cycle)"],
      ofTypes: ["import(no-cycle)"],
    })
  })

  it("src holds these rooms and the wiring, and the sandbox its own; the pages name them in this order", () => {
    const roomsOn = (page: string) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/^\| `([a-z]+)\/`/gm)].map(([, room]) => room)
    expect(readdirSync(join(root, "src")).toSorted()).toEqual([...order, "README.md", "main.ts"].toSorted())
    expect(readdirSync(join(root, "src/sandbox")).toSorted()).toEqual([...inside, "README.md"].toSorted())
    expect(roomsOn("src/README.md")).toEqual(order)
    expect(roomsOn("src/sandbox/README.md")).toEqual(inside)
  })

  it("tests mirror src: a folder below test is a room, or one of the kinds of tests that span rooms", () => {
    const spanning =
      "acceptance attack bench canaries conformance faults harness hostile mutants oracle project promises simulation".split(
        " ",
      )
    const folders = readdirSync(join(root, "test"), { withFileTypes: true })
    expect(folders.filter((one) => !one.isDirectory())).toEqual([])
    expect(
      folders.map(({ name }) => name).filter((name) => !order.includes(name) && !spanning.includes(name)),
    ).toEqual([])
    const sandboxTests = readdirSync(join(root, "test/sandbox"))
    expect(sandboxTests.filter((name) => !inside.includes(name))).toEqual([])
  })
})
