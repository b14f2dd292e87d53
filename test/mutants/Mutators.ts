/**
 * The small changes that a test should notice: each mutator looks at one node and says what may stand in its place.
 * Pure; whether a change can be planted, and what notices it, is decided elsewhere.
 */
import { isFunction, nodeIn, nodesIn, walk, type Node } from "./Syntax.ts"

export interface Edit {
  readonly start: number
  readonly end: number
  readonly by: string
}

type Mutator = (node: Node, text: string, around: ReadonlyArray<Node>) => ReadonlyArray<Edit>

const instead = ({ start, end }: Pick<Node, "start" | "end">, by: string): Edit => ({ start, end, by })
const textOf = (text: string, { start, end }: Node): string => text.slice(start, end)
/** An operand that stands alone now: its own parentheses are outside of its node. */
const operandOf = (text: string, node: Node): string =>
  /Binary|Logical|Conditional|Arrow|Assignment|Sequence|Yield|Await/.test(node.type)
    ? `(${textOf(text, node)})`
    : textOf(text, node)

/** The operator between two operands; nothing but blanks and comments stands beside it. */
const operator = (node: Node, text: string, by: string): ReadonlyArray<Edit> => {
  const left = nodeIn(node, "left")
  const word = String(node["operator"])
  if (left === undefined) return []
  const start = text.indexOf(word, left.end)
  return [{ start, end: start + word.length, by }]
}

const forced: Mutator = (node) => {
  const test = nodeIn(node, "test")
  if (test === undefined || test.type === "Literal" || node.type === "SwitchCase") return []
  const isLoop = node.type !== "IfStatement" && node.type !== "ConditionalExpression"
  return isLoop ? [instead(test, "false")] : [instead(test, "true"), instead(test, "false")]
}

const comparisons: Readonly<Record<string, ReadonlyArray<string>>> = {
  "===": ["!=="],
  "!==": ["==="],
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
}
const compared: Mutator = (node, text) =>
  node.type === "BinaryExpression"
    ? (comparisons[String(node["operator"])] ?? []).flatMap((by) => operator(node, text, by))
    : []

const calculations: Readonly<Record<string, string>> = {
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "+=": "-=",
  "-=": "+=",
}
const isText = (node: Node | undefined): boolean =>
  node?.type === "TemplateLiteral" || (node?.type === "Literal" && typeof node["value"] === "string")
const calculated: Mutator = (node, text) => {
  if (node.type === "UpdateExpression") {
    const by = node["operator"] === "++" ? "--" : "++"
    return [instead(node, textOf(text, node).replace(String(node["operator"]), by))]
  }
  const by = calculations[String(node["operator"])]
  const isSum = node.type === "BinaryExpression" || node.type === "AssignmentExpression"
  if (by === undefined || !isSum || isText(nodeIn(node, "left")) || isText(nodeIn(node, "right"))) return []
  return operator(node, text, by)
}

const combined: Mutator = (node, text) => {
  if (node.type !== "LogicalExpression") return []
  const [left, right] = [nodeIn(node, "left"), nodeIn(node, "right")]
  if (node["operator"] !== "??" || left === undefined || right === undefined)
    return operator(node, text, node["operator"] === "&&" ? "||" : "&&")
  return [instead(node, operandOf(text, left)), instead(node, operandOf(text, right))]
}

const negated: Mutator = (node, text) => {
  const argument = nodeIn(node, "argument")
  const isNot = node.type === "UnaryExpression" && node["operator"] === "!"
  return isNot && argument !== undefined ? [instead(node, operandOf(text, argument))] : []
}

/** Names for traces and services: nothing behaves by them. */
const isNamed = (around: ReadonlyArray<Node>, text: string): boolean => {
  const [call] = around
  const callee = call?.type === "CallExpression" ? nodeIn(call, "callee") : undefined
  if (callee !== undefined && textOf(text, callee) === "Effect.fn") return true
  return around.some(
    (one, index) => one.type === "ClassDeclaration" && nodeIn(one, "superClass") === around[index - 1],
  )
}
const literal: Mutator = (node, text, around) => {
  if (node.type !== "Literal" || around[0]?.type === "ExpressionStatement") return []
  const { value } = node
  if (typeof value === "boolean") return [instead(node, value ? "false" : "true")]
  if (typeof value === "number") return [instead(node, String(value + 1))]
  if (typeof value !== "string" || isNamed(around, text)) return []
  return [instead(node, value === "" ? '"mutant"' : '""')]
}

const template: Mutator = (node, text, around) =>
  node.type === "TemplateLiteral" &&
  textOf(text, node) !== "``" &&
  around[0]?.type !== "TaggedTemplateExpression"
    ? [instead(node, "``")]
    : []

const list: Mutator = (node) =>
  node.type === "ArrayExpression"
    ? [instead(node, nodesIn(node, "elements").length > 0 ? "[]" : '["mutant"]')]
    : []

const spread: Mutator = (node, _text, around) => {
  if (node.type !== "SpreadElement") return []
  return [instead(node, around[0]?.type === "ObjectExpression" ? "...{}" : "...[]")]
}

