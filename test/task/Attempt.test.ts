/** What each answer of the port means for an attempt. */
import { Duration } from "effect"
import { describe, expect, it } from "vitest"
import { foreign, isOurs, readAbort, readStart, readState } from "../../src/task/Attempt.ts"
import { AnswerLost, NotSent, SecretRefused, Throttled, UnexpectedAnswer } from "../../src/client/Service.ts"
import type { AcceptanceView, Body, StartAnswer, StateView } from "../../src/client/Service.ts"
import { anId } from "../harness/Id.ts"

const body = { bytes: new Uint8Array(), json: undefined }
const message = "said"
const sent = { external_execution_id: "ours" }
const accepted = (view: AcceptanceView, said: Body = body): StartAnswer => ({
  _tag: "Accepted",
  http_status: 202,
  body: said,
  view,
})
const conflict = (view: AcceptanceView, said: Body = body): StartAnswer => ({
  _tag: "AlreadyExecuting",
  body: said,
  view,
})
const refused = (http_status: number, view: AcceptanceView, said: Body = body): StartAnswer => ({
  _tag: "Refused",
  http_status,
  body: said,
  view,
})
const ids = { execution_id: anId("e-1"), session_id: anId("s-1") }

describe("the answer to a start", () => {
  it("accepted: it is open; without an id it cannot be followed, so it counts as lost", () => {
    expect(readStart(sent, accepted(ids))).toEqual({ answer: "accepted", http_status: 202, ...ids })
    expect(readStart(sent, accepted({}))).toEqual({ answer: "lost", http_status: 202 })
  })

  it("a conflict with our own external id may be an echo of the request: only the state shows which [promise 2 echo]", () => {
    expect(readStart(sent, conflict({ ...ids, external_execution_id: "ours" }))).toEqual({
      answer: "conflict",
      ...ids,
      otherwise: foreign,
    })
    expect(readStart(sent, conflict({ ...ids, external_execution_id: "theirs" }))).toEqual(foreign)
    expect(readStart(sent, conflict({ external_execution_id: "ours" }))).toEqual(foreign)
    expect(readStart(sent, conflict(ids))).toEqual({ answer: "conflict", ...ids, otherwise: foreign })
  })

  it("a conflict is about our own execution if its state names everything of ours, and nothing else [promise 2]", () => {
    const ours = { external_execution_id: "ours", customer_id: anId("c-1"), engine_reference: anId("bank") }
    const told = (view: StateView) => isOurs({ _tag: "Working", body, view }, ours)
    expect([told({ external_execution_id: "ours" }), told(ours)]).toEqual([true, true])
    for (const strange of [
      {},
      { ...ours, external_execution_id: "theirs" },
      { customer_id: anId("c-1"), engine_reference: anId("bank") },
      { ...ours, customer_id: anId("c-2") },
      { ...ours, engine_reference: anId("tax") },
    ])
      expect([strange, told(strange)]).toEqual([strange, false])
    expect(isOurs({ _tag: "ActionRequired", body, view: ours }, ours)).toBe(true)
    expect(isOurs({ _tag: "ActionRequired", body, view: {} }, ours)).toBe(false)
    expect(isOurs({ _tag: "NotFound" }, ours)).toBe(false)
  })

  it("that cannot be used is an answer all the same: it is not sent again, and nobody's conflict is ours", () => {
    const broken = { ...body, unusable: "it is nested too deeply" }
    expect([
      readStart(sent, accepted(ids, broken)),
      readStart(sent, refused(400, { status_reason: "T10N_FORBIDDEN" }, broken)),
      readStart(sent, refused(422, {}, broken)),
      readStart(sent, conflict(ids, broken)),
    ]).toEqual([
      { answer: "unusable", http_status: 202 },
      { answer: "unusable", http_status: 400 },
      { answer: "unusable", http_status: 422 },
      foreign,
    ])
  })

  it("refused: it never starts, with the service's reason or one of ours", () => {
    expect([
      readStart(sent, refused(400, { status_reason: "T10N_FORBIDDEN" })),
      readStart(sent, refused(400, {})),
      readStart(sent, refused(422, {})),
      readStart(sent, new UnexpectedAnswer({ http_status: 404, message })),
      readStart(sent, new UnexpectedAnswer({ http_status: 418, message })),
    ]).toMatchObject([
      { answer: "refused", http_status: 400, status_reason: "T10N_FORBIDDEN" },
      { answer: "refused", http_status: 400, status_reason: "UNEXPECTED_ANSWER" },
      { answer: "refused", http_status: 422, status_reason: "BAD_CONFIGURATIONS" },
      { answer: "refused", http_status: 404, status_reason: "ENGINE_UNKNOWN" },
      { answer: "refused", http_status: 418, status_reason: "UNEXPECTED_ANSWER" },
    ])
  })

  it("refused over fields of the login only is told as that, not as settings [end refused parameters]", () => {
    const reasonOf = (...locs: ReadonlyArray<unknown>) => {
      const answer = readStart(
        sent,
        refused(422, {}, { ...body, json: { detail: locs.map((loc) => ({ loc })) } }),
      )
      return "status_reason" in answer ? answer.status_reason : answer
    }
    const parameters = "INCORRECT_PARAMETERS_FORMAT"
    const settings = "BAD_CONFIGURATIONS"
    expect([
      reasonOf(["body", "parameters", "password"], ["parameters"]),
      reasonOf(["body", "parameters", "password"], ["body", "engine_reference"]),
      reasonOf(["body", "features", 0, "configurations", "parameters"]),
      reasonOf(),
      reasonOf("parameters"),
    ]).toEqual([parameters, settings, settings, settings, settings])
  })

  it("refused over fields says which, and why; never what was sent [end refused fields]", () => {
    const item = {
      loc: ["body", "parameters", "pin"],
      msg: "too short",
      type: "t",
      input: "12",
      ctx: { min: 4 },
    }
    const saidOf = (detail: unknown) => {
      const answer = readStart(sent, refused(422, {}, { ...body, json: { detail } }))
      return "said" in answer ? answer.said : undefined
    }
    expect([
      saidOf([item, { loc: ["features", 0], msg: 7 }, "x", { msg: "no place" }]),
      saidOf(Array(7).fill({ loc: ["a"] })),
      saidOf([]),
      saidOf("parameters"),
    ]).toEqual([
      "parameters.pin: too short; features.0; no place",
      "a; a; a; a; a; 2 more",
      undefined,
      undefined,
    ])
  })

  it("refused: no login was sent only if the reference says so, and one that was rejected is [promise 4]", () => {
    const form = { ...body, json: { detail: [] } }
    const unexpected = (http_status: number) => new UnexpectedAnswer({ http_status, message })
    const loginOf = (answer: ReturnType<typeof readStart>) => ("login" in answer ? answer.login : answer)
    const withToken = { ...sent, withToken: true }
    expect(
      [
        readStart(sent, refused(400, { status_reason: "T10N_FORBIDDEN" })),
        readStart(sent, refused(400, { status_reason: "CUSTOMER_INTERVENTION_REQUIRED" })),
        readStart(sent, refused(422, {}, form)),
        readStart(withToken, refused(422, {})),
        readStart(withToken, unexpected(404)),
        readStart(withToken, unexpected(405)),
        readStart(sent, refused(400, { status_reason: "INCORRECT_CREDENTIALS" })),
        readStart(sent, refused(422, { status_reason: "BLOCKED_USER" })),
        readStart(sent, refused(400, {})),
        readStart(sent, refused(422, {})),
        readStart(sent, refused(422, { status_reason: "CUSTOMER_INTERVENTION_REQUIRED" })),
        readStart(sent, unexpected(404)),
        readStart(sent, unexpected(302)),
      ].map(loginOf),
    ).toEqual([
      ...Array.from({ length: 6 }, () => "not_sent"),
      "rejected",
      "rejected",
      ...Array.from({ length: 5 }, () => "unproven"),
    ])
  })

  it("that says that the login was refused is a refusal, whatever its status [promise 4 answered] [promise 4 answered echo]", () => {
    const said = { status_code: "AUTH_ERROR", status_reason: "BLOCKED_USER" }
    const login = { answer: "refused", status_reason: "BLOCKED_USER", login: "rejected" }
    expect(readStart(sent, accepted(said))).toEqual({ ...login, http_status: 202 })
    for (const more of [{}, { external_execution_id: "ours" }])
      expect(readStart(sent, conflict({ ...said, ...more }))).toEqual({ ...login, http_status: 409 })
    for (const http_status of [403, 429, 500, 503])
      expect(readStart(sent, refused(http_status, said))).toEqual({ ...login, http_status })
    const unnamed = { status_code: "ONGOING", authentication_status: "INCORRECT_CREDENTIALS" }
    expect(readStart(sent, accepted(unnamed))).toMatchObject({
      answer: "refused",
      status_reason: "INCORRECT_CREDENTIALS",
    })
    // An execution that is known is followed all the same.
    expect(readStart(sent, accepted({ ...said, ...ids }))).toEqual({
      answer: "accepted",
      http_status: 202,
      ...ids,
      seen: { ...said, authentication_status: "BLOCKED_USER" },
    })
    // What a 409 says of the run that it names is that run's.
    expect(readStart(sent, conflict({ ...said, external_execution_id: "other" }))).toEqual(foreign)
  })

  it("refused with the id of an execution may be our own run: its state shows which", () => {
    for (const http_status of [400, 422] as const)
      expect(readStart(sent, refused(http_status, ids))).toMatchObject({ answer: "conflict", ...ids })
  })

  it("nothing was created by an unsent request or a 429, nor by a 503 or a refused secret that was asked about", () => {
    const unsaid = { http_status: undefined, retry_after: undefined }
    const none = { answer: "not_created", ...unsaid, isEngineAway: false }
    const isAway = { isEngineAway: true, isSecretRefused: false }
    const away = { ...none, http_status: 503, isEngineAway: true }
    expect([
      readStart(sent, new NotSent({ message })),
      readStart(sent, new Throttled({ http_status: 429, retry_after: Duration.millis(7_000), message })),
      readStart(sent, new SecretRefused({ http_status: 403, message }), {
        isEngineAway: false,
        isSecretRefused: true,
      }),
      readStart(sent, { _tag: "EngineUnavailable", retry_after: Duration.millis(9_000) }, isAway),
      readStart(sent, { _tag: "EngineUnavailable" }, isAway),
    ]).toEqual([
      none,
      { ...none, http_status: 429, retry_after: Duration.millis(7_000) },
      { ...none, http_status: 403, isSecretRefused: true },
      { ...away, retry_after: Duration.millis(9_000) },
      away,
    ])
  })

  it("a lost answer, a 5xx, and a 403 or 503 that nothing confirms leave open whether it exists", () => {
    expect(readStart(sent, { _tag: "EngineUnavailable" })).toEqual({ answer: "lost", http_status: 503 })
    expect(readStart(sent, new SecretRefused({ http_status: 403, message }))).toEqual({
      answer: "lost",
      http_status: 403,
    })
    expect([
      readStart(sent, new AnswerLost({ message })),
      readStart(sent, new AnswerLost({ http_status: 502, message })),
      readStart(sent, new UnexpectedAnswer({ http_status: 507, message })),
    ]).toEqual([
      { answer: "lost", http_status: undefined },
      { answer: "lost", http_status: 502 },
      { answer: "lost", http_status: 507 },
    ])
  })
})

