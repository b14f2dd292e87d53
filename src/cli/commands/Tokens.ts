/**
 * `nightjar tokens list|exchange|revoke`: stored tokens (section 2.6), without their keys. A ticket is read
 * from the environment, a file or stdin, never from the command line, which other users of the machine can
 * read. Exchange and revoke hold the folder's lock, as a run does.
 */
import { existsSync } from "node:fs"
import { Clock, Effect, Option, Redacted, Stdio, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { counted } from "../../base/Text.ts"
import { jsonFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { Output, say, sayJson, warn } from "../Output.ts"
import { holdOutput } from "../RunFolder.ts"
import { Wiring } from "../Wiring.ts"
import { parseReference } from "../../jobs/Scalars.ts"
import { Secrets } from "../../jobs/Secrets.ts"
import { KnownSecrets } from "../../privacy/KnownSecrets.ts"
import { table } from "../../report/TextTable.ts"
import { ExecutionId } from "../../service/Ids.ts"
import type { StoredToken } from "../../tokens/StoredToken.ts"
import { expiryWarningMs } from "../../tokens/TokenLogin.ts"
import { exchangeByHand, revokeByHand } from "../../tokens/ExchangeTicket.ts"
import { TokenStore, listTokens } from "../../tokens/TokenStore.ts"

// What `nightjar tokens exchange` and `revoke` share: the job's token store and service under the folder's
// lock, and a ticket that is read from anywhere but the command line.

interface ByHand {
  readonly output: string
  /** The job file's path. */
  readonly job: string
}

/** The job, its token store and its service, in a locked folder. */
const withTokens = Effect.fnUntraced(function* <A, E, R>(
  { output, job: path }: ByHand,
  work: Effect.Effect<A, E, R>,
) {
  const [job] = yield* loadJobs([path])
  if (job?.tokens_key === undefined) return yield* refuse("token-store-unset")
  const wiring = yield* Wiring
  yield* holdOutput(output, [job.share])
  return yield* Effect.provide(work, wiring.tokens(job, output))
}, Effect.scoped)

const openedStore = Effect.gen(function* () {
  const store = yield* TokenStore
  return store._tag === "Open" ? store : yield* refuse("token-store-unset")
})

/** Loaded when a token command needs it. */
const ticketBytesMax = 65_536

/** Never a literal. A path is relative to the current folder. */
const readTicket = Effect.fnUntraced(function* (given: string) {
  if (given === "-") return yield* readStdin
  const reference = parseReference(given, ".")
  if (reference === undefined || reference._tag === "Exec") return yield* refuse("ticket-literal")
  const { resolve } = yield* Secrets
  return yield* resolve(reference)
})

const readStdin = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  const text = yield* stdio.stdin.pipe(
    Stream.decodeText(),
    Stream.runFold(
      () => "",
      (read, chunk) => (read.length > ticketBytesMax ? read : read + chunk),
    ),
    Effect.mapError(() => refuse("ticket-missing")),
  )
  const ticket = text.trim()
  return ticket === "" || text.length > ticketBytesMax ? yield* refuse("ticket-missing") : yield* held(ticket)
})

const held = Effect.fnUntraced(function* (ticket: string) {
  ;(yield* KnownSecrets).hold(ticket, "process")
  return Redacted.make(ticket)
})

export const exchangeTicket = Effect.fnUntraced(function* (
  input: ByHand & {
    readonly execution_id: ExecutionId
    readonly ticket: string
    readonly name: string | undefined
  },
) {
  const wiring = yield* Wiring
  const ticket = yield* readTicket(input.ticket).pipe(Effect.provide(wiring.secrets))
  const { execution_id, name } = input
  const exchanged = Effect.flatMap(openedStore, (store) =>
    exchangeByHand(store, { execution_id, ticket, name }),
  )
  return yield* withTokens(input, exchanged)
})

export const revokeToken = Effect.fnUntraced(function* (input: ByHand & { readonly name: string }) {
  if (!existsSync(`${input.output}/tokens.sqlite`))
    return yield* refuse("token-store-empty", { output: input.output })
  const revoked = yield* withTokens(
    input,
    Effect.flatMap(openedStore, (store) => revokeByHand(store, input.name)),
  )
  return revoked ?? (yield* refuse("token-unknown"))
})

const iso = (at: number): string => new Date(at).toISOString()

/** What is known about a token without its key; `days_left` counts whole days. */
const describeToken = (token: StoredToken, now: number, warningMs: number) => {
  const left = token.expires_at - now
  const status =
    token.dropped !== undefined
      ? `dropped: ${token.dropped.reason}`
      : left <= 0
        ? "expired"
        : left <= warningMs
          ? "expires soon"
          : "active"
  return {
    name: token.name,
    service: token.service,
    customer_id: token.customer_id,
    engine_reference: token.engine_reference,
    token_id: token.token_id,
    features: token.features,
    exchanged_at: iso(token.exchanged_at),
    expires_at: iso(token.expires_at),
    days_left: Math.max(0, Math.floor(left / (24 * 60 * 60_000))),
    status,
  }
}

