/**
 * Preloaded with `--import` into every process that a benchmark starts: on exit it appends one line with what the
 * process used, as the operating system counts it (all threads), and with the requests that it answered as a server.
 * JavaScript, because loading TypeScript would itself be in the figures.
 */
import { appendFileSync, readFileSync } from "node:fs"
import { subscribe } from "node:diagnostics_channel"

/** "GET 202" → how many. */
const answered = {}
subscribe("http.server.response.finish", ({ request, response }) => {
  const key = `${request.method} ${response.statusCode}`
  answered[key] = (answered[key] ?? 0) + 1
})

/** The high-water mark of this program's own memory: `maxRSS` also remembers the process that forked it. */
const peakKb = () => {
  try {
    return Number(/VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1])
  } catch {
    return process.resourceUsage().maxRSS
  }
}

process.on("exit", () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  const line = {
    pid: process.pid,
    cpu_ms: (userCPUTime + systemCPUTime) / 1000,
    peak_mb: peakKb() / 1024,
    answered,
  }
  appendFileSync(process.env.BENCH_USAGE_FILE, `${JSON.stringify(line)}\n`)
})
