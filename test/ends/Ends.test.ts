/** The table of ends against the contract's own table, word for word, and what is outside of it. */
import { describe, expect, it } from "vitest"
import { statusReasonsByCode } from "../../src/contract/Vocabulary.ts"
import { endOf, endOfAttempt, endOfRefusal, endOfRejected, isTerminal, ownEnds } from "../../src/ends/Ends.ts"

type Row = readonly [outcome: string, who_acts: string, retry: boolean, opensBreaker: boolean]
const row = ({ outcome, who_acts, retry, opensBreaker }: ReturnType<typeof endOf>): Row => [
  outcome,
  who_acts,
  retry,
  opensBreaker,
]

const temporary: Row = ["unfinished", "service", true, false]
const engineer: Row = ["failed", "engineer", false, false]
const customer: Row = ["failed", "customer", false, false]
const rejected: Row = ["failed", "customer", false, true]
const unlisted: Row = ["failed", "engineer", false, true]

/** "What happens with each end" of the contract, by family and reason of section 3.1. */
const promised: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  COMPLETED: { COMPLETED: ["succeeded", "nobody", false, false] },
  PARTIAL: { PARTIAL: ["partial", "engineer", false, false] },
  FAILED: { FAILED: engineer },
  ABORTED: {
    CLIENT_CANCELLED: ["unfinished", "service", false, false],
    USER_CANCELLED: customer,
    ACTION_TIMEOUT: customer,
    TIMEOUT: engineer,
    CUSTOMER_INTERVENTION_REQUIRED: customer,
    SYSTEM_CANCELLED: temporary,
  },
  AUTH_ERROR: {
    INCORRECT_CREDENTIALS: rejected,
    INCORRECT_MFA: rejected,
    BLOCKED_USER: rejected,
    FRIEZED_CREDENTIALS: rejected,
    CHANGE_PASSWORD: rejected,
    MANUAL_INTERVENTION: rejected,
    INCOMPATIBLE_ACCESS: rejected,
    DUPLICATED_SESSION: rejected,
  },
  UNHANDLED_AUTH_ERROR: { UNHANDLED_AUTH_ERROR: unlisted },
  CONFIGURATION_ERROR: {
    BAD_CONFIGURATIONS: engineer,
    INCORRECT_PARAMETERS_FORMAT: engineer,
    INCORRECT_RESUME_FORMAT: engineer,
    ENCRYPTION_ERROR: engineer,
    T10N_FORBIDDEN: engineer,
    T10N_NOT_AVAILABLE: engineer,
    T10N_REJECTED: engineer,
    T10N_EXCEPTION: engineer,
    BAD_PROXY_CONFIGURATION: ["unfinished", "service", false, false],
  },
  TEMPORARY_ERROR: {
    OUT_OF_SERVICE: temporary,
    ENGINE_UNAVAILABLE: temporary,
    ALREADY_EXECUTING: temporary,
    ENGINE_BANNED: temporary,
    AUTO_CAPTCHA_ERROR: temporary,
    PROXY_ERROR: temporary,
    NETWORK_ERROR: temporary,
    INTERNAL_ERROR: temporary,
  },
}

const families = Object.entries(statusReasonsByCode)
const closedFamilies = families.filter(([code]) => code !== "ONGOING" && code !== "ACTION_REQUIRED")
const allReasons = families.flatMap(([, reasons]): ReadonlyArray<string> => reasons)
const end = (status_code: string, status_reason: string, authentication_status?: string) =>
  row(endOf({ status_code, status_reason, authentication_status }))

describe("the table of ends", () => {
  it("says of every closed reason of the reference what the contract says", () => {
    const actual = Object.fromEntries(
      closedFamilies.map(([code, reasons]) => [
        code,
        Object.fromEntries(reasons.map((reason) => [reason, end(code, reason)])),
      ]),
    )
    expect(actual).toEqual(promised)
  })

  it("treats a reason outside its family, and every value that is not listed, like a rejected login", () => {
    for (const [code, own] of families)
      for (const reason of allReasons)
        if (!(own as ReadonlyArray<string>).includes(reason)) expect(end(code, reason)).toEqual(unlisted)
    for (const [code, reason] of [
      ["PAUSED", "PAUSED"],
      ["COMPLETED", "OF_TOMORROW"],
      ["OF_TOMORROW", "COMPLETED"],
      ["toString", "constructor"],
      ["UNKNOWN", "UNKNOWN"],
      ["ONGOING", "RUNNING"],
      ["ACTION_REQUIRED", "MFA_REQUIRED"],
    ] as const)
      expect(end(code, reason)).toEqual(unlisted)
  })

  it("opens the breaker for a refusal in authentication_status, whatever the end says [end login status]", () => {
    for (const [code, reasons] of closedFamilies)
      for (const reason of reasons) {
        const [outcome, who_acts, , opensBreaker] = end(code, reason)
        // An end that is no failure says nothing of the refusal, so that the refusal is the end.
        for (const [refusal, whoever] of [
          ["BLOCKED_USER", "customer"],
          ["OF_TOMORROW", "engineer"],
        ] as const)
          expect(end(code, reason, refusal)).toEqual([
            "failed",
            outcome === "failed" ? who_acts : whoever,
            false,
            true,
          ])
        for (const fine of ["AUTH_OK", "not-performed"])
          expect(end(code, reason, fine)).toEqual([...end(code, reason).slice(0, 3), opensBreaker])
      }
  })
})

