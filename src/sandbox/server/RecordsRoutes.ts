/**
 * Every kind of result of an execution (section 4.12: "read one kind of result of an execution"; path and
 * answer are this service's own), so that a service without the flow API can still be read completely.
 * Present only if the reading has it.
 */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { secretHeader } from "../../service/Api.ts"
import { Core } from "../core/SandboxCore.ts"
import { readRecords } from "../executions/AnswerExecutions.ts"
import { CallingApplication } from "../state/Application.ts"
import { Sandbox } from "./Sandbox.ts"
import { applicationOf } from "./SandboxGate.ts"

const refuse = (status: number, detail: string) => HttpServerResponse.jsonUnsafe({ detail }, { status })

const answer = ({ core }: Sandbox["Service"]) =>
  Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const secret = headers[secretHeader.toLowerCase()]
    const application = applicationOf(secret)
    if (secret === undefined) return refuse(401, `${secretHeader} is missing`)
    if (application === undefined) return refuse(403, "unknown application secret")
    const { params } = yield* HttpRouter.RouteContext
    const { execution_id = "", family = "" } = params
    const body = yield* readRecords(execution_id, family).pipe(
      Effect.provideService(CallingApplication, application),
      Effect.provideService(Core, core),
    )
    return body === undefined ? refuse(404, "no such results") : HttpServerResponse.jsonUnsafe(body)
  })

/** Needs the service and a router. */
export const RecordsRoutes = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, (sandbox) =>
      sandbox.reading.result_kinds === "absent"
        ? Layer.empty
        : HttpRouter.add("GET", "/api/executions/results/:execution_id/:family/v1/records", answer(sandbox)),
    ),
  ),
}
