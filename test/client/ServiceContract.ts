/** What every `Service` owes the pipeline, as a suite for any layer behind which a script decides the answers. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted, Stream } from "effect"
import { Service, type CallFailure } from "../../src/client/Service.ts"
import { flowResultsSource, profileSource } from "../../src/service/FlowResults.ts"
import { engineDetails, startCall } from "./Examples.ts"
import type { Behaviour, MakeStage } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const summarise = (answer: unknown): string =>
  typeof answer === "object" && answer !== null && "_tag" in answer ? String(answer._tag) : String(answer)

type Call = Effect.Effect<unknown, CallFailure, Service>

const use = <A>(f: (service: Service["Service"]) => Effect.Effect<A, CallFailure>) =>
  Effect.flatMap(Service, f)

/** Every call of the port by its endpoint's name. */
export const calls = {
  startExecution: use((service) => service.startExecution(startCall(), Effect.void)),
  readExecution: use((service) => service.readExecution(anId("e-1"))),
  abortExecution: use((service) => service.abortExecution(anId("e-1"))),
  deleteExecution: use((service) => service.deleteExecution(anId("e-1"))),
  readFlowResults: use((service) => service.readResults(flowResultsSource, { session_id: anId("s-1") })),
  readProfile: use((service) => service.readResults(profileSource, { execution_id: anId("e-1") })),
  downloadAttachment: use((service) =>
    Effect.flatMap(service.downloadAttachment(anId("s-1"), "a-1"), (answer) =>
      Effect.as(answer._tag === "Document" ? Stream.runDrain(answer.bytes) : Effect.void, answer._tag),
    ),
  ),
  exchangeTicket: use((service) => service.exchangeTicket(anId("e-1"), Redacted.make("ticket-canary-1"))),
  revokeToken: use((service) => service.revokeToken("t-1")),
  listEngines: use((service) => Effect.as(service.listEngines, "listed")),
  showEngine: use((service) => service.showEngine(anId("sandbox-bank:website"))),
} satisfies Record<string, Call>
export type CallName = keyof typeof calls

const goodBody = (call: CallName): string => {
  if (call === "listEngines") return "[]"
  if (call === "exchangeTicket")
    return JSON.stringify({ token: { token_id: "t-1", token_key: "token-key-canary-1" }, context: {} })
  return JSON.stringify(call === "showEngine" ? engineDetails : { execution_id: anId("e-1") })
}

/** Documented statuses: what each becomes, by the tag of the answer or of the failure. */
export const documented: { readonly [K in CallName]: Readonly<Record<number, string>> } = {
  startExecution: {
    202: "Accepted",
    400: "Refused",
    409: "AlreadyExecuting",
    422: "Refused",
    503: "EngineUnavailable",
  },
  readExecution: { 200: "Closed", 202: "Working", 423: "ActionRequired", 404: "NotFound" },
  abortExecution: {
    204: "aborted",
    304: "already_closed",
    404: "not_found",
    409: "not_stoppable",
    422: "UnexpectedAnswer",
  },
  deleteExecution: { 204: "deleted", 404: "gone", 409: "still_running", 422: "UnexpectedAnswer" },
  readFlowResults: {
    200: "Results",
    404: "NothingThere",
    412: "NothingThere",
    422: "UnexpectedAnswer",
    504: "Throttled",
  },
  readProfile: { 200: "Results", 404: "NothingThere" },
  downloadAttachment: { 200: "Document", 404: "Missing" },
  exchangeTicket: { 200: "Exchanged", 403: "Refused", 422: "UnexpectedAnswer" },
  revokeToken: { 204: "revoked", 304: "already_revoked", 404: "not_found", 422: "UnexpectedAnswer" },
  listEngines: { 200: "listed", 422: "UnexpectedAnswer" },
  showEngine: { 200: "Engine", 404: "EngineUnknown", 422: "EngineUnknown", 503: "EngineUnavailable" },
}

const effectful = new Set<CallName>([
  "startExecution",
  "abortExecution",
  "deleteExecution",
  "exchangeTicket",
  "revokeToken",
])

