/**
 * Engines and their forms (sections 2.2 and 2.3). The form of an engine, not a guess, decides which
 * parameters a login takes.
 */
import { Schema } from "effect"
import {
  actionRequiredFrequencies,
  creditRegistryTypes,
  engineAlternatives,
  engineEvents,
  engineStatuses,
  environments,
  features,
  financialCardTypes,
  limitsBehaviours,
  mainCategories,
} from "./Vocabulary.ts"
import type { Feature } from "./Vocabulary.ts"

// The service may change at any time: nothing that it adds may be lost or refused (decision 10).

/** A struct that keeps fields it does not name. */
export const open = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])

/** An enumeration that also accepts, as a string, a value that the reference does not list. */
export const openEnum = <const Values extends ReadonlyArray<string>>(values: Values) =>
  Schema.Union([Schema.Literals(values), Schema.String])

/** "string, optional, nullable" in the reference. */
export const nullableOptional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

export const FeatureCode = openEnum(features)

/** 2.3: an OpenAPI 3.0.3 Schema Object; property schemas are left to a JSON Schema validator. */
export const FormSchema = open({
  type: Schema.Literal("object"),
  format: openEnum(["cg-params", "cg-configs"]),
  properties: Schema.Record(Schema.String, Schema.Unknown),
  $defs: nullableOptional(Schema.Record(Schema.String, Schema.Unknown)),
  required: nullableOptional(Schema.Array(Schema.String)),
  "x-meta": nullableOptional(
    open({
      instructions_title: Schema.optionalKey(Schema.String),
      instructions_text: Schema.optionalKey(Schema.String),
      submit_button_text: Schema.optionalKey(Schema.String),
      locking_fields: Schema.optionalKey(Schema.Array(Schema.String)),
      hidden_fields: Schema.optionalKey(Schema.Array(Schema.String)),
      lazy_fields: Schema.optionalKey(Schema.Array(Schema.String)),
    }),
  ),
})
export type FormSchema = typeof FormSchema.Type

const engineFields = {
  reference: Schema.String,
  engine_code: Schema.String,
  engine_alternative: openEnum(engineAlternatives),
  engine_version: Schema.String,
  environment: openEnum(environments),
  status: openEnum(engineStatuses),
  priority: Schema.Int,
  keywords: Schema.Array(Schema.String),
  color_primary: open({
    lighter: Schema.String,
    light: Schema.String,
    main: Schema.String,
    dark: Schema.String,
    darker: Schema.String,
    contrast_text: Schema.String,
    contrastText: Schema.String,
  }),
  main_category: openEnum(mainCategories),
  sub_categories: Schema.Array(Schema.String),
  name: Schema.String,
  description: Schema.String,
  markets: Schema.Array(Schema.String),
  languages: Schema.Array(Schema.String),
  engine_restrictions: Schema.Array(Schema.String),
  engine_issues: Schema.Array(Schema.String),
  action_required_frequency: openEnum(actionRequiredFrequencies),
  live: open({ last_ping_date: nullableOptional(Schema.String) }),
  is_online: Schema.Boolean,
  website: nullableOptional(Schema.String),
}

/** 2.2, list view. */
export const Engine = open({ ...engineFields, features: Schema.Array(FeatureCode) })
export type Engine = typeof Engine.Type

export const EngineFeature = open({ code: FeatureCode, configurations: FormSchema })

/** 2.2, detail view. */
export const EngineDetails = open({
  ...engineFields,
  events: Schema.Array(openEnum(engineEvents)),
  parameters: FormSchema,
  configurations: FormSchema,
  features: Schema.Array(EngineFeature),
})
export type EngineDetails = typeof EngineDetails.Type

// The settings that each feature takes (section 4.1), as data, with their defaults: the pipeline checks a job
// against them, the embedded service judges, completes and shows them.

export type Setting =
  | { readonly type: "date"; readonly default: string }
  | { readonly type: "boolean"; readonly default: boolean }
  | { readonly type: "count"; readonly default: number }
  | { readonly type: "one_of"; readonly values: ReadonlyArray<string>; readonly default: string | undefined }
  | {
      readonly type: "some_of"
      readonly values: ReadonlyArray<string>
      readonly default: ReadonlyArray<string>
    }

type Settings =
  | { readonly _tag: "Fields"; readonly fields: Readonly<Record<string, Setting>> }
  /** A settings object is accepted; its fields are not defined. */
  | { readonly _tag: "Anything" }
  /** The reference says nothing. */
  | { readonly _tag: "NotListed" }

const date = (phrase: string): Setting => ({ type: "date", default: phrase })
const flag = (value: boolean): Setting => ({ type: "boolean", default: value })
const period: Readonly<Record<string, Setting>> = {
  from_date: date("30 days ago"),
  to_date: date("today"),
  limits_behaviour: { type: "one_of", values: limitsBehaviours, default: "error" },
}
const fields = (settings: Readonly<Record<string, Setting>>): Settings => ({
  _tag: "Fields",
  fields: settings,
})
const account = fields({ ...period, read_transactions: flag(false), read_holders: flag(false) })
const invoices = fields(period)
const none = fields({})

export const featureSettings: Readonly<Record<Feature, Settings>> = {
  accounts_read: account,
  credits_read: account,
  cards_read: fields({
    ...period,
    read_transactions: flag(false),
    filter_by_type: { type: "some_of", values: financialCardTypes, default: financialCardTypes },
  }),
  client_invoices_read: invoices,
  supplier_invoices_read: invoices,
  credit_registry_data: fields({
    preferred_type: { type: "one_of", values: creditRegistryTypes, default: undefined },
  }),
  driver_data: fields({ read_point_movements: flag(false) }),
  labor_check: fields({
    from_date: date("12 months ago"),
    work_life_report: flag(true),
    contribution_base_report: flag(false),
  }),
  vehicles_data: fields({ simple_vehicle_report: flag(false) }),
  yearly_individual_tax: fields({ last_n_years: { type: "count", default: 3 } }),
  customer_information_read: none,
  deposits_read: none,
  direct_debits_read: none,
  funds_read: none,
  investment_accounts_read: none,
  loans_read: none,
  pensions_read: none,
  public_document_verification: none,
  public_pensions: none,
  source_contracts_read: none,
  stocks_read: none,
  academic_data: { _tag: "Anything" },
  properties_data: { _tag: "Anything" },
  accounts_certificates: { _tag: "NotListed" },
  cloud_resource_read: { _tag: "NotListed" },
}

const byCode: ReadonlyMap<string, Settings> = new Map(Object.entries(featureSettings))

/** What the reference says of a code, be it a feature or not. */
export const settingsOf = (code: string): Settings => byCode.get(code) ?? { _tag: "NotListed" }

/** The settings that the reference defines for a code; none where it defines none. */
export const definedSettings = (code: string): Readonly<Record<string, Setting>> => {
  const settings = settingsOf(code)
  return settings._tag === "Fields" ? settings.fields : {}
}
