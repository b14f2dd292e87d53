/**
 * Telling receivers over HTTP, by e-mail or by a command: bounded in time, tried twice, never followed
 * elsewhere. An error is why not, without the address, which is a secret.
 */
import { accessSync, constants } from "node:fs"
import { connect, type Socket } from "node:net"
import { delimiter, join } from "node:path"
import { Duration, Effect, Predicate, Redacted, Result, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import type { ChildProcessSpawner } from "effect/process"
import { codeOf } from "../base/DurableFile.ts"
import { sha256Hex } from "../base/Hashes.ts"
import { isLoopback } from "../base/Text.ts"
import type { Receiver } from "../jobs/Job.ts"
import { readProcess } from "../jobs/EnvFile.ts"
import { isSafeAddress, type SecretReference } from "../jobs/Scalars.ts"
import { resolveReference, runCommand, type Secrets } from "../jobs/Secrets.ts"
import { slackOf, type Notice } from "../report/Notice.ts"
import { answerOf, answersWithin, pauseBetween, tooSlow } from "../report/Outbound.ts"

/** Two tries, the pause between them and giving up; `exec:` commands have their own time in it. */
const toldWithin = Duration.seconds(43)

type ToPing = Extract<Receiver, { readonly _tag: "Ping" }>
type ToMail = Extract<Receiver, { readonly _tag: "Email" }>
type ToNotify = Exclude<Receiver, ToPing>

/** Sends once and returns what was answered, in a word or two; what is known of the body is its status. */
const post = Effect.fnUntraced(function* (address: URL, body: string, type: string) {
  const client = yield* HttpClient.HttpClient
  const request = HttpClientRequest.post(address).pipe(HttpClientRequest.bodyText(body, type))
  const { status } = yield* Effect.mapError(answerOf(client.execute(request)), ({ why }) => why)
  return `it answered ${status}`
})

export const secretOf = (reference: SecretReference) =>
  Effect.mapError(resolveReference(reference), ({ message }) => message)

const addressOf = Effect.fnUntraced(function* ({ address }: Pick<ToPing, "address">) {
  const url = URL.parse(Redacted.value(yield* secretOf(address)).trim())
  if (url === null || !isSafeAddress(url))
    return yield* Effect.fail("its address is not https:// (plain http only to this machine)")
  return url
})

const mailServerOf = Effect.fnUntraced(function* ({ address }: Pick<ToMail, "address">) {
  const server = parseMailServer(Redacted.value(yield* secretOf(address)))
  return server ?? (yield* Effect.fail(mailServerRule))
})

/** The same address, one level down, with its query. */
const below = (url: URL, name: string): URL => {
  const further = new URL(url)
  further.pathname = `${url.pathname.replace(/\/$/, "")}/${name}`
  return further
}

const isProgram = (path: string) => Result.isSuccess(Result.try(() => accessSync(path, constants.X_OK)))

/** The program of a command is looked for as the system does: in PATH, unless its name has a slash. */
const checkProgram = Effect.fnUntraced(function* ([program = ""]: ReadonlyArray<string>) {
  const folders = (yield* readProcess(["PATH"])).get("PATH")?.split(delimiter) ?? []
  const places = program.includes("/") ? [program] : folders.map((folder) => join(folder, program))
  if (!places.some(isProgram)) return yield* Effect.fail("there is no such program, or it is not executable")
})

type Delivery = Effect.Effect<string, string, HttpClient.HttpClient | ChildProcessSpawner.ChildProcessSpawner>

/** Resolves the address; the delivery is what it returns. */
const deliveryTo = (receiver: ToNotify, notice: Notice): Effect.Effect<Delivery, string, Secrets> => {
  switch (receiver._tag) {
    case "Command": {
      const stdin = Stream.make(new TextEncoder().encode(`${JSON.stringify(notice)}\n`))
      const ran = runCommand(receiver.argv, { stdin, stdout: "ignore" })
      return Effect.succeed(Effect.as(ran, "the command ended with exit code 0"))
    }
    case "Email":
      return Effect.map(mailServerOf(receiver), (server): Delivery =>
        Effect.as(mail(server, receiver, notice), "the mail server took it"),
      )
    case "Url": {
      const body = JSON.stringify(receiver.format === "slack" ? slackOf(notice) : notice)
      return Effect.map(addressOf(receiver), (url) => post(url, body, "application/json"))
    }
  }
}

/** In the manner of Healthchecks: a run begins, or ended; or nothing of it changes, and a line is noted. */
const pingTo = (receiver: ToPing, what: "start" | "success" | "fail" | "log", text: string) =>
  Effect.map(addressOf(receiver), (url): Delivery =>
    post(what === "success" ? url : below(url, what), text, "text/plain"),
  )

/** Each delivery within its time, whatever it took to resolve the address. */
const once = <R>(opened: Effect.Effect<Delivery, string, R>) =>
  Effect.flatMap(opened, (delivery) =>
    Effect.timeoutOrElse(delivery, { duration: answersWithin, orElse: () => Effect.fail(tooSlow) }),
  )

const inTime = <R>(told: Effect.Effect<string, string, R>) =>
  Effect.timeoutOrElse(told, {
    duration: toldWithin,
    orElse: () => Effect.fail("it did not answer in time"),
  })

const twice = <R>(opened: Effect.Effect<Delivery, string, R>) =>
  inTime(Effect.catch(once(opened), () => Effect.andThen(Effect.sleep(pauseBetween), once(opened))))

/** One notice to a receiver that listens to at least one of its events; pings get no notices. */
export const tell = (receiver: ToNotify, notice: Notice) => twice(deliveryTo(receiver, notice))

export const ping = (...asked: Parameters<typeof pingTo>) => twice(pingTo(...asked))

/** One try; returns what was answered, or fails with why not. */
export const tryOut = (receiver: Receiver, notice: Notice) =>
  inTime(once(receiver._tag === "Ping" ? pingTo(receiver, "log", notice.text) : deliveryTo(receiver, notice)))

/** Whether a receiver could be told, as far as that is known without telling it; fails with why not. */
export const checkReceiver = (receiver: Receiver): Effect.Effect<unknown, string, Secrets> => {
  if (receiver._tag === "Command") return checkProgram(receiver.argv)
  return receiver._tag === "Email" ? mailServerOf(receiver) : addressOf(receiver)
}

// E-mail to the operator's own server: over TLS at once (`smtps://`), or by a STARTTLS that is demanded,
// except to this machine. What the server answers may repeat the login, and is not shown.

export const mailServerRule =
  "its address is not smtps://USER:PASSWORD@HOST, or smtp:// for a server with STARTTLS"

const ports: Readonly<Record<string, number>> = { "smtps:": 465, "smtp:": 587 }

export const parseMailServer = (value: string) => {
  const url = URL.parse(value.trim())
  const port = ports[url?.protocol ?? ""]
  if (url === null || port === undefined || url.hostname === "") return undefined
  if (!["", "/"].includes(url.pathname) || url.search !== "" || url.hash !== "") return undefined
  const login = Result.try(() => [url.username, url.password].map(decodeURIComponent))
  if (Result.isFailure(login)) return undefined
  const [user = "", pass = ""] = login.success
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? port : Number(url.port),
    secure: url.protocol === "smtps:",
    isHere: isLoopback(url.hostname),
    login: user === "" ? undefined : { user, pass },
  }
}
type MailServer = NonNullable<ReturnType<typeof parseMailServer>>

