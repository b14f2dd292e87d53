/**
 * Nightjar as its users have it, a command in a process of its own: bundled from this checkout into a folder of the
 * campaign, so that neither a stale build nor a build under way is what is tried. Every process that is started
 * here ends with the campaign, however that ends.
 */
import { spawn } from "node:child_process"
import { cpSync, mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundle } from "../project/bundle.ts"

const checkout = fileURLToPath(new URL("../../", import.meta.url))

/** Builds the command below `folder` and answers the path of its launcher. */
export const installCommand = async (folder: string): Promise<string> => {
  mkdirSync(folder, { recursive: true })
  // What is only read while bundling, or by Node itself, may be pointed to; what the command reads is its own.
  for (const name of ["src", "node_modules"]) symlinkSync(join(checkout, name), join(folder, name))
  for (const name of ["schemas", "package.json"])
    cpSync(join(checkout, name), join(folder, name), { recursive: true })
  const files = await bundle(folder)
  if (files === undefined) throw new Error("this checkout holds no program")
  return join(folder, "dist/nightjar.js")
}

export interface ProcessEnd {
  /** null: it was killed. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly elapsedMs: number
  readonly tookTooLong: boolean
}

export interface RunningProcess {
  readonly ended: Promise<ProcessEnd>
  readonly isAlive: () => boolean
  /** SIGKILL to it and to whatever it started. */
  readonly kill: () => void
  /** The first line on stdout; rejects where it ends without one. */
  readonly firstLine: Promise<string>
}

/** Nothing here takes a minute, on a busy machine either: whoever needs longer hangs. */
export const lifeMaxMs = 150_000
const outputMax = 200_000

const alive = new Set<number>()
const killGroup = (pid: number): void => {
  try {
    process.kill(-pid, "SIGKILL")
  } catch {
    // It ended by itself a moment ago.
  }
}
process.on("exit", () => alive.forEach(killGroup))
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130))

export const startProcess = (
  argv: readonly [string, ...ReadonlyArray<string>],
  env: Readonly<Record<string, string>> = {},
  lifeMs = lifeMaxMs,
): RunningProcess => {
  const startedAt = performance.now()
  const [file, ...args] = argv
  const child = spawn(file, args, {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NO_COLOR: "1", ...env },
  })
  const { pid } = child
  if (pid !== undefined) alive.add(pid)
  let stdout = ""
  let stderr = ""
  let running = true
  let tookTooLong = false
  const kill = () => {
    if (pid !== undefined && running) killGroup(pid)
  }
  const timer = setTimeout(() => {
    tookTooLong = true
    kill()
  }, lifeMs)
  const { promise: firstLine, resolve, reject } = Promise.withResolvers<string>()
  firstLine.catch(() => undefined)
  child.stdout.on("data", (bytes: Buffer) => {
    if (stdout.length < outputMax) stdout += bytes.toString()
    if (stdout.includes("\n")) resolve(stdout.split("\n", 1)[0] ?? "")
  })
  child.stderr.on("data", (bytes: Buffer) => {
    if (stderr.length < outputMax) stderr += bytes.toString()
  })
  const ended = new Promise<ProcessEnd>((settle) => {
    const end = (code: number | null) => {
      if (!running) return
      running = false
      clearTimeout(timer)
      if (pid !== undefined) alive.delete(pid)
      reject(new Error(`ended with ${code} before it said anything: ${stderr}`))
      settle({ code, stdout, stderr, elapsedMs: performance.now() - startedAt, tookTooLong })
    }
    child.on("error", (error) => {
      stderr += error.message
      end(127)
    })
    child.on("close", end)
  })
  return { ended, isAlive: () => running, kill, firstLine }
}
