/**
 * `nightjar hooks list|subscribe|remove`: the application's subscriptions to flow events. They belong to
 * everyone who uses the application, so an event that goes to another address is only redirected on request,
 * and only those of one address are removed.
 */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { suggestion } from "../../base/Text.ts"
import { flowEvents } from "../../service/Vocabulary.ts"
import { Subscriptions } from "../../client/Subscriptions.ts"
import type { ChangeAnswer, Subscription } from "../../client/Subscriptions.ts"
import type { Style } from "../../report/RenderSummary.ts"
import { table } from "../../report/TextTable.ts"
import { command } from "../CommandRow.ts"
import { switchFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { Wiring } from "../Wiring.ts"
import { retryCall } from "../../client/Pacing.ts"

const jobArgument = Argument.String("JOB").pipe(
  Argument.withDescription("The job file that names the service"),
)
const urlArgument = Argument.String("URL").pipe(
  Argument.withDescription("Where the service sends the events"),
)

/** The service's subscriptions, as it listed them. */
const withSubscriptions = Effect.fnUntraced(function* <A, E, R>(path: string, work: Effect.Effect<A, E, R>) {
  const [job] = yield* loadJobs([path])
  if (job === undefined || job.service._tag === "Embedded") return yield* refuse("hooks-embedded", { path })
  const wiring = yield* Wiring
  return yield* Effect.provide(work, wiring.subscriptions(job.service))
})

const listed = Effect.gen(function* () {
  const { list } = yield* Subscriptions
  return yield* retryCall(list, { triesMax: 3 })
})

/** What each subcommand shows: the subscriptions afterwards. */
const text = (subscriptions: ReadonlyArray<Subscription>, out: Style): string => {
  const rows = subscriptions.map(({ event, enabled, base_url }) => [event, enabled ? "yes" : "no", base_url])
  return rows.length === 0
    ? "No flow events are subscribed."
    : table(["event", "enabled", "address"], rows, out)
}

/** 2.8: what the service keeps of an address has no query. */
const targetOf = Effect.fnUntraced(function* (text: string) {
  const url = URL.parse(text)
  const isPlain = url !== null && url.username === "" && url.password === "" && !/[?#]/.test(text)
  if (!isPlain || (url.protocol !== "https:" && url.protocol !== "http:"))
    return yield* refuse("hooks-address-invalid")
  return url.href
})

/** The service may write an address otherwise, such as without a slash at its end. */
const isSame = (one: string, other: string): boolean => {
  const plain = (text: string) => (URL.parse(text)?.href ?? text).replace(/\/$/, "")
  return plain(one) === plain(other)
}

const settle = Effect.fnUntraced(function* (answer: ChangeAnswer) {
  if (answer._tag === "Done") return
  return yield* answer._tag === "NotFound"
    ? refuse("hooks-unknown")
    : refuse("hooks-refused", { detail: answer.detail })
})

const list = command(
  "list",
  { flags: { job: jobArgument }, run: ({ job }) => withSubscriptions(job, listed), text },
  "Lists the application's subscriptions to flow events",
)

/** Subscribes what is not there yet, and changes what goes elsewhere or is switched off. */
const subscribeTo = Effect.fnUntraced(function* (
  base_url: string,
  events: ReadonlyArray<string>,
  replaces: boolean,
) {
  const known = new Map((yield* listed).map((one) => [one.event, one]))
  const elsewhere = events.filter((event) => {
    const one = known.get(event)
    return one !== undefined && !isSame(one.base_url, base_url)
  })
  if (elsewhere.length > 0 && !replaces) return yield* refuse("hooks-taken", { events: elsewhere.join(", ") })
  const service = yield* Subscriptions
  const toUpdate = events.filter((event) => {
    const one = known.get(event)
    return one !== undefined && !(one.enabled && isSame(one.base_url, base_url))
  })
  const toCreate = events.filter((event) => !known.has(event))
  if (toUpdate.length > 0) yield* settle(yield* service.update({ events: toUpdate, base_url, enabled: true }))
  if (toCreate.length > 0) yield* settle(yield* service.create({ events: toCreate, base_url, enabled: true }))
  return yield* listed
})

const subscribe = command(
  "subscribe",
  {
    more: `The flow events are ${flowEvents.join(", ")}.`,
    examples: {
      "nightjar hooks subscribe jobs/nightly.yaml https://nightjar.example:8080/":
        "For `nightjar run jobs/nightly.yaml --webhooks 8080`",
    },
    flags: {
      job: jobArgument,
      url: urlArgument,
      events: Flag.String("event").pipe(
        Flag.withMetavar("EVENT"),
        Flag.withDescription("Only this event (repeatable; default: all flow events)"),
        Flag.between(0, 100),
      ),
      replace: switchFlag("replace", "Also events that go to another address"),
    },
    run: ({ job, url, events, replace }) =>
      Effect.gen(function* () {
        const base_url = yield* targetOf(url)
        const known: ReadonlyArray<string> = flowEvents
        const unknown = events.find((event) => !known.includes(event))
        if (unknown !== undefined)
          return yield* refuse("hooks-event-unknown", { suggestion: suggestion(unknown, known) })
        const wanted = events.length === 0 ? known : [...new Set(events)]
        return yield* withSubscriptions(job, subscribeTo(base_url, wanted, replace))
      }),
    text,
  },
  "Sends flow events to an address",
)

/** Removes the subscriptions of one address, and no other. */
const removeFrom = Effect.fnUntraced(function* (base_url: string) {
  const events = (yield* listed).filter((one) => isSame(one.base_url, base_url)).map(({ event }) => event)
  if (events.length === 0) return yield* refuse("hooks-unknown")
  const service = yield* Subscriptions
  yield* settle(yield* service.remove(events))
  return yield* listed
})

const remove = command(
  "remove",
  {
    flags: { job: jobArgument, url: urlArgument },
    run: ({ job, url }) =>
      Effect.flatMap(targetOf(url), (base_url) => withSubscriptions(job, removeFrom(base_url))),
    text,
  },
  "Removes every subscription that sends events to an address",
)

export const hooks = Command.make("hooks").pipe(Command.withSubcommands([list, subscribe, remove]))