/** What the library's codes mean; its messages quote the server. */
const whyNot: Readonly<Record<string, string>> = {
  EAUTH: "the mail server refuses the login",
  EENVELOPE: "the mail server refuses the sender or a recipient",
  ETLS: "the mail server offers no TLS that can be trusted",
}

const isOfTls = /CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO_VERIFY/

const failureOf = (cause: unknown): string => {
  // Of the system or of TLS, where the library puts its own code in the place of theirs.
  const original = Predicate.hasProperty(cause, "originalCode") ? String(cause.originalCode) : ""
  return (
    whyNot[isOfTls.test(original) ? "ETLS" : codeOf(cause)] ??
    "the mail server cannot be reached, or breaks off"
  )
}

/** Destroyed with its scope, so that a server that never answers keeps nothing alive. */
const socketTo = ({ host, port }: MailServer) =>
  Effect.acquireRelease(
    Effect.callback<Socket, string>((resume) => {
      const socket = connect({ host, port })
      socket.once("connect", () => resume(Effect.succeed(socket)))
      socket.once("error", (cause) => resume(Effect.fail(failureOf(cause))))
      return Effect.sync(() => socket.destroy())
    }),
    (socket) => Effect.sync(() => socket.destroy()),
  )

/** The caller bounds the time. */
export const mail = Effect.fnUntraced(function* (
  server: MailServer,
  { from, to }: Pick<Extract<Receiver, { readonly _tag: "Email" }>, "from" | "to">,
  { job, key, run_id, events, text }: Notice,
) {
  const { host, port, secure, isHere, login } = server
  const { createTransport } = yield* Effect.promise(() => import("nodemailer"))
  const connection = yield* socketTo(server)
  const transport = createTransport({
    host,
    port,
    connection,
    secure,
    requireTLS: !isHere,
    ignoreTLS: isHere,
    ...(login === undefined ? {} : { auth: login }),
    // Said here, so that no variable of the environment switches it off.
    tls: { rejectUnauthorized: true },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  const subject = `nightjar: ${run_id ?? job}: ${events.join(", ")}`
  // Repetitions have one thread: they refer to a letter that was never sent.
  const thread = `<${sha256Hex(key).slice(0, 32)}@nightjar.invalid>`
  const headers = { "Auto-Submitted": "auto-generated", "X-Nightjar-Key": key, References: thread }
  yield* Effect.tryPromise({
    try: () => transport.sendMail({ from, to: [...to], subject, text, headers }),
    catch: failureOf,
  })
}, Effect.scoped)
