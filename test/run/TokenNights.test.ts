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
      end: ["kept"],
    })
  })

  it("never repeat a login that was rejected under its token, until the parameters change", () => {
    const words = "ok+queue-5+run-30+records-4+turn-1-INCORRECT_CREDENTIALS"
    const job = jobOf([customer("c-1", words)])
    const changed = jobOf([customer("c-1", "ok+queue-5+run-30+records-4", "another-password")])
    const nights = live(makeNights(), function* () {
      const first = yield* nightOf(job)
      yield* wait(1)
      const second = yield* nightOf(job)
      const dropped = yield* stored
      yield* wait(1)
      const third = yield* nightOf(job)
      yield* wait(1)
      const fourth = yield* nightOf(changed)
      return {
        logins: [first, second, third, fourth].map(({ logins }) => logins),
        verdicts: [first, second, third, fourth].map(({ verdicts }) => verdicts[0]),
        dropped,
        end: yield* stored,
      }
    })
    expect(nights).toEqual({
      logins: [["parameters"], ["token"], [], ["parameters"]],
      verdicts: ["COMPLETED", "INCORRECT_CREDENTIALS", "INCORRECT_CREDENTIALS", "COMPLETED"],
      dropped: ["LOCKED"],
      end: ["kept"],
    })
  })

  it("tell of features outside the token, which are not requested and stay in the task [promise 17 outside]", () => {
    const assignment = customer("c-1", "ok+queue-5+run-30+records-4")
    const nights = live(makeNights(), function* () {
      yield* nightOf(jobOf([{ ...assignment, features: features("accounts_read") }]))
      yield* wait(1)
      const { warnings } = yield* nightOf(jobOf([assignment]))
      const ledger = yield* Ledger
      const run_id = (yield* ledger.runs).at(-1)?.fact.run_id
      const state = run_id === undefined ? undefined : yield* ledger.state(run_id)
      const [task] = [...(state?.tasks.values() ?? [])]
      return { warnings, features: task?.planned.features, outside: task?.attempts.at(-1)?.outside }
    })
    expect(nights).toEqual({
      warnings: ["1 task without features that the stored token does not cover: cards_read [token-outside]"],
      features: ["accounts_read", "cards_read"],
      outside: ["cards_read"],
    })
  })

  it("start nothing with a token whose key is in the pairs of its webhook addresses", () => {
    const assignment = customer("c-1", "ok+queue-5+run-30+records-4")
    const nights = live(makeNights(), function* () {
      yield* nightOf(jobOf([assignment]))
      const store = yield* withStore(Effect.succeed)
      const [token] = yield* store.tokens
      const key = token && (yield* store.tokenKey(token))
      const night = (value: string) => nightOf(jobOf([{ ...assignment, hooks_extra_data: { value } }]))
      yield* wait(1)
      const refused = yield* night(key === undefined ? "" : `key=${Redacted.value(key)}`)
      yield* wait(1)
      return { refused, harmless: yield* night("{event}") }
    })
    expect(nights).toEqual({
      refused: { logins: [], verdicts: ["BAD_CONFIGURATIONS"], warnings: [] },
      harmless: { logins: ["token"], verdicts: ["COMPLETED"], warnings: [] },
    })
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

  it("start nothing with a token that cannot be decrypted any more", () => {
    const job = jobOf([customer("c-1", "ok+queue-5+run-30")])
    const second = live(makeNights(), function* () {
      yield* nightOf(job)
      yield* wait(1)
      return yield* nightOf(job).pipe(
        Effect.updateService(TokenStore, (store) => ({ ...store, tokenKey: () => Effect.undefined })),
      )
    })
    expect(second).toEqual({ logins: [], verdicts: ["TOKEN_UNREADABLE"], warnings: [] })
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
