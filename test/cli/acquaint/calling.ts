/**
 * Recorded calls as tests write them down: an address of a service, a status and a body.
 */
import { matcherOf, type RecordedBody, type RecordedCall } from "../../../src/cli/acquaint/Compare.ts"
import { builtInSources, type ResultsSource } from "../../../src/service/FlowResults.ts"

export const execution_id = "0d4f5dc4-a81e-aff4-159d-1440713a843b"
export const session_id = "65f0c0ffee65f0c0ffee65f0"

const paths = {
  start: "POST /api/executions/init/v1/parametrized",
  state: `GET /api/executions/handler/v1/${execution_id}`,
  poll: `HEAD /api/executions/handler/v1/${execution_id}`,
  abort: `DELETE /api/executions/handler/v1/${execution_id}/abort`,
  results: `GET /flows/es-public-administration/v1/manager/${session_id}/results`,
  profile: `GET /api/executions/results/${execution_id}/customer/v1/profile`,
  income: `GET /api/executions/results/${execution_id}/income/v1/records`,
  attachment: `GET /flows/attachments/${session_id}/a1`,
  engine: "GET /api/config/engines/bank:website",
  tokenized: "POST /api/executions/init/v1/tokenized",
} as const

export const incomeSource: ResultsSource = {
  name: "income",
  enabled: true,
  api: "base_url",
  path: "/executions/results/{execution_id}/income/v1/records",
  families: ["income:*"],
  records: ["records", "data", "body"],
  final: "is_final",
  counts: "sub_family",
  nothing: [404],
  attachments: false,
}
export const withIncome: ReadonlyArray<ResultsSource> = [...builtInSources, incomeSource]

export type Written = readonly [
  call: keyof typeof paths | `${"GET" | "POST"} /${string}`,
  http_status: number,
  body?: unknown,
  more?: Partial<RecordedCall>,
]

const bodyOf = (body: unknown): RecordedBody => {
  if (body === undefined) return { _tag: "Empty" }
  return typeof body === "string" ? { _tag: "Text", bytes: body.length } : { _tag: "Json", json: body }
}

const match = matcherOf(withIncome)

export const calls = (...written: ReadonlyArray<Written>): ReadonlyArray<RecordedCall> =>
  written.map(([call, http_status, body, more], index) => {
    const named = Object.hasOwn(paths, call) ? paths[call as keyof typeof paths] : call
    const [method = "", path = ""] = named.split(" ")
    return {
      number: index + 1,
      ...match(method, `https://service.example${path}`),
      sentAtMs: index,
      tookMs: 1,
      http_status,
      headers: {},
      body: bodyOf(body),
      ...more,
    }
  })

/** A closed state that fits the reference in every field. */
export const closedState = {
  execution_id,
  session_id,
  app_id: "app",
  customer_id: "c-1",
  external_execution_id: "x-1",
  engine_reference: "bank:website",
  auth_origin: "app-secret",
  status_code: "COMPLETED",
  status_reason: "COMPLETED",
  status_message: null,
  authentication_status: "AUTH_OK",
  is_closed: true,
  products_count: { "income:salary@income": 2 },
  end_hook: "skipped",
  warnings_count: 0,
  errors_count: 0,
  locking_hash: "v1.abc",
  date_created: "2026-11-22T01:00:00Z",
  date_started: "2026-11-22T01:00:01Z",
  date_ended: "2026-11-22T01:00:02Z",
  execution_time: 1,
  running_time: 1.5,
  total_elapsed_time: 2,
  features: [{ code: "accounts_read", status_reason: "FEATURE_COMPLETED" }],
}

export const salary = { product: "income", sub_family: "income:salary", employer: "Talleres Ruiz" }
