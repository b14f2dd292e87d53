/** Webhooks over real connections, from `nightjar sandbox --webhooks` to a server of this test. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { spawn, type ChildProcess } from "node:child_process"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, expect, it } from "vitest"
import { program } from "../../acceptance/BuiltCommand.ts"
import { field, textField } from "../server/Caller.ts"

interface Post {
  readonly url: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: unknown
}

const posts: Array<Post> = []
const elsewhere: Array<string> = []
let heard = () => {}

let talked = 0
let leave = () => {}
/** The connection of the target that never stops talking was closed from the other side. */
const left = new Promise<void>((resolve) => (leave = resolve))

/** Sends the first `started` elsewhere, cuts the answer to the first `auth_ended`, never ends that to `ended`. */
const target = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => void chunks.push(chunk))
  request.on("end", () => {
    if (request.url === "/elsewhere") elsewhere.push(request.url)
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown
    posts.push({ url: request.url ?? "", headers: request.headers, body })
    const isFirst = request.headers["x-nightjar-attempt"] === "1"
    const event = field(body, "event")
    if (isFirst && event === "started") response.writeHead(307, { location: "/elsewhere" }).end()
    else if (isFirst && event === "auth_ended") response.destroy()
    else if (event === "ended") {
      response.on("close", leave).writeHead(200)
      const talk = () => {
        talked += 1
        if (!response.destroyed) response.write("x".repeat(65_536), talk)
      }
      talk()
    } else response.writeHead(204).end()
    heard()
  })
})

let service: ChildProcess
let base_url = ""
const stderr: Array<string> = []
beforeAll(async () => {
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve))
  const hooks = `http://127.0.0.1:${(target.address() as AddressInfo).port}/in?a=1`
  const args = [program(), "sandbox", "--port", "0", "--speed", "200", "--webhooks", hooks]
  service = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] })
  service.stderr?.on("data", (chunk: Buffer) => stderr.push(chunk.toString("utf8")))
  const { stdout } = service
  if (stdout === null) throw new Error("no stdout")
  const [line] = await new Promise<[string]>((resolve) =>
    createInterface(stdout).once("line", (first) => resolve([first])),
  )
  base_url = String(field(JSON.parse(line) as unknown, "base_url"))
}, 60_000)
afterAll(() => {
  service.kill()
  target.closeAllConnections()
  target.close()
})

const received = (count: number) =>
  new Promise<void>((resolve) => {
    heard = () => void (posts.length >= count && resolve())
    heard()
  })

it("delivers every event with its query, follows no redirect, retries, and drops endless answers", async () => {
  const started = await fetch(`${base_url}/executions/init/v1/parametrized`, {
    method: "POST",
    headers: { "X-APP-SECRET": "sandbox-app-1", "content-type": "application/json" },
    body: JSON.stringify({
      engine_reference: "sandbox-bank:website",
      customer_id: "c-1",
      parameters: { username: "queue-5+run-20", password: "hidden-word" },
      hooks_extra_data: { why: "{status_reason}" },
    }),
  })
  const { execution_id } = (await started.json()) as { readonly execution_id: string }
  await received(5)
  await left
  // What was under way in buffers, and no more.
  expect(talked).toBeLessThan(1_000)
  const told = posts.map(
    ({ url, body, headers }) => `${url} ${textField(body, "event")} ${String(headers["x-nightjar-attempt"])}`,
  )
  expect(told.toSorted()).toEqual([
    "/in?a=1&why=AUTH_OK auth_ended 1",
    "/in?a=1&why=AUTH_OK auth_ended 2",
    "/in?a=1&why=COMPLETED ended 1",
    "/in?a=1&why=WAITING started 1",
    "/in?a=1&why=WAITING started 2",
  ])
  expect(posts[0]?.headers).toMatchObject({
    "content-type": "application/json",
    "user-agent": "nightjar-sandbox",
    "x-nightjar-event": "started",
  })
  expect(Object.keys(posts[0]?.headers ?? {})).not.toContain("traceparent")
  expect(elsewhere).toEqual([])
  const state = await fetch(`${base_url}/executions/handler/v1/${execution_id}`, {
    headers: { "X-APP-SECRET": "sandbox-app-1" },
  })
  expect(field(await state.json(), "end_hook")).toBe("delivered")
  expect([stderr.join(""), JSON.stringify(posts).includes("hidden-word")]).toEqual(["", false])
}, 60_000)
