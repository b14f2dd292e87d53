/**
 * What `npm ci` does last: gives the compiler its Effect diagnostics and builds the command. Where the
 * development tools were left out (`--omit=dev`, a dependency) there is nothing to prepare, and that is no
 * failure.
 */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"

const tools = ["node_modules/rolldown/package.json", "node_modules/@effect/tsgo/dist/effect-tsgo.cjs"]
const missing = tools.filter((path) => !existsSync(path))

const run = (...args) => {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" })
  if (status !== 0) process.exit(status ?? 1)
}

if (missing.length > 0) {
  process.stderr.write(`prepare: no development tools here (${missing.join(", ")}), nothing is built\n`)
} else {
  run("node_modules/@effect/tsgo/dist/effect-tsgo.cjs", "patch")
  run("test/project/bundle.ts")
}
