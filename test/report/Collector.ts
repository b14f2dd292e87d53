/**
 * A collector for tests: a real server that takes OTLP over HTTP and refuses whatever is not OTLP as the published
 * definitions (opentelemetry-proto, v1) have it, unknown fields included. Stored as it came.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Ajv } from "ajv"

const strict = (properties: Readonly<Record<string, object>>, required: ReadonlyArray<string> = []) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
})
const list = (items: object) => ({ type: "array", items })
const text = { type: "string" }
const count = { type: "integer", minimum: 0 }
/** JSON has 64-bit numbers as decimal texts, or as numbers where they fit. */
const fixed64 = { anyOf: [{ type: "string", pattern: "^[0-9]+$" }, count] }
const double = { anyOf: [{ type: "number" }, { enum: ["NaN", "Infinity", "-Infinity"] }] }
const hex = (digits: number) => ({ type: "string", pattern: `^[0-9a-f]{${digits}}$` })
const anyValue = {
  ...strict({
    stringValue: text,
    boolValue: { type: "boolean" },
    intValue: { anyOf: [{ type: "integer" }, { type: "string", pattern: "^-?[0-9]+$" }] },
    doubleValue: double,
  }),
  minProperties: 1,
  maxProperties: 1,
}
const attributes = list(strict({ key: { type: "string", minLength: 1 }, value: anyValue }, ["key", "value"]))
const dropped = { attributes, droppedAttributesCount: count }
const resource = strict(dropped, ["attributes"])
const scope = strict({ name: text, version: text, ...dropped }, ["name"])

const span = strict(
  {
    traceId: hex(32),
    spanId: hex(16),
    parentSpanId: hex(16),
    traceState: text,
    flags: count,
    name: { type: "string", minLength: 1 },
    kind: { type: "integer", minimum: 0, maximum: 5 },
    startTimeUnixNano: fixed64,
    endTimeUnixNano: fixed64,
    ...dropped,
    events: list(strict({ timeUnixNano: fixed64, name: text, ...dropped }, ["timeUnixNano", "name"])),
    droppedEventsCount: count,
    links: { type: "array", maxItems: 0 },
    droppedLinksCount: count,
    status: strict({ code: { type: "integer", minimum: 0, maximum: 2 }, message: text }),
  },
  ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"],
)
const logRecord = strict(
  {
    timeUnixNano: fixed64,
    observedTimeUnixNano: fixed64,
    severityNumber: { type: "integer", minimum: 1, maximum: 24 },
    severityText: text,
    body: anyValue,
    ...dropped,
    flags: count,
    traceId: hex(32),
    spanId: hex(16),
    eventName: text,
  },
  ["timeUnixNano", "body"],
)
const pointTimes = { attributes, startTimeUnixNano: fixed64, timeUnixNano: fixed64, flags: count }
const numberPoint = strict(
  { ...pointTimes, asDouble: double, asInt: { anyOf: [{ type: "integer" }, text] } },
  ["timeUnixNano"],
)
const histogramPoint = strict(
  {
    ...pointTimes,
    count: fixed64,
    sum: double,
    min: double,
    max: double,
    bucketCounts: list(fixed64),
    explicitBounds: list(double),
  },
  ["timeUnixNano", "count", "bucketCounts", "explicitBounds"],
)
const temporality = { aggregationTemporality: { type: "integer", minimum: 1, maximum: 2 } }
const metric = strict(
  {
    name: { type: "string", minLength: 1 },
    description: text,
    unit: text,
    gauge: strict({ dataPoints: list(numberPoint) }),
    sum: strict({ dataPoints: list(numberPoint), ...temporality, isMonotonic: { type: "boolean" } }),
    histogram: strict({ dataPoints: list(histogramPoint), ...temporality }),
  },
  ["name", "unit"],
)

