import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { jobTemplate } from "../../src/jobs/Template.ts"
import { defaultsOfAJob, env, literal, load, parametersLogin, plainEngine, smallJob } from "./loading.ts"
import { effect } from "../harness/Steps.ts"

const remote = `name: remote
service:
  base_url: https://service.example/api/
  flows_url: https://service.example/flows
  app_secret: file:secrets/app
sessions: [s-1]
`

const customers = "customers: [{ id: c-1, parameters: { username: u } }]\n"

describe("a job that loads", () => {
  effect("has every default, and every customer on every engine of the job", function* () {
    const { job, warnings } = yield* load(`${smallJob}customers:\n  - id: c-1\n`)
    expect(warnings).toEqual([])
    expect(job).toEqual({
      name: "small",
      path: "job.yaml",
      service: { _tag: "Embedded", seed: 1, speed: 1 },
      ...defaultsOfAJob,
      assignments: [
        {
          customer_id: "c-1",
          engine_reference: "bank:website",
          ...plainEngine,
          login: parametersLogin({}),
          source: "job.yaml:5:9",
        },
      ],
      hooks: [],
      sessions: [],
    })
  })

  effect("is the unchanged template of `nightjar init`", function* () {
    const { job, errors, warnings } = yield* load(jobTemplate("mine"))
    expect({ errors, warnings }).toEqual({ errors: [], warnings: [] })
    expect(job).toMatchObject({
      ...defaultsOfAJob,
      night: { starts: "22:30", until: "07:00" },
      timezone: "Europe/Madrid",
    })
  })

  effect("takes ids and login values from the source text if YAML would change them", function* () {
    const { job, errors } = yield* load(`${smallJob}customers:
  - id: 65e0
    parameters: { pin: 0123, code: 0x1F, big: 12345678901234567890, count: 7, yes: true, text: "7", f: 1.50 }
sessions: [0042, 65e0, { id: 1e3, customer: 007 }]
`)
    expect(errors).toEqual([])
    expect(job).toMatchObject({
      assignments: [
        {
          customer_id: "65e0",
          login: parametersLogin({
            pin: literal("0123"),
            code: literal("0x1F"),
            big: literal("12345678901234567890"),
            count: literal(7),
            yes: literal(true),
            text: literal("7"),
            f: literal("1.50"),
          }),
        },
      ],
      sessions: [{ session_id: "0042" }, { session_id: "65e0" }, { session_id: "1e3", customer_id: "007" }],
    })
  })

  effect("lets a customer's engine replace the job's features, settings and parameters", function* () {
    const { job, errors } = yield* load(`name: overrides
service: { sandbox: { seed: 7, speed: 300, faults: f.yaml } }
tokens: { key: exec:pass show key }
engines:
  - reference: tax:website
    configurations: { region: north }
    hooks_extra_data: { run: "{external_execution_id}" }
    features: [vehicles_data, { code: yearly_individual_tax, configurations: { last_n_years: 5 } }]
customers:
  - id: c-1
    parameters: { username: env:USER1 }
    tokenized_access: true
    engines:
      - tax:website
      - reference: bank:api
        parameters: { nif: "rsa::abc" }
        tokenized_access: false
        features: [accounts_read]
      - { reference: other:api, token: c1-other }
`)
    const feature = (code: string, configurations?: unknown) =>
      configurations === undefined ? { code } : { code, configurations }
    expect(errors).toEqual([])
    expect(job).toMatchObject({
      service: { _tag: "Embedded", seed: 7, speed: 300, faults: "f.yaml" },
      tokens_key: { _tag: "Exec", command: "pass show key" },
      assignments: [
        {
          customer_id: "c-1",
          engine_reference: "tax:website",
          features: [feature("vehicles_data"), feature("yearly_individual_tax", { last_n_years: 5 })],
          configurations: { region: "north" },
          hooks_extra_data: { run: "{external_execution_id}" },
          login: parametersLogin({ username: env("USER1") }, true),
          source: "job.yaml:14:9",
        },
        {
          customer_id: "c-1",
          engine_reference: "bank:api",
          ...plainEngine,
          features: [feature("accounts_read")],
          login: parametersLogin({ nif: literal("rsa::abc") }),
          source: "job.yaml:15:9",
        },
        {
          customer_id: "c-1",
          engine_reference: "other:api",
          ...plainEngine,
          login: { _tag: "Token", name: "c1-other" },
          source: "job.yaml:19:9",
        },
      ],
    })
  })
})

