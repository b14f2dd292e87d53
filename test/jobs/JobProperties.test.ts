import { describe, expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Duration, Effect } from "effect"
import * as fc from "fast-check"
import { isMap, isScalar, isSeq, parseDocument, stringify } from "yaml"
import { features } from "../../src/service/Vocabulary.ts"
import { jobJsonSchema } from "../project/settings.ts"
import { nearestName } from "../../src/base/Text.ts"
import { jobSettings, jobTemplate } from "../../src/jobs/Template.ts"
import { defaultsOfAJob, load } from "./loading.ts"
import { effect } from "../harness/Steps.ts"

/** Durations as a user writes them, with their milliseconds. */
const duration = (minMs: number, maxMs: number) =>
  fc.oneof(
    fc
      .integer({ min: Math.ceil(minMs / 1000), max: Math.floor(maxMs / 1000) })
      .map((seconds) => ({ text: seconds === 1 ? "1 second" : `${seconds} seconds`, ms: seconds * 1000 })),
    fc.integer({ min: minMs, max: maxMs }).map((ms) => ({ text: `${ms} millis`, ms })),
    fc
      .integer({ min: Math.ceil(minMs / 30_000), max: Math.floor(maxMs / 30_000) })
      .map((halves) => ({ text: `${halves / 2} minutes`, ms: halves * 30_000 })),
  )

const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })
const minuteOrMore = duration(60_000, 600_000)
const underAMinute = duration(1_000, 59_000)

/** The settings of a valid job, some of them left out, with what they must become. */
const settings = fc.record({
  execution_timeout: optional(duration(60_000, 1_200_000).filter(({ ms }) => ms % 1000 === 0)),
  max_wait: optional(minuteOrMore),
  per_engine: optional(fc.integer({ min: 1, max: 500 })),
  polling: optional(fc.record({ min: underAMinute, max: minuteOrMore })),
  retry_max: optional(minuteOrMore),
  min_interval: optional(duration(5_000, 60_000)),
  attachments: optional(fc.boolean()),
  after_export: optional(fc.constantFrom("delete", "keep")),
  deadline: optional(fc.constantFrom("00:00", "07:00", "23:59")),
  features: fc.uniqueArray(fc.constantFrom(...features), { maxLength: 3 }),
  customers: fc.uniqueArray(fc.stringMatching(/^[a-z]{2}-[0-9]{1,4}$/), { minLength: 1, maxLength: 3 }),
})
type Settings = typeof settings extends fc.Arbitrary<infer A> ? A : never

const withoutUndefined = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const written = (from: Settings): string =>
  stringify(
    withoutUndefined({
      name: "generated",
      service: "sandbox",
      execution: { execution_timeout: from.execution_timeout?.text, max_wait: from.max_wait?.text },
      concurrency: { per_engine: from.per_engine },
      polling: { min: from.polling?.min.text, max: from.polling?.max.text },
      retry: { max: from.retry_max?.text },
      flow_results: { min_interval: from.min_interval?.text, attachments: from.attachments },
      after_export: from.after_export,
      deadline: from.deadline,
      engines: [{ reference: "bank:website", features: from.features }],
      customers: from.customers.map((id) => ({ id, parameters: { username: "env:USER" } })),
    }),
  )

const durationOr = (ms: number | undefined, otherwise: Duration.Duration) =>
  ms === undefined ? otherwise : Duration.millis(ms)

const understood = (from: Settings) => {
  const { execution, concurrency, polling, retry, flow_results, after_export } = defaultsOfAJob
  return {
    execution: {
      ...execution,
      execution_timeout: durationOr(from.execution_timeout?.ms, execution.execution_timeout),
      max_wait: durationOr(from.max_wait?.ms, execution.max_wait),
    },
    concurrency: { ...concurrency, per_engine: from.per_engine ?? concurrency.per_engine },
    polling: {
      min: durationOr(from.polling?.min.ms, polling.min),
      max: durationOr(from.polling?.max.ms, polling.max),
    },
    retry: { ...retry, max: durationOr(from.retry_max?.ms, retry.max) },
    flow_results: {
      ...flow_results,
      min_interval: durationOr(from.min_interval?.ms, flow_results.min_interval),
      attachments: from.attachments ?? flow_results.attachments,
    },
    after_export: from.after_export ?? after_export,
  }
}

