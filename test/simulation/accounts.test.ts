/**
 * A short sample of the campaign over shared accounts, and the judge's own proof: for each of its rules a defect of what
 * leaves the pipeline, or of what it is told, that it must see. The long one is `npm run accounts -- --seeds N`.
 */
import { Effect } from "effect"
import { HttpClient, HttpClientRequest, HttpServerResponse } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import { describe, expect, it } from "vitest"
import { nightMs, runAccountNights, type AccountsPlan, type Use } from "./AccountNights.ts"
import { complaintsOf, type Complaint } from "./AccountsJudge.ts"
import { planAccounts } from "./AccountsPlan.ts"
import { calm, transportError } from "./FaultyNetwork.ts"
import { jsonBody, type Storm } from "./HostileService.ts"
import { refusalsAsTemporary, type PlantedServices } from "./NightLayers.ts"

describe("accounts that customers, channels and jobs share", () => {
  it("are safe in nights with hostile start answers", () => {
    // These meet every kind of start answer but `accepted and refused`, which a case of its own tries.
    const wrong = [13, 15, 37, 40, 47, 69, 73, 88, 89, 119].flatMap((seed) => {
      const complaints = complaintsOf(runAccountNights(planAccounts(seed, 5)))
      return complaints.slice(0, 1).map(({ rule, what }) => `seed ${seed}: ${rule}: ${what}`)
    })
    expect(wrong).toEqual([])
  })
})

/** A world of one engine, in which only what is said goes wrong. */
const world = (nights: number, customers: number, storms: ReadonlyArray<Partial<Storm>>): AccountsPlan => {
  const engine = "es-a:website"
  const base = planAccounts(1, nights)
  const all = { engines: [engine], fromMs: 0, untilMs: Infinity, rate: 1, page: "available" as const }
  return {
    ...base,
    channels: [{ reference: engine, fields: ["username", "password"], locking: ["username"] }],
    uses: Array.from({ length: customers }, (_, index): Use => {
      const name = `user${index}`
      return { job: 0, customer: name, engine, username: name, password: () => "right-password" }
    }),
    rightPassword: () => "right-password",
    storms: storms.map((storm) => ({ ...all, answer: "lost: reset", made: true, ...storm })),
    commands: Array.from({ length: nights }, (_, night) => ({ night, jobs: [0] })),
    accidents: [],
    rates: () => calm,
  }
}
const within = (night: number) => ({ fromMs: nightMs(night), untilMs: nightMs(night + 1) })

type Request = HttpClientRequest.HttpClientRequest
type Sent = Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

/** Every start goes through this. */
const starts = (change: (request: Request, send: (request: Request) => Sent) => Sent): PlantedServices => ({
  client: (client) =>
    HttpClient.make((request) =>
      /\/init\/v1\//.test(request.url) ? change(request, client.execute) : client.execute(request),
    ),
})
/** The same start with an id of its own. */
const anew = (request: Request): Request => {
  const body = Object(jsonBody(request))
  const external_execution_id = `${body.external_execution_id}-again`
  return HttpClientRequest.bodyJsonUnsafe(request, { ...body, external_execution_id })
}
const engineOf = (request: Request): string => Object(jsonBody(request)).engine_reference
const answer = (request: Request, status: number, body: unknown) =>
  HttpServerResponse.toClientResponse(HttpServerResponse.jsonUnsafe(body, { status }), { request })

const twiceAtOnce = starts((request, send) => Effect.tap(send(request), () => send(anew(request))))
const lostOnesAgain = starts((request, send) =>
  Effect.catch(send(request), () => Effect.catch(send(anew(request)), () => send(anew(anew(request))))),
)
const throttledAsLost = starts((request, send) =>
  Effect.flatMap(send(request), (response) =>
    response.status === 429
      ? Effect.fail(transportError(request, "ECONNRESET", "read"))
      : Effect.succeed(response),
  ),
)
/** A fault of the engine that looks like one of the request: nobody doubts the engine. */
const faultsAsRefusals = starts((request, send) =>
  Effect.map(send(request), (response) =>
    response.status >= 500
      ? answer(request, 422, { detail: [{ loc: ["body"], msg: "no", type: "value_error" }] })
      : response,
  ),
)
const neverAgain = () => {
  const away = new Set<string>()
  return starts((request, send) =>
    away.has(engineOf(request))
      ? Effect.fail(transportError(request, "ECONNREFUSED", "connect"))
      : Effect.tap(send(request), ({ status }) =>
          Effect.sync(() => void (status >= 500 && away.add(engineOf(request)))),
        ),
  )
}

const lostOnes = { answer: "lost: reset", made: true, accounts: ["es-a/user0"] } as const
const wrongLogin = (plan: AccountsPlan): AccountsPlan => ({
  ...plan,
  uses: plan.uses.map((use) => (use.customer === "user0" ? { ...use, password: () => "wrong" } : use)),
})

describe("the judge", () => {
  const rulesBroken = (plan: AccountsPlan, plant?: PlantedServices) =>
    new Set(complaintsOf(runAccountNights(plan, plant)).map(({ rule }) => rule))
  /** What is wrong in each world without a defect, looked at once. */
  const without = new Map<AccountsPlan, ReturnType<typeof rulesBroken>>()
  const rulesBrokenWithout = (plan: AccountsPlan) => {
    const known = without.get(plan) ?? rulesBroken(plan)
    without.set(plan, known)
    return known
  }
  /** In this world nothing is wrong without the defect, and these rules are broken with it. */
  const detects = (
    title: string,
    plan: AccountsPlan,
    plant: PlantedServices,
    ...rules: ReadonlyArray<Complaint["rule"]>
  ) =>
    it(`detects ${title}`, () => {
      expect([rulesBrokenWithout(plan), rulesBroken(plan, plant)]).toEqual([new Set(), new Set(rules)])
    })

  detects("a start that is sent twice", world(2, 3, []), twiceAtOnce, "two logins at once")
  detects(
    "a lost start that is sent again at once, twice and with other ids",
    world(6, 3, [lostOnes]),
    lostOnesAgain,
    "above its bound",
    "two logins at once",
    "busy account",
    "twice a night",
    "held by an outage",
  )
  detects(
    "a refused login that is taken for a temporary error",
    wrongLogin(world(4, 3, [])),
    refusalsAsTemporary,
    "above its bound",
    "refused login again",
  )
  detects(
    "a request to wait that counts as a strike",
    world(5, 3, [{ ...lostOnes, answer: "429", made: false }]),
    throttledAsLost,
    "held without cause",
  )
  const outage = world(2, 24, [{ ...within(0), answer: "502" }])
  detects("faults that leave an engine without doubt", outage, faultsAsRefusals, "too many exposed")
  detects("an engine that is never trusted again", outage, neverAgain(), "not read after an outage")

  it("finds occasions for defects in drawn campaigns", () => {
    expect(rulesBroken(planAccounts(7, 6), lostOnesAgain)).toContain("two logins at once")
    expect(rulesBroken(planAccounts(7, 6), refusalsAsTemporary)).toContain("refused login again")
  })
})
