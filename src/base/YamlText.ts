/**
 * The text of a YAML file as plain values whose places are still known, within limits; no error repeats what
 * the file contains. Where a schema expects a string, a plain scalar is its source text (`65e0` and `0042`
 * are ids); where any type is allowed, a number stays one only if its spelling can be restored.
 */
import { Effect, Predicate, Result, Schema, SchemaAST } from "effect"
import { CST, Composer, Lexer, LineCounter, Parser } from "yaml"
import { isAlias, isMap, isScalar, isSeq, visit } from "yaml"
import type { Document, Scalar, YAMLMap, YAMLSeq } from "yaml"
import { Problem, readTextFile, renderProblem, topOf, type Place } from "./DurableFile.ts"
import { findingsOf, isNeverText, isText, type Finding, type Path, type WordsFor } from "./Schemas.ts"
import { suggestion } from "./Text.ts"

export interface YamlDocument {
  /** Undefined if the text could not be read; the problems say why. */
  readonly root: unknown
  /** Where the value at a path is; its key with `at: "key"`. A missing value is placed at its parent. */
  readonly place: (path: Path, at?: "key" | "value") => Place
  /** The string at a path as the file has it, before anything in it is replaced. */
  readonly written: (path: Path) => string | undefined
}

/** Returns the replacement for a string of the file, and may report a problem with it. */
export type Replace = (text: string, complain: (message: string) => void) => string

/** Far more than any honest file has; each level of the file is a level of every fold over it. */
const depthMax = 64
/** Of one value, key or comment. */
const scalarMax = 1_000_000
/** Lines that begin with %; nobody needs any. */
const directivesMax = 16
/** After this many, the rest of a text means nothing. */
const problemsMax = 1_000
/** Lexical ones; each takes some 250 bytes as token and node. */
const tokensMax = 4_000_000
/** Far more than any honest file has; stops an alias of aliases of aliases. */
const plainMax = 5_000_000
const aliasedMax = 500_000

/** The parser's messages may quote the file and its secrets; each of these says the same without quoting. */
const syntaxMessages: Readonly<Record<string, string>> = {
  BAD_ALIAS: "this alias (*) has no anchor (&) before it; quote a value that begins with *",
  BAD_DQ_ESCAPE: "this escape sequence is unknown in double quotes; use single quotes",
  BAD_INDENT: "the indentation is wrong here",
  BAD_SCALAR_START: "a value cannot begin with this character; quote it",
  BLOCK_AS_IMPLICIT_KEY: "this cannot be a key; is the indentation right?",
  MISSING_CHAR: "something is missing here: a colon, a comma, a quote or a bracket",
  MULTILINE_IMPLICIT_KEY: "a key must be on one line; is a colon or a quote missing?",
  TAB_AS_INDENT: "tabs are not allowed for indentation; use spaces",
  TAG_RESOLVE_FAILED: "this tag (!) is unknown; quote a value that begins with !",
  UNEXPECTED_TOKEN: "this is not allowed here",
}

/** YAML 1.2 has none: read as a plain key, one would send the values of a customer along with another's. */
const mergeKey = "merge keys (<<) are not read: write the keys out; an alias (*) can only be a whole value"

/** Far more than any honest mapping has; each key is compared with all known ones. */
const keysMax = 10_000

/** The members of a schema that may appear at one spot, as they are written in the file. */
const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  if (ast.encoding !== undefined) return membersOf(SchemaAST.toEncoded(ast))
  return SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]
}

type Members = Around["members"]

const keyed = (members: Members, key: string): Members =>
  members
    ?.filter(SchemaAST.isObjects)
    .map(
      (member) =>
        member.propertySignatures.find(({ name }) => name === key)?.type ?? member.indexSignatures[0]?.type,
    )
    .filter(Predicate.isNotUndefined)
    .flatMap(membersOf)

const listed = (members: Members): Members =>
  members
    ?.filter(SchemaAST.isArrays)
    .flatMap((member) => member.rest.slice(0, 1))
    .flatMap(membersOf)

/** Marked in the schema if a string must be written as one: nothing is forced to be a string. */
const isVerbatim = (ast: SchemaAST.AST): boolean => ast.annotations?.["verbatim"] === true

