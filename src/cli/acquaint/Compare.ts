/**
 * Compares answers with the contract: what is missing, has another type, is outside an enumeration, is not
 * named by the reference, or was answered with a status that it does not list. Walks the contract's own
 * schemas, so the comparison knows only what they say; no finding repeats a value of a record.
 */
import { Predicate, SchemaAST } from "effect"
import type { RecordedCall } from "./Calls.ts"
import { codeText, keyText, kindOf } from "./Shape.ts"

export type FindingKind = "status" | "body" | "missing" | "type" | "value" | "unknown"

export interface Finding {
  readonly kind: FindingKind
  /** The contract's name for the call: `readExecution`. */
  readonly route: string
  readonly http_status: number
  /** `features[].code`; empty for the whole body. */
  readonly path: string
  readonly says: string
  /** Numbers of the first calls that showed it. */
  readonly calls: ReadonlyArray<number>
}

type Told = Omit<Finding, "calls" | "route" | "http_status">
type Tell = (told: Told) => void

const depthMax = 12

const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]

/** `open` allows a record of anything beside the fields: it stands for fields that nobody named. */
const isOpenRest = (ast: SchemaAST.Objects): boolean => ast.propertySignatures.length > 0

/** `Schema.Int` is a number with a check. */
const isWhole = (ast: SchemaAST.AST): boolean =>
  ast.checks?.some((check) => check.annotations?.["expected"] === "an integer") === true

const takes = (ast: SchemaAST.AST, value: unknown): boolean => {
  if (SchemaAST.isUnknown(ast) || SchemaAST.isAny(ast)) return true
  if (SchemaAST.isNull(ast)) return value === null
  if (SchemaAST.isLiteral(ast)) return value === ast.literal
  if (SchemaAST.isString(ast)) return typeof value === "string"
  if (SchemaAST.isBoolean(ast)) return typeof value === "boolean"
  if (SchemaAST.isNumber(ast)) return isWhole(ast) ? Number.isSafeInteger(value) : typeof value === "number"
  if (SchemaAST.isArrays(ast)) return Array.isArray(value)
  return SchemaAST.isObjects(ast) ? Predicate.isObject(value) : true
}

const wanted = (ast: SchemaAST.AST): string => {
  if (SchemaAST.isNull(ast)) return "null"
  if (SchemaAST.isLiteral(ast)) return `\`${String(ast.literal)}\``
  if (SchemaAST.isString(ast)) return "a string"
  if (SchemaAST.isBoolean(ast)) return "true or false"
  if (SchemaAST.isNumber(ast)) return isWhole(ast) ? "a whole number" : "a number"
  if (SchemaAST.isArrays(ast)) return "a list"
  return SchemaAST.isObjects(ast) ? "a map" : "anything"
}

const below = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`)

const walkObject = (
  ast: SchemaAST.Objects,
  value: Readonly<Record<string, unknown>>,
  path: string,
  tell: Tell,
  depth: number,
) => {
  const named = new Map(ast.propertySignatures.map(({ name, type }) => [String(name), type]))
  for (const [name, type] of named) {
    if (name === "_tag") continue
    const at = below(path, name)
    if (Object.hasOwn(value, name)) walk(type, value[name], at, tell, depth + 1)
    else if (!SchemaAST.isOptional(type)) {
      tell({ kind: "missing", path: at, says: `\`${at}\` is missing` })
    }
  }
  const rest = ast.indexSignatures[0]?.type
  for (const [name, inner] of Object.entries(value)) {
    if (named.has(name)) continue
    const at = below(path, isOpenRest(ast) ? keyText(name) : "*")
    if (isOpenRest(ast)) tell({ kind: "unknown", path: at, says: `\`${at}\`: ${kindOf(inner)}` })
    else if (rest !== undefined) walk(rest, inner, at, tell, depth + 1)
  }
}

const walk = (ast: SchemaAST.AST, value: unknown, path: string, tell: Tell, depth: number): void => {
  if (depth > depthMax || SchemaAST.isSuspend(ast) || SchemaAST.isDeclaration(ast)) return
  const members = membersOf(ast)
  const fitting = members.filter((member) => takes(member, value))
  const [member] = fitting
  if (member === undefined) {
    const expected = [...new Set(members.map(wanted))].join(" or ")
    const where = path === "" ? "the body" : `\`${path}\``
    tell({ kind: "type", path, says: `${where} is ${kindOf(value)}; the reference says ${expected}` })
    return
  }
  const isEnumeration = members.some(SchemaAST.isLiteral) && members.some(SchemaAST.isString)
  if (isEnumeration && typeof value === "string" && !fitting.some(SchemaAST.isLiteral)) {
    const says = `\`${path}\` is ${codeText(value)}, which the reference does not list`
    tell({ kind: "value", path, says })
  }
  if (SchemaAST.isArrays(member) && Array.isArray(value)) {
    const item = member.rest[0]
    if (item !== undefined) for (const one of value) walk(item, one, `${path}[]`, tell, depth + 1)
  }
  if (SchemaAST.isObjects(member) && Predicate.isObject(value)) walkObject(member, value, path, tell, depth)
}

/** Statuses whose answers have no body, by the rules of HTTP. */
const bodiless = new Set([204, 304])

const compareCall = ({ route, http_status, body }: RecordedCall, tell: Tell): void => {
  if (http_status === undefined) return
  const schema = route.answers.get(http_status)
  if (schema === undefined) {
    const says = `answered ${http_status}, which the reference does not list for it`
    return tell({ kind: "status", path: "", says })
  }
  // A results source defines itself what its records look like; for a HEAD, only the status counts.
  if (body._tag === "Unread" || route.method === "HEAD" || bodiless.has(http_status)) return
  if (SchemaAST.isUnknown(schema) && http_status >= 400) return
  if (body._tag !== "Json") {
    const what = body._tag === "Empty" ? "nothing" : "no JSON"
    return tell({ kind: "body", path: "", says: `answered ${http_status} with ${what} in the body` })
  }
  walk(schema, body.json, "", tell, 0)
}

/** Enough to look one up in `calls.ndjson`. */
const callsNamedMax = 3

/** Each finding once, in the order in which it was first seen. */
export const compareCalls = (calls: ReadonlyArray<RecordedCall>): ReadonlyArray<Finding> => {
  const found = new Map<string, Finding>()
  for (const call of calls) {
    compareCall(call, (told) => {
      const about = { route: call.route.name, http_status: call.http_status ?? 0 }
      const key = JSON.stringify([about, told])
      const known = found.get(key)
      if (known === undefined) found.set(key, { ...about, ...told, calls: [call.number] })
      else if (known.calls.length < callsNamedMax && known.calls.at(-1) !== call.number)
        found.set(key, { ...known, calls: [...known.calls, call.number] })
    })
  }
  return [...found.values()]
}
