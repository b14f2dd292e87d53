/**
 * What follows from a row of the table of ends, from none, and from two at once. Each row against the contract's own is
 * in `test/conformance/Ends.test.ts`.
 */
import { describe, expect, it } from "vitest"
import { statusReasonsByCode } from "../../src/service/Vocabulary.ts"
import { featureEnds, ownEnds } from "../../src/service/EndTable.ts"
import {
  actingOf,
  beforeStart,
  endOfAttempt,
  ends,
  refusalIn,
  knownEnd,
  notInTables,
  own,
  rowOf,
  rowOfEnd,
  toldOfLogin,
  verdictOfRefusal,
  verdictOfRejected,
} from "../../src/service/Ends.ts"
import type { Verdict } from "../../src/service/Ends.ts"

type Row = readonly [outcome: string, who_acts: string, retry: boolean, opensBreaker: boolean]

const engineer = ["failed", "engineer"]
const customer = ["failed", "customer"]
const unlisted: Row = ["failed", "engineer", false, true]

const families = Object.entries(statusReasonsByCode)
const closedFamilies = families.filter(([code]) => code !== "ONGOING" && code !== "ACTION_REQUIRED")
const allReasons = families.flatMap(([, reasons]): ReadonlyArray<string> => reasons)
const landed = {}
const attempt = (status_code: string, status_reason: string, authentication_status?: string) =>
  endOfAttempt(
    {
      status_code,
      status_reason,
      landed,
      ...(authentication_status === undefined ? {} : { authentication_status }),
    },
    undefined,
  )
const end = (status_code: string, status_reason: string, authentication_status?: string): Row => {
  const { verdict, retry, rejection } = attempt(status_code, status_reason, authentication_status)
  return [verdict.outcome, verdict.who_acts, retry, rejection !== undefined]
}
const told = ({ outcome, who_acts }: Verdict) => [outcome, who_acts]