/** What a status becomes that the call's own section does not list. */
const otherwise = (call: CallName, status: number): string => {
  if (status === 401 || status === 403) return "SecretRefused"
  if (status === 429 || status === 503) return "Throttled"
  if (status >= 500 || status === 408) return "AnswerLost"
  // 4.1 lists 202; an acceptance body is an acceptance all the same.
  if (call === "startExecution" && (status === 200 || status === 201)) return "Accepted"
  return effectful.has(call) && status < 300 ? "AnswerLost" : "UnexpectedAnswer"
}

// Those of the HTTP standard that matter here, and those that proxies and gateways answer.
const otherStatuses = [
  "200 201 202 203 204 206 300 301 302 303 304 307 308 400 401 402 403 404 405 408 409 410",
  "412 413 418 422 423 425 429 431 451 499 500 501 502 503 504 507 520 522 524 599",
].flatMap((line) => line.split(" ").map(Number))

const outcome = (call: Call, layer: Layer.Layer<Service>): Effect.Effect<string> =>
  call.pipe(
    Effect.provide(layer),
    Effect.match({ onFailure: (failure) => failure._tag, onSuccess: summarise }),
  )

const names = Object.keys(documented) as ReadonlyArray<CallName>

/** Every documented status of every call, and every other kind of status. */
export const describeStatuses = (title: string, makeStage: MakeStage): void => {
  const outcomeOf = (call: CallName, behaviour: Behaviour) =>
    Effect.scoped(Effect.flatMap(makeStage(behaviour), (stage) => outcome(calls[call], stage.layer)))

  describe(title, () => {
    for (const call of names) {
      effect(`${call}: every status becomes the port's answer or failure`, function* () {
        const statuses = [...new Set([...Object.keys(documented[call]).map(Number), ...otherStatuses])]
        const expected = statuses.map(
          (status) => [status, documented[call][status] ?? otherwise(call, status)] as const,
        )
        const seen = yield* Effect.forEach(statuses, (status) =>
          Effect.map(
            outcomeOf(call, { status, body: goodBody(call), headers: { location: "/elsewhere" } }),
            (tag) => [status, tag] as const,
          ),
        )
        assert.deepStrictEqual(seen, expected)
      })
    }

    effect("a success without JSON of the needed kind is a lost answer", function* () {
      const broken = ["<html>Bad gateway</html>", "", '{"execution_id": "e-1", "sta']
      const wrong = [...broken, "[1]"]
      const cases: ReadonlyArray<readonly [CallName, number, ReadonlyArray<string>]> = [
        ["startExecution", 202, wrong],
        ["readExecution", 200, wrong],
        ["readExecution", 202, wrong],
        ["readFlowResults", 200, wrong],
        ["showEngine", 200, wrong],
        ["listEngines", 200, [...broken, "{}"]],
        ["readProfile", 200, broken],
      ]
      for (const [call, status, bodies] of cases)
        for (const body of bodies)
          assert.strictEqual(yield* outcomeOf(call, { status, body }), "AnswerLost", `${call} ${body}`)
    })

    effect("the body's bytes are kept exactly, whatever they are", function* () {
      const bytes = Buffer.from(
        '\uFEFF{ "is_closed" : true,\r\n "big": 12345678901234567890, "x": "\\u00e9é" }',
      )
      const stage = yield* makeStage({ status: 200, body: bytes })
      const answer = yield* Effect.provide(calls.readFlowResults, stage.layer)
      assert.isTrue(answer._tag === "Results" && bytes.equals(answer.body.bytes))
    })

    effect("a Retry-After arrives with every answer that asks us to wait", function* () {
      const headers = { "retry-after": "7" }
      const asking = [
        ["startExecution", 503],
        ["showEngine", 503],
        ["readExecution", 429],
        ["readFlowResults", 504],
      ] as const
      for (const [call, status] of asking) {
        const stage = yield* makeStage({ status, headers, body: "{}" })
        const either: Call = calls[call]
        const got = yield* Effect.match(Effect.provide(either, stage.layer), {
          onFailure: (failure): unknown => failure,
          onSuccess: (answer) => answer,
        })
        assert.deepPropertyVal(got, "retry_after", Duration.seconds(7), call)
      }
    })
  })
}
