/** Encrypted values (4.1, 4.3, 5), encrypted with nothing but what the service documents and serves. */
import { createCipheriv, generateKeyPairSync, randomBytes } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { encryptionKey, openParameters } from "../../../src/sandbox/executions/JudgeRequest.ts"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, field, ofTheService, person, shows, textField, wrapped } from "../server/Caller.ts"

const rsa = (key: string, text: string): string => `rsa::${wrapped(Buffer.from(text), key)}`
const hybrid = (key: string, text: string): string => {
  const secret = randomBytes(32)
  const iv = randomBytes(12)
  const cipher = createCipheriv("aes-256-gcm", secret, iv)
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()])
  return `hybrid::${wrapped(secret, key)}.${iv.toString("base64")}.${sealed.toString("base64")}`
}
const seals = { rsa, hybrid }
const stranger = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
}).publicKey

const servedKey = Effect.gen(function* () {
  const caller = yield* Caller
  const answer = yield* caller.call("GET", `${caller.base_url}/sandbox/encryption-key`, { secret: undefined })
  expect(answer.status).toBe(200)
  return textField(answer, "public_key")
})

/** The state of a run with these parameters, after three seconds. */
const stateOf = Effect.fnUntraced(function* (parameters: unknown, customer_id = "c-1") {
  const caller = yield* Caller
  const id = yield* caller.begin("", { parameters, customer_id })
  yield* TestClock.adjust(3_000)
  return yield* caller.read(id)
})

const words = "queue-1+run-2+records-2+end-PARTIAL"

ofTheService("encrypted parameters", (it) => {
  for (const [name, seal] of Object.entries(seals)) {
    it(`are decrypted one by one or as a whole, ${name}:: [field start.parameters] [auth-rule 7]`, function* () {
      const key = yield* servedKey
      const login = { username: words, password: "correct" }
      const each = { username: seal(key, words), password: seal(key, "correct") }
      for (const parameters of [each, seal(key, JSON.stringify(login))])
        shows(yield* stateOf(parameters), { status_reason: "PARTIAL", execution_time: 2 })
    })

    it(`that were encrypted for somebody else end the run at once, each by name, ${name}:: [reason ENCRYPTION_ERROR] [field execution.parameters_errors] [auth-rule 7]`, function* () {
      const key = yield* servedKey
      const lost = seal(stranger, "correct")
      shows(yield* stateOf({ username: seal(key, words), password: lost }), {
        status: 200,
        status_code: "CONFIGURATION_ERROR",
        status_reason: "ENCRYPTION_ERROR",
        total_elapsed_time: 0,
        authentication_status: "not-performed",
        "parameters_errors.0.loc": ["password"],
        "parameters_errors.0.type": "encryption_error",
        "parameters_errors.1": undefined,
      })
      const whole = yield* stateOf(seal(stranger, JSON.stringify({ username: words })), "c-2")
      shows(whole, { status_reason: "ENCRYPTION_ERROR", "parameters_errors.0.loc": [] })
    })
  }

  it("are judged by the form once decrypted, and never shown in clear text [reason INCORRECT_PARAMETERS_FORMAT]", function* () {
    const key = yield* servedKey
    for (const parameters of [
      { username: words, password: rsa(key, "zyx") },
      hybrid(key, JSON.stringify({ username: words, password: "zyx" })),
    ]) {
      const state = yield* stateOf(parameters)
      const msg = "must NOT have fewer than 4 characters"
      const parameters_errors = [{ loc: ["password"], msg, type: "value_error.minLength" }]
      shows(state, { status_reason: "INCORRECT_PARAMETERS_FORMAT", parameters_errors })
      expect(state.text).not.toContain("zyx")
    }
  })

  it("of one login are recognised as that login, however they were encrypted [field execution.locking_hash]", function* () {
    const key = yield* servedKey
    const login = { username: "queue-1+run-2", password: "correct" }
    const hashes = []
    for (const parameters of [
      login,
      { ...login, password: rsa(key, "correct") },
      hybrid(key, JSON.stringify(login)),
      { ...login, password: rsa(key, "another") },
      { ...login, username: "queue-1+run-2+ok" },
    ]) {
      hashes.push(field(yield* stateOf(parameters), "locking_hash"))
    }
    const { truth } = yield* Sandbox
    const keys = (yield* truth).executions.map(({ login_key }) => login_key)
    const groups = (values: ReadonlyArray<unknown>) => values.map((value) => values.indexOf(value))
    expect([groups(hashes), groups(keys)]).toEqual([
      [0, 0, 0, 0, 4],
      [0, 0, 0, 3, 4],
    ])
    expect(String(hashes[0])).toMatch(/^v1\.[0-9a-f]{64}$/)
  })
})

ofTheService("an encrypted answer to a challenge", (it) => {
  const answered = (body: unknown) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const id = yield* caller.begin("queue-0+run-2+challenge-4711", person)
      yield* TestClock.adjust(1_000)
      expect((yield* caller.resume(id, body)).status).toBe(202)
      yield* TestClock.adjust(5_000)
      return yield* caller.read(id)
    })
  const whole = JSON.stringify({ code: "4711" })

  for (const [name, seal] of Object.entries(seals)) {
    it(`is decrypted, by value or as a whole, ${name}:: [resume-rule 2] [auth-rule 7]`, function* () {
      const key = yield* servedKey
      for (const body of [{ code: seal(key, "4711") }, seal(key, whole)])
        shows(yield* answered(body), { status_reason: "COMPLETED" })
    })

    it(`that cannot be decrypted is accepted and ends the run, ${name}:: [reason ENCRYPTION_ERROR]`, function* () {
      for (const [body, loc] of [
        [{ code: seal(stranger, "4711") }, ["code"]],
        [seal(stranger, whole), []],
      ] as const) {
        const error = { loc, msg: "value cannot be decrypted", type: "encryption_error" }
        shows(yield* answered(body), { status_reason: "ENCRYPTION_ERROR", parameters_errors: [error] })
      }
    })
  }
})

it("a damaged value does not open, and nothing throws", () => {
  const good = [
    rsa(encryptionKey.public_key, "correct"),
    hybrid(encryptionKey.public_key, '{"password":"correct"}'),
  ]
  expect(good.map((sealed) => openParameters({ sealed }).values["sealed"])).toEqual([
    "correct",
    '{"password":"correct"}',
  ])
  fc.assert(
    fc.property(fc.constantFrom(...good), fc.nat(), fc.nat({ max: 255 }), (sealed, place, byte) => {
      const [scheme = "", ...rest] = sealed.split("::")
      const parts = rest.join("::").split(".")
      const index = place % parts.length
      const bytes = Buffer.from(parts[index] ?? "", "base64")
      const at = place % bytes.length
      const before = bytes[at]
      bytes[at] = byte
      const damaged = parts.with(index, bytes.toString("base64")).join(".")
      const { values, findings } = openParameters({ value: `${scheme}::${damaged}` })
      expect([Object.keys(values).length, findings.length]).toEqual(before === byte ? [1, 0] : [0, 1])
    }),
  )
  const junk = ["rsa::", "hybrid::", "hybrid::..", "hybrid::a.b", "rsa::\u0000", `rsa::${"A".repeat(9_999)}`]
  const odd = ["[]", "3", "null", "{", '"x"'].map((text) => rsa(encryptionKey.public_key, text))
  for (const value of [...junk, ...junk.map((one) => ({ one })), ...odd])
    expect(openParameters(value).findings.length).toBe(1)
})
