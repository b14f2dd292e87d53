/** Which field of an answer has which rule, and which words are nobody's secret. */
import { describe, expect, it } from "vitest"
import { cleanBody } from "../../src/privacy/CleanBody.ts"
import { makeKnownSecrets, publicWords } from "../../src/privacy/KnownSecrets.ts"

const known = () => {
  const all = makeKnownSecrets()
  all.hold(["x7", "personal", "maria.77"], "password")
  return all
}
const cleaned = (value: unknown): unknown =>
  JSON.parse(Buffer.from(cleanBody(Buffer.from(JSON.stringify(value)), known())).toString())

/** What each rule leaves of a short secret, of a word and of a user name. */
const probe = ["x7", "a personal b", "a maria.77 b"]
const left = {
  secret: ["[blanked]", "[blanked]", "[blanked]"],
  echo: ["[blanked]", "a [blanked] b", "a [blanked] b"],
  free: ["x7", "a [blanked] b", "a [blanked] b"],
  word: ["x7", "a personal b", "a [blanked] b"],
  id: probe,
}
const fields: Readonly<Record<keyof typeof left, ReadonlyArray<string>>> = {
  secret: ["ticket", "session_token", "token_key"],
  echo: ["input", "ctx", "msg", "message", "status_message", "detail"],
  free: ["customer_id", "engine_reference", "locking_hash", "id", "loc", "undocumented", "data"],
  word: [
    "status",
    "status_code",
    "status_reason",
    "authentication_status",
    "products_count",
    "features",
    "retrieved_features",
  ],
  id: ["execution_id", "session_id", "external_execution_id", "app_id", "token_id"],
}
const rules = Object.keys(fields) as ReadonlyArray<keyof typeof left>

describe("a field of an answer", () => {
  it("is cleaned by the rule of its name", () => {
    const bodyOf = (rule: keyof typeof left, cells: ReadonlyArray<string>) =>
      Object.fromEntries(fields[rule].map((name) => [name, cells]))
    const shown = rules.map((rule) => [rule, cleaned(bodyOf(rule, probe))])
    expect(shown).toEqual(rules.map((rule) => [rule, bodyOf(rule, left[rule])]))
  })

  it("has the strictest rule of all fields around it, however deep", () => {
    const below = (path: ReadonlyArray<string>, inner: unknown) =>
      path.reduceRight<unknown>((value, key) => ({ [key]: [value] }), inner)
    const strange = Array.from({ length: 100 }, (_, index) => `k${index}`)
    const rows: ReadonlyArray<readonly [ReadonlyArray<string>, keyof typeof left]> = [
      [["a", "ticket", "status", "a", "execution_id"], "secret"],
      [["status", "input", "status", "execution_id"], "echo"],
      [["input", "status"], "echo"],
      [["features", "a", "b"], "word"],
      [["features", "execution_id"], "word"],
      [["execution_id", "a"], "free"],
      [["a", "execution_id"], "id"],
      [["a", "ticket", ...strange], "secret"],
      [["a", "input", ...strange], "echo"],
      [["a", "features", ...strange], "word"],
      [strange, "free"],
    ]
    const innermost = (value: unknown): unknown => {
      const [inner] = typeof value === "object" && value !== null ? Object.values(value) : []
      return typeof inner === "object" ? innermost(inner) : value
    }
    for (const [path, rule] of rows)
      expect([path, innermost(cleaned(below(path, probe)))]).toEqual([path, left[rule]])
  })

  it("that names a place is itself cleaned as the object around it, and below an id as any other", () => {
    expect(
      cleaned({
        x7: 1,
        "a personal b": 1,
        ticket: { x7: { x7: "abc" } },
        input: { x7: { x7: "abc" } },
        features: { "a personal b": 1, "a maria.77 b": 1 },
        execution_id: { "a personal b": "a personal b" },
      }),
    ).toEqual({
      x7: 1,
      "a [blanked] b": 1,
      ticket: { "[blanked] 2": { "[blanked] 3": "[blanked]" } },
      input: { "[blanked] 4": { "[blanked] 5": "abc" } },
      features: { "a personal b": 1, "a [blanked] b 6": 1 },
      execution_id: { "a [blanked] b 7": "a [blanked] b" },
    })
  })

  it("of dates keeps a date, whatever somebody's date of birth is, but where a login is repeated", () => {
    const date = "1980-05-17T10:00:00Z"
    const all = makeKnownSecrets()
    all.hold("1980-05-17", "password")
    const shown = (body: object) =>
      JSON.parse(Buffer.from(cleanBody(Buffer.from(JSON.stringify(body)), all)).toString())
    const names = ["date", "date_created", "sign_date", "action_required_expires", "closed_at"]
    const kept = Object.fromEntries([...names.map((name) => [name, date]), ["x_date", [date]]])
    expect(shown(kept)).toEqual(kept)
    for (const written of ["1980-05-17T10:00", "1980-05-17T10:00:00.123+02:00", "1980-05-17T10:00:00-0300"])
      expect(shown({ date: written })).toEqual({ date: written })
    const blanked = "[blanked]T10:00:00Z"
    expect(
      shown({
        other: date,
        update: date,
        dated: date,
        date: { other: date, [date]: 1 },
        sign_date: `${date} and more`,
        closed_at: "1980-05-17",
        ctx: { date },
      }),
    ).toEqual({
      other: blanked,
      update: blanked,
      dated: blanked,
      date: { other: blanked, [blanked]: 1 },
      sign_date: `${blanked} and more`,
      closed_at: "[blanked]",
      ctx: { date: blanked },
    })
  })
})

