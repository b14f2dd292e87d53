/**
 * Engines and their forms (sections 2.2 and 2.3). The form of an engine, not a guess, decides which
 * parameters a login takes.
 */
import { Schema } from "effect"
import { nullableOptional, open, openEnum } from "./Open.ts"
import {
  actionRequiredFrequencies,
  engineAlternatives,
  engineEvents,
  engineStatuses,
  environments,
  features,
  mainCategories,
} from "./Vocabulary.ts"

export const FeatureCode = openEnum(features)

/**
 * 2.3: an OpenAPI 3.0.3 Schema Object that describes a form; property schemas are left to a JSON Schema
 * validator.
 */
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
