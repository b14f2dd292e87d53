/**
 * Reads the small YAML files that tell the embedded service how to behave: what they say comes out, or
 * everything that is wrong with them at once, each with its line and column and the nearest known word. No
 * file is used that was understood only in part.
 */
import { Effect, Predicate, Result, Schema, SchemaAST } from "effect"
import type { SchemaIssue } from "effect"
import { isMap, isScalar, isSeq, Lexer, LineCounter, parseDocument, Parser, visit } from "yaml"
import type { CST, Document } from "yaml"
import { nearestName } from "./Nearest.ts"
import { readTextFile } from "./RegularFile.ts"

export const YamlProblem = Schema.Struct({
  file: Schema.String,
  line: Schema.Int,
  column: Schema.Int,
  message: Schema.String,
})
export type YamlProblem = typeof YamlProblem.Type

/** One line each, as `file:line:column: message`. */
export const problemLines = (problems: ReadonlyArray<YamlProblem>): string =>
  problems.map(({ file, line, column, message }) => `${file}:${line}:${column}: ${message}`).join("\n")

type Path = ReadonlyArray<PropertyKey>
interface Finding {
  readonly path: Path
  /** Whether the key or its value is wrong. */
  readonly at: "key" | "value"
  readonly message: string
}

/** What a schema wants, in words of YAML. */
const wanted = (ast: SchemaAST.AST): string => {
  if (SchemaAST.isUnion(ast)) return [...new Set(ast.types.map(wanted))].join(" or ")
  if (SchemaAST.isLiteral(ast)) return `\`${String(ast.literal)}\``
  if (SchemaAST.isObjects(ast)) return "a mapping"
  if (SchemaAST.isArrays(ast)) return "a list with at least one item"
  if (SchemaAST.isString(ast)) return "a text (in quotes where YAML reads something else)"
  if (SchemaAST.isNumber(ast)) return "a number"
  return SchemaAST.isBoolean(ast) ? "true or false" : "another value"
}

/** `; did you mean …?`, or all that is known. */
export const suggest = (word: string, known: ReadonlyArray<string>): string => {
  const near = nearestName(word, known)
  return near === undefined ? `; known here: ${known.join(", ")}` : `; did you mean \`${near}\`?`
}

const filterMessage = (issue: SchemaIssue.Filter): string => {
  const expected = issue.filter.annotations?.["expected"]
  if (Predicate.isString(expected)) return `expected ${expected}`
  const said = issue.issue._tag === "InvalidValue" ? issue.issue.annotations?.["message"] : undefined
  return Predicate.isString(said) ? said : "this value is not allowed"
}

const valueAt = (root: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) => (Predicate.isObjectKeyword(value) ? Reflect.get(value, key) : undefined),
    root,
  )

/** What a kind of file says of a value that its schema refuses; undefined: the general words do. */
export type WordsFor = (path: Path, value: unknown) => string | undefined

const findingsOf = (
  issue: SchemaIssue.Issue,
  path: Path,
  root: unknown,
  wordsFor: WordsFor,
): ReadonlyArray<Finding> => {
  const finding = (message: string, at: Finding["at"] = "value"): ReadonlyArray<Finding> => [
    { path, at, message },
  ]
  switch (issue._tag) {
    case "Pointer":
      return findingsOf(issue.issue, [...path, ...issue.path], root, wordsFor)
    case "Encoding":
      return findingsOf(issue.issue, path, root, wordsFor)
    case "Composite":
      return issue.issues.flatMap((inner) => findingsOf(inner, path, root, wordsFor))
    case "AnyOf":
      return issue.issues.length === 0
        ? finding(wordsFor(path, valueAt(root, path)) ?? `expected ${wanted(issue.ast)}`)
        : issue.issues.flatMap((inner) => findingsOf(inner, path, root, wordsFor))
    case "Filter": {
      if (issue.issue._tag === "Pointer") return findingsOf(issue.issue, path, root, wordsFor)
      return finding(wordsFor(path, valueAt(root, path)) ?? filterMessage(issue))
    }
    case "InvalidValue": {
      const said = issue.annotations?.["message"]
      return finding(Predicate.isString(said) ? said : "this value is not allowed")
    }
    case "InvalidType":
      return finding(wordsFor(path, valueAt(root, path)) ?? `expected ${wanted(issue.ast)}`)
    case "MissingKey":
      return Predicate.isNumber(path.at(-1))
        ? [{ path: path.slice(0, -1), at: "value", message: "expected a list with at least one item" }]
        : finding(`\`${String(path.at(-1))}\` is missing`)
    case "UnexpectedKey": {
      const known = SchemaAST.isObjects(issue.ast)
        ? issue.ast.propertySignatures.map(({ name }) => String(name))
        : []
      const key = String(path.at(-1))
      return finding(`unknown key \`${key}\`${suggest(key, known)}`, "key")
    }
    default:
      return finding("this value is not allowed")
  }
}

