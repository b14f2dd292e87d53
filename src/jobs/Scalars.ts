/**
 * The single values of a job file, each with its rule and the message for breaking it, which never contains
 * the value; and how a setting is declared with them. `${NAME}` is replaced before these rules apply, but
 * editors still see it, so their patterns allow it.
 */
import { isAbsolute, join } from "node:path"
import { idCharactersMax, withoutEnd } from "../service/BodyBounds.ts"
import { Duration, Effect, Redacted, Schema, SchemaGetter, SchemaTransformation } from "effect"
import { judgeCustomerId } from "./PersonalData.ts"
import { orNumber } from "../base/Schemas.ts"
import { durationPattern, isDurationWithin, isLoopback, toDuration } from "../base/Text.ts"

/** A path of a job file, which is relative to the file's folder. */
export const beside = (folder: string, path: string): string => (isAbsolute(path) ? path : join(folder, path))

/** A setting of the job file that is known only at run time. The text is safe to show, not the value. */
export type SecretReference =
  /** `file`: the file of variables that has it, because the environment did not. */
  | { readonly _tag: "Env"; readonly name: string; readonly file?: string }
  | { readonly _tag: "File"; readonly path: string }
  | { readonly _tag: "Exec"; readonly command: string }

/** One login parameter: a value from the file (redacted immediately) or where to find it. */
export type ParameterSource =
  | {
      readonly _tag: "Literal"
      readonly value: Redacted.Redacted<unknown>
      /** A variable of the environment has it, not the file. */
      readonly isVariable?: true
    }
  | { readonly _tag: "Reference"; readonly reference: SecretReference }

/** In any spelling: a misspelt reference is told, because the source would get it as a password. */
const prefixes = /^\s*(?:env|file|exec):/i

export const looksLikeReference = (text: string): boolean => prefixes.test(text)

const environmentName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Undefined if the text is not a reference, or is an empty one. */
export const parseReference = (text: string, folder: string): SecretReference | undefined => {
  const colon = text.indexOf(":")
  const rest = text.slice(colon + 1).trim()
  if (rest === "") return undefined
  switch (text.slice(0, Math.max(colon, 0))) {
    case "env":
      return environmentName.test(rest) ? { _tag: "Env", name: rest } : undefined
    case "file":
      return { _tag: "File", path: beside(folder, rest) }
    case "exec":
      return { _tag: "Exec", command: rest }
    default:
      return undefined
  }
}

/** What every command of a reference finds in its environment; all else it has to name. */
export const commandVariables: ReadonlyArray<string> = ["PATH", "HOME", "LANG"]

