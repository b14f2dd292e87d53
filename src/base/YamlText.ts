/**
 * The text of a YAML file as plain values whose places are still known, within limits; no error repeats what
 * the file contains. Where a schema expects a string, a plain scalar is its source text (`65e0` and `0042`
 * are ids); where any type is allowed, a number stays one only if its spelling can be restored.
 */
import { Effect, Predicate, Result, Schema, SchemaAST } from "effect"
import { LineCounter, isAlias, isMap, isScalar, isSeq, visit } from "yaml"
import type { Document, Scalar, YAMLMap, YAMLSeq } from "yaml"
import { Problem, readTextFile, renderProblem, topOf, type Place } from "./DurableFile.ts"
import { findingsOf, isNeverText, isText, type Finding, type Path, type WordsFor } from "./Schemas.ts"
import { suggestion } from "./Text.ts"
import { YamlSpots, depthMax, mayHaveAnchors, oneDocument, readInPieces } from "./YamlPieces.ts"
import type { OnPiece, ReadText, YamlProblem } from "./YamlPieces.ts"

export interface YamlDocument {
  /** Undefined if the text could not be read; the problems say why. */
  readonly root: unknown
  /** Where the value at a path is; its key with `at: "key"`. A missing value is placed at its parent. */
  readonly place: (path: Path, at?: "key" | "value") => Place
}

/** Returns the replacement for a string of the file, and may report a problem with it. */
export type Replace = (text: string, complain: (message: string) => void) => string

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
  DUPLICATE_KEY: "this key appears twice",
  MISSING_CHAR: "something is missing here: a colon, a comma, a quote or a bracket",
  MULTILINE_IMPLICIT_KEY: "a key must be on one line; is a colon or a quote missing?",
  MULTIPLE_DOCS: oneDocument,
  TAB_AS_INDENT: "tabs are not allowed for indentation; use spaces",
  TAG_RESOLVE_FAILED: "this tag (!) is unknown; quote a value that begins with !",
  UNEXPECTED_TOKEN: "this is not allowed here",
}

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
  readonly spots: YamlSpots
  /** Items that were read before their list, by the offset of its key. */
  readonly pieces: ReadonlyMap<number, Items>
  nodes: number
  tooMuch: boolean
}

interface Items {
  readonly values: Array<unknown>
  readonly spots: Array<number>
}

interface Around {
  /** Undefined if no schema guides the reading. */
  readonly members: ReadonlyArray<SchemaAST.AST> | undefined
  readonly depth: number
  readonly name?: string
  /** Undefined for an item of a list, and at the top. */
  readonly key?: unknown
}

const keyText = (key: unknown): string =>
  isScalar(key) ? String(key.type === "PLAIN" ? (key.source ?? key.value) : key.value) : "?"

const offsetOf = (node: unknown): number | undefined =>
  isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined

const none: ReadonlyMap<unknown, unknown> = new Map()

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

/** Adds a node: its value goes to `into`, with the number of its spot. */
const take = (reading: Reading, node: unknown, around: Around, into: Items): void => {
  const keyAt = offsetOf(around.key)
  const at = offsetOf(node) ?? keyAt ?? 0
  const inner: Items = { values: [], spots: [] }
  const content = isAlias(node) ? targetOf(reading, node, at) : node
  into.values.push(valueOf(reading, content, at, around, inner))
  const isNested = isMap(content) || isSeq(content)
  into.spots.push(
    reading.spots.add({ at, keyAt: keyAt ?? at }, around.name, isNested ? inner.spots : undefined),
  )
}

const valueOf = (reading: Reading, node: unknown, at: number, around: Around, inner: Items): unknown => {
  const { members, depth } = around
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
  if (isSeq(node)) return listOf(reading, node, around, inner)
  return isMap(node) ? mappingOf(reading, node, around, inner) : undefined
}

const listOf = (reading: Reading, node: YAMLSeq, { members, depth, key }: Around, inner: Items): unknown => {
  const before = depth === 1 ? reading.pieces.get(offsetOf(key) ?? -1) : undefined
  const items = before ?? inner
  const item = { members: listed(members), depth: depth + 1 }
  for (const one of node.items) take(reading, one, item, items)
  for (const spot of before?.spots ?? []) inner.spots.push(spot)
  return items.values
}

const mappingOf = (reading: Reading, node: YAMLMap, { members, depth }: Around, inner: Items): unknown => {
  const names = new Set<string>()
  const entries: Array<readonly [string, unknown]> = []
  for (const { key, value } of node.items) {
    const name = keyText(key)
    const keyAt = offsetOf(key) ?? 0
    if (names.has(name)) reading.complain(keyAt, "this key appears twice")
    if (names.size >= keysMax) {
      reading.complain(keyAt, `this mapping has more than ${keysMax} keys`)
      break
    }
    names.add(name)
    const around = { members: keyed(members, name), depth: depth + 1, name, key }
    take(reading, value, around, inner)
    entries.push([name, value === null ? null : inner.values.at(-1)])
  }
  return Object.fromEntries(entries)
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

/** Reads a text in bounded memory; reports its first syntax error, or else everything that is wrong. */
export const readYamlText = (input: YamlText): YamlDocument => {
  const lines = new LineCounter()
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file: input.file, line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const complain = (offset: number, message: string) => input.complain(place(offset), message)
  const spots = new YamlSpots()
  const pieces = new Map<number, Items>()
  const members = input.schema === undefined ? undefined : membersOf(input.schema)
  const { replace = (text) => text } = input
  const reading = { replace, complain, spots, pieces, targets: none, nodes: 0, tooMuch: false }
  const onPiece: OnPiece = (keyOffset, name, items) => {
    const list = pieces.get(keyOffset) ?? { values: [], spots: [] }
    pieces.set(keyOffset, list)
    const around = { members: listed(keyed(members, name)), depth: 2 }
    for (const item of items) take(reading, item, around, list)
    return !reading.tooMuch
  }
  const unread: YamlDocument = { root: undefined, place: () => place(0) }
  if (/\r./s.test(input.source) && !input.source.includes("\n")) {
    complain(0, "the lines of this file end with CR alone: save it with LF or CRLF as line ends")
    return unread
  }
  const { document, problems } = readText(input.source, lines, onPiece)
  const first = problems.toSorted((a, b) => a.offset - b.offset)[0]
  // What follows from it is noise.
  if (first !== undefined) tellSyntax(input.source, first, complain)
  if (document === undefined) return unread
  const root: Items = { values: [], spots: [] }
  const targets = mayHaveAnchors(input.source) ? targetsIn(document) : none
  const whole: Reading = { ...reading, targets }
  take(whole, document.contents, { members, depth: 0 }, root)
  if (whole.tooMuch) return unread
  return {
    root: root.values[0] ?? null,
    place: (path, at = "value") => {
      const found = spots.find(root.spots[0] ?? 0, path)
      return place(at === "key" ? found.keyAt : found.at)
    },
  }
}

/** The library recurses for each level of nesting. */
const readText = (source: string, lines: LineCounter, onPiece: OnPiece): ReadText => {
  try {
    return readInPieces(source, lines, onPiece)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    return { document: undefined, problems: [{ offset: 0, message: "this is nested too deeply to be read" }] }
  }
}

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
