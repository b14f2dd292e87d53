/** What the ledger says about logins that must not be sent: pure. */
import { describe, expect, it } from "vitest"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRejections, rejectedInARow } from "../../src/ledger/Rejections.ts"
import { anId } from "../harness/Id.ts"

const task = { run_id: anId("n.2026-11-21"), task_id: anId("n.2026-11-21/c-1/bank:website") }
const rejected = (fingerprint: string, account?: string): Fact => ({
  _tag: "CredentialRejected",
  ...task,
  fingerprint,
  ...(account === undefined ? {} : { account }),
  engine_reference: anId("bank:website"),
  reason: "INCORRECT_CREDENTIALS",
})
const accepted = (account: string): Fact => ({ _tag: "LoginAccepted", ...task, account })
const released = (fingerprint: string): Fact => ({ _tag: "CredentialReleased", fingerprint })
/** Which logins are not sent unchanged, and those that count against account A. */
const after = (...facts: ReadonlyArray<Fact>) => {
  const open = foldRejections(facts.map((fact, index) => ({ seq: index + 1, at: 0, fact })))
  return [[...open.keys()], rejectedInARow(open, "A").map(({ fact }) => fact.fingerprint)]
}

describe("rejections in a row", () => {
  it("are those of one account, each login once, the newest last", () => {
    expect(after(rejected("f1", "A"), rejected("f2", "B"), rejected("f3"), rejected("f4", "A"))).toEqual([
      ["f1", "f2", "f3", "f4"],
      ["f1", "f4"],
    ])
    expect(after(rejected("f1", "A"), rejected("f2", "A"), rejected("f1", "A"))).toEqual([
      ["f2", "f1"],
      ["f2", "f1"],
    ])
  })

  it("end with a login that is accepted, though what was rejected is still not sent unchanged", () => {
    expect(after(rejected("f1", "A"), rejected("f2", "B"), accepted("A"), rejected("f3", "A"))).toEqual([
      ["f1", "f2", "f3"],
      ["f3"],
    ])
  })

  it("lose a login that is released, and only that", () => {
    expect(after(rejected("f1", "A"), rejected("f2", "A"), released("f1"))).toEqual([["f2"], ["f2"]])
  })
})
