/**
 * Whole nights with tokens against the embedded service, in virtual time: parameters and a ticket on the first
 * night, the token on the later ones, and what follows when the token is at its end.
 */
import { describe, expect, it } from "vitest"
import { Effect, Exit, Layer, Redacted } from "effect"
import { runNight } from "../src/Nightly.ts"
import { Service } from "../src/client/Service.ts"
import { ServiceCatalogue } from "../src/client/ServiceCatalogue.ts"
import { ServiceHttp } from "../src/client/ServiceHttp.ts"
import { builtInSources } from "../src/contract/ResultsSource.ts"
import type { Assignment, Job, JobFeature } from "../src/jobs/Job.ts"
import { Secrets } from "../src/jobs/Secrets.ts"
import { LandingMemory } from "../src/landing/LandingMemory.ts"
import { Ledger, openLedger } from "../src/ledger/Ledger.ts"
import { TokenStore, TokenStoreLayer } from "../src/ledger/TokenStore.ts"
import { openTokenDatabase } from "../src/ledger/TokenTables.ts"
import { FormCache } from "../src/planning/EngineForms.ts"
import { summarise } from "../src/report/Summary.ts"
import { Sandbox } from "../src/sandbox/Sandbox.ts"
import { SandboxClient } from "../src/sandbox/SandboxClient.ts"
import { SimulatedPublisher } from "./simulation/SimulatedPublisher.ts"
import { World } from "./simulation/World.ts"

const day = 24 * 60 * 60_000
const start = Date.UTC(2026, 10, 21, 22)
const features = (...codes: ReadonlyArray<string>): ReadonlyArray<JobFeature> =>
  codes.map((code) => ({ code, configurations: undefined }))

const customer = (id: string, words: string, password = "a-secret-password"): Assignment => {
  const literal = (value: unknown) => ({ _tag: "Literal", value: Redacted.make(value) }) as const
  return {
    customer_id: id,
    engine_reference: "sandbox-bank:website",
    features: features("accounts_read", "cards_read"),
    configurations: {},
    hooks_extra_data: {},
    login: {
      _tag: "Parameters",
      parameters: { username: literal(`${words}+customer-${id}`), password: literal(password) },
      tokenized_access: true,
    },
    source: `test:${id}`,
  }
}

const jobOf = (assignments: ReadonlyArray<Assignment>): Job => ({
  name: "tokens",
  path: "tokens.yaml",
  service: { _tag: "Embedded", seed: 5, speed: 1, faults: undefined },
  execution: { execution_timeout_seconds: 1_200, unlock_protected_data: false, max_wait_ms: 12_000_000 },
  concurrency: { max_in_flight: 10, per_engine: 10 },
  polling: { min_ms: 2_000, max_ms: 60_000 },
  retry: { max_attempts: 3, base_ms: 30_000, max_ms: 900_000 },
  flow_results: { enabled: true, min_interval_ms: 5_000, wait_final_ms: 600_000, attachments: true },
  deadline: undefined,
  timezone: "UTC",
  after_export: "delete",
  share: "none",
  assignments,
  sources: builtInSources,
  hooks: [],
  tokens_key: undefined,
  sessions: [],
})

/** One place in which nights follow each other, a day apart. */
const makeNights = () => {
  const world = World.make({ startMs: start, seed: 1 })
  const addresses = { base_url: SandboxClient.base_url, flows_url: SandboxClient.flows_url }
  const ledger = Ledger.layerOver(openLedger({ path: ":memory:" }))
  const landing = LandingMemory.layer(LandingMemory.makeStore())
  const history = SimulatedPublisher.makeHistory()
  const publisher = SimulatedPublisher.layer(history, [], () => world.now())
  const database = openTokenDatabase(":memory:")
  const key = Redacted.make("5c".repeat(32))
  const layers = Layer.mergeAll(
    FormCache.layer.pipe(Layer.provide(ServiceCatalogue.layer)),
    publisher,
    Secrets.layerMemory(new Map()),
  ).pipe(
    Layer.provideMerge(
      ServiceHttp.layer({
        ...addresses,
        attachments_url: addresses.flows_url,
        app_secret: Redacted.make("sandbox-app-1"),
      }),
    ),
    Layer.provideMerge(Layer.mergeAll(ledger, landing)),
    Layer.provideMerge(TokenStoreLayer.over(database, { key, service: "sandbox" })),
    Layer.provide(SandboxClient.layer),
    Layer.provideMerge(Sandbox.layer({ seed: 5 })),
  )
  return { world, layers }
}

