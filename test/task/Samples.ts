/**
 * Engines, assignments and grounds for the tests of planning, each the plainest of its kind.
 */
import { Duration, Redacted } from "effect"
import type { EngineDetails, FormSchema } from "../../src/service/Engine.ts"
import type { Assignment } from "../../src/jobs/Job.ts"
import type { ParameterSource } from "../../src/jobs/Scalars.ts"
import { planAssignment, refitTask, seeEngine } from "../../src/task/Assignment.ts"
import type { Decision, Grounds, ResolvedLogin, Task } from "../../src/task/Assignment.ts"
import type { Expectations } from "../../src/task/Expectations.ts"
import { secretFields, type EngineFinding, type Fit } from "../../src/client/EngineForms.ts"
import { makeFitter, type FormCase } from "../../src/client/FitForms.ts"
import { AccountBook, newAccount, type RejectedLogin } from "../../src/ledger/Accounts.ts"
import type { AccountKeys } from "../../src/privacy/Fingerprint.ts"
import { closedShelf } from "../../src/tokens/TokenLogin.ts"
import { anId } from "../harness/Id.ts"

export const paramsForm = (
  properties: Readonly<Record<string, unknown>>,
  rest: Readonly<Record<string, unknown>> = {},
): FormSchema => ({ type: "object", format: "cg-params", properties, ...rest })

export const configsForm = (properties: Readonly<Record<string, unknown>> = {}): FormSchema => ({
  type: "object",
  format: "cg-configs",
  properties,
})

export const loginForm = paramsForm(
  {
    username: { type: "string", minLength: 2 },
    password: { type: "string", format: "password", minLength: 4 },
    branch: { type: "integer" },
    code: { type: "string" },
  },
  { required: ["username", "password"], "x-meta": { lazy_fields: ["code"] } },
)

const color = { lighter: "", light: "", main: "", dark: "", darker: "", contrast_text: "", contrastText: "" }

export const engineDetails = (changes: Partial<EngineDetails> = {}): EngineDetails => ({
  reference: "bank:website",
  engine_code: "bank",
  engine_alternative: "website",
  engine_version: "1",
  environment: "production",
  status: "published",
  priority: 1,
  keywords: [],
  color_primary: color,
  main_category: "financial",
  sub_categories: [],
  name: "Bank",
  description: "",
  markets: ["ES"],
  languages: ["es"],
  engine_restrictions: [],
  engine_issues: [],
  action_required_frequency: "rarely",
  live: {},
  is_online: true,
  events: ["ended"],
  parameters: loginForm,
  configurations: configsForm(),
  features: [
    { code: "accounts_read", configurations: configsForm() },
    { code: "yearly_individual_tax", configurations: configsForm() },
  ],
  ...changes,
})

const fitter = makeFitter()

export const known = (changes: Partial<EngineDetails> = {}, available = true): EngineFinding => {
  const details = engineDetails(changes)
  const body = JSON.stringify(details)
  const answer = fitter({ body, cases: [] })
  return {
    _tag: "Known",
    engine: { details, body, warnings: answer.warnings, secret: secretFields(details.parameters) },
    available,
  }
}

/** What the engine's forms say, asked for on the spot. */
const fitOn = (finding: EngineFinding, one: FormCase): Fit | undefined => {
  if (finding._tag !== "Known") return undefined
  const raw = fitter({ body: finding.engine.body, cases: [one] }).fits[0]
  if (raw?.parameters === undefined) return raw && { settings: raw.settings }
  const { parameters } = raw
  return {
    settings: raw.settings,
    login: { ...parameters, parameters: Redacted.make(parameters.parameters) },
  }
}

export const fitOf = (
  { features, configurations }: Assignment,
  given: ResolvedLogin | undefined,
  finding: EngineFinding | undefined,
): Fit | undefined => {
  const parameters = given?._tag === "Resolved" ? { parameters: Redacted.value(given.parameters) } : {}
  return finding && fitOn(finding, { features, configurations, ...parameters })
}

/** `planAssignment` on an engine whose forms are asked on the spot. */
export const planOn = (
  about: Assignment,
  given: ResolvedLogin,
  finding: EngineFinding,
  on: Grounds,
): Decision => planAssignment(about, given, seeEngine(finding, fitOf(about, given, finding)), on)

/** `refitTask`, likewise. */
export const refitOn = (task: Task, finding: EngineFinding, on: Grounds): Decision => {
  const { features, start } = task
  const { configurations, login: sent } = start
  const parameters = sent._tag === "Parameters" ? { parameters: Redacted.value(sent.parameters) } : {}
  const fit = fitOn(finding, { features, configurations, ...parameters })
  return refitTask(task, seeEngine(finding, fit), on)
}

export const literal = (value: unknown): ParameterSource => ({ _tag: "Literal", value: Redacted.make(value) })

export const assignment = (changes: Partial<Assignment> = {}): Assignment => ({
  customer_id: anId("c-1"),
  engine_reference: anId("bank:website"),
  features: [{ code: "accounts_read", configurations: undefined }],
  configurations: {},
  hooks_extra_data: {},
  login: {
    _tag: "Parameters",
    parameters: { username: { _tag: "Reference", reference: { _tag: "Env", name: "U" } } },
    tokenized_access: false,
  },
  source: "jobs/a.yaml:1:1",
  ...changes,
})

export const login = (
  parameters: Readonly<Record<string, unknown>>,
): Extract<ResolvedLogin, { _tag: "Resolved" }> => ({
  _tag: "Resolved",
  parameters: Redacted.make(parameters),
})

export const key = new Uint8Array(32).fill(7)

export const noAccounts = new AccountBook([])
export const moment = { now: Date.UTC(2026, 10, 21, 22) }

/** A login that the source rejected, and none has been accepted since. */
export const rejectedLogin = (
  login: Partial<RejectedLogin> & Pick<RejectedLogin, "fingerprint">,
): RejectedLogin => ({
  run_id: anId("r"),
  engine_reference: anId("bank:website"),
  password: login.fingerprint,
  reason: "BLOCKED_USER",
  at: Date.UTC(2026, 10, 20, 3),
  counts: true,
  ...login,
})

/** What the ledger keeps of logins that the source rejected, the newest last. */
export const rejectedAccount = (
  keys: Pick<AccountKeys, "account" | "identity" | "row">,
  ...logins: ReadonlyArray<Parameters<typeof rejectedLogin>[0]>
): AccountBook => new AccountBook([{ ...newAccount(keys), rejected: logins.map(rejectedLogin) }])
/** The same of a login that only an earlier version knew. */
export const unknownAccount = { account: "was", identity: [] }

/** As before the first run. */
export const noExpectations: Expectations = {
  byEngine: new Map(),
  own: new Map(),
  all: [],
  ends: new Map(),
  closing: 0,
}

export const grounds = (changes: Partial<Grounds> = {}): Grounds => ({
  run_id: anId("nightly.2026-11-21"),
  key,
  accounts: noAccounts,
  moment,
  expected: () => Duration.minutes(1),
  tokens: closedShelf,
  ...changes,
})
