/**
 * The least that a server can do, in a process of its own: node:http answering every request with one and the same
 * text, by default a state of an execution of about 4 KB. Peer of the embedded service, and what clients are measured
 * against.
 */
import { fork } from "node:child_process"
import { createServer } from "node:http"

export const state = JSON.stringify({
  execution_id: "65f0c0ffee65f0c0ffee65f0",
  session_id: "65f0c0ffee65f0c0ffee65f1",
  external_execution_id: "run/c-0001/sandbox-bank:website#1",
  status_code: "ONGOING",
  status_reason: "RUNNING",
  authentication_status: "AUTH_OK",
  is_closed: false,
  products_count: { "accounts:current@accounts": 3, "cards:debit@cards": 2 },
  features: [
    { code: "accounts_read", status_reason: "FEATURE_RUNNING" },
    { code: "cards_read", status_reason: "FEATURE_COMPLETED" },
  ],
  messages: Array.from({ length: 20 }, (_, n) => ({
    date: "2026-11-21T02:00:00Z",
    type: "info",
    id: `situation-${n}`,
    loc: [],
    message: "A text in the language of the source market, which may be reworded at any time.",
  })),
})

export interface Loopback {
  readonly origin: string
  readonly stop: () => void
}

export const startLoopback = async (body = state): Promise<Loopback> => {
  const child = fork(import.meta.filename, [body], { execArgv: [] })
  process.on("exit", () => child.kill())
  const port = await new Promise<unknown>((resolve, reject) => {
    child.once("message", resolve)
    child.once("exit", () => reject(new Error("the peer's server ended")))
  })
  return { origin: `http://127.0.0.1:${String(port)}`, stop: () => void child.kill() }
}

const serve = (body: string) => {
  const server = createServer((_, response) => {
    response.writeHead(202, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    })
    response.end(body)
  })
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    process.send?.(typeof address === "object" ? address?.port : undefined)
  })
  process.once("disconnect", () => process.exit())
}

if (process.argv[1] === import.meta.filename) serve(process.argv[2] ?? state)
