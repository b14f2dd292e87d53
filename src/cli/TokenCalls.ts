/**
 * What `nightjar tokens exchange` and `revoke` share: the job's token store and service under the folder's
 * lock, and a ticket that is read from anywhere but the command line.
 */
import { existsSync } from "node:fs"
import { Effect, Redacted, Stdio, Stream } from "effect"
import type { ExecutionId } from "../service/Ids.ts"
import { loadJobs } from "./Jobs.ts"
import { refuse } from "./Failures.ts"
import { holdOutput } from "./RunFolder.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { Wiring } from "./Wiring.ts"
import { TokenStore } from "../tokens/TokenStore.ts"
import { parseReference } from "../jobs/Scalars.ts"
import { Secrets } from "../jobs/Secrets.ts"

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
const byHand = Effect.promise(() => import("../tokens/ExchangeTicket.ts"))

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
  const { exchangeByHand } = yield* byHand
  const { execution_id, name } = input
  const exchanged = Effect.flatMap(openedStore, (store) =>
    exchangeByHand(store, { execution_id, ticket, name }),
  )
  return yield* withTokens(input, exchanged)
})

export const revokeToken = Effect.fnUntraced(function* (input: ByHand & { readonly name: string }) {
  if (!existsSync(`${input.output}/tokens.sqlite`))
    return yield* refuse("token-store-empty", { output: input.output })
  const { revokeByHand } = yield* byHand
  const revoked = yield* withTokens(
    input,
    Effect.flatMap(openedStore, (store) => revokeByHand(store, input.name)),
  )
  return revoked ?? (yield* refuse("token-unknown"))
})
