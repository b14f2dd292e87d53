/**
 * The settings of a job file, each declared once: what it accepts, its default, what it does, and what
 * `nightjar init` writes. Loading, the schema for editors and the page of all settings follow from this
 * table. It transforms only single values, so that the path of every issue is a path in the file.
 */
import { Schema } from "effect"
import { Customer, JobEngine, Service, Session } from "./ServiceSettings.ts"
import * as Value from "./Scalars.ts"
import {
  count,
  days,
  duration,
  flag,
  list,
  optional,
  percent,
  required,
  section,
  setting,
} from "./Scalars.ts"
import { alternative, example, gone, jobName, reference, text, timeOfDay, used } from "./Scalars.ts"

/** Whatever a job says, none of its executions is waited for longer. */
export const maxWaitLongest = "7 days"

const Execution = section(
  {
    customer_interaction_available: optional(
      Schema.Boolean.check(
        Schema.makeFilter((value: boolean) => !value, {
          expected: "false, the only allowed value: at night nobody can answer a challenge",
          toJsonSchema: () => ({ const: false }),
        }),
      ),
      "Always false: at night nobody can answer a challenge.",
      example("false", false),
    ),
    execution_timeout: setting(
      duration("60 seconds", "1200 seconds"),
      "20 minutes",
      "The limit for active processing time, 60 to 1200 seconds.",
    ),
    unlock_protected_data: flag(
      false,
      "Lets the engine unlock data protected by multi-factor authentication.",
    ),
    max_wait: setting(
      duration("1 second", maxWaitLongest),
      "3.5 hours",
      "The longest time from acceptance to closed; after that, the execution is aborted.",
    ),
  },
  "How each execution is started.",
)

const Concurrency = section(
  {
    max_in_flight: setting(count(1, 100_000), 100, "The most executions open at the same time."),
    per_engine: setting(count(1, 100_000), 20, "The most executions open on one engine."),
  },
  "How many executions are open at once.",
)

const interval = duration("100 millis", "1 day")

const Polling = section(
  {
    min: setting(interval, "2 seconds", "The shortest time between two polls of an execution."),
    max: setting(
      interval,
      "1 minute",
      "The longest, unless earlier nights or a date that the service names promise nothing sooner.",
    ),
  },
  "How often an execution is polled.",
)

const Retry = section(
  {
    max_attempts: setting(
      count(1, 100),
      3,
      "The most executions of a task in one run. If it ended `unfinished`, a resumed run counts anew.",
    ),
    base: setting(interval, "30 seconds", "The wait before the second attempt; it doubles each time."),
    max: setting(interval, "15 minutes", "The longest wait between two attempts."),
  },
  "Further attempts after temporary errors.",
)

const FlowResults = section(
  {
    enabled: flag(
      true,
      "Whether to read results at all: flow results, the customer profile and your own endpoints. If not, " +
        "what is started meanwhile is deleted unread, unless `after_export` is `keep`.",
    ),
    min_interval: setting(
      duration("5 seconds", "1 day"),
      "5 seconds",
      "The time between two reads of one session; the service allows one every 5 seconds.",
    ),
    wait_final: setting(
      duration("0 seconds", "1 day"),
      "10 minutes",
      "How long to wait for results that are still partial.",
    ),
    attachments: flag(true, "Whether to download the documents that results name."),
  },
  "Results of sessions.",
)

const Night = Schema.Struct({
  starts: required(
    timeOfDay,
    'Local time of day "HH:MM": from here on a run belongs to this night.',
    used('"22:30"'),
  ),
  until: required(
    timeOfDay,
    'Local time of day "HH:MM": a service that cannot be reached is waited for until then.',
    used('"07:00"'),
  ),
})

const customers = count(1, 10_000_000)
const MinCustomers = Schema.Union([
  customers,
  Schema.Struct({
    number: optional(customers, "With fewer customers the job is invalid and nothing starts.", example("1")),
    of_last_night: optional(
      percent(1),
      "With a smaller share of the last run's, nothing starts.",
      example("90%"),
    ),
  }),
])

