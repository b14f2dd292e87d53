/** The private socket: one line in, one line out, for its owner only, whatever callers and dead processes do. */
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { createConnection, createServer, type Socket } from "node:net"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { Effect, Exit } from "effect"
import { askLine, requestBytesMax, serveLines } from "../../src/base/LineSocket.ts"
import { sharedFolder } from "../harness/Folder.ts"

const root = sharedFolder()
const folderOf = (name: string): string => {
  const folder = join(root, name)
  mkdirSync(folder, { recursive: true })
  return folder
}

/** Serves `echo …` while the work runs. */
const served = <A, E>(folder: string, work: Effect.Effect<A, E>) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.andThen(
        serveLines(folder, "s.sock", (line) => `echo ${line}`),
        work,
      ),
    ),
  )

/** What a caller gets who writes this and never ends its side. */
const raw = (folder: string, text: string) =>
  Effect.callback<string>((resume) => {
    const socket = createConnection(join(folder, "s.sock"))
    let got = ""
    socket.on("data", (chunk: Buffer) => {
      got += chunk.toString()
    })
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(got)))
    socket.write(text)
  })

describe("a line socket", () => {
  it("answers each caller once, is private, and leaves nothing behind [promise 12 socket]", async () => {
    const folder = folderOf("plain")
    const seen = await served(
      folder,
      Effect.gen(function* () {
        const answers = yield* Effect.all(
          ["a", "b", "c"].map((line) => askLine(folder, "s.sock", line)),
          { concurrency: 3 },
        )
        return { answers, mode: statSync(join(folder, "s.sock")).mode & 0o777 }
      }),
    )
    expect(seen).toEqual({ answers: ["echo a\n", "echo b\n", "echo c\n"], mode: 0o600 })
    expect(readdirSync(folder)).toEqual([])
  })

  it("replaces what a killed process left, but no other file", async () => {
    const folder = folderOf("stale")
    const script = `require("node:net").createServer().listen("s.sock", () => process.kill(process.pid, 9))`
    spawnSync(process.execPath, ["-e", script], { cwd: folder })
    expect(statSync(join(folder, "s.sock")).isSocket()).toBe(true)
    expect(Exit.isFailure(await Effect.runPromiseExit(askLine(folder, "s.sock", "x")))).toBe(true)
    expect(await served(folder, askLine(folder, "s.sock", "x"))).toBe("echo x\n")
    writeFileSync(join(folder, "s.sock"), "a file")
    await expect(served(folder, Effect.void)).rejects.toThrow("exists and is no socket")
    expect(statSync(join(folder, "s.sock")).isFile()).toBe(true)
  })

  it("works in a folder whose path is too long for a socket", async () => {
    const folder = folderOf("long/".repeat(40))
    expect(await served(folder, askLine(folder, "s.sock", "x"))).toBe("echo x\n")
    expect(readdirSync(folder)).toEqual([])
  })

  it("cuts off a caller whose line has no end, and answers the next one", async () => {
    const folder = folderOf("endless")
    const answers = await served(
      folder,
      Effect.all([
        raw(folder, "x".repeat(requestBytesMax + 1)),
        raw(folder, "one\ntwo\n"),
        askLine(folder, "s.sock", "y"),
      ]),
    )
    expect(answers).toEqual(["\n", "\necho one\n", "echo y\n"])
  })

  it(
    "waits for nobody who sends a byte now and then, and sends nothing to one that hangs [order unheard]",
    { timeout: 20_000 },
    async () => {
      const folder = folderOf("dripping")
      /** A byte every half a second, for as long as the other side takes it. */
      const drip = (socket: Socket) => {
        const timer = setInterval(() => socket.write("x"), 500)
        socket.on("error", () => undefined)
        socket.on("close", () => clearInterval(timer))
      }
      const dripping = Effect.callback<string>((resume) => {
        const socket = createConnection(join(folder, "s.sock"))
        socket.on("close", () => resume(Effect.succeed("cut off")))
        drip(socket)
      })
      const slow = createServer(drip).listen(join(folder, "slow.sock"))
      let heard = ""
      const hanging = createServer((socket) => {
        socket.on("data", (chunk: Buffer) => {
          heard += chunk.toString()
        })
      }).listen(join(folder, "hanging.sock"))
      const asking = (name: string) =>
        Effect.map(Effect.flip(askLine(folder, name, "x")), (one) => one.because)
      const all = [dripping, asking("slow.sock"), asking("hanging.sock"), asking("nobody.sock")] as const
      const seen = await served(folder, Effect.all(all, { concurrency: "unbounded" }))
      slow.close()
      hanging.close()
      expect([...seen, heard]).toEqual(["cut off", "unanswered", "silent", undefined, ""])
    },
  )
})
