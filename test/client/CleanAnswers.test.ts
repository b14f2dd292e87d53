/** The door at which secrets are blanked: whatever the service repeats, no caller of the port ever sees it. */
import { inspect } from "node:util"
import { assert, describe } from "@effect/vitest"
import { Cause, Effect, Exit, Redacted, Stream } from "effect"
import { vi } from "vitest"
import { Service, type CallFailure } from "../../src/client/Service.ts"
import { keptBytes } from "../../src/client/AnswerBytes.ts"
import { bodyBounds } from "../../src/service/BodyBounds.ts"
import { flowResultsSource, profileSource } from "../../src/service/FlowResults.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { startCall } from "./Examples.ts"
import { secret, stageInProcess, type Behaviour } from "./FakeService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const password = "pw-canary-77aB"
const base64 = Buffer.from(`user:${password}`).toString("base64")
const echo = `${secret} ${password} ${base64}`

const ask = <A>(
  behaviour: Behaviour,
  work: (service: Service["Service"]) => Effect.Effect<A, CallFailure>,
  known = makeKnownSecrets(),
) =>
  Effect.gen(function* () {
    known.hold(password, "password")
    const stage = yield* stageInProcess(behaviour)
    return yield* Effect.flatMap(Service, work).pipe(Effect.provide(stage.layer))
  }).pipe(Effect.scoped, Effect.provideService(KnownSecrets, known))

const json = (status: number, value: unknown): Behaviour => ({ status, body: JSON.stringify(value) })
/** Bytes as the text that they are; a Buffer has become a list of numbers before a replacer sees it. */
const textOf = (answer: unknown): string =>
  JSON.stringify(answer, (_, value) =>
    value instanceof Uint8Array || value?.type === "Buffer" ? Buffer.from(value).toString() : value,
  )

const leaks = (text: string) => [secret, password, base64.slice(8, -4)].filter((one) => text.includes(one))