const Output = section(
  {
    share: setting(
      Schema.Literals(["none", "group"]),
      "none",
      "group: analysts of the same group may read what is published.",
    ),
    documents: setting(
      Schema.Literals(["by_hash", "by_name"]),
      "by_hash",
      "by_name: downloaded documents are copied to `documents/<customer>/` under names for people, too.",
    ),
    parquet: setting(
      Schema.Array(Schema.Literals(Value.parquetFolders)),
      [...Value.parquetFolders],
      "Folders with the tables of `main` and `history` as Parquet, for those who do not use DuckDB.",
    ),
    delta: optional(
      Schema.Boolean,
      "No longer has an effect: no Delta logs are written. Read `tables/<table>/**/*.parquet` instead.",
      gone,
    ),
  },
  "Who may read the output, and what else is written there.",
)

export const notifyEvents = ["failed", "late", "new_trouble", "recovered"] as const

const mailbox = Value.ruled(
  (value) => /^[^\s@<>(),;:"\\]+@[^\s@<>(),;:"\\]+$/.test(value),
  "an e-mail address alone, such as ops@example.org",
  "[^@]+@[^@]+",
)

/** An address may be all that is needed to write to a channel, so it is a reference to a secret. */
const NotifyEntry = Schema.Struct({
  on: optional(
    Schema.Array(Schema.Literals(notifyEvents)),
    "failed: the night did not happen or is not complete (exit code 1, 2, 4, 5 or 6, or a gate holds its " +
      "tables back); late: not ended when the night or the deadline is over; new_trouble: trouble of " +
      "customers or tables that the run before did not have, once; recovered: the trouble is over. " +
      "All of them when absent.",
    example("[failed, late, new_trouble, recovered]"),
  ),
  url: optional(
    reference,
    "An address that gets the notice as JSON: env:NAME, file:PATH or exec:COMMAND.",
    example("env:ALERT_URL"),
  ),
  format: optional(
    Schema.Literals(["json", "slack"]),
    "What is sent to `url`: json (the default) has everything, slack is { text }.",
    example("json"),
  ),
  ping: optional(
    reference,
    "An address in the manner of Healthchecks: /start at the beginning, /fail after what `failed` and " +
      "`new_trouble` mean, else the address itself.",
    alternative("env:HEALTHCHECK_URL"),
  ),
  email: optional(
    reference,
    "A mail server, smtps://USER:PASSWORD@HOST or smtp:// with STARTTLS: env:NAME, file:PATH or " +
      "exec:COMMAND.",
    alternative("env:SMTP"),
  ),
  from: optional(mailbox, "With `email`: who sends the notice.", alternative("night@example.org")),
  to: optional(Schema.Array(mailbox), "With `email`: who gets the notice.", alternative("[ops@example.org]")),
  command: optional(
    Schema.Array(text),
    "A program and its arguments, which gets the notice as JSON on stdin.",
    alternative("[page, --night]"),
  ),
})

const isEndpoint = (value: string): boolean =>
  Value.looksLikeReference(value)
    ? Value.parseReference(value, "") !== undefined
    : Value.parseServiceUrl(value) !== undefined

/** An address may be written out, but the headers with which a collector knows us are a secret. */
const Telemetry = Schema.Struct({
  otlp: optional(
    text.check(
      Schema.makeFilter(isEndpoint, {
        expected: `${Value.serviceUrlRule}, or env:NAME, file:PATH or exec:COMMAND`,
        toJsonSchema: () => ({ pattern: "^(?:https?://|env:|file:|exec:)|\\$\\{" }),
      }),
    ),
    "Where logs, metrics and traces are sent (OTLP over HTTP, JSON): the address above /v1/traces, or " +
      "env:NAME, file:PATH or exec:COMMAND.",
    example("https://collector.example"),
  ),
  headers: optional(
    reference,
    "What is sent with them, as name=value,name=value: env:NAME, file:PATH or exec:COMMAND.",
    example("env:OTLP_HEADERS"),
  ),
  prometheus: optional(
    text.check(
      Schema.isPattern(/\.prom$/, { expected: "a file whose name ends in .prom: it is written over" }),
    ),
    "A file that gets the metrics too, for a textfile collector; relative to the job file.",
    example("nightjar.prom"),
  ),
  customer_ids: flag(false, "Whether spans and logs name customers, tasks, executions and sessions."),
})

const Publish = Schema.Struct({
  every: required(
    duration("1 second", "1 day"),
    "While a run goes on, a version with the tasks that are over is published this often, at most.",
    example("10 minutes"),
  ),
})