const check = (
  property: fc.IAsyncProperty<[Settings]> | fc.IAsyncProperty<[Settings, number]>,
  runs: number,
) => Effect.promise(() => fc.assert<unknown>(property, { numRuns: runs }))

describe("any valid job", () => {
  it.effect("becomes what it says, with defaults for the rest", () =>
    check(
      fc.asyncProperty(settings, async (from) => {
        const { job, errors } = await Effect.runPromise(load(written(from)))
        expect(errors).toEqual([])
        expect(job).toMatchObject(understood(from))
        expect(job).toMatchObject({
          assignments: from.customers.map((customer_id) => ({
            customer_id,
            features: from.features.map((code) => ({ code })),
          })),
        })
      }),
      60,
    ),
  )

  it.effect("is refused at the line of any one key that is misspelt, with the key that was meant", () =>
    check(
      fc.asyncProperty(settings, fc.nat(), async (from, seed) => {
        const { source, line, key, known } = misspell(written(from), seed)
        const { errors } = await Effect.runPromise(load(source))
        const meant = nearestName(`${key}x`, [key])
        const [first] = errors.filter((error) => error.includes("unknown key"))
        expect(first).toMatch(new RegExp(`^job\\.yaml:${line}:\\d+: unknown key \`${key}x\``))
        if (known) expect(first).toContain(`did you mean \`${meant}\`?`)
      }),
      60,
    ),
  )
})

/** Keys that a user names freely: a misspelt one is another name, no error. */
const free = new Set(["username"])

const misspell = (source: string, seed: number) => {
  const keys: Array<{ readonly offset: number; readonly key: string }> = []
  const visit = (node: unknown): void => {
    if (isSeq(node)) node.items.forEach(visit)
    if (!isMap(node)) return
    for (const { key, value } of node.items) {
      if (isScalar(key) && !free.has(String(key.value))) {
        keys.push({ offset: key.range?.[1] ?? 0, key: String(key.value) })
      }
      visit(value)
    }
  }
  visit(parseDocument(source).contents)
  const chosen = keys[seed % keys.length] ?? { offset: 0, key: "" }
  return {
    source: `${source.slice(0, chosen.offset)}x${source.slice(chosen.offset)}`,
    line: source.slice(0, chosen.offset).split("\n").length,
    key: chosen.key,
    known: chosen.key.length > 2,
  }
}

describe("no secret", () => {
  const canary = "C4NARY-s3cret"
  /** A valid job with the secret in every place a user may put or mistake one. */
  const places = [
    `service: { base_url: "https://a", flows_url: "https://a", app_secret: ${canary} }`,
    `service: { base_url: "https://u:${canary}@a", flows_url: "${canary}", app_secret: "env:${canary}!" }`,
    `tokens: { key: ${canary} }`,
    `tokens: ${canary}`,
    `customers: [{ id: c-1, parameters: { password: ${canary} } }]`,
    `customers: [{ id: c-1, parameters: { password: [${canary}, "env:${canary}"] } }]`,
    `customers: [{ id: c-1, parameters: { password: "\${SECRET}" } }]`,
    `customers: [{ id: "\${SECRET}@mail.example" }]`,
    `customers: [{ id: c-1, parameters: ${canary} }]`,
    `customers: [{ id: c-1, tokenized_access: ${canary} }]`,
    `engines: [{ reference: a:b, hooks_extra_data: { x: "env:${canary}" } }]`,
    `service: { app_secret:${canary} }`,
    `service: { app_secret, ${canary} }`,
    `${canary}: 1`,
    `customers: [{ id: c-1, parameters: { password:${canary} } }]`,
    `customers: [{ id: c-1, parameters: { password, ${canary} } }]`,
    `customers: [{ from: twice.csv }]`,
    `deadline: ${canary}`,
    `timezone: ${canary}`,
    `after_export: ${canary}`,
    `polling: { min: ${canary} }`,
    `concurrency: { per_engine: ${canary} }`,
    `execution: { max_wait: ${canary} }`,
    `customers: [{ from: c.csv }]`,
    `customers: [{ from: c.ndjson }]`,
    `retry: "${canary}\\q"`,
    `retry: !${canary} 1`,
    `retry: *${canary}`,
    `retry: |${canary}`,
  ]
  const files = {
    "c.csv": `customer_id,password\nc-1,${canary}\nc-1,"${canary}"x,y\n,${canary}\n`,
    "twice.csv": `c-1,${canary},${canary}\n`,
    "c.ndjson": `{"customer_id":"c-1","password":"${canary}"}\n{"customer_id":${canary}}\n`,
  }

  effect("is in any problem, error, job or their text", function* () {
    for (const place of places) {
      const base = place.startsWith("service") ? "" : "service: sandbox\n"
      const engines = place.startsWith("engines") ? "" : "engines: [bank:website]\n"
      const environment = { SECRET: canary, NIGHTJAR_APP_SECRET: canary }
      const { shown, errors, warnings } = yield* load(`name: canary\n${base}${engines}${place}\n`, {
        files,
        environment,
      })
      expect([place, shown.includes(canary)]).toEqual([place, false])
      expect(JSON.stringify([errors, warnings])).not.toContain(canary)
    }
  })

  effect("is found, while values that are not secret are found in the same way", function* () {
    const { shown } = yield* load(`name: a\nservice: sandbox\ntimezone: UTC\nsessions: [${canary}]\n`)
    expect(shown).toContain(canary)
  })
})

