/**
 * A job file's text as plain values whose places are still known. The schema steers the reading: where it
 * wants a text, a plain scalar is its source text (`65e0` and `0042` are ids, not numbers); where anything
 * goes, a number stays a number only when nothing of its spelling would be lost. `${NAME}` is replaced from
 * the environment.
 */
import { Predicate, SchemaAST } from "effect"
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from "yaml"
import type { Document, Node, Scalar } from "yaml"
import type { Findings, Place } from "./Problem.ts"

type Path = ReadonlyArray<PropertyKey>

export interface JobDocument {
  /** Undefined when the text could not be read; the findings say why. */
  readonly root: unknown
  /**
   * Where the value at a path stands; its key with `at: "key"`. What is missing stands where its parent
   * stands.
   */
  readonly place: (path: Path, at?: "key" | "value") => Place
}

/** Far above any honest file; what stops an alias that contains itself, or one of aliases of aliases. */
const depthMax = 64
const nodesMax = 5_000_000

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The variables a text asks the environment for. */
export const variablesIn = (source: string): ReadonlySet<string> =>
  new Set([...source.matchAll(variable)].map((match) => match[1] ?? ""))

/**
 * The parser's own messages may quote the file, which may hold secrets: each of these says the same without.
 */
const syntaxMessages: Readonly<Record<string, string>> = {
  BAD_ALIAS: "this alias (*) has no anchor (&) before it; put a value that begins with * in quotes",
  BAD_DQ_ESCAPE: "this escape is unknown in double quotes; use single quotes",
  BAD_INDENT: "the indentation is wrong here",
  BAD_SCALAR_START: "a value cannot begin with this character; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: "this cannot be a key; is the indentation right?",
  DUPLICATE_KEY: "this key is there twice",
  MISSING_CHAR: "something is missing here: a colon, a comma, a quote or a bracket",
  MULTILINE_IMPLICIT_KEY: "a key must be on one line; is a colon or a quote missing?",
  MULTIPLE_DOCS: "a job file holds one document only",
  TAB_AS_INDENT: "tabs cannot indent; use spaces",
  TAG_RESOLVE_FAILED: "this tag (!) is unknown; put a value that begins with ! in quotes",
  UNEXPECTED_TOKEN: "this cannot stand here",
}

const parseText = (file: string, source: string, findings: Findings) => {
  const lines = new LineCounter()
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  try {
    const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, version: "1.2" })
    for (const { code, pos } of [...document.errors, ...document.warnings]) {
      findings.error(place(pos[0]), syntaxMessages[code] ?? `this is not YAML (${code})`)
    }
    const readable = document.errors.every(({ code }) => code === "DUPLICATE_KEY")
    return { document: readable ? document : undefined, place }
  } catch {
    findings.error({ file, line: 1, column: 1 }, "this cannot be read as YAML: it is nested too deeply")
    return { document: undefined, place }
  }
}

/** The members of a schema that may stand at one spot. */
const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]

const keyed = (members: ReadonlyArray<SchemaAST.AST>, key: string): ReadonlyArray<SchemaAST.AST> =>
  members
    .filter(SchemaAST.isObjects)
    .map(
      (member) =>
        member.propertySignatures.find(({ name }) => name === key)?.type ?? member.indexSignatures[0]?.type,
    )
    .filter(Predicate.isNotUndefined)
    .flatMap(membersOf)

const listed = (members: ReadonlyArray<SchemaAST.AST>): ReadonlyArray<SchemaAST.AST> =>
  members
    .filter(SchemaAST.isArrays)
    .flatMap((member) => member.rest.slice(0, 1))
    .flatMap(membersOf)

/** Marked in the schema where a text must have been written as one: nothing is read as a text by force. */
const isVerbatim = (ast: SchemaAST.AST): boolean => ast.annotations?.["verbatim"] === true

