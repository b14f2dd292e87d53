/** Notices by e-mail, received by a mail server of other make: with its login, over TLS that can be trusted, in time. */
import { createServer, type AddressInfo, type Server } from "node:net"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll, describe, expect, it, vi } from "vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { mail, parseMailServer, tryOut } from "../../src/cli/Receivers.ts"
import { NodeClient } from "../../src/client/NodeClient.ts"
import { lateNotice } from "../../src/report/Notice.ts"
import { cert, key } from "../client/SelfSigned.ts"
import { secretsOf } from "../harness/SecretsMemory.ts"

interface Letter {
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly user: string | undefined
  readonly secure: boolean
  readonly text: string
}

const ends: Array<() => void> = []
afterAll(() => ends.forEach((end) => end()))

const portOf = (server: { readonly address: () => AddressInfo | string | null }): number =>
  (server.address() as AddressInfo).port

/** A mail server on this machine, with the letters that it got. */
const mailServer = async (options: SMTPServerOptions = {}) => {
  const letters: Array<Letter> = []
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    logger: false,
    onAuth: ({ username, password }, _, callback) =>
      username === "night@x" && password === "p@ss/1"
        ? callback(null, { user: username })
        : callback(new Error(`no login for ${String(password)}`)),
    onRcptTo: ({ address }, _, callback) =>
      callback(address.startsWith("nobody") ? new Error(`no such box: ${address}`) : null),
    onData: (stream, session, callback) => {
      let text = ""
      stream.on("data", (chunk: Buffer) => (text += chunk.toString()))
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope
        const from = mailFrom === false ? "" : mailFrom.address
        letters.push({
          from,
          to: rcptTo.map(({ address }) => address),
          user: session.user,
          secure: session.secure,
          text,
        })
        callback()
      })
    },
    ...options,
  })
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  server.on("error", () => undefined)
  ends.push(() => server.close())
  return { letters, port: portOf(server.server) }
}

const notice = lateNotice(
  { host: "etl-1", job: "nightly", run_date: "2026-11-21" },
  Date.UTC(2026, 10, 22, 6),
)
const [from, everybody] = ["nightjar@example.org", ["ops@example.org", "boss@example.org"]] as const
/** To a receiver as a job has it: its address is a secret. */
const sendTo = (address: string) => {
  const named = { _tag: "Email", name: "notify[0]", on: ["late"], from, to: everybody } as const
  const services = [
    secretsOf(new Map([["env:SMTP", address]])),
    NodeServices.layer,
    NodeClient.layer(),
  ] as const
  return Effect.runPromise(
    tryOut({ ...named, address: { _tag: "Env", name: "SMTP" } }, notice).pipe(
      Effect.scoped,
      Effect.provide(Layer.mergeAll(...services)),
    ),
  )
}
const send = (address: string, to: ReadonlyArray<string> = everybody, isHere = true) => {
  const parsed = parseMailServer(address)
  const server = parsed && { ...parsed, isHere }
  if (server === undefined) throw new Error("no mail server")
  return Effect.runPromise(
    mail(server, { from, to }, notice).pipe(
      Effect.match({ onSuccess: () => "sent", onFailure: (why) => why }),
      Effect.timeoutOrElse({ duration: "2 seconds", orElse: () => Effect.succeed("not in time") }),
    ),
  )
}

it("the address of a mail server names host, port, login and how TLS begins, and nothing else is one", () => {
  const at = { host: "mail.example.org", isHere: false, login: undefined }
  expect(parseMailServer("smtps://mail.example.org\n")).toEqual({ ...at, port: 465, secure: true })
  expect(parseMailServer("smtp://n%40x:p%2F1@[::1]:2525/")).toEqual({
    host: "::1",
    port: 2525,
    secure: false,
    isHere: true,
    login: { user: "n@x", pass: "p/1" },
  })
  const others = "https://mail.example.org smtp:// smtp://h/path smtp://h?x=1 smtp://%zz@h mail".split(" ")
  expect(others.map(parseMailServer)).toEqual(others.map(() => undefined))
})

describe("an e-mail", () => {
  it("has the notice's words, goes to everybody named, and logs in", async () => {
    const { letters, port } = await mailServer()
    expect(await sendTo(`smtp://night%40x:p%40ss%2F1@127.0.0.1:${port}`)).toBe("the mail server took it")
    const [letter] = letters
    expect(letter).toMatchObject({ from, to: everybody, user: "night@x" })
    for (const line of [
      "Subject: nightjar: nightly: late\r\n",
      "Auto-Submitted: auto-generated\r\n",
      `X-Nightjar-Key: ${notice.key}\r\n`,
      `References: <${sha256Hex(notice.key).slice(0, 32)}@nightjar.invalid>\r\n`,
      "nightly (late): the run has not ended by 2026-11-22T06:00:00.000Z: no task =",
    ])
      expect(letter?.text).toContain(line)
  })

  it("that is refused says by whom, and repeats nothing of what the server said", async () => {
    const { letters, port } = await mailServer()
    expect([
      await send(`smtp://night%40x:wrong@127.0.0.1:${port}`),
      await send(`smtp://127.0.0.1:${port}`, ["nobody@example.org"]),
      await send("smtp://127.0.0.1:1"),
    ]).toEqual([
      "the mail server refuses the login",
      "the mail server refuses the sender or a recipient",
      "the mail server cannot be reached, or breaks off",
    ])
    expect(letters).toEqual([])
  })

  it("is not sent over TLS that cannot be trusted, whatever the environment says [exit notify mail]", async () => {
    const { letters, port } = await mailServer({ secure: true, key, cert })
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0")
    const address = `smtps://night%40x:p%40ss%2F1@127.0.0.1:${port}`
    const untrusted = await send(address)
    vi.unstubAllEnvs()
    const trusted = getCACertificates("default")
    setDefaultCACertificates([...trusted, cert])
    const told = await send(address)
    setDefaultCACertificates(trusted)
    expect([untrusted, told]).toEqual(["the mail server offers no TLS that can be trusted", "sent"])
    expect(letters).toMatchObject([{ secure: true, user: "night@x" }])
  })

  it("does not log in at another machine without TLS [exit notify mail]", async () => {
    const { letters, port } = await mailServer({ disabledCommands: ["STARTTLS"] })
    const address = `smtp://night%40x:p%40ss%2F1@127.0.0.1:${port}`
    expect(await send(address, undefined, false)).toBe("the mail server offers no TLS that can be trusted")
    expect(letters).toEqual([])
  })

  it("to a server that says nothing keeps nothing open", async () => {
    const open = new Set<unknown>()
    const silent: Server = createServer((socket) => {
      open.add(socket)
      socket.on("error", () => undefined)
      socket.on("close", () => open.delete(socket))
    })
    await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done))
    ends.push(() => silent.close())
    expect(await send(`smtp://127.0.0.1:${portOf(silent)}`)).toBe("not in time")
    await expect.poll(() => open.size).toBe(0)
  })
})
