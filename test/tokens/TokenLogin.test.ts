/**
 * Logins by token before a start: which token stands in for which parameters, what it may ask for, and every
 * reason for which it logs in nobody.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { Assignment } from "../../src/jobs/Job.ts"
import type { StoredToken } from "../../src/tokens/StoredToken.ts"
import type { Decision, ResolvedLogin } from "../../src/task/Assignment.ts"
import { AccountBook, newAccount } from "../../src/ledger/Accounts.ts"
import { fingerprintLogin, keptKeys } from "../../src/privacy/Fingerprint.ts"
import { planTasks } from "../../src/task/Plan.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import { endingFacts, loginOf, makeShelf, parametersBehind, readShelf } from "../../src/tokens/TokenLogin.ts"
import { tokenOf, withNewToken } from "../../src/tokens/TokenLogin.ts"
import { TokenStore } from "../../src/tokens/TokenStore.ts"
import { assignment, planOn, refitOn, fitOf, grounds, key, known, login } from "../task/Samples.ts"
import { rejectedAccount, rejectedLogin, unknownAccount } from "../task/Samples.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"
import { keepPlain, withStore } from "./OpenStore.ts"

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

const taskWith = (decision: Decision) =>
  decision._tag === "Task" ? decision.task : expect.fail(decision.verdict.message)

describe("a job that asks for tokenized access", () => {
  const asked = { login: wanting(true) }
  const anew = "parameters, asking for a ticket"
  it.each<readonly [string, ReadonlyArray<Partial<StoredToken>>, string]>([
    ["without a token signs in and asks for a ticket", [], anew],
    ["uses the token that was made with its parameters", [{}], "token t-1"],
    ["trusts a token that was exchanged by hand", [{ fingerprint: undefined }], "token t-1"],
    ["signs in anew when its parameters have changed since", [{ fingerprint: "other" }], anew],
    ["signs in anew when the token's time is over", [{ expires_at: now }], anew],
    [
      "signs in anew when it was dropped",
      [{ dropped: { reason: "T10N_REJECTED", at: 1 }, hasKey: false }],
      anew,
    ],
    ["signs in anew when the service knows none", [{ dropped: { reason: "TOKEN_UNKNOWN", at: 1 } }], anew],
    [
      "leaves alone what belongs to another service, customer or engine",
      [
        { service: "https://elsewhere.example" },
        { customer_id: anId("c-2") },
        { engine_reference: anId("tax:website") },
      ],
      anew,
    ],
    [
      "prefers the token that it keeps itself, then the newest",
      [
        { name: "a", token_id: "t-a", exchanged_at: now },
        {},
        { name: "b", token_id: "t-b", exchanged_at: now + 1 },
      ],
      "token t-1",
    ],
  ])("%s", (_, tokens, expected) => {
    expect(outcomeOf(decide(tokens.map(stored), asked))).toBe(expected)
  })

  it("no longer needs its parameters once it has a token", () => {
    expect(outcomeOf(decide([stored()], asked, unresolved))).toBe("token t-1")
    expect(outcomeOf(decide([], asked, unresolved))).toBe("unfinished SECRET_UNAVAILABLE engineer")
  })

  it("is settled if no store is open, and uses no token if it does not ask for one", () => {
    const closed = planOn(assignment(asked), login(values), known(), grounds())
    expect(closed._tag === "Settled" && [closed.verdict.reason, closed.verdict.message]).toEqual([
      "TOKENS_UNAVAILABLE",
      "the token store is not open: the job needs `tokens: { key }`",
    ])
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
    expect(outcomeOf(unseen)).toBe("parameters, asking for a ticket")
    const seen = refitOn(taskWith(unseen), known(), given)
    expect(outcomeOf(seen)).toBe("token t-1")
    expect(refitOn(taskWith(seen), known(), given)).toEqual(seen)
  })
  const branchFingerprint = fingerprintLogin(key, "bank:website", { ...values, branch: 12 })
})

describe("a token that a job names", () => {
  const next = "`nightjar tokens exchange` stores a new one"
  const mismatch = "TOKEN_MISMATCH: the token of this name belongs to"
  const noLonger = (reason: string) => `TOKEN_DROPPED: the token is no longer used (${reason}): ${next}`
  const isOver = `TOKEN_EXPIRED: the token expired on 2026-11-21: ${next}`
  const others = "c-2 on bank:website: a token opens one customer's access to one engine"
  it.each<readonly [string, Partial<StoredToken>, string]>([
    ["logs in", {}, ""],
    ["is tried again when the service did not know it", { dropped: { reason: "TOKEN_UNKNOWN", at: 1 } }, ""],
    [
      "logs in nobody when nothing has its name",
      { name: "other" },
      `TOKEN_UNKNOWN: no stored token has this name: ${next}`,
    ],
    ["logs in nobody else", { customer_id: anId("c-2") }, `${mismatch} ${others}`],
    [
      "logs in on no other engine",
      { engine_reference: anId("tax:website") },
      `${mismatch} c-1 on tax:website: a token opens one customer's access to one engine`,
    ],
    ["logs in at no other service", { service: "https://elsewhere.example" }, `${mismatch} another service`],
    ["logs in nobody after its 90 days", { expires_at: now }, isOver],
    [
      "logs in nobody once it is dropped",
      { hasKey: false, dropped: { reason: "LOCKED", at: 1 } },
      noLonger("LOCKED"),
    ],
    // An earlier version erased it for its age, by a clock that was put back since.
    [
      "logs in nobody once it was erased",
      { hasKey: false, dropped: { reason: "EXPIRED", at: 1 } },
      noLonger("EXPIRED"),
    ],
    ["logs in nobody without its key", { hasKey: false }, noLonger("unknown")],
  ])("%s", (_, changes, expected) => {
    const tokens = [stored({ name: "mine", ...changes })]
    const decision = decide(tokens, { login: named("mine") }, none)
    if (expected === "") return expect(outcomeOf(decision)).toBe("token t-1")
    const [reason = "", message = ""] = expected.split(/: (.*)/)
    expect([outcomeOf(decision), decision._tag === "Settled" && decision.verdict.message]).toEqual([
      `failed ${reason} engineer`,
      message,
    ])
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

  it("narrow what the job requests, are requested by name where it does not choose, and settle what is left of none", () => {
    expect([
      narrowed(["accounts_read"], "accounts_read", "yearly_individual_tax"),
      narrowed(["accounts_read"]),
      narrowed(["accounts_read"], "yearly_individual_tax"),
    ]).toEqual([[["accounts_read"], [outside]], [["accounts_read"], []], "failed TOKEN_FEATURES engineer"])
  })
})

describe("promise 4 with tokens", () => {
  const rejected = (print: string) => ({
    accounts: rejectedAccount(unknownAccount, { fingerprint: print, ...bank }),
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

  it("a login that was rejected on another channel is not repeated by the token that a job names", () => {
    const account = {
      ...newAccount(unknownAccount),
      good: { password: "p", fingerprint, at: now },
      rejected: [rejectedLogin({ fingerprint: "on another channel", password: "p" })],
    }
    const more = { accounts: new AccountBook([account]) }
    expect(outcomeOf(decide([stored({ name: "mine" })], { login: named("mine") }, none, more))).toBe(
      "failed BLOCKED_USER customer",
    )
  })

  it("a token that a job names opens the account of the parameters that it was made with [promise 3 token]", () => {
    const { account } = taskWith(decide([], { login: wanting(true) }))
    const token = stored({ name: "mine", login: keptKeys(account) })
    const found = taskWith(decide([token], { login: named("mine") }, none))
    expect(keptKeys(found.account)).toEqual(keptKeys(account))
  })

  it("a token of unknown login counts as the parameters that it replaces", () => {
    const unknown = stored({ fingerprint: undefined })
    const decision = decide([unknown], { login: wanting(true) })
    expect(outcomeOf(decision)).toBe("token t-1")
    expect(taskWith(decision).fingerprint).toBe(fingerprint)
    const given = grounds({ tokens: makeShelf([unknown], service, now) })
    expect(refitOn(taskWith(decision), known(), given)).toEqual(decision)
    const refused = decide([unknown], { login: wanting(true) }, login(values), rejected(fingerprint))
    expect(outcomeOf(refused)).toBe("failed BLOCKED_USER customer")
  })

  it("a token of unknown login that a job names has its own fingerprint", () => {
    const unknown = stored({ name: "mine", fingerprint: undefined })
    const own = fingerprintLogin(key, "bank:website", { token_id: "t-1" })
    expect(taskWith(decide([unknown], { login: named("mine") }, none)).fingerprint).toBe(own)
  })
})

describe("a plan with tokens", () => {
  const about = assignment({ login: wanting(true) })
  const given = login(values)
  const planOf = (tokens: ReadonlyArray<StoredToken>) =>
    planTasks({
      fitted: [{ assignment: about, login: given, fit: fitOf(about, given, known()) }],
      sessions: [],
      engines: new Map([["bank:website", known()]]),
      grounds: grounds({ tokens: makeShelf(tokens, service, now) }),
    })
  const told = (token: StoredToken) => {
    const { expiring, expired, warnings } = planOf([token])
    return [expiring.length, expired.length, warnings.map(({ message }) => message)]
  }

  it("warns from 14 days before a token expires, and not before", () => {
    const within = [14 * day + 1, 14 * day, 1].map((left) => told(stored({ expires_at: now + left })))
    expect(within).toEqual([
      [0, 0, []],
      [1, 0, ["its stored token expires on 2026-12-05, in 14 days"]],
      [1, 0, ["its stored token expires on 2026-11-21, in 0 days"]],
    ])
  })

  it("names an expired token that would have logged in, and no other one", () => {
    expect(told(stored({ expires_at: now }))).toEqual([0, 1, []])
    const over = { reason: "LOCKED", at: 1 }
    expect(told(stored({ expires_at: now, dropped: over, hasKey: false }))).toEqual([0, 0, []])
    expect(told(stored({ expires_at: now, fingerprint: "another" }))).toEqual([0, 0, []])
    const { expired } = planOf([stored({ name: "old", expires_at: now }), stored({ token_id: "t-2" })])
    expect(expired).toEqual([])
  })
})

describe("a token on its way to a start", () => {
  const options = { key: Redacted.make("1f".repeat(32)), service }
  const withToken = taskWith(decide([stored()], { login: wanting(true) }))
  const withParameters = taskWith(decide([], { login: wanting(true) }))
  const { dropped: _, hasKey: __, service: ___, ...kept } = stored()
  const { effect } = withLayer(TokenStore.layer(":memory:", options))
  /** A store that has the token. */
  const holding = withStore((store) => Effect.as(keepPlain(store, kept), store))

  effect("logs in with its key, as long as the store has it, and never without one", function* () {
    const store = yield* holding
    const used = yield* loginOf(withToken, store)
    expect(used?._tag === "Token" && [used.token_id, Redacted.value(used.token_key)]).toEqual([
      "t-1",
      "key-1",
    ])
    expect(yield* loginOf(withToken, { _tag: "Closed" })).toBeUndefined()
    const parameters = yield* loginOf(withParameters, { _tag: "Closed" })
    expect(parameters?._tag).toBe("Parameters")
    yield* store.dropToken(kept, "LOCKED")
    expect(yield* loginOf(withToken, store)).toBeUndefined()
  })

  effect("is on the shelf of a plan, and of its own task only", function* () {
    const store = yield* holding
    yield* TestClock.setTime(now)
    yield* keepPlain(store, { ...kept, customer_id: anId("c-2"), name: "c-2" })
    const [all, own] = [yield* readShelf(store), yield* readShelf(store, bank)]
    expect([all.now, all.named("c-2")?.name, own.named("c-2"), own.of(bank).map(({ name }) => name)]).toEqual(
      [now, "c-2", undefined, ["c-1/bank:website"]],
    )
    expect((yield* readShelf({ _tag: "Closed" })).isOpen).toBe(false)
  })

  it("that an earlier attempt obtained takes the place of the parameters, which stay behind it", () => {
    const shelf = makeShelf([stored({ features: ["accounts_read"] })], service, now)
    const asked = {
      ...withParameters,
      features: ["accounts_read", "other"].map((code) => ({ code, configurations: undefined })),
    }
    const again = withNewToken(asked, shelf)
    expect([tokenOf(again).token?.token_id, again.features.map(({ code }) => code)]).toEqual([
      "t-1",
      ["accounts_read"],
    ])
    expect(parametersBehind(again)?._tag).toBe("Parameters")
    expect([tokenOf(withParameters), parametersBehind(withParameters)]).toEqual([{}, undefined])
    // Without one, without asking for one, and with one already, nothing changes.
    expect(withNewToken(withParameters, makeShelf([], service, now))).toBe(withParameters)
    expect(withNewToken(withToken, shelf)).toBe(withToken)
    const unasked = taskWith(decide([], { login: wanting(false) }))
    expect(withNewToken(unasked, shelf)).toBe(unasked)
  })

  it("is named in a run's facts when it expires or has expired, for new tasks", () => {
    const run_id = anId("n.2026-11-21")
    const one = (task: string) => ({ task_id: anId(task), token: stored() })
    const keys = { name: "c-1/bank:website", token_id: "t-1", ...bank }
    const known = { tasks: new Map([["t-old", undefined]]) } as unknown as RunState
    const both = ["t-old", "t-new"].map(one)
    const { expires_at } = stored()
    expect(endingFacts({ plan: { run_id, expired: both, expiring: both } }, known)).toEqual([
      { _tag: "TokenDropped", run_id, task_id: "t-new", ...keys, reason: "EXPIRED" },
      { _tag: "TokenExpiring", run_id, task_id: "t-new", ...keys, expires_at },
    ])
  })
})
