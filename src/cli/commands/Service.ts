/**
 * The service of a job, or the one that flags and NIGHTJAR_* variables name: its engines, and the
 * application's subscriptions.
 */
import { Effect, Option, Predicate, Schema } from "effect"
import { Command } from "effect/cli"
import { suggestion } from "../../base/Text.ts"
import { command } from "../CommandRow.ts"
import { refuse } from "../Failures.ts"
import { loadOne } from "../Jobs.ts"
import { Settings, argument, optionalFlag } from "../Output.ts"
import { Wiring } from "../Wiring.ts"
import { FormCache } from "../../client/EngineForms.ts"
import type { EngineView } from "../../client/Views.ts"
import { retryCall } from "../../client/Pacing.ts"
import { Service } from "../../client/Service.ts"
import { Subscriptions, type ChangeAnswer, type Subscription } from "../../client/Subscriptions.ts"
import type { ServiceTarget } from "../../jobs/Job.ts"
import { parseReference, parseUrlBeside } from "../../jobs/Scalars.ts"
import { KnownSecrets } from "../../privacy/KnownSecrets.ts"
import type { Style } from "../../report/RenderSummary.ts"
import { table, wrap } from "../../report/TextTable.ts"
import { EngineReference } from "../../service/Ids.ts"
import { flowEvents } from "../../service/Vocabulary.ts"
import { resolveReferences, withoutCommands } from "../../task/Assignment.ts"
import { holdLogins } from "../../task/Plan.ts"

const serviceFlags = {
  job: optionalFlag("job", "JOB", "Ask the service of this job file"),
  base_url: optionalFlag("base-url", "URL", "The direct execution API (default: NIGHTJAR_BASE_URL)"),
  flows_url: optionalFlag("flows-url", "URL", "The flow API (default: NIGHTJAR_FLOWS_URL)"),
  app_secret: optionalFlag("app-secret", "env:NAME", "The secret: env:NAME, file:PATH or exec:COMMAND"),
}
type ServiceFlags = Readonly<Record<keyof typeof serviceFlags, Option.Option<string>>>

const targetOf = Effect.fnUntraced(function* (flags: ServiceFlags) {
  if (Option.isSome(flags.job)) {
    const job = yield* loadOne(flags.job.value)
    // A form may repeat a login that is kept elsewhere, too.
    holdLogins(yield* KnownSecrets, job, job.assignments)
    const { secrets } = yield* Wiring
    yield* Effect.provide(resolveReferences(job.assignments.map(withoutCommands)), secrets)
    return job.service
  }
  const settings = yield* Settings
  const base_url = Option.getOrElse(flags.base_url, () => settings.base_url)
  const flows = Option.getOrElse(flags.flows_url, () => settings.flows_url)
  if (base_url === undefined) return yield* refuse("service-not-named")
  const beside = URL.canParse(base_url) && flows !== undefined ? parseUrlBeside(base_url, flows) : undefined
  const flows_url = beside ?? flows ?? base_url
  const written = Option.getOrElse(flags.app_secret, () =>
    settings.hasAppSecret ? "env:NIGHTJAR_APP_SECRET" : "",
  )
  const app_secret = parseReference(written, ".")
  if (app_secret === undefined) return yield* refuse("secret-not-a-reference")
  return {
    _tag: "Remote",
    base_url,
    flows_url,
    attachments_url: flows_url,
    app_secret,
  } satisfies ServiceTarget
})

const withService = Effect.fnUntraced(function* <A, E, R>(
  flags: ServiceFlags,
  output: string,
  work: Effect.Effect<A, E, R>,
) {
  return yield* Effect.provide(work, (yield* Wiring).catalogue(yield* targetOf(flags), output))
})

const EngineLine = Schema.Struct({
  reference: Schema.String,
  name: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(Schema.String),
  is_online: Schema.optionalKey(Schema.Boolean),
  main_category: Schema.optionalKey(Schema.String),
  action_required_frequency: Schema.optionalKey(Schema.String),
  features: Schema.optionalKey(Schema.Array(Schema.String)),
})
const readLines = Schema.decodeUnknownOption(Schema.Array(EngineLine))

const fetchList = Effect.flatMap(Service, ({ listEngines: list }) =>
  Effect.map(retryCall(list, { triesMax: 3 }), ({ body }) => body.json),
)

const linesOf = (catalogue: unknown) => Option.getOrElse(readLines(catalogue), () => [])

const listEngines = command(
  "list",
  {
    flags: serviceFlags,
    run: (flags, output) => withService(flags, output, fetchList),
    text: (catalogue, out) => {
      const rows = linesOf(catalogue).map((engine) => [
        engine.reference,
        engine.status ?? "",
        engine.is_online === false ? "no" : "yes",
        engine.action_required_frequency ?? "",
        (engine.features ?? []).join(" "),
      ])
      return table(["engine", "status", "online", "needs a person", "features"], rows, out)
    },
  },
  "Lists the service's engines",
)