const readPlain = (scalar: Scalar, members: Members): unknown => {
  const { value, source } = scalar
  if (members === undefined) return value
  if (source === undefined || !(Predicate.isNumber(value) || Predicate.isBoolean(value))) return value
  if (members.some(isVerbatim)) return value
  const wants = (guard: (ast: SchemaAST.AST) => boolean) => members.some(guard)
  if (Predicate.isNumber(value) ? wants(SchemaAST.isNumber) : wants(SchemaAST.isBoolean)) return value
  if (members.length > 0 && wants(isText)) return source
  return Predicate.isNumber(value) && String(value) !== source ? source : value
}

interface Reading {
  readonly targets: ReadonlyMap<unknown, unknown>
  readonly replace: Replace
  readonly complain: (offset: number, message: string) => void
  nodes: number
  tooMuch: boolean
}

interface Around {
  /** Undefined if no schema guides the reading. */
  readonly members: ReadonlyArray<SchemaAST.AST> | undefined
  readonly depth: number
  /** Undefined for an item of a list, and at the top. */
  readonly key?: unknown
}

const keyText = (key: unknown): string =>
  isScalar(key) ? String(key.type === "PLAIN" ? (key.source ?? key.value) : key.value) : "?"

const offsetOf = (node: unknown): number | undefined =>
  isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined

/** An alias stands for the last node before it with its anchor. */
const targetsIn = (document: Document.Parsed): ReadonlyMap<unknown, unknown> => {
  const anchored = new Map<string, unknown>()
  const targets = new Map<unknown, unknown>()
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) targets.set(node, anchored.get(node.source))
      else if (node.anchor !== undefined) anchored.set(node.anchor, node)
    },
  })
  return targets
}

const targetOf = (reading: Reading, node: unknown, at: number): unknown => {
  const target = reading.targets.get(node)
  if (target === undefined) reading.complain(at, syntaxMessages["BAD_ALIAS"] ?? "")
  return target
}

const valueOf = (reading: Reading, written: unknown, around: Around): unknown => {
  const { members, depth } = around
  const at = offsetOf(written) ?? offsetOf(around.key) ?? 0
  const node = isAlias(written) ? targetOf(reading, written, at) : written
  reading.nodes += 1
  const nodesMax = reading.targets.size > 0 ? aliasedMax : plainMax
  if (!reading.tooMuch && (depth > depthMax || reading.nodes > nodesMax)) {
    reading.tooMuch = true
    const deep = "this is nested too deeply, or an alias (*) contains itself"
    const many =
      `up to here the file has more than ${nodesMax} values, ` + "counting what aliases (*) stand for"
    reading.complain(at, depth > depthMax ? deep : many)
  }
  if (reading.tooMuch) return undefined
  if (isScalar(node)) {
    const value = node.type === "PLAIN" ? readPlain(node, members) : node.value
    if (!Predicate.isString(value) || (members !== undefined && isNeverText(members))) return value
    return reading.replace(value, (message) => reading.complain(at, message))
  }
  if (isSeq(node)) return listOf(reading, node, around)
  return isMap(node) ? mappingOf(reading, node, around) : undefined
}

const listOf = (reading: Reading, { items }: YAMLSeq, { members, depth }: Around): unknown => {
  const item = { members: listed(members), depth: depth + 1 }
  return items.map((one) => valueOf(reading, one, item))
}

const mappingOf = (reading: Reading, node: YAMLMap, { members, depth }: Around): unknown => {
  const names = new Set<string>()
  const entries: Array<readonly [string, unknown]> = []
  for (const { key, value } of node.items) {
    const name = keyText(key)
    const keyAt = offsetOf(key) ?? 0
    if (names.has(name)) reading.complain(keyAt, "this key appears twice")
    if (isScalar(key) && key.type === "PLAIN" && name === "<<") {
      reading.complain(keyAt, mergeKey)
      continue
    }
    if (names.size >= keysMax) {
      reading.complain(keyAt, `this mapping has more than ${keysMax} keys`)
      break
    }
    names.add(name)
    const read = valueOf(reading, value, { members: keyed(members, name), depth: depth + 1, key })
    entries.push([name, value === null ? null : read])
  }
  return Object.fromEntries(entries)
}

/** What is at a path as far as it exists, and its key, which an item of a list does not have. */
const nodeAt = ({ targets }: Reading, root: unknown, path: Path): { key?: unknown; node: unknown } => {
  let found: { key?: unknown; node: unknown } = { node: root }
  for (const step of path) {
    const node = isAlias(found.node) ? targets.get(found.node) : found.node
    const pair = isMap(node) ? node.items.find(({ key }) => keyText(key) === step) : undefined
    const item = isSeq(node) && typeof step === "number" ? node.items[step] : undefined
    if (pair === undefined && item === undefined) break
    found = pair === undefined ? { node: item } : { key: pair.key, node: pair.value }
  }
  return found
}

