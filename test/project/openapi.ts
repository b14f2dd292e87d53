/**
 * The remote service as an OpenAPI document, derived from the contract: what the embedded service answers is
 * what the document says. Prose comes from the inventory of the reference, so that every operation, status
 * and field carries the reference's own words and its section.
 */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { secretHeader, ServiceApi } from "../../src/service/Api.ts"
import { contractObjects, type ContractObject } from "../conformance/ContractObjects.ts"
import { readInventory } from "../conformance/Inventory.ts"
import { operations, tags } from "./operations.ts"
import { canonical, isObject, rewrite, tidy, type Json, type Node } from "./schemaNodes.ts"

const inventory = new Map(readInventory().map((row) => [row.id, row]))
const saysOf = (id: string): string | undefined => inventory.get(id)?.says

/** The same derivation as the document's own, for one schema. */
const jsonSchemaOf = ({ component, schema }: ContractObject): Node => {
  const endpoint = HttpApiEndpoint.post(component, "/one", { payload: schema, success: Schema.Void })
  const api = HttpApi.make("one").add(HttpApiGroup.make("one").add(endpoint))
  const path = OpenApi.fromApi(api).paths["/one"]
  return at(path, "post", "requestBody", "content", "application/json", "schema")
}

const at = (value: unknown, ...path: ReadonlyArray<string>): Node => {
  const found = path.reduce<unknown>((node, name) => (isObject(node) ? node[name] : undefined), value)
  if (!isObject(found)) throw new Error(`the document has no ${path.join(" / ")}`)
  return found
}

/** Section 7: most errors are `{detail: string}`; the embedded service answers all of them so. */
const errorBody: Node = {
  type: "object",
  properties: { detail: { type: "string" } },
  required: ["detail"],
}
const anyDetail = canonical({ type: "object", properties: { detail: {} } })

const components = contractObjects.map(({ object, component, schema }) => ({
  object,
  component,
  node: tidy(jsonSchemaOf({ component, schema })),
}))
const names = new Map<string, string>([
  [anyDetail, "ErrorBody"],
  ...components.map(({ component, node }) => [canonical(node), component] as const),
])

/** Every schema that is one of the named ones becomes a reference; `self` stays what it is. */
const withReferences = (node: Node, self?: string): Node =>
  rewrite(node, (inner) => {
    const name = names.get(canonical(inner))
    return name === undefined || name === self ? undefined : { $ref: `#/components/schemas/${name}` }
  })

const describeFields = (object: string, node: Node): Node => {
  const properties = node["properties"]
  if (!isObject(properties)) return node
  const described = Object.entries(properties).map(([name, field]): [string, Json] => {
    const says = saysOf(`field ${object}.${name}`)
    const inner = isObject(field) ? describeInner(name, field) : field
    return [name, isObject(inner) && says !== undefined ? { ...inner, description: says } : inner]
  })
  return { ...node, properties: Object.fromEntries(described) }
}

/** Objects that the reference describes inside another one. */
const innerObjects: Readonly<Record<string, string>> = {
  color_primary: "color",
  live: "live",
  "x-meta": "x-meta",
}
const describeInner = (name: string, field: Node): Json => {
  const object = innerObjects[name]
  if (object === undefined) return field
  const options = field["anyOf"]
  return Array.isArray(options)
    ? { ...field, anyOf: options.map((one) => (isObject(one) ? describeFields(object, one) : one)) }
    : describeFields(object, field)
}

/** Where the inventory tells what an id in a path is. */
const aboutIds: Readonly<Record<string, string>> = {
  execution_id: "field execution.execution_id",
  session_id: "field execution.session_id",
  token_id: "field token.token_id",
  engine_reference: "field engine.reference",
}

const describeParameters = (name: string, operation: Node): ReadonlyArray<Json> => {
  const parameters = operation["parameters"]
  return (Array.isArray(parameters) ? parameters : []).map((parameter: Json) => {
    if (!isObject(parameter)) return parameter
    const called = String(parameter["name"])
    const says = saysOf(name === "listEngines" ? `filter ${called}` : (aboutIds[called] ?? ""))
    return says === undefined ? parameter : { ...parameter, description: says }
  })
}

