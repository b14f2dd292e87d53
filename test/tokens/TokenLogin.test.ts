/**
 * Logins by token before a start: which token stands in for which parameters, what it may ask for, and every
 * reason for which it logs in nobody.
 */
import { Duration } from "effect"
import { describe, expect, it } from "vitest"
import type { Assignment } from "../../src/jobs/Job.ts"
import type { StoredToken } from "../../src/tokens/StoredToken.ts"
import { tokenLifetimeMs } from "../../src/tokens/StoredToken.ts"
import type { Decision } from "../../src/planning/Assignment.ts"
import { noExpectations } from "../../src/planning/Expectations.ts"
import { fingerprintLogin } from "../../src/secrets/Fingerprint.ts"
import type { ResolvedLogin } from "../../src/planning/Logins.ts"
import { planTasks } from "../../src/planning/Plan.ts"
import { makeShelf } from "../../src/tokens/TokenLogin.ts"
import { assignment, planOn, refitOn, fitOf, grounds, key, known, login } from "../planning/Samples.ts"
import { anId } from "../harness/Id.ts"

const day = 24 * 60 * 60_000
const now = Date.UTC(2026, 10, 21)
const values = { username: "user", password: "pass word" }
const fingerprint = fingerprintLogin(key, "bank:website", values)
const service = "https://service.example"
const bank = { customer_id: anId("c-1"), engine_reference: anId("bank:website") }

const stored = (changes: Partial<StoredToken> = {}): StoredToken => ({
  ...bank,
  name: "c-1/bank:website",
  service,
  token_id: "t-1",
  app_id: "app",
  features: ["accounts_read", "yearly_individual_tax"],
  locking_hash: undefined,
  fingerprint,
  exchanged_at: now - 10 * day,
  expires_at: now + 80 * day,
  dropped: undefined,
  hasKey: true,
  ...changes,
})

const wanting = (tokenized_access: boolean): Assignment["login"] => ({
  _tag: "Parameters",
  parameters: {},
  tokenized_access,
})
const named = (name: string): Assignment["login"] => ({ _tag: "Token", name })
const none: ResolvedLogin = { _tag: "NoParameters" }
const unresolved: ResolvedLogin = { _tag: "Unresolved", missing: ["password: env:P: not set"] }

const decide = (
  tokens: ReadonlyArray<StoredToken>,
  changes: Partial<Assignment>,
  resolved: ResolvedLogin = login(values),
  more: Parameters<typeof grounds>[0] = {},
): Decision =>
  planOn(
    assignment(changes),
    resolved,
    known(),
    grounds({ tokens: makeShelf(tokens, service, now), ...more }),
  )

/** How the task logs in, or why it does not. */
const outcomeOf = (decision: Decision): string => {
  if (decision._tag === "Settled") {
    const { outcome, reason, who_acts } = decision.verdict
    return `${outcome} ${reason} ${who_acts}`
  }
  const { login: used } = decision.task.start
  if (used._tag === "Token") return `token ${used.token.token_id}`
  return used.tokenized_access ? "parameters, asking for a ticket" : "parameters"
}

