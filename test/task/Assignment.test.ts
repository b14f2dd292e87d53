/** Every verdict before a start, and the tasks that may start; no parameter value is ever told. */
import { Duration, Redacted } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { planAssignment, refitTask, seeEngine } from "../../src/task/Assignment.ts"
import type { Grounds, ResolvedLogin, TaskVerdict } from "../../src/task/Assignment.ts"
import type { EngineFinding } from "../../src/client/EngineForms.ts"
import { accountKeys, fingerprintLogin, writtenKey } from "../../src/privacy/Fingerprint.ts"
import type { Assignment } from "../../src/jobs/Job.ts"
import type { ParameterSource } from "../../src/jobs/Scalars.ts"
import { said } from "../service/Said.ts"
import { assignment, configsForm, grounds, key, known, literal, login, paramsForm } from "./Samples.ts"
import { planOn, refitOn, rejectedAccount, unknownAccount } from "./Samples.ts"
import { AccountBook, newAccount } from "../../src/ledger/Accounts.ts"
import { anId } from "../harness/Id.ts"

const values = { username: "user", password: "pass word" }
const good = login(values)
const fingerprint = fingerprintLogin(key, "bank:website", values)
const away: EngineFinding = { _tag: "Unavailable" }
const task_id = anId("nightly.2026-11-21/c-1/bank:website")

const rejectedWith = (reason: string, customer_id = "c-1"): Partial<Grounds> => ({
  accounts: rejectedAccount(unknownAccount, { fingerprint, reason, customer_id: anId(customer_id) }),
})
const rejectedMessage = (reason: string, whose = "") =>
  `the source rejected these credentials with ${reason} at 2026-11-20T03:00:00.000Z${whose}, so they are not sent again ` +
  `unchanged; \`nightjar credentials release ${fingerprint}\` allows it`
const badFeature = [{ code: "accounts_read", configurations: { read_holders: "yes" } }]

interface Given {
  readonly assignment?: Partial<Assignment>
  readonly login?: ResolvedLogin
  readonly finding?: EngineFinding
  readonly grounds?: Partial<Grounds>
}
/** What is decided of the plainest assignment, login and engine but for these. */
const decide = (given: Given) =>
  planOn(assignment(given.assignment), given.login ?? good, given.finding ?? known(), grounds(given.grounds))
const settled = (given: Given) => {
  const decision = decide(given)
  return decision._tag === "Settled" ? decision.verdict : undefined
}
const taskOf = (given: Given) => {
  const decision = decide(given)
  if (decision._tag !== "Task") throw new Error(decision.verdict.message)
  return decision.task
}
const loggingInWith = (parameters: Readonly<Record<string, ParameterSource>>): Partial<Assignment> => ({
  login: { _tag: "Parameters", parameters, tokenized_access: false },
})

interface Case extends Given {
  readonly title: string
  readonly verdict: Pick<TaskVerdict, "outcome" | "reason" | "who_acts" | "message"> & {
    readonly fingerprint?: string
  }
}
const failed = (reason: string, message: string) =>
  ({ outcome: "failed", reason: said(reason), who_acts: "engineer", message }) as const
const skipped = (reason: string, message: string) =>
  ({ ...failed(reason, message), outcome: "skipped" }) as const
const correctable = (reason: string, message: string) =>
  ({ ...failed(reason, message), outcome: "unfinished" }) as const
const tokens = failed("TOKENS_UNAVAILABLE", "the token store is not open: the job needs `tokens: { key }`")

