/**
 * The thread in which forms are compiled and checked: it answers one request after another, and may be
 * stopped at any moment. `FormHostWorker.ts` starts it.
 */
import { parentPort } from "node:worker_threads"
import { makeFitter, type FormRequest } from "./FitForms.ts"

const fit = makeFitter()
parentPort?.on("message", (request: FormRequest) => parentPort?.postMessage(fit(request)))
parentPort?.postMessage("ready")