/** The variables that a command names as a shell reads them: `$NAME` or `${NAME}`. */
export const namedIn = (command: string): ReadonlyArray<string> =>
  [...command.matchAll(/\$\{?([A-Za-z_][A-Za-z0-9_]*)/g)].flatMap(([, name]) => name ?? [])

/** How errors and reports name a reference. A command may contain anything, so it is not repeated. */
export const describeReference = (reference: SecretReference): string => {
  switch (reference._tag) {
    case "Env":
      return `env:${reference.name}`
    case "File":
      return `file:${reference.path}`
    case "Exec":
      return "exec:…"
  }
}

/** Tells references apart; never shown, for it repeats commands. */
export const keyOfReference = (reference: SecretReference): string => {
  if (reference._tag === "Exec") return `exec:${reference.command}`
  const from = reference._tag === "Env" && reference.file !== undefined ? ` in ${reference.file}` : ""
  return `${describeReference(reference)}${from}`
}

const holdsReference = (value: unknown): boolean => {
  if (typeof value === "string") return looksLikeReference(value)
  return typeof value === "object" && value !== null && Object.values(value).some(holdsReference)
}

/** One parameter of a file: redacted immediately, or a reference; a string says why it is neither. */
export const readParameter = (value: unknown, folder: string): ParameterSource | string => {
  if (typeof value === "string" && looksLikeReference(value)) {
    const reference = parseReference(value, folder)
    return reference === undefined
      ? "this is not a whole reference: write env:NAME, file:PATH or exec:COMMAND, in lower case"
      : { _tag: "Reference", reference }
  }
  if (typeof value === "object" && holdsReference(value)) {
    return "a reference must be a parameter's whole value; it is not read inside lists and mappings"
  }
  return { _tag: "Literal", value: Redacted.make(value) }
}

/** What an editor checks as the value is typed: the rule, or anything with `${` in it. */
const editorPattern = (pattern: string) => () => ({ pattern: `^(?:${pattern})$|\\$\\{` })

/** A text by its rule, in words for who breaks it and as a pattern for editors. */
export const ruled = (fits: (value: string) => boolean, expected: string, pattern: string, more = {}) =>
  Schema.String.check(Schema.makeFilter(fits, { expected, toJsonSchema: editorPattern(pattern), ...more }))

const idRule = `at most ${idCharactersMax} characters`
export const isIdTooLong = (id: string): boolean => id.length > idCharactersMax
export const idTooLong = (id: string): string => `expected ${idRule}, got ${id.length}`

const notEmpty = { expected: "a non-empty string" }
export const text = Schema.String.check(Schema.isMinLength(1, notEmpty))

/** Somebody's own name for a thing, as the source spells it: `1042` is one, and editors accept it. */
export const named = Schema.String.check(Schema.isMinLength(1, { ...notEmpty, [orNumber]: true }))

/** A rule that a pattern says whole. */
const matching = (pattern: string, expected: string, more = {}) => {
  const whole = new RegExp(`^(?:${pattern})$`)
  return ruled((value) => whole.test(value), expected, pattern, more)
}

export const jobName = matching("[a-z0-9-]{1,64}", "a name of a-z, 0-9 and -, at most 64 characters", {
  [orNumber]: true,
})

/** Written as `80%`, at most 100; a share from 0 to 1. */
export const percent = (minimum: 0 | 1) =>
  matching(
    minimum === 0 ? "[0-9]{1,2}%|100%" : "[1-9][0-9]?%|100%",
    `a percentage from "${minimum}%" to "100%"`,
  ).pipe(
    Schema.decodeTo(
      Schema.Number,
      SchemaTransformation.transform({
        decode: (written) => Number.parseInt(written, 10) / 100,
        encode: (share) => `${share * 100}%`,
      }),
    ),
  )

/** One rule in words, so `1.5` is one mistake, not two. */
export const count = (minimum: number, maximum: number) => {
  const expected = `a whole number from ${minimum} to ${maximum}`
  return Schema.Number.check(
    Schema.isInt({ expected }).abort(),
    Schema.isBetween({ minimum, maximum }, { expected }),
  )
}

export const duration = (minimum: Duration.Input, maximum: Duration.Input) =>
  toDuration(
    ruled(
      isDurationWithin({ minimum, maximum }),
      `a duration from ${String(minimum)} to ${String(maximum)}: a number and a unit ` +
        "(millis, seconds, minutes, hours, days)",
      durationPattern,
    ),
  )

export const days = (minimum: Duration.Input, maximum: Duration.Input) =>
  duration(minimum, maximum).pipe(
    Schema.decodeTo(
      Schema.Number,
      SchemaTransformation.transform({
        decode: (written) => Math.floor(Duration.toDays(written)),
        encode: Duration.days,
      }),
    ),
  )

/**
 * Whether nobody on the way can read what is sent there. Plain http only to hosts of this very machine. Names
 * under `localhost` are not included: the network decides how they resolve.
 */
export const isSafeAddress = (url: URL): boolean =>
  url.hostname !== "" &&
  url.username === "" &&
  url.password === "" &&
  (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)))

