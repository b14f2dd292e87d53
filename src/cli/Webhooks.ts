/**
 * `--webhooks [HOST:]PORT`: receives the service's events during runs, as hints to poll sooner. The
 * receiver listens before anything is started and closes after the last run.
 */
import { Effect, Option } from "effect"
import type { ListenAt } from "../client/HookReceiver.ts"
import { optionalFlag } from "./CommonFlags.ts"
import { refuse } from "./Failures.ts"
import { note, warn } from "./Output.ts"

export const webhooksFlag = optionalFlag(
  "webhooks",
  "[HOST:]PORT",
  "Receive the service's events here (0: any free port)",
)

export const readWebhooksFlag = Effect.fnUntraced(function* (written: Option.Option<string>) {
  if (Option.isNone(written)) return undefined
  const { parseListenAt } = yield* Effect.promise(() => import("../client/HookReceiver.ts"))
  const at = parseListenAt(written.value)
  if (at !== undefined) return at
  return yield* refuse("webhooks-address-invalid")
})

/** What runs need from their receiver; empty without webhooks. */
export const openWebhooks = Effect.fnUntraced(function* (at: ListenAt | undefined) {
  const { Hints, makeHintBoard } = yield* Effect.promise(() => import("../client/Hints.ts"))
  if (at === undefined) return { source: yield* Hints, url: undefined }
  const { openReceiver, receiverHost } = yield* Effect.promise(() => import("../client/HookReceiver.ts"))
  const board = makeHintBoard()
  const url = yield* openReceiver(at, board.offer)
  yield* note(`webhooks: events are received at ${url}`)
  if (at.host !== receiverHost) yield* warn("webhooks-exposed", { host: at.host })
  return { source: board.source, url }
})