describe("the environment", () => {
  effect(
    "replaces ${NAME} in strings, leaves commands to their shell, and names missing variables [job variable]",
    function* () {
      const source = `${smallJob}customers:
  - { id: "c-\${N}", parameters: { username: "u\${N}", password: "exec:vault \${TOKEN}", pin: "\${N}" } }
`
      const { job } = yield* load(source, { environment: { N: "12", TOKEN: "hush" } })
      expect(job).toMatchObject({
        assignments: [
          {
            customer_id: "c-12",
            login: parametersLogin({
              username: literal("u12"),
              password: { _tag: "Reference", reference: { _tag: "Exec", command: "vault ${TOKEN}" } },
              pin: { ...literal("12"), isVariable: true },
            }),
          },
        ],
      })
      const missing = "the environment has no variable N, or an empty one"
      const places = ["5:11", "5:45", "5:92"]
      const errorsOf = (what: string) => places.map((place) => `job.yaml:${place}: ${what}`)
      expect((yield* load(source)).errors).toEqual(errorsOf(missing))
      const lost = "the variable N cannot be used: it has U+FFFD in the place of bytes that are not UTF-8"
      const { errors } = yield* load(source, { environment: { N: "1\uFFFD" } })
      expect(errors).toEqual(expect.arrayContaining([...errorsOf(lost)]))
    },
  )

  effect("overrides the service, even if the job says sandbox", function* () {
    const environment = {
      NIGHTJAR_BASE_URL: "http://127.0.0.1:9000/api",
      NIGHTJAR_FLOWS_URL: "http://localhost:9000/flows/",
      NIGHTJAR_APP_SECRET: "hush",
    }
    const service = {
      _tag: "Remote",
      base_url: "http://127.0.0.1:9000/api",
      flows_url: "http://localhost:9000/flows",
      attachments_url: "http://localhost:9000/flows",
      app_secret: { _tag: "Env", name: "NIGHTJAR_APP_SECRET" },
    }
    expect((yield* load(`${smallJob}sessions: [s-1]\n`, { environment })).job).toMatchObject({ service })
    expect((yield* load(remote, { environment })).job).toMatchObject({ service })
    const { NIGHTJAR_BASE_URL } = environment
    expect((yield* load(smallJob, { environment: { NIGHTJAR_BASE_URL } })).errors).toEqual([
      "job.yaml:2:10: `flows_url` is missing, and NIGHTJAR_FLOWS_URL is not set either",
      "job.yaml:2:10: `app_secret` is missing, and NIGHTJAR_APP_SECRET is not set either",
    ])
  })
})

describe("where telemetry goes", () => {
  effect(
    "is an address or a reference, with files relative to the job; nowhere without `telemetry`",
    function* () {
      const { job, errors } = yield* load(`${smallJob}${customers}telemetry:
  otlp: env:OTLP
  headers: file:headers
  prometheus: night.prom
  customer_ids: true
`)
      expect(errors).toEqual([])
      expect(job).toHaveProperty("telemetry", {
        otlp: { _tag: "Env", name: "OTLP" },
        headers: { _tag: "File", path: "headers" },
        prometheus: "night.prom",
        customer_ids: true,
      })
      const plain = yield* load(`${smallJob}${customers}telemetry: { otlp: "https://collector.example" }\n`)
      expect(plain.job).toHaveProperty("telemetry", {
        otlp: "https://collector.example",
        customer_ids: false,
      })
      const none = yield* load(`${smallJob}${customers}`)
      expect(none.job).not.toHaveProperty("telemetry")
    },
  )

  effect("is neither plain http to another machine nor a file that is no list of metrics", function* () {
    const { errors } = yield* load(`${smallJob}${customers}telemetry:
  otlp: http://collector.example
  headers: authorization=secret
  prometheus: customers.csv
`)
    expect(errors.map((error) => error.replace(/^[^ ]+ /, ""))).toEqual([
      "expected an https:// address without user, query or fragment (plain http only to this machine), " +
        "or env:NAME, file:PATH or exec:COMMAND",
      "expected env:NAME, file:PATH or exec:COMMAND: a secret is never written into a job file",
      "expected a file whose name ends in .prom: it is written over",
    ])
  })
})

