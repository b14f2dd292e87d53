/**
 * Engine details that nobody means well with, from a seed: the shapes that have burnt time or memory, each
 * grown to a random size around its bounds, alone or several in one form. `bodyOf` is what a service would
 * answer for such an engine.
 */
import { engineDetails } from "../client/Examples.ts"
import { seeded } from "../../src/sandbox/state/Reading.ts"

type Json = Readonly<Record<string, unknown>>

interface Draw {
  readonly size: (most: number) => number
  readonly one: <A>(items: ReadonlyArray<A>) => A
  readonly often: (share: number) => boolean
}

/** The same seed, the same form. */
const drawFrom = ({ unit, chance }: ReturnType<typeof seeded>): Draw => ({
  /** Every order of magnitude is as likely as another. */
  size: (most) => Math.max(1, Math.round(most ** unit())),
  one: <A>(items: ReadonlyArray<A>) => items[Math.floor(unit() * items.length)] as A,
  often: chance,
})

const fill = (amount: number, make: (index: number) => unknown): Json =>
  Object.fromEntries(Array.from({ length: amount }, (_, index) => [`f${index}`, make(index)]))

const nest = (depth: number, wrap: (inner: unknown) => unknown, core: unknown): unknown => {
  let built = core
  for (let level = 0; level < depth; level++) built = wrap(built)
  return built
}

const pieces = String.raw`a . [a-z] \d \p{L} \s é 😀 [^x] \u{1F600} (?=a) \1 \b`.split(" ")
const repeats = ["*", "+", "?", "{1,1000}", "{0,30}", "{999}", "{5000}", "*?", ""]

export const hostilePattern = (draw: Draw): string => {
  const shapes: ReadonlyArray<() => string> = [
    () =>
      `^${nest(draw.size(12), (inner) => `(${String(inner)}${draw.one(repeats)})${draw.one(repeats)}`, draw.one(pieces))}$`,
    () => `${draw.one(pieces)}?`.repeat(draw.size(400)) + "x".repeat(draw.size(60)),
    () =>
      `^(${Array.from({ length: draw.size(80) }, () => draw.one(pieces) + draw.one(repeats)).join("|")})+$`,
    () => "(".repeat(draw.size(3_000)) + "a" + ")".repeat(draw.size(3_000)),
    () => `${draw.one(pieces)}{1,1000}`.repeat(draw.size(150)),
    () => draw.one(["[", "a{2,1}", "(?<n>a)\\k<n>", "\\", "(?i:a)", "[[:alpha:]]", "\\Qa", "^$", ""]),
    () => `[${draw.one(pieces)}${"a-z".repeat(draw.size(600))}]${draw.one(repeats)}$`,
  ]
  return draw.one(shapes)()
}

const wrong: ReadonlyArray<unknown> = [null, 0, "x", [], {}, true, false, [null], { $ref: 1 }, -1, 1e308]
const formats = ["email", "uri", "regex", "date-time", "password", "iban", "uuid", "url", "__proto__"]

const field = (draw: Draw): unknown => {
  if (draw.often(0.15)) return draw.one(wrong)
  if (draw.often(0.4)) return { type: "string", pattern: hostilePattern(draw) }
  if (draw.often(0.3)) return { type: "string", format: draw.one(formats), minLength: 1, default: "x" }
  return {
    type: draw.one(["string", "integer", "array", "object", "file"]),
    nullable: true,
    enum: draw.one(wrong),
  }
}

/** Each definition refers to the next, several times over: 2, 4, 8, … of the last. */
const doubling = (draw: Draw): Json => {
  const by = draw.one(["allOf", "anyOf", "oneOf"])
  const steps = draw.size(60)
  const fan = 1 + draw.size(3)
  const definitions = Object.fromEntries(
    Array.from({ length: steps }, (_, step) => [
      `d${step}`,
      step + 1 === steps
        ? field(draw)
        : { [by]: Array.from({ length: fan }, () => ({ $ref: `#/$defs/d${step + 1}` })) },
    ]),
  )
  return { $defs: definitions, properties: { username: { $ref: "#/$defs/d0" } } }
}

