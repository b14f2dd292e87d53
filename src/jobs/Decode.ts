/**
 * Decodes one part of a job file and turns what its schema objects to into findings: one sentence each, at
 * the key or value that is wrong, in words of YAML rather than of types, and without the value.
 */
import { Predicate, Result, Schema, SchemaAST } from "effect"
import type { SchemaIssue } from "effect"
import { nearestName, suggestion } from "../foundation/Nearest.ts"
import type { JobDocument } from "./JobDocument.ts"
import type { Findings } from "./Problem.ts"

type Path = ReadonlyArray<PropertyKey>

export interface Context {
  readonly document: JobDocument
  readonly findings: Findings
}

/**
 * A key is repeated only when it looks like one: `{ password:secret }` is a key too where a space is missing,
 * and so is a value whose key was forgotten.
 */
export const unknownKey = (key: string, known: ReadonlyArray<string>): string => {
  if (/[:\s]/.test(key)) return "this key is unknown; is a space missing after its colon?"
  const near = nearestName(key, known) !== undefined
  if (!near && !/^[A-Za-z_-]+$/.test(key)) return `this key is unknown${suggestion("", known)}`
  return `unknown key \`${key}\`${suggestion(key, known)}`
}

export const missingKey = (key: string): string => `\`${key}\` is missing`

/** What a schema wants, in words of YAML. */
const describe = (ast: SchemaAST.AST): string => {
  if (SchemaAST.isUnion(ast)) return [...new Set(ast.types.map(describe))].join(" or ")
  if (SchemaAST.isLiteral(ast)) return `\`${String(ast.literal)}\``
  if (SchemaAST.isObjects(ast)) return "a mapping"
  if (SchemaAST.isArrays(ast)) return "a list"
  if (SchemaAST.isString(ast)) return "a text (in quotes where YAML reads something else)"
  if (SchemaAST.isNumber(ast)) return "a number"
  return SchemaAST.isBoolean(ast) ? "true or false" : "another value"
}

const expectedBy = (issue: SchemaIssue.Filter): string | undefined => {
  const expected = issue.filter.annotations?.["expected"]
  if (typeof expected === "string" && expected !== "") return `expected ${expected}`
  const inner = issue.issue._tag === "InvalidValue" ? issue.issue.annotations?.["message"] : undefined
  return typeof inner === "string" ? inner : undefined
}

/** Answers which paths it complained about. */
const report = (context: Context, issue: SchemaIssue.Issue, path: Path): ReadonlyArray<Path> => {
  const error = (message: string, at: "key" | "value" = "value"): ReadonlyArray<Path> => {
    context.findings.error(context.document.place(path, at), message)
    return [path]
  }
  switch (issue._tag) {
    case "Pointer":
      return report(context, issue.issue, [...path, ...issue.path])
    case "Encoding":
      return report(context, issue.issue, path)
    case "Composite":
      return issue.issues.flatMap((inner) => report(context, inner, path))
    case "AnyOf":
      return issue.issues.length === 0
        ? error(`expected ${describe(issue.ast)}`)
        : issue.issues.flatMap((inner) => report(context, inner, path))
    case "Filter":
      return error(expectedBy(issue) ?? "this value is not allowed")
    case "InvalidType":
      return error(`expected ${describe(issue.ast)}`)
    case "MissingKey":
      return error(missingKey(String(path.at(-1))), "key")
    case "UnexpectedKey": {
      const known = SchemaAST.isObjects(issue.ast)
        ? issue.ast.propertySignatures.map(({ name }) => String(name))
        : []
      return error(unknownKey(String(path.at(-1)), known), "key")
    }
    default:
      return error("this value is not allowed")
  }
}

/** Without these an item is another one, and what is found out about that one may be wrong. */
const essential = new Set<PropertyKey>(
  "id from engines reference base_url flows_url app_secret sandbox".split(" "),
)

/** What is left of a mapping without its wrong keys, to look for what else is wrong with it. */
const withoutKeys = (value: unknown, wrong: ReadonlySet<PropertyKey | undefined>): object | undefined => {
  if (!Predicate.isObject(value) || Array.isArray(value)) return undefined
  if ([...wrong].some((key) => !Predicate.isString(key) || essential.has(key))) return undefined
  return Object.fromEntries(Object.entries(value).filter(([key]) => !wrong.has(key)))
}

/**
 * The part, whole; or, once its errors went to the findings, without its wrong keys; or undefined where that
 * would leave too little. A part with errors only serves to find more of them.
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
  const wrong = report(context, decoded.failure.issue, path).map((at) => at[path.length])
  const rest = withoutKeys(value, new Set(wrong))
  return rest === undefined ? undefined : Result.getOrUndefined(decode(rest))
}