describe("a job that asks for tokenized access", () => {
  const asked = { login: wanting(true) }
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<StoredToken>, string]> = [
    ["without a token signs in and asks for a ticket", [], "parameters, asking for a ticket"],
    ["uses the token that was made with its parameters", [stored()], "token t-1"],
    ["trusts a token that was exchanged by hand", [stored({ fingerprint: undefined })], "token t-1"],
    [
      "signs in anew when its parameters have changed since",
      [stored({ fingerprint: "other" })],
      "parameters, asking for a ticket",
    ],
    [
      "signs in anew when the token's time is over",
      [stored({ expires_at: now })],
      "parameters, asking for a ticket",
    ],
    [
      "signs in anew when the token was dropped",
      [stored({ dropped: { reason: "T10N_REJECTED", at: 1 }, hasKey: false })],
      "parameters, asking for a ticket",
    ],
    [
      "signs in anew when the service does not know the token",
      [stored({ dropped: { reason: "TOKEN_UNKNOWN", at: 1 } })],
      "parameters, asking for a ticket",
    ],
    [
      "leaves alone what belongs to another service, customer or engine",
      [
        stored({ service: "https://elsewhere.example" }),
        stored({ customer_id: anId("c-2") }),
        stored({ engine_reference: anId("tax:website") }),
      ],
      "parameters, asking for a ticket",
    ],
    [
      "prefers the token that it keeps itself, then the newest",
      [
        stored({ name: "a", token_id: "t-a", exchanged_at: now }),
        stored(),
        stored({ name: "b", token_id: "t-b", exchanged_at: now + 1 }),
      ],
      "token t-1",
    ],
  ]
  it.each(cases)("%s", (_, tokens, expected) => {
    expect(outcomeOf(decide(tokens, asked))).toBe(expected)
  })

  it("no longer needs its parameters once it has a token", () => {
    expect(outcomeOf(decide([stored()], asked, unresolved))).toBe("token t-1")
    expect(outcomeOf(decide([], asked, unresolved))).toBe("unfinished SECRET_UNAVAILABLE engineer")
  })

  it("is settled if no store is open, and uses no token if it does not ask for one", () => {
    const closed = planOn(assignment(asked), login(values), known(), grounds())
    expect(outcomeOf(closed)).toBe("failed TOKENS_UNAVAILABLE engineer")
    expect(outcomeOf(decide([stored()], { login: wanting(false) }))).toBe("parameters")
  })

  it("is decided again when its engine is seen, and only then", () => {
    const given = grounds({ tokens: makeShelf([stored({ fingerprint: branchFingerprint })], service, now) })
    const unseen = planOn(
      assignment(asked),
      login({ ...values, branch: "12" }),
      { _tag: "Unavailable" },
      given,
    )
    if (unseen._tag !== "Task") throw new Error(unseen.verdict.message)
    expect(outcomeOf(unseen)).toBe("parameters, asking for a ticket")
    const seen = refitOn(unseen.task, known(), given)
    expect(outcomeOf(seen)).toBe("token t-1")
    expect(seen._tag === "Task" ? refitOn(seen.task, known(), given) : undefined).toEqual(seen)
  })
  const branchFingerprint = fingerprintLogin(key, "bank:website", { ...values, branch: 12 })
})

describe("a token that a job names", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<StoredToken>, string]> = [
    ["logs in", [stored({ name: "mine" })], "token t-1"],
    ["logs in nobody when nothing has its name", [], "failed TOKEN_UNKNOWN engineer"],
    [
      "logs in nobody else",
      [stored({ name: "mine", customer_id: anId("c-2") })],
      "failed TOKEN_MISMATCH engineer",
    ],
    [
      "logs in on no other engine",
      [stored({ name: "mine", engine_reference: anId("tax:website") })],
      "failed TOKEN_MISMATCH engineer",
    ],
    [
      "logs in at no other service",
      [stored({ name: "mine", service: "https://elsewhere.example" })],
      "failed TOKEN_MISMATCH engineer",
    ],
    [
      "logs in nobody after its 90 days",
      [stored({ name: "mine", expires_at: now })],
      "failed TOKEN_EXPIRED engineer",
    ],
    [
      "logs in nobody once it is dropped",
      [stored({ name: "mine", hasKey: false, dropped: { reason: "LOCKED", at: 1 } })],
      "failed TOKEN_DROPPED engineer",
    ],
    [
      "is tried again when the service only did not know it",
      [stored({ name: "mine", dropped: { reason: "TOKEN_UNKNOWN", at: 1 } })],
      "token t-1",
    ],
  ]
  it.each(cases)("%s", (_, tokens, expected) => {
    expect(outcomeOf(decide(tokens, { login: named("mine") }, none))).toBe(expected)
  })
})

describe("the features of a token", () => {
  const features = (...codes: ReadonlyArray<string>) => ({
    features: codes.map((code) => ({ code, configurations: undefined })),
  })
  const narrowed = (tokenFeatures: ReadonlyArray<string>, ...codes: ReadonlyArray<string>) => {
    const decision = decide([stored({ features: tokenFeatures })], {
      login: wanting(true),
      ...features(...codes),
    })
    return decision._tag === "Task"
      ? [decision.task.features.map(({ code }) => code), decision.warnings]
      : outcomeOf(decision)
  }
  const outside =
    "yearly_individual_tax is outside the token's features and is not asked for; a new token could include it"

  it("narrow what the job requests, with a warning", () => {
    expect(narrowed(["accounts_read"], "accounts_read", "yearly_individual_tax")).toEqual([
      ["accounts_read"],
      [outside],
    ])
  })

  it("are requested by name if the job leaves the choice to the engine", () => {
    expect(narrowed(["accounts_read"])).toEqual([["accounts_read"], []])
  })

  it("that leave nothing to request settle the task before any start", () => {
    expect(narrowed(["accounts_read"], "yearly_individual_tax")).toBe("failed TOKEN_FEATURES engineer")
  })
})