const lookFor = Effect.fnUntraced(function* (reference: string) {
  const finding = yield* (yield* FormCache).look(EngineReference.make(reference))
  switch (finding._tag) {
    case "Unknown": {
      const known = linesOf(yield* fetchList).map((engine) => engine.reference)
      return yield* refuse("engine-unknown", { suggestion: suggestion(reference, known) })
    }
    case "Unavailable":
      return yield* refuse("engine-unavailable")
    case "Unusable":
      return yield* refuse("engine-form-unusable", { why: finding.why })
    case "Unreadable":
      return yield* refuse("engine-form-unusable", { why: finding.detail })
    default:
      return { details: finding.engine.details, available: finding.available }
  }
})

const show = command(
  "show",
  {
    flags: {
      reference: argument("REF", "An engine's reference, such as sandbox-bank:website"),
      ...serviceFlags,
    },
    run: ({ reference, ...flags }, output) => withService(flags, output, lookFor(reference)),
    json: ({ details }) => details,
    text: ({ details, available }, out) => renderEngine(details, available, out.width),
  },
  "Shows an engine's form, settings and features",
)

const renderEngine = (details: EngineView, available: boolean, width: number): string => {
  const rowsOf = ({ properties, required }: EngineView["parameters"]) =>
    Object.entries(properties ?? {}).map(([name, field]) => [
      name,
      textOf(field, "type") || "string",
      required?.includes(name) === true ? "required" : "",
      ["format", "pattern", "enum", "title"].flatMap((key) => textOf(field, key) || []).join(" "),
    ])
  const header = ["field", "type", "", "form"]
  const configurations = rowsOf(details.configurations)
  return [
    wrap(`${details.reference}: ${details.name}`, width),
    wrap(
      `${details.status}, ${available ? "online" : "not available now"}, needs a person: ` +
        `${details.action_required_frequency}`,
      width,
    ),
    "",
    "Parameters",
    table(header, rowsOf(details.parameters), { width }),
    ...(configurations.length === 0 ? [] : ["", "Configurations", table(header, configurations, { width })]),
    "",
    wrap(`Features: ${details.features.map(({ code }) => code).join(", ")}`, width, "", "  "),
  ].join("\n")
}

const textOf = (field: unknown, key: string): string => {
  const value = Predicate.hasProperty(field, key) ? field[key] : undefined
  return Array.isArray(value) ? value.map(String).join("|") : value === undefined ? "" : String(value)
}

export const engines = Command.make("engines").pipe(Command.withSubcommands([listEngines, show]))

// Subscriptions belong to everyone who uses the application: an event that goes to another address stays
// there until somebody removes that address.

const jobArgument = argument("JOB", "The job file that names the service")
const urlArgument = argument("URL", "Where the service sends the events")

const withSubscriptions = Effect.fnUntraced(function* <A, E, R>(path: string, work: Effect.Effect<A, E, R>) {
  const { service } = yield* loadOne(path)
  if (service._tag === "Embedded") return yield* refuse("hooks-embedded", { path })
  return yield* Effect.provide(work, (yield* Wiring).subscriptions(service))
})

const listed = Effect.flatMap(Subscriptions, ({ list }) => retryCall(list, { triesMax: 3 }))

const told = (subscriptions: ReadonlyArray<Subscription>, out: Style): string => {
  const rows = subscriptions.map(({ event, enabled, base_url }) => [event, enabled ? "yes" : "no", base_url])
  return rows.length === 0
    ? "No flow events are subscribed."
    : table(["event", "enabled", "address"], rows, out)
}

/** 2.8: what the service keeps of an address has no query. */
const addressOf = Effect.fnUntraced(function* (text: string) {
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

const listHooks = command(
  "list",
  { flags: { job: jobArgument }, run: ({ job }) => withSubscriptions(job, listed), text: told },
  "Lists the application's subscriptions to flow events",
)

const subscribeTo = Effect.fnUntraced(function* (base_url: string) {
  const known = new Map((yield* listed).map((one) => [one.event, one]))
  const those = (holds: (known: Subscription | undefined) => boolean) =>
    flowEvents.filter((event) => holds(known.get(event)))
  const elsewhere = those((one) => one !== undefined && !isSame(one.base_url, base_url))
  if (elsewhere.length > 0) return yield* refuse("hooks-taken", { events: elsewhere.join(", ") })
  const service = yield* Subscriptions
  const toUpdate = those((one) => one?.enabled === false)
  const toCreate = those((one) => one === undefined)
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
    flags: { job: jobArgument, url: urlArgument },
    run: ({ job, url }) =>
      Effect.flatMap(addressOf(url), (base_url) => withSubscriptions(job, subscribeTo(base_url))),
    text: told,
  },
  "Sends all flow events to an address",
)

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
      Effect.flatMap(addressOf(url), (base_url) => withSubscriptions(job, removeFrom(base_url))),
    text: told,
  },
  "Removes every subscription that sends events to an address",
)

export const hooks = Command.make("hooks").pipe(Command.withSubcommands([listHooks, subscribe, remove]))