const removed: Mutator = (node) => {
  const isDirective = typeof node["directive"] === "string"
  return (node.type === "ExpressionStatement" && !isDirective) || node.type === "ThrowStatement"
    ? [instead(node, ";")]
    : []
}

const returned: Mutator = (node) => {
  const argument = nodeIn(node, "argument")
  if (node.type === "ReturnStatement" && argument !== undefined) return [instead(argument, "undefined")]
  const body = isFunction(node) ? nodeIn(node, "body") : undefined
  if (body === undefined) return []
  if (body.type !== "BlockStatement") return [instead(body, "undefined")]
  return nodesIn(body, "body").length > 0 ? [instead(body, "{}")] : []
}

const unchained: Mutator = (node, text) => {
  const before = nodeIn(node, "object") ?? nodeIn(node, "callee")
  if (node["optional"] !== true || before === undefined) return []
  const start = text.indexOf("?.", before.end)
  const isMember = node.type === "MemberExpression" && node["computed"] === false
  return [{ start, end: start + 2, by: isMember ? "." : "" }]
}

const memberName = (node: Node | undefined): { readonly of: Node; readonly name: Node } | undefined => {
  if (node?.type !== "MemberExpression" || node["computed"] === true) return undefined
  const [of, name] = [nodeIn(node, "object"), nodeIn(node, "property")]
  return of === undefined || name === undefined ? undefined : { of, name }
}

/** What guards an effect, alone (`Effect.orDie`) or with more to say (`Effect.catch(effect, handler)`). */
const aloneGuards = "uninterruptible orDie ignore option result".split(" ")
const fullGuards =
  "catch catchTag catchTags catchCause catchDefect ensuring onExit onInterrupt onError " +
  "retry repeat timeout timeoutOption mapError tap tapError forkScoped raceFirst"
const guards = new Set([...aloneGuards, ...fullGuards.split(" ")])
const guardName = (node: Node | undefined, text: string): string | undefined => {
  const member = memberName(node)
  if (member === undefined || textOf(text, member.of) !== "Effect") return undefined
  const name = textOf(text, member.name)
  return guards.has(name) ? name : undefined
}
/** A guard around its effect gives way to the effect; one in a pipe or behind a generator goes with its comma. */
const unguarded: Mutator = (node, text) => {
  if (node.type !== "CallExpression") return []
  const given = nodesIn(node, "arguments")
  const [first] = given
  const guard = guardName(nodeIn(node, "callee"), text)
  if (first !== undefined && guard !== undefined && (given.length > 1 || aloneGuards.includes(guard)))
    return [instead(node, textOf(text, first))]
  return given.flatMap((argument, index) => {
    const named = argument.type === "CallExpression" ? nodeIn(argument, "callee") : argument
    const before = given[index - 1]
    return before !== undefined && guardName(named, text) !== undefined
      ? [{ start: before.end, end: argument.end, by: "" }]
      : []
  })
}

const swapped: Readonly<Record<string, string>> = {
  some: "every",
  every: "some",
  startsWith: "endsWith",
  endsWith: "startsWith",
  min: "max",
  max: "min",
  toUpperCase: "toLowerCase",
  toLowerCase: "toUpperCase",
}
const dropped = new Set(["filter", "toSorted", "toReversed", "reverse", "slice", "trim", "trimEnd"])
const method: Mutator = (node, text) => {
  const member = node.type === "CallExpression" ? memberName(nodeIn(node, "callee")) : undefined
  if (member === undefined) return []
  const name = textOf(text, member.name)
  const by = Object.hasOwn(swapped, name) ? swapped[name] : undefined
  if (by !== undefined) return [instead(member.name, by)]
  const isModule = /^[A-Z]\w*$/.test(textOf(text, member.of))
  return dropped.has(name) && !isModule ? [instead(node, textOf(text, member.of))] : []
}

export const mutators = {
  forced,
  compared,
  calculated,
  combined,
  negated,
  literal,
  template,
  list,
  spread,
  removed,
  returned,
  unchained,
  unguarded,
  method,
} as const satisfies Record<string, Mutator>
export type MutatorName = keyof typeof mutators

export interface FoundEdit extends Edit {
  readonly mutator: MutatorName
}

/** Every change of every mutator, in the order of the text; one that two mutators propose is there once. */
export const editsOf = (program: Node, text: string): ReadonlyArray<FoundEdit> => {
  const edits = new Map<string, FoundEdit>()
  walk(program, (node, around) => {
    for (const mutator of Object.keys(mutators) as ReadonlyArray<MutatorName>) {
      for (const edit of mutators[mutator](node, text, around)) {
        const key = `${edit.start} ${edit.end} ${edit.by}`
        const isSame = text.slice(edit.start, edit.end) === edit.by
        if (!isSame && !edits.has(key)) edits.set(key, { ...edit, mutator })
      }
    }
  })
  return [...edits.values()].toSorted((a, b) => a.start - b.start || a.end - b.end || (a.by < b.by ? -1 : 1))
}
