/**
 * The flags that say where `nightjar sandbox` delivers its events to, and how unruly it is about it: a
 * receiver that copes with late and repeated deliveries here copes with them in earnest.
 */
import { Option } from "effect"
import { Flag } from "effect/cli"
import { deliveryOrders } from "../sandbox/state/HookEvent.ts"
import { readTarget } from "../sandbox/hooks/Hooks.ts"
import type { Webhook } from "../sandbox/hooks/Hooks.ts"

export const webhookFlags = {
  webhooks: Flag.String("webhooks").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("Where all events of all applications are delivered, besides what is subscribed to"),
    Flag.filter(
      (url) => readTarget(url) !== undefined,
      () => "an http or https address without a user",
    ),
    Flag.optional,
  ),
  webhooksOrder: Flag.Literals("webhooks-order", deliveryOrders).pipe(
    Flag.withDescription(
      "shuffled: deliveries come seconds to minutes late, later events before earlier ones",
    ),
    Flag.withDefault("timely"),
  ),
  webhooksDuplicates: Flag.Boolean("webhooks-duplicates").pipe(
    Flag.withoutNegation,
    Flag.withDescription("About half of the deliveries come a second time"),
    Flag.withDefault(false),
  ),
}

export const webhookHelp = `Events (started, action_required, auth_ended, ended, and four of flow sessions)
go to --webhooks URL and to what an application subscribes to. Execution events: PUT
{"url": …, "events": […], "order": "timely" or "shuffled", "duplicates": true} to /sandbox/hooks,
all but the url optional; GET lists, DELETE ?events=… takes away. Flow events: GET
{flows_url}/hooks/list, POST create, PATCH update, DELETE delete
{"events": […], "base_url": …, "enabled": true}. A delivery is a POST of JSON. 2xx within ten
seconds takes it; else it is tried again after 10 seconds and 1, 5, 30 and 120 minutes.
x-nightjar-delivery is the same for each try, x-nightjar-attempt counts them.`

export const readWebhooks = (flags: {
  readonly webhooks: Option.Option<string>
  readonly webhooksOrder: (typeof deliveryOrders)[number]
  readonly webhooksDuplicates: boolean
}): ReadonlyArray<Webhook> =>
  Option.match(flags.webhooks, {
    onNone: () => [],
    onSome: (url) => [{ url, order: flags.webhooksOrder, duplicates: flags.webhooksDuplicates }],
  })
