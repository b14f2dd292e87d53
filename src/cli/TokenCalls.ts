/**
 * What `nightjar tokens exchange` and `revoke` do at the service (sections 4.6 and 4.7) and in the store, one
 * after the other under the folder's lock: nothing is stored that the service did not give, and nothing is
 * dropped that it did not answer for.
 */
import { existsSync } from "node:fs"
import { Clock, Effect, Redacted, Stdio, Stream } from "effect"
import { foldRun } from "../ledger/RunState.ts"
import { loadJobs } from "./Jobs.ts"
import { UsageRefused } from "./Failures.ts"
import { openedLedger } from "./LedgerOf.ts"
import { closeLock, prepareOutput } from "./RunFolder.ts"
import { KnownSecrets } from "../secrets/KnownSecrets.ts"
import { Wiring } from "./Wiring.ts"

interface ByHand {
  readonly output: string
  /** The job file's path. */
  readonly job: string
}

const noKey =
  "this job opens no token store: give it `tokens: { key: env:NAME }` " +
  "(`openssl rand -base64 32` makes a key)"

/** The job, its token store and its service, in a locked folder. */
const withTokens = Effect.fnUntraced(function* <A, E, R>(
  { output, job: path }: ByHand,
  work: Effect.Effect<A, E, R>,
) {
  const [job] = yield* loadJobs([path])
  if (job?.tokens_key === undefined) return yield* new UsageRefused({ message: noKey })
  const { lockFolder } = yield* Effect.promise(() => import("../foundation/FolderLock.ts"))
  const wiring = yield* Wiring
  yield* prepareOutput(output, [job.share])
  return yield* Effect.scoped(
    Effect.gen(function* () {
      yield* lockFolder(`${output}/run.lock`)
      yield* closeLock(output)
      return yield* Effect.provide(work, wiring.tokens(job, output))
    }),
  )
})

const openedStore = Effect.gen(function* () {
  const { TokenStore } = yield* Effect.promise(() => import("../tokens/TokenStore.ts"))
  const store = yield* TokenStore
  return store._tag === "Open" ? store : yield* new UsageRefused({ message: noKey })
})

const openedService = Effect.flatMap(
  Effect.promise(() => import("../client/Service.ts")),
  (room) => room.Service,
)

const literalTicket =
  "--ticket takes env:NAME, file:PATH or - for stdin: a ticket on the command line is seen by every user " +
  "of the machine and kept in the shell's history"
const ticketBytesMax = 65_536

/** Never a literal. A path is relative to where the command is run. */
const readTicket = Effect.fnUntraced(function* (given: string) {
  if (given === "-") return yield* readStdin
  const { parseReference } = yield* Effect.promise(() => import("../jobs/Reference.ts"))
  const reference = parseReference(given, ".")
  if (reference === undefined || reference._tag === "Exec")
    return yield* new UsageRefused({ message: literalTicket })
  const { Secrets } = yield* Effect.promise(() => import("../jobs/Secrets.ts"))
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
    Effect.mapError(() => new UsageRefused({ message: "stdin cannot be read" })),
  )
  const ticket = text.trim()
  return ticket === "" || text.length > ticketBytesMax
    ? yield* new UsageRefused({ message: "stdin holds no ticket" })
    : yield* held(ticket)
})

const held = Effect.fnUntraced(function* (ticket: string) {
  ;(yield* KnownSecrets).hold(ticket, "process")
  return Redacted.make(ticket)
})

/** The login of an execution that this folder's ledger knows, as the breaker knows it. */
const fingerprintOf = Effect.fnUntraced(function* (execution_id: string) {
  const ledger = yield* openedLedger
  for (const { fact } of (yield* ledger.runs).toReversed()) {
    const attempts = [...(foldRun(yield* ledger.facts(fact.run_id))?.tasks.values() ?? [])].flatMap(
      (task) => task.attempts,
    )
    const known = attempts.find((attempt) => attempt.execution_id === execution_id)
    if (known !== undefined) return known.fingerprint
  }
  return undefined
})

