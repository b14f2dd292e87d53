/**
 * Checks the content of a start (sections 2.3, 4.1 and 5): what breaks the reference's own types and
 * enumerations is malformed; encryption, the engine's login form, its settings and its date limits are judged
 * after the start was accepted. Also the keyed hashes by which a login is recognised without being stored.
 */
import type { StartRequest, ValidationItem } from "../../service/Execution.ts"
import { features } from "../../service/Vocabulary.ts"
import type { StatusReason } from "../../service/Vocabulary.ts"
import { checkForm } from "../engines/CheckForm.ts"
import type { FormFinding } from "../engines/CheckForm.ts"
import { isSealed } from "./Encryption.ts"
import type { OpenedValues } from "./Encryption.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import { featureForm } from "../engines/EngineViews.ts"
import { judgeSettings, settleFeature } from "../state/FeatureSettings.ts"
import type { AskedFeature } from "./PlanResults.ts"
import type { FullReading } from "../state/Reading.ts"
import { fingerprint } from "../state/Seeded.ts"

export const unknownEngine: ValidationItem = {
  loc: ["body", "engine_reference"],
  msg: "no such engine",
  type: "value_error.engine_reference",
}

const codes: ReadonlySet<string> = new Set(features)

const invalidFeature = (
  feature: NonNullable<StartRequest["features"]>[number],
  position: number,
): ReadonlyArray<ValidationItem> => {
  const bare = typeof feature === "string"
  const code = bare ? feature : feature.code
  const loc = ["body", "features", position]
  if (!codes.has(code)) {
    const msg = `${code} is not a feature code`
    return [{ loc: bare ? loc : [...loc, "code"], msg, type: "type_error.enum", input: code }]
  }
  const settings = (bare ? undefined : feature.configurations) ?? {}
  return judgeSettings(code, settings).map((error) => ({
    ...error,
    loc: [...loc, "configurations", ...error.loc],
  }))
}

/** 4.1, 422: rules that the types of the body do not express. */
export const invalidItems = (request: StartRequest): ReadonlyArray<ValidationItem> => {
  const { parameters, features: asked = [] } = request
  const text = typeof parameters === "string" && !isSealed(parameters)
  const msg = "neither an object nor an encrypted string"
  return [
    ...(text ? [{ loc: ["body", "parameters"], msg, type: "type_error.object" }] : []),
    ...asked.flatMap(invalidFeature),
  ]
}

/** What the platform finds wrong when it checks the accepted request, and the reason that it closes with. */
export interface Fault {
  readonly reason: StatusReason
  readonly kind: "parameters" | "configurations"
  readonly findings: ReadonlyArray<FormFinding>
}

const beyondLimits = "value_error.date_limits"
const isBeyondLimits = ({ error }: FormFinding): boolean => error.type === beyondLimits

/**
 * 4.1: `limits_behaviour: error` aborts the execution. The reason is not shown; own choice, unless a
 * reading says otherwise: BAD_CONFIGURATIONS, at once: the request itself is at fault, and an unchanged
 * retry fails in the same way.
 */
const limitFindings = (
  engine: EngineDefinition,
  { code, configurations }: AskedFeature,
  at: number,
): ReadonlyArray<FormFinding> =>
  settleFeature(code, configurations, at, engine.keepsMonths).beyond.map((name) => ({
    error: {
      loc: [name],
      msg: `beyond the limits: the source keeps ${engine.keepsMonths} months`,
      type: beyondLimits,
    },
    input: configurations[name],
  }))

const featureFindings = (
  engine: EngineDefinition,
  asked: ReadonlyArray<AskedFeature>,
  at: number,
): ReadonlyArray<FormFinding> =>
  asked.flatMap((feature) => {
    const form = engine.features.find((code) => code === feature.code)
    const wrong = form === undefined ? [] : checkForm(featureForm(engine, form), feature.configurations)
    const place = feature.position === undefined ? [feature.code] : [feature.position]
    return [...wrong, ...limitFindings(engine, feature, at)].map((finding) => ({
      ...finding,
      error: { ...finding.error, loc: ["features", ...place, "configurations", ...finding.error.loc] },
    }))
  })

/** A value that came encrypted is not shown in clear text. */
const withoutSealed = (findings: ReadonlyArray<FormFinding>, { sealed }: OpenedValues) =>
  findings.map((finding) =>
    sealed.has(String(finding.error.loc[0])) ? { ...finding, input: undefined } : finding,
  )

/** The first kind of fault counts: encryption, then the login form, then the settings. */
export const findFault = (
  engine: EngineDefinition,
  request: StartRequest,
  asked: ReadonlyArray<AskedFeature>,
  opened: OpenedValues,
  at: number,
  { limits_behaviour_error }: FullReading,
): Fault | undefined => {
  if (opened.findings.length > 0) {
    return { reason: "ENCRYPTION_ERROR", kind: "parameters", findings: opened.findings }
  }
  const login = withoutSealed(checkForm(engine.parameters, opened.values), opened)
  if (login.length > 0) return { reason: "INCORRECT_PARAMETERS_FORMAT", kind: "parameters", findings: login }
  const settings = [
    ...checkForm(engine.configurations, request.configurations ?? {}),
    ...featureFindings(engine, asked, at),
  ]
  if (settings.length === 0) return undefined
  const aborts = limits_behaviour_error === "aborted" && settings.every(isBeyondLimits)
  const reason = aborts ? "SYSTEM_CANCELLED" : "BAD_CONFIGURATIONS"
  return { reason, kind: "configurations", findings: settings }
}

const loginEnds: ReadonlySet<StatusReason> = new Set<StatusReason>([
  "INCORRECT_PARAMETERS_FORMAT",
  "ENCRYPTION_ERROR",
])

/**
 * 4.2: an end caused by parameters or configurations names the fields. Which ones a source means if a word
 * sets such an end is not shown; own choice: every field that the login form requires, or the settings of
 * every feature.
 */
export const namedByEnd = (
  { parameters }: EngineDefinition,
  asked: ReadonlyArray<AskedFeature>,
  end: StatusReason,
): Pick<Fault, "kind" | "findings"> | undefined => {
  const refused = (loc: ReadonlyArray<string | number>): FormFinding => ({
    error: { loc, msg: "refused by the source", type: "value_error.source" },
    input: undefined,
  })
  if (loginEnds.has(end)) {
    return { kind: "parameters", findings: (parameters.required ?? []).map((field) => refused([field])) }
  }
  if (end !== "BAD_CONFIGURATIONS") return undefined
  const findings = asked.map(({ code, position }) =>
    refused(["features", position ?? code, "configurations"]),
  )
  return { kind: "configurations", findings }
}

const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, canonical(inner)]),
  )
}

/**
 * Keyed by the sandbox's seed: equal logins and equal fixed parts can be recognised, however they were
 * encrypted; their values cannot. What cannot be decrypted is hashed as it came.
 */
export const loginHashes = (
  seed: number,
  engine: EngineDefinition,
  sent: StartRequest["parameters"],
  { values, findings }: OpenedValues,
) => {
  const locking = engine.parameters["x-meta"]?.locking_fields ?? []
  const login = findings.length === 0 ? values : sent
  const fixed = typeof login === "string" ? login : locking.map((field) => login[field] ?? null)
  return {
    login_key: fingerprint("login", seed, engine.reference, JSON.stringify(canonical(login))),
    locking_hash: `v1.${fingerprint("locking", seed, engine.reference, JSON.stringify(canonical(fixed)))}`,
  }
}
