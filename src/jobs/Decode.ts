/**
 * Decodes one part of a job file and turns what its schema refuses into findings: one sentence each, at the
 * key or value that is wrong, in YAML terms rather than types, and without the value.
 */
import { Predicate, Result, Schema } from "effect"
import { nearestName, suggestion } from "../base/Nearest.ts"
import { findingsOf } from "../base/SchemaFindings.ts"
import type { YamlDocument } from "../base/YamlText.ts"
import type { Findings } from "./Problem.ts"

type Path = ReadonlyArray<PropertyKey>

export interface Context {
  readonly document: YamlDocument
  readonly findings: Findings
}

/**
 * A key is quoted only if it looks like one: without a space, `{ password:secret }` is a key too, and so is
 * a value whose key was forgotten.
 */
export const unknownKey = (key: string, known: ReadonlyArray<string>): string => {
  if (/[:\s]/.test(key)) return "this key is unknown; is a space missing after its colon?"
  const near = nearestName(key, known) !== undefined
  if (!near && !/^[A-Za-z_-]+$/.test(key)) return `this key is unknown${suggestion("", known)}`
  return `unknown key \`${key}\`${suggestion(key, known)}`
}

/** Without these keys an item is a different one, and what is found about it may be wrong. */
const essential = new Set<PropertyKey>(
  "id from engines reference base_url flows_url app_secret sandbox".split(" "),
)

/** What is left of a mapping without its wrong keys, to check for other problems. */
const withoutKeys = (value: unknown, wrong: ReadonlySet<PropertyKey | undefined>): object | undefined => {
  if (!Predicate.isObject(value)) return undefined
  if ([...wrong].some((key) => !Predicate.isString(key) || essential.has(key))) return undefined
  return Object.fromEntries(Object.entries(value).filter(([key]) => !wrong.has(key)))
}

/**
 * The whole part; or, once its errors went to the findings, the part without its wrong keys; or undefined
 * if too little would be left. A part with errors is only used to find more of them.
 */
export const decodePart = <S extends Schema.ConstraintDecoder<unknown>>(
  context: Context,
  schema: S,
  value: unknown,
  path: Path,
): S["Type"] | undefined => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  const decoded = decode(value)
  if (Result.isSuccess(decoded)) return decoded.success
  const found = findingsOf(decoded.failure.issue, path, value, { unknownKey, missingAt: "key" })
  for (const { path: where, at, message } of found)
    context.findings.error(context.document.place(where, at), message)
  const rest = withoutKeys(value, new Set(found.map(({ path: where }) => where[path.length])))
  return rest === undefined ? undefined : Result.getOrUndefined(decode(rest))
}
