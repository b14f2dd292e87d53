/**
 * The gate before every endpoint of the embedded service: it requires the application secret (section 5)
 * and answers a request that does not decode with 422 and a list of validation items (section 7).
 */
import { Effect, Layer, SchemaIssue } from "effect"
import { HttpMethod, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError, HttpApiMiddleware } from "effect/http-api"
import { secretHeader } from "../../service/Api.ts"
import { measureBody } from "../../service/BodyBounds.ts"
import { CallingApplication } from "../state/Application.ts"
import type { Application } from "../state/Application.ts"

/** The applications by their secrets: all but the second may tokenize; none can see another's executions. */
const applications: ReadonlyMap<string, Application> = new Map([
  ["sandbox-app-1", { app_id: "65f0c0ffee00000000000001", mayTokenize: true }],
  ["sandbox-app-2", { app_id: "65f0c0ffee00000000000002", mayTokenize: false }],
  ["sandbox-app-3", { app_id: "65f0c0ffee00000000000003", mayTokenize: true }],
])

/** The application with this secret; undefined for an unknown one. */
export const applicationOf = (secret: string | undefined): Application | undefined =>
  secret === undefined ? undefined : applications.get(secret)

export class SandboxGate extends HttpApiMiddleware.Service<SandboxGate, { provides: CallingApplication }>()(
  "nightjar/sandbox/SandboxGate",
) {
  static readonly layer = Layer.succeed(SandboxGate, (endpoint) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const secret = request.headers[secretHeader.toLowerCase()]
      if (secret === undefined) return Effect.succeed(refuse(401, `${secretHeader} is missing`))
      const application = applications.get(secret)
      if (application === undefined) return Effect.succeed(refuse(403, "unknown application secret"))
      const answered = endpoint.pipe(
        Effect.provideService(CallingApplication, application),
        Effect.map(asInvalid),
        Effect.catch((error) =>
          isRequestError(error) ? Effect.succeed(invalid(error)) : Effect.fail(error),
        ),
      )
      if (!HttpMethod.hasBody(request.method)) return answered
      // A body that breaks off while it is read is left to the endpoint to answer.
      return Effect.orElseSucceed(request.text, () => "").pipe(
        Effect.flatMap((body) => (isTooDeep(body) ? Effect.succeed(tooDeep) : answered)),
      )
    }),
  )
}

/** Real parameters are never nested this deep; every fold over a body recurses once for each level. */
const depthMax = 64

const isTooDeep = (body: string): boolean => measureBody(Buffer.from(body)).depth > depthMax

const tooDeep = HttpServerResponse.jsonUnsafe(
  { detail: [{ loc: ["body"], msg: `nested more than ${depthMax} deep`, type: "value_error" }] },
  { status: 422 },
)

const refuse = (status: 401 | 403, detail: string) => HttpServerResponse.jsonUnsafe({ detail }, { status })

const isRequestError = (error: unknown): error is HttpApiError.HttpApiSchemaError =>
  HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders"

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()
const slots: Readonly<Record<HttpApiError.HttpApiSchemaError["kind"], string>> = {
  Params: "path",
  Query: "query",
  Headers: "header",
  Payload: "body",
  Body: "response",
  ResponseHeaders: "response",
}

const locationPart = (part: PropertyKey | { readonly key: PropertyKey }): string | number => {
  const key = typeof part === "object" ? part.key : part
  return typeof key === "number" ? key : String(key)
}

/** One item per error; the values themselves are not repeated. */
const invalid = (error: HttpApiError.HttpApiSchemaError) =>
  HttpServerResponse.jsonUnsafe(
    {
      detail: issuesOf(error.cause.issue).issues.map(({ path = [], message }) => ({
        loc: [slots[error.kind], ...path.map(locationPart)],
        msg: message,
        type: "value_error",
      })),
    },
    { status: 422 },
  )

/** A body of another type than JSON is malformed input like any other. */
const asInvalid = (response: HttpServerResponse.HttpServerResponse) =>
  response.status === 415
    ? HttpServerResponse.jsonUnsafe(
        {
          detail: [
            { loc: ["header", "content-type"], msg: "application/json expected", type: "value_error" },
          ],
        },
        { status: 422 },
      )
    : response
