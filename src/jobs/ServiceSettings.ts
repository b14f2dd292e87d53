/**
 * The settings of what a job extracts, and from where. The defaults of a customer's engine depend on the
 * job's engines, so they are only shown; `Assignments.ts` applies them.
 */
import { Schema } from "effect"
import { alternative, count, example, looksLikeReference, optional, required } from "./Scalars.ts"
import {
  customerId,
  externalId,
  named,
  reference,
  serviceUrl,
  setting,
  text,
  urlBeside,
  used,
} from "./Scalars.ts"

export const Sandbox = Schema.Struct({
  seed: setting(count(0, Number.MAX_SAFE_INTEGER), 1, "The same seed gives the same run."),
  speed: setting(
    Schema.Finite.check(Schema.isGreaterThan(0, { expected: "a number above 0" })),
    1,
    "Seconds of service time per real second.",
  ),
  faults: optional(text, "A file of faults to inject, relative to the job file.", alternative("faults.yaml")),
  reading: optional(
    text,
    "A file that chooses how the service behaves where the reference leaves room, relative to the job file.",
    alternative("reading.yaml"),
  ),
})

export const Service = Schema.Union([
  Schema.Literal("sandbox"),
  Schema.Struct({
    base_url: optional(
      serviceUrl,
      "The direct execution API. NIGHTJAR_BASE_URL overrides it.",
      used("https://service.example/api"),
    ),
    flows_url: optional(
      urlBeside,
      "The flow API, or its path on base_url's host. NIGHTJAR_FLOWS_URL overrides it.",
      used("https://service.example/flows"),
    ),
    app_secret: optional(
      reference,
      "The application secret: env:NAME, file:PATH or exec:COMMAND. NIGHTJAR_APP_SECRET overrides it.",
      used("env:SERVICE_APP_SECRET"),
    ),
    attachments_url: optional(
      urlBeside,
      "Where attachments are downloaded from; flows_url when absent.",
      example("https://files.service.example"),
    ),
    accept_any_certificate: optional(
      Schema.Boolean,
      "Sends the application secret and every login to whoever answers, without checking who it is.",
      example("false", false),
    ),
    sandbox: optional(
      Sandbox,
      "The embedded service instead of a remote one: nothing to install.",
      alternative(),
    ),
  }),
])

const AnyMap = Schema.Record(Schema.String, Schema.Unknown)

const HooksExtraData = Schema.Record(
  Schema.String,
  Schema.String.annotate({ verbatim: true }).check(
    Schema.makeFilter((value: string) => !looksLikeReference(value), {
      expected: "a string, not a secret reference: these values end up in webhook addresses",
    }),
  ),
)

const engineFields = {
  reference: required(externalId, "The engine, as the catalogue spells it.", used("es-tax-agency:website")),
  configurations: optional(AnyMap, "Engine settings, if its form declares any.", example("{}", {})),
  hooks_extra_data: optional(
    HooksExtraData,
    "Appended to every webhook delivery; never secrets.",
    example("{}", {}),
  ),
  features: optional(
    Schema.Array(
      Schema.Union([
        named,
        Schema.Struct({
          code: required(named, "A feature code of the service."),
          configurations: optional(AnyMap, "The feature's settings, sent as they are."),
        }),
      ]),
    ),
    "What to retrieve; the engine's defaults when absent.",
    used("[customer_information_read, { code: vehicles_data, configurations: {} }]"),
  ),
}

export const JobEngine = Schema.Union([externalId, Schema.Struct(engineFields)])

const loginFields = {
  parameters: optional(
    AnyMap,
    "Login parameters: values or env:NAME, file:PATH, exec:COMMAND.",
    used("{ username: env:C0001_USER, password: env:C0001_PASSWORD }"),
  ),
  tokenized_access: optional(
    Schema.Boolean,
    "Whether to ask for a ticket and keep the token (needs `tokens`).",
    example("false", false),
  ),
}

export const CustomerEngine = Schema.Union([
  externalId,
  Schema.Struct({
    ...engineFields,
    ...loginFields,
    token: optional(named, "The name of a stored token, instead of parameters."),
  }),
])

export const Customer = Schema.Struct({
  id: optional(
    customerId,
    "Your own identifier for the customer; must not be personal data.",
    used("c-0001"),
  ),
  from: optional(
    text,
    "A csv, ndjson or parquet file of customers, relative to the job file, instead of an id.",
    alternative("customers.csv"),
  ),
  references: optional(
    Schema.Array(named),
    "Columns of the file that hold references (env:NAME or file:PATH) and nothing else; the cells of all " +
      "others are sent as they are.",
    alternative("[password]"),
  ),
  features_column: optional(
    named,
    "The column of the file with the features of each row, if they differ.",
    alternative("features"),
  ),
  token_column: optional(
    named,
    "The column of the file that names a stored token instead of parameters.",
    alternative("token"),
  ),
  ...loginFields,
  engines: optional(
    Schema.Array(CustomerEngine),
    "The customer's engines; every engine of the job when absent.",
    example("[es-tax-agency:website]"),
  ),
})

export const Session = Schema.Union([
  externalId,
  Schema.Struct({
    id: required(externalId, "The session's id.", example("65f0c0ffee65f0c0ffee65f0")),
    customer: optional(customerId, "The customer who ran it, if known.", example("c-0007")),
  }),
])