describe("the schema for editors", () => {
  const validate = new Ajv2020({ strict: false }).compile(jobJsonSchema())

  it("accepts the template and refuses what loading refuses", () => {
    const template: unknown = parseDocument(jobTemplate("mine")).toJS()
    expect(validate(template)).toBe(true)
    const refused = [
      { name: "a", servce: "sandbox" },
      { name: "A" },
      {},
      { name: "a", execution: { max_wait: "3 fortnights" } },
      { name: "a", service: { app_secret: "literal" } },
      { name: "a", concurrency: { per_engine: 0 } },
      { name: "a", execution: { customer_interaction_available: true } },
      { name: "a", gates: { coverage: "80" } },
      { name: "a", min_customers: { of_last_night: "0%" } },
      { name: "a", engines: [{ reference: "b", hooks_extra_data: { x: 5 } }] },
    ]
    expect(refused.map((job) => validate(job))).toEqual(refused.map(() => false))
    expect(validate({ name: "a", execution: { max_wait: "${WAIT}" } })).toBe(true)
    expect(validate({ name: "a", gates: { coverage: "100%", rejected: "0%" } })).toBe(true)
  })

  it("accepts numbers as ids, references, codes and names: loading takes their spelling", () => {
    const engine = { reference: 7, features: [12, { code: 13 }] }
    const job = {
      name: 2026,
      after: [1],
      engines: [1, engine],
      customers: [
        { id: 1042, engines: [7, { ...engine, token: 5 }] },
        { from: "c.csv", references: [1], features_column: 2, token_column: 3 },
      ],
      sessions: [1, { id: 2, customer: 3 }],
    }
    expect(validate(job)).toBe(true)
  })

  effect(
    "has every setting in the template, and all that is commented out can be used as it is",
    function* () {
      const [inUse = "", further = ""] = jobTemplate("mine").split("# All other settings")
      const all = `${inUse}# ${further.replaceAll(/^#(?! )|^#(?=  )/gm, "")}`
      const files = { "tests/a.sql": "SELECT 1", "models/a.sql": "SELECT 1", "schemas/records/.keep": "" }
      const { errors } = yield* load(all, { files })
      expect(errors).toEqual([])
      expect(jobSettings.filter(({ name }) => !new RegExp(`^${name}:`, "m").test(all))).toEqual([])
    },
  )

  it("describes every key and gives the same bytes each time", () => {
    const undescribed: Array<string> = []
    const visit = (schema: unknown, path: string): void => {
      if (typeof schema !== "object" || schema === null) return
      for (const [key, value] of Object.entries(schema)) {
        if (key !== "properties") visit(value, `${path}/${key}`)
        else {
          for (const [name, property] of Object.entries<object>(value)) {
            if (!("description" in property)) undescribed.push(`${path}/${name}`)
            visit(property, `${path}/${name}`)
          }
        }
      }
    }
    visit(jobJsonSchema(), "")
    expect(undescribed).toEqual([])
    expect(JSON.stringify(jobJsonSchema())).toBe(JSON.stringify(jobJsonSchema()))
  })
})
