/** What a publication said about many customers, once one of them is removed. */
import { describe, expect, it } from "vitest"
import type { Fact } from "../../src/ledger/Fact.ts"
import { withoutCustomer } from "../../src/ledger/WithoutCustomer.ts"
import { anId } from "../harness/Id.ts"

const how = { receipt: "receipt-1", staysRejected: true }
const run_id = anId("job.2026-11-21")
const taskOf = (customer: string) => anId(`${run_id}/${customer}/bank:website`)
const bodyOf = (customer: string) => ({ task_id: taskOf(customer), where: "segment-1@0", reason: "no JSON" })
const old = (days: number, ...customers: ReadonlyArray<string>) => ({
  days,
  count: 2,
  examples: customers.map((one) => `${one} bank:website accounts_read`),
})

const published = (customers: ReadonlyArray<string>): Fact => ({
  _tag: "RunPublished",
  run_id,
  version: 3,
  receipts: customers.map((one) => ({ execution_id: anId(`e-${one}`), landed_sha256: "aa", whole: true })),
  left_out: customers.map(bodyOf),
  delivered: customers.map((one) => ({ task_id: taskOf(one), features: ["accounts_read"] })),
  stale: { warned: old(3, ...customers), failed: old(7, ...customers) },
})

describe("a publication without a customer", () => {
  const forgotten = {
    customer_id: anId("c-1"),
    tasks: new Set([taskOf("c-1")]),
    executions: new Set(["e-c-1"]),
  }

  it("says nothing of the customer in any of its lists, and all of the others [promise 15 publications]", () => {
    const both = published(["c-1", "c-10"])
    expect(withoutCustomer(both, forgotten, how)).toEqual(published(["c-10"]))
    expect(JSON.stringify(withoutCustomer(both, forgotten, how))).not.toMatch(/c-1\b/)
  })

  it("is the same fact if it said nothing of the customer", () => {
    const others = published(["c-10", "c-2"])
    expect(withoutCustomer(others, forgotten, how)).toBe(others)
  })
})
