/**
 * `--webhooks [HOST:]PORT`: receives the service's events while nights run, as hints to look sooner. The
 * receiver is there before anything is started and goes with the last night.
 */
import { Effect, Option } from "effect"
import { Flag } from "effect/cli"
import type { ListenAt } from "../client/HookReceiver.ts"
import { UsageRefused } from "./Failures.ts"
import { note } from "./Output.ts"

export const webhooksFlag = Flag.String("webhooks").pipe(
  Flag.withMetavar("[HOST:]PORT"),
  Flag.withDescription(
    "Receive the service's events here while the night runs (host 127.0.0.1, port 0: any free one)",
  ),
  Flag.optional,
)

export const readWebhooksFlag = Effect.fnUntraced(function* (written: Option.Option<string>) {
  if (Option.isNone(written)) return undefined
  const { parseListenAt } = yield* Effect.promise(() => import("../client/HookReceiver.ts"))
  const at = parseListenAt(written.value)
  if (at !== undefined) return at
  return yield* new UsageRefused({
    message: "--webhooks is [HOST:]PORT, such as 8080, 0.0.0.0:8080 or [::1]:0, with a port from 0 to 65535",
  })
})

/** What nights take from their receiver. Without webhooks there is none of it. */
export const openWebhooks = Effect.fnUntraced(function* (at: ListenAt | undefined) {
  const { Hints, makeHintBoard } = yield* Effect.promise(() => import("../client/Hints.ts"))
  if (at === undefined) return { source: yield* Hints, url: undefined }
  const { openReceiver, receiverHost } = yield* Effect.promise(() => import("../client/HookReceiver.ts"))
  const board = makeHintBoard()
  const url = yield* openReceiver(at, board.offer)
  yield* note(`webhooks: events are received at ${url}`)
  if (at.host !== receiverHost)
    yield* note(
      `warning: whoever reaches ${at.host} can send events there, as nobody has to prove who they are. ` +
        "Events are only hints: every state is read again from the service.",
    )
  return { source: board.source, url }
})