const cases: ReadonlyArray<Case> = [
  {
    title: "a stored token",
    assignment: { login: { _tag: "Token", name: "t" } },
    login: { _tag: "NoParameters" },
    verdict: tokens,
  },
  {
    title: "tokenized access",
    assignment: { login: { _tag: "Parameters", parameters: {}, tokenized_access: true } },
    verdict: tokens,
  },
  {
    title: "an unknown engine, before anything is said about its login",
    login: { _tag: "Unresolved", missing: ["password: it is not known"] },
    finding: { _tag: "Unknown" },
    verdict: skipped("ENGINE_UNKNOWN", "the service has no such engine: see `nightjar engines list`"),
  },
  {
    title: "an engine whose details cannot be read",
    finding: { _tag: "Unreadable", detail: "showEngine: `parameters` is not a form" },
    verdict: failed(
      "UNEXPECTED_ANSWER",
      "showEngine: `parameters` is not a form; no login is sent without its form: report this to the " +
        "service's support",
    ),
  },
  {
    title: "an engine whose forms cannot be used",
    finding: { _tag: "Unusable", why: "checking it takes longer than 5s" },
    verdict: failed(
      "ANSWER_UNUSABLE",
      "the engine's form cannot be used (checking it takes longer than 5s); no login is sent without its " +
        "form: report this to the service's support",
    ),
  },
  {
    title: "an engine that needs a person at every run [end always engine]",
    finding: known({ action_required_frequency: "always" }),
    verdict: skipped("CUSTOMER_INTERVENTION_REQUIRED", "this engine needs a person in every run"),
  },
  {
    title: "a missing secret [secret missing]",
    login: { _tag: "Unresolved", missing: ["password: env:P: the environment has no such variable"] },
    verdict: correctable(
      "SECRET_UNAVAILABLE",
      "cannot be resolved: password: env:P: the environment has no such variable",
    ),
  },
  {
    title: "bad feature settings",
    assignment: { features: badFeature },
    verdict: failed("BAD_CONFIGURATIONS", "accounts_read.read_holders must be true or false"),
  },
  {
    title: "bad feature settings for an engine that has not been seen yet",
    assignment: { features: badFeature },
    finding: away,
    verdict: failed("BAD_CONFIGURATIONS", "accounts_read.read_holders must be true or false"),
  },
  {
    title: "bad engine settings",
    assignment: { configurations: { depth: "deep" } },
    finding: known({ configurations: configsForm({ depth: { type: "integer" } }) }),
    verdict: failed("BAD_CONFIGURATIONS", "configurations.depth must be integer"),
  },
  {
    title: "parameters that do not fit the form",
    login: login({ username: "u", branch: "x" }),
    verdict: {
      ...failed(
        "INCORRECT_PARAMETERS_FORMAT",
        "password is missing; the form requires it; username must NOT have fewer than 2 characters; branch must be integer",
      ),
      fingerprint: fingerprintLogin(key, "bank:website", { username: "u", branch: "x" }),
    },
  },
  {
    title: "credentials that the source rejected",
    grounds: rejectedWith("INCORRECT_CREDENTIALS"),
    verdict: {
      ...failed("INCORRECT_CREDENTIALS", rejectedMessage("INCORRECT_CREDENTIALS")),
      who_acts: "customer",
      fingerprint,
    },
  },
  {
    title: "credentials rejected for an unlisted reason, under another customer, with the engine away",
    finding: away,
    grounds: rejectedWith("SOMETHING_NEW", "c-9"),
    verdict: {
      ...failed("SOMETHING_NEW", rejectedMessage("SOMETHING_NEW", " (then under customer c-9)")),
      fingerprint,
    },
  },
]

const exec = (command: string): ParameterSource => ({
  _tag: "Reference",
  reference: { _tag: "Exec", command },
})

