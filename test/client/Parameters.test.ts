/** Login parameters against forms: what is accepted, coerced, exempt and refused, and that no value is ever told. */
import { Ajv } from "ajv"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { compileForm } from "../../src/client/CompiledForm.ts"
import { checkValues, fitParameters } from "../../src/client/Parameters.ts"
import { cleanBody } from "../../src/privacy/CleanBody.ts"
import { leavesOf, makeKnownSecrets, publicWords } from "../../src/privacy/KnownSecrets.ts"
import type { KnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { loginForm, paramsForm } from "../task/Samples.ts"

const fit = (form: Readonly<Record<string, unknown>>, values: Readonly<Record<string, unknown>>) =>
  fitParameters(compileForm(form), values)
const fine = (parameters: unknown) => ({ errors: [], warnings: [], parameters })

const fieldSchema = fc.constantFrom<Readonly<Record<string, unknown>>>(
  { type: "string" },
  { type: "string", minLength: 3, maxLength: 8 },
  { type: "string", pattern: "^[0-9]+$" },
  { type: "integer" },
  { type: "integer", minimum: 0 },
  { type: "number" },
  { type: "boolean" },
  { enum: ["1", "true", 1] },
  { anyOf: [{ type: "integer" }, { type: "string", minLength: 2 }] },
  { type: "array", items: { type: "string" } },
  {},
)
const someValue = fc.oneof(
  fc.string(),
  fc.constantFrom<unknown>("1", "12", "true", "FALSE", "1.5", "rsa::x", "hybrid::12", "[]", "12345"),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.array(fc.string()),
)
const names = ["a", "b", "c"]
const forms = fc.record({
  properties: fc.dictionary(fc.constantFrom(...names), fieldSchema),
  required: fc.uniqueArray(fc.constantFrom(...names)),
})
const values = fc.dictionary(fc.constantFrom(...names), someValue)

describe("parameters", () => {
  it("what a plain validator accepts is accepted, and sent unchanged", () => {
    fc.assert(
      fc.property(forms, values, ({ properties, required }, given) => {
        const accepted = new Ajv({ strict: false }).compile({ type: "object", properties, required })(given)
        if (!accepted) return
        const { errors, parameters } = fit(paramsForm(properties, { required }), given)
        expect({ errors, parameters }).toEqual({ errors: [], parameters: given })
      }),
      { numRuns: 50 },
    )
  })

  it("[promise 12 sent] what is sent is as secret as what was given, in the type that the form asks for", () => {
    const form = paramsForm({
      pin: { type: "integer" },
      amount: { type: "number" },
      names: { type: "array", items: { type: "string" } },
      branch: { type: "integer" },
      level: { type: "integer" },
    })
    const login = { pin: "00739142", amount: " 8.50e3", names: '["alpha77x","beta88y"]', branch: "061300" }
    const known = makeKnownSecrets()
    known.hold([login.pin, login.names, login.amount], "password")
    known.hold(login.branch, "login")
    // Nobody said that the level is a login.
    const { parameters } = fit(form, { ...login, level: "0055123" })
    const words = ["alpha77x", "beta88y"]
    expect(parameters).toEqual({ pin: 739142, amount: 8500, names: words, branch: 61300, level: 55123 })
    const said = { input: parameters, said: "739142 beta88y", msg: "61300 and 8500", own: 8500 }
    const [once, twice] = ["[blanked]", ["[blanked]", "[blanked]"]]
    expect(JSON.parse(Buffer.from(cleanBody(Buffer.from(JSON.stringify(said)), known)).toString())).toEqual({
      input: { pin: once, amount: once, names: twice, branch: once, level: 55123 },
      said: "739142 [blanked]",
      msg: "[blanked] and [blanked]",
      own: 8500,
    })
    // A password may not be shown anywhere; another login may be a choice of the form.
    expect([known.clean("alpha77x", "own"), known.clean("61300", "own")]).toEqual(["[blanked]", "61300"])
  })

  it("no part of what is sent is unknown, whatever the form made of a text, but words of the reference", () => {
    // Texts that are drawn include what objects have, such as `name`, which is a field of engines.
    const isUnknown = (known: KnownSecrets, leaf: string) =>
      !publicWords.has(leaf) && known.clean(leaf, "echo") === leaf
    fc.assert(
      fc.property(forms, values, ({ properties, required }, given) => {
        const known = makeKnownSecrets()
        known.hold(given, "password")
        const { parameters } = fit(paramsForm(properties, { required }), given)
        expect(leavesOf(parameters).filter((leaf) => isUnknown(known, leaf))).toEqual([])
      }),
      { numRuns: 50, examples: [[{ properties: {}, required: [] }, { a: "name" }]] },
    )
  })

  it("what is accepted after coercion satisfies a plain validator, except for encrypted values", () => {
    fc.assert(
      fc.property(forms, values, ({ properties, required }, given) => {
        const { errors, parameters } = fit(paramsForm(properties, { required }), given)
        if (errors.length > 0) return
        const encrypted = Object.keys(given).filter((name) => /^(?:rsa|hybrid)::/.test(String(given[name])))
        const open = Object.fromEntries(
          Object.entries(properties).map(([k, v]) => [k, encrypted.includes(k) ? {} : v]),
        )
        const validate = new Ajv({ strict: false }).compile({ type: "object", properties: open, required })
        expect(validate(parameters)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  it("coercion takes the type from the values that a field may have, if the form names none", () => {
    const form = paramsForm({
      year: { enum: [2021, 2022] },
      accepted: { const: true },
      level: { oneOf: [{ const: 1 }, { const: 2 }] },
      amount: { type: "number", multipleOf: 0.01 },
      code: { enum: ["1", 1] },
    })
    const texts = { year: "2022", accepted: "true", level: "2", amount: "19.99", code: "1" }
    const sent = { year: 2022, accepted: true, level: 2, amount: 19.99, code: "1" }
    expect(fit(form, texts)).toEqual(fine(sent))
    expect(fit(form, { ...texts, year: "2023", amount: "19.995" }).errors.length).toBe(2)
  })

  it("coercion never changes an encrypted value, whatever the form asks for", () => {
    fc.assert(
      fc.property(
        forms,
        fc.constantFrom("rsa::", "hybrid::"),
        fc.string(),
        ({ properties }, scheme, text) => {
          const given = Object.fromEntries(names.map((name) => [name, scheme + text]))
          const { errors, parameters } = fit(paramsForm(properties, { required: names }), given)
          expect({ errors, parameters }).toEqual({ errors: [], parameters: given })
        },
      ),
    )
  })

  it("strings become the type of their field, through references and nullable fields too", () => {
    const form = paramsForm(
      {
        year: { type: "integer" },
        share: { $ref: "#/components/schemas/Share" },
        agreed: { type: "boolean", nullable: true },
        list: { type: "array" },
        pin: { type: "string" },
        either: { allOf: [{ $ref: "#/$defs/Year" }] },
      },
      { $defs: { Share: { type: "number" }, Year: { type: "integer" } } },
    )
    const given = { year: " 2020", share: "0.5", agreed: "TRUE", list: '["x"]', pin: "0012", either: "7" }
    expect(fit(form, given)).toEqual(
      fine({ year: 2020, share: 0.5, agreed: true, list: ["x"], pin: "0012", either: 7 }),
    )
  })

  it("a string that is nearly a number is read in time that grows only with its length", () => {
    const years = `${"1".repeat(1_000_000)}!`
    const { errors, warnings } = fit(paramsForm({ year: { type: "integer" } }), { year: years })
    expect({ errors, warnings }).toEqual({
      errors: [{ loc: ["year"], message: "must be integer" }],
      warnings: [],
    })
  }, 5_000)

  it("of thousands of problems in one login, a hundred are reported", () => {
    const required = Array.from({ length: 2_000 }, (_, at) => `f${at}`)
    const { errors } = fit(paramsForm({}, { required }), {})
    expect([errors.length, errors.at(-1)]).toEqual([
      101,
      { loc: [], message: "1900 more problems of this kind are not listed" },
    ])
  })

  it("a number where the form says string is an error: a PIN may have lost its zeros", () => {
    expect(fit(paramsForm({ pin: { type: "string" } }), { pin: 12 })).toEqual({
      errors: [{ loc: ["pin"], message: "must be string" }],
      warnings: [],
      parameters: { pin: 12 },
    })
  })

  it("a missing field is an error unless it is lazy or filled by default", () => {
    const form = paramsForm(
      { user: { type: "string" }, code: {}, market: { default: "ES" } },
      { required: ["user", "code", "market"], "x-meta": { lazy_fields: ["code"] } },
    )
    expect(fit(form, {})).toEqual({
      errors: [{ loc: ["user"], message: "is missing; the form requires it" }],
      warnings: [],
      parameters: {},
    })
  })

  it("an unknown name is an error if the form is closed, otherwise a warning, with the nearest name", () => {
    const message = "is not a field of this engine's form; did you mean `password`?"
    const given = { username: "user", password: "secret", pasword: "x" }
    const issue = { loc: ["pasword"], message }
    expect(fit(loginForm, given)).toEqual({ errors: [], warnings: [issue], parameters: given })
    expect(fit({ ...loginForm, additionalProperties: false }, given)).toEqual({
      errors: [issue],
      warnings: [],
      parameters: given,
    })
  })

  it("a rule over several fields only warns if one of them cannot be read", () => {
    const form = paramsForm(
      { a: { type: "string" }, b: { type: "string" } },
      { oneOf: [{ properties: { a: { const: "1" } } }, { properties: { b: { const: "2" } } }] },
    )
    expect(fit(form, { a: "x", b: "y" }).errors.length).toBeGreaterThan(0)
    expect(fit(form, { a: "rsa::x", b: "y" }).errors).toEqual([])
  })

  it("a form that cannot be compiled, or has unknown keywords, refuses nobody", () => {
    const wild = paramsForm({
      a: { type: "file", pattern: "(", minLength: -1, required: true, format: "iban", discriminator: {} },
      b: { $ref: "#/$defs/nowhere" },
      c: { type: "string", pattern: "^\\-x$" },
      d: { type: "string", nullable: true, example: 1, "x-meta": {} },
    })
    const form = compileForm(wild)
    expect(checkValues(form, { a: 1, b: 2, c: "-x", d: null })).toEqual({ errors: [], warnings: [] })
    expect(checkValues(form, { c: "y" }).errors).toEqual([
      { loc: ["c"], message: 'must match pattern "^\\-x$"' },
    ])
    expect(form.warnings).toEqual([
      "a reference in this form has no target; the part it refers to is not checked",
      "the pattern `(` of this form is not checked: it is not a regular expression",
    ])
    expect(compileForm(paramsForm({}, { $defs: null, required: null, "x-meta": null })).check({})).toEqual([])
  })

  it("exclusive limits of OpenAPI 3.0 are limits", () => {
    const form = compileForm(paramsForm({ n: { type: "integer", minimum: 1, exclusiveMinimum: true } }))
    expect([form.check({ n: 1 }).length, form.check({ n: 2 }).length]).toEqual([1, 0])
  })

  it("no message contains a value, whatever the form and the value", () => {
    const canary = "kAnArY-4711"
    const secretive = fc.constantFrom<unknown>(
      canary,
      [canary],
      [canary, canary],
      { [canary]: canary },
      { a: { [canary]: 1 } },
      `${canary}@x`,
    )
    const rules = fc.constantFrom<Readonly<Record<string, unknown>>>(
      { type: "integer" },
      { const: "x" },
      { enum: ["x"] },
      { type: "string", format: "email", maxLength: 3, pattern: "^z$" },
      { type: "array", uniqueItems: true, items: { type: "integer" } },
      { type: "object", additionalProperties: false, required: ["q"], maxProperties: 0 },
      { type: "object", propertyNames: { maxLength: 2 }, properties: { a: { additionalProperties: false } } },
      { type: "object", additionalProperties: { type: "boolean" } },
      { not: {} },
    )
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...names), rules),
        fc.dictionary(fc.constantFrom(...names), secretive),
        (p, v) => {
          const form = compileForm(paramsForm(p, { additionalProperties: false }))
          const { errors, warnings } = fitParameters(form, v)
          expect(JSON.stringify([errors, warnings, form.warnings])).not.toContain(canary)
        },
      ),
    )
  })
})
