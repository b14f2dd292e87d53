/**
 * `nightjar engines list|show REF`: the service's catalogue and an engine's form. The service is that of a
 * job, or the one that flags and NIGHTJAR_* variables name.
 */
import { Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { EngineReference } from "../../service/Ids.ts"
import type { ServiceTarget } from "../../jobs/Job.ts"
import type { EngineDetails } from "../../service/Engine.ts"
import { suggestion } from "../../base/Text.ts"
import { table, wrap } from "../../report/TextTable.ts"
import { KnownSecrets } from "../../privacy/KnownSecrets.ts"
import { command } from "../CommandRow.ts"
import { Settings, optionalFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { Wiring } from "../Wiring.ts"
import { holdLogins } from "../../task/Plan.ts"
import { parseReference, parseUrlBeside } from "../../jobs/Scalars.ts"
import { Service } from "../../client/Service.ts"
import { retryCall } from "../../client/Pacing.ts"
import { FormCache } from "../../client/EngineForms.ts"

const serviceFlags = {
  job: optionalFlag("job", "JOB", "Ask the service of this job file"),
  base_url: optionalFlag("base-url", "URL", "The direct execution API (default: NIGHTJAR_BASE_URL)"),
  flows_url: optionalFlag("flows-url", "URL", "The flow API (default: NIGHTJAR_FLOWS_URL)"),
  app_secret: optionalFlag("app-secret", "env:NAME", "The secret: env:NAME, file:PATH or exec:COMMAND"),
}
type ServiceFlags = Readonly<Record<keyof typeof serviceFlags, Option.Option<string>>>

const targetOf = Effect.fnUntraced(function* (flags: ServiceFlags) {
  if (Option.isSome(flags.job)) {
    const [job] = yield* loadJobs([flags.job.value])
    if (job !== undefined) {
      holdLogins(yield* KnownSecrets, job, job.assignments)
      return job.service
    }
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
  const wiring = yield* Wiring
  return yield* Effect.provide(work, wiring.catalogue(yield* targetOf(flags), output))
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

const fetchList = Effect.gen(function* () {
  const service = yield* Service
  const { body } = yield* retryCall(service.listEngines, { triesMax: 3 })
  return body.json
})

const linesOf = (catalogue: unknown) => Option.getOrElse(readLines(catalogue), () => [])

const list = command(
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
      reference: Argument.String("REF").pipe(
        Argument.withDescription("An engine's reference, such as sandbox-bank:website"),
      ),
      ...serviceFlags,
    },
    run: ({ reference, ...flags }, output) => withService(flags, output, lookFor(reference)),
    json: ({ details }) => details,
    text: ({ details, available }, out) => renderEngine(details, available, out.width),
  },
  "Shows an engine's form, settings and features",
)

const renderEngine = (details: EngineDetails, available: boolean, width: number): string => {
  const rowsOf = ({ properties, required }: EngineDetails["parameters"]) =>
    Object.entries(properties ?? {}).map(([name, field]) => [
      name,
      textOf(field, "type") || "string",
      required?.includes(name) === true ? "required" : "",
      [textOf(field, "format"), textOf(field, "pattern"), textOf(field, "enum"), textOf(field, "title")]
        .filter((one) => one !== "")
        .join(" "),
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
  if (typeof field !== "object" || field === null || !(key in field)) return ""
  const value: unknown = Reflect.get(field, key)
  return Array.isArray(value) ? value.map(String).join("|") : value === undefined ? "" : String(value)
}

export const engines = Command.make("engines").pipe(Command.withSubcommands([list, show]))
