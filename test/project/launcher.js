#!/usr/bin/env -S node --
/**
 * The file behind the command `nightjar`. It is kept apart from the program because an older Node fails on
 * the program's imports before a line of it runs: here it is told so, or hands over to the Node that `npm ci`
 * installed. Node reads `--env-file` wherever it stands, unless `--` comes before it: that file is the program's
 * to check. And what `--help` and `--version` print is a text that the build wrote: it loads no program.
 */
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import * as nodeModule from "node:module"
import { fileURLToPath } from "node:url"
import { stripVTControlCharacters } from "node:util"

// Without a listener this signal opens Node's debugger in a process that holds every password.
process.on("SIGUSR1", () => undefined)

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)

/** A night holds up to 192 connections to each host, and some dozen files; Node itself needs 21. */
const openFilesMin = 256
const limits = "/proc/self/limits"

if (major > 22 || (major === 22 && minor >= 19)) {
  const page = pageAskedFor()
  if (page === undefined) await start()
  else print(page)
} else {
  const ownNode = fileURLToPath(new URL("../node_modules/node/bin/node", import.meta.url))
  if (existsSync(ownNode) && process.env.NIGHTJAR_HANDED_OVER === undefined) handOver(ownNode)
  else {
    process.stderr.write(
      `nightjar needs Node 22.19 or newer, and this is ${process.version}. ` +
        "Nothing was started. Put a newer one on PATH, or run `npm ci` in a checkout: it brings its own.\n",
    )
    process.exitCode = 2
  }
}

async function start() {
  const openFiles = openFilesAllowed()
  if (openFiles < openFilesMin) {
    process.stderr.write(
      `nightjar needs ${openFilesMin} open files, and this process may have ${openFiles}; nothing was started. ` +
        `Raise the limit, for example with \`ulimit -n 4096\`, and run the command again.\n`,
    )
    process.exit(2)
  }
  // Beside the program, where nobody can plant code who could not change the program itself; what cannot be written
  // there is compiled each time.
  nodeModule.enableCompileCache(fileURLToPath(new URL("compiled", import.meta.url)))
  const program = await import("./program.js")
  program.start()
}

/** undefined: these arguments ask for more than a page, or a checkout was built without pages. */
function pageAskedFor() {
  const args = process.argv.slice(2)
  const last = { "-h": "--help", "-v": "--version" }[args.at(-1)] ?? args.at(-1)
  if (last !== "--help" && last !== "--version") return undefined
  const pages = fileURLToPath(new URL("help.json", import.meta.url))
  if (!existsSync(pages)) return undefined
  const known = new Map(Object.entries(JSON.parse(readFileSync(pages, "utf8"))))
  return known.get([...args.slice(0, -1), last].join(" "))
}

/** In colours where Effect's command line would use them; a reader that went away ends nothing. */
function print(page) {
  const { NO_COLOR = "", FORCE_COLOR = "", TERM } = process.env
  const wanted = process.stdout.isTTY || !["", "0", "false"].includes(FORCE_COLOR.toLowerCase())
  const coloured = wanted && NO_COLOR === "" && TERM !== "dumb"
  process.stdout.on("error", () => undefined)
  process.stdout.write(`${coloured ? page : stripVTControlCharacters(page)}\n`)
}

/**
 * Node has raised the soft limit to the hard one already; a system without such limits has no number. Linux says it
 * in a tenth of the time.
 */
function openFilesAllowed() {
  const said = existsSync(limits)
    ? /^Max open files +(\d+)/m.exec(readFileSync(limits, "latin1"))?.[1]
    : undefined
  if (said !== undefined) return Number(said)
  // Without it a report looks up the names of every connection.
  process.report.excludeNetwork = true
  const { soft } = process.report.getReport().userLimits?.open_files ?? {}
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY
}

/** Runs the same command on another Node as if it were this process: same streams, signals and end. */
function handOver(node) {
  const child = spawn(node, ["--", fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...process.env, NIGHTJAR_HANDED_OVER: "1" },
  })
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"]
  const pass = (signal) => child.kill(signal)
  for (const signal of signals) process.on(signal, pass)
  child.on("error", (error) => {
    process.stderr.write(`nightjar could not start ${node}: ${error.message}\n`)
    process.exitCode = 2
  })
  child.on("exit", (code, signal) => {
    for (const name of signals) process.off(name, pass)
    if (signal === null) process.exitCode = code ?? 1
    else process.kill(process.pid, signal)
  })
}