describe("the table of ends", () => {
  it("says in whole, plain sentences what every reason means and what to do next", () => {
    const sentences = Object.entries(ends).flatMap(([reason, { means, next }]) =>
      [means, next].map((text) => [reason, text] as const),
    )
    expect(
      sentences.filter(([, text]) => !/^(?:[A-Z]|`nightjar )[^]*\.$/.test(text) || text.length > 150),
    ).toEqual([])
  })

  it("treats a reason outside its family, and every value that is not listed, like a rejected login", () => {
    for (const [code, reasons] of families)
      for (const reason of allReasons)
        if (!(reasons as ReadonlyArray<string>).includes(reason)) expect(end(code, reason)).toEqual(unlisted)
    for (const [code, reason] of [
      ["PAUSED", "PAUSED"],
      ["COMPLETED", "OF_TOMORROW"],
      ["OF_TOMORROW", "COMPLETED"],
      ["toString", "constructor"],
      ["UNKNOWN", "UNKNOWN"],
      ["ONGOING", "RUNNING"],
      ["ACTION_REQUIRED", "MFA_REQUIRED"],
      // Words of ours are none of the service's.
      ["UNKNOWN", "EXECUTION_GONE"],
      ["FAILED", "NIGHT_OVER"],
    ] as const)
      expect([attempt(code, reason).rejection, ...end(code, reason)]).toEqual([reason, ...unlisted])
  })

  it("opens the breaker for a refusal in authentication_status, whatever the end says [end login status]", () => {
    for (const [code, reasons] of closedFamilies)
      for (const reason of reasons) {
        const [, who_acts, , opensBreaker] = end(code, reason)
        for (const [refusal, whoever] of [
          ["BLOCKED_USER", "customer"],
          ["OF_TOMORROW", "engineer"],
        ] as const) {
          expect(end(code, reason, refusal)).toEqual([
            "failed",
            who_acts === "customer" ? who_acts : whoever,
            false,
            true,
          ])
          expect(attempt(code, reason, refusal).rejection).toBe(refusal)
        }
        const told = end(code, reason).slice(0, 3)
        expect(end(code, reason, "not-performed")).toEqual([...told, opensBreaker])
        // An accepted login stays open, unless the end itself is a refusal.
        expect(end(code, reason, "AUTH_OK")).toEqual([...told, opensBreaker && code === "AUTH_ERROR"])
      }
  })

  it("tells of a refused login at its first end what the next try tells of it [end refused login]", () => {
    const refused = (code: string, reason: string) => attempt(code, reason, "INCORRECT_CREDENTIALS").verdict
    for (const [code, reason] of [
      ["FAILED", "FAILED"],
      ["TIMEOUT", "TIMEOUT"],
      ["TEMPORARY_ERROR", "NETWORK_ERROR"],
      ["CONFIGURATION_ERROR", "T10N_REJECTED"],
      ["UNKNOWN", "OF_TOMORROW"],
    ] as const)
      expect(refused(code, reason)).toEqual(verdictOfRejected("INCORRECT_CREDENTIALS"))
    // Ends that already ask the customer to act say more.
    for (const [code, reason] of [
      ["ABORTED", "USER_CANCELLED"],
      ["AUTH_ERROR", "CHANGE_PASSWORD"],
    ] as const)
      expect(refused(code, reason)).toEqual({ outcome: "failed", reason, who_acts: "customer" })
  })
})

describe("one of our own ends", () => {
  it("is as promised, asks for no second try and opens no breaker", () => {
    const alike = Object.groupBy(Object.keys(ownEnds), (reason) =>
      told(own(reason as keyof typeof ownEnds)).join(" "),
    )
    const words = Object.entries(alike).map(([end, reasons = []]) => [end, reasons.toSorted().join(" ")])
    expect(Object.fromEntries(words)).toEqual({
      "unfinished nobody": "IN_PROGRESS",
      "unfinished service":
        "DEADLINE_REACHED EXECUTION_GONE NIGHT_OVER NOT_STOPPABLE RESULTS_PARTIAL SERVICE_UNREACHABLE",
      "unfinished engineer": "RUN_DRAINED SECRET_REFUSED SECRET_UNAVAILABLE SERVICE_MOVED START_UNKNOWN",
      "succeeded nobody": "DOCUMENTS_SHORT",
      "partial engineer": "RECORDS_SHORT RECORDS_UNREACHABLE SESSION_GONE",
      "skipped engineer": "ENGINE_UNKNOWN NOT_IN_JOB",
      "failed engineer":
        "ANSWER_UNUSABLE FEATURE_NOT_RETRIEVED LOGIN_UNPROVEN NOT_OURS SESSION_UNKNOWN TOKENS_UNAVAILABLE TOKEN_DROPPED " +
        "TOKEN_EXPIRED TOKEN_FEATURES TOKEN_MISMATCH TOKEN_UNKNOWN TOKEN_UNREADABLE UNEXPECTED_ANSWER",
    })
    for (const { retry, opensBreaker } of Object.values(ownEnds))
      expect([retry, opensBreaker]).toEqual([false, false])
  })

  it("is never told as the service's where this program itself stopped or is not over", () => {
    const acting = Object.entries(ends).flatMap(([reason, row]) =>
      actingOf({ ...row, reason }) === row.who_acts ? [] : [[reason, actingOf({ ...row, reason })]],
    )
    expect(Object.fromEntries(acting)).toEqual({
      CLIENT_CANCELLED: "next run",
      DEADLINE_REACHED: "next run",
      NIGHT_OVER: "next run",
      RUN_DRAINED: "next run",
      IN_PROGRESS: "this run",
    })
    expect(actingOf({ outcome: "failed", reason: "OF_TOMORROW", who_acts: "engineer" })).toBe("engineer")
  })

  it("may use a word of the service: the task waited for the engine, or somebody else's run was open", () => {
    for (const reason of ["ENGINE_UNAVAILABLE", "ALREADY_EXECUTING"] as const)
      expect(own(reason)).toEqual({ outcome: "unfinished", reason, who_acts: "service" })
  })

  it("for a task that never starts is that of its row, except for an engine that needs a person", () => {
    expect(beforeStart("CUSTOMER_INTERVENTION_REQUIRED")).toEqual({
      outcome: "skipped",
      reason: "CUSTOMER_INTERVENTION_REQUIRED",
      who_acts: "engineer",
    })
    const others = Object.keys(ends).filter((reason) => reason !== "CUSTOMER_INTERVENTION_REQUIRED")
    for (const reason of others as ReadonlyArray<keyof typeof ends>)
      expect(beforeStart(reason)).toEqual(own(reason))
  })

  it("for a success that is partly missing from the tables is not a success", () => {
    expect(notInTables).toEqual({ outcome: "partial", reason: "ANSWER_UNUSABLE", who_acts: "engineer" })
  })
})

describe("the end of an attempt", () => {
  const aborted = { status_code: "ABORTED", status_reason: "CLIENT_CANCELLED", landed }

  it("that we aborted is a rejected login's if it was refused meanwhile", () => {
    const refused = { ...aborted, authentication_status: "INCORRECT_MFA" }
    for (const abort of ["challenge", "max_wait", "deadline", undefined] as const)
      expect(endOfAttempt(refused, abort)).toEqual({
        verdict: {
          outcome: "failed",
          reason: abort === "challenge" ? "CUSTOMER_INTERVENTION_REQUIRED" : "INCORRECT_MFA",
          who_acts: "customer",
        },
        retry: false,
        rejection: "INCORRECT_MFA",
      })
  })

  it("is its own if it closed by itself before an abort could stop it", () => {
    const completed = { status_code: "COMPLETED", status_reason: "COMPLETED", landed }
    expect(endOfAttempt(completed, "challenge").verdict.reason).toBe("COMPLETED")
  })
  it("opens no breaker if the service no longer knows the execution, unless its login was seen refused", () => {
    const gone = { status_code: "UNKNOWN", status_reason: "EXECUTION_GONE" }
    expect(endOfAttempt(gone, undefined)).toEqual({
      verdict: { outcome: "unfinished", reason: "EXECUTION_GONE", who_acts: "service" },
      retry: false,
      rejection: undefined,
    })
    expect(endOfAttempt({ ...gone, authentication_status: "BLOCKED_USER" }, undefined)).toEqual({
      verdict: { outcome: "failed", reason: "BLOCKED_USER", who_acts: "customer" },
      retry: false,
      rejection: "BLOCKED_USER",
    })
  })
})

describe("a refused start", () => {
  it("is an engineer's, except for what the service itself may fix, and the customer's if it refuses the login", () => {
    for (const reason of [
      "CUSTOMER_INTERVENTION_REQUIRED",
      "T10N_FORBIDDEN",
      "BAD_CONFIGURATIONS",
      "UNEXPECTED_ANSWER",
      "TOKEN_UNKNOWN",
      "NIGHT_OVER",
      "OF_TOMORROW",
      "toString",
    ])
      expect(verdictOfRefusal(reason)).toEqual({ outcome: "failed", reason, who_acts: "engineer" })
    for (const reason of ["BAD_PROXY_CONFIGURATION", "ENGINE_UNAVAILABLE"])
      expect(verdictOfRefusal(reason)).toEqual({ outcome: "unfinished", reason, who_acts: "service" })
    expect(told(verdictOfRefusal("BLOCKED_USER"))).toEqual(customer)
    expect(told(verdictOfRefusal("UNHANDLED_AUTH_ERROR"))).toEqual(engineer)
    expect(told(verdictOfRefusal("ENGINE_UNKNOWN"))).toEqual(["skipped", "engineer"])
  })
})

describe("a refused start that the reference lists", () => {
  it("is not told as one that it does not list [end refused start words]", () => {
    for (const reason of ["CUSTOMER_INTERVENTION_REQUIRED", "T10N_FORBIDDEN"])
      expect(rowOfEnd(verdictOfRefusal(reason))).toBe(rowOf(reason))
    for (const reason of ["ACTION_TIMEOUT", "BRAND_NEW"])
      expect(rowOfEnd(verdictOfRefusal(reason))).toBe(rowOf("BRAND_NEW"))
  })
})

describe("a login that was rejected before", () => {
  it("fails for the customer if the reference lists the refusal, otherwise for an engineer", () => {
    for (const reason of statusReasonsByCode.AUTH_ERROR)
      expect(verdictOfRejected(reason)).toEqual({ outcome: "failed", reason, who_acts: "customer" })
    for (const reason of ["UNHANDLED_AUTH_ERROR", "OF_TOMORROW", "INTERNAL_ERROR", "ANSWER_UNUSABLE"])
      expect(told(verdictOfRejected(reason))).toEqual(engineer)
  })
})

describe("the explanation of a reason", () => {
  it("says that an unlisted one is unlisted, and that its login is not sent again", () => {
    for (const reason of ["BRAND_NEW", "toString", "FEATURE_RUNNING"]) {
      expect(knownEnd(reason)).toBeUndefined()
      expect(rowOf(reason)).toMatchObject({ who_acts: "engineer", opensBreaker: true })
    }
    expect(rowOf("BLOCKED_USER")).toBe(ends.BLOCKED_USER)
    expect(knownEnd("FEATURE_FAILED")?.means).toBe("The engine failed to read the feature.")
  })

  it("says of a listed one outside its family what it says of an unlisted one [end other family]", () => {
    const told = attempt("FAILED", "NETWORK_ERROR").verdict
    expect(rowOfEnd(told)).toBe(rowOf("BRAND_NEW"))
    expect(actingOf(attempt("FAILED", "CLIENT_CANCELLED").verdict)).toBe("engineer")
    for (const [code, reasons] of closedFamilies)
      for (const reason of reasons) expect(rowOfEnd(attempt(code, reason).verdict)).toBe(rowOf(reason))
    // Other verdicts with a listed reason keep its words.
    for (const other of [notInTables, beforeStart("CUSTOMER_INTERVENTION_REQUIRED")])
      expect(rowOfEnd(other)).toBe(rowOf(other.reason))
  })

  it("speaks of a closed login only where it may be none that the source accepted [end unlisted words]", () => {
    const isAllowed = "If `nightjar credentials list` names the login, `release` allows it again."
    for (const reason of ["OF_TOMORROW", "UNHANDLED_AUTH_ERROR"])
      expect(rowOf(reason).next).toContain(isAllowed)
  })

  it("names no command that starts nothing for such a task [end later words]", () => {
    // Past its deadline, `run` of the same night starts nothing, and only collects what is at the service.
    const left = Object.values(ends).filter(
      ({ outcome, isCollected }) => outcome === "unfinished" && !isCollected,
    )
    expect(left.filter(({ next }) => next.includes("`nightjar run JOB`"))).toEqual([])
  })

  it("does not name `rerun` for a feature of a task that may have succeeded [end feature words]", () => {
    const { next = "" } = featureEnds.FEATURE_TEMPORARY_ERROR ?? {}
    expect(next).toBe("The next night asks again; `nightjar run JOB --customer ID` asks now.")
  })
})

describe("the answer to a start", () => {
  it("names a refusal of the login by its reason, its family or its authentication, and nothing else does", () => {
    const reasons = [...statusReasonsByCode.AUTH_ERROR, "UNHANDLED_AUTH_ERROR"]
    for (const status_reason of reasons) {
      expect(refusalIn({ status_reason })).toBe(status_reason)
      expect(refusalIn({ status_code: "ONGOING", authentication_status: status_reason })).toBe(status_reason)
    }
    expect(refusalIn({ status_code: "AUTH_ERROR", status_reason: "OF_TOMORROW" })).toBe("OF_TOMORROW")
    expect(refusalIn({ status_code: "AUTH_ERROR" })).toBe("AUTH_ERROR")
    for (const [status_code, all] of families)
      for (const status_reason of all)
        for (const authentication_status of [undefined, "AUTH_OK", "not-performed"]) {
          const said = { status_code, status_reason, authentication_status }
          expect(refusalIn(said)).toBe(reasons.includes(status_reason) ? status_reason : undefined)
        }
    expect(refusalIn({})).toBeUndefined()
  })
})

describe("what the states of an execution say of its login so far", () => {
  const before = [undefined, "not-performed", "AUTH_OK", "BLOCKED_USER"] as const
  const none = { authentication_status: "not-performed" }
  const refused = "INCORRECT_CREDENTIALS"
  const kept = [undefined, undefined, undefined, "BLOCKED_USER"]
  it.each<readonly [string, Parameters<typeof toldOfLogin>[1], ReadonlyArray<string | undefined>]>([
    ["nothing", {}, kept],
    ["another end", { status_code: "TEMPORARY_ERROR", status_reason: "NETWORK_ERROR" }, kept],
    ["that none was tried", none, [...Array<string>(3).fill("not-performed"), "BLOCKED_USER"]],
    ["that it was accepted", { authentication_status: "AUTH_OK" }, Array(4).fill("AUTH_OK")],
    [
      "that it was accepted, in an end that refuses",
      { status_code: "AUTH_ERROR", status_reason: refused, authentication_status: "AUTH_OK" },
      Array(4).fill("AUTH_OK"),
    ],
    ["a refusal in its own field", { authentication_status: refused }, Array(4).fill(refused)],
    [
      "one by its reason",
      { ...none, status_code: "ONGOING", status_reason: refused },
      Array(4).fill(refused),
    ],
    [
      "one by its family, with a reason that is not listed",
      { ...none, status_code: "AUTH_ERROR", status_reason: "OF_TOMORROW" },
      Array(4).fill("OF_TOMORROW"),
    ],
    [
      "one by another family",
      { ...none, status_code: "UNHANDLED_AUTH_ERROR", status_reason: "UNHANDLED_AUTH_ERROR" },
      Array(4).fill("UNHANDLED_AUTH_ERROR"),
    ],
  ])("after each that was said before, where one says %s", (_, now, expected) => {
    expect(before.map((said) => toldOfLogin(said, now))).toEqual(expected)
  })
})
