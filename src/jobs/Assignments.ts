/**
 * Binds customers to engines: those of the customer's entry, or else every engine of the job, with the job's
 * features and settings unless the entry has its own, and once per engine. Pure; findings say what is wrong.
 */
import { Predicate, Redacted } from "effect"
import { placeText, type Place } from "../base/DurableFile.ts"
import { missingKey, type Path } from "../base/Schemas.ts"
import { nearestName } from "../base/Text.ts"
import type { CustomerRow } from "./CustomersFile.ts"
import type { Assignment, JobFeature, Login } from "./Job.ts"
import { judgeCustomerId } from "./PersonalData.ts"
import { isVariable, type Context, type Findings } from "./Problem.ts"
import { idTooLong, isIdTooLong, personalDataReason, readParameter, type ParameterSource } from "./Scalars.ts"
import type { Customer, CustomerEngine, JobEngine } from "./ServiceSettings.ts"
import { cutText } from "../service/BodyBounds.ts"
import { CustomerId, EngineReference } from "../service/Ids.ts"
import { features as knownFeatures } from "../service/Vocabulary.ts"

// Warnings about a `customer_id` that the service may store but that says too much about a person (4.1): it
// resembles personal data, or it is also what the customer logs in with. And about one that looks like
// another, because nobody sees a part of it: ids are opaque, so it stays valid.

const why = "the service stores it and may put it into webhook addresses"
const next = "use an id that says nothing about the person"

export const warnOfId = ({ findings }: Context, id: string, place: Place): void => {
  const verdict = judgeCustomerId(id)
  // That is an error, which shows nothing of it.
  if (verdict._tag === "Certain") return
  if (verdict._tag === "Resembles")
    findings.warn(place, `this customer_id resembles ${verdict.kind}; ${why}: ${next}`, verdict.kind)
  const shown = withUnseen(id)
  if (shown !== id) findings.warn(place, tellUnseen(shown), "unseen")
}

/** All white space but plain spaces, control characters, and those that show nothing. */
const unseen = /(?! )[\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}]/gu

const codeOf = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`

/** With the codes of what nobody sees, a plain space at an end included. */
const withUnseen = (id: string): string => {
  const from = id.length - id.trimStart().length
  const to = Math.max(from, id.trimEnd().length)
  const codesOf = (white: string) => [...white].map(codeOf).join("")
  const inner = id.slice(from, to).replaceAll(unseen, codeOf)
  return codesOf(id.slice(0, from)) + inner + codesOf(id.slice(to))
}

const tellUnseen = (shown: string): string =>
  `this customer_id has characters that nobody sees, \`${cutText(shown, unseenMax)}\`: it is another ` +
  "customer than the id without them. Remove them, unless they belong to it"

const unseenMax = 160

export const tellLoginId = (name: string): string =>
  `this customer_id is also the value of the parameter \`${name}\`; ${why}: ${next}`

export const isSameText = (id: string, value: unknown): boolean =>
  (Predicate.isString(value) || Predicate.isNumber(value)) &&
  String(value).trim().toLowerCase() === id.trim().toLowerCase()

/** Many customers log in with their own id number; references are compared once they are resolved. */
const warnOfLoginId = (
  { findings }: Context,
  id: string,
  parameters: Readonly<Record<string, ParameterSource>>,
  place: Place,
): void => {
  for (const [name, source] of Object.entries(parameters)) {
    if (source._tag === "Literal" && isSameText(id, Redacted.value(source.value)))
      findings.warn(place, tellLoginId(name), `login ${name}`)
  }
}

export interface Item<A> {
  readonly index: number
  readonly value: A
}

type EngineSettings = Pick<
  Assignment,
  "engine_reference" | "features" | "configurations" | "hooks_extra_data"
>
type Features = Exclude<Exclude<typeof JobEngine.Type, string>["features"], undefined>
type Parameters = Readonly<Record<string, ParameterSource>>
type Written = Exclude<typeof CustomerEngine.Type, string>

/** Codes outside section 2.1 are accepted with a warning: the service may know more than the reference. */
const warnOfFeature = (findings: Findings, place: Place, code: string, group?: "rows"): void => {
  if (knownFeatures.some((known) => known === code)) return
  const near = nearestName(code, knownFeatures)
  const hint = near === undefined ? "" : `; did you mean \`${near}\`?`
  const unlisted = `\`${code}\` is not a feature that the reference lists${hint}`
  if (group === undefined) findings.warn(place, unlisted)
  // The job may have named the column of the passwords: a cell is quoted only if it resembles a feature.
  else if (near === undefined)
    findings.warn(place, "this row has a feature that the reference does not list", "unlisted feature")
  else findings.warn(place, unlisted, `unlisted feature ${code}`)
}

const readFeatures = ({ document, findings }: Context, features: Features, path: Path): Array<JobFeature> => {
  const seen = new Set<string>()
  return features.map((feature, index): JobFeature => {
    const code = Predicate.isString(feature) ? feature : feature.code
    const at = Predicate.isString(feature) ? [...path, index] : [...path, index, "code"]
    if (seen.has(code)) findings.error(document.place(at), `the feature \`${code}\` is listed twice`)
    seen.add(code)
    warnOfFeature(findings, document.place(at), code)
    return { code, configurations: Predicate.isString(feature) ? undefined : feature.configurations }
  })
}