const options = { further: false, parent: undefined, only: undefined, toolVersion: "test" }

/** What a night came to: how each customer logged in, its verdict, and what the summary warns of. */
const nightOf = (job: Job) =>
  Effect.gen(function* () {
    const { run_id, state } = yield* runNight(job, options)
    const ledger = yield* Ledger
    const facts = (yield* ledger.facts(run_id)).map(({ fact }) => fact)
    const logins = facts.flatMap((fact) =>
      fact._tag === "StartIntended" ? [fact.token_id === undefined ? "parameters" : "token"] : [],
    )
    const verdicts = [...state.tasks.values()].map(({ settled }) => settled?.fact.reason)
    return { logins, verdicts, warnings: summarise(state).warnings }
  })

const stored = Effect.gen(function* () {
  const store = yield* TokenStore
  if (store._tag === "Closed") return []
  return (yield* store.tokens).map(({ dropped }) => dropped?.reason ?? "kept")
})

const live = <A, E>(
  { world, layers }: ReturnType<typeof makeNights>,
  work: Effect.Effect<A, E, Layer.Success<ReturnType<typeof makeNights>["layers"]>>,
): A => {
  const process = world.spawn("nights", Effect.provide(work, layers))
  world.runUntil(() => process.exit() !== undefined)
  const exit = process.exit()
  if (exit === undefined || Exit.isFailure(exit)) throw new Error(`the nights failed: ${String(exit?.cause)}`)
  return exit.value
}

const wait = (days: number) => Effect.sleep(days * day)

