/**
 * The flags that say where `nightjar sandbox` delivers its events, and how unreliably: a receiver that
 * copes with late and repeated deliveries here will cope with real ones.
 */
import { Option } from "effect"
import { Flag } from "effect/cli"
import { switchFlag } from "./CommonFlags.ts"
import { deliveryOrders } from "../sandbox/state/HookEvent.ts"
import { readTarget } from "../sandbox/hooks/Hooks.ts"
import type { Webhook } from "../sandbox/hooks/Hooks.ts"

export const webhookFlags = {
  webhooks: Flag.String("webhooks").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("URL that receives all events of all applications"),
    Flag.filter(
      (url) => readTarget(url) !== undefined,
      () => "an http or https address without a user",
    ),
    Flag.optional,
  ),
  webhooksOrder: Flag.Literals("webhooks-order", deliveryOrders).pipe(
    Flag.withDescription("Order of deliveries"),
    Flag.withDefault("timely"),
  ),
  webhooksDuplicates: switchFlag("webhooks-duplicates", "Deliver about half of the events twice"),
}

export const webhookHelp = `Events (started, action_required, auth_ended, ended, and four of flow sessions)
go to --webhooks URL and to the URLs that an application subscribes. Execution events: PUT
{"url": …, "events": […], "order": "timely" or "shuffled", "duplicates": true} to /sandbox/hooks,
where only url is required; GET lists, DELETE ?events=… removes. Flow events: GET
{flows_url}/hooks/list, POST create, PATCH update, DELETE delete
{"events": […], "base_url": …, "enabled": true}. A delivery is a POST of JSON. It is
accepted by a 2xx within 10 seconds; otherwise it is retried after 10 seconds and 1, 5, 30 and 120 minutes.
"shuffled" delivers seconds to minutes late, and later events before earlier ones.
x-nightjar-delivery is the same for every attempt, and x-nightjar-attempt counts the attempts.`

export const readWebhooks = (flags: {
  readonly webhooks: Option.Option<string>
  readonly webhooksOrder: (typeof deliveryOrders)[number]
  readonly webhooksDuplicates: boolean
}): ReadonlyArray<Webhook> =>
  Option.match(flags.webhooks, {
    onNone: () => [],
    onSome: (url) => [{ url, order: flags.webhooksOrder, duplicates: flags.webhooksDuplicates }],
  })
