/**
 * The flags that every command has, and the pieces that several commands share: the output folder, the
 * progress switch, `--json`, and the rule for naming a run.
 */
import { resolve } from "node:path"
import { Config, Context, Effect, Layer, Option } from "effect"
import { Argument, Flag, GlobalFlag } from "effect/cli"
import { deliveryOrders, readTarget } from "../sandbox/state/HookState.ts"
import type { Webhook } from "../sandbox/state/HookState.ts"

// What the environment says about commands: the output folder, the service that commands without a job talk
// to, and whether colours are wanted. Flags take precedence over the environment. Variables about a job's
// service are read when the job is loaded.

interface SettingsValues {
  /** NIGHTJAR_OUTPUT. */
  readonly output: string
  readonly base_url: string | undefined
  readonly flows_url: string | undefined
  /** Whether NIGHTJAR_APP_SECRET is set; its value is read only when a request needs it. */
  readonly hasAppSecret: boolean
  /** NO_COLOR, whatever its value, or TERM=dumb. */
  readonly noColor: boolean
  /** How the user runs this program: by its name, or through npm in a checkout. */
  readonly invocation: "nightjar" | "npm run -s nightjar --"
}

const text = (name: string) =>
  Config.option(Config.String(name)).pipe(
    Config.map((value) => Option.getOrUndefined(Option.filter(value, (one) => one !== ""))),
  )

const read = Config.all({
  output: text("NIGHTJAR_OUTPUT"),
  base_url: text("NIGHTJAR_BASE_URL"),
  flows_url: text("NIGHTJAR_FLOWS_URL"),
  app_secret: text("NIGHTJAR_APP_SECRET"),
  noColor: text("NO_COLOR"),
  term: text("TERM"),
  npmScript: text("npm_lifecycle_event"),
}).pipe(
  Config.map(({ output, base_url, flows_url, app_secret, noColor, term, npmScript }): SettingsValues => ({
    output: output ?? "output",
    base_url,
    flows_url,
    hasAppSecret: app_secret !== undefined,
    noColor: noColor !== undefined || term === "dumb",
    invocation: npmScript === undefined ? "nightjar" : "npm run -s nightjar --",
  })),
)

export class Settings extends Context.Service<Settings, SettingsValues>()("nightjar/cli/Settings") {
  static readonly layer = Layer.effect(Settings, Effect.orDie(read))
}

export const OutputFlag = GlobalFlag.Setting("output")({
  flag: Flag.String("output").pipe(
    Flag.withMetavar("DIR"),
    Flag.withDescription("The output folder (default: NIGHTJAR_OUTPUT, or output)"),
    Flag.filter(
      (path) => path !== "",
      () => "a folder's name",
    ),
    Flag.optional,
  ),
})

export const EnvFileFlag = GlobalFlag.Setting("env-file")({
  flag: Flag.String("env-file").pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription("Variables of the job (default: .env beside the job)"),
    Flag.optional,
  ),
})

/** Given or not; there is no `--no-` form of it. */
export const switchFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withoutNegation, Flag.withDescription(description), Flag.withDefault(false))

export const optionalFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

export const jobFlags = Flag.String("job").pipe(
  Flag.withMetavar("FILE"),
  Flag.withDescription("Where a job file is now, if it was moved (repeatable)"),
  Flag.between(0, 1_000),
)

export const NoProgressFlag = GlobalFlag.Setting("no-progress")({
  flag: switchFlag("no-progress", "Show no progress on stderr"),
})

/** The output folder of this call. */
export const outputFolder = Effect.gen(function* () {
  const { output } = yield* Settings
  return Option.getOrElse(yield* OutputFlag, () => output)
})

/** The folder as commands for people name it; undefined if it is the one that they mean without a name. */
export const namedOutput = (output: string): string | undefined =>
  output === "output" ? undefined : resolve(output)

export const jsonFlag = switchFlag("json", "Print JSON")

export const jobArguments = Argument.String("JOB").pipe(
  Argument.withDescription("A job file, such as jobs/demo.yaml"),
  Argument.variadic({ min: 1 }),
)

export const runArgument = Argument.String("RUN").pipe(
  Argument.withDescription("A run_id (default: the newest run)"),
  Argument.optional,
)

// The flags that say where `nightjar sandbox` delivers its events, and how unreliably: a receiver that
// copes with late and repeated deliveries here will cope with real ones.

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
