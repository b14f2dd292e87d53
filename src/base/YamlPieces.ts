/**
 * YAML of any size in bounded memory: the items of a long list under a key of the file's outermost mapping
 * are returned as they are read, dozens at a time, instead of being in memory as tokens, nodes and values
 * all at once. Anything that cannot be split in this way is read whole, within limits.
 */
import { CST, Composer, Lexer, Parser, isSeq } from "yaml"
import type { Document, LineCounter, ParsedNode } from "yaml"
import type { Path } from "./Schemas.ts"

/** Far more than any honest file has; each level of the file is a level of every fold over it. */
export const depthMax = 64
/** A piece is taken when this many of a list's items are complete. */
const itemsMin = 64
/** How often this is checked, in lexical tokens. */
const lookEvery = 1_024
/** Of one value, key or comment. */
const scalarMax = 1_000_000
/** Lines that begin with %; nobody needs any. */
const directivesMax = 16
/** After this many, the rest of a text means nothing. */
const problemsMax = 1_000
/** How many may be in memory at once; each takes some 250 bytes as token and node. */
const tokensMax = 4_000_000

export interface YamlProblem {
  readonly offset: number
  /** The parser's own code, or a message of ours; the parser's own may quote the file and its secrets. */
  readonly code?: string
  readonly message?: string
}

export interface ReadText {
  /** Undefined after a problem that makes the rest meaningless. */
  readonly document: Document.Parsed | undefined
  readonly problems: ReadonlyArray<YamlProblem>
}

/** Items of the list whose key is at `keyOffset`; the document has only the rest. False ends the reading. */
export type OnPiece = (keyOffset: number, keyText: string, items: ReadonlyArray<ParsedNode>) => boolean

// Keys are compared as they are read, in a set; the library's own comparison is quadratic.
const options = { prettyErrors: false, version: "1.2", uniqueKeys: false } as const

const problemsOf = ({ errors, warnings }: Document.Parsed): ReadonlyArray<YamlProblem> =>
  [...errors, ...warnings].map(({ code, pos }) => ({ offset: pos[0], code }))

/** A list that is being read, with its key, if there is one in the outermost mapping. */
const openList = ({ stack }: Parser) => {
  const [outermost, mapping, list] = stack
  if (outermost?.type !== "document" || mapping?.type !== "block-map" || list?.type !== "block-seq")
    return undefined
  const key = mapping.items.at(-1)?.key
  return key?.type === "scalar" ? { key, list } : undefined
}

/** Complete items as a document of their own; the last two still belong with what follows. */
const takePiece = (list: CST.BlockSequence): CST.Document => ({
  type: "document",
  offset: list.offset,
  start: [],
  value: { ...list, items: list.items.splice(0, list.items.length - 2) },
})