describe("who is told of a run", () => {
  effect("is an address, a ping or a command, with every event when none is named", function* () {
    const { job, errors, warnings } = yield* load(`${smallJob}${customers}deadline: "07:00"
notify:
  - { url: "env:ALERT_URL", format: slack, on: [late] }
  - { ping: "file:ping.url" }
  - { command: [page, --night] }
`)
    expect([errors, warnings]).toEqual([[], []])
    expect(job).toMatchObject({
      notify: [
        {
          _tag: "Url",
          name: "notify[0]",
          on: ["late"],
          address: { _tag: "Env", name: "ALERT_URL" },
          format: "slack",
        },
        { _tag: "Ping", name: "notify[1]", address: { _tag: "File", path: "ping.url" } },
        {
          _tag: "Command",
          name: "notify[2]",
          on: ["failed", "late", "new_trouble", "recovered"],
          argv: ["page", "--night"],
        },
      ],
    })
  })

  effect(
    "is refused with a literal address, with two ways at once, and warned about what is never told",
    function* () {
      const { errors, warnings } = yield* load(`${smallJob}${customers}notify:
  - { url: "https://hooks.example/T0/secret", format: slack }
  - { url: "env:A", ping: "env:B" }
  - { on: [failed] }
  - { ping: "env:A", on: [failed], format: json }
  - { command: [], on: [late] }
  - { url: "env:A", on: [faild] }
  - { email: "env:A", to: [ops@example.org] }
  - { email: "env:A", from: n@example.org, to: [] }
  - { email: "env:A", from: "Night <n@example.org>", to: [ops@example.org] }
  - { url: "env:A", to: [ops@example.org] }
`)
      expect(errors).toEqual([
        "job.yaml:6:12: expected env:NAME, file:PATH or exec:COMMAND: a secret is never written into a job file",
        "job.yaml:7:5: an entry needs exactly one of `url`, `ping`, `email` and `command`",
        "job.yaml:8:5: an entry needs exactly one of `url`, `ping`, `email` and `command`",
        "job.yaml:9:5: `format` belongs to `url`",
        "job.yaml:9:5: `ping` has no `on`: it is sent at the beginning and the end of every run",
        "job.yaml:10:5: `command` names no program",
        "job.yaml:11:26: expected `failed` or `late` or `new_trouble` or `recovered`",
        "job.yaml:12:5: `email`, `from` and `to` belong together",
        "job.yaml:13:5: `to` has 1 to 10 addresses",
        "job.yaml:14:29: expected an e-mail address alone, such as ops@example.org",
        "job.yaml:15:5: `email`, `from` and `to` belong together",
      ])
      expect(warnings).toEqual([
        "job.yaml:10:24: `late` is never sent: the job has neither `night` nor `deadline`",
      ])
    },
  )
})

effect("a setting that has no effect any more is a warning that says what to read instead", function* () {
  const { errors, warnings } = yield* load(`${smallJob}output: { delta: true }\ncustomers:\n  - id: c-1\n`)
  expect({ errors, warnings }).toEqual({
    errors: [],
    warnings: [
      "job.yaml:4:11: `delta` no longer has an effect, and no Delta logs are written: Spark and others read the Parquet files, tables/<table>/**/*.parquet",
    ],
  })
})

effect("results that are not read are deleted only after a warning [promise 5 unread]", function* () {
  const warned = Effect.fnUntraced(function* (settings: string) {
    const { warnings } = yield* load(`${smallJob}${settings}\ncustomers:\n  - id: c-1\n`)
    return warnings
  })
  const unread =
    "job.yaml:4:26: no results are read, neither flow results nor those of other endpoints, and executions are deleted at the service all the same; `after_export: keep` leaves them there"
  expect([
    yield* warned("flow_results: { enabled: false }"),
    yield* warned("flow_results: { enabled: false }\nafter_export: keep"),
    yield* warned("flow_results: { enabled: true }"),
  ]).toEqual([[unread], [], []])
})

const seconds = "a number and a unit (millis, seconds, minutes, hours, days)"