describe("promise 4 with tokens", () => {
  const rejected = (print: string) => ({
    rejections: new Map([
      [
        print,
        {
          seq: 1,
          at: 1,
          fact: {
            _tag: "CredentialRejected" as const,
            run_id: anId("r"),
            task_id: anId("t"),
            fingerprint: print,
            ...bank,
            reason: "BLOCKED_USER",
          },
        },
      ],
    ]),
  })

  it("a login that was rejected is not repeated by the token that was made with it [promise 4]", () => {
    const decision = decide([stored({ name: "mine" })], { login: named("mine") }, none, rejected(fingerprint))
    expect(outcomeOf(decision)).toBe("failed BLOCKED_USER customer")
  })

  it("a login that was rejected under its token is not repeated with its parameters [promise 4]", () => {
    const dropped = stored({ hasKey: false, dropped: { reason: "LOCKED", at: 1 } })
    const decision = decide([dropped], { login: wanting(true) }, login(values), rejected(fingerprint))
    expect(outcomeOf(decision)).toBe("failed BLOCKED_USER customer")
  })

  it("a token of unknown login counts as the parameters that it replaces", () => {
    const unknown = stored({ fingerprint: undefined })
    const decision = decide([unknown], { login: wanting(true) })
    expect(outcomeOf(decision)).toBe("token t-1")
    expect(decision._tag === "Task" ? decision.task.fingerprint : "").toBe(fingerprint)
    const given = grounds({ tokens: makeShelf([unknown], service, now) })
    expect(decision._tag === "Task" ? refitOn(decision.task, known(), given) : "").toEqual(decision)
    const refused = decide([unknown], { login: wanting(true) }, login(values), rejected(fingerprint))
    expect(outcomeOf(refused)).toBe("failed BLOCKED_USER customer")
  })

  it("a token of unknown login that a job names has its own fingerprint", () => {
    const decision = decide(
      [stored({ name: "mine", fingerprint: undefined })],
      { login: named("mine") },
      none,
    )
    const own = fingerprintLogin(key, "bank:website", { token_id: "t-1" })
    expect(decision._tag === "Task" ? decision.task.fingerprint : "").toBe(own)
  })
})

describe("a plan with tokens", () => {
  const about = assignment({ login: wanting(true) })
  const given = login(values)
  const planOf = (tokens: ReadonlyArray<StoredToken>) =>
    planTasks({
      job: {
        assignments: [about],
        sessions: [],
        concurrency: { max_in_flight: 1, per_engine: 1 },
        execution: {
          execution_timeout: Duration.seconds(60),
          unlock_protected_data: false,
          max_wait: Duration.millis(1),
        },
      },
      run_id: anId("n.2026-11-21"),
      engines: new Map([["bank:website", known()]]),
      fits: [fitOf(about, given, known())],
      logins: [given],
      key,
      rejections: new Map(),
      expectations: noExpectations,
      tokens: makeShelf(tokens, service, now),
    })
  const told = (token: StoredToken) => {
    const { expiring, expired, warnings } = planOf([token])
    return [expiring.length, expired.length, warnings.map(({ message }) => message)]
  }

  it("warns from 14 days before a token expires, and not before", () => {
    expect(told(stored({ expires_at: now + 14 * day + 1 }))).toEqual([0, 0, []])
    expect(told(stored({ expires_at: now + 14 * day }))).toEqual([
      1,
      0,
      ["its stored token expires on 2026-12-05, in 14 days"],
    ])
    expect(told(stored({ expires_at: now + 1 }))).toEqual([
      1,
      0,
      ["its stored token expires on 2026-11-21, in 0 days"],
    ])
  })

  it("names expired tokens, once", () => {
    expect(told(stored({ expires_at: now }))).toEqual([0, 1, []])
    const over = { reason: "EXPIRED", at: 1 }
    expect(told(stored({ expires_at: now, dropped: over, hasKey: false }))).toEqual([0, 0, []])
  })

  it("uses the lifetime of section 8: 90 days from the exchange", () => {
    expect(tokenLifetimeMs).toBe(90 * day)
  })
})