/** Where a path stands; what is missing stands where its parent stands. */
const offsetOf = (document: Document.Parsed, { path, at }: Finding): number => {
  let node: unknown = document.contents
  let offset = document.contents?.range[0] ?? 0
  for (const [index, step] of path.entries()) {
    const byKey = at === "key" && index === path.length - 1
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step)
      if (pair === undefined) return offset
      const placed = byKey || !hasRange(pair.value) ? pair.key : pair.value
      node = pair.value
      offset = hasRange(placed) ? placed.range[0] : offset
    } else if (isSeq(node)) {
      node = Predicate.isNumber(step) ? node.items[step] : undefined
      offset = hasRange(node) ? node.range[0] : offset
    } else return offset
  }
  return offset
}

const hasRange = (node: unknown): node is { readonly range: readonly [number, number, number] } =>
  (isScalar(node) || isMap(node) || isSeq(node)) && Array.isArray(node.range)

/** Aliases are not needed here, and one of aliases of aliases would take all memory. */
const aliasesMax = 100
/** Far above any honest file. The library calls itself for each level. */
const depthMax = 64
/** Of one mapping. The library compares each with all before it. */
const keysMax = 1_000

const isLongMapping = (token: CST.Token): boolean =>
  (token.type === "block-map" || (token.type === "flow-collection" && token.start.source === "{")) &&
  token.items.length > keysMax

/** Where a file becomes too much for the library, and why; found before it is asked. */
const tooMuchAt = (source: string): { readonly offset: number; readonly why: string } | undefined => {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(source)) {
    for (const _ of parser.next(lexeme));
    const { offset, stack } = parser
    // The document's own token, a scalar and a pair of brackets may stand on top.
    if (stack.length > depthMax + 3) return { offset, why: "this is nested too deeply" }
    if (stack.slice(-2).some(isLongMapping))
      return { offset, why: `this mapping has more than ${keysMax} keys` }
  }
  return undefined
}

/** The value of a document, or where the first alias of too many stands. */
const valueOf = (document: Document.Parsed): Result.Result<unknown, number> =>
  Result.try({
    try: (): unknown => document.toJS({ maxAliasCount: aliasesMax }),
    catch: () => {
      let first: number | undefined
      visit(document, {
        Alias: (_, { range }) => {
          first = range?.[0]
          return visit.BREAK
        },
      })
      return first ?? 0
    },
  })

/** A kind of file: what it may say, and in which words it is told what it may not. */
export interface YamlKind<A> {
  /** `the faults file` */
  readonly named: string
  readonly schema: Schema.ConstraintDecoder<A>
  readonly wordsFor: WordsFor
  /** What the schema is given for the value that YAML reads. */
  readonly prepare?: (root: unknown) => unknown
}

/** Judges the text of a file; `file` is only named. */
export const decodeYaml = <A>(
  { schema, wordsFor, prepare = (root) => root }: YamlKind<A>,
  file: string,
  source: string,
): Result.Result<A, ReadonlyArray<YamlProblem>> => {
  const lines = new LineCounter()
  const problem = (offset: number, message: string): YamlProblem => {
    const { line, col } = lines.linePos(offset)
    return { file, line: Math.max(line, 1), column: Math.max(col, 1), message }
  }
  const tooMuch = tooMuchAt(source)
  if (tooMuch !== undefined) {
    lines.addNewLine(0)
    for (const { index } of source.matchAll(/\n/g)) lines.addNewLine(index + 1)
    return Result.fail([problem(tooMuch.offset, tooMuch.why)])
  }
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false })
  const broken = document.errors.map(({ pos, message }) => problem(pos[0], message.split("\n")[0] ?? message))
  if (broken.length > 0) return Result.fail(broken)
  const read = valueOf(document)
  if (Result.isFailure(read))
    return Result.fail([problem(read.failure, "aliases (*) stand for too many values here; write them out")])
  const root = read.success
  const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  const decoded = decode(prepare(root))
  if (Result.isSuccess(decoded)) return Result.succeed(decoded.success)
  const problems = findingsOf(decoded.failure.issue, [], root, wordsFor).map((finding) =>
    problem(offsetOf(document, finding), finding.message),
  )
  return Result.fail(problems.toSorted((a, b) => a.line - b.line || a.column - b.column))
}

/** Above any honest file. */
const bytesMax = 1_000_000

/** Reads a file that a flag or a job's `service` names. */
export const readYaml = <A>(
  kind: YamlKind<A>,
  path: string,
): Effect.Effect<A, ReadonlyArray<YamlProblem>> => {
  const unreadable = (message: string): ReadonlyArray<YamlProblem> => [
    { file: path, line: 1, column: 1, message },
  ]
  return readTextFile(path, bytesMax).pipe(
    Effect.mapError((reason) => unreadable(`${kind.named} cannot be read (${reason})`)),
    Effect.flatMap((source) => Effect.fromResult(decodeYaml(kind, path, source))),
  )
}
