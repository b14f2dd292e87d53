/**
 * A private Unix socket in a folder of our own: a greeting, one line in, one line out, then the connection
 * ends. A caller sends its line only once it was greeted, so a process that hangs never obeys later what its
 * caller has given up. Lines, connections and times are bounded, and nothing that a caller does reaches
 * further than its connection. A socket that a killed process left is replaced, so only the holder of the
 * folder's lock may listen.
 */
import { closeSync, constants, lstatSync, openSync } from "node:fs"
import { createConnection, createServer, type Server, type Socket } from "node:net"
import { join, resolve } from "node:path"
import { addAbortSignal } from "node:stream"
import { Duration, Effect, Schema } from "effect"
import { wordsOf } from "./Text.ts"
import { FileCalls, quietly } from "./DurableFile.ts"
import { given } from "./Schemas.ts"

/** Nobody can be asked through this socket, or it cannot be opened. */
export class SocketUnusable extends Schema.TaggedError<SocketUnusable>()("SocketUnusable", {
  message: Schema.String,
  /**
   * Absent if nobody listens, or it cannot be opened. silent: whoever listens did not greet in time, and was
   * sent nothing. unanswered: the line was sent, and whether it was read is not known.
   */
  because: Schema.optionalKey(Schema.Literals(["silent", "unanswered"])),
}) {}

/** What the operating system accepts as a socket's address. */
const pathBytesMax = 107
export const requestBytesMax = 4_096
const answerBytesMax = 1_048_576
const connectionsMax = 16
/** From the first byte to the last, on both sides: nobody holds a connection by one byte now and then. */
const talkWithin = Duration.seconds(5)
/** White space: JSON that follows it stays JSON, for callers that do not wait for it. */
const greeting = "\n"

const failed = (cause: unknown): SocketUnusable => new SocketUnusable({ message: wordsOf(cause) })

/** The address of a socket; a path that is too long is reached through its open folder (Linux). */
const addressIn = (folder: string, name: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const path = join(resolve(folder), name)
        if (Buffer.byteLength(path) <= pathBytesMax) return { address: path, descriptor: undefined }
        const descriptor = openSync(resolve(folder), constants.O_RDONLY | constants.O_DIRECTORY)
        return { address: `/proc/self/fd/${descriptor}/${name}`, descriptor }
      },
      catch: failed,
    }),
    ({ descriptor }) =>
      Effect.sync(() => {
        if (descriptor !== undefined) closeSync(descriptor)
      }),
  )

/** A folder in which nobody else can reach a socket before it has its mode. */
const privateFolder = (calls: FileCalls, folder: string, name: string): string => {
  const path = join(resolve(folder), `.${name}`)
  calls.remove(path)
  calls.makeFolder(path, 0o700)
  return path
}

/** Gives a socket its mode and its place; what a killed process left there is replaced, other files stay. */
const putInPlace = (calls: FileCalls, from: string, path: string): void => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found !== undefined && !found.isSocket()) throw new Error(`${path} exists and is no socket`)
  calls.setMode(from, 0o600)
  calls.rename(from, path)
}

const endInTime = (socket: Socket): void =>
  void addAbortSignal(AbortSignal.timeout(Duration.toMillis(talkWithin)), socket)

const talk = (socket: Socket, answer: (line: string) => string): void => {
  let text = ""
  socket.setEncoding("utf8")
  socket.on("error", () => socket.destroy())
  endInTime(socket)
  socket.write(greeting)
  socket.on("data", (chunk: string) => {
    text += chunk
    const end = text.indexOf("\n")
    if (end >= 0) {
      socket.removeAllListeners("data")
      socket.end(`${answer(text.slice(0, end))}\n`)
    } else if (text.length > requestBytesMax) socket.destroy()
  })
}

/** Answers until the scope ends. The socket is for its owner only, from its first moment. */
export const serveLines = Effect.fn("LineSocket.serve")(function* (
  folder: string,
  name: string,
  answer: (line: string) => string,
) {
  const calls = yield* FileCalls
  const path = join(resolve(folder), name)
  const made = yield* Effect.acquireRelease(
    Effect.try({ try: () => privateFolder(calls, folder, name), catch: failed }),
    (temporary) => Effect.sync(() => quietly(() => calls.remove(temporary))),
  )
  const { address } = yield* addressIn(made, "s")
  const listening = Effect.callback<Server, SocketUnusable>((resume) => {
    const server = createServer((socket) => talk(socket, answer))
    server.maxConnections = connectionsMax
    server.on("error", (cause) => resume(Effect.fail(failed(cause))))
    server.listen(address, () => resume(Effect.succeed(server)))
  })
  yield* Effect.acquireRelease(listening, (server) => Effect.sync(() => void server.close()))
  yield* Effect.acquireRelease(
    Effect.try({ try: () => putInPlace(calls, join(made, "s"), path), catch: failed }),
    () => Effect.sync(() => quietly(() => calls.remove(path))),
  )
})

export const askLine = Effect.fn("LineSocket.ask")(function* (folder: string, name: string, line: string) {
  const { address } = yield* addressIn(folder, name)
  return yield* Effect.callback<string, SocketUnusable>((resume) => {
    const socket = createConnection(address)
    let because: SocketUnusable["because"]
    let text = ""
    const fail = (cause: unknown) => {
      socket.destroy()
      resume(Effect.fail(new SocketUnusable({ message: wordsOf(cause), ...given({ because }) })))
    }
    // It ends the connection itself: nothing can be sent once the caller is told that nothing was.
    endInTime(socket)
    socket.setEncoding("utf8")
    socket.on("connect", () => {
      because = "silent"
    })
    socket.once("data", () => {
      because = "unanswered"
      socket.on("data", (chunk: string) => {
        text += chunk
        if (text.length > answerBytesMax) fail("the answer is too long")
      })
      socket.write(`${line}\n`)
    })
    socket.on("error", fail)
    socket.on("close", () => (text.endsWith("\n") ? resume(Effect.succeed(text)) : fail("no answer")))
    return Effect.sync(() => socket.destroy())
  })
}, Effect.scoped)