describe("an end of our own", () => {
  it("is what is promised of it, asks for no second try and opens no breaker", () => {
    const service: Row = ["unfinished", "service", false, false]
    const known = Object.entries(ownEnds).map(([reason, of]) => [reason, row(of)])
    expect(Object.fromEntries(known)).toMatchObject({
      START_UNKNOWN: ["unfinished", "engineer", false, false],
      EXECUTION_GONE: service,
      SERVICE_UNREACHABLE: service,
      NOT_STOPPABLE: service,
      NOT_OURS: engineer,
      ENGINE_UNAVAILABLE: service,
      ALREADY_EXECUTING: service,
      NIGHT_OVER: service,
      DEADLINE_REACHED: service,
      RESULTS_PARTIAL: service,
      RECORDS_UNREACHABLE: ["partial", "engineer", false, false],
      RECORDS_SHORT: ["partial", "engineer", false, false],
      UNEXPECTED_ANSWER: engineer,
      ENGINE_UNKNOWN: ["skipped", "engineer", false, false],
      SESSION_UNKNOWN: engineer,
      TOKEN_UNKNOWN: engineer,
      COMPLETED: ["succeeded", "nobody", false, false],
    })
    for (const { retry, opensBreaker } of Object.values(ownEnds))
      expect([retry, opensBreaker]).toEqual([false, false])
  })
})

describe("the end of an attempt", () => {
  const aborted = {
    _tag: "AttemptClosed",
    status_code: "ABORTED",
    status_reason: "CLIENT_CANCELLED",
  } as const

  it("is the customer's where a challenge made us abort, and the service's where time did", () => {
    const told = (abort: Parameters<typeof endOfAttempt>[1]) => {
      const { end: of, reason } = endOfAttempt(aborted, abort)
      return [reason, ...row(of)]
    }
    expect(told("challenge")).toEqual(["CUSTOMER_INTERVENTION_REQUIRED", ...customer])
    for (const abort of ["max_wait", "deadline", undefined] as const)
      expect(told(abort)).toEqual(["CLIENT_CANCELLED", "unfinished", "service", false, false])
  })

  it("is its own where it closed by itself before an abort could stop it", () => {
    const completed = { status_code: "COMPLETED", status_reason: "COMPLETED" }
    expect(endOfAttempt(completed, "challenge").reason).toBe("COMPLETED")
  })

  it("opens no breaker where the service no longer knows the execution", () => {
    const gone = endOfAttempt({ status_code: "UNKNOWN", status_reason: "EXECUTION_GONE" }, undefined)
    expect([gone.reason, ...row(gone.end)]).toEqual(["EXECUTION_GONE", "unfinished", "service", false, false])
  })
})

describe("a refused start", () => {
  it("is an engineer's, whatever its reason, but for what the service itself may mend", () => {
    for (const reason of [
      "CUSTOMER_INTERVENTION_REQUIRED",
      "T10N_FORBIDDEN",
      "BAD_CONFIGURATIONS",
      "BLOCKED_USER",
      "UNEXPECTED_ANSWER",
      "OF_TOMORROW",
    ])
      expect([reason, ...row(endOfRefusal(reason))]).toEqual([reason, ...engineer])
    for (const reason of ["BAD_PROXY_CONFIGURATION", "ENGINE_UNAVAILABLE"])
      expect(row(endOfRefusal(reason))).toEqual(["unfinished", "service", false, false])
    expect(row(endOfRefusal("ENGINE_UNKNOWN"))).toEqual(["skipped", "engineer", false, false])
  })
})

describe("a login that was rejected before", () => {
  it("fails for the customer where the reference lists the refusal, else for an engineer", () => {
    expect(statusReasonsByCode.AUTH_ERROR.map((reason) => row(endOfRejected(reason)))).toEqual(
      statusReasonsByCode.AUTH_ERROR.map(() => customer),
    )
    for (const reason of ["UNHANDLED_AUTH_ERROR", "OF_TOMORROW", "INTERNAL_ERROR"])
      expect(row(endOfRejected(reason))).toEqual(engineer)
  })
})

describe("a family", () => {
  it("ends a run unless it is open or unknown", () => {
    const over = families.filter(([code]) => isTerminal(code)).map(([code]) => code)
    expect(over).toEqual(closedFamilies.map(([code]) => code))
    for (const code of [undefined, "", "OF_TOMORROW", "toString"]) expect(isTerminal(code)).toBe(false)
  })
})
