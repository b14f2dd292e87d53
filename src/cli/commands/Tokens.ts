/**
 * `nightjar tokens list|exchange|revoke`: stored tokens (section 2.6), without their keys. A ticket is read
 * from the environment, a file or stdin, never from the command line, which other users of the machine can
 * read. Exchange and revoke hold the folder's lock, as a run does.
 */
import { existsSync } from "node:fs"
import { Clock, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ExecutionId } from "../../service/Ids.ts"
import type { StoredToken } from "../../tokens/StoredToken.ts"
import { expiryWarningMs } from "../../tokens/TokenLogin.ts"
import { counted } from "../../base/Text.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag, optionalFlag, outputFolder } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { Output, say, sayJson, warn } from "../Output.ts"
import { exchangeTicket, revokeToken } from "../TokenCalls.ts"
import { listTokens } from "../../tokens/TokenStore.ts"

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
