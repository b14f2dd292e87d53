/**
 * Stored tokens (section 2.6), without their keys. A ticket never comes from the command line, which other
 * users of the machine can read. `exchange` and `revoke` hold the folder's lock, as a run does.
 */
import { existsSync } from "node:fs"
import { Clock, Effect, Option, Redacted, Stdio, type Context } from "effect"
import { Command, Flag } from "effect/cli"
import { readWithin } from "../../base/DurableFile.ts"
import { counted, isoTime } from "../../base/Text.ts"
import { command } from "../CommandRow.ts"
import { argument, note, optionalFlag, say, warn } from "../Output.ts"
import { refuse } from "../Failures.ts"
import { loadOne } from "../Jobs.ts"
import { hasLedger, holdOutput } from "../OutputFolder.ts"
import { Wiring } from "../Wiring.ts"
import { parseReference } from "../../jobs/Scalars.ts"
import { Secrets } from "../../jobs/Secrets.ts"
import { KnownSecrets } from "../../privacy/KnownSecrets.ts"
import { table } from "../../report/TextTable.ts"
import { ExecutionId } from "../../service/Ids.ts"
import type { StoredToken } from "../../tokens/StoredToken.ts"
import { daysLeft, expiryWarningMs } from "../../tokens/TokenLogin.ts"
import { exchangeByHand, revokeByHand } from "../../tokens/ExchangeTicket.ts"
import { TokenStore, listTokens } from "../../tokens/TokenStore.ts"

const withTokens = Effect.fnUntraced(function* <A, E, R>(
  output: string,
  path: string,
  work: (store: OpenStore) => Effect.Effect<A, E, R>,
) {
  const job = yield* loadOne(path)
  if (job.tokens_key === undefined) return yield* refuse("token-store-unset")
  yield* holdOutput(output, [job.share])
  const opened = Effect.gen(function* () {
    const store = yield* TokenStore
    return store._tag === "Open" ? yield* work(store) : yield* refuse("token-store-unset")
  })
  return yield* Effect.provide(opened, (yield* Wiring).tokens(job, output))
}, Effect.scoped)
type OpenStore = Extract<Context.Service.Shape<typeof TokenStore>, { readonly _tag: "Open" }>

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
  const read = yield* Effect.option(readWithin(stdio.stdin, ticketBytesMax, "it is too long"))
  const ticket = Option.match(read, { onNone: () => "", onSome: (bytes) => bytes.toString("utf8").trim() })
  if (ticket === "") return yield* refuse("ticket-missing")
  ;(yield* KnownSecrets).hold(ticket, "process")
  return Redacted.make(ticket)
})

/** What is known about a token without its key; `days_left` counts whole days. */
const describeToken = (token: StoredToken, now: number) => {
  const left = token.expires_at - now
  const ofTime = left <= 0 ? "expired" : left <= expiryWarningMs ? "expires soon" : "active"
  const { name, service, customer_id, engine_reference, token_id, features, dropped } = token
  return {
    name,
    service,
    customer_id,
    engine_reference,
    token_id,
    features,
    exchanged_at: isoTime(token.exchanged_at),
    expires_at: isoTime(token.expires_at),
    days_left: daysLeft(token, now),
    status: dropped === undefined ? ofTime : `dropped: ${dropped.reason}`,
  }
}

const list = command(
  "list",
  {
    flags: {},
    run: function* (_, output) {
      const path = `${output}/tokens.sqlite`
      const isNew = !existsSync(path)
      if (isNew && !(yield* hasLedger)) yield* note(`No run has been started in ${output} yet.`)
      const tokens = isNew ? [] : yield* listTokens(path)
      const now = yield* Clock.currentTimeMillis
      return tokens.map((token) => describeToken(token, now))
    },
    text: (rows, out) =>
      Effect.gen(function* () {
        if (rows.length === 0) return yield* say("No tokens are stored.")
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
        yield* say(table(header, cells, out))
        const expired = rows.filter(({ status }) => status === "expired").length
        if (expired > 0) yield* warn("tokens-expired", { tokens: counted(expired, "stored token") })
        const ending = rows.filter(({ status }) => status === "expires soon")
        const [first] = ending.map(({ expires_at }) => expires_at.slice(0, 10)).toSorted()
        if (first !== undefined)
          yield* warn("tokens-expiring", { tokens: counted(ending.length, "stored token"), day: first })
      }),
  },
  "Lists the stored tokens without their keys",
)

const jobArgument = argument("JOB", "The job file that names the service and `tokens.key`")

const exchange = command(
  "exchange",
  {
    examples: {
      "nightjar tokens exchange jobs/nightly.yaml 3f2c… --ticket env:TICKET":
        "The ticket of a start that was made elsewhere",
    },
    flags: {
      job: jobArgument,
      execution_id: argument("EXECUTION_ID", "The execution whose start returned the ticket"),
      ticket: Flag.String("ticket").pipe(
        Flag.withMetavar("env:NAME|file:PATH|-"),
        Flag.withDescription("Where the ticket is; - reads it from stdin"),
      ),
      name: optionalFlag("name", "NAME", "Default: customer_id/engine_reference"),
    },
    left: {
      kept: "The tokens that were stored before are kept; the one of this ticket may be lost.",
      next: "Run the same command again, with a new ticket if the service refuses this one.",
    },
    run: function* ({ job, name, ...given }, output) {
      const { secrets } = yield* Wiring
      const ticket = yield* Effect.provide(readTicket(given.ticket), secrets)
      const execution_id = ExecutionId.make(given.execution_id)
      const input = { execution_id, ticket, name: Option.getOrUndefined(name) }
      const result = yield* withTokens(output, job, (store) => exchangeByHand(store, input))
      return result._tag === "NoToken"
        ? yield* refuse("ticket-not-exchanged", { detail: result.message })
        : { ...result.token, expires_at: isoTime(result.token.expires_at) }
    },
    text: (token) => {
      const features = token.features.join(", ") || "the engine's default features"
      const where = `${token.customer_id} on ${token.engine_reference}, for ${features}`
      return `${token.name} stored: ${where}; ends ${token.expires_at.slice(0, 10)}.`
    },
  },
  "Exchanges a ticket for a token and stores it encrypted",
)

const revocations = {
  revoked: "is revoked",
  already_revoked: "was already revoked",
  not_found: "is unknown to the service",
} as const

const revoke = command(
  "revoke",
  {
    examples: {
      "nightjar tokens revoke jobs/nightly.yaml c-0001/es-bank:api":
        "The stored credentials are removed at the service",
    },
    flags: { job: jobArgument, name: argument("NAME", "As `tokens list` shows it") },
    run: function* ({ job, name }, output) {
      if (!existsSync(`${output}/tokens.sqlite`)) return yield* refuse("token-store-empty", { output })
      const revoked = yield* withTokens(output, job, (store) => revokeByHand(store, name)).pipe(
        Effect.catchTag("AnswerLost", () => refuse("token-perhaps-revoked")),
      )
      return revoked ?? (yield* refuse("token-unknown"))
    },
    json: ({ token, answer }) => ({ name: token.name, token_id: token.token_id, answer }),
    text: ({ token, answer }) => `${token.name} ${revocations[answer]}; it is no longer used.`,
  },
  "Revokes a token at the service and deletes it here",
)

export const tokens = Command.make("tokens").pipe(Command.withSubcommands([list, exchange, revoke]))