describe("a setting as it is written", () => {
  const often = `expected a duration from 1 second to 1 day: ${seconds}`
  const none = "5:1: `freshness` needs `warn_after`, `error_after` or both, for the job or for an engine"
  const turned = "`warn_after` must not be longer than `error_after`"
  const misspelt =
    "{ error_after: 2 days, engines: { bank:websit: { warn_after: 1 day }, bank:website: {} } }"
  it.effect.each([
    // Setting, what the file has, its value or what is wrong.
    ["publish", "{ every: 10 minutes }", { every: Duration.minutes(10) }],
    ["publish", "{}", ["5:1: `every` is missing"]],
    ["publish", "{ every: 100 millis }", [`5:19: ${often}`]],
    ["publish", "{ every: often }", [`5:19: ${often}`]],
    [
      "publish",
      "{ evry: 10 minutes }",

      ["5:1: `every` is missing", "5:12: unknown key `evry`; did you mean `every`?"],
    ],
    ["publish", "10 minutes", ["5:10: expected a mapping"]],
    ["freshness", "{ warn_after: 3 days, error_after: 7.5 days }", { warn_after: 3, error_after: 7 }],
    ["freshness", "{ error_after: 2 days }", { error_after: 2 }],
    ["freshness", "{}", [none]],
    ["freshness", "{ warn_after: 3 days, error_after: 2 days }", [`5:1: ${turned}`]],
    [
      "freshness",
      "{ warn_after: 3 days, error_after: 5 days, engines: { bank:website: { error_after: 9 days } } }",
      { warn_after: 3, error_after: 5, engines: { "bank:website": { warn_after: 3, error_after: 9 } } },
    ],
    [
      "freshness",
      "{ engines: { bank:website: { warn_after: 1 day } } }",
      { engines: { "bank:website": { warn_after: 1 } } },
    ],
    [
      "freshness",
      "{ error_after: 2 days, engines: { bank:website: { warn_after: 3 days } } }",
      [`5:46: ${turned}`],
    ],
    [
      "freshness",
      misspelt,
      [
        "5:46: the job does not use the engine `bank:websit`; did you mean `bank:website`?",
        "5:82: an engine needs `warn_after`, `error_after` or both here",
      ],
    ],
    ["replaces", "[nightly, monthly]", ["nightly", "monthly"]],
    ["replaces", "nightly", ["5:11: expected a list"]],
    ["replaces", "[other, small]", ["5:19: a job would take its own place: `small`"]],
    ["record_schemas", "all", "all"],
    ["record_schemas", "[]", []],
    ["record_schemas", "[accounts, cards]", ["accounts", "cards"]],
    ["record_schemas", "[accounts, card]", ["5:28: expected `accounts`"]],
    ["record_schemas", "nothing", ["5:17: expected `all` or a list"]],
  ] as const)("%s: %s", ([setting, text, expected]) =>
    Effect.map(load(`${smallJob}${customers}${setting}: ${text}\n`), ({ job, errors }) =>
      expect(
        (job as Readonly<Record<string, unknown>> | undefined)?.[setting] ??
          errors.map((error) => error.replace("job.yaml:", "").replace(/ or `accounts_cert.*/, "")),
      ).toEqual(expected),
    ),
  )
})

describe("the SQL that a job brings", () => {
  const job = `${smallJob}${customers}`

  effect(
    "is read with the job: tests of gates and models, by name; without gates nothing is asked",
    function* () {
      const files = { "tests/b.sql": "SELECT 2", "tests/a.sql": "SELECT 1", "models/m.sql": "SELECT 3" }
      const gates = "{ rows: { min: 50% }, rejected: 0%, coverage: 80%, freshness: 3 days, tests: ./tests }"
      const { job: loaded, errors } = yield* load(`${job}gates: ${gates}\nmodels: ./models\n`, { files })
      expect(errors).toEqual([])
      expect(loaded).toMatchObject({
        gates: {
          keys: true,
          rows: { min: 0.5, nights: 7 },
          rejected: 0,
          coverage: 0.8,
          freshness: 3,
          tests: [
            { name: "a", sql: "SELECT 1" },
            { name: "b", sql: "SELECT 2" },
          ],
        },
        models: [{ name: "m", sql: "SELECT 3" }],
      })
      expect((yield* load(job)).job).not.toHaveProperty("gates")
    },
  )

  effect(
    "stops the job before anything starts if a folder is missing, a name unusable or a share odd",
    function* () {
      const files = { "models/Bad-name.sql": "SELECT 1" }
      const { errors } = yield* load(`${job}gates: { rejected: 101%, tests: ./none }\nmodels: ./models\n`, {
        files,
      })
      expect(errors.map((error) => error.replace(/^[^ ]*: /, "")).toSorted()).toEqual([
        'expected a percentage from "0%" to "100%"',
        "the name of a file of SQL is a-z, 0-9 and _, starting with a letter, at most 63 characters",
        "there is no such folder beside the job file",
      ])
    },
  )
})

describe("a job that is refused", () => {
  effect("of two lengths, names the default that nobody wrote [job lengths]", function* () {
    const errorsOf = (text: string) =>
      Effect.map(load(`${smallJob}${text}customers:\n  - id: c-1\n`), (one) => one.errors)
    const written = [
      "retry: { max: 10 seconds }\n",
      "retry: { base: 1 hour }\n",
      "polling: { max: 1 second }\n",
    ]
    const errors = yield* Effect.forEach(written, errorsOf)
    expect(errors.flat().map((error) => error?.replace(/^job.yaml:/, ""))).toEqual([
      "4:15: `base` (30s unless it is written) is longer than `max` (10s)",
      "4:16: `base` (1h) is longer than `max` (15m unless it is written)",
      "4:17: `min` (2s unless it is written) is longer than `max` (1s)",
    ])
  })

  effect("reports everything at once, in order, at the line and column of each", function* () {
    const { errors, warnings } = yield* load(`name: Nightly
servce: sandbox
execution:
  customer_interaction_available: true
  execution_timeout: 30 seconds
  max_wat: 3 hours
concurrency: { max_in_flight: 0, per_engine: many }
retry: { max_attempts: 1.5 }
polling: { min: 2 minutes, max: 1 minute }
flow_results: { min_interval: 4 seconds }
deadline: 7:00
timezone: Europe/Madird
after_export: remove
engines:
  - reference: a:website
    hooks_extra_data: { x: env:FOO, y: 5 }
    features: [acounts_read]
  - a:website
customers:
  - {}
  - { from: customers.xml, id: c-1 }
`)
    expect(errors).toEqual([
      "job.yaml:1:1: `service` is missing",
      "job.yaml:1:7: expected a name of a-z, 0-9 and -, at most 64 characters",
      "job.yaml:2:1: unknown key `servce`; did you mean `service`?",
      "job.yaml:4:35: expected false, the only allowed value: at night nobody can answer a challenge",
      `job.yaml:5:22: expected a duration from 60 seconds to 1200 seconds: ${seconds}`,
      "job.yaml:6:3: unknown key `max_wat`; did you mean `max_wait`?",
      "job.yaml:7:31: expected a whole number from 1 to 100000",
      "job.yaml:7:46: expected a number",
      "job.yaml:8:24: expected a whole number from 1 to 100",
      "job.yaml:9:17: `min` (2m) is longer than `max` (1m)",
      `job.yaml:10:31: expected a duration from 5 seconds to 1 day: ${seconds}`,
      'job.yaml:11:11: expected a time of day as "HH:MM", from "00:00" to "23:59"',
      "job.yaml:12:11: expected the IANA name of a time zone, such as Europe/Madrid",
      "job.yaml:13:15: expected `delete` or `keep`",
      "job.yaml:16:28: expected a string, not a secret reference: " +
        "these values end up in webhook addresses",
      "job.yaml:16:40: expected a string (quote it if YAML reads it as something else)",
      "job.yaml:18:5: `a:website` is already listed, at job.yaml:15:5",
      "job.yaml:20:5: `id` is missing (or `from`, for a file of customers)",
      "job.yaml:21:13: expected a file that ends in .csv, .ndjson, .jsonl or .parquet",
      "job.yaml:21:28: `id` comes from the file's columns, not from here",
    ])
    expect(warnings).toEqual([
      "job.yaml:17:16: `acounts_read` is not a feature that the reference lists; " +
        "did you mean `accounts_read`?",
    ])
  })

  effect("names both places of a customer that appears twice on an engine", function* () {
    const source = `${smallJob}customers:
  - { id: c-1, engines: [bank:website, tax:website] }
  - { id: c-1 }
  - from: c.csv
  - from: c.ndjson
`
    const files = {
      "c.csv": "customer_id,engine_reference\nc-2,\nc-1,tax:website\n",
      "c.ndjson": '{"customer_id":"c-2","engine_reference":"bank:website"}\n',
    }
    expect((yield* load(source, { files })).errors).toEqual([
      "job.yaml:6:11: this customer is already on `bank:website`, at job.yaml:5:26",
      "c.csv:3:1: this customer is already on `tax:website`, at job.yaml:5:40",
      "c.ndjson:1:1: this customer is already on `bank:website`, at c.csv:2:1",
    ])
  })

  effect("needs an engine for every customer, and reports this once for the rows of a file", function* () {
    const source = `name: a
service: sandbox
customers: [{ id: c-1, engines: [] }, { id: c-2 }, { id: c-3 }, { from: c.csv }]
`
    const none = "this customer has no `engines`, and the job names none either"
    expect((yield* load(source, { files: { "c.csv": "customer_id\nc-4\nc-5\n" } })).errors).toEqual([
      "job.yaml:3:33: this list is empty: name an engine, or remove it",
      `job.yaml:3:45: ${none}`,
      `job.yaml:3:58: ${none}`,
      `c.csv:2:1: ${none} (and 1 more in this file)`,
    ])
  })

  effect("needs `tokens` for tokens, and may use each token only once and without parameters", function* () {
    const customers = `customers:
  - id: c-1
    engines:
      - { reference: a:api, token: t }
      - { reference: b:api, token: t, parameters: { pin: 1 } }
  - { id: c-2, tokenized_access: true }
`
    const twice = "`t` is already used, at job.yaml:7:9: a token belongs to one customer on one engine"
    const needs = "needs `tokens` in the job, which opens the token store"
    expect((yield* load(smallJob + customers)).errors).toEqual([
      `job.yaml:7:9: \`token\` ${needs}`,
      `job.yaml:8:9: the token ${twice}`,
      `job.yaml:8:9: \`token\` ${needs}`,
      "job.yaml:8:29: a `token` replaces `parameters`: keep one of the two",
      `job.yaml:9:11: \`tokenized_access\` ${needs}`,
    ])
  })

  effect("names columns that its file does not have, or gives a row a token and parameters", function* () {
    const job =
      "tokens: { key: env:KEY }\ncustomers:\n  - { from: c.csv, features_column: wants, token_column: ticket }\n"
    const files = { "c.csv": "customer_id,username,ticket\nc-1,u,c1-bank\n" }
    expect((yield* load(smallJob + job, { files })).errors).toEqual([
      "c.csv:1:1: there is no column `wants`, which the job names",
      "c.csv:2:1: a token replaces the parameters of this row: leave one of the two empty",
    ])
  })

  effect("has fewer customers than it must, or none at all [run customers]", function* () {
    const named = (...ids: ReadonlyArray<string>) =>
      `customers:\n${ids.map((id) => `  - { id: ${id}, parameters: { username: u } }\n`).join("")}`
    const errorsOf = (more: string, files: Readonly<Record<string, string>> = {}) =>
      Effect.map(load(smallJob + more, { files }), ({ errors }) => errors)
    const none = "the job has no customers and no sessions: there is nothing to run"
    expect(yield* errorsOf("")).toEqual([`job.yaml:1:1: ${none}`])
    expect(yield* errorsOf("customers:\n  - from: c.csv\n", { "c.csv": "customer_id,username\n" })).toEqual([
      `job.yaml:5:3: ${none}`,
    ])
    expect(yield* errorsOf("sessions: [s-1]\n")).toEqual([])
    const few = "the job has 2 customers, and `min_customers` is 3"
    expect(yield* errorsOf(`min_customers: 3\n${named("c-1", "c-2")}`)).toEqual([`job.yaml:4:16: ${few}`])
    expect(yield* errorsOf(`min_customers: 2\n${named("c-1", "c-2")}`)).toEqual([])
    expect(yield* errorsOf("min_customers: 1\nsessions: [s-1]\n")).toEqual([
      "job.yaml:4:16: the job has 0 customers, and `min_customers` is 1",
    ])
    expect(
      yield* errorsOf(`min_customers: { number: 3, of_last_night: 90% }\n${named("c-1", "c-2")}`),
    ).toEqual([`job.yaml:4:16: ${few}`])
    const shared = `min_customers: { of_last_night: 90% }\n${named("c-1")}`
    expect(yield* load(smallJob + shared)).toMatchObject({ job: { min_customers: { of_last_night: 0.9 } } })
    expect(yield* errorsOf(`min_customers: 0\n${named("c-1")}`)).toHaveLength(1)
    expect(yield* errorsOf(`min_customers: { of_last_night: 101% }\n${named("c-1")}`)).toHaveLength(1)
  })

  effect("refuses personal data as a customer_id and only warns about what resembles it", function* () {
    const reason = (kind: string) =>
      `expected a customer_id without personal data: this is ${kind}, and the service stores ` +
      "the id, repeats it on every event and may put it into webhook addresses (reference, 4.1)"
    const { errors, warnings } = yield* load(
      `${smallJob}customers:
  - id: ana@mail.example
  - from: c.csv
sessions: [{ id: s, customer: X1234567L }]
`,
      { files: { "c.csv": "customer_id\n12345678Z\n12345678A\n12345678B\n" } },
    )
    expect(errors).toEqual([
      `job.yaml:5:9: ${reason("an e-mail address")}`,
      `job.yaml:7:31: ${reason("a Spanish identity number (NIE)")}`,
      `c.csv:2:1: ${reason("a Spanish identity number (DNI)")}`,
    ])
    expect(warnings).toEqual([
      "c.csv:3:1: this customer_id resembles a Spanish identity number (DNI); the service stores it " +
        "and may put it into webhook addresses: use an id that says nothing about the person " +
        "(and 1 more in this file)",
    ])
  })

  effect(
    "[decision unseen ids] warns about a customer_id with characters that nobody sees, and shows them",
    function* () {
      const source = `${smallJob}customers:
  - { id: "c-1 " }
  - { id: "c-1" }
  - { id: "  " }
  - { id: "a b" }
  - from: c.csv
`
      const files = { "c.csv": "customer_id\n\u00a0c-3\nc-\t4\n" }
      const told = (shown: string) =>
        `this customer_id has characters that nobody sees, \`${shown}\`: it is another customer than the id ` +
        "without them. Remove them, unless they belong to it"
      const { job, errors, warnings } = yield* load(source, { files })
      expect(errors).toEqual([])
      expect(warnings).toEqual([
        `job.yaml:5:11: ${told("c-1<U+0020>")} (and 1 more in this file)`,
        `c.csv:2:1: ${told("<U+00A0>c-3")} (and 1 more in this file)`,
      ])
      const inside = yield* load(`${smallJob}customers: [{ id: "c\\u200B-\\u00012" }]\n`)
      expect(inside.warnings).toEqual([`job.yaml:4:19: ${told("c<U+200B>-<U+0001>2")}`])
      expect(job).toMatchObject({
        assignments: [{ customer_id: "c-1 " }, { customer_id: "c-1" }, {}, {}, {}, {}],
      })
    },
  )

  effect(
    "[decision first syntax error] reports only the first syntax error, at an honest place",
    function* () {
      const errorsOf = (source: string) => Effect.map(load(source), ({ errors }) => errors)
      const end = "; the file was read no further"
      const indented = `the first key is indented further than the lines after it: remove the spaces before it${end}`
      expect(yield* errorsOf(` ${smallJob}customers: [{ id: c-1 }]\n`)).toEqual([`job.yaml:1:2: ${indented}`])
      expect(yield* errorsOf(`# mine\n\n  name: a\n service: sandbox\n`)).toEqual([
        `job.yaml:3:3: ${indented}`,
      ])
      expect(yield* errorsOf(`${smallJob}  x: 1\n y: "z\n`)).toEqual([
        `job.yaml:4:1: the indentation is wrong here${end}`,
      ])
      expect(yield* errorsOf(`name: "a\nservice: sandbox\ncustomers: []\n`)).toEqual([
        `job.yaml:1:7: this quote is never closed${end}`,
      ])
      expect(yield* errorsOf(`${smallJob}customers: [{ id: c-1 }]\n`.replaceAll("\n", "\r"))).toEqual([
        "job.yaml:1:1: the lines of this file end with CR alone: save it with LF or CRLF as line ends",
      ])
      expect(yield* errorsOf(`${smallJob}customers: [{ id: c-1 }]\n`.replaceAll("\n", "\r\n"))).toEqual([])
      const quotes = `name: a\nservice: sandbox\ncustomers:\n  - { id: it's, parameters: { a: 'it''s', b: x"y } }\n`
      expect(yield* errorsOf(`${quotes}engines: |\n  "x\n`)).toEqual([
        expect.stringContaining("expected a list"),
      ])
    },
  )

  effect("[decision merge keys] refuses merge keys, wherever they are", function* () {
    const source =
      "name: a\nservice: sandbox\nengines:\n  - &e { reference: x:y, configurations: &c { n: 5 } }\n" +
      "  - { <<: *e, reference: x:z, configurations: { <<: *c, '<<': 1 } }\n" +
      "customers:\n  - { id: c-1, parameters: &p { user: u, word: w } }\n" +
      "  - { id: c-2, parameters: { <<: *p, user: v, word: x } }\n"
    const told = "merge keys (<<) are not read: write the keys out; an alias (*) can only be a whole value"
    expect((yield* load(source)).errors).toEqual([
      `job.yaml:5:7: ${told}`,
      `job.yaml:5:49: ${told}`,
      `job.yaml:8:30: ${told}`,
    ])
    const quoted = source.replaceAll("<<: *e, ", "").replace("<<: *c, ", "").replace("<<: *p, ", "")
    expect((yield* load(quoted)).errors).toEqual([])
  })

  effect("[decision made reference] takes no reference from the value of a variable", function* () {
    const told =
      "the value of a variable would make this a reference: write env:NAME for what NAME has, not ${NAME}"
    const source = `${smallJob}customers: [{ id: c-1, parameters: { a: "\${V}", b: "e\${W}", c: "file:\${F}" } }]\n`
    for (const V of ["exec:touch made", "env:APP", "file:/etc/passwd"]) {
      const { errors, shown } = yield* load(source, { environment: { V, W: "nv:APP", F: "pin" } })
      expect(errors).toEqual([`job.yaml:4:41: ${told}`, `job.yaml:4:52: ${told}`])
      expect(shown).not.toContain(V)
    }
    expect((yield* load(source, { environment: { V: "v", W: "nv", F: "pin" } })).errors).toEqual([])
  })

  effect(
    "[decision text variables] says that no variable is replaced where a number or a boolean is expected",
    function* () {
      const source =
        smallJob +
        "concurrency: { max_in_flight: '${N}' }\nflow_results:\n  enabled: ${B}\nmin_customers: ${N}\n" +
        "customers: [{ id: c-1 }]\n"
      const hint = "; `${NAME}` is replaced in a text only: write the value itself"
      expect((yield* load(source, { environment: { N: "5", B: "true" } })).errors).toEqual([
        `job.yaml:4:31: expected a number${hint}`,
        `job.yaml:6:12: expected true or false${hint}`,
        `job.yaml:7:16: expected a number or a mapping${hint}`,
      ])
    },
  )

  effect("is refused as invalid YAML with a place and none of its text", function* () {
    const lines = "a: *hunter2|a: !hunter2 x|a: 'hunter2|\tname: hunter2|a: @hunter2|- hunter2".split("|")
    const broken = [
      ...lines.map((line) => `${line}\n`),
      'a: "hunter2\\q"\n',
      "a: |hunter2\n  x\n",
      "a: [hunter2\nb: 1\n",
      "name: a\nname: hunter2\n",
      "--- a\n--- hunter2\n",
      "[".repeat(10_000),
      "hunter2",
      "",
    ]
    for (const source of broken) {
      const { errors, shown } = yield* load(source)
      expect(errors.length).toBeGreaterThan(0)
      expect(shown).not.toContain("hunter2")
    }
    expect((yield* load("name: a\nservice: sandbox\nengines: &e [*e]\n")).errors).toEqual([
      "job.yaml:3:14: this is nested too deeply, or an alias (*) contains itself",
    ])
  })
})

effect("ids of more than 512 characters are refused where they stand", function* () {
  const long = "x".repeat(513)
  for (const [yaml, place] of [
    [`customers:\n  - id: ${long}\n`, "job.yaml:5:9"],
    [`sessions:\n  - ${long}\n`, "job.yaml:5:5"],
    [`customers:\n  - id: c-1\n    engines: [${long}]\n`, "job.yaml:6:15"],
  ] as const) {
    const { errors } = yield* load(`${smallJob}${yaml}`)
    expect(errors).toEqual([
      expect.stringMatching(new RegExp(`^${place}: .{0,200}at most 512 characters.{0,80}$`)),
    ])
  }
  const files = { "customers.csv": `customer_id,user\nc-1,a\n${long},b\n` }
  const { errors } = yield* load(`${smallJob}customers:\n  - from: customers.csv\n`, { files })
  expect(errors).toEqual(["customers.csv:3:1: expected at most 512 characters, got 513"])
})
