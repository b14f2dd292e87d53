/**
 * The README is the product's face: its commands and those of the pages are run here, and what they print must be what
 * is said there. A line that is only `…` stands for any lines; dates and durations may differ.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { readPages } from "../../src/cli/commands/Help.ts"
import { program } from "../acceptance/BuiltCommand.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const readme = readFileSync(join(root, "README.md"), "utf8")
const pages = readPages(root)
const output = mkdtempSync(join(tmpdir(), "nightjar-readme-"))
afterAll(() => rmSync(output, { recursive: true, force: true }))

const environment = { ...plainEnvironment, NO_COLOR: "1", COLUMNS: "120" }
const nightjar = (args: ReadonlyArray<string>, folder = root, to = output) =>
  startHere([...args, "--output", to], { environment, folder }).ended

/** What a server says first, and how to stop it. The port may differ. */
const served = async (args: ReadonlyArray<string>) => {
  const free = args.map((arg, index) => (args[index - 1] === "--port" ? "0" : arg))
  const server = startHere(free, { environment, folder: root })
  const said = `${await server.firstLine}\n`
  const stop = () => {
    server.kill("SIGTERM")
    return server.ended
  }
  return { said, stop }
}

const wordsOf = (args: string): ReadonlyArray<string> =>
  [...args.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "")

interface Example {
  readonly command: string
  readonly lines: ReadonlyArray<string>
}

/** Every `$ command` of the console blocks with the lines that follow it. */
const examples = [readme, ...pages.map(({ markdown }) => markdown)]
  .flatMap((text) => [...text.matchAll(/```console\n([\s\S]*?)```/g)])
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
    .replaceAll(/took \d+ s/g, "took SOME s")
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
  it("shows what `npm start` prints", async () => {
    const start = examples.find(({ command }) => command === "npm ci && npm start")
    const { code, stdout } = await nightjar(["demo"])
    expect(code).toBe(0)
    expect(missingFrom(start?.lines ?? ["no such example"], stdout)).toBeUndefined()
  }, 60_000)

  it("and the pages show what their other commands print", async () => {
    const others = examples.flatMap(({ command, lines }) => {
      const args = /^npm run -s nightjar -- (.*)$/.exec(command)?.[1]
      return args === undefined ? [] : [{ args, lines }]
    })
    expect(others.length).toBeGreaterThan(5)
    for (const { args, lines } of others) {
      const words = wordsOf(args)
      if (words[0] === "sandbox") {
        const { said, stop } = await served(words)
        await stop()
        expect(missingFrom(lines, said)).toBeUndefined()
      } else expect(missingFrom(lines, (await nightjar(words)).stdout)).toBeUndefined()
    }
  }, 90_000)

  it("leads from `init` to the first table, with the embedded service as the service", async () => {
    const home = mkdtempSync(join(tmpdir(), "nightjar-first-"))
    const { said, stop } = await served(["sandbox", "--port", "0", "--speed", "60"])
    try {
      const urls = JSON.parse(said) as { readonly base_url: string; readonly flows_url: string }
      const files = [...readme.matchAll(/^`(jobs\/[^`]+)`.*\n\n```\w+\n([\s\S]*?)```/gm)]
      expect(files.map(([, path]) => path)).toEqual(["jobs/first.yaml", "jobs/customers.csv", "jobs/.env"])
      const steps = examples.filter(({ command }) => /^(nightjar|chmod) /.test(command))
      expect(steps.length).toBeGreaterThan(4)
      for (const { command, lines } of steps) {
        const [name = "", ...words] = wordsOf(command)
        const options = { cwd: home, encoding: "utf8", env: environment } as const
        const isHere = name === "nightjar" && words[0] !== "init"
        // `init` writes into the working folder, which only a process has.
        const { stdout } = isHere
          ? await nightjar(words, home, join(home, "output"))
          : name === "nightjar"
            ? spawnSync(process.execPath, [program(), ...words], options)
            : spawnSync(name, words, options)
        expect(missingFrom(lines, stdout), command).toBeUndefined()
        if (words[0] !== "init") continue
        expect(
          spawnSync(process.execPath, [program(), ...words], options).status,
          "nothing is overwritten",
        ).toBe(2)
        mkdirSync(join(home, "jobs"), { recursive: true })
        for (const [, path = "", text = ""] of files)
          writeFileSync(
            join(home, path),
            text
              .replace("https://service.example/api", urls.base_url)
              .replace("https://service.example/flows", urls.flows_url),
          )
      }
    } finally {
      await stop()
      rmSync(home, { recursive: true, force: true })
    }
  }, 60_000)

  it("names every command, and no other", () => {
    const helpTexts = readFileSync(join(root, "schemas/commands.md"), "utf8")
    const listed = helpTexts.matchAll(/^## nightjar ([a-z]+)$/gm)
    const commands = new Set([...listed].map(([, name]) => name))
    const table = readme.slice(readme.indexOf("| to"), readme.indexOf("## Documentation"))
    const named = [...table.matchAll(/`([a-z]+)`/g)].map(([, name]) => name)
    expect(named.toSorted()).toEqual([...commands].toSorted())
  })

  it("lists every page with what it is about", () => {
    const listed = [...readme.matchAll(/^\| \[(\w+)\]\(schemas\/pages\/\1\.md\) +\| (.*?) +\|$/gm)]
    expect(listed.map(([, topic, about]) => [topic, about])).toEqual(
      pages.map(({ topic, about }) => [topic, about]),
    )
  })

  it("is short", () => {
    expect(Buffer.byteLength(readme)).toBeLessThan(10_000)
  })
})

it("the page of the house names every dependency, and no other", () => {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  ) as Record<string, Record<string, string>>
  const house = readFileSync(join(root, "src/README.md"), "utf8")
  const named = [...house.slice(house.indexOf("## Dependencies")).matchAll(/^\| (.*?) \|/gm)].flatMap(
    ([, cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  )
  const installed = [...Object.keys(dependencies ?? {}), ...Object.keys(devDependencies ?? {})]
  expect(named.toSorted()).toEqual(installed.filter((name) => name !== "@types/node").toSorted())
})
