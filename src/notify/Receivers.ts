/**
 * Telling receivers over HTTP or by a command: bounded in time, tried twice, never followed elsewhere. A
 * receiver that cannot be told is an error with its name and no address, for its address is a secret.
 */
import { Duration, Effect, Redacted, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { isSafeAddress } from "../jobs/Scalars.ts"
import type { Receiver, SecretReference } from "../jobs/Job.ts"
import { resolveReference } from "../jobs/Secrets.ts"
import { slackOf } from "./Notice.ts"
import type { Notice } from "./Notice.ts"

/** A receiver could not be told; the message contains no address. */
export class Undelivered extends Schema.TaggedError<Undelivered>()("Undelivered", {
  receiver: Schema.String,
  message: Schema.String,
}) {}

const answersWithin = Duration.seconds(5)
const pauseBetween = Duration.seconds(1)

/** Two tries, the pause between them, and what it takes to give up: nothing is waited for any longer. */
export const toldWithin = Duration.seconds(13)

const post = Effect.fnUntraced(function* (address: URL, body: string, type: string) {
  const client = yield* HttpClient.HttpClient
  const request = HttpClientRequest.post(address).pipe(HttpClientRequest.bodyText(body, type))
  const { status } = yield* client.execute(request).pipe(
    Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
    Effect.mapError(() => "it cannot be reached"),
  )
  if (status >= 300 && status < 400)
    return yield* Effect.fail(`it redirects (${status}), which is not followed`)
  if (status < 200 || status > 299) return yield* Effect.fail(`it answered ${status}`)
})

const secretOf = (reference: SecretReference) =>
  Effect.mapError(resolveReference(reference), ({ message }) => message)

const addressOf = Effect.fnUntraced(function* (receiver: Extract<Receiver, { readonly address: unknown }>) {
  const secret = yield* secretOf(receiver.address)
  const url = URL.parse(Redacted.value(secret).trim())
  if (url === null || !isSafeAddress(url))
    return yield* Effect.fail("its address is not https:// (plain http only to this machine)")
  return url
})

const mailTo = Effect.fnUntraced(function* (
  receiver: Extract<Receiver, { readonly _tag: "Email" }>,
  notice: Notice,
) {
  const { mail, mailServerRule, parseMailServer } = yield* Effect.promise(() => import("./Email.ts"))
  const server = parseMailServer(Redacted.value(yield* secretOf(receiver.address)))
  if (server === undefined) return yield* Effect.fail(mailServerRule)
  yield* mail(server, receiver, notice)
})

/** The same address, one level down, with its query. */
const below = (url: URL, name: string): URL => {
  const further = new URL(url)
  further.pathname = `${url.pathname.replace(/\/$/, "")}/${name}`
  return further
}

const runCommand = Effect.fnUntraced(function* (argv: ReadonlyArray<string>, input: string) {
  const [program = "", ...args] = argv
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const handle = yield* spawner
    .spawn(
      ChildProcess.make(program, args, {
        stdin: Stream.make(new TextEncoder().encode(input)),
        stdout: "ignore",
        stderr: "ignore",
        forceKillAfter: "1 second",
      }),
    )
    .pipe(Effect.mapError(() => "the command cannot be started"))
  const code = yield* handle.exitCode.pipe(Effect.mapError(() => "the command was killed"))
  if (code !== 0) return yield* Effect.fail(`the command ended with exit code ${code}`)
}, Effect.scoped)

/** Each try within its time; a second one after a pause. */
const twice = <E, R>(receiver: string, once: Effect.Effect<void, E | string, R>) => {
  const bounded = once.pipe(
    Effect.timeoutOrElse({
      duration: answersWithin,
      orElse: () => Effect.fail(`it did not answer within ${Duration.toSeconds(answersWithin)} seconds`),
    }),
  )
  return bounded.pipe(
    Effect.catch(() => Effect.andThen(Effect.sleep(pauseBetween), bounded)),
    Effect.mapError((why) => new Undelivered({ receiver, message: String(why) })),
  )
}

/** One notice to a receiver that listens to at least one of its events; pings get no notices. */
export const tell = (receiver: Exclude<Receiver, { readonly _tag: "Ping" }>, notice: Notice) => {
  if (receiver._tag === "Command")
    return twice(receiver.name, runCommand(receiver.argv, `${JSON.stringify(notice)}\n`))
  if (receiver._tag === "Email") return twice(receiver.name, mailTo(receiver, notice))
  const body = receiver.format === "slack" ? slackOf(notice) : notice
  return twice(
    receiver.name,
    Effect.flatMap(addressOf(receiver), (url) => post(url, JSON.stringify(body), "application/json")),
  )
}

/** In the manner of Healthchecks: `/start`, then the address itself for success or `/fail`. */
export const ping = (
  receiver: Extract<Receiver, { readonly _tag: "Ping" }>,
  moment: { readonly _tag: "Begins" } | { readonly _tag: "Ended"; readonly exit_code: number },
) =>
  twice(
    receiver.name,
    Effect.flatMap(addressOf(receiver), (url) =>
      moment._tag === "Begins"
        ? post(below(url, "start"), "", "text/plain")
        : post(
            moment.exit_code === 0 ? url : below(url, "fail"),
            `exit code ${moment.exit_code}\n`,
            "text/plain",
          ),
    ),
  )
