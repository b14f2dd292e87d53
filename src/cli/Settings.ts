/**
 * What the environment says about commands: the output folder, the service that commands without a job talk
 * to, and whether colours are wanted. Flags take precedence over the environment. Variables about a job's
 * service are read when the job is loaded.
 */
import { Config, Context, Effect, Layer, Option } from "effect"

export interface SettingsValues {
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
