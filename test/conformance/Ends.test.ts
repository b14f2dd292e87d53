/** Each end, line by line of the contract's own table: outcome, who acts, second try, login, exit code of a run with it. */
import { describe, expect, it } from "vitest"
import { beforeStart, endOfAttempt, own, isReason, verdictOfRefusal } from "../../src/service/Ends.ts"
import type { Verdict } from "../../src/service/Ends.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import { exitCodeOf } from "../../src/report/Finish.ts"
import { contractEnds, type Promised } from "../service/ContractEnds.ts"
import { planned, settled, started } from "../report/Samples.ts"

const told = ({ outcome, reason, who_acts }: Verdict) => {
  const facts = [started, planned("c"), settled("c", outcome, reason, who_acts)]
  const run = foldRun(facts.map((fact, seq) => ({ seq, at: seq, fact })))
  return { outcome, who_acts, exit: run === undefined ? -1 : exitCodeOf(run, "delete") }
}

const closed = (
  status_code: string,
  status_reason: string,
  abort?: "max_wait" | "deadline" | "challenge",
): Promised => {
  const { verdict, retry, rejection } = endOfAttempt({ status_code, status_reason }, abort)
  return { ...told(verdict), retry, opensBreaker: rejection !== undefined }
}

const line = (words: string) => {
  const found = contractEnds.find(({ end }) => end.includes(words))
  if (found === undefined) throw new Error(`the contract's table has no line with ${words}`)
  return found
}

describe("each end", () => {
  for (const { said, promised, exceptions } of contractEnds) {
    for (const [word, family, reasons] of said) {
      it(`an execution that ends with ${word} [end ${word}]`, () => {
        expect(reasons.map((reason) => [reason, closed(family, reason)])).toEqual(
          reasons.map((reason) => [reason, promised]),
        )
      })
      for (const [reason, otherwise] of exceptions) {
        it(`an execution that ends with ${reason} [end ${reason}]`, () => {
          expect(closed(family, reason)).toEqual(otherwise)
        })
      }
    }
  }

  it("an execution that ends with a value that the reference does not list [end unlisted value]", () => {
    const { promised } = line("any value that the reference does not list")
    for (const [code, reason] of [
      ["MOONLIT", "COMPLETED"],
      ["COMPLETED", "FULL_MOON"],
      ["FAILED", "COMPLETED"],
    ] as const)
      expect(closed(code, reason)).toEqual(promised)
  })

  it("our own abort at max_wait or the deadline is the service's, one because of a challenge the customer's [end CLIENT_CANCELLED]", () => {
    const ours = line("`CLIENT_CANCELLED` by our own abort").promised
    const challenged = line("`CUSTOMER_INTERVENTION_REQUIRED`, ").promised
    expect(
      (["max_wait", "deadline", "challenge"] as const).map((abort) =>
        closed("ABORTED", "CLIENT_CANCELLED", abort),
      ),
    ).toEqual([ours, ours, challenged])
  })

  it("a start that was answered 400 or 422 [end refused start]", () => {
    const { promised, exceptions } = line("start answered 400 or 422")
    const { outcome, who_acts, exit } = promised
    for (const reason of ["T10N_FORBIDDEN", "CUSTOMER_INTERVENTION_REQUIRED", "INCORRECT_PARAMETERS_FORMAT"])
      expect(told(verdictOfRefusal(reason))).toEqual({ outcome, who_acts, exit })
    for (const [reason, otherwise] of exceptions)
      expect(told(verdictOfRefusal(reason))).toEqual({
        outcome: otherwise.outcome,
        who_acts: otherwise.who_acts,
        exit: otherwise.exit,
      })
  })

  for (const { own: reasons, promised, neverStarted } of contractEnds) {
    for (const reason of reasons) {
      it(`a task that ends with our own ${reason} [end ${reason}]`, () => {
        const { outcome, who_acts, exit } = promised
        if (!isReason(reason)) throw new Error(`${reason} is no reason`)
        expect(told(neverStarted ? beforeStart(reason) : own(reason))).toEqual({ outcome, who_acts, exit })
      })
    }
  }

  it("a task whose answer makes the program fail, which is not in the contract [end ANSWER_UNUSABLE]", () => {
    expect(told(own("ANSWER_UNUSABLE"))).toEqual({ outcome: "failed", who_acts: "engineer", exit: 3 })
  })
})
