/**
 * Where the reference leaves room: one key for each place that can be read in several ways and could break
 * a caller, with every way that the embedded service can take. A file of `--reading` chooses; for what it
 * does not set, `todaysReading` applies.
 */
import { Schema, Struct } from "effect"
import { sha256Hex } from "../../base/Hashes.ts"

/** One place: where the reference leaves what open, and the possible values; the first is today's. */
const choice = <const Values extends readonly [string, ...ReadonlyArray<string>]>(
  values: Values,
  description: string,
) => Schema.optionalKey(Schema.Literals(values).annotate({ description }))
const presence = (about: string) => choice(["present", "absent"], `${about}: present, or 404.`)

export const Reading = Schema.Struct({
  conflict_external_id: choice(
    ["running", "request", "absent", "null"],
    "2.5, 4.1: Which external id a 409 carries: that of the run in flight, the request's own, none, or null.",
  ),
  execution_id_form: choice(
    ["uuid", "hex", "object_id"],
    "2.4: What an execution id looks like: the reference only calls it a string.",
  ),
  session_id_form: choice(
    ["object_id", "uuid", "execution_id"],
    "2.4, 4.10: What an execution's session id looks like; `execution_id`: the same text as the " +
      "execution's id.",
  ),
  flow_session_ids: choice(
    ["object_id", "any"],
    "4.10: Which session ids the flow API takes: ObjectIds only (any other answers 422), or any text.",
  ),
  challenge_body: choice(
    ["fields", "state"],
    "2.4, 4.2: What a 423 carries: the four fields of a challenge, or also the full execution state.",
  ),
  optionals: choice(
    ["shown", "absent", "null"],
    "2.4, 2.5: Optional, nullable fields of states and acceptances: shown, absent, or null.",
  ),
  form_optionals: choice(
    ["absent", "null"],
    "2.3: `$defs`, `required` and `x-meta` of a form that has none: absent, or null.",
  ),
  error_lists: choice(
    ["absent", "empty"],
    "2.4: `parameters_errors` and `configurations_errors` when there are none.",
  ),
  messages: choice(
    ["shown", "absent_when_empty"],
    "2.4: `messages` when there is none: an empty list, or absent (default empty).",
  ),
  products_count: choice(
    ["shown", "absent", "null", "text", "float", "list"],
    "2.4: `products_count`: shown, absent, null, or of another type: numbers as strings, half a " +
      "product more, or a list of `{key, count}`.",
  ),
  dates: choice(
    ["zulu", "offset", "naive"],
    "2.4: How dates are written: with `Z`, with `+00:00`, or without a zone, meaning UTC.",
  ),
  rejected_state: choice(
    ["closed", "open"],
    "4.2: How a run that was rejected over its parameters or configurations answers: as closed, or as open.",
  ),
  limits_behaviour_error: choice(
    ["configuration_error", "aborted"],
    "4.1: How `limits_behaviour: error` aborts: CONFIGURATION_ERROR, or ABORTED with SYSTEM_CANCELLED.",
  ),
  unknown_engine_start: choice(
    ["invalid", "unavailable"],
    "4.1: How a start refuses an unknown engine: with 422, or with 503, as for an engine that " +
      "cannot be used.",
  ),
  abort_effect: choice(
    ["at_once", "late"],
    "4.4: When an abort that was answered 204 shows in the state: at once, or a second later.",
  ),
  flow_api: choice(
    ["present", "absent", "forbidden"],
    "1, 4.10: Whether there is a flow API for this account: present, absent (404 with a gateway's " +
      "page), or 403.",
  ),
  flow_data: choice(
    ["map", "list"],
    "2.7: How the records of `data` are arranged: by product, or in one list.",
  ),
  flow_error_body: choice(
    ["detail", "code", "html", "empty"],
    "7: The body of the flow API's own errors: `detail`, a code and a message, a page, or nothing.",
  ),
  retry_after: choice(
    ["absent", "seconds", "date"],
    "7, 8: `Retry-After` with 429, 503 and 504: absent, in seconds, or as a date.",
  ),
  profile: presence("4.12: Whether the customer's profile can be read"),
  result_kinds: choice(
    ["absent", "present"],
    "4.12: Whether every kind of result can be read without the flow API, from `GET {base_url}/executions/" +
      "results/{execution_id}/{family}/v1/records` (a path of this service's own).",
  ),
  attachments: presence("4.12: Whether documents can be downloaded"),
  tokenized_body: choice(
    ["token", "flat", "refused", "absent"],
    "4.12: How a start with a token names it: as `token`, as `token_id` and `token_key` beside the " +
      "other fields, " +
      "or not at all: it is always refused (422), or the method is not allowed (405).",
  ),
  token_status: presence("4.12: Whether a token's status can be read"),
  head: choice(
    ["answers", "not_allowed"],
    "4.12: Whether an execution can be polled with HEAD: it is answered, or 405.",
  ),
})
export type Reading = typeof Reading.Type
export type FullReading = Required<Reading>