describe("nights with tokens", () => {
  it("log in with parameters once, then with the token, and with parameters again when it was revoked", () => {
    const job = jobOf([customer("c-1", "ok+queue-5+run-30+records-4")])
    const nights = live(
      makeNights(),
      Effect.gen(function* () {
        const first = yield* nightOf(job)
        yield* wait(1)
        const second = yield* nightOf(job)
        yield* wait(1)
        const third = yield* nightOf(job)
        const store = yield* TokenStore
        const [token] = store._tag === "Open" ? yield* store.tokens : []
        const service = yield* Service
        const revoked = yield* service.revokeToken(token?.token_id ?? "")
        yield* wait(1)
        const fourth = yield* nightOf(job)
        const after = yield* stored
        yield* wait(1)
        const fifth = yield* nightOf(job)
        return { first, second, third, revoked, fourth, after, fifth, end: yield* stored }
      }),
    )
    const by = (login: string, reason = "COMPLETED", warnings: ReadonlyArray<string> = []) => ({
      logins: [login],
      verdicts: [reason],
      warnings,
    })
    expect(nights).toEqual({
      first: by("parameters"),
      second: by("token"),
      third: by("token"),
      revoked: "revoked",
      fourth: by("token", "T10N_REJECTED", ["1 stored tokens are not used any more: T10N_REJECTED"]),
      after: ["T10N_REJECTED"],
      fifth: by("parameters"),
      end: ["kept"],
    })
  })

  it("never repeat a login that was rejected under its token, until the parameters change", () => {
    const words = "ok+queue-5+run-30+records-4+turn-1-INCORRECT_CREDENTIALS"
    const job = jobOf([customer("c-1", words)])
    const changed = jobOf([customer("c-1", "ok+queue-5+run-30+records-4", "another-password")])
    const nights = live(
      makeNights(),
      Effect.gen(function* () {
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
      }),
    )
    expect(nights).toEqual({
      logins: [["parameters"], ["token"], [], ["parameters"]],
      verdicts: ["COMPLETED", "INCORRECT_CREDENTIALS", "INCORRECT_CREDENTIALS", "COMPLETED"],
      dropped: ["LOCKED"],
      end: ["kept"],
    })
  })

  it("start nothing with a token whose key stands in the pairs of its webhook addresses", () => {
    const assignment = customer("c-1", "ok+queue-5+run-30+records-4")
    const nights = live(
      makeNights(),
      Effect.gen(function* () {
        yield* nightOf(jobOf([assignment]))
        const store = yield* TokenStore
        const [token] = store._tag === "Open" ? yield* store.tokens : []
        const key = store._tag === "Open" && token !== undefined ? yield* store.tokenKey(token) : undefined
        const night = (value: string) => nightOf(jobOf([{ ...assignment, hooks_extra_data: { value } }]))
        yield* wait(1)
        const refused = yield* night(key === undefined ? "" : `key=${Redacted.value(key)}`)
        yield* wait(1)
        return { refused, harmless: yield* night("{event}") }
      }),
    )
    expect(nights).toEqual({
      refused: { logins: [], verdicts: ["BAD_CONFIGURATIONS"], warnings: [] },
      harmless: { logins: ["token"], verdicts: ["COMPLETED"], warnings: [] },
    })
  })

  it("begin no run of a job that would send a customer's password into webhook addresses", () => {
    const place = { file: "job.yaml", line: 5, column: 7 }
    const pair = { key: "k", value: "a-secret-password", place, key_place: place }
    const job = { ...jobOf([customer("c-1", "ok")]), hooks: [pair] }
    const ended = live(
      makeNights(),
      Effect.gen(function* () {
        const failure = yield* Effect.flip(runNight(job, options))
        const ledger = yield* Ledger
        return { failure: failure._tag, runs: yield* ledger.runs }
      }),
    )
    expect(ended).toEqual({ failure: "JobInvalid", runs: [] })
  })

  it("warn before the token ends, and sign in anew when it has", () => {
    const job = jobOf([customer("c-1", "ok+queue-5+run-30+records-4")])
    const nights = live(
      makeNights(),
      Effect.gen(function* () {
        const first = yield* nightOf(job)
        yield* wait(80)
        const late = yield* nightOf(job)
        yield* wait(11)
        const over = yield* nightOf(job)
        return [first, late, over].map(({ logins, warnings }) => [logins[0], ...warnings])
      }),
    )
    expect(nights).toEqual([
      ["parameters"],
      ["token", "1 stored tokens end within 14 days, the first 2027-02-19"],
      ["parameters", "1 stored tokens are not used any more: EXPIRED"],
    ])
  })

  it("drop a token whose credentials cannot be read, and ask for fewer features with it, never for more", () => {
    const unreadable = jobOf([customer("c-1", "ok+queue-5+run-30+t10n-exception")])
    const narrow = customer("c-2", "ok+queue-5+run-30")
    const wide = { ...narrow, features: features("accounts_read", "customer_information_read") }
    const nights = live(
      makeNights(),
      Effect.gen(function* () {
        yield* nightOf(unreadable)
        yield* wait(1)
        const second = yield* nightOf(unreadable)
        const dropped = yield* stored
        yield* wait(1)
        yield* nightOf(jobOf([narrow]))
        yield* wait(1)
        const { logins, verdicts } = yield* nightOf(jobOf([wide]))
        return { second: second.verdicts, dropped, logins, verdicts }
      }),
    )
    expect(nights).toEqual({
      second: ["T10N_EXCEPTION"],
      dropped: ["T10N_EXCEPTION"],
      logins: ["token"],
      verdicts: ["COMPLETED"],
    })
  })
})
