/**
 * The flags that every command has, and the pieces that several commands share: the output folder, the
 * progress switch, `--json`, and the rule for naming a run.
 */
import { resolve } from "node:path"
import { Config, Context, Effect, Layer, Option } from "effect"
import { Argument, Flag, GlobalFlag } from "effect/cli"

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