/** A key as shown to people. */
export const readingChoices = Object.entries(Reading.fields).map(([key, { schema }]) => {
  const { description = "" } = Schema.resolveAnnotations(schema) ?? {}
  const [section = ""] = description.split(":")
  const values: ReadonlyArray<string> = schema.literals
  return { key, section, about: description, values }
})

/** How the service behaves if nothing else is chosen: by the first value of each key. */
export const todaysReading: FullReading = Schema.decodeUnknownSync(
  Schema.Struct(Struct.map(Reading.fields, Schema.requiredKey)),
)(Object.fromEntries(readingChoices.map(({ key, values }) => [key, values[0]])))

export const resolveReading = (reading: Reading = {}): FullReading => ({ ...todaysReading, ...reading })

// A draw is seeded by the service's seed and stable inputs, never by when or in which order it is made.

export interface Draw {
  /** In [0, 1). */
  readonly unit: () => number
  /** Both limits included. */
  readonly int: (min: number, max: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <const Values extends readonly [unknown, ...ReadonlyArray<unknown>]>(
    values: Values,
  ) => Values[number]
  readonly digits: (length: number) => string
}

export type SeedInput = string | number

/** A length before each input keeps ("ab","c") apart from ("a","bc"). */
const joined = (inputs: ReadonlyArray<SeedInput>): string =>
  inputs.map((input) => `${String(input).length}:${input}`).join("|")

/** Four 32-bit words of the inputs. */
const mix = (inputs: ReadonlyArray<SeedInput>): [number, number, number, number] => {
  const text = joined(inputs)
  let a = 1779033703
  let b = 3144134277
  let c = 1013904242
  let d = 2773480762
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    a = b ^ Math.imul(a ^ code, 597399067)
    b = c ^ Math.imul(b ^ code, 2869860233)
    c = d ^ Math.imul(c ^ code, 951274213)
    d = a ^ Math.imul(d ^ code, 2716044179)
  }
  a = Math.imul(c ^ (a >>> 18), 597399067)
  b = Math.imul(d ^ (b >>> 22), 2869860233)
  c = Math.imul(a ^ (c >>> 17), 951274213)
  d = Math.imul(b ^ (d >>> 19), 2716044179)
  return [a >>> 0, b >>> 0, c >>> 0, d >>> 0]
}

/** The sfc32 generator over the mixed inputs. */
export const seeded = (...inputs: ReadonlyArray<SeedInput>): Draw => {
  let [a, b, c, d] = mix(inputs)
  const unit = () => {
    const t = (a + b + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return (t >>> 0) / 4294967296
  }
  for (let warm = 0; warm < 8; warm += 1) unit()
  const int = (min: number, max: number) => min + Math.floor(unit() * (max - min + 1))
  return {
    unit,
    int,
    chance: (probability) => unit() < probability,
    pick: (values) => values[int(0, values.length - 1)] ?? values[0],
    digits: (length) => Array.from({ length }, () => int(0, 9)).join(""),
  }
}

/** Hex of a SHA-256 over the inputs, for ids and fingerprints that must not collide. */
export const fingerprint = (...inputs: ReadonlyArray<SeedInput>): string => sha256Hex(joined(inputs))

const idOf = (hex: string, form: "uuid" | "hex" | "object_id"): string => {
  if (form === "hex") return hex.slice(0, 32)
  if (form === "object_id") return hex.slice(0, 24)
  return [8, 12, 16, 20, 32].map((end, index) => hex.slice([0, 8, 12, 16, 20][index], end)).join("-")
}

/**
 * 2.4: two ids that must never be confused, even if a reading makes them equal. Today UUID-shaped for
 * executions, ObjectId-shaped for sessions.
 */
export const executionIds = (
  { execution_id_form, session_id_form }: FullReading,
  seed: number,
  ...parts: ReadonlyArray<SeedInput>
) => {
  const execution_id = idOf(fingerprint("execution", seed, ...parts), execution_id_form)
  const session_id =
    session_id_form === "execution_id"
      ? execution_id
      : idOf(fingerprint("session", seed, ...parts), session_id_form)
  return { execution_id, session_id }
}

const lineMax = 80

/** Whole words, wrapped, each line after `before`. */
export const wrapWords = (text: string, before: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length + 1 > lineMax) lines.push(`${before}${word}`)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

export const readingHelp = [
  "--reading FILE chooses in YAML how the service behaves where the reference leaves room, one line per key",
  "(`flow_api: absent`). Each key is listed with its section; the first value is the default:",
  "",
  ...readingChoices.flatMap(({ key, about, values }) => [
    `  ${key}: ${values.join(" | ")}`,
    ...wrapWords(about, "    "),
  ]),
].join("\n")