describe("an account of which two logins in a row were rejected", () => {
  const form = paramsForm(
    { username: { type: "string" }, password: { type: "string" } },
    { "x-meta": { locking_fields: ["username"] } },
  )
  const roles = { locking: ["username"], selectors: new Set<string>(), secret: new Set(["password"]) }
  const place = { customer_id: "c-9", engine_reference: "bank:mobile" }
  const keysOf = (sent: Readonly<Record<string, unknown>>) =>
    accountKeys(key, place, { sent, roles, isByHand: true })
  const rejections = [
    { fingerprint: "f1", at: Date.UTC(2026, 10, 18, 3) },
    { fingerprint: "f2", at: Date.UTC(2026, 10, 19, 3) },
  ]
  const held = rejectedAccount(keysOf({ username: " USER " }), ...rejections)

  it("is sent none, not even a changed one, until the login that the message names is released; after one it is", () => {
    expect(settled({ finding: known({ parameters: form }), grounds: { accounts: held } })).toEqual({
      task_id,
      customer_id: "c-1",
      engine_reference: "bank:website",
      features: assignment().features,
      fingerprint,
      outcome: "failed",
      reason: "BLOCKED_USER",
      who_acts: "customer",
      message:
        "the source rejected the last 2 logins to this account, the last one with BLOCKED_USER at " +
        "2026-11-19T03:00:00.000Z; another rejection may lock it, so no login is sent, not even a corrected one, until `nightjar credentials " +
        "release f2`. Correct the login first: after a release, the next run sends what the job has, even the " +
        "login that was rejected last",
    })
    const accounts = rejectedAccount(keysOf({ username: "user" }), ...rejections.slice(1))
    const { account } = taskOf({ finding: known({ parameters: form }), grounds: { accounts } })
    expect(account.account).toBe(keysOf(values).account)
  })

  it("is sent no login that was encrypted anew, which would look like a changed one every night", () => {
    const sent = login({ username: "rsa::third", password: "rsa::third" })
    const mine = { customer_id: "c-1", engine_reference: "bank:api" }
    const first = { username: "rsa::first", password: "rsa::first" }
    const encrypted = accountKeys(key, mine, { sent: first, roles, isByHand: true })
    const accounts = rejectedAccount(encrypted, { fingerprint: "f1", password: encrypted.password })
    for (const parameters of [
      form,
      paramsForm({ username: { type: "string" }, password: { type: "string" } }),
    ])
      expect(settled({ login: sent, finding: known({ parameters }), grounds: { accounts } })).toMatchObject({
        outcome: "failed",
        reason: "BLOCKED_USER",
        who_acts: "customer",
      })
  })

  it("is held by what its customer sends besides secrets if the form does not say what identifies a user [promise 4 row]", () => {
    const named = { locking: [], selectors: new Set<string>(), secret: new Set(["password"]) }
    const other = { username: "user", password: "another" }
    const decide = (customer_id: string) => {
      const of = { ...place, customer_id }
      const keys = accountKeys(key, of, { sent: other, roles: named, isByHand: true })
      return settled({ grounds: { accounts: rejectedAccount(keys, ...rejections) } })?.reason
    }
    expect(["c-1", "c-9"].map(decide)).toEqual(["BLOCKED_USER", undefined])
  })

  it("is known again by what the job says, not by what the form makes of it [promise 4 written down]", () => {
    const given = login({ username: "user", pin: "0771" })
    const fitted = Redacted.make({ username: "user", pin: 771 })
    const nothing = { errors: [], warnings: [] }
    const seen = seeEngine(known(), { settings: nothing, login: { ...nothing, parameters: fitted } })
    const decision = planAssignment(assignment(), given, seen, grounds())
    if (decision._tag !== "Task") throw new Error("settled")
    const written = writtenKey(key, assignment(), Redacted.value(given.parameters))
    const again = refitTask(decision.task, seen, grounds())
    expect([decision, again].map((one) => one._tag === "Task" && one.task.account.written)).toEqual([
      written,
      written,
    ])
  })

  it("of which nobody knows how three logins ended is sent none: an engineer acts [promise 4]", () => {
    const keys = keysOf(values)
    const sent = { run_id: anId("r"), attempt: 1, engine_reference: anId("bank:mobile"), at: 0, sends: 3 }
    const accounts = new AccountBook([
      { ...newAccount(keys), sent: [{ ...sent, password: keysOf({ ...values, password: "x" }).password }] },
    ])
    const [plain, byCommand] = [literal("pass word"), exec("print")].map((password) =>
      decide({
        assignment: loggingInWith({ username: literal("user"), password }),
        finding: known({ parameters: form }),
        grounds: { accounts },
      }),
    )
    // The password was corrected: that buys one login. What a command prints is no correction.
    expect(plain?._tag).toBe("Task")
    expect(byCommand).toMatchObject({
      _tag: "Settled",
      verdict: { outcome: "failed", reason: "LOGIN_UNPROVEN", who_acts: "engineer" },
    })
  })
})

