/**
 * What starting the command costs: help is printed without the program, and no command loads what it does not need.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { command } from "../acceptance/BuiltCommand.ts"

const checkout = fileURLToPath(new URL("../../", import.meta.url))
const program = join(dirname(command), "program.js")
const folder = mkdtempSync(join(tmpdir(), "startup-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const nodeRuns = (args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = {}) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: checkout,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], ...env },
  })
  return { status, stdout, stderr }
}

describe("help", () => {
  // Without a program beside it, the launcher can only print.
  for (const name of ["nightjar.js", "help.json"])
    copyFileSync(join(dirname(command), name), join(folder, name))
  writeFileSync(join(folder, "package.json"), '{"type":"module"}')
  const launcher = join(folder, "nightjar.js")

  it.for([
    [["--help"], {}],
    [["tokens", "list", "-h"], { FORCE_COLOR: "1" }],
    [["--version"], { FORCE_COLOR: "1", TERM: "dumb" }],
  ] satisfies ReadonlyArray<[ReadonlyArray<string>, NodeJS.ProcessEnv]>)(
    "is printed without the program, exactly as the program prints it: %j",
    ([args, env]) => {
      const asked = nodeRuns([program, ...args], env)
      expect(asked).toMatchObject({ status: 0, stderr: "" })
      expect(nodeRuns([launcher, ...args], env)).toEqual(asked)
    },
  )

  it("has a page for every command that is listed", () => {
    const pages = JSON.parse(readFileSync(join(folder, "help.json"), "utf8")) as Record<string, string>
    const [, ...groups] = nodeRuns([launcher, "--help"]).stdout.split(/^[A-Z][a-z]+:$/m)
    const lines = groups.join("").matchAll(/^ {2}([a-z]*) {2,}(.*)$/gm)
    const names = [...lines].flatMap(([, name = "", said = ""]) =>
      name === "" || name === "also" ? said.split(/, ?/).filter((one) => one !== "") : [name],
    )
    const asked = Object.keys(pages).filter((page) => /^[a-z]+ --help$/.test(page))
    expect({ groups: groups.length, names: names.toSorted() }).toEqual({
      groups: 5,
      names: asked.map((page) => page.replace(" --help", "")).toSorted(),
    })
    expect(names.length).toBeGreaterThan(15)
  })

  it("comes from the program if anything else is on the command line", () => {
    const { status, stderr } = nodeRuns([launcher, "run", "--output", "x", "--help"])
    expect({ status, loaded: /Cannot find module '.*program\.js'/.test(stderr) }).toEqual({
      status: 1,
      loaded: true,
    })
  })

  it("takes at most 2.5 times the processor time of a bare Node", () => {
    const meter = join(folder, "meter.cjs")
    writeFileSync(
      meter,
      "process.on('exit', () => { const { user, system } = process.cpuUsage(); " +
        "require('node:fs').writeSync(2, String(user + system)) })",
    )
    const spent = (...args: ReadonlyArray<string>) => Number(nodeRuns(["--require", meter, ...args]).stderr)
    const rounds = Array.from({ length: 3 }, () => ({
      bare: spent("-e", "0"),
      help: spent(command, "--help"),
    }))
    const median = (values: ReadonlyArray<number>) =>
      values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN
    const ratio = median(rounds.map(({ help }) => help)) / median(rounds.map(({ bare }) => bare))
    expect(ratio).toBeGreaterThan(0.5)
    expect(ratio).toBeLessThan(2.5)
  })
})

describe("a command loads only what it needs", () => {
  /** The addresses that a program has loaded when it ends. */
  const urlsLoadedBy = (...args: ReadonlyArray<string>) => {
    const list = join(folder, "loaded.txt")
    const recorder = join(folder, "recorder.mjs")
    writeFileSync(
      recorder,
      `import { registerHooks } from "node:module"
import { writeFileSync } from "node:fs"
const urls = []
registerHooks({ load: (url, context, next) => { urls.push(url); return next(url, context) } })
process.on("exit", () => writeFileSync(${JSON.stringify(list)}, urls.join("\\n")))
const write = process.stdout.write.bind(process.stdout)
process.stdout.write = (text, ...more) => {
  if (String(text).includes("base_url")) setTimeout(() => process.kill(process.pid, "SIGTERM"), 1)
  return write(text, ...more)
}
`,
    )
    const { status } = nodeRuns(["--import", recorder, ...args])
    return { status, urls: readFileSync(list, "utf8").split("\n") }
  }

  /** The packages and rooms of a command, from the sources, in which each has its path. */
  const loadedBy = (...args: ReadonlyArray<string>) => {
    const { status, urls: paths } = urlsLoadedBy("src/main.ts", ...args)
    const packages = paths.map((path) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    const sources = paths.map((path) => /\/src\/([a-z]+\/.+)$/.exec(path)?.[1])
    const rooms = sources.map((path) => path?.split("/")[0])
    const named = (names: ReadonlyArray<string | undefined>) =>
      [...new Set(names.filter((name) => name !== undefined))].toSorted()
    return { status, packages: named(packages), rooms: named(rooms), sources: named(sources) }
  }

  it("the embedded service as a server: neither DuckDB nor Arrow", () => {
    const { status, packages, rooms, sources } = loadedBy("sandbox", "--port", "0")
    expect(status).toBe(143)
    expect(packages).toEqual(expect.arrayContaining(["effect", "yaml"]))
    expect(rooms).toEqual(expect.arrayContaining(["sandbox"]))
    const heavy = /duckdb|arrow|parquet|^(?:tables|landing|run)$/
    expect([...packages, ...rooms].filter((name) => heavy.test(name))).toEqual([])
    for (const unneeded of ["base/DuckDb", "client/EngineForms", "task/ExecuteRun", "task/Schedule"])
      expect(sources).not.toContain(`${unneeded}.ts`)
  })

  it("a run whose job has no `telemetry`: nothing of it", () => {
    const job = join(folder, "one.yaml")
    writeFileSync(
      job,
      `name: one
service: { sandbox: { seed: 3, speed: 20000 } }
engines: [sandbox-bank:website]
record_schemas: []
customers: [{ id: c-1, parameters: { username: ok+records-1, password: anything } }]
`,
    )
    const { status, rooms, sources } = loadedBy(
      "run",
      job,
      "--output",
      join(folder, "output"),
      "--no-progress",
    )
    expect(status).toBe(0)
    expect(rooms).toEqual(expect.arrayContaining(["task", "tables"]))
    expect(sources).toContain("report/Summary.ts")
    expect(sources).not.toContain("report/Telemetry.ts")
    expect(sources).not.toContain("report/Spans.ts")
  })

  it("status: neither what sends requests nor what runs a night", () => {
    const { packages, sources } = loadedBy("status", "--output", join(folder, "none"))
    expect(packages).toEqual(["@effect/platform-node", "@effect/platform-node-shared", "effect"])
    expect(sources).toContain("report/Summary.ts")
    const unneeded = [
      "client/CallFailures.ts",
      "client/Service.ts",
      "task/DeleteExecutions.ts",
      "tokens/TokenStore.ts",
    ]
    expect(sources.filter((name) => unneeded.includes(name))).toEqual([])
  })

  it("status: few files of the build", () => {
    const { urls } = urlsLoadedBy(command, "status", "--output", join(folder, "none"))
    const sizes = urls.filter((url) => url.startsWith("file:")).map((url) => statSync(new URL(url)).size)
    expect(sizes.length).toBeGreaterThan(3)
    expect(sizes.length).toBeLessThan(12)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(900_000)
  })

  it("validate: a parser of YAML, and neither a client, a database nor another command", () => {
    const { status, packages, sources } = loadedBy("validate", "jobs/demo.yaml")
    const commands = sources.filter((name) => name.startsWith("cli/commands/"))
    expect({ status, packages, commands }).toEqual({
      status: 0,
      commands: ["cli/commands/Prepare.ts"],
      packages: ["@effect/platform-node", "@effect/platform-node-shared", "effect", "yaml"],
    })
  })
})
