/**
 * What a schema refuses, as findings for the person who wrote the file: one sentence each, at the key or
 * value that is wrong, in YAML terms, without the value; and a schema of Effect as JSON Schema.
 */
import { Predicate, Schema, SchemaAST, type SchemaIssue } from "effect"

/** Where a value is in a file. */
export type Path = ReadonlyArray<PropertyKey>

export interface Finding {
  readonly path: Path
  /** Whether the key or its value is wrong. */
  readonly at: "key" | "value"
  readonly message: string
}

/** What a kind of file says about a refused value; if undefined, the general words are used. */
export type WordsFor = (path: Path, value: unknown) => string | undefined

interface Words {
  readonly wordsFor?: WordsFor
  readonly unknownKey: (key: string, known: ReadonlyArray<string>) => string
  /** Which place is reported for a missing key: that of the mapping's own key, or of the mapping. */
  readonly missingAt: Finding["at"]
}

/** The fields that have a value; one that is undefined is left out. */
export const given = <Fields extends object>(fields: Fields): Given<Fields> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<Fields>
type Given<Fields> = {
  [Name in keyof Fields as undefined extends Fields[Name] ? never : Name]: Fields[Name]
} & {
  [Name in keyof Fields as undefined extends Fields[Name] ? Name : never]?: Exclude<Fields[Name], undefined>
}

export const missingKey = (key: string): string => `\`${key}\` is missing`

const wanted = (ast: SchemaAST.AST): string => {
  if (SchemaAST.isUnion(ast)) return [...new Set(ast.types.map(wanted))].join(" or ")
  if (SchemaAST.isLiteral(ast)) return `\`${String(ast.literal)}\``
  if (SchemaAST.isObjects(ast)) return "a mapping"
  if (SchemaAST.isArrays(ast)) return "a list"
  if (SchemaAST.isString(ast)) return "a string (quote it if YAML reads it as something else)"
  if (SchemaAST.isNumber(ast)) return "a number"
  return SchemaAST.isBoolean(ast) ? "true or false" : "another value"
}

export const isText = (ast: SchemaAST.AST): boolean => SchemaAST.isString(ast) || SchemaAST.isLiteral(ast)

/** Where only numbers and booleans stand, no variable is replaced: its value would be a text. */
export const isNeverText = (members: ReadonlyArray<SchemaAST.AST>): boolean =>
  members.some((ast) => SchemaAST.isNumber(ast) || SchemaAST.isBoolean(ast)) && !members.some(isText)

const variableHint = (ast: SchemaAST.AST, value: unknown): string =>
  Predicate.isString(value) && value.includes("${") && isNeverText(SchemaAST.isUnion(ast) ? ast.types : [ast])
    ? "; `${NAME}` is replaced in a text only: write the value itself"
    : ""

const filterMessage = (issue: SchemaIssue.Filter): string => {
  const expected = issue.filter.annotations?.["expected"]
  if (Predicate.isString(expected) && expected !== "") return `expected ${expected}`
  const said = issue.issue._tag === "InvalidValue" ? issue.issue.annotations?.["message"] : undefined
  return Predicate.isString(said) ? said : "this value is not allowed"
}

const valueAt = (root: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) => (Predicate.isObjectKeyword(value) ? Reflect.get(value, key) : undefined),
    root,
  )

/** Everything that a schema refuses, one sentence each; `root` is the value that was decoded. */
export const findingsOf = (
  issue: SchemaIssue.Issue,
  path: Path,
  root: unknown,
  words: Words,
): ReadonlyArray<Finding> => {
  const said = () => words.wordsFor?.(path, valueAt(root, path))
  const expected = (ast: SchemaAST.AST) => `expected ${wanted(ast)}${variableHint(ast, valueAt(root, path))}`
  const finding = (message: string, at: Finding["at"] = "value"): ReadonlyArray<Finding> => [
    { path, at, message },
  ]
  switch (issue._tag) {
    case "Pointer":
      return findingsOf(issue.issue, [...path, ...issue.path], root, words)
    case "Encoding":
      return findingsOf(issue.issue, path, root, words)
    case "Composite":
      return issue.issues.flatMap((inner) => findingsOf(inner, path, root, words))
    case "AnyOf":
      return issue.issues.length === 0
        ? finding(said() ?? expected(issue.ast))
        : issue.issues.flatMap((inner) => findingsOf(inner, path, root, words))
    case "Filter": {
      if (issue.issue._tag === "Pointer") return findingsOf(issue.issue, path, root, words)
      return finding(said() ?? filterMessage(issue))
    }
    case "InvalidValue": {
      const message = issue.annotations?.["message"]
      return finding(Predicate.isString(message) ? message : "this value is not allowed")
    }
    case "InvalidType":
      return finding(said() ?? expected(issue.ast))
    case "MissingKey":
      return Predicate.isNumber(path.at(-1))
        ? [{ path: path.slice(0, -1), at: "value", message: "expected a list with at least one item" }]
        : finding(missingKey(String(path.at(-1))), words.missingAt)
    case "UnexpectedKey": {
      const known = SchemaAST.isObjects(issue.ast)
        ? issue.ast.propertySignatures.map(({ name }) => String(name))
        : []
      return finding(words.unknownKey(String(path.at(-1)), known), "key")
    }
    default:
      return finding("this value is not allowed")
  }
}

// The JSON Schema that editors use, derived from the schema that loading uses; the same bytes each time.

type Json = Readonly<Record<string, unknown>>

/** `allOf` around a mere description adds nothing to the schema itself, and hides it from readers. */
const flatten = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(flatten)
  if (!Predicate.isObject(value)) return value
  const flat: Json = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, flatten(inner)]))
  const { allOf, ...own } = flat
  if (!Array.isArray(allOf) || !allOf.every(Predicate.isObject)) return withNumbers(flat)
  const keys = [own, ...allOf].flatMap((member) => Object.keys(member))
  return new Set(keys).size === keys.length ? withNumbers(Object.assign({}, own, ...allOf)) : flat
}

/** Marks the rule of a text that may be spelled like a number: loading takes it as the file spells it. */
export const orNumber = "orNumber"

/** The mark stands at the text's rule, which is merged with its type first. */
const withNumbers = (schema: Json): Json => {
  if (schema[orNumber] !== true || schema["type"] !== "string") return schema
  const { [orNumber]: _, ...rest } = schema
  return { ...rest, type: ["string", "number"] }
}

export const jsonSchemaOf = (from: Schema.Top): Json => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(from, {
    onExcessProperty: "error",
    includeAnnotationKey: (key) => key === orNumber,
  })
  const flat = flatten(schema)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...(Predicate.isObject(flat) ? flat : {}),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: flatten(definitions) }),
  }
}