describe("an assignment", () => {
  it("is described in few words, however long the names in a form are", () => {
    const long = "n".repeat(100_000)
    const form = paramsForm({ [long]: { type: "string" } }, { required: [long], additionalProperties: false })
    const refused = settled({ login: login({ other: "x" }), finding: known({ parameters: form }) })
    expect(refused?.message.length).toBeLessThan(1_000)
  })

  it("is ready to start once its engine's forms have checked it, and the engine is there", () => {
    const decisions = [
      planAssignment(assignment(), good, seeEngine(known(), undefined), grounds()),
      decide({ finding: known({}, false) }),
    ]
    expect(decisions).toMatchObject([
      { _tag: "Task", task: { availability: "unavailable" } },
      { _tag: "Task", task: { availability: "unavailable" } },
    ])
  })

  for (const { title, verdict, ...given } of cases) {
    it(`is settled before any start: ${title}`, () => {
      const { customer_id, engine_reference, features } = assignment(given.assignment)
      expect(decide(given)).toEqual({
        _tag: "Settled",
        warnings: [],
        verdict: { task_id, customer_id, engine_reference, features, ...verdict },
      })
    })
  }

  it("becomes a task with what a start sends, fitted to the form", () => {
    const { start, account, ...task } = taskOf({ login: login({ ...values, branch: "12" }) })
    expect(account).toMatchObject({ isByHand: true, former: [account.written, task.fingerprint] })
    expect(task).toEqual({
      task_id,
      isByHand: true,
      written: account.written,
      customer_id: anId("c-1"),
      engine_reference: anId("bank:website"),
      features: [{ code: "accounts_read", configurations: undefined }],
      lacking: [],
      outside: [],
      fingerprint: fingerprintLogin(key, "bank:website", { ...values, branch: 12 }),
      availability: "ready",
      expected: Duration.millis(60_000),
      source: "jobs/a.yaml:1:1",
    })
    const { login: found } = start
    expect(found._tag === "Parameters" ? Redacted.value(found.parameters) : found).toEqual({
      ...values,
      branch: 12,
    })
    expect({ ...start, login: { ...found, parameters: undefined } }).toEqual({
      login: { _tag: "Parameters", parameters: undefined, tokenized_access: false },
      configurations: {},
      hooks_extra_data: {},
    })
  })

  it("is told with its first twenty faults, and how many more there are", () => {
    const fields = Array.from({ length: 25 }, (_, index) => `field${index + 10}`)
    const form = paramsForm(Object.fromEntries(fields.map((name) => [name, { type: "string" }])))
    const wrong = login(Object.fromEntries(fields.map((name) => [name, 5])))
    const message = settled({ login: wrong, finding: known({ parameters: form }) })?.message
    const named = fields.filter((name) => message?.includes(`${name} `))
    expect([named, message?.endsWith("; and 5 more")]).toEqual([fields.slice(0, 20), true])
  })

  it("waits unfitted for an engine that has not been seen yet, and is decided when it is", () => {
    const given = login({ ...values, branch: "12" })
    const task = taskOf({ login: given, finding: away })
    expect(task).toMatchObject({ availability: "unavailable" })
    expect(refitOn(task, known(), grounds())).toEqual(decide({ login: given }))
    const always = refitOn(task, known({ action_required_frequency: "always" }), grounds())
    expect(always).toMatchObject({ verdict: { reason: "CUSTOMER_INTERVENTION_REQUIRED" } })
  })

  it("warns about features that the engine lacks, readable literal secrets, and an id that the customer logs in with [decision written variable]", () => {
    const decision = decide({
      assignment: {
        features: [{ code: "loans_read", configurations: undefined }],
        ...loggingInWith({ username: literal("user"), password: literal("x") }),
      },
    })
    expect(decision._tag === "Task" ? [decision.task.lacking, decision.warnings] : []).toEqual([
      ["loans_read"],
      [
        "password is a secret written out in a file: use env:, file: or exec:",
        "loans_read is not offered by this engine: it would return no data",
      ],
    ])
    const variable = { ...literal("x"), isVariable: true } as const
    const byVariable = decide({
      assignment: loggingInWith({ username: literal("user"), password: variable }),
    })
    expect(byVariable.warnings ?? []).toEqual([])
    const warningsFor = (password: string) => {
      const parameters = { username: literal("user"), password: literal(password) }
      return decide({ assignment: loggingInWith(parameters) }).warnings.length
    }
    expect(["rsa::YWJj", "hybrid::YQ==.Yg==.Yw==", "rsa:YWJj"].map(warningsFor)).toEqual([0, 0, 1])
    expect(decide({ assignment: { customer_id: anId("User") } }).warnings).toEqual([
      "this customer_id is also the value of the parameter `username`; the service stores it and may put it " +
        "into webhook addresses: use an id that says nothing about the person",
    ])
  })

  it("shows no value of any parameter, whatever happens to it", () => {
    const canary = "kAnArY-4711"
    const value = fc.constantFrom<unknown>(canary, `rsa::${canary}`, [canary], { [canary]: canary }, 5)
    const parameters = fc.dictionary(
      fc.constantFrom("username", "password", "branch", "code", "extra"),
      value,
    )
    const finding = fc.constantFrom<EngineFinding>(known(), known({}, false), away, { _tag: "Unknown" })
    fc.assert(
      fc.property(parameters, finding, (given, engine) => {
        const literals = Object.entries(given).map(([name, one]) => [name, literal(one)] as const)
        const subject = loggingInWith(Object.fromEntries(literals))
        const decision = decide({ assignment: subject, login: login(given), finding: engine })
        expect(JSON.stringify(decision)).not.toContain(canary)
      }),
    )
  })
})
