/**
 * The README is the product's face: its commands are run here, and what they print must be what it says. A line that is
 * only `…` stands for any lines; dates and durations may differ.
 */
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { program } from "../acceptance/BuiltCommand.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const readme = readFileSync(join(root, "README.md"), "utf8")
/** The pages that the README links to and that show commands too. */
const pages = ["README.md", "jobs/README.md", "src/sandbox/README.md"]
const output = mkdtempSync(join(tmpdir(), "nightjar-readme-"))
afterAll(() => rmSync(output, { recursive: true, force: true }))

const nightjar = (args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [program(), ...args, "--output", output], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1", COLUMNS: "120" },
  })

/** What a server says first; it is stopped then. The port may differ. */
const served = (args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve) => {
    const free = args.map((arg, index) => (args[index - 1] === "--port" ? "0" : arg))
    const server = spawn(process.execPath, [program(), ...free], { cwd: root })
    let stdout = ""
    server.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      stdout += chunk
      if (stdout.includes("\n")) server.kill("SIGTERM")
    })
    server.on("close", () => resolve(stdout))
  })

interface Example {
  readonly command: string
  readonly lines: ReadonlyArray<string>
}

/** Every `$ command` of the console blocks with the lines that follow it. */
const examples = pages
  .flatMap((page) => [...readFileSync(join(root, page), "utf8").matchAll(/```console\n([\s\S]*?)```/g)])
  .flatMap(([, block = ""]) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((text): Example => {
        const [command = "", ...lines] = text.trimEnd().split("\n")
        return { command, lines }
      }),
  )

const settle = (line: string) =>
  line
    .trimEnd()
    .replaceAll(/\d{4}-\d{2}-\d{2}/g, "DATE")
    .replaceAll(/took (?:\d+ h )?\d+ min/g, "took SOME min")
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT")

/** The part of the README that `printed` does not show, undefined when it shows all of it in order. */
const missingFrom = (expected: ReadonlyArray<string>, printed: string): string | undefined => {
  const actual = printed.split("\n").map(settle)
  let at = 0
  let free = false
  for (const line of expected.map(settle)) {
    if (line === "…") {
      free = true
      continue
    }
    const found = free ? actual.indexOf(line, at) : actual[at] === line ? at : -1
    if (found < 0) return line
    at = found + 1
    free = false
  }
  return undefined
}

describe("the README", () => {
  it("shows what `npm start` prints", () => {
    const start = examples.find(({ command }) => command === "npm ci && npm start")
    const { status, stdout } = nightjar(["demo"])
    expect(status).toBe(0)
    expect(missingFrom(start?.lines ?? ["no such example"], stdout)).toBeUndefined()
  }, 60_000)

  it("shows what its other commands print", async () => {
    const others = examples.flatMap(({ command, lines }) => {
      const args = /^npm run -s nightjar -- (.*)$/.exec(command)?.[1]
      return args === undefined ? [] : [{ args, lines }]
    })
    expect(others.length).toBeGreaterThan(0)
    for (const { args, lines } of others) {
      const words = [...args.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "")
      const printed = words[0] === "sandbox" ? await served(words) : nightjar(words).stdout
      expect(missingFrom(lines, printed)).toBeUndefined()
    }
  }, 90_000)

  it("counts the test files that `npm test` runs", () => {
    const count = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).filter((path) =>
      path.endsWith(".test.ts"),
    ).length
    const shown = examples.find(({ command }) => command === "npm test")?.lines
    expect(shown).toContain(` Test Files  ${count} passed (${count})`)
  })

  it("names every command, and no other", () => {
    const pages = readFileSync(join(root, "schemas/commands.md"), "utf8")
    const listed = pages.matchAll(/^## nightjar ([a-z]+)$/gm)
    const commands = new Set([...listed].map(([, name]) => name))
    const table = readme.slice(readme.indexOf("## Commands"), readme.indexOf("## Documentation"))
    const named = new Set([...table.matchAll(/`nightjar ([a-z]+)/g)].map(([, name]) => name))
    expect([...named].toSorted()).toEqual([...commands].toSorted())
  })

  it("names every dependency, and no other", () => {
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    ) as Record<string, Record<string, string>>
    const section = readme.slice(readme.indexOf("## Dependencies"), readme.indexOf("The ledger uses"))
    const named = [...section.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    )
    const installed = [...Object.keys(dependencies ?? {}), ...Object.keys(devDependencies ?? {})]
    expect(named.toSorted()).toEqual(installed.filter((name) => name !== "@types/node").toSorted())
  })
})
