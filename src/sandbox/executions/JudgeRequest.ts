/**
 * Checks the content of a start (sections 2.3, 4.1 and 5): what breaks the reference's own types and
 * enumerations is malformed; encryption, the engine's login form, its settings and its date limits are judged
 * after the start was accepted. Also the keyed hashes by which a login is recognised without being stored.
 */
import { constants, createPrivateKey, createPublicKey, privateDecrypt } from "node:crypto"
import { Predicate, Record, Struct } from "effect"
import { checkForm, featureForm, type FormFinding } from "../engines/AnswerEngines.ts"
import type { EngineDefinition } from "../engines/EngineDefinition.ts"
import type { AskedFeature } from "./PlanResults.ts"
import { fingerprint, type FullReading } from "../state/Reading.ts"
import { judgeSettings, settleFeature } from "../state/ResultsPlan.ts"
import { openGcm } from "../state/TokenState.ts"
import type { StartRequest, ValidationItem } from "../../service/Execution.ts"
import { features, type StatusReason } from "../../service/Vocabulary.ts"

// Encrypted values (4.1, 4.3, 5). Not shown; own choice: one RSA-2048 pair for all, its public half served.

/** Protects nothing: published, so that every tester can encrypt for it. PKCS #8, base64. */
const sandboxKey = [
  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDLl96bVZ4SkSuhd7K1R/p+6cA7rrYXLupwSgIDRZ+U043i",
  "LXUk9IZN+JfL3nOpioocY52V1j3N6C59wzRjuLR73T8rYfV4xU5Uzz4MCvjMjOut09rOsAasO6afI8BtOkkKxVLMpvOkx6CE",
  "q/MtaFuEVNCjgaKgXtKJYg0CsxXO7hpoxonF6bpNdyEUXBK5LQdMHRA+XnU45K71acZNUyd2wCHDgnpkAoqFkadwQFqcky2R",
  "ktYf8AP7J+tKaL2n7FZrmVNbxfC9NY6fMGhQp54EwU6NCBRgXK2lvEwfNQAXIAQE2lkUzMrDOzuX89kYlBGshk9lWbzGOqRV",
  "honDqcv7AgMBAAECggEAJgqG/CRHyHVany2D9U5xNkSL+DrhaDyKbpfNf3oDYuYSlUfkIxcTfz8rcdrrZqrtunc8izJAUxiG",
  "k1YllFp/UsOY2YzQtpO7WqpskAh+y42rPcwfjs4iOQ1eSU7/Vgl1e286VOX/EXOBgTi10+6zZusIHv0Ke4esNCJfhvkaYpMS",
  "haBzae2wUAHtX7dGwOiDMuIMnGLoymbt7ivunmoiWkSAGZ53lfulU9PB5HqWZqMh2tLYJuiNFTAdetKcLNb5iUYFXBPFalPx",
  "srBaPZeESoC1EOcgXU/gtfb4Ijg5/LWXhi3ZXcQEEdyGO6meoPYUNT/YxK+z9SM4UcgmxdDo9QKBgQDn9+5BJqn2YFROFca3",
  "YghzASpnsOo4000ZuBictj5fjFfe985y/ZCwa1/Mh4847Xlk0gcJebpGzjD8/9FJg3RT8cLfw3d9Fz7EnkxZfxJnAWdCmA7O",
  "w8QOOTP2QiHDzZ28qhcP9/zVDFz9d1pgmKIbQCCGzk672f8JKlPIb8a/5QKBgQDgr2UlIHb2LerncpibtygsPLS5v7Cbkt5/",
  "lvFAdCR/Em8m77uSUbZCWU6d3rhoxNeGH3T96ycIM3OedujhlaNpkSAZbUeoVsFn7q5U9VDQaGYxAobpmMlKZMB8Y4MDfOSv",
  "6I7XxS2pjsI6Jr+zdmMO/buBusrPUSlbPUA6TIDeXwKBgQDI0FLa5fzXRFdXbfSkxuJnpQev0nFCFnK1pDDyYbangtiDNuXr",
  "mGXMxHefmW88qiCgTk43PsErEM9KBrCIwptPHIlGq3Hiwd/d2OhhxecJcyaQeRDAoKs2YQEB3Ahc+MDoFht3AIlJarWJ2+xK",
  "mXgkvSQrb6iraTInHhR//XwCnQKBgHO0Pvzog/pwWPiJPedqYYiuVk8VVMg40NWZkHElninF/3FooQpPg/EU9nQ73nEtdON/",
  "zYp5Dyec/1xKVdDdc0KI1qPhb7ZTvtNbyXC8x7obGQ0CBSHEaVwjGDC2OiCQr1+a/fxFcSdQ+dpiW/P58jclGOtMmuY6IHb4",
  "ytt6zB43AoGAOkNLjp1k8imKpOmI+usVY8wf25dj+bkMn8JrWqBND3vD24w2XdAq9TBEcCVAsyDj6cXS60ocP2Tpr3oGpy8i",
  "O5+T0IxSM7HVqaYyok8lW2jYC8EAmpbUM/w4WuXfrr/gVetQd8KE4G7xbamKu3FX4/nDwqOWrSP5hh6HO/3XRq0=",
].join("")