/** An attachment comes with its own media type; what it is, the reference does not show. */
const anyMediaType = { "*/*": { schema: {} } }

const describeResponses = (name: string, operation: Node): Node =>
  Object.fromEntries(
    Object.entries(at(operation, "responses")).map(([status, response]): [string, Json] => {
      const row = inventory.get(`${name} ${status}`) ?? inventory.get(`any ${status}`)
      const { content, ...rest } = isObject(response) ? response : {}
      const isDocument = isObject(content) && "application/octet-stream" in content
      return [
        status,
        {
          ...rest,
          description: row === undefined ? "Not in the reference." : `${row.says} (${row.section})`,
          ...(content === undefined ? {} : { content: isDocument ? anyMediaType : content }),
        },
      ]
    }),
  )

const describeOperation = (operation: Node): Node => {
  const name = String(operation["operationId"]).replace(/^.*\./, "")
  const about = operations[name]
  if (about === undefined) throw new Error(`nothing is said of the operation ${name}`)
  return {
    ...operation,
    operationId: name,
    summary: about.summary,
    description: `Section ${about.section} of the reference. ${about.description ?? ""}`.trim(),
    parameters: describeParameters(name, operation),
    security: [{ applicationSecret: [] }],
    responses: describeResponses(name, operation),
  }
}

const describePaths = (paths: Node): Node =>
  Object.fromEntries(
    Object.entries(paths).map(([path, methods]): [string, Json] => [
      path,
      Object.fromEntries(
        Object.entries(isObject(methods) ? methods : {}).map(([method, operation]): [string, Json] => [
          method,
          isObject(operation) ? describeOperation(withReferences(tidy(operation))) : operation,
        ]),
      ),
    ]),
  )

const schemas = (): Node =>
  Object.fromEntries([
    ...components.map(({ object, component, node }): [string, Json] => {
      const referring = withReferences(node, component)
      return [component, object === undefined ? referring : describeFields(object, referring)]
    }),
    ["ErrorBody", errorBody],
  ])

const webhook = (operationId: string, component: string, summary: string, description: string): Json => ({
  post: {
    tags: ["events"],
    operationId,
    summary,
    description,
    security: [],
    requestBody: {
      required: true,
      content: { "application/json": { schema: { $ref: `#/components/schemas/${component}` } } },
    },
    responses: { "2XX": { description: "Received." } },
  },
})

/** What the service sends by itself (section 6). */
const webhooks: Json = {
  executionEvent: webhook(
    "receiveExecutionEvent",
    "ExecutionEvent",
    "An execution event",
    "Section 6.1. Target, headers, signature and retries are not shown; of the payloads only that of " +
      "`auth_ended` is, and the embedded service sends the others in the same shape.",
  ),
  flowEvent: webhook(
    "receiveFlowEvent",
    "FlowEvent",
    "A flow event",
    "Section 6.2. Payload and delivery are not shown: this shape is the embedded service's own.",
  ),
}

export const serviceOpenApi = (): Node => {
  const { paths, openapi } = OpenApi.fromApi(ServiceApi)
  return {
    openapi,
    info: {
      title: "Credential-based data extraction service",
      version: "v1",
      description:
        "The direct execution API under `/api` and the flow API under `/flows`, as one host shows them. " +
        "Enumerations are open: a value that is not listed passes. Answers may carry further fields. Before any " +
        "route, the embedded service answers 413 to a body larger than 4 MB and 421 to a Host that is not this " +
        "machine, and outside of all routes 404 or 405, each with an ErrorBody.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [
      {
        url: "http://127.0.0.1:{port}",
        description: "The embedded service: `nightjar sandbox --port`",
        variables: { port: { default: "8080" } },
      },
    ],
    tags,
    security: [{ applicationSecret: [] }],
    paths: describePaths(at(paths)),
    webhooks,
    components: {
      securitySchemes: {
        applicationSecret: {
          type: "apiKey",
          in: "header",
          name: secretHeader,
          description: saysOf("auth-rule 1") ?? "",
        },
      },
      schemas: schemas(),
    },
  }
}