const age = duration("1 day", "36500 days")

/** What is not named is kept; nothing that is still needed is ever removed (`folder/Prune.ts`). */
const Retain = Schema.Struct({
  landing: optional(
    age,
    "Landed bodies of a run, once all of it is published and deleted there.",
    example("90 days"),
  ),
  attachments: optional(
    age,
    "Downloaded documents that no newer run has downloaded again.",
    example("400 days"),
  ),
  logs: optional(age, "The log of a run; the ledger keeps the same facts.", example("30 days")),
  ledger: optional(
    // Longer than any run is still collected.
    duration("35 days", "36500 days"),
    "What the ledger knows of a run is moved to compressed files of its own; commands read it as before.",
    example("400 days"),
  ),
  compress: setting(age, "7 days", "Landed bodies are compressed once their run ended so long ago."),
  compact: optional(
    age,
    "The Parquet files of a month become one per table once the month ended so long ago; else never.",
    example("35 days"),
  ),
  snapshots: setting(count(1, 1_000), 3, "Earlier versions of the tables, for `nightjar rollback`."),
})

/** What applies to a job without `retain`. */
export const withoutRetain = Schema.decodeUnknownSync(Retain)({})

/** Of `schemas/readings`, by product; what the records of another service look like is not known. */
export const readingTables = [
  "accounts",
  "accounts_certificates",
  "cards",
  "client_invoices",
  "cloud_resources",
  "credit_registry_data",
  "credits",
  "deposits",
  "direct_debits",
  "driver_data",
  "funds",
  "investment_accounts",
  "labor_check",
  "loans",
  "pensions",
  "properties_data",
  "public_document_verification",
  "public_pensions",
  "source_contracts",
  "stocks",
  "supplier_invoices",
  "vehicles_data",
  "yearly_individual_tax",
] as const

const RecordSchemas = Schema.Union([Schema.Literal("all"), Schema.Array(Schema.Literals(readingTables))])

/** A job without `gates` asks nothing, so no default of ours can ever hold back good data. */
const Gates = Schema.Struct({
  keys: Value.setting(
    Schema.Union([Schema.Boolean, Schema.Literal("business")]),
    true,
    "No key repeats in the tables of the night; with business, no business key in one answer either.",
  ),
  rows: optional(
    Schema.Struct({
      min: optional(
        percent(1),
        "Each record table has this share of the median of the nights before.",
        example("50%"),
      ),
      nights: setting(count(1, 60), 7, "How many nights before are compared."),
    }),
    "Rows of each record table; tables with a median below 10 rows are not compared.",
  ),
  rejected: optional(percent(0), "The largest share of rejected records in the night.", example("5%")),
  coverage: optional(
    percent(1),
    "The smallest share of customers, engines and features that succeeded in the night.",
    example("80%"),
  ),
  freshness: optional(
    days("1 day", "3660 days"),
    "For each engine and feature, somebody's newest data is not older than this.",
    example("7 days"),
  ),
  tests: optional(
    text,
    "A folder beside the job file: each `*.sql` is a query without rows if all is well.",
    example("./tests"),
  ),
})

const limits = {
  warn_after: optional(days("1 day", "365 days"), "Older data is a warning.", example("3 days")),
  error_after: optional(
    days("1 day", "365 days"),
    "With older data a run ends with exit code 3 at least.",
    example("7 days"),
  ),
}

/** Limits in whole days, since a night has one date. */
const Freshness = Schema.Struct({
  ...limits,
  engines: optional(
    Schema.Record(Schema.String, Schema.Struct(limits)),
    "Limits of single engines, by reference; they win over those of the job, key by key.",
    example("{ es-tax-agency:website: { error_after: 4 days } }"),
  ),
})

/** Later commands look it up where it was, and no command of a job file may wait for them. */
const keyReference = Value.ruled(
  (value) => /^(?:env|file):/.test(value) && Value.parseReference(value, "") !== undefined,
  "env:NAME or file:PATH: the key is never written into a job file",
  "(?:env:[A-Za-z_][A-Za-z0-9_]*|file:.+)",
)

