/**
 * Details of an engine that lack what the reference asks for: what stands in for it, and what no planning can
 * do without.
 */
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { readEngine } from "../../src/client/Views.ts"
import type { EngineDetails } from "../../src/service/Engine.ts"
import { engineDetails } from "./Examples.ts"

const whole = {
  engine_code: "",
  engine_alternative: "other",
  engine_version: "",
  environment: "",
  priority: 0,
  keywords: [],
  color_primary: {
    lighter: "",
    light: "",
    main: "",
    dark: "",
    darker: "",
    contrast_text: "",
    contrastText: "",
  },
  main_category: "other",
  sub_categories: [],
  name: "",
  description: "",
  markets: [],
  languages: [],
  engine_restrictions: [],
  engine_issues: [],
  live: {},
  events: [],
  ...engineDetails,
}

const read = (changes: object): EngineDetails | string => {
  const json: unknown = JSON.parse(JSON.stringify({ ...engineDetails, ...changes }))
  return Result.match(readEngine(json), { onFailure: (what) => what, onSuccess: (engine) => engine })
}

const noSettings = { type: "object", format: "cg-configs", properties: {} }
const login = {
  type: "object",
  format: "cg-params",
  properties: { username: { type: "string" }, password: { type: "string", format: "password" } },
  required: ["username", "password"],
}

describe("an engine's details", () => {
  it("keep their unknown fields and get neutral values for fields that decide nothing", () => {
    expect(read({ priority: "high", website: 3, new_field: 1 })).toEqual({ ...whole, new_field: 1 })
  })

  it("are the same object if they fit the reference", () => {
    expect(Result.getOrThrow(readEngine(whole))).toBe(whole)
  })

  it.each<readonly [string, unknown, unknown]>([
    ["without `format`", { ...login, format: undefined }, login],
    ["with a `format` of another type", { ...login, format: ["cg-params"] }, login],
    ["with a `format` that is not listed", { ...login, format: "cg-new" }, { ...login, format: "cg-new" }],
    ["without `type`", { ...login, type: undefined }, login],
    ["with a `type` that is null", { ...login, type: null }, login],
    ["without `properties`", { ...login, properties: undefined }, { ...login, properties: {} }],
    ["whose `properties` are null", { ...login, properties: null }, { ...login, properties: {} }],
    ["whose `properties` are an empty list", { ...login, properties: [] }, { ...login, properties: {} }],
    ["whose `$defs` are a text", { ...login, $defs: "none" }, login],
    [
      "whose `required` is one text",
      { ...login, required: "username" },
      { ...login, required: ["username"] },
    ],
    ["whose `required` is no list", { ...login, required: true }, { ...login, required: undefined }],
    ["whose `x-meta` is a list", { ...login, "x-meta": ["a"] }, login],
    [
      "whose `x-meta` has fields of other types",
      {
        ...login,
        "x-meta": {
          instructions_text: 7,
          submit_button_text: "Go",
          lazy_fields: ["code", 1],
          hidden_fields: 2,
          own: 3,
        },
      },
      { ...login, "x-meta": { submit_button_text: "Go", lazy_fields: ["code"], own: 3 } },
    ],
  ])("with a login form %s are read [decision 10 forms]", (_, parameters, expected) => {
    expect(read({ parameters })).toEqual({ ...whole, parameters: expected })
  })

  it.each<readonly [string, object]>([
    ["null for the engine", { configurations: null }],
    ["absent for the engine", { configurations: undefined }],
    ["an empty list for the engine", { configurations: [] }],
    ["a text for the engine", { configurations: "none" }],
    ["null for a feature", { features: [{ code: "accounts_read", configurations: null }] }],
    ["absent for a feature", { features: [{ code: "accounts_read" }] }],
    ["not there because the feature is a bare code", { features: ["accounts_read"] }],
  ])("have no settings if the form is %s", (_, changes) => {
    expect(read(changes)).toEqual({
      ...whole,
      configurations: noSettings,
      features: [{ code: "accounts_read", configurations: noSettings }],
    })
  })

  it("leave out what is not a feature, and have none if the list is absent", () => {
    const features = [null, 7, { code: 7 }, { configurations: null }, "cards_read"]
    expect(read({ features })).toEqual({
      ...whole,
      features: [{ code: "cards_read", configurations: noSettings }],
    })
    expect([read({ features: undefined }), read({ features: "all" })]).toEqual([
      { ...whole, features: [] },
      { ...whole, features: [] },
    ])
  })

  it.each([undefined, null, 7, ["x"]])("use %j for a missing status, frequency or presence", (value) => {
    expect(read({ status: value, action_required_frequency: value, is_online: value })).toEqual({
      ...whole,
      status: "unknown",
      action_required_frequency: "unknown",
      is_online: true,
    })
  })

  it("keep the given status, frequency and presence, listed or not", () => {
    const said = { status: "maintenance", action_required_frequency: "always", is_online: false }
    expect(read({ ...said, events: null })).toEqual({ ...whole, ...said })
    expect(read({ action_required_frequency: "weekly" })).toEqual({
      ...whole,
      action_required_frequency: "weekly",
    })
  })

  it.each<readonly [string, object, string]>([
    ["`parameters` are a text", { parameters: "username" }, "`parameters` is not a form (reference, 2.3)"],
    ["`parameters` are null", { parameters: null }, "`parameters` is not a form (reference, 2.3)"],
    ["`parameters` are absent", { parameters: undefined }, "`parameters` is not a form (reference, 2.3)"],
    [
      "the form is one of a list",
      { parameters: { type: "array" } },
      "`parameters` is not a form (reference, 2.3)",
    ],
    [
      "its fields are a list",
      { parameters: { properties: ["a"] } },
      "`parameters` is not a form (reference, 2.3)",
    ],
    ["the reference is absent", { reference: undefined }, "`reference` is not a string"],
  ])("cannot be read if %s", (_, changes, what) => {
    expect(read(changes)).toBe(what)
  })
})