const request = (resources: string, scopes: string, items: string, item: object) =>
  strict(
    {
      [resources]: list(
        strict({
          resource,
          schemaUrl: text,
          [scopes]: list(strict({ scope, schemaUrl: text, [items]: list(item) })),
        }),
      ),
    },
    [resources],
  )

const ajv = new Ajv()
const checks = {
  "/v1/traces": ajv.compile(request("resourceSpans", "scopeSpans", "spans", span)),
  "/v1/logs": ajv.compile(request("resourceLogs", "scopeLogs", "logRecords", logRecord)),
  "/v1/metrics": ajv.compile(request("resourceMetrics", "scopeMetrics", "metrics", metric)),
} as const
type Path = keyof typeof checks
const isPath = (url: string): url is Path => Object.hasOwn(checks, url)

type Value = Readonly<Record<string, string | number | boolean>>
interface Attribute {
  readonly key: string
  readonly value: Value
}
/** Attributes as a plain object. */
export const valuesOf = (attributes: ReadonlyArray<Attribute>): Value =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] ?? ""]))

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: ReadonlyArray<Attribute>
  readonly status: { readonly code: number; readonly message?: string }
}
export interface LogRecord {
  readonly severityText: string
  readonly body: { readonly stringValue: string }
  readonly attributes: ReadonlyArray<Attribute>
  readonly spanId?: string
}
interface Points {
  readonly dataPoints: ReadonlyArray<{
    readonly attributes: ReadonlyArray<Attribute>
    readonly asDouble?: number
    readonly count?: number
    readonly sum?: number
  }>
}
export interface Metric {
  readonly name: string
  readonly unit: string
  readonly description: string
  readonly sum?: Points
  readonly gauge?: Points
  readonly histogram?: Points
}

export class Collector {
  readonly #server = createServer((asked, answer) => void this.#take(asked, answer))
  readonly #bodies: Array<{ readonly path: string; readonly body: unknown }> = []
  /** Everything as it came, headers included. */
  readonly raw: Array<string> = []
  readonly refused: Array<string> = []
  /** Whether it never answers. */
  hangs = false

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #take(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const chunks: Array<Buffer> = []
    for await (const chunk of asked) chunks.push(chunk as Buffer)
    const { method, url = "", headers } = asked
    if (this.hangs) return
    const came = Buffer.concat(chunks).toString("utf8")
    this.raw.push(`${method} ${url}\n${JSON.stringify(headers)}\n${came}`)
    if (!isPath(url) || method !== "POST" || headers["content-type"] !== "application/json")
      this.refused.push(`${method} ${url} ${headers["content-type"]}`)
    else {
      const body: unknown = JSON.parse(came)
      if (checks[url](body)) this.#bodies.push({ path: url, body })
      else this.refused.push(`${url}: ${ajv.errorsText(checks[url].errors)}`)
    }
    answer.writeHead(200, { "content-type": "application/json" }).end("{}")
  }

  #items<A>(path: Path, resources: string, scopes: string, items: string): ReadonlyArray<A> {
    type Nested = Readonly<Record<string, ReadonlyArray<Readonly<Record<string, unknown>>>>>
    return this.#bodies
      .filter((one) => one.path === path)
      .flatMap(({ body }) => (body as Nested)[resources] ?? [])
      .flatMap((one) => (one as Nested)[scopes] ?? [])
      .flatMap((one) => (one as Readonly<Record<string, ReadonlyArray<A>>>)[items] ?? [])
  }

  get spans(): ReadonlyArray<Span> {
    return this.#items("/v1/traces", "resourceSpans", "scopeSpans", "spans")
  }

  get logs(): ReadonlyArray<LogRecord> {
    return this.#items("/v1/logs", "resourceLogs", "scopeLogs", "logRecords")
  }

  /** All that ever came: of a name, the last one counts. */
  get metrics(): ReadonlyArray<Metric> {
    return this.#items("/v1/metrics", "resourceMetrics", "scopeMetrics", "metrics")
  }
}