/** A URL that the secret may be sent to, without its trailing slash. */
export const parseServiceUrl = (value: string): string | undefined => {
  const url = URL.parse(value)
  if (url === null || !isSafeAddress(url) || /[?#\s]/.test(value)) return undefined
  return withoutEnd(url.href, "/")
}

/** A path from the root of a host, such as the one of the reference's local flow server: `/api/flows`. */
const isPath = (value: string): boolean => /^\/(?![/\\])[^?#\s\\]*$/.test(value)

/** The same, but a path alone means one on the host of `base_url`. */
export const parseUrlBeside = (base_url: string, value: string): string | undefined =>
  parseServiceUrl(isPath(value) ? new URL(value, base_url).href : value)

export const serviceUrlRule =
  "an https:// address without user, query or fragment (plain http only to this machine)"

export const serviceUrl = ruled(
  (value) => parseServiceUrl(value) !== undefined,
  serviceUrlRule,
  "https?://.+",
)

export const pathRule = ", or a path on base_url's host, such as /api/flows"

export const urlBeside = ruled(
  (value) => isPath(value) || parseServiceUrl(value) !== undefined,
  serviceUrlRule + pathRule,
  "https?://.+|/(?:[^/].*)?",
)

export const reference = ruled(
  (value) => parseReference(value, "") !== undefined,
  "env:NAME, file:PATH or exec:COMMAND: a secret is never written into a job file",
  "(?:env:[A-Za-z_][A-Za-z0-9_]*|(?:file|exec):.+)",
)

export const timeOfDay = matching(
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]",
  'a time of day as "HH:MM", from "00:00" to "23:59"',
)

const isTimezone = (value: string): boolean => {
  if (!/^[A-Za-z]/.test(value)) return false
  try {
    return new Intl.DateTimeFormat("en", { timeZone: value }).resolvedOptions().timeZone !== ""
  } catch {
    return false
  }
}

export const timezone = Schema.String.check(
  Schema.makeFilter(isTimezone, { expected: "the IANA name of a time zone, such as Europe/Madrid" }),
)

export const personalDataReason = (kind: string): string =>
  `a customer_id without personal data: this is ${kind}, and the service stores the id, repeats it on ` +
  "every event and may put it into webhook addresses (reference, 4.1)"

/** An id of somebody else's system; whatever it is, its length has a limit. */
export const externalId = named.check(Schema.isMaxLength(idCharactersMax, { expected: idRule }))

export const customerId = externalId.check(
  Schema.makeFilter((value: string) => {
    const verdict = judgeCustomerId(value)
    return verdict._tag === "Certain" ? `expected ${personalDataReason(verdict.kind)}` : undefined
  }),
)

/** The folders of Parquet that a version can have: what is current, and what was. */
export const parquetFolders = ["current", "history"] as const

// All that is said of a setting stands at the key of the file, not of the decoded value: people write that.

/** What `init` writes for a setting, as YAML; without it, the default. */
export interface Sample {
  readonly text?: string
  /** `used`: not commented out; `alternative`: only instead of what stands beside it; `gone`: nothing. */
  readonly as: "used" | "example" | "alternative" | "gone"
  /** A default that depends on other settings: it is shown, but decoding does not apply it. */
  readonly shown?: unknown
}

export const used = (text: string): Sample => ({ as: "used", text })
export const example = (text: string, shown?: unknown): Sample => ({ as: "example", text, shown })
/** Accepted, but without an effect. */
export const gone: Sample = { as: "gone" }
export const alternative = (text?: string): Sample =>
  text === undefined ? { as: "alternative" } : { as: "alternative", text }

/** Annotations are read by name, whatever the type of the value that they stand at. */
const notes = (
  description: string,
  sample?: Sample,
  absent: unknown = sample?.shown,
): Schema.Annotations.Key<never> => ({
  description,
  ...(absent === undefined ? {} : { default: absent as never }),
  ...(sample === undefined ? {} : { sample }),
})

export const required = <S extends Schema.Top>(schema: S, description: string, sample?: Sample) =>
  Schema.flip(Schema.flip(schema).pipe(Schema.annotateKey(notes(description, sample))))

export const optional = <S extends Schema.Top>(schema: S, description: string, sample?: Sample) =>
  Schema.flip(Schema.optionalKey(Schema.flip(schema)).pipe(Schema.annotateKey(notes(description, sample))))

const withDefault = <S extends Schema.Top>(
  schema: S,
  absent: S["Encoded"],
  key: Schema.Annotations.Key<never>,
) =>
  Schema.optionalKey(Schema.toEncoded(schema)).pipe(
    Schema.annotateKey(key),
    Schema.decodeTo(schema, {
      decode: SchemaGetter.withDefault(Effect.succeed(absent)),
      encode: SchemaGetter.passthrough(),
    }),
  )

/** A key with a default, spelled as in a file. */
export const setting = <S extends Schema.Top>(schema: S, absent: S["Encoded"], description: string) =>
  withDefault(schema, absent, notes(description, undefined, absent))

export const flag = (absent: boolean, description: string) => setting(Schema.Boolean, absent, description)

export const section = <F extends Schema.Struct.Fields>(fields: F, description: string) =>
  withDefault(Schema.Struct(fields), {} as Schema.Struct<F>["Encoded"], notes(description))

export const list = <S extends Schema.Top>(item: S, description: string, sample?: Sample) =>
  withDefault(Schema.Array(item), [], notes(description, sample))