export interface YamlText {
  /** Used only as a name. */
  readonly file: string
  readonly source: string
  /** Guides the reading; without one, every value has the type that YAML gives it. */
  readonly schema?: SchemaAST.AST
  readonly replace?: Replace
  readonly complain: (place: Place, message: string) => void
}

/** Its first key, if it is indented and whatever follows is not indented as far. */
const indentedStart = (source: string, { offset, code }: YamlProblem): number | undefined => {
  const [, before = "", indent = ""] = /^((?:[ \t]*(?:#.*)?\r?\n)*)( +)(?=[\w"'])/.exec(source) ?? []
  const at = before.length + indent.length
  const line = source.slice(source.lastIndexOf("\n", offset - 1) + 1, offset)
  const isLess = line.trim() === "" && line.length < indent.length && offset > at
  return code === "UNEXPECTED_TOKEN" && indent !== "" && isLess ? at : undefined
}

/** Later ones follow from it, as a rule: the first one is all that is told. */
const tellSyntax = (
  source: string,
  problem: YamlProblem,
  complain: (offset: number, message: string) => void,
): void => {
  const { offset, code = "", message } = problem
  const indented = indentedStart(source, problem)
  const what =
    indented === undefined
      ? (message ?? syntaxMessages[code] ?? `this is not YAML (${code})`)
      : "the first key is indented further than the lines after it: remove the spaces before it"
  complain(indented ?? offset, `${what}; the file was read no further`)
}

/** Reads a text within limits; reports its first syntax error, or else everything that is wrong. */
export const readYamlText = (input: YamlText): YamlDocument => {
  const { source, schema, replace = (text) => text } = input
  const lines = new LineCounter()
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file: input.file, line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const complain = (offset: number, message: string) => input.complain(place(offset), message)
  const unread: YamlDocument = { root: undefined, place: () => place(0), written: () => undefined }
  if (/\r./s.test(source) && !source.includes("\n")) {
    complain(0, "the lines of this file end with CR alone: save it with LF or CRLF as line ends")
    return unread
  }
  const { document, problems } = parseText(source, lines)
  const first = problems.toSorted((a, b) => a.offset - b.offset)[0]
  // What follows from it is noise.
  if (first !== undefined) tellSyntax(input.source, first, complain)
  if (document === undefined) return unread
  const reading: Reading = { replace, complain, targets: targetsIn(document), nodes: 0, tooMuch: false }
  const members = schema === undefined ? undefined : membersOf(schema)
  const root = valueOf(reading, document.contents, { members, depth: 0 })
  if (reading.tooMuch) return unread
  return {
    root: root ?? null,
    place: (path, at = "value") => {
      const { key, node } = nodeAt(reading, document.contents, path)
      const [keyAt, valueAt] = [offsetOf(key), offsetOf(node)]
      return place((at === "key" ? (keyAt ?? valueAt) : (valueAt ?? keyAt)) ?? 0)
    },
    written: (path) => {
      const { node } = nodeAt(reading, document.contents, path)
      return isScalar(node) && Predicate.isString(node.value) ? node.value : undefined
    },
  }
}

interface YamlProblem {
  readonly offset: number
  /** The parser's own code, or a message of ours; the parser's own may quote the file and its secrets. */
  readonly code?: string
  readonly message?: string
}

/** Without a document after a problem that makes the rest meaningless. */
interface Parsed {
  readonly document?: Document.Parsed
  readonly problems: ReadonlyArray<YamlProblem>
}

/** The library recurses for each level of nesting. */
const parseText = (source: string, lines: LineCounter): Parsed => {
  try {
    return parsedWithin(source, lines)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    return { problems: [{ offset: 0, message: "this is nested too deeply to be read" }] }
  }
}

// Keys are compared as they are read, in a set; the library's own comparison is quadratic.
const options = { prettyErrors: false, version: "1.2", uniqueKeys: false } as const

/** Token by token, so that no text takes more time and memory than the limits allow. */
const parsedWithin = (source: string, lines: LineCounter): Parsed => {
  const problems: Array<YamlProblem> = []
  const stop = (offset: number, message: string) => ({ problems: [...problems, { offset, message }] })
  const parser = new Parser(lines.addNewLine)
  const composer = new Composer(options)
  const documents: Array<Document.Parsed> = []
  let [tokens, directives] = [0, 0]
  let before = ""
  const take = (token: CST.Token): void => {
    if (token.type === "directive") directives += 1
    if (token.type === "error" || directives > directivesMax)
      problems.push({ offset: token.offset, code: "UNEXPECTED_TOKEN" })
    else documents.push(...composer.next(token))
  }
  lines.addNewLine(0)
  for (const lexeme of new Lexer().lex(source)) {
    for (const token of parser.next(lexeme)) take(token)
    if (problems.length > problemsMax) return { problems }
    if (lexeme.length > scalarMax) return stop(parser.offset - lexeme.length, tooLong)
    // After the mark of a plain or a block scalar, a quote is text.
    if (before !== CST.SCALAR && isUnclosed(lexeme))
      problems.push({ offset: parser.offset - lexeme.length, message: "this quote is never closed" })
    before = lexeme
    // The document's own token, a scalar and a pair of brackets may be on top.
    if (parser.stack.length > depthMax + 3) return stop(parser.offset, "this is nested too deeply")
    if (documents.length > 0) return stop(parser.offset, oneDocument)
    if (++tokens > tokensMax) return stop(parser.offset, tooMany)
  }
  for (const token of parser.end()) take(token)
  documents.push(...composer.end(true, source.length))
  const [document, second] = documents
  if (document === undefined || second !== undefined) return stop(second?.range?.[0] ?? 0, oneDocument)
  for (const { code, pos } of [...document.errors, ...document.warnings])
    problems.push({ offset: pos[0], code })
  return problems.length > 0 ? { problems } : { document, problems }
}

const isUnclosed = (lexeme: string): boolean => {
  const quote = lexeme.charAt(0)
  return (quote === '"' || quote === "'") && (lexeme.length < 2 || !lexeme.endsWith(quote))
}

const oneDocument = "a file must contain a single document"
const tooLong = `this is longer than ${scalarMax} characters; is a quote missing?`
const tooMany = "the file contains more than can be read at once: put the customers into a csv or ndjson file"

// Small YAML files: one that was only partly understood is never used.

/** One line each, as `file:line:column: message`. */
export const problemLines = (problems: ReadonlyArray<Problem>): string =>
  problems.map(renderProblem).join("\n")

const unknownKey = (key: string, known: ReadonlyArray<string>): string =>
  `unknown key \`${key}\`${suggestion(key, known, Infinity)}`

export interface YamlKind<A> {
  /** `the faults file` */
  readonly named: string
  readonly schema: Schema.ConstraintDecoder<A>
  readonly wordsFor?: WordsFor
  /** Checks that a schema of single values cannot express. */
  readonly check?: (value: A) => ReadonlyArray<Finding>
  /** What the schema is given for the value that YAML reads. */
  readonly prepare?: (root: unknown) => unknown
}

/** Judges the text of a file; `file` is only used as a name. */
export const decodeYaml = <A>(
  { schema, wordsFor, check = () => [], prepare = (root) => root }: YamlKind<A>,
  file: string,
  source: string,
): Result.Result<A, ReadonlyArray<Problem>> => {
  const problems: Array<Problem> = []
  const complain = (place: Place, message: string) => problems.push({ ...place, message })
  const document = readYamlText({ file, source, complain })
  if (problems.length === 0) {
    const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
    const decoded = decode(prepare(document.root))
    const words = { ...(wordsFor === undefined ? {} : { wordsFor }), unknownKey, missingAt: "value" } as const
    const found = Result.isSuccess(decoded)
      ? check(decoded.success)
      : findingsOf(decoded.failure.issue, [], document.root, words)
    if (Result.isSuccess(decoded) && found.length === 0) return Result.succeed(decoded.success)
    for (const { path, at, message } of found) complain(document.place(path, at), message)
  }
  return Result.fail(problems.toSorted((a, b) => a.line - b.line || a.column - b.column))
}

/** Larger than any honest file. */
const bytesMax = 1_000_000

export const readYaml = <A>(kind: YamlKind<A>, path: string): Effect.Effect<A, ReadonlyArray<Problem>> => {
  const unreadable = (message: string): ReadonlyArray<Problem> => [{ ...topOf(path), message }]
  return readTextFile(path, bytesMax).pipe(
    Effect.mapError((reason) => unreadable(`${kind.named} cannot be read (${reason})`)),
    Effect.flatMap((source) => Effect.fromResult(decodeYaml(kind, path, source))),
  )
}
