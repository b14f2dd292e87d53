/**
 * The shape of a job file, defined once: loading and `schemas/job.schema.json` (for editors) use the same
 * schema. Its defaults are only documentation (`Defaults.ts` has them, loading applies them), and it
 * transforms only single values (durations), so that the path of every issue is a path in the file.
 */
import { Schema } from "effect"
import { defaults } from "./Defaults.ts"
import { FreshnessShape } from "./Freshness.ts"
import { GatesShape } from "./Gates.ts"
import { MinCustomers, Night, OnDeadline, onDeadlineMeans, Publish } from "./NightShape.ts"
import { NotifyEntry } from "./Notify.ts"
import { PseudonymsShape } from "./PseudonymsShape.ts"
import { schemaKeys } from "./RecordSchemas.ts"
import { Retain } from "./Retain.ts"
import { looksLikeReference } from "./Reference.ts"
import { TelemetryShape } from "./Telemetry.ts"
import { count, optional, optionalDuration, required } from "./ShapeKeys.ts"
import {
  customerId,
  deadline,
  duration,
  externalId,
  jobName,
  reference,
  serviceUrl,
  text,
  timezone,
  urlBeside,
} from "./Scalars.ts"

const AnyMap = Schema.Record(Schema.String, Schema.Unknown)

const Sandbox = Schema.Struct({
  seed: optional(count(0, Number.MAX_SAFE_INTEGER), "The same seed gives the same run.", defaults.seed),
  speed: optional(
    Schema.Finite.check(Schema.isGreaterThan(0, { expected: "a number above 0" })),
    "Seconds of service time per real second.",
    defaults.speed,
  ),
  faults: optional(text, "A file of faults to inject, relative to the job file."),
  reading: optional(
    text,
    "A file that chooses how the service behaves where the reference leaves room, relative to the job file.",
  ),
})

export const Service = Schema.Union([
  Schema.Literal("sandbox"),
  Schema.Struct({
    base_url: optional(serviceUrl, "The direct execution API. NIGHTJAR_BASE_URL overrides it."),
    flows_url: optional(
      urlBeside,
      "The flow API, or its path on base_url's host. NIGHTJAR_FLOWS_URL overrides it.",
    ),
    app_secret: optional(
      reference,
      "The application secret: env:NAME, file:PATH or exec:COMMAND. NIGHTJAR_APP_SECRET overrides it.",
    ),
    attachments_url: optional(urlBeside, "Where attachments are downloaded from; flows_url when absent."),
    accept_any_certificate: optional(
      Schema.Boolean,
      "Sends the application secret and every login to whoever answers, without checking who it is.",
      false,
    ),
    sandbox: optional(Sandbox, "The embedded service instead of a remote one: nothing to install."),
  }),
])

export const Execution = Schema.Struct({
  customer_interaction_available: optional(
    Schema.Boolean.check(
      Schema.makeFilter((value: boolean) => !value, {
        expected: "false, the only allowed value: at night nobody can answer a challenge",
        toJsonSchema: () => ({ const: false }),
      }),
    ),
    "Always false: at night nobody can answer a challenge.",
    false,
  ),
  execution_timeout: optionalDuration(
    duration("60 seconds", "1200 seconds"),
    "The limit for active processing time, 60 to 1200 seconds.",
    defaults.execution_timeout,
  ),
  unlock_protected_data: optional(
    Schema.Boolean,
    "Lets the engine unlock data protected by multi-factor authentication.",
    false,
  ),
  max_wait: optionalDuration(
    duration("1 second", "7 days"),
    "The longest time from acceptance to closed; after that, the execution is aborted.",
    defaults.max_wait,
  ),
})

export const Concurrency = Schema.Struct({
  max_in_flight: optional(
    count(1, 100_000),
    "The most executions open at the same time.",
    defaults.max_in_flight,
  ),
  per_engine: optional(count(1, 100_000), "The most executions open on one engine.", defaults.per_engine),
})

const interval = duration("100 millis", "1 day")

export const Polling = Schema.Struct({
  min: optionalDuration(
    interval,
    "The shortest time between two polls of an execution.",
    defaults.polling_min,
  ),
  max: optionalDuration(interval, "The longest.", defaults.polling_max),
})

export const Retry = Schema.Struct({
  max_attempts: optional(count(1, 100), "The most executions per task in one run.", defaults.max_attempts),
  base: optionalDuration(
    interval,
    "The wait before the second attempt; it doubles each time.",
    defaults.retry_base,
  ),
  max: optionalDuration(interval, "The longest wait between two attempts.", defaults.retry_max),
})

export const FlowResults = Schema.Struct({
  enabled: optional(Schema.Boolean, "Whether to read the flow results of executions.", true),
  min_interval: optionalDuration(
    duration("5 seconds", "1 day"),
    "The time between two reads of one session; the service allows one every 5 seconds.",
    defaults.min_interval,
  ),
  wait_final: optionalDuration(
    duration("0 seconds", "1 day"),
    "How long to wait for results that are still partial.",
    defaults.wait_final,
  ),
  attachments: optional(Schema.Boolean, "Whether to download the documents that results name.", true),
})

export const Output = Schema.Struct({
  share: optional(
    Schema.Literals(["none", "group"]),
    "group: analysts of the same group may read what is published.",
    defaults.share,
  ),
  documents: optional(
    Schema.Literals(["by_hash", "by_name"]),
    "by_name: downloaded documents are copied to documents/<customer>/ under names for people, too.",
    "by_hash",
  ),
  delta: optional(
    Schema.Boolean,
    "No longer has an effect: no Delta logs are written. Read tables/<table>/**/*.parquet instead.",
  ),
})