const readPlain = (scalar: Scalar, members: ReadonlyArray<SchemaAST.AST>): unknown => {
  const { value, source } = scalar
  if (source === undefined || !(Predicate.isNumber(value) || Predicate.isBoolean(value))) return value
  if (members.some(isVerbatim)) return value
  const wants = (guard: (ast: SchemaAST.AST) => boolean) => members.some(guard)
  if (Predicate.isNumber(value) ? wants(SchemaAST.isNumber) : wants(SchemaAST.isBoolean)) return value
  const text = (ast: SchemaAST.AST) => SchemaAST.isString(ast) || SchemaAST.isLiteral(ast)
  if (members.length > 0 && wants(text)) return source
  return Predicate.isNumber(value) && String(value) !== source ? source : value
}

interface Reading {
  readonly document: Document.Parsed
  readonly environment: ReadonlyMap<string, string>
  readonly complain: (node: Node, message: string) => void
  nodes: number
  tooDeep: boolean
}

/** A command keeps its `${NAME}`: the shell replaces it, and the value never stands in the command's text. */
const substitute = (reading: Reading, node: Node, source: string): string => {
  if (!source.includes("${") || source.startsWith("exec:")) return source
  return source.replace(variable, (whole, name: string) => {
    const value = reading.environment.get(name)
    if (value === undefined)
      reading.complain(node, `the environment has no variable ${name}, or an empty one`)
    return value ?? whole
  })
}

const convert = (
  reading: Reading,
  node: unknown,
  members: ReadonlyArray<SchemaAST.AST>,
  depth: number,
): unknown => {
  reading.nodes += 1
  reading.tooDeep ||= depth > depthMax || reading.nodes > nodesMax
  if (reading.tooDeep) return undefined
  if (isAlias(node)) return convert(reading, node.resolve(reading.document), members, depth + 1)
  if (isScalar(node)) {
    const value = node.type === "PLAIN" ? readPlain(node, members) : node.value
    return Predicate.isString(value) ? substitute(reading, node, value) : value
  }
  if (isSeq(node)) {
    const items = listed(members)
    return node.items.map((item) => convert(reading, item, items, depth + 1))
  }
  if (!isMap(node)) return undefined
  return Object.fromEntries(
    node.items.map(({ key, value }) => {
      const name = keyText(key)
      return [name, value === null ? null : convert(reading, value, keyed(members, name), depth + 1)]
    }),
  )
}

const keyText = (key: unknown): string =>
  isScalar(key) ? String(key.type === "PLAIN" ? (key.source ?? key.value) : key.value) : "?"

/** Follows a path as far as it exists. */
const locate = (document: Document.Parsed, path: Path) => {
  let node: unknown = document.contents
  let key: unknown
  for (const step of path) {
    const inner: unknown = isAlias(node) ? node.resolve(document) : node
    if (isMap(inner)) {
      const pair = inner.items.find((item) => keyText(item.key) === step)
      if (pair === undefined) return { node: inner, key }
      key = pair.key
      node = pair.value ?? pair.key
    } else if (isSeq(inner)) {
      const item = Predicate.isNumber(step) ? inner.items[step] : undefined
      if (item === undefined) return { node: inner, key }
      key = item
      node = item
    } else break
  }
  return { node, key: key ?? node }
}

const offsetOf = (node: unknown): number | undefined =>
  isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined

/** Reads a job file's text along its schema; whatever is wrong with it goes to the findings. */
export const readDocument = (input: {
  readonly file: string
  readonly source: string
  readonly schema: SchemaAST.AST
  readonly environment: ReadonlyMap<string, string>
  readonly findings: Findings
}): JobDocument => {
  const { document, place } = parseText(input.file, input.source, input.findings)
  if (document === undefined) return { root: undefined, place: () => place(0) }
  const reading: Reading = {
    document,
    environment: input.environment,
    complain: (node, message) => input.findings.error(place(offsetOf(node) ?? 0), message),
    nodes: 0,
    tooDeep: false,
  }
  const root = convert(reading, document.contents, membersOf(input.schema), 0)
  if (reading.tooDeep) {
    const message = "the file is nested too deeply, or an alias (*) of it contains itself"
    input.findings.error(place(0), message)
  }
  return {
    root: reading.tooDeep ? undefined : (root ?? null),
    place: (path, at = "value") => {
      const found = locate(document, path)
      return place(offsetOf(at === "key" ? found.key : found.node) ?? offsetOf(found.key) ?? 0)
    },
  }
}
