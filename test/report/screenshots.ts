/**
 * Renders sample reports and photographs them in a headless Chromium, 390 and 1280 pixels wide, light and dark:
 * `node test/report/screenshots.ts FOLDER [REPORT…]`. For people who change the page; `chromium` must be installed.
 * Whatever the page's console says, a violated policy for one, is printed.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { renderReport } from "../../src/report/ReportPage.ts"
import { reportOf } from "../../src/report/Report.ts"
import { nightFacts, publishedSample, stateOf } from "./NightSamples.ts"
import { template } from "./ReadPage.ts"

const beginAt = Date.UTC(2026, 10, 21, 21, 30)
const day = 24 * 60 * 60_000

const sample = (tasks: number, badShare: number, exit_code: number): string => {
  const night = (run_id: string, seed: number, at: number) =>
    nightFacts({ run_id, tasks, seed, badShare, beginAt: at, exit_code })
  const report = reportOf({
    facts: night("nightly-spain.2026-11-21", 1, beginAt),
    before: [stateOf(night("nightly-spain.2026-11-20", 2, beginAt - day))],
    published: publishedSample(),
    timezone: "Europe/Madrid",
  })
  return report === undefined ? "" : renderReport(template, report)
}

const [folder = "screenshots", ...reports] = process.argv.slice(2)
mkdirSync(folder, { recursive: true })
const pages: ReadonlyArray<readonly [string, string]> =
  reports.length > 0
    ? reports.map((path, index) => [`report-${index}`, readFileSync(path, "utf8")])
    : [
        ["small", sample(6, 0, 0)],
        ["mixed", sample(120, 0.3, 4)],
        ["large", sample(10_000, 0.05, 3)],
      ]

const profile = mkdtempSync(join(tmpdir(), "screenshots-"))
const quiet = [
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
]
const browser = spawn(
  "chromium",
  [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    ...quiet,
    "--remote-debugging-port=0",
    `--user-data-dir=${profile}`,
  ],
  { stdio: "ignore" },
)
const portFile = join(profile, "DevToolsActivePort")
for (let tries = 0; tries < 100 && !existsSync(portFile); tries++) await wait(100)
const [port] = readFileSync(portFile, "utf8").split("\n")

interface Answer {
  readonly id?: number
  readonly method?: string
  readonly result?: { readonly data?: string; readonly cssContentSize?: { readonly height: number } }
  readonly params?: unknown
}
const opened = await fetch(`http://127.0.0.1:${port}/json/new`, { method: "PUT" })
const { webSocketDebuggerUrl } = (await opened.json()) as { readonly webSocketDebuggerUrl: string }
const socket = new WebSocket(webSocketDebuggerUrl)
await new Promise((done) => socket.addEventListener("open", done))
const said = new Set<string>()
const waiting = new Map<number, (answer: Answer) => void>()
socket.addEventListener("message", ({ data }) => {
  const answer = JSON.parse(String(data)) as Answer
  if (answer.id !== undefined) waiting.get(answer.id)?.(answer)
  else if (answer.method === "Log.entryAdded" || answer.method === "Runtime.exceptionThrown")
    said.add(JSON.stringify(answer.params).slice(0, 1_000))
})
let sent = 0
const ask = (method: string, params: object = {}) =>
  new Promise<Answer>((done) => {
    sent += 1
    waiting.set(sent, done)
    socket.send(JSON.stringify({ id: sent, method, params }))
  })

for (const domain of ["Page", "Log", "Runtime"]) await ask(`${domain}.enable`)
for (const [name, page] of pages) {
  const path = resolve(folder, `${name}.html`)
  writeFileSync(path, page)
  process.stdout.write(`${name}: ${Buffer.byteLength(page)} bytes\n`)
  for (const width of [390, 1280])
    for (const scheme of ["light", "dark"]) {
      const screen = { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 }
      await ask("Emulation.setDeviceMetricsOverride", screen)
      await ask("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] })
      await ask("Page.navigate", { url: `file://${path}` })
      await wait(1_500)
      const { result } = await ask("Page.getLayoutMetrics")
      const height = Math.min(8_000, Math.ceil(result?.cssContentSize?.height ?? 900))
      const clip = { x: 0, y: 0, width, height, scale: 1 }
      const shot = await ask("Page.captureScreenshot", { captureBeyondViewport: true, clip })
      writeFileSync(
        resolve(folder, `${name}-${width}-${scheme}.png`),
        Buffer.from(shot.result?.data ?? "", "base64"),
      )
    }
}
for (const line of said) process.stdout.write(`console: ${line}\n`)
socket.close()
browser.kill()
await new Promise((done) => browser.once("exit", done))
rmSync(profile, { recursive: true, force: true })