const Features = Schema.Array(
  Schema.Union([
    text,
    Schema.Struct({
      code: required(text, "A feature code of the service."),
      configurations: optional(AnyMap, "The feature's settings, sent as they are."),
    }),
  ]),
)

const HooksExtraData = Schema.Record(
  Schema.String,
  Schema.String.annotate({ verbatim: true }).check(
    Schema.makeFilter((value: string) => !looksLikeReference(value), {
      expected: "a string, not a secret reference: these values end up in webhook addresses",
    }),
  ),
)

const engineFields = {
  reference: required(externalId, "The engine, as the catalogue spells it."),
  configurations: optional(AnyMap, "Engine settings, if its form declares any.", {}),
  hooks_extra_data: optional(HooksExtraData, "Appended to every webhook delivery; never secrets.", {}),
  features: optional(Features, "What to retrieve; the engine's defaults when absent."),
}

export const JobEngine = Schema.Union([externalId, Schema.Struct(engineFields)])

const parameters = optional(AnyMap, "Login parameters: values or env:NAME, file:PATH, exec:COMMAND.")
const tokenizedAccess = optional(
  Schema.Boolean,
  "Whether to ask for a ticket and keep the token (needs `tokens`).",
  false,
)

export const CustomerEngine = Schema.Union([
  externalId,
  Schema.Struct({
    ...engineFields,
    parameters,
    tokenized_access: tokenizedAccess,
    token: optional(text, "The name of a stored token, instead of parameters."),
  }),
])

export const Customer = Schema.Struct({
  id: optional(customerId, "Your own identifier for the customer; must not be personal data."),
  from: optional(
    text,
    "A csv, ndjson or parquet file of customers, relative to the job file, instead of an id.",
  ),
  references: optional(
    Schema.Array(text),
    "Columns of the file that hold references (env:NAME or file:PATH); all other cells are sent as they are.",
  ),
  features_column: optional(text, "The column of the file with the features of each row, if they differ."),
  token_column: optional(text, "The column of the file that names a stored token instead of parameters."),
  parameters,
  tokenized_access: tokenizedAccess,
  engines: optional(
    Schema.Array(CustomerEngine),
    "The customer's engines; every engine of the job when absent.",
  ),
})

export const Tokens = Schema.Struct({
  key: required(reference, "The key of the encrypted token store: env:NAME, file:PATH or exec:COMMAND."),
})

export const Session = Schema.Union([
  externalId,
  Schema.Struct({
    id: required(externalId, "The session's id."),
    customer: optional(customerId, "The customer who ran it, if known."),
  }),
])

export const AfterExport = Schema.Literals(["delete", "keep"])

export const ExitOn = Schema.Literals(["any", "new"])

export const JobFile = Schema.Struct({
  name: required(jobName, "a-z, 0-9 and -; every run_id begins with it."),
  service: optional(Service, "The service to run against; `sandbox` is the embedded one."),
  after: optional(Schema.Array(jobName), "Jobs that are over before this one starts, if given with it."),
  execution: optional(Execution, "How each execution is started."),
  concurrency: optional(Concurrency, "How many executions are open at once."),
  polling: optional(Polling, "How often an execution is polled."),
  retry: optional(Retry, "Further attempts after temporary errors."),
  flow_results: optional(FlowResults, "Results of sessions."),
  deadline: optional(
    deadline,
    'Local time of day "HH:MM": tasks that cannot finish by then are not started.',
  ),
  on_deadline: optional(OnDeadline, onDeadlineMeans, defaults.on_deadline),
  night: optional(
    Night,
    "The hours of the night: every run within them belongs to that night and has its date.",
  ),
  min_customers: optional(MinCustomers, "With fewer customers nothing starts."),
  timezone: optional(timezone, "For the night, the deadline and run dates; the machine's when absent."),
  after_export: optional(
    AfterExport,
    "Whether executions are deleted at the service once they are published.",
    defaults.after_export,
  ),
  output: optional(Output, "Who may read the output, and what else is written there."),
  exit_on: optional(
    ExitOn,
    "Which trouble ends a run with exit code 3: any, or only what is new since the run before; " +
      "4 (something is left) stays.",
    defaults.exit_on,
  ),
  notify: optional(Schema.Array(NotifyEntry), "Who is told of a run; no customer data is sent."),
  telemetry: optional(TelemetryShape, "Logs, metrics and traces of a run, for a collector or Prometheus."),
  publish: optional(Publish, "When the tables are published; without it, once the run is over."),
  retain: optional(Retain, "How long files are kept; what is not named here is kept."),
  engines: optional(Schema.Array(JobEngine), "The engines of the job."),
  customers: optional(Schema.Array(Customer), "The customers, inline or from files."),
  ...schemaKeys,
  gates: optional(GatesShape, "What a new version of the tables must pass to become current."),
  freshness: optional(FreshnessShape, "How old the data of a customer, engine and feature may get."),
  models: optional(
    text,
    "A folder beside the job file: each *.sql becomes a view, or a table, of every published version.",
  ),
  tokens: optional(Tokens, "The encrypted token store."),
  pseudonyms: optional(
    PseudonymsShape,
    "Keyed pseudonyms in the published tables, in place of customer_id and the columns that are named here.",
  ),
  sessions: optional(
    Schema.Array(Session),
    "Flow sessions that customers ran themselves: they are only read.",
  ),
}).annotate({
  title: "Nightjar job",
  description: "Names the customers, engines and features to extract, and the service to use.",
})
