/**
 * `hooks_extra_data` against the secrets that a job file, its customers' files and the environment show:
 * what `nightjar validate` can know.
 */
import { describe, expect } from "@effect/vitest"
import { load } from "./loading.ts"
import { effect } from "../harness/Steps.ts"

const why = "the service appends it to every webhook address"
const refused = `; ${why}, which must never hold a secret (reference, 4.1): remove it or write something else`
const suspicious = `; ${why}: keep it only if it is neither a secret nor personal data`
const of = (name: string, source: string) =>
  `the value of the parameter \`${name}\` of the customer at ${source}`

const environment = { SECRET: "s3cr3t-app", REGION: "north", USER1: "ana.lopez", TOKENS: "k3y-of-store" }

const job = (hooks: string, rest: string) => `name: hooks
service: { base_url: "https://service.example/api", flows_url: /flows, app_secret: env:SECRET }
engines:
  - reference: bank:website
    hooks_extra_data: ${hooks}
${rest}`

describe("hooks_extra_data", () => {
  effect(
    "is refused if a value is a secret, wherever it comes from [promise 12 webhook addresses]",
    function* () {
      const hooks =
        '{ a: "${SECRET}", b: hunter22, c: "${USER1}", d: k3y-of-store, e: from-a-file, f: "9090", g: north }'
      const { errors, warnings, shown } = yield* load(
        job(
          hooks,
          `tokens: { key: env:TOKENS }
customers:
  - id: c-1
    parameters: { username: env:USER1, password: hunter22 }
  - from: c.csv
`,
        ),
        {
          environment,
          files: { "c.csv": "customer_id,username,password,pin\nc-2,u,from-a-file,9090\n" },
          modes: { "c.csv": 0o600 },
        },
      )
      expect(errors).toEqual([
        `job.yaml:5:28: the value of \`hooks_extra_data.a\` is the application secret${refused}`,
        `job.yaml:5:44: the value of \`hooks_extra_data.b\` is ${of("password", "job.yaml:8:9")}${refused}`,
        `job.yaml:5:57: the value of \`hooks_extra_data.c\` is ${of("username", "job.yaml:8:9")}${refused}`,
        `job.yaml:5:72: the value of \`hooks_extra_data.d\` is the key of the token store${refused}`,
        `job.yaml:5:89: the value of \`hooks_extra_data.e\` is ${of("password", "c.csv:2")}${refused}`,
        `job.yaml:5:105: the value of \`hooks_extra_data.f\` is ${of("pin", "c.csv:2")}${refused}`,
      ])
      expect(warnings).toEqual([])
      for (const secret of ["s3cr3t-app", "hunter22", "ana.lopez", "k3y-of-store", "from-a-file", "9090"])
        expect(shown).not.toContain(secret)
    },
  )

  effect("is refused if a secret of one customer is in the pairs of another, or in a key", function* () {
    const { errors, shown } = yield* load(
      job(
        "{}",
        `customers:
  - id: c-1
    parameters: { password: hunter22 }
  - id: c-2
    engines:
      - { reference: bank:website, hooks_extra_data: { aHVudGVyMjI: x, note: by hunter22 } }
`,
      ),
      { environment },
    )
    const source = "job.yaml:7:9"
    expect(errors).toEqual([
      `job.yaml:11:56: a key of \`hooks_extra_data\` is an encoded form of ${of("password", source)}${refused}`,
      `job.yaml:11:78: the value of \`hooks_extra_data.note\` contains ${of("password", source)}${refused}`,
    ])
    expect(shown).not.toContain("hunter22")
    expect(shown).not.toContain("aHVudGVyMjI")
  })

  effect("is refused with a token's login beside it, and if no customer uses the engine", function* () {
    const { errors } = yield* load(
      job(
        '{ a: "${SECRET}" }',
        `tokens: { key: env:TOKENS }
customers: [{ id: c-1, engines: [{ reference: other:api, token: t }] }]
`,
      ),
      { environment },
    )
    expect(errors).toEqual([
      `job.yaml:5:28: the value of \`hooks_extra_data.a\` is the application secret${refused}`,
    ])
  })

  effect(
    "keeps templates, variables that are not secret, and words that a login contains by chance",
    function* () {
      const hooks =
        '{ run: "{external_execution_id}", why: "{event}-{status_reason}", where: "${REGION}", year: "2024", ok: ok }'
      const parameters = 'username: ok, password: "20241", remember: true, region: north'
      const loaded = yield* load(job(hooks, `customers: [{ id: c-1, parameters: { ${parameters} } }]\n`), {
        environment,
      })
      expect(loaded.errors).toEqual([])
      expect(loaded.warnings).toEqual([
        `job.yaml:5:96: the value of \`hooks_extra_data.where\` is ${of("region", "job.yaml:6:19")}${suspicious}`,
        `job.yaml:5:123: a key of \`hooks_extra_data\` is ${of("username", "job.yaml:6:19")}${suspicious}`,
        `job.yaml:5:127: the value of \`hooks_extra_data.ok\` is ${of("username", "job.yaml:6:19")}${suspicious}`,
      ])
      expect(loaded.job).toMatchObject({
        assignments: [{ hooks_extra_data: { where: "north", year: "2024", ok: "ok" } }],
        hooks: [
          { key: "run", value: "{external_execution_id}" },
          { key: "why" },
          { key: "where", value: "north", place: { file: "job.yaml", line: 5, column: 96 } },
          { key: "year" },
          { key: "ok" },
        ],
      })
    },
  )

  effect("is refused because of a secret beside a harmless word", function* () {
    const customer = "{ id: c-1, parameters: { city: madrid, password: hunter22 } }"
    const loaded = yield* load(job("{ k: madrid hunter22 }", `customers: [${customer}]\n`), { environment })
    expect([loaded.errors, loaded.warnings]).toEqual([
      [
        `job.yaml:5:28: the value of \`hooks_extra_data.k\` contains ${of("password", "job.yaml:6:19")}${refused}`,
      ],
      [],
    ])
  })

  effect("lets a key be what somebody's user name is, but not what a password is", function* () {
    const customer = "{ id: c-1, parameters: { username: env:WHO, login: env:USER1, pin: run } }"
    const loaded = yield* load(job("{ who: a, ana.lopez: b, run: c }", `customers: [${customer}]\n`), {
      environment: { ...environment, WHO: "who" },
    })
    const key = (column: number, name: string) =>
      `job.yaml:5:${column}: a key of \`hooks_extra_data\` is ${of(name, "job.yaml:6:19")}`
    expect([loaded.errors, loaded.warnings]).toEqual([
      [key(33, "login") + refused, key(47, "pin") + refused],
      [key(25, "username") + suspicious],
    ])
  })

  effect("does not read unset variables, files or commands", function* () {
    const { errors } = yield* load(
      job(
        "{ a: word }",
        "customers: [{ id: c-1, parameters: { a: env:GONE, b: file:nowhere, c: exec:echo word } }]\n",
      ),
      { environment },
    )
    expect(errors).toEqual([])
  })
})

effect(
  "a customer_id that the customer also logs in with is a warning, once per file and parameter",
  function* () {
    const { errors, warnings } = yield* load(
      `name: ids
service: sandbox
engines: [bank:website]
customers:
  - id: maria
    parameters: { username: " Maria ", password: x }
    engines: [{ reference: bank:website, parameters: { nif: maria } }]
  - from: c.csv
`,
      { files: { "c.csv": "customer_id,username\na-1,a-1\na-2,b-2\na-3,A-3\n" } },
    )
    const said = (name: string) =>
      `this customer_id is also the value of the parameter \`${name}\`; the service stores it and may put ` +
      "it into webhook addresses: use an id that says nothing about the person"
    expect(errors).toEqual([])
    expect(warnings).toEqual([
      `job.yaml:5:9: ${said("username")}`,
      `job.yaml:7:15: ${said("nif")}`,
      `c.csv:2:1: ${said("username")} (and 1 more in this file)`,
    ])
  },
)
