/**
 * The bundled command in a process of its own, and what that process and the ones it starts used: CPU time and peak
 * memory from the operating system. Whatever is started here ends with the benchmark.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"
import { installCommand } from "../faults/NightjarCommand.ts"

const Usage = Schema.Struct({
  pid: Schema.Int,
  cpu_ms: Schema.Finite,
  peak_mb: Schema.Finite,
  answered: Schema.Record(Schema.String, Schema.Int),
})
export type Usage = typeof Usage.Type
const decodeUsage = Schema.decodeUnknownSync(Schema.fromJsonString(Usage))

export interface MeasuredEnd {
  /** null: a signal ended it. */
  readonly code: number | null
  readonly stderr: string
  readonly elapsedMs: number
  /** One entry for each process: CPU times add up, and so do peaks at worst. */
  readonly usage: ReadonlyArray<Usage>
}

export interface MeasuredProcess {
  /** Rejects where the process ends without having said a line. */
  readonly firstLine: Promise<string>
  readonly ended: Promise<MeasuredEnd>
  readonly stop: () => void
}

let installed: Promise<string> | undefined

/** The path of the bundled command, which is built once for all benchmarks of a run. */
export const installedCommand = (): Promise<string> => {
  if (installed === undefined) {
    const folder = mkdtempSync(join(tmpdir(), "command-"))
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
    installed = installCommand(folder)
  }
  return installed
}

const preload = new URL("processUsage.js", import.meta.url).href
const stderrMax = 20_000

/** @param usageFile where this process and its children leave what they used; a new file for each */
export const startMeasured = (
  args: ReadonlyArray<string>,
  usageFile: string,
  env: Readonly<Record<string, string>> = {},
): MeasuredProcess => {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      NO_COLOR: "1",
      NODE_OPTIONS: `--import=${preload}`,
      BENCH_USAGE_FILE: usageFile,
      ...env,
    },
  })
  const stop = () => void child.kill("SIGTERM")
  process.on("exit", stop)
  const { promise: firstLine, resolve, reject } = Promise.withResolvers<string>()
  firstLine.catch(() => undefined)
  let stdout = ""
  let stderr = ""
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout = stdout.includes("\n") ? stdout : stdout + text
    if (stdout.includes("\n")) resolve(stdout.split("\n", 1)[0] ?? "")
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-stderrMax)
  })
  const ended = new Promise<MeasuredEnd>((settle, fail) => {
    child.on("error", fail)
    child.on("close", (code) => {
      process.off("exit", stop)
      reject(new Error(`${args.join(" ")} ended with ${code} before it said anything: ${stderr}`))
      settle({ code, stderr, elapsedMs: performance.now() - startedAt, usage: readUsage(usageFile) })
    })
  })
  return { firstLine, ended, stop }
}

const readUsage = (file: string): ReadonlyArray<Usage> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line) => (line === "" ? [] : [decodeUsage(line)]))
    : []
