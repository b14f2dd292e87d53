/**
 * The process in which forms are checked, as `FormProcess.ts` starts it. The work is done in a thread of it
 * with limited memory, which answers one request after another and may be stopped at any moment: so the
 * process itself always hears that nobody listens any more, and ends.
 */
import { Worker, isMainThread, parentPort } from "node:worker_threads"
import type { FormRequest } from "./FitForms.ts"

const startThread = () => {
  /** `outOfMemory`: with which code to end when the thread takes too much memory. */
  const [memoryMb = 0, outOfMemory = 1] = process.argv.slice(2).map(Number)
  const thread = new Worker(new URL(import.meta.url), {
    name: "forms",
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 16 },
  })
  thread.on("message", (answer) => process.connected && process.send?.(answer))
  thread.on("error", (cause) =>
    process.exit("code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY" ? outOfMemory : 1),
  )
  process.on("message", (request) => thread.postMessage(request))
  process.on("disconnect", () => process.exit())
  // They are for the program that started it, which decides what becomes of a check under way.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined)
}

if (isMainThread) startThread()
else {
  const { makeFitter } = await import("./FitForms.ts")
  const fit = makeFitter()
  parentPort?.on("message", (request: FormRequest) => parentPort?.postMessage(fit(request)))
  parentPort?.postMessage("ready")
}
