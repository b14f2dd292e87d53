#!/usr/bin/env node
/**
 * The file behind the command `nightjar`. It is kept apart from the program because an older Node fails on
 * the program's imports before a line of it runs: here it is told so, or hands over to the Node that `npm ci`
 * installed.
 */
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)

/** A night holds up to 192 connections to each host, and some dozen files; Node itself needs 21. */
const openFilesMin = 256

if (major > 22 || (major === 22 && minor >= 19)) {
  const openFiles = openFilesAllowed()
  if (openFiles < openFilesMin) {
    process.stderr.write(
      `nightjar needs ${openFilesMin} open files, and this process may have ${openFiles}; nothing was started. ` +
        `Raise the limit, for example with \`ulimit -n 4096\`, and run the command again.\n`,
    )
    process.exit(2)
  }
  // A night waits far more than it computes: a small heap costs it about a tenth more CPU and halves its memory. As
  // they are, V8's rules let the garbage of a thousand waiting executions grow to three times what is alive.
  setFlagsFromString("--heap-growing-percent=30")
  setFlagsFromString("--semi-space-growth-factor=1")
  await import("./program.js")
} else {
  const ownNode = fileURLToPath(new URL("../node_modules/node/bin/node", import.meta.url))
  if (existsSync(ownNode) && process.env.NIGHTJAR_HANDED_OVER === undefined) handOver(ownNode)
  else {
    process.stderr.write(
      `nightjar needs Node 22.19 or newer, and this is ${process.version}. ` +
        "Put a newer one on PATH, or run `npm ci` in the checkout: it brings its own.\n",
    )
    process.exitCode = 2
  }
}

/** Node has raised the soft limit to the hard one already; a system without such limits has no number. */
function openFilesAllowed() {
  // Without it a report looks up the names of every connection.
  process.report.excludeNetwork = true
  const { soft } = process.report.getReport().userLimits?.open_files ?? {}
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY
}

/** Runs the same command on another Node as if it were this process: same streams, signals and end. */
function handOver(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
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
