/** What the service sends by itself, held against the document's webhooks; and that a wrong one would be noticed. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { serviceOpenApi } from "../project/openapi.ts"
import { person, textField } from "../sandbox/server/Caller.ts"
import { HookTarget, pass, run } from "../sandbox/hooks/HookTarget.ts"
import { closeEnumerations } from "./TrafficCheck.ts"

const ajv = new Ajv2020({ strict: false }).addSchema(closeEnumerations(serviceOpenApi()), "service")
const complaintsOf = (component: string, body: unknown): ReadonlyArray<string> => {
  const validate = ajv.getSchema(`service#/components/schemas/${component}`)
  if (validate === undefined) throw new Error(`the document has no ${component}`)
  return validate(body) === true
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

const delivered = run(function* (caller) {
  yield* caller.start("queue-10+run-20+challenge-1", { ...person, external_execution_id: "x" })
  yield* caller.start("queue-1+run-2+end-BLOCKED_USER", { customer_id: "c-2" })
  const session_id = textField(yield* caller.createSession({ customer_id: "c-1" }), "session_id")
  yield* caller.step(session_id, "start", {})
  yield* caller.step(session_id, "consent", {})
  yield* caller.step(session_id, "connect", {
    engine_reference: "sandbox-tax:website",
    parameters: { username: "queue-0+run-60+records-9", password: "correct" },
  })
  yield* pass(30)
  yield* caller.step(session_id, "leave")
  yield* pass(3_600)
  return (yield* HookTarget).received.map(({ body }) => Object(body) as Readonly<Record<string, unknown>>)
})
const componentOf = (body: Readonly<Record<string, unknown>>) => String(body["event_class"])

describe("deliveries", () => {
  it("of every event fit the document", () => {
    expect(new Set(delivered.map(({ event }) => event)).size).toBe(8)
    expect(delivered.flatMap((body) => complaintsOf(componentOf(body), body))).toEqual([])
  })

  it("with another type in any typed field do not", () => {
    const missed = delivered.flatMap((body) =>
      Object.keys(body).filter(
        (name) => complaintsOf(componentOf(body), { ...body, [name]: 12.5 }).length === 0,
      ),
    )
    // The results that a flow event carries are those of a read, which is checked as such.
    expect([...new Set(missed)]).toEqual(["results"])
  })
})