const refused =
  "the service exchanges no token for this ticket; it gives one answer for every reason: unknown, wrong, " +
  "spent or expired ticket, login not accepted yet, another application, tokenization not enabled"
const incomplete = "the service gave a token without saying whose it is; it cannot be stored"

const lost =
  "the answer to the exchange was lost twice: the ticket may be spent. Nothing is stored; start an " +
  "execution with tokenized_access for a new ticket"

/**
 * 4.6. A name that another access holds already is not taken from it: then the token is stored under its
 * default name, because it exists once and its ticket is spent.
 */
export const exchangeByHand = Effect.fn("Tokens.exchangeByHand")(function* (
  input: ByHand & {
    readonly execution_id: string
    readonly ticket: string
    readonly name: string | undefined
  },
) {
  const wiring = yield* Wiring
  const ticket = yield* readTicket(input.ticket).pipe(Effect.provide(wiring.secrets))
  const work = Effect.gen(function* () {
    const store = yield* openedStore
    const service = yield* openedService
    const ledger = yield* openedLedger
    const { defaultTokenName, tokenLifetimeMs } = yield* Effect.promise(
      () => import("../tokens/TokenStore.ts"),
    )
    const { storedFact } = yield* Effect.promise(() => import("../tokens/ExchangeTicket.ts"))
    const fingerprint = yield* fingerprintOf(input.execution_id)
    const exchanged_at = Math.trunc(yield* Clock.currentTimeMillis)
    const asked = service.exchangeTicket(input.execution_id, ticket)
    const answer = yield* asked.pipe(
      Effect.catchTag("AnswerLost", () => asked),
      Effect.catchTag("AnswerLost", () => Effect.succeed({ _tag: "Lost" } as const)),
    )
    if (answer._tag === "Lost") return { _tag: "NoToken", message: lost } as const
    if (answer._tag === "Refused") return { _tag: "NoToken", message: refused } as const
    const { customer_id, engine_reference, app_id, features = [], locking_hash } = answer.context
    if (customer_id === undefined || engine_reference === undefined)
      return { _tag: "NoToken", message: incomplete } as const
    const holder = (yield* store.tokens).find(
      (one) => one.service === store.service && one.name === input.name,
    )
    const isFree =
      holder === undefined ||
      (holder.customer_id === customer_id && holder.engine_reference === engine_reference)
    const byDefault = defaultTokenName(customer_id, engine_reference)
    const token = {
      name: isFree ? (input.name ?? byDefault) : byDefault,
      token_id: answer.token.token_id,
      customer_id,
      engine_reference,
      app_id,
      features,
      locking_hash,
      fingerprint,
      exchanged_at,
      expires_at: exchanged_at + tokenLifetimeMs,
    }
    yield* store.keepToken(token, answer.token.token_key, input.execution_id)
    yield* ledger.append([storedFact(token, undefined)])
    return { _tag: "Stored", token } as const
  })
  return yield* withTokens(input, Effect.uninterruptible(work))
})

/** 4.7. Without an answer the token stays as it is. */
export const revokeByHand = Effect.fn("Tokens.revokeByHand")(function* (
  input: ByHand & { readonly name: string },
) {
  if (!existsSync(`${input.output}/tokens.sqlite`))
    return yield* new UsageRefused({ message: `no token is stored in ${input.output}` })
  const work = Effect.gen(function* () {
    const store = yield* openedStore
    const service = yield* openedService
    const ledger = yield* openedLedger
    const token = (yield* store.tokens).find(
      (one) => one.name === input.name && one.service === store.service,
    )
    if (token === undefined)
      return yield* new UsageRefused({
        message: "no token of this job's service has that name (`nightjar tokens list` shows them)",
      })
    const answer = yield* service.revokeToken(token.token_id)
    yield* store.dropToken(token, "REVOKED")
    const { name, token_id, customer_id, engine_reference } = token
    yield* ledger.append([{ _tag: "TokenRevoked", name, token_id, customer_id, engine_reference }])
    return { token, answer }
  })
  return yield* withTokens(input, work)
})
