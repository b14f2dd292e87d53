/** What becomes of every fact once one of the customers is removed. */
import { describe, expect, it } from "vitest"
import type { Fact } from "../../src/ledger/Fact.ts"
import { belongsTo, thenUnder, withoutCustomer } from "../../src/ledger/ForgetCustomer.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"

const how = "receipt-1"
const run_id = anId("job.2026-11-21")
const taskOf = (customer: string) => anId(`${run_id}/${customer}/bank:website`)
const bodyOf = (customer: string) => ({ task_id: taskOf(customer), where: "segment-1@0", reason: "no JSON" })
const old = (days: number, ...customers: ReadonlyArray<string>) => ({
  days,
  count: 2,
  examples: customers.map((one) => `${one} bank:website accounts_read`),
})

const published = (customers: ReadonlyArray<string>): Fact =>
  aFact("RunPublished", {
    run_id,
    version: 3,
    receipts: customers.map((one) => ({ execution_id: anId(`e-${one}`), landed_sha256: "aa", whole: true })),
    left_out: customers.map(bodyOf),
    delivered: customers.map((one) => ({ task_id: taskOf(one), features: ["accounts_read"] })),
    stale: { warned: old(3, ...customers), failed: old(7, ...customers) },
  })

const forgotten = {
  customer_id: anId("c-1"),
  tasks: new Set([taskOf("c-1")]),
  executions: new Set(["e-c-1"]),
}

describe("a fact about a customer", () => {
  const settled = (customer: string, message?: string): Fact =>
    aFact("TaskSettled", {
      run_id,
      task_id: taskOf(customer),
      who_acts: "nobody",
      message,
    })
  const rejected = (customer: string): Fact =>
    aFact("CredentialRejected", {
      run_id,
      task_id: taskOf(customer),
      customer_id: customer,
      engine_reference: "bank:website",
    })
  const removed: Fact = { _tag: "FactForgotten", receipt: "receipt-1", run_id }

  it("gives way to the receipt and its run, whether it names the task or the customer", () => {
    expect(withoutCustomer(settled("c-1", "a message"), forgotten, how)).toEqual(removed)
    const byHand: Fact = {
      _tag: "TokenStored",
      name: "c-1/bank",
      token_id: "t-1",
      customer_id: anId("c-1"),
      engine_reference: anId("bank:website"),
      features: [],
      expires_at: 9,
    }
    // It belongs to no run.
    const { run_id: _, ...ofNoRun } = removed
    expect(withoutCustomer(byHand, forgotten, how)).toStrictEqual(ofNoRun)
    const ofAnotherTask = { ...settled("c-10"), customer_id: "c-1" } as Fact
    expect(withoutCustomer(ofAnotherTask, forgotten, how)).toEqual(removed)
  })

  it("keeps only the keyed hashes of a rejected login, and is the same fact if it is about another customer or none", () => {
    expect(withoutCustomer(rejected("c-1"), forgotten, how)).toStrictEqual({
      _tag: "CredentialRejected",
      run_id,
      fingerprint: "f-1",
      engine_reference: "bank:website",
      reason: "BLOCKED_USER",
    })
    expect(withoutCustomer(settled("c-1"), forgotten, how)).toEqual(removed)
    for (const fact of [
      settled("c-10"),
      settled("c-10", "a message"),
      rejected("c-10"),
      { _tag: "RunResumed", run_id } as const,
      { _tag: "CredentialReleased", fingerprint: "f-1" } as const,
    ])
      expect(withoutCustomer(fact, forgotten, how)).toBe(fact)
  })

  it("of another customer no longer names this one in its message", () => {
    const message = (one: string) =>
      `the login is rejected (then under customer ${one}); token belongs to ${one} on bank:website`
    expect(message("c-11")).toBe(
      `the login is rejected${thenUnder("c-11")}; token ${belongsTo("c-11")}bank:website`,
    )
    expect(withoutCustomer(settled("c-10", message("c-1")), forgotten, how)).toEqual(
      settled(
        "c-10",
        "the login is rejected (then under a removed customer); token belongs to a removed customer on bank:website",
      ),
    )
    const other = settled("c-10", message("c-11"))
    expect(withoutCustomer(other, forgotten, how)).toBe(other)
  })
})

describe("a publication without a customer", () => {
  it("says nothing of the customer in any of its lists, and all of the others [promise 15 publications]", () => {
    const both = published(["c-1", "c-10"])
    expect(withoutCustomer(both, forgotten, how)).toEqual(published(["c-10"]))
    expect(JSON.stringify(withoutCustomer(both, forgotten, how))).not.toMatch(/c-1\b/)
  })

  it("has no list that only the customer was in, and keeps what else is said of old data", () => {
    const both = published(["c-1"])
    const receipt = { execution_id: anId("e-c-10"), landed_sha256: "bb" }
    const bare: Fact = { _tag: "RunPublished", run_id, version: 3, receipts: [receipt] }
    expect(withoutCustomer({ ...both, receipts: [receipt] } as Fact, forgotten, how)).toStrictEqual({
      ...bare,
      stale: { warned: old(3), failed: old(7) },
    })
    const unknown = { stale: { unknown: "the tables cannot be read" } }
    const { receipts } = published(["c-1"]) as Extract<Fact, { _tag: "RunPublished" }>
    expect(
      withoutCustomer({ ...bare, ...unknown, receipts: [...receipts, receipt] }, forgotten, how),
    ).toStrictEqual({ ...bare, ...unknown })
  })

  it("is the same fact if it said nothing of the customer", () => {
    const others = published(["c-10", "c-2"])
    expect(withoutCustomer(others, forgotten, how)).toBe(others)
  })
})
