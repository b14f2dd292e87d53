/** A job whose `hooks_extra_data` would send one of its secrets starts nothing. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { HookPair, Job } from "../../src/jobs/Job.ts"
import { secretsOf } from "../harness/SecretsMemory.ts"
import { assignmentsBehind, checkedLogins, holdsSecret } from "../../src/task/Assignment.ts"
import { resolveReferences } from "../../src/task/Assignment.ts"
import { assignment, known, literal, paramsForm } from "./Samples.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const values = new Map([
  ["file:pin", "9090"],
  ["exec:pass show c-2", "hunter22"],
  ["env:APP", "s3cr3t-app"],
  ["env:KEY", "k3y-of-store"],
])
const pair = (value: string, key = "k"): HookPair => ({
  key,
  value,
  key_place: { file: "a.yaml", line: 5, column: 3 },
  place: { file: "a.yaml", line: 5, column: 7 },
})
const first = assignment({
  login: {
    _tag: "Parameters",
    tokenized_access: false,
    parameters: {
      id: literal("2024"),
      pin: { _tag: "Reference", reference: { _tag: "File", path: "pin" } },
      gone: { _tag: "Reference", reference: { _tag: "Env", name: "GONE" } },
    },
  },
})
const second = assignment({
  customer_id: anId("c-2"),
  source: "jobs/a.yaml:9:1",
  login: {
    _tag: "Parameters",
    tokenized_access: false,
    parameters: {
      word: { _tag: "Reference", reference: { _tag: "Exec", command: "pass show c-2" } },
      code: literal("4711"),
    },
  },
})
const form = paramsForm({ code: { type: "string", format: "password" }, word: { type: "string" } })
const engines = new Map([["bank:website", known({ parameters: form })]])

type Changes = Partial<Pick<Job, "service" | "tokens_key">>
const small: Pick<Job, "assignments" | "service" | "tokens_key"> = {
  assignments: [first, second],
  service: { _tag: "Embedded", seed: 1, speed: 1, faults: undefined },
  tokens_key: undefined,
}

const check = (hooks: ReadonlyArray<HookPair>, changes: Changes = {}, only = [first, second]) =>
  Effect.gen(function* () {
    const job = { ...small, hooks, ...changes }
    const resolved = yield* resolveReferences(assignmentsBehind(job, only))
    return yield* checkedLogins(job, only, engines, resolved)
  }).pipe(
    Effect.result,
    Effect.map(
      Result.match({
        onSuccess: (logins) => logins.map(({ _tag }) => _tag),
        onFailure: (error) => error.message,
      }),
    ),
    Effect.provide(secretsOf(values)),
  )

const refused = (what: string) =>
  `a.yaml:5:7: the value of \`hooks_extra_data.k\` is ${what}; the service appends it to every webhook address, ` +
  "which must never hold a secret (reference, 4.1): remove it or write something else"
const parameter = (name: string, source: string) =>
  `the value of the parameter \`${name}\` of the customer at ${source}`
const remote: Changes = {
  service: {
    _tag: "Remote",
    base_url: "https://a",
    flows_url: "https://a/f",
    attachments_url: "https://a/f",
    app_secret: { _tag: "Env", name: "APP" },
  },
  tokens_key: { _tag: "Env", name: "KEY" },
}

describe("a job with hooks_extra_data", () => {
  effect(
    "is refused if a value is a secret that a file, a command or the form shows, also of customers left out",
    function* () {
      expect([
        yield* check([pair("hunter22")]),
        yield* check([pair("4711")]),
        yield* check([pair("s3cr3t-app")], remote),
        yield* check([pair("k3y-of-store")], remote),
      ]).toEqual([
        refused(parameter("word", "jobs/a.yaml:9:1")),
        refused(parameter("code", "jobs/a.yaml:9:1")),
        refused("the application secret"),
        refused("the key of the token store"),
      ])
      expect([
        yield* check([pair("hunter22")], {}, [first]),
        yield* check([pair("9090")], {}, [second]),
      ]).toEqual([
        refused(parameter("word", "jobs/a.yaml:9:1")),
        refused(parameter("pin", "jobs/a.yaml:1:1")),
      ])
    },
  )

  effect("resolves the requested logins if no pair contains a secret, its own ones first", function* () {
    expect([
      yield* check([pair("{event}"), pair("2024")], remote),
      yield* check([pair("{event}")], {}, [second]),
      yield* check([], {}, [first]),
    ]).toEqual([["Unresolved", "Resolved"], ["Resolved"], ["Unresolved"]])
    const app_secret = { _tag: "Env", name: "GONE" } as const
    const service = { ...remote.service, app_secret } as Job["service"]
    expect([
      yield* check([pair("word")], { ...remote, service }),
      yield* check([], { ...remote, service }),
    ]).toEqual(["env:GONE: it is not known", ["Unresolved", "Resolved"]])
  })

  it("is checked again for the key of a stored token", () => {
    expect([
      holdsSecret({ run: "{event}", k: "dG9rZW4ta2V5LTE=" }, ["token-key-1"]),
      holdsSecret({ "token-key-1": "" }, ["token-key-1"]),
      holdsSecret({ run: "{event}" }, ["token-key-1"]),
      holdsSecret({}, ["token-key-1"]),
    ]).toEqual([true, true, false, false])
  })
})