describe("a word that is no secret", () => {
  // One more here can be nobody's password any more that is blanked: it is decided, not slipped in.
  const words = `
    $defs ABORTED ACCEPTED ACTION_REQUIRED ACTION_TIMEOUT ALREADY_EXECUTING ASYNC_WAIT AUTH_ERROR
    AUTH_OK AUTO_CAPTCHA_ERROR BAD_CONFIGURATIONS BAD_PROXY_CONFIGURATION BLOCKED_USER CHANGE_PASSWORD
    CLIENT_CANCELLED COMPLETED CONFIGURATION_ERROR CUSTOMER_CANCELLED CUSTOMER_INTERVENTION_REQUIRED
    DUPLICATED_SESSION ENCRYPTION_ERROR ENGINE_BANNED ENGINE_UNAVAILABLE FAILED FEATURE_ABORTED
    FEATURE_ACCEPTED FEATURE_ACTION_REJECTED FEATURE_ACTION_REQUIRED FEATURE_ACTION_TIMEOUT
    FEATURE_ASYNC_WAIT FEATURE_COMPLETED FEATURE_CONFIGURATION_ERROR
    FEATURE_CUSTOMER_INTERVENTION_REQUIRED FEATURE_DISABLED FEATURE_FAILED
    FEATURE_INCORRECT_PARAMETERS_FORMAT FEATURE_INTERNAL_ERROR FEATURE_NOT_IMPLEMENTED FEATURE_PARTIAL
    FEATURE_RUNNING FEATURE_TEMPORARY_ERROR FEATURE_TIMEOUT FEATURE_WAITING FRIEZED_CREDENTIALS
    INCOMPATIBLE_ACCESS INCORRECT_CREDENTIALS INCORRECT_MFA INCORRECT_PARAMETERS_FORMAT
    INCORRECT_RESUME_FORMAT INPUT_REQUIRED INTERNAL_ERROR MANUAL_INTERVENTION MFA_REQUIRED NETWORK_ERROR
    ONGOING OUT_OF_SERVICE PARTIAL PROXY_ERROR READY RUNNING SYSTEM_CANCELLED T10N_EXCEPTION
    T10N_FORBIDDEN T10N_NOT_AVAILABLE T10N_REJECTED TEMPORARY_ERROR TIMED_OUT TIMEOUT
    UNHANDLED_AUTH_ERROR USER_CANCELLED WAITING academic_data accepted_date accepted_documents
    accepted_features accounts_certificates accounts_read action_required action_required_expires
    action_required_frequency adapt always and api app-secret app_id auth_ended auth_origin
    authentication_status cards_read client_invoices_read cloud cloud_resource_read code color_primary
    commercial configurations configurations_errors consent context contrastText contrast_text
    credit_registry_data credit_registry_data:es_cirbe_aggregated credit_registry_data:es_cirbe_detailed
    credits_read ctx customer_id customer_information_read dark darker data date date_created date_ended
    date_started delivered deposits_read description detail direct_debits_read doubtful draft
    driver_data end_hook ended engine_alternative engine_code engine_issues engine_reference
    engine_restrictions engine_version environment error errors_count
    es-public-administration:bye:completed es-public-administration:bye:failure
    es-public-administration:connect:source es-public-administration:connect:wait
    es-public-administration:consent es-public-administration:ended es-public-administration:partial
    es-public-administration:started es-public-administration:welcome:consent
    es-public-administration:welcome:init events execution_id execution_time external_execution_id
    failed features financial financial_card:credit financial_card:debit financial_card:mixed
    financial_card:prepaid form_schema format funds_read hash hidden_fields id implementing info input
    instructions_text instructions_title investment_accounts_read is_closed is_online keywords ko
    labor_check languages last_ping_date lazy_fields light lighter live loans_read loc locking_fields
    locking_hash main main_category maintenance markets message messages mobile msg name never
    next_kick_date not-performed notification often on_first_use or origin other parameters
    parameters_errors partial payload_errors pending pensions_read priority producer production
    products_count properties properties_data public public_document_verification public_pensions
    published rarely re_delivered reference required retrieved_features running_time sandbox
    session-token session_id session_token sign_date signature_metadata signature_provider skipped
    source_contracts_read started status status_code status_message status_reason stocks_read
    sub_categories submit_button_text supplier_invoices_read ticket token token_id token_key
    total_elapsed_time type unknown user-token user_agent user_ip vehicles_data version warning
    warnings_count website x-meta yearly_individual_tax
  `
  it("is a word of the reference or a name of one of its fields, and no other", () => {
    expect([...publicWords].toSorted()).toEqual(words.trim().split(/\s+/))
  })
})
