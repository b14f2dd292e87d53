/**
 * The ways in which a start is answered badly, as data: what the caller reads, and whether there can be a
 * login behind it. A reader who knows only the answer has to decide from it whether a login was sent.
 */
import { HttpServerResponse } from "effect/http"

interface Row {
  /** Whether an execution may be behind it, must be, or cannot: then it proves that nothing was sent. */
  readonly login: "may be" | "is" | "is not"
  readonly status?: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const page = "<html>an error</html>"
const noId = {
  app_id: "app",
  auth_origin: "app-secret",
  status_reason: "ACCEPTED",
  status_code: "ONGOING",
}

export const startAnswers = {
  "lost: reset": { login: "may be" },
  "lost: time-out": { login: "may be" },
  "lost: cut": { login: "may be", status: 202, body: '{"app_id": "app", "execu' },
  "202 without an id": { login: "may be", status: 202, body: noId },
  "202 with ok": { login: "may be", status: 202, body: { ok: true } },
  "204": { login: "may be", status: 204 },
  "200 acceptance": { login: "is", status: 200 },
  "201 acceptance": { login: "is", status: 201 },
  "302": { login: "may be", status: 302, headers: { location: "https://elsewhere.invalid/" } },
  "403": { login: "may be", status: 403, body: { detail: "forbidden" } },
  "400 in another shape": { login: "may be", status: 400, body: { detail: "no" } },
  "418": { login: "may be", status: 418, body: { detail: "a teapot" } },
  "408": { login: "may be", status: 408, body: { detail: "too late" } },
  "500": { login: "may be", status: 500, body: { detail: "a fault" } },
  "502": { login: "may be", status: 502, body: page },
  "503": { login: "may be", status: 503, body: { detail: "unavailable" } },
  "504": { login: "may be", status: 504, body: page },
  "507": { login: "may be", status: 507, body: page },
  "id too long": { login: "is", status: 202 },
  "incorrect credentials": { login: "is", status: 400 },
  "accepted and refused": { login: "is", status: 202 },
  "accepted, refused, never found": { login: "is", status: 202 },
  "unlisted end": { login: "is", status: 202 },
  "never found": { login: "is", status: 202 },
  "not found after the login": { login: "is", status: 202 },
  "network error": { login: "is", status: 202 },
  "cancelled in the queue": { login: "is", status: 202 },
  "429": { login: "is not", status: 429, body: { detail: "slowly" }, headers: { "retry-after": "2" } },
  "422": {
    login: "is not",
    status: 422,
    body: { detail: [{ loc: ["body"], msg: "no", type: "value_error" }] },
  },
  "connection refused": { login: "is not" },
} as const satisfies Readonly<Record<string, Row>>
export type StartAnswerName = keyof typeof startAnswers

const rowOf = (name: StartAnswerName): Row => startAnswers[name]

/** Whether an execution is made, given what a storm asks for. */
export const isMade = (name: StartAnswerName, asked: boolean): boolean => {
  const { login } = rowOf(name)
  return login === "is" || (login === "may be" && asked)
}

/** Whether nobody reads a 409 either: what stands in between answers for everything. */
export const hidesConflict = (name: StartAnswerName | undefined): boolean => {
  if (name === undefined) return false
  const { login, status = 0 } = rowOf(name)
  return login === "may be" && (status < 200 || status > 299)
}

/** Whether the answer says that the source refused the login, with an execution or without one. */
export const saysRefused = (name: StartAnswerName): boolean =>
  name === "incorrect credentials" || name.startsWith("accepted")

/** The answer; `accepted` is the body of an ordinary acceptance if an execution was made. */
export const answerOf = (
  name: StartAnswerName | undefined,
  accepted: Readonly<Record<string, unknown>> | undefined,
  sent: { readonly customer_id: string; readonly engine_reference: string },
): HttpServerResponse.HttpServerResponse => {
  if (name === undefined) return HttpServerResponse.jsonUnsafe(accepted, { status: 202 })
  const { status = 202, body, headers = {} } = rowOf(name)
  const { customer_id, engine_reference } = sent
  if (status === 204 || status === 302) return HttpServerResponse.empty({ status, headers })
  if (typeof body === "string")
    return HttpServerResponse.text(body, {
      status,
      contentType: status === 202 ? "application/json" : "text/html",
    })
  if (name === "id too long")
    return HttpServerResponse.jsonUnsafe({ ...accepted, execution_id: "e".repeat(2_000) }, { status })
  const refusal = { status_reason: "INCORRECT_CREDENTIALS", status_code: "AUTH_ERROR" }
  if (name === "incorrect credentials")
    return HttpServerResponse.jsonUnsafe({ ...noId, customer_id, engine_reference, ...refusal }, { status })
  if (saysRefused(name)) return HttpServerResponse.jsonUnsafe({ ...accepted, ...refusal }, { status })
  const asked = name === "202 without an id" ? { ...noId, customer_id, engine_reference } : body
  return HttpServerResponse.jsonUnsafe(asked ?? accepted, { status, headers })
}
