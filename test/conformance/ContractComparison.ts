/**
 * The inventory of the reference and the contract in code are two accounts of the same service, written
 * apart. Here they are laid side by side, subject by subject: what one has, the other must have too.
 */
import { readFileSync } from "node:fs"
import { parse } from "yaml"
import * as RecordWords from "./RecordWords.ts"
import * as Vocabulary from "../../src/service/Vocabulary.ts"
import { featureSettings } from "../../src/service/Engine.ts"
import { serviceOpenApi } from "../project/openapi.ts"
import { isObject } from "../project/schemaNodes.ts"
import { contractObjects } from "./ContractObjects.ts"
import { readPaths, type Row } from "./Inventory.ts"

export interface Comparison {
  readonly subject: string
  readonly inventory: ReadonlyArray<string>
  readonly contract: ReadonlyArray<string>
}

const sorted = (values: Iterable<string>): ReadonlyArray<string> => [...new Set(values)].toSorted()
const compare = (subject: string, inventory: Iterable<string>, contract: Iterable<string>): Comparison => ({
  subject,
  inventory: sorted(inventory),
  contract: sorted(contract),
})

/** The ids of one kind without the kind: `reason TIMEOUT` is TIMEOUT. */
const idsOf = (rows: ReadonlyArray<Row>, kind: string) =>
  rows.filter(({ id }) => id.startsWith(`${kind} `)).map(({ id }) => id.slice(kind.length + 1))
const fieldsOf = (rows: ReadonlyArray<Row>, object: string) =>
  idsOf(rows, "field").flatMap((id) => (id.startsWith(`${object}.`) ? [id.slice(object.length + 1)] : []))
