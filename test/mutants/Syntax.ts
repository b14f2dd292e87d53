/**
 * A source as a tree, as far as planting needs one: nodes with their place in the text, without types. Whatever only
 * the type checker reads is left out of the walk, so that no mutant and no probe ever lands there.
 */
import { parseAst } from "rolldown/parseAst"

export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

export const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

export const nodeIn = (node: Node, field: string): Node | undefined => {
  const value = node[field]
  return isNode(value) ? value : undefined
}

export const nodesIn = (node: Node, field: string): ReadonlyArray<Node> => {
  const value = node[field]
  return Array.isArray(value) ? value.filter(isNode) : []
}

/** Throws where the text is no TypeScript. */
export const parseSource = (text: string): Node => {
  const program: unknown = parseAst(text, { lang: "ts", sourceType: "module" })
  if (!isNode(program)) throw new Error("the parser gave no program")
  return program
}

/** What stands around an expression for the type checker alone. */
const typedExpressions = new Set(["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression"])
const unseen = new Set([
  "source",
  "typeAnnotation",
  "typeParameters",
  "typeArguments",
  "superTypeArguments",
  "returnType",
  "implements",
])
const leaves = new Set(["ImportDeclaration", "ExportAllDeclaration"])

/** A name that a key or a member is known by; a computed one is an expression like any other. */
const isName = (node: Node, field: string): boolean =>
  (field === "key" || field === "property") && node["computed"] === false

const childrenOf = (node: Node): ReadonlyArray<Node> => {
  if (leaves.has(node.type)) return []
  if (node.type.startsWith("TS")) {
    const inner = typedExpressions.has(node.type) ? nodeIn(node, "expression") : undefined
    return inner === undefined ? [] : [inner]
  }
  return Object.entries(node).flatMap(([field, value]) => {
    if (unseen.has(field) || isName(node, field)) return []
    return Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : []
  })
}

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"])
export const isFunction = ({ type }: Node): boolean => functions.has(type)

/** Each node with the nodes around it, the nearest first, in the order of the text. */
export const walk = (
  node: Node,
  see: (node: Node, around: ReadonlyArray<Node>) => void,
  around: ReadonlyArray<Node> = [],
): void => {
  see(node, around)
  const within = [node, ...around]
  for (const child of childrenOf(node)) walk(child, see, within)
}

/** The bodies of all functions that run, in the order of the text: a function is known by its place here. */
export const functionBodies = (program: Node): ReadonlyArray<Node> => {
  const bodies: Array<Node> = []
  walk(program, (node) => {
    const body = isFunction(node) ? nodeIn(node, "body") : undefined
    if (body !== undefined) bodies.push(body)
  })
  return bodies.toSorted((a, b) => a.start - b.start || b.end - a.end)
}
