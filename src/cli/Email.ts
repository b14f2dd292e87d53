/**
 * A notice by e-mail, to a server of the operator's own: over TLS from the first byte (`smtps://`), or by a
 * STARTTLS that is demanded (`smtp://`), except to this machine. Nothing that the server answers is shown: it
 * may repeat the login.
 */
import { connect } from "node:net"
import type { Socket } from "node:net"
import { Effect, Option, Schema } from "effect"
import { createTransport } from "nodemailer"
import { isLoopback } from "../base/Text.ts"
import { sha256Hex } from "../base/Hashes.ts"
import type { Receiver } from "../jobs/Job.ts"
import type { Notice } from "../report/Notice.ts"

export interface MailServer {
  readonly host: string
  readonly port: number
  readonly secure: boolean
  readonly isHere: boolean
  readonly login: { readonly user: string; readonly pass: string } | undefined
}

export const mailServerRule =
  "its address is not smtps://USER:PASSWORD@HOST, or smtp:// for a server with STARTTLS"

const ports: Readonly<Record<string, number>> = { "smtps:": 465, "smtp:": 587 }

const decoded = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Undefined if it is not the address of a mail server. */
export const parseMailServer = (value: string): MailServer | undefined => {
  const url = URL.parse(value.trim())
  const port = ports[url?.protocol ?? ""]
  if (url === null || port === undefined || url.hostname === "") return undefined
  if (!["", "/"].includes(url.pathname) || url.search !== "" || url.hash !== "") return undefined
  const [user, pass] = [decoded(url.username), decoded(url.password)]
  if (user === undefined || pass === undefined) return undefined
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? port : Number(url.port),
    secure: url.protocol === "smtps:",
    isHere: isLoopback(url.hostname),
    login: user === "" ? undefined : { user, pass },
  }
}

/** What the library's codes mean; its messages quote the server. */
const whyNot: Readonly<Record<string, string>> = {
  EAUTH: "the mail server refuses the login",
  EENVELOPE: "the mail server refuses the sender or a recipient",
  ETLS: "the mail server offers no TLS that can be trusted",
}

const Cause = Schema.Struct({
  code: Schema.optionalKey(Schema.String),
  /** Of the system or of TLS, where the library puts its own code in the place of theirs. */
  originalCode: Schema.optionalKey(Schema.String),
})
const readCause = Schema.decodeUnknownOption(Cause)

const isOfTls = /CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO_VERIFY/

const failureOf = (cause: unknown): string => {
  const { code = "", originalCode = "" } = Option.getOrElse(readCause(cause), (): typeof Cause.Type => ({}))
  const known = isOfTls.test(originalCode) ? "ETLS" : code
  return whyNot[known] ?? "the mail server cannot be reached, or breaks off"
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
