/** Whole nights with tokens: parameters and a ticket first, then the token, and what follows its end. */
import { describe, expect, it } from "vitest"
import { Effect, Redacted } from "effect"
import { runNight } from "../../src/run/Nightly.ts"
import { Service } from "../../src/client/Service.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { TokenStore } from "../../src/tokens/TokenStore.ts"
import { summarise } from "../../src/report/Summary.ts"
import {
  aheadByDays,
  customer,
  features,
  jobOf,
  live,
  makeNights,
  options,
  wait,
} from "../harness/SmallNights.ts"
import { withStore } from "../tokens/OpenStore.ts"

/** What a night came to: how each customer logged in, its verdict, and what the summary warns of tokens. */
const nightOf = (job: Job) =>
  Effect.gen(function* () {
    const { run_id, state } = yield* runNight(job, options)
    const ledger = yield* Ledger
    const facts = (yield* ledger.facts(run_id)).map(({ fact }) => fact)
    const logins = facts.flatMap((fact) =>
      fact._tag === "StartIntended" ? [fact.token_id === undefined ? "parameters" : "token"] : [],
    )
    const verdicts = [...state.tasks.values()].map(({ settled }) => settled?.fact.reason)
    const warnings = summarise(state).warnings.filter((one) => one.includes("token"))
    return { logins, verdicts, warnings }
  })

const stored = withStore(({ tokens }) =>
  Effect.map(tokens, (all) => all.map(({ dropped }) => dropped?.reason ?? "kept")),
)

