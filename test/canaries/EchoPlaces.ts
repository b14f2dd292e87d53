/**
 * Every place of every answer that the contract knows, from the OpenAPI document that is derived from it: each
 * property, each item of a list, each key of a map, and a field that nobody knows in each map. A place is where a
 * hostile service may repeat a secret.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { isObject, type Node } from "../project/schemaNodes.ts"

const document: Node = JSON.parse(
  readFileSync(fileURLToPath(new URL("../../schemas/service.openapi.json", import.meta.url)), "utf8"),
)

type Path = ReadonlyArray<string | number>

export interface EchoPlace {
  readonly operation: string
  readonly status: number
  readonly path: Path
  /** text: the value is the echo. map: the echo is a key and its value. */
  readonly how: "text" | "map"
}

const at = (node: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, step) => (isObject(inner) ? inner[step] : undefined), node)

const resolve = (node: unknown): Node => {
  if (!isObject(node)) return {}
  const { $ref, anyOf, oneOf, allOf } = node
  if (typeof $ref === "string") return resolve(at(document, $ref.slice(2).split("/")))
  const choices = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined
  if (choices !== undefined) return resolve(choices.find((one) => !isObject(one) || one["type"] !== "null"))
  if (!Array.isArray(allOf)) return node
  const parts = allOf.map(resolve)
  const properties = parts.map((part) => (isObject(part["properties"]) ? part["properties"] : {}))
  return { ...Object.assign({}, ...parts), ...node, properties: Object.assign({}, ...properties) }
}

/** A value of a schema with everything in it that may be there. */
const sampleOf = (schema: unknown): unknown => {
  const node = resolve(schema)
  const { type, items, properties, additionalProperties } = node
  if (Array.isArray(node["enum"])) return node["enum"][0]
  if (type === "array") return [sampleOf(items)]
  if (type === "integer" || type === "number") return 1
  if (type === "boolean") return true
  if (type === "string") return "text"
  if (type !== "object" && !isObject(properties)) return {}
  const named = Object.entries(isObject(properties) ? properties : {})
  const free = isObject(additionalProperties) ? [["key", additionalProperties] as const] : []
  return Object.fromEntries([...named, ...free].map(([name, inner]) => [name, sampleOf(inner)]))
}

const pathsIn = (value: unknown, path: Path): ReadonlyArray<Path> => {
  if (Array.isArray(value)) return [path, ...value.flatMap((item, index) => pathsIn(item, [...path, index]))]
  if (!isObject(value)) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => pathsIn(inner, [...path, key]))]
}

interface Answer {
  readonly operation: string
  readonly status: number
  readonly schema: unknown
}

const answers: ReadonlyArray<Answer> = Object.values(isObject(document["paths"]) ? document["paths"] : {})
  .flatMap((item) => (isObject(item) ? Object.values(item) : []))
  .flatMap((operation) => {
    const responses = at(operation, ["responses"])
    if (!isObject(responses)) return []
    return Object.entries(responses).flatMap(([status, response]) => {
      const content = Object.values((at(response, ["content"]) as Node | undefined) ?? {})[0]
      if (content === undefined) return []
      const name = String(at(operation, ["operationId"]))
      return [{ operation: name, status: Number(status), schema: at(content, ["schema"]) }]
    })
  })

const answerOf = (operation: string, status: number): unknown =>
  answers.find((one) => one.operation === operation && one.status === status)?.schema

/** A well-formed answer of this status, before anything is put into it. */
export const sampleAnswer = (operation: string, status: number): unknown =>
  sampleOf(answerOf(operation, status))

/** What `data` and the answers without a shape hold is records: nothing of it is blanked. */
const isRecords = ({ operation, path }: EchoPlace): boolean =>
  (operation === "readFlowResults" && path[0] === "data") ||
  operation === "readProfile" ||
  operation === "downloadAttachment"

/** Calls that no command makes. */
const uncalled: ReadonlySet<string> = new Set(
  "resumeExecution readToken listFlowHooks createFlowHooks updateFlowHooks deleteFlowHooks".split(" "),
)

export const echoPlaces: ReadonlyArray<EchoPlace> = answers
  .filter(({ operation }) => !uncalled.has(operation))
  .flatMap(({ operation, status, schema }) =>
    pathsIn(sampleOf(schema), []).flatMap((path) =>
      (["text", "map"] as const).map((how) => ({ operation, status, path, how })),
    ),
  )
  .filter((place) => !isRecords(place) || place.status !== 200)

/** The answer with the echo put into this place. */
export const putEcho = (answer: unknown, { path, how }: EchoPlace, echo: string): unknown => {
  const copy: unknown = structuredClone(answer)
  const inserted = (old: unknown): unknown =>
    how === "text" ? echo : { ...(isObject(old) ? old : {}), [echo]: echo, [`${echo} again`]: 0 }
  if (path.length === 0) return inserted(copy)
  let inner: unknown = copy
  for (const step of path.slice(0, -1)) {
    if (typeof inner !== "object" || inner === null) return copy
    if (Reflect.get(inner, step) === undefined) Reflect.set(inner, step, {})
    inner = Reflect.get(inner, step)
  }
  if (typeof inner !== "object" || inner === null) return copy
  const last = path.at(-1) ?? ""
  Reflect.set(inner, last, inserted(Reflect.get(inner, last)))
  return copy
}