/** The words that a row quotes. */
const quoted = (rows: ReadonlyArray<Row>, id: string) => {
  const says = rows.find((row) => row.id === id)?.says ?? ""
  return [...says.matchAll(/`([^`]+)`/g)].map(([, word]) => word ?? "")
}

const look = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (node, name) => (isObject(node) ? node[name] : Array.isArray(node) ? node[Number(name)] : undefined),
    value,
  )
const keys = (value: unknown): ReadonlyArray<string> => (isObject(value) ? Object.keys(value) : [])

const operationsOf = (document: unknown) =>
  keys(look(document, "paths")).flatMap((path) =>
    Object.values(Object(look(document, "paths", path))).filter(isObject),
  )

/** Any endpoint may answer 429, which one row of the inventory says for all of them. */
const endpoints = (rows: ReadonlyArray<Row>, document: unknown): Comparison => {
  const told = rows.map(({ id }) => id).filter((id) => /^[a-zA-Z]+ \d{3}$/.test(id) && id !== "any 429")
  const operations = operationsOf(document)
  const answers = operations.flatMap((operation) =>
    keys(operation["responses"]).map((status) => `${String(operation["operationId"])} ${status}`),
  )
  const throttled = operations.map(({ operationId }) => `${String(operationId)} 429`)
  return compare("endpoints and statuses", [...told, ...throttled], answers)
}

const roots: Readonly<Record<string, string>> = { "/api": "{base_url}", "/flows": "{flows_url}" }

const paths = (document: unknown): Comparison => {
  const shown = keys(look(document, "paths")).flatMap((path) =>
    Object.entries(Object(look(document, "paths", path))).map(([method, operation]) => {
      const told = path.replace(/^\/[a-z]+/, (root) => roots[root] ?? root)
      return `${String(look(operation, "operationId"))}: ${method.toUpperCase()} ${told}`
    }),
  )
  const told = Object.entries(readPaths()).map(([name, path]) => `${name}: ${path}`)
  return compare("methods and paths", told, shown)
}

const words = {
  code: Vocabulary.features,
  feature: Vocabulary.featureStatusReasons,
  auth: Vocabulary.authenticationStatuses,
  end_hook: Vocabulary.endHooks,
  session: Vocabulary.sessionStatusCodes,
  cursor: Vocabulary.sessionCursors,
  state: Vocabulary.statusCodes,
  reason: Vocabulary.statusReasons,
  event: [...Vocabulary.engineEvents, ...Vocabulary.flowEvents],
} as const

const values = {
  "engine.engine_alternative": Vocabulary.engineAlternatives,
  "engine.environment": Vocabulary.environments,
  "engine.status": Vocabulary.engineStatuses,
  "engine.main_category": Vocabulary.mainCategories,
  "engine.action_required_frequency": Vocabulary.actionRequiredFrequencies,
  "engine-details.events": Vocabulary.engineEvents,
  "execution.auth_origin": Vocabulary.authOrigins,
  "message.type": Vocabulary.messageTypes,
  "profile.type": RecordWords.customerTypes,
  "profile.gender": RecordWords.genders,
  "profile.civil_status": RecordWords.civilStatuses,
  "id-number.type": RecordWords.identificationNumberTypes,
  "higher.sub_family": RecordWords.higherEducationSubFamilies,
  "secondary.sub_family": RecordWords.secondaryEducationSubFamilies,
} as const

const vocabulary = (rows: ReadonlyArray<Row>): ReadonlyArray<Comparison> => [
  ...Object.entries(words).map(([kind, known]) => compare(`each ${kind}`, idsOf(rows, kind), known)),
  ...Object.entries(values).map(([field, known]) =>
    compare(`the values of ${field}`, quoted(rows, `field ${field}`), known),
  ),
  ...Object.entries(Vocabulary.statusReasonsByCode).map(([code, reasons]) =>
    compare(`the reasons of ${code}`, quoted(rows, `state ${code}`), reasons),
  ),
]

const objects = (rows: ReadonlyArray<Row>, document: unknown): ReadonlyArray<Comparison> => {
  const schema = (component: string, ...path: ReadonlyArray<string>) =>
    keys(look(document, "components", "schemas", component, "properties", ...path))
  const named = contractObjects.flatMap(({ object, component }) => {
    if (object === undefined) return []
    // 2.7: the status code and the cursor of a session have no field names in the reference.
    const nameless = object === "results" ? ["session_status", "session_cursor"] : []
    // The detail view shows the fields of the list view and its own.
    const shared = object === "engine-details" ? fieldsOf(rows, "engine") : []
    const told = [...fieldsOf(rows, object), ...shared]
    return [compare(`the fields of ${object}`, told, [...schema(component), ...nameless])]
  })
  const update = operationsOf(document).find(({ operationId }) => operationId === "updateFlowHooks")
  const change = look(update, "requestBody", "content", "application/json", "schema", "properties")
  const meta = schema("FormSchema", "x-meta", "anyOf", "0", "properties")
  return [
    ...named,
    compare("the fields of color", fieldsOf(rows, "color"), schema("Engine", "color_primary", "properties")),
    compare("the fields of live", fieldsOf(rows, "live"), schema("Engine", "live", "properties")),
    compare("the fields of x-meta", fieldsOf(rows, "x-meta"), meta),
    compare("the fields of hook-change", fieldsOf(rows, "hook-change"), keys(change)),
  ]
}

const recordSchemas = [
  ["profile", "customer_profiles", undefined],
  ["id-number", "customer_profiles", "identification_numbers"],
  ["address", "customer_profiles", "addresses"],
  ["higher", "higher_education", undefined],
  ["secondary", "secondary_education", undefined],
] as const

const records = (rows: ReadonlyArray<Row>): ReadonlyArray<Comparison> =>
  recordSchemas.map(([object, file, child]) => {
    const path = new URL(`../../schemas/records/${file}.yaml`, import.meta.url)
    const schema: unknown = parse(readFileSync(path, "utf8"))
    const columns = keys(look(schema, ...(child === undefined ? [] : ["children", child]), "columns"))
    const more = child === undefined ? ["product", "sub_family", ...keys(look(schema, "children"))] : []
    return compare(`the fields of the record ${object}`, fieldsOf(rows, object), [...columns, ...more])
  })

const settings = (rows: ReadonlyArray<Row>): Comparison =>
  compare(
    "the settings of each feature",
    idsOf(rows, "setting"),
    Object.entries(featureSettings).flatMap(([code, known]) =>
      known._tag === "Fields" ? Object.keys(known.fields).map((name) => `${code}.${name}`) : [],
    ),
  )

const filters = (rows: ReadonlyArray<Row>, document: unknown): Comparison => {
  const list = operationsOf(document).find(({ operationId }) => operationId === "listEngines")
  const parameters = list?.["parameters"]
  const names = Array.isArray(parameters) ? parameters.map((one) => String(Object(one)["name"])) : []
  return compare("the filters of the catalogue", idsOf(rows, "filter"), names)
}

export const compareWithContract = (inventory: ReadonlyArray<Row>): ReadonlyArray<Comparison> => {
  const document = serviceOpenApi()
  // The pipeline's own rows are no part of the service.
  const rows = inventory.filter(({ part }) => part !== "pipeline")
  return [
    endpoints(rows, document),
    paths(document),
    ...vocabulary(rows),
    ...objects(rows, document),
    ...records(rows),
    settings(rows),
    filters(rows, document),
  ]
}

/** One line per difference, naming who has what the other lacks. */
export const differences = (comparisons: ReadonlyArray<Comparison>): ReadonlyArray<string> =>
  comparisons.flatMap(({ subject, inventory, contract }) => [
    ...inventory
      .filter((one) => !contract.includes(one))
      .map((one) => `${subject}: the contract lacks ${one} of the inventory`),
    ...contract
      .filter((one) => !inventory.includes(one))
      .map((one) => `${subject}: the inventory lacks ${one} of the contract`),
  ])