describe("an answer behind the client", () => {
  effect("is parsed once, and once more only if a secret in it was blanked", function* () {
    const parse = vi.spyOn(JSON, "parse")
    const parsed = (state: object) =>
      Effect.gen(function* () {
        const body = JSON.stringify(state)
        parse.mockClear()
        const answer = yield* ask({ status: 202, body }, (service) => service.readExecution(anId("e-1")))
        const whole = parse.mock.calls.filter(([text]) => text.length >= body.length - password.length)
        return [answer._tag, whole.length]
      })
    const state = { status_code: "ONGOING", messages: [{ date: "2026-11-21T02:00:00Z", message: "a" }] }
    assert.deepStrictEqual(yield* parsed(state), ["Working", 1])
    assert.deepStrictEqual(yield* parsed({ ...state, status_message: password }), ["Working", 2])
    parse.mockRestore()
  })

  effect("has neither the application secret nor a password in any field, key or header", function* () {
    const names =
      "session_id customer_id status_code status_reason status_message authentication_status locking_hash"
    const said = {
      execution_id: `x-${echo}`,
      ...Object.fromEntries(names.split(" ").map((name) => [name, echo])),
      products_count: { [echo]: 1, [password]: 0 },
      features: [{ code: echo, status_reason: echo }],
      messages: [{ id: echo, loc: [echo], type: echo, message: echo }],
      executions: { extra: { [echo]: [echo, { [echo]: echo }] } },
    }
    const start = (service: Service["Service"]) => service.startExecution(startCall(), Effect.void)
    const read = (service: Service["Service"]) => service.readExecution(anId("e-1"))
    const answers = [
      yield* ask(json(202, said), start),
      yield* ask(json(400, said), start),
      yield* ask(json(409, said), start),
      yield* ask(json(200, said), read),
      yield* ask(json(202, said), read),
      yield* ask(json(423, { ...said, producer: echo }), read),
      yield* ask(json(200, [said]), (service) => service.listEngines),
      yield* ask(json(503, { detail: echo }), (service) => service.showEngine(anId("bank"))),
      yield* ask({ status: 422, body: `<p>${echo}</p>` }, start),
      yield* ask({ status: 200, body: "x", headers: { "content-type": `a/b; c=${echo}` } }, (service) =>
        Effect.map(service.downloadAttachment(anId("s"), "a"), (answer) => ({
          ...answer,
          bytes: Stream.empty,
        })),
      ),
    ]
    for (const answer of answers.map(textOf)) {
      assert.deepStrictEqual(leaks(answer), [])
      assert.include(answer, "[blanked]")
    }
  })

  effect("names no execution by a secret: such an id is absent", function* () {
    const said = { execution_id: secret, session_id: `s-${password}`, status_code: "ONGOING" }
    const started = yield* ask(json(202, said), (service) => service.startExecution(startCall(), Effect.void))
    assert.deepStrictEqual("view" in started ? started.view : undefined, { status_code: "ONGOING" })
  })

  effect("counts two families whose names were blanked as two", function* () {
    const said = { products_count: { [`${password}:a`]: 5, [`${password}:b`]: 0 } }
    const state = yield* ask(json(200, said), (service) => service.readExecution(anId("e-1")))
    assert.deepStrictEqual("view" in state ? state.view.products_count : undefined, {
      _tag: "Counted",
      counts: { "[blanked]:a": 5, "[blanked]:b 2": 0 },
    })
  })

  effect("keeps records as they are, and nothing else", function* () {
    const said = { data: { [echo]: echo }, is_closed: true, status: echo }
    const results = yield* ask(json(200, said), (service) =>
      service.readResults(flowResultsSource, { execution_id: anId("e"), session_id: anId("s") }),
    )
    const body = results._tag === "Results" ? JSON.parse(Buffer.from(results.body.bytes).toString()) : {}
    assert.deepStrictEqual(body.data, said.data)
    assert.deepStrictEqual(leaks(JSON.stringify({ ...body, data: 0 })), [])
    const profile = yield* ask(json(200, { name: echo }), (service) =>
      service.readResults(profileSource, { execution_id: anId("e"), session_id: anId("s") }),
    )
    assert.deepStrictEqual(profile._tag === "Results" ? profile.body.json : {}, { name: echo })
  })

  effect("keeps the beginning of an unusable body, and no part of a secret at its cut end", function* () {
    const before = "x".repeat(keptBytes - password.length / 2)
    const text = `{"message":"${before.slice(12)}${password}","deep":${"[".repeat(bodyBounds.depthMax + 1)}`
    const read = yield* ask({ status: 200, body: text }, (service) => service.readExecution(anId("e-1")))
    const bytes = read._tag === "Closed" ? read.body.bytes : new Uint8Array()
    assert.strictEqual(bytes.byteLength, keptBytes)
    const kept = Buffer.from(bytes).toString()
    assert.deepStrictEqual([kept.slice(0, 20), kept.slice(-20).includes("pw-")], [text.slice(0, 20), false])
    // What is kept holds on to nothing of the rest.
    assert.isBelow(bytes.buffer.byteLength, 2 * keptBytes)
  })

  effect("returns ticket and key once, and blanks both from then on [promise 12 issued]", function* () {
    const known = makeKnownSecrets()
    const ticket = "ticket-canary-3c"
    const session_token = "session-canary-4d"
    const token_key = "token-key-canary-4d"
    const started = yield* ask(
      json(202, { execution_id: "e-1", ticket, session_token, status_message: ticket, [ticket]: 1 }),
      (service) => service.startExecution(startCall(), Effect.void),
      known,
    )
    assert.isTrue(
      started._tag === "Accepted" && started.view.ticket && Redacted.value(started.view.ticket) === ticket,
    )
    assert.notInclude(textOf(started), ticket)
    const exchanged = yield* ask(
      json(200, {
        token: { token_id: "t-1", token_key },
        context: { app_id: token_key, locking_hash: ticket },
      }),
      (service) => service.exchangeTicket(anId("e-1"), Redacted.make(ticket)),
      known,
    )
    assert.isTrue(exchanged._tag === "Exchanged" && Redacted.value(exchanged.token.token_key) === token_key)
    assert.deepStrictEqual(exchanged._tag === "Exchanged" ? exchanged.context : {}, {
      app_id: "[blanked]",
      locking_hash: "[blanked]",
    })
    const state = yield* ask(
      json(200, { status_reason: `${ticket} ${token_key}`, status_message: session_token }),
      (service) => service.readExecution(anId("e-1")),
      known,
    )
    assert.deepStrictEqual("view" in state ? state.view.status_reason : "", "[blanked] [blanked]")
    assert.notInclude(textOf(state), session_token)
  })

  effect(
    "about tokens shows neither ticket nor key, in failures, causes, answers or their text",
    function* () {
      const [ticket, token_key] = ["ticket-canary-3", "token-key-canary-3"]
      const login = { _tag: "Token", token_id: "t-1", token_key: Redacted.make(token_key) } as const
      const pair = JSON.stringify({ token_id: "t-1", token_key })
      const bodies = [
        `{"token":${pair},"context":{},"ticket":"${ticket}"}`,
        `{"token":${pair}`,
        `"${token_key} ${ticket}"`,
      ]
      const shown: Array<string> = []
      for (const status of [200, 202, 302, 400, 401, 403, 404, 409, 422, 429, 500, 503])
        for (const body of bodies) {
          const service = yield* Effect.provide(Service, (yield* stageInProcess({ status, body })).layer)
          const calls: ReadonlyArray<Effect.Effect<unknown, CallFailure>> = [
            service.exchangeTicket(anId("e-1"), Redacted.make(ticket)),
            service.startExecution(startCall({ login }), Effect.void),
            service.revokeToken("t-1"),
          ]
          for (const call of calls) {
            const exit = yield* Effect.exit(call)
            const cause = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
            shown.push(inspect(exit, { depth: 20 }), JSON.stringify(exit), cause)
          }
        }
      assert.isAbove(shown.length, 100)
      assert.deepStrictEqual(
        shown.filter((text) => text.includes(ticket) || text.includes(token_key)),
        [],
      )
    },
  )
})