describe("runs with tokens", () => {
  it("log in with parameters once, then with the token, and with parameters again when it was revoked", () => {
    const job = jobOf([customer("c-1", "ok+queue-5+run-30+records-4")])
    const nights = live(makeNights(), function* () {
      const first = yield* nightOf(job)
      yield* wait(1)
      const second = yield* nightOf(job)
      const [token] = yield* withStore(({ tokens }) => tokens)
      const service = yield* Service
      const revoked = yield* service.revokeToken(token?.token_id ?? "")
      yield* wait(1)
      const third = yield* nightOf(job)
      const after = yield* stored
      yield* wait(1)
      const fourth = yield* nightOf(job)
      return { first, second, revoked, third, after, fourth, end: yield* stored }
    })
    const by = (login: string, reason = "COMPLETED", warnings: ReadonlyArray<string> = []) => ({
      logins: [login],
      verdicts: [reason],
      warnings,
    })
    expect(nights).toEqual({
      first: by("parameters"),
      second: by("token"),
      revoked: "revoked",
      third: by("token", "T10N_REJECTED", ["1 stored token no longer used: T10N_REJECTED [token-dropped]"]),
      after: ["T10N_REJECTED"],
      fourth: by("parameters"),
      // `forget` revokes it, too.
      end: ["kept", "REPLACED"],
    })
  })

  it("request no feature outside the token [promise 17 outside], and start nothing with one whose key is in webhook addresses or lost", () => {
    const words = "ok+queue-5+run-30+records-4"
    const [outside, leaking, harmless, lost] = ["c-1", "c-2", "c-3", "c-4"].map((id) => customer(id, words))
    if (!outside || !leaking || !harmless || !lost) throw new Error("there are four")
    const { nights, task } = live(makeNights(), function* () {
      const first = { ...outside, features: features("accounts_read") }
      yield* nightOf(jobOf([first, leaking, harmless, lost]))
      const { tokens, tokenKey } = yield* withStore(Effect.succeed)
      const token = (yield* tokens).find(({ name }) => name.startsWith("c-2/"))
      const key = token && (yield* tokenKey(token))
      const pairs = (value: string) => ({ hooks_extra_data: { value } })
      yield* wait(1)
      const second = [
        outside,
        { ...leaking, ...pairs(key === undefined ? "" : `key=${Redacted.value(key)}`) },
        { ...harmless, ...pairs("{event}") },
        lost,
      ]
      const nights = yield* nightOf(jobOf(second)).pipe(
        Effect.updateService(TokenStore, (store) => ({
          ...store,
          tokenKey: (of) => (of.name.startsWith("c-4/") ? Effect.undefined : tokenKey(of)),
        })),
      )
      const ledger = yield* Ledger
      const run_id = (yield* ledger.runs).at(-1)?.fact.run_id
      const state = run_id === undefined ? undefined : yield* ledger.state(run_id)
      return { nights, task: [...(state?.tasks.values() ?? [])][0] }
    })
    expect(nights).toEqual({
      logins: ["token", "token"],
      verdicts: ["COMPLETED", "BAD_CONFIGURATIONS", "COMPLETED", "TOKEN_UNREADABLE"],
      warnings: ["1 task without features that the stored token does not cover: cards_read [token-outside]"],
    })
    expect([task?.planned.features, task?.attempts.at(-1)?.outside]).toEqual([
      ["accounts_read", "cards_read"],
      ["cards_read"],
    ])
  })

  it("send the parameters behind the token if the service has no such endpoint (405), in every run", () => {
    const job = jobOf([customer("c-1", "ok+queue-5+run-30+records-4")])
    const nights = live(makeNights({ tokenized_body: "absent" }), function* () {
      const first = yield* nightOf(job)
      yield* wait(1)
      const second = yield* nightOf(job)
      yield* wait(1)
      return [first, second, yield* nightOf(job)]
    })
    const refused = "the service refused 1 start with a stored token [token-start-refused]"
    const fallen = { logins: ["token", "parameters"], verdicts: ["COMPLETED"], warnings: [refused] }
    const plain = { logins: ["parameters"], verdicts: ["COMPLETED"], warnings: [] }
    expect(nights).toEqual([plain, fallen, fallen])
  })

  it("neither use nor erase a token that has expired by a clock that is fast, and use it again later [promise 9 tokens]", () => {
    const byParameters = customer("c-1", "ok+queue-5+run-30+records-4")
    const name = "c-1/sandbox-bank:website"
    const byToken = jobOf([{ ...byParameters, login: { _tag: "Token", name } }])
    const nights = live(makeNights(), function* () {
      yield* nightOf(jobOf([byParameters]))
      yield* wait(89)
      const fast = yield* nightOf(byToken).pipe(aheadByDays(2))
      const kept = yield* withStore(({ tokens }) => Effect.map(tokens, (all) => all.map((one) => one.hasKey)))
      yield* wait(0.1)
      const right = yield* nightOf(byToken)
      yield* wait(2)
      return { fast, kept, right, anew: yield* nightOf(jobOf([byParameters])) }
    })
    expect(nights).toEqual({
      fast: { logins: [], verdicts: ["TOKEN_EXPIRED"], warnings: [] },
      kept: [true],
      right: {
        logins: ["token"],
        verdicts: ["COMPLETED"],
        warnings: ["1 stored token will expire within 14 days, the first on 2027-02-19 [tokens-expiring]"],
      },
      anew: {
        logins: ["parameters"],
        verdicts: ["COMPLETED"],
        warnings: ["1 stored token not used: more than 90 days old by this machine's clock [tokens-expired]"],
      },
    })
  })

  it("warn of a token that expires, where a run is resumed with another customer", () => {
    const [first, other] = [customer("c-1", "ok+queue-5+run-30"), customer("c-2", "end-NETWORK_ERROR+run-1")]
    const once = (...assignments: Job["assignments"]): Job => {
      const job = jobOf(assignments)
      return { ...job, retry: { ...job.retry, max_attempts: 1 } }
    }
    const nights = live(makeNights(), function* () {
      yield* nightOf(once(first))
      yield* wait(80)
      const begun = yield* nightOf(once(other))
      return [begun, yield* nightOf(once(other, first))].map(({ warnings }) =>
        warnings.filter((warning) => warning.includes("[tokens-expiring]")),
      )
    })
    expect(nights).toEqual([
      [],
      ["1 stored token will expire within 14 days, the first on 2027-02-19 [tokens-expiring]"],
    ])
  })
})
