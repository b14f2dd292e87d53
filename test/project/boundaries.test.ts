/**
 * Proves that the linter really refuses what the house forbids: every rule of `oxlint.config.ts` is broken
 * once in a temporary folder of the same layout, and the complaints are compared whole.
 */
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "boundaries-"))

/** The README's order, written down a second time on purpose. */
const order =
  "contract secrets duckdb jobs ledger planning scheduling client landing records execution publishing report acquaint sandbox cli".split(
    " ",
  )
const mayImport = (room: string) => (room === "sandbox" ? ["contract"] : order.slice(0, order.indexOf(room)))

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

const machine = ["@duckdb/node-api", "p-limit", "node:sqlite", "node:fs", "node:fs/promises", "vitest"]
const lookups = ["../Nightly.ts", "../Settings.ts", "../main.ts", "../../test/x.ts"]
const long = (lines: number) => Array.from({ length: lines }, (_, index) => `  use(${index})\n`).join("")

const files: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    order.map((room) => [
      `src/${room}/Breaks.ts`,
      importing([...order.map((other) => `../${other}/X.ts`), ...lookups, ...machine]),
    ]),
  ),
  "src/landing/LandingMemory.ts": importing(["node:fs", "../ledger/Fact.ts"]),
  "src/night/Nightly.ts": importing(["./cli/run.ts", "./main.ts", "./publishing/X.ts", "@duckdb/node-api"]),
  "src/main.ts": importing(["./cli/run.ts", "./Nightly.ts", "./sandbox/X.ts", "p-limit"]),
  "src/jobs/Impure.ts":
    "export const all = [Date.now(), Math.random(), performance.now(), crypto.randomUUID(), process.hrtime()]\n" +
    "setTimeout(() => {}, 1)\nsetInterval(() => {}, 1)\nqueueMicrotask(() => {})\nconsole.log(fetch)\n" +
    "globalThis.setImmediate(() => {})\n",
  "src/jobs/Default.ts": "export default 1\n",
  "src/jobs/LongFile.ts": `const use = (n: number) => n\n${long(300)}`,
  "src/jobs/LongFunction.ts": `const use = (n: number) => n\nexport const f = () => {\n${long(69)}}\n`,
  "src/jobs/Any.ts": "export const a: any = 1\n",
  "src/jobs/CycleA.ts": 'import { b } from "./CycleB.ts"\nexport const a = () => b\n',
  "src/jobs/CycleB.ts": 'import { a } from "./CycleA.ts"\nexport const b = () => a\n',
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
  for (const room of order) {
    it(`src/${room} may import only the rooms above it`, () => {
      const allowed = mayImport(room)
        .concat(room)
        .map((other) => `../${other}/X.ts`)
      const pure = ["contract", "planning", "scheduling", "execution", "report"].includes(room)
      if (room === "cli") allowed.push("../Nightly.ts", "../Settings.ts")
      if (room === "duckdb") allowed.push("@duckdb/node-api", "p-limit")
      if (room === "ledger") allowed.push("node:sqlite")
      if (!pure) allowed.push("node:fs", "node:fs/promises")
      const all = [...order.map((other) => `../${other}/X.ts`), ...lookups, ...machine]
      expect(refusedImports(`src/${room}/Breaks.ts`)).toEqual(
        all.filter((one) => !allowed.includes(one)).toSorted(),
      )
    })
  }

  it("the memory layer of landing never touches a disk", () => {
    expect(refusedImports("src/landing/LandingMemory.ts")).toEqual(["node:fs"])
  })

  it("the pipeline knows neither commands nor wiring nor DuckDB, and the wiring knows every room", () => {
    expect(refusedImports("src/night/Nightly.ts")).toEqual(["./cli/run.ts", "./main.ts", "@duckdb/node-api"])
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
    }).toEqual({
      file: ["eslint(max-lines)"],
      function: ["eslint(max-lines-per-function)"],
      default: ["import(no-default-export)"],
      any: ["typescript(no-explicit-any)"],
      cycle: ["import(no-cycle)"],
    })
  })
})