export const readJobEngines = (
  context: Context,
  items: ReadonlyArray<Item<typeof JobEngine.Type>>,
): ReadonlyMap<string, EngineSettings> => {
  const { document, findings } = context
  const engines = new Map<string, EngineSettings>()
  const firsts = new Map<string, Place>()
  for (const { index, value } of items) {
    const written = Predicate.isString(value) ? { reference: value } : value
    const place = document.place(["engines", index])
    const first = firsts.get(written.reference)
    if (first !== undefined) {
      findings.error(place, `\`${written.reference}\` is already listed, at ${placeText(first)}`)
      continue
    }
    firsts.set(written.reference, place)
    engines.set(written.reference, {
      engine_reference: EngineReference.make(written.reference),
      features: readFeatures(context, written.features ?? [], ["engines", index, "features"]),
      configurations: written.configurations ?? {},
      hooks_extra_data: written.hooks_extra_data ?? {},
    })
  }
  return engines
}

const readParameters = (
  { document, findings }: Context,
  written: Readonly<Record<string, unknown>> | undefined,
  path: Path,
  folder: string,
): Parameters | undefined => {
  if (written === undefined) return undefined
  const parameters: Array<readonly [string, ParameterSource]> = []
  for (const [name, value] of Object.entries(written)) {
    const place = () => document.place([...path, name])
    if (Predicate.isNullish(value)) {
      findings.error(place(), "this parameter has no value; is a space missing after its colon?")
      continue
    }
    const parameter = readParameter(value, folder)
    if (Predicate.isString(parameter)) findings.error(place(), parameter)
    else if (parameter._tag === "Literal" && isVariable(document.written([...path, name]) ?? ""))
      parameters.push([name, { ...parameter, isVariable: true }])
    else parameters.push([name, parameter])
  }
  return Object.fromEntries(parameters)
}

export interface Surroundings {
  readonly context: Context
  readonly folder: string
  readonly engines: ReadonlyMap<string, EngineSettings>
  /** Whether the job lists engines at all, right or wrong. */
  readonly namesEngines: boolean
  readonly hasTokens: boolean
  /** What is bound so far, with the places of customers on engines and of tokens, to find duplicates. */
  readonly assignments: Array<Assignment>
  readonly places: Map<string, Place>
  readonly tokens: Map<string, Place>
}

/** Each takes about a kilobyte of memory before anything is started. */
const tasksMax = 1_000_000

const add = (surroundings: Surroundings, place: Place, bound: Assignment): void => {
  const { context, hasTokens, assignments, places, tokens } = surroundings
  const { findings } = context
  const key = `${bound.engine_reference}\u0000${bound.customer_id}`
  const first = places.get(key)
  if (first !== undefined) {
    return findings.error(
      place,
      `this customer is already on \`${bound.engine_reference}\`, at ${placeText(first)}`,
    )
  }
  if (places.size >= tasksMax)
    return findings.error(place, `a job has ${tasksMax} tasks at most: make two jobs of it`, "tasks")
  places.set(key, place)
  if (bound.login._tag === "Token") {
    const used = tokens.get(bound.login.name)
    if (used !== undefined) {
      const why = "a token belongs to one customer on one engine"
      findings.error(
        place,
        `the token \`${bound.login.name}\` is already used, at ${placeText(used)}: ${why}`,
      )
    }
    tokens.set(bound.login.name, place)
  }
  if (!hasTokens && (bound.login._tag === "Token" || bound.login.tokenized_access)) {
    const asked = bound.login._tag === "Token" ? "token" : "tokenized_access"
    findings.error(place, `\`${asked}\` needs \`tokens\` in the job, which opens the token store`)
  }
  assignments.push(bound)
}

/** For a file's rows, which may be many, missing engines are reported once. */
const everyEngine = (surroundings: Surroundings, place: Place, group?: "rows"): Iterable<EngineSettings> => {
  if (!surroundings.namesEngines) {
    const message = "this customer has no `engines`, and the job names none either"
    surroundings.context.findings.error(place, message, group)
  }
  return surroundings.engines.values()
}

const bindEngine = (
  surroundings: Surroundings,
  customer: {
    readonly id: string
    readonly path: Path
    readonly parameters: Parameters
    readonly tokenized: boolean
  },
  written: Written,
  index: number,
): EngineSettings & { readonly login: Login } => {
  const { context, engines, folder } = surroundings
  const path = [...customer.path, "engines", index]
  const base = engines.get(written.reference)
  if (written.token !== undefined && written.parameters !== undefined) {
    const message = "a `token` replaces `parameters`: keep one of the two"
    context.findings.error(context.document.place([...path, "token"], "key"), message)
  }
  const own = readParameters(context, written.parameters, [...path, "parameters"], folder)
  warnOfLoginId(context, customer.id, own ?? {}, context.document.place(path))
  const features =
    written.features === undefined
      ? (base?.features ?? [])
      : readFeatures(context, written.features, [...path, "features"])
  return {
    engine_reference: EngineReference.make(written.reference),
    features,
    configurations: written.configurations ?? base?.configurations ?? {},
    hooks_extra_data: written.hooks_extra_data ?? base?.hooks_extra_data ?? {},
    login:
      written.token === undefined
        ? {
            _tag: "Parameters",
            parameters: own ?? customer.parameters,
            tokenized_access: written.tokenized_access ?? customer.tokenized,
          }
        : { _tag: "Token", name: written.token },
  }
}