const privateKey = createPrivateKey({ key: Buffer.from(sandboxKey, "base64"), format: "der", type: "pkcs8" })

const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" }

/** What a caller needs in order to encrypt for this service. */
export const encryptionKey = {
  shape: "nightjar-sandbox",
  public_key: createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString(),
  rsa: "rsa:: and base64(RSA-OAEP-SHA256(value)); up to 190 bytes",
  hybrid:
    "hybrid:: and base64(RSA-OAEP-SHA256(key)) . base64(iv) . base64(AES-256-GCM(value) and its tag), " +
    "joined by dots: a random key of 32 bytes, an iv of 12, a tag of 16",
  whole_object: "a JSON object encrypted in the same way in place of `parameters` or of a resume body",
} as const

const openRsa = (text: string): string =>
  privateDecrypt({ key: privateKey, ...oaep }, Buffer.from(text, "base64")).toString("utf8")

const openHybrid = (text: string): string => {
  const [wrapped = "", iv = "", sealed = ""] = text.split(".")
  const key = privateDecrypt({ key: privateKey, ...oaep }, Buffer.from(wrapped, "base64"))
  return openGcm(key, Buffer.from(iv, "base64"), Buffer.from(sealed, "base64"))
}

/** Whether a text claims to be encrypted. */
export const isSealed = (value: unknown): value is string =>
  typeof value === "string" && /^(rsa|hybrid)::/.test(value)

/** Undefined if it cannot be decrypted: not our key, not our procedure, or damaged. */
const openText = (sealed: string): string | undefined => {
  try {
    return sealed.startsWith("rsa::") ? openRsa(sealed.slice(5)) : openHybrid(sealed.slice(8))
  } catch {
    return undefined
  }
}

const openObject = (sealed: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(openText(sealed) ?? "")
    return Predicate.isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A flat object in clear text. */
export interface OpenedValues {
  readonly values: Readonly<Record<string, unknown>>
  /** What could not be decrypted; such a value is not in `values`. */
  readonly findings: ReadonlyArray<FormFinding>
  /** Names that came encrypted; their values are never echoed. */
  readonly sealed: ReadonlySet<string>
}

const complain = (loc: ReadonlyArray<string>, input: unknown): FormFinding => ({
  error: { loc, msg: "value cannot be decrypted", type: "encryption_error" },
  input,
})

/** Decrypts login parameters, stored credentials or the body of a resume, into the original strings. */
export const openParameters = (parameters: unknown): OpenedValues => {
  if (!Predicate.isObject(parameters)) {
    const values = isSealed(parameters) ? openObject(parameters) : undefined
    return values === undefined
      ? { values: {}, findings: [complain([], parameters)], sealed: new Set() }
      : { values, findings: [], sealed: new Set(Object.keys(values)) }
  }
  const sealed = Object.keys(parameters).filter((name) => isSealed(parameters[name]))
  const opened = Record.map({ ...parameters }, (value) => (isSealed(value) ? openText(value) : value))
  const lost = sealed.filter((name) => opened[name] === undefined)
  return {
    values: Struct.omit(opened, lost),
    findings: lost.map((name) => complain([name], parameters[name])),
    sealed: new Set(sealed),
  }
}

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
  const { code, configurations = {} } = bare ? { code: feature } : feature
  const loc = ["body", "features", position]
  if (!codes.has(code)) {
    const msg = `${code} is not a feature code`
    return [{ loc: bare ? loc : [...loc, "code"], msg, type: "type_error.enum", input: code }]
  }
  return judgeSettings(code, configurations).map((error) => ({
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
const limitFindings = (engine: EngineDefinition, { code, configurations }: AskedFeature, at: number) => {
  const { settings, beyond } = settleFeature(code, configurations, at, engine.keepsMonths)
  const { from_date = "", to_date = "" } = settings
  return beyond.map((name) => ({
    error: {
      loc: [name],
      msg:
        name === "from_date" && from_date > to_date
          ? "is after to_date"
          : `beyond the limits: the source keeps ${engine.keepsMonths} months`,
      type: beyondLimits,
    },
    input: configurations[name],
  }))
}

const featureFindings = (engine: EngineDefinition, asked: ReadonlyArray<AskedFeature>, at: number) =>
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
