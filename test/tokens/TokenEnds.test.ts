/** When a stored token is at its end, and that only the token in question is dropped. */
import { describe, expect, it } from "vitest"
import { tokenEndOf, tokenEndOfRefusal } from "../../src/tokens/TokenEnds.ts"

const ended = (status_code: string, status_reason: string, authentication_status?: string) =>
  tokenEndOf({
    status_code,
    status_reason,
    ...(authentication_status === undefined ? {} : { authentication_status }),
  })
const locked = { reason: "LOCKED", keepKey: false }

describe("a stored token", () => {
  it("is dropped after a run that says it is invalid, or whose login was refused, and after no other", () => {
    expect([
      ended("REJECTED", "T10N_REJECTED"),
      ended("REJECTED", "T10N_EXCEPTION"),
      ended("AUTH_ERROR", "BLOCKED_USER"),
      ended("UNHANDLED_AUTH_ERROR", "ANY"),
      ended("FAILED", "FAILED", "BLOCKED_USER"),
      ended("COMPLETED", "COMPLETED", "AUTH_OK"),
      ended("REJECTED", "T10N_FORBIDDEN"),
      ended("TEMPORARY_ERROR", "OUT_OF_SERVICE"),
    ]).toEqual([
      { reason: "T10N_REJECTED", keepKey: false },
      { reason: "T10N_EXCEPTION", keepKey: false },
      locked,
      locked,
      locked,
      undefined,
      undefined,
      undefined,
    ])
  })

  it("is dropped after a start that says so; an answer that may be about something else leaves its key", () => {
    expect(
      ["T10N_REJECTED", "T10N_EXCEPTION", "TOKEN_UNKNOWN", "T10N_FORBIDDEN"].map(tokenEndOfRefusal),
    ).toEqual([
      { reason: "T10N_REJECTED", keepKey: false },
      { reason: "T10N_EXCEPTION", keepKey: false },
      { reason: "TOKEN_UNKNOWN", keepKey: true },
      undefined,
    ])
  })
})