/** Which columns there are is known where tables are made (`tables/OpenStore.ts`). */
const Pseudonyms = Schema.Struct({
  key: required(
    keyReference,
    "32 random bytes in hexadecimal or base64: env:NAME or file:PATH.",
    example("env:NIGHTJAR_PSEUDONYM_KEY"),
  ),
  columns: optional(
    Schema.Record(Schema.String, Schema.Array(text)),
    "Further columns by record table, such as `customer_profiles: [name]`; VARCHAR and VARCHAR[] only.",
    example("{ customer_profiles: [name] }"),
  ),
})

const Tokens = Schema.Struct({
  key: required(
    reference,
    "The key of the encrypted token store: env:NAME, file:PATH or exec:COMMAND.",
    example("env:NIGHTJAR_TOKEN_KEY"),
  ),
})

export const JobFile = Schema.Struct({
  name: required(jobName, "a-z, 0-9 and -; every run_id begins with it.", used("nightly-spain")),
  service: optional(Service, "The service to run against; `sandbox` is the embedded one."),
  after: list(
    jobName,
    "Jobs that are over before this one starts, if given with it.",
    example("[other-job]"),
  ),
  execution: Execution,
  concurrency: Concurrency,
  polling: Polling,
  retry: Retry,
  flow_results: FlowResults,
  deadline: optional(
    timeOfDay,
    'Local time of day "HH:MM": tasks that cannot finish by then are not started.',
    example('"05:00"'),
  ),
  on_deadline: setting(
    Schema.Literals(["carry", "abort"]),
    "carry",
    "carry: what would probably not finish by then is not started; abort: everything is started until " +
      "then. What the deadline stops comes first in the next run.",
  ),
  night: optional(
    Night,
    "The hours of the night: every run within them belongs to that night and has its date.",
  ),
  replaces: optional(
    Schema.Array(jobName),
    "Jobs at the same service that this one takes the place of: its runs collect what theirs left there, " +
      "and what only they asked for is no longer current.",
    example("[nightly-iberia]"),
  ),
  min_customers: optional(MinCustomers, "With fewer customers nothing starts."),
  timezone: optional(
    Value.timezone,
    "For the night, the deadline and run dates; the machine's when absent.",
    used("Europe/Madrid"),
  ),
  after_export: setting(
    Schema.Literals(["delete", "keep"]),
    "delete",
    "Whether executions are deleted at the service once they are published.",
  ),
  output: Output,
  exit_on: setting(
    Schema.Literals(["any", "new"]),
    "any",
    "Which trouble ends a run with exit code 3: any, or only what is new since the run before; " +
      "4 (something is left) stays.",
  ),
  notify: list(NotifyEntry, "Who is told of a run; no customer data is sent."),
  telemetry: optional(Telemetry, "Logs, metrics and traces of a run, for a collector or Prometheus."),
  publish: optional(Publish, "When the tables are published; without it, once the run is over."),
  retain: optional(Retain, "How long files are kept; what is not named here is kept."),
  engines: list(JobEngine, "The engines of the job."),
  customers: list(Customer, "The customers, inline or from files."),
  schemas: optional(
    text,
    "A folder beside the job file: `records/*.yaml` are record schemas, `results/*.yaml` results sources.",
    example("./schemas"),
  ),
  record_schemas: optional(
    RecordSchemas,
    "Tables for records that the reference does not show: those named here, or all that the job's features " +
      "feed; [] is none. Without it: all on the embedded service if the job has no pseudonyms, else none.",
    example("[accounts, cards]"),
  ),
  gates: optional(Gates, "What a new version of the tables must pass to become current."),
  freshness: optional(Freshness, "How old the data of a customer, engine and feature may get."),
  models: optional(
    text,
    "A folder beside the job file: each `*.sql` becomes a view, or a table, of every published version.",
    example("./models"),
  ),
  tokens: optional(Tokens, "The encrypted token store."),
  pseudonyms: optional(
    Pseudonyms,
    "Keyed pseudonyms in the published tables, in place of customer_id and the columns that are named here.",
  ),
  sessions: list(Session, "Flow sessions that customers ran themselves: they are only read."),
}).annotate({
  title: "Nightjar job",
  description: "Names the customers, engines and features to extract, and the service to use.",
})

/** A job file as it is written, with defaults where it says nothing. */
export type Settings = typeof JobFile.Type