export const bindInline = (
  surroundings: Surroundings,
  { index, value }: Item<typeof Customer.Type & { readonly id: string }>,
): void => {
  const { context, folder } = surroundings
  const path = ["customers", index]
  const place = context.document.place([...path, "id"])
  warnOfId(context, value.id, place)
  const parameters = readParameters(context, value.parameters, [...path, "parameters"], folder) ?? {}
  warnOfLoginId(context, value.id, parameters, place)
  const tokenized = value.tokenized_access ?? false
  const bind = (at: Place, bound: EngineSettings & { readonly login: Login }) =>
    add(surroundings, at, {
      customer_id: CustomerId.make(value.id),
      ...bound,
      source: placeText(at),
    })
  if (value.engines === undefined) {
    for (const engine of everyEngine(surroundings, place)) {
      bind(place, { ...engine, login: { _tag: "Parameters", parameters, tokenized_access: tokenized } })
    }
    return
  }
  if (value.engines.length === 0) {
    context.findings.error(
      context.document.place([...path, "engines"]),
      "this list is empty: name an engine, or remove it",
    )
  }
  value.engines.forEach((entry, position) => {
    const written: Written = Predicate.isString(entry) ? { reference: entry } : entry
    bind(
      context.document.place([...path, "engines", position]),
      bindEngine(surroundings, { id: value.id, path, parameters, tokenized }, written, position),
    )
  })
}

/** A customer is either written out or a file of customers. */
export const checkCustomer = (context: Context, { index, value }: Item<typeof Customer.Type>): boolean => {
  const { document, findings } = context
  const path = ["customers", index]
  if (value.id === undefined && value.from === undefined) {
    findings.error(document.place(path), `${missingKey("id")} (or \`from\`, for a file of customers)`)
    return false
  }
  if (value.from === undefined) {
    const key = (["references", "features_column", "token_column"] as const).find(
      (name) => value[name] !== undefined,
    )
    if (key === undefined) return true
    const place = document.place([...path, key], "key")
    findings.error(place, `\`${key}\` names columns of a file: it belongs beside \`from\``)
    return false
  }
  for (const key of ["id", "parameters", "engines"] as const) {
    if (value[key] === undefined) continue
    findings.error(
      document.place([...path, key], "key"),
      `\`${key}\` comes from the file's columns, not from here`,
    )
  }
  return true
}

/** A feature that the engine has in the job keeps the settings it has there. */
const featuresOf = (
  codes: ReadonlyArray<string> | undefined,
  ofEngine: ReadonlyArray<JobFeature>,
): ReadonlyArray<JobFeature> =>
  codes === undefined
    ? ofEngine
    : codes.map((code) => ofEngine.find((one) => one.code === code) ?? { code, configurations: undefined })

const checkRow = ({ context }: Surroundings, row: CustomerRow): void => {
  const { findings } = context
  const verdict = judgeCustomerId(row.customer_id)
  if (verdict._tag === "Certain") findings.error(row.place, `expected ${personalDataReason(verdict.kind)}`)
  for (const id of [row.customer_id, row.engine_reference ?? "", row.token ?? "", ...(row.features ?? [])])
    if (isIdTooLong(id)) findings.error(row.place, idTooLong(id))
  if (row.token !== undefined && Object.keys(row.parameters).length > 0)
    findings.error(row.place, "a token replaces the parameters of this row: leave one of the two empty")
  const features = new Set(row.features)
  if (features.size < (row.features?.length ?? 0)) findings.error(row.place, "this row lists a feature twice")
  for (const code of features) warnOfFeature(findings, row.place, code, "rows")
  warnOfId(context, row.customer_id, row.place)
  warnOfLoginId(context, row.customer_id, row.parameters, row.place)
}

export const bindRow = (surroundings: Surroundings, row: CustomerRow, tokenized_access: boolean): void => {
  checkRow(surroundings, row)
  const { engine_reference: reference, token, parameters } = row
  const login: Login =
    token === undefined
      ? { _tag: "Parameters", parameters, tokenized_access }
      : { _tag: "Token", name: token }
  const plain = { features: [], configurations: {}, hooks_extra_data: {} }
  const engines =
    reference === undefined
      ? everyEngine(surroundings, row.place, "rows")
      : [surroundings.engines.get(reference) ?? { engine_reference: reference, ...plain }]
  const source = `${row.place.file}:${row.place.line}`
  for (const engine of engines) {
    const features = featuresOf(row.features, engine.features)
    const customer_id = CustomerId.make(row.customer_id)
    add(surroundings, row.place, { customer_id, ...engine, features, login, source })
  }
}