const cyclic = (draw: Draw): Json => {
  const length = draw.size(20)
  const step = (to: number): Json => {
    const reference = { $ref: `#/components/schemas/c${to}` }
    return draw.one([
      reference,
      { allOf: [reference, reference] },
      { anyOf: [{ type: "null" }, reference] },
      { properties: { username: reference }, additionalProperties: reference },
      { items: reference, not: reference },
      Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, reference])),
    ])
  }
  const schemas = Object.fromEntries(
    Array.from({ length }, (_, index) => [`c${index}`, step((index + 1) % length)]),
  )
  return { components: { schemas }, properties: { username: { $ref: "#/components/schemas/c0" } } }
}

const shapes: ReadonlyArray<(draw: Draw) => Json> = [
  doubling,
  cyclic,
  (draw) => ({ properties: fill(draw.size(50_000), () => ({ type: "string" })) }),
  (draw) => ({
    properties: fill(draw.size(3_000), () => field(draw)),
    required: Array.from({ length: draw.size(5_000) }, (_, at) => `r${at}`),
  }),
  (draw) => ({
    properties: {
      username: {
        enum: Array.from({ length: draw.size(60_000) }, (_, at) => (at % 3 === 0 ? { at } : `e${at}`)),
      },
    },
  }),
  (draw) => ({
    properties: {
      username: {
        [draw.one(["anyOf", "oneOf", "allOf"])]: Array.from({ length: draw.size(3_000) }, (_, at) => ({
          const: at,
        })),
      },
    },
  }),
  (draw) => ({
    properties: {
      username: nest(
        draw.size(20_000),
        (inner) => ({ [draw.one(["items", "not", "contains", "if"])]: inner }),
        {},
      ),
    },
  }),
  (draw) => ({
    properties: { username: nest(draw.size(14), (inner) => ({ anyOf: [inner, inner] }), field(draw)) },
  }),
  (draw) => ({
    properties: {},
    patternProperties: Object.fromEntries(
      Array.from({ length: draw.size(400) }, () => [hostilePattern(draw), field(draw)]),
    ),
  }),
  (draw) => ({ properties: { username: { type: "string", pattern: hostilePattern(draw) } } }),
  (draw) => ({
    properties: { username: { type: "string" } },
    "x-meta": { lazy_fields: ["username"], deep: nest(draw.size(5_000), (inner) => [inner], 1) },
  }),
  (draw) => ({
    properties: { username: { type: "string" }, ["__proto__"]: {}, constructor: field(draw) },
    required: ["__proto__", "constructor"],
    dependentSchemas: fill(draw.size(2_000), () => ({ required: ["q"] })),
  }),
]

const form = (draw: Draw): unknown => {
  if (draw.often(0.03)) return draw.one(wrong)
  const parts = Array.from({ length: draw.often(0.2) ? 2 : 1 }, () => draw.one(shapes)(draw))
  return Object.assign({ type: "object", format: "cg-params" }, ...parts)
}

const plain = { type: "object", format: "cg-configs", properties: {} }

/** As text: what is nested without end cannot be built as text by a recursive writer. */
const write = (value: unknown): string => {
  try {
    return JSON.stringify(value)
  } catch {
    return `{"properties":{"username":${'{"not":'.repeat(20_000)}{}${"}".repeat(20_000)}}}`
  }
}

export interface HostileEngine {
  readonly body: string
  /** Logins to check against it, as customers may have them. */
  readonly logins: ReadonlyArray<Readonly<Record<string, unknown>>>
}

export const hostileEngine = (seed: number): HostileEngine => {
  const draw = drawFrom(seeded("form", seed))
  const where = draw.one(["parameters", "parameters", "configurations", "features"] as const)
  const bad = write(form(draw))
  const put = (name: typeof where, otherwise: unknown) => (where === name ? bad : JSON.stringify(otherwise))
  const { parameters: _, configurations: __, features: ___, ...rest } = engineDetails
  const features =
    where === "features" ? `[{"code":"accounts_read","configurations":${bad}}]` : JSON.stringify([])
  const body =
    JSON.stringify(rest).slice(0, -1) +
    `,"parameters":${put("parameters", { ...plain, format: "cg-params" })}` +
    `,"configurations":${put("configurations", plain)},"features":${features}}`
  const long = draw.one(["a", "ab", "é", "😀", "1", " "]).repeat(draw.size(20_000))
  return {
    body,
    logins: [{}, { username: "ok" }, { username: `${long}!`, f0: long }, { username: { at: [long] } }],
  }
}