/** All tokens of the output folder; none if there is no store. */
const storedTokens = Effect.fnUntraced(function* (output: string) {
  const path = `${output}/tokens.sqlite`
  if (!existsSync(path)) return []
  return yield* listTokens(path)
})

const list = Command.make(
  "list",
  { json: jsonFlag },
  Effect.fn("Tokens.list")(function* ({ json }) {
    const tokens = yield* storedTokens(yield* outputFolder)
    const now = yield* Clock.currentTimeMillis
    const rows = tokens.map((token) => describeToken(token, now, expiryWarningMs))
    if (json) return yield* sayJson(rows)
    if (rows.length === 0) return yield* say("No tokens are stored.")
    const { out } = yield* Output
    const header = ["name", "customer", "engine", "service", "features", "ends", "days left", "status"]
    const cells = rows.map((row) => [
      row.name,
      row.customer_id,
      row.engine_reference,
      row.service,
      row.features.join(" "),
      row.expires_at.slice(0, 10),
      String(row.days_left),
      row.status,
    ])
    yield* say(table(header, cells, { width: out.width }))
    const ending = rows.filter(({ status }) => status === "expires soon")
    const [first] = ending.map(({ expires_at }) => expires_at.slice(0, 10)).toSorted()
    if (first !== undefined)
      yield* warn("tokens-expiring", { tokens: counted(ending.length, "stored token"), day: first })
  }),
).pipe(Command.withDescription("Lists the stored tokens without their keys"))

const jobArgument = Argument.String("JOB").pipe(
  Argument.withDescription("The job file that names the service and `tokens.key`"),
)

const exchange = Command.make(
  "exchange",
  {
    job: jobArgument,
    execution_id: Argument.String("EXECUTION_ID").pipe(
      Argument.withDescription("The execution whose start returned the ticket"),
    ),
    ticket: Flag.String("ticket").pipe(
      Flag.withMetavar("env:NAME|file:PATH|-"),
      Flag.withDescription("Where the ticket is; - reads it from stdin"),
    ),
    name: optionalFlag("name", "NAME", "Default: customer_id/engine_reference"),
    json: jsonFlag,
  },
  Effect.fn("Tokens.exchange")(function* ({ job, execution_id, ticket, name, json }) {
    const result = yield* exchangeTicket({
      output: yield* outputFolder,
      job,
      execution_id: ExecutionId.make(execution_id),
      ticket,
      name: Option.getOrUndefined(name),
    })
    if (result._tag === "NoToken") {
      return yield* refuse("ticket-not-exchanged", { detail: result.message })
    }
    const { token } = result
    if (json) return yield* sayJson({ ...token, expires_at: iso(token.expires_at) })
    const features = token.features.join(", ") || "the engine's default features"
    yield* say(
      `${token.name} stored: ${token.customer_id} on ${token.engine_reference}, for ${features}; ` +
        `ends ${iso(token.expires_at).slice(0, 10)}.`,
    )
  }),
).pipe(
  Command.withDescription("Exchanges a ticket for a token and stores it encrypted"),
  Command.withExamples([
    {
      command: "nightjar tokens exchange jobs/nightly.yaml 3f2c… --ticket env:TICKET",
      description: "The ticket of a start that was made elsewhere",
    },
  ]),
)

const revoke = Command.make(
  "revoke",
  {
    job: jobArgument,
    name: Argument.String("NAME").pipe(Argument.withDescription("As `tokens list` shows it")),
    json: jsonFlag,
  },
  Effect.fn("Tokens.revoke")(function* ({ job, name, json }) {
    const { token, answer } = yield* revokeToken({ output: yield* outputFolder, job, name })
    if (json) return yield* sayJson({ name: token.name, token_id: token.token_id, answer })
    yield* say(`${token.name} ${revocations[answer]}; it is no longer used.`)
  }),
).pipe(
  Command.withDescription("Revokes a token at the service and deletes it here"),
  Command.withExamples([
    {
      command: "nightjar tokens revoke jobs/nightly.yaml c-0001/es-bank:api",
      description: "The stored credentials are removed at the service",
    },
  ]),
)

const revocations = {
  revoked: "is revoked",
  already_revoked: "was already revoked",
  not_found: "is unknown to the service",
} as const

export const tokens = Command.make("tokens").pipe(
  Command.withDescription("Lists, exchanges or revokes stored tokens"),
  Command.withSubcommands([list, exchange, revoke]),
)