describe("a read of the state", () => {
  const told = (tag: "Closed" | "Working", view: StateView) => {
    const looked = readState({ _tag: tag, body, view })
    return looked._tag === "Closed" ? [looked._tag, looked.status_code, looked.status_reason] : [looked._tag]
  }

  const done = { status_code: "COMPLETED", status_reason: "COMPLETED" }
  const strange = { status_code: "PAUSED", status_reason: "OF_TOMORROW" }
  const running = { status_code: "ONGOING", status_reason: "RUNNING" }
  const wrong = { status_code: "CONFIGURATION_ERROR", status_reason: "INCORRECT_PARAMETERS_FORMAT" }
  const blocked = { status_code: "AUTH_ERROR", status_reason: "BLOCKED_USER" }

  it("ends with is_closed, whichever status carries it, else with a 200 that says so", () => {
    const ends: ReadonlyArray<readonly ["Closed" | "Working", StateView]> = [
      ["Closed", { ...done, is_closed: true }],
      ["Working", { ...done, is_closed: true }],
      ["Closed", { ...strange, is_closed: true }],
      ["Closed", strange],
      // A rejected request is over, is_closed or not.
      ...[wrong, blocked].flatMap((view) => [
        ["Closed", view] as const,
        ["Closed", { ...view, is_closed: false }] as const,
      ]),
    ]
    for (const [tag, view] of ends)
      expect(told(tag, view)).toEqual(["Closed", view.status_code, view.status_reason])
    expect(told("Closed", { is_closed: true })).toEqual(["Closed", "UNKNOWN", "UNKNOWN"])
  })

  it("waits for more where a 200 with records says that it is not closed [promise 5 open]", () => {
    for (const code of ["COMPLETED", "PARTIAL", "FAILED", "ABORTED", "TEMPORARY_ERROR"]) {
      const view = { status_code: code, status_reason: code }
      expect([told("Closed", view), told("Closed", { ...view, is_closed: false })]).toEqual([
        ["Closed", code, code],
        ["Working"],
      ])
    }
  })

  it("ends with nothing else: a 202, a 200 that says nothing, or that the execution is running", () => {
    const open: ReadonlyArray<readonly ["Closed" | "Working", StateView]> = [
      ["Working", { ...done, is_closed: false }],
      ["Working", done],
      ["Working", strange],
      ["Closed", { ...strange, is_closed: false }],
      ["Closed", {}],
      ["Closed", { is_closed: false }],
      ["Closed", running],
      ["Closed", { ...running, is_closed: false }],
    ]
    expect(open.map(([tag, view]) => told(tag, view))).toEqual(open.map(() => ["Working"]))
  })

  it("recognises a question to the customer, and an execution that is gone", () => {
    expect(readState({ _tag: "ActionRequired", body, view: {} })).toEqual({ _tag: "Challenge" })
    expect(told("Working", { status_code: "ACTION_REQUIRED", status_reason: "MFA_REQUIRED" })).toEqual([
      "Challenge",
    ])
    expect(readState({ _tag: "NotFound" })).toEqual({ _tag: "Gone" })
  })
})

it("the answer to an abort asks for another abort only if nothing was stopped", () => {
  const stopped = ["aborted", "already_closed", "not_found"] as const
  expect(stopped.map(readAbort)).toEqual(["look", "look", "look"])
  expect([
    readAbort("not_stoppable"),
    readAbort(new AnswerLost({ message })),
    readAbort(new NotSent({ message })),
    readAbort(new Throttled({ http_status: 429, message })),
  ]).toEqual(["again", "again", "again", "again"])
})
