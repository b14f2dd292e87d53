/**
 * What an engine's forms say about logins and settings: the forms compiled, every case checked against
 * them. Pure, and the only place where the service's schemas and patterns meet values, so that it can run
 * where it can be stopped (`FormChecker.ts`). Cases contain secrets; what is said about them does not.
 */
import type { EngineDetails } from "../service/Engine.ts"
import { compileForm, makeValidator } from "./CompiledForm.ts"
import type { CompiledForm, Validator } from "./CompiledForm.ts"
import { checkAllSettings } from "./FeatureSettings.ts"
import type { AskedSettings, SettingsForms } from "./FeatureSettings.ts"
import { beyondBounds } from "./FormBounds.ts"
import { toJsonSchema } from "./JsonSchema.ts"
import { fitParameters, cutSaid } from "./Parameters.ts"
import type { Findings, FittedParameters } from "./Parameters.ts"

export type Forms = Pick<EngineDetails, "parameters" | "configurations" | "features">

export interface FormCase extends AskedSettings {
  /** Absent if there are no parameters to check: a token, or a secret that cannot be resolved. */
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** One case and the forms. */
export interface RawFit {
  readonly settings: Findings
  readonly parameters?: FittedParameters
}

export interface FormRequest {
  /** An engine's details as JSON, decoded as `Forms`. */
  readonly body: string
  readonly cases: ReadonlyArray<FormCase>
}

/** Can be cloned between threads. */
export type FormAnswer =
  | {
      readonly _tag: "Fitted"
      /** The parts of the forms that are not checked. */
      readonly warnings: ReadonlyArray<string>
      readonly fits: ReadonlyArray<RawFit>
    }
  /** `why` is a clause: "it refers to itself". */
  | Unusable

export interface Unusable {
  readonly _tag: "Unusable"
  readonly why: string
}

interface CompiledForms extends SettingsForms {
  readonly _tag: "Compiled"
  readonly parameters: CompiledForm
  readonly warnings: ReadonlyArray<string>
}

/** How many compiled forms are kept: an engine is compiled when it is seen and checked soon after. */
const keptMax = 64

/** Answers one request after another; forms are compiled once for as long as they are remembered. */
export const makeFitter = (): ((request: FormRequest) => FormAnswer) => {
  const kept = new Map<string, CompiledForms>()
  return ({ body, cases }) => {
    const compiled = kept.get(body) ?? compileForms(readForms(body))
    if (compiled._tag === "Unusable") return compiled
    const oldest = kept.size < keptMax || kept.has(body) ? undefined : kept.keys().next().value
    if (oldest !== undefined) kept.delete(oldest)
    kept.set(body, compiled)
    return { _tag: "Fitted", warnings: compiled.warnings, fits: cases.map((one) => fitCase(one, compiled)) }
  }
}

const readForms = (body: string): Forms => JSON.parse(body)

const fitCase = (one: FormCase, forms: CompiledForms): RawFit => {
  const settings = checkAllSettings(one, forms)
  return one.parameters === undefined
    ? { settings }
    : { settings, parameters: fitParameters(forms.parameters, one.parameters) }
}

const compileForms = (forms: Forms): CompiledForms | Unusable => {
  const validator = makeValidator()
  const parameters = compileBounded("parameters", forms.parameters, validator)
  if ("why" in parameters) return parameters
  const configurations = compileBounded("configurations", forms.configurations, validator)
  if ("why" in configurations) return configurations
  const features = new Map<string, CompiledForm>()
  for (const { code, configurations: settings } of forms.features) {
    const feature = compileBounded(code, settings, validator)
    if ("why" in feature) return feature
    features.set(code, feature)
  }
  const warnings = [...parameters.warnings, ...configurations.warnings]
  return { _tag: "Compiled", parameters, configurations, features, warnings }
}

const compileBounded = (
  name: string,
  form: Readonly<Record<string, unknown>>,
  validator: Validator,
): CompiledForm | Unusable => {
  const conversion = toJsonSchema(form)
  const why = beyondBounds(conversion.schema)
  if (why !== undefined) return { _tag: "Unusable", why: `${cutSaid(name)}: ${why}` }
  return compileForm(form, conversion, validator)
}
