/**
 * The process in which forms are compiled and checked: it answers one request after another, and may be
 * killed at any moment. The work is done in a thread with limited memory, so that the process itself always
 * hears that nobody listens any more, and ends. `FormProcess.ts` starts it.
 */
import { Worker, isMainThread, parentPort } from "node:worker_threads"
import type { FormRequest } from "./FitForms.ts"

const checkHere = async () => {
  const { makeFitter } = await import("./FitForms.ts")
  const fit = makeFitter()
  parentPort?.on("message", (request: FormRequest) => parentPort?.postMessage(fit(request)))
  parentPort?.postMessage("ready")
}

/** `outOfMemory`: with which code it ends when the thread takes too much memory. */
const host = (memoryMb: number, outOfMemory: number) => {
  const resourceLimits = { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 16 }
  const thread = new Worker(new URL(import.meta.url), { env: {}, execArgv: [], resourceLimits })
  thread.on("message", (answer) => process.send?.(answer))
  thread.on("error", (cause) =>
    process.exit("code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY" ? outOfMemory : 1),
  )
  process.on("message", (request) => thread.postMessage(request))
  process.on("disconnect", () => process.exit())
  // They are for the program that started it, which decides what becomes of a check under way.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined)
}

const [memoryMb = 0, outOfMemory = 1] = process.argv.slice(2).map(Number)
if (isMainThread) host(memoryMb, outOfMemory)
else await checkHere()