export const mayHaveAnchors = (source: string): boolean => /(?:^|[\s,[{:-])&/m.test(source)

/** Anchors may be used from anywhere, and directives apply to the whole file. */
const isWhole = (source: string): boolean => mayHaveAnchors(source) || /^%/m.test(source)

export const oneDocument = "a file must contain a single document"

/** Throws the library's own errors: a stack overflow. */
export const readInPieces = (source: string, lines: LineCounter, onPiece: OnPiece): ReadText => {
  const problems: Array<YamlProblem> = []
  const stop = (offset: number, message: string): ReadText => ({
    document: undefined,
    problems: [...problems, { offset, message }],
  })
  const canCut = !isWhole(source)
  const parser = new Parser(lines.addNewLine)
  const composer = new Composer(options)
  const documents: Array<Document.Parsed> = []
  let [tokens, held, directives] = [0, 0, 0]
  let before = ""
  const take = (token: CST.Token): void => {
    if (token.type === "directive") directives += 1
    if (token.type === "error" || directives > directivesMax)
      problems.push({ offset: token.offset, code: "UNEXPECTED_TOKEN" })
    else documents.push(...composer.next(token))
  }
  const cut = (): boolean => {
    const { key, list } = openList(parser) ?? {}
    if (key === undefined || list === undefined || list.items.length < itemsMin) return true
    held = 0
    for (const piece of new Composer(options).compose([takePiece(list)])) {
      problems.push(...problemsOf(piece))
      const { contents } = piece
      if (isSeq<ParsedNode>(contents) && !onPiece(key.offset, key.source, contents.items)) return false
    }
    return true
  }
  lines.addNewLine(0)
  for (const lexeme of new Lexer().lex(source)) {
    for (const token of parser.next(lexeme)) take(token)
    if (problems.length > problemsMax) return { document: undefined, problems }
    if (lexeme.length > scalarMax) return stop(parser.offset - lexeme.length, tooLong)
    // After the mark of a plain or a block scalar, a quote is text.
    if (before !== CST.SCALAR && isUnclosed(lexeme))
      problems.push({ offset: parser.offset - lexeme.length, message: "this quote is never closed" })
    before = lexeme
    // The document's own token, a scalar and a pair of brackets may be on top.
    if (parser.stack.length > depthMax + 3) return stop(parser.offset, "this is nested too deeply")
    if (documents.length > 0) return stop(parser.offset, oneDocument)
    if (++held > tokensMax) return stop(parser.offset, tooMuch)
    if (canCut && ++tokens % lookEvery === 0 && !cut()) return { document: undefined, problems }
  }
  for (const token of parser.end()) take(token)
  documents.push(...composer.end(true, source.length))
  const [document, second] = documents
  if (document === undefined || second !== undefined) return stop(second?.range?.[0] ?? 0, oneDocument)
  problems.push(...problemsOf(document))
  return { document: document.errors.length > 0 || problems.length > 0 ? undefined : document, problems }
}

const isUnclosed = (lexeme: string): boolean => {
  const quote = lexeme.charAt(0)
  return (quote === '"' || quote === "'") && (lexeme.length < 2 || !lexeme.endsWith(quote))
}

const tooLong = `this is longer than ${scalarMax} characters; is a quote missing?`

const tooMuch =
  "up to here the file contains more than can be read at once: write the customers as a list, one per line " +
  "beginning with -, or put them into a csv or ndjson file"

// Where each value of a YAML file is, once its nodes are gone, found by its path. Four arrays instead of an
// object per node, because a file may have millions of them.

/** Larger mappings get an index, which is built when it is first needed. */
const indexedMin = 32

interface Spot {
  readonly at: number
  /** For an item of a list, the item's own offset. */
  readonly keyAt: number
}

export class YamlSpots {
  private readonly at: Array<number> = []
  private readonly keyAt: Array<number> = []
  private readonly names: Array<string | undefined> = []
  private readonly children: Array<Array<number> | undefined> = []
  private readonly indexes = new Map<number, ReadonlyMap<string | undefined, number>>()
  private readonly shared = new Map<string, string>()

  /** Adds a value, with the numbers of its members if it is a mapping or a list; returns its number. */
  add(spot: Spot, name: string | undefined, children?: Array<number>): number {
    this.at.push(spot.at)
    this.keyAt.push(spot.keyAt)
    this.names.push(name === undefined ? undefined : this.share(name))
    return this.children.push(children) - 1
  }

  /** Follows a path from a value as far as it exists. */
  find(from: number, path: Path): Spot {
    let found = from
    for (const step of path) {
      const next = this.child(found, step)
      if (next === undefined) return { at: this.at[found] ?? 0, keyAt: this.keyAt[found] ?? 0 }
      found = next
    }
    return { at: this.at[found] ?? 0, keyAt: this.keyAt[found] ?? 0 }
  }

  private child(parent: number, step: PropertyKey): number | undefined {
    const children = this.children[parent]
    if (children === undefined) return undefined
    if (typeof step === "number") return children[step]
    if (children.length < indexedMin) return children.find((child) => this.names[child] === step)
    return this.indexOf(parent, children).get(String(step))
  }

  private indexOf(parent: number, children: ReadonlyArray<number>) {
    const known = this.indexes.get(parent)
    if (known !== undefined) return known
    // If a key appears twice, the first is found.
    const index = new Map(children.toReversed().map((child) => [this.names[child], child]))
    this.indexes.set(parent, index)
    return index
  }

  private share(name: string): string {
    const known = this.shared.get(name)
    if (known === undefined) this.shared.set(name, name)
    return known ?? name
  }
}
