/**
 * `npm run check`: types, lint, format, dead code and generated files beside each other, since each of them leaves a
 * processor idle most of the time. Prints what each said once it is over; fails if one of them failed.
 */
import { spawn } from "node:child_process"

const scripts = ["generated", "types", "dead-code", "lint", "format"]

const run = (script) =>
  new Promise((resolve) => {
    const child = spawn("npm", ["run", "-s", script], { stdio: ["ignore", "pipe", "pipe"] })
    const said = []
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => said.push(chunk))
    child.on("error", (error) => said.push(Buffer.from(`${error.message}\n`)))
    child.on("close", (code) => {
      process.stdout.write(
        Buffer.concat([Buffer.from(`${script}: ${code === 0 ? "passed" : "FAILED"}\n`), ...said]),
      )
      resolve(code === 0)
    })
  })

const passed = await Promise.all(scripts.map(run))
process.exitCode = passed.every(Boolean) ? 0 : 1
