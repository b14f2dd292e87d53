/**
 * Tickets and tokens in a night, in virtual time: when a ticket is exchanged and how often, what a crash at
 * each moment costs, and what ends a token.
 */
import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { SecretRefused } from "../../src/client/Service.ts"
import type { ExchangeAnswer, StartCall } from "../../src/client/Service.ts"
import { accessOf } from "../../src/service/Ids.ts"
import type { Prepared, TokenRef } from "../../src/task/Work.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { keepTicket } from "../../src/tokens/ExchangeTicket.ts"
import type { TicketOrder } from "../../src/tokens/ExchangeTicket.ts"
import { TokenStore, type OpenTokenStore } from "../../src/tokens/TokenStore.ts"
import { openTokenDatabase } from "../../src/tokens/TokenTables.ts"
import { idOf, makePlace, night, ready, run_id, second } from "../task/ScriptedNight.ts"
import type { Night, NightEnd, Place } from "../task/ScriptedNight.ts"
import { accepted, completed, conflict, lost, notSent } from "../task/ScriptedService.ts"
import { state, throttled, unexpected, working, acceptedAs } from "../task/ScriptedService.ts"
import type { Script } from "../task/ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"
import { keepPlain, withStore } from "./OpenStore.ts"
import { aFact } from "../harness/Facts.ts"

const ticket = "ticket-canary-1"
const token_key = "token-key-canary-1"
const execution = anId("e-c-1-1")

const options = { key: Redacted.make("7a".repeat(32)), service: "sandbox" }
const placeWithStore = () => {
  const database = openTokenDatabase(":memory:")
  const tokens = Layer.orDie(TokenStore.layerOver(database, options))
  return { ...makePlace(), tokens } satisfies Place
}
const inStore = <A, E>(place: Place, work: (store: OpenTokenStore) => Effect.Effect<A, E>) =>
  Effect.provide(withStore(work), place.tokens ?? Layer.empty)

/** Names, reasons and keys of what is stored, and whether a ticket is left. */
const content = (place: Place) =>
  inStore(place, (store) =>
    Effect.gen(function* () {
      const tokens = yield* store.tokens
      const rows = yield* Effect.forEach(tokens, (token) =>
        Effect.map(store.tokenKey(token), (found) => [
          token.name,
          token.dropped?.reason ?? "kept",
          found === undefined ? "no key" : Redacted.value(found),
        ]),
      )
      return { tokens: rows, tickets: (yield* store.pendingTicket(execution)) === undefined ? 0 : 1 }
    }),
  )
const nothing = { tokens: [], tickets: 0 }
const stored = { tokens: [["c-1/bank", "kept", token_key]], tickets: 0 }

const asking = (): Prepared => {
  const given = ready("login-1")
  if (given._tag !== "Ready") return given
  const base_configurations = { ...given.call.base_configurations, tokenized_access: true }
  return { ...given, call: { ...given.call, features: ["accounts_read"], base_configurations } }
}
const byToken: TokenRef = { name: "c-1/bank", token_id: "t-1" }
const withToken = (): Prepared => {
  const given = ready("login-1")
  if (given._tag !== "Ready") return given
  const login = { _tag: "Token", token_id: "t-1", token_key: Redacted.make(token_key) } as const
  return { ...given, token: byToken, call: { ...given.call, login } }
}

const issuing = (id: string) =>
  acceptedAs({ ...accepted(id).view, ticket: Redacted.make(ticket) }, { ticket })
const exchanged: ExchangeAnswer = {
  _tag: "Exchanged",
  token: { token_id: "t-1", token_key: Redacted.make(token_key) },
  context: {
    customer_id: anId("c-1"),
    engine_reference: anId("bank"),
    features: ["accounts_read"],
    app_id: "app",
  },
}
const queued = state("ONGOING", "ACCEPTED", { authentication_status: "not-performed" })
const good: Script = {
  start: (_, times) => issuing(`c-1-${times}`),
  state: (_, times) => (times === 1 ? queued : times === 2 ? working : completed),
  exchange: () => exchanged,
}

const run = (place: Place, given: Night = {}, prepare: () => Prepared = asking) =>
  night({ tasks: [{ customer: "c-1", fingerprint: "login-1", prepare }], ...given, place })

/** Verbs in their order. */
const verbs = ({ calls }: NightEnd) => calls.map(([, verb]) => verb)
const ofTokens = ({ facts }: NightEnd) =>
  facts.flatMap((fact: Fact) => {
    if (fact._tag === "TicketIssued") return ["issued"]
    if (fact._tag === "TokenStored") return ["stored"]
    return fact._tag === "TicketDropped" || fact._tag === "TokenDropped"
      ? [`${fact._tag} ${fact.reason}`]
      : []
  })

describe("a ticket", () => {
  effect("is exchanged once, as soon as the login was accepted and not before", function* () {
    const place = placeWithStore()
    const tickets: Array<string> = []
    const end = yield* run(place, {
      script: {
        ...good,
        exchange: (_, __, given) => {
          tickets.push(Redacted.value(given))
          return exchanged
        },
      },
    })
    expect(verbs(end)).toEqual(["start", "state", "state", "exchange", "state", "results"])
    expect(tickets).toEqual([ticket])
    expect([ofTokens(end), yield* content(place)]).toEqual([["issued", "stored"], stored])
    const [token] = yield* inStore(place, (store) => store.tokens)
    expect(token).toMatchObject({
      fingerprint: "login-1",
      features: ["accounts_read"],
      app_id: "app",
      expires_at: (token?.exchanged_at ?? 0) + 90 * 86_400 * second,
    })
  })

  /** How often it was sent, what was told of it, and what is kept, after a night with this script. */
  const after = Effect.fnUntraced(function* (script: Script) {
    const place = placeWithStore()
    const end = yield* run(place, { script: { ...good, ...script } })
    return { end, seen: [end.countOf("exchange"), ofTokens(end), yield* content(place), end.verdict("c-1")] }
  })
  const succeeded = "succeeded COMPLETED nobody"
  const dropped = (sent: number, why: string, verdict = succeeded) => [
    sent,
    ["issued", `TicketDropped ${why}`],
    nothing,
    verdict,
  ]
  const sentOnly = (sent: number) => [sent, ["issued", "stored"], stored, succeeded]

  effect("is exchanged at the end if no poll saw the login succeed before", function* () {
    const { end, seen } = yield* after({ state: () => completed })
    expect(verbs(end)).toEqual(["start", "state", "exchange", "results"])
    expect(seen).toEqual(sentOnly(1))
  })

  effect("of a refused login is dropped without a request", function* () {
    const rejected = state("AUTH_ERROR", "BLOCKED_USER", { authentication_status: "BLOCKED_USER" })
    const { seen } = yield* after({ state: () => rejected })
    expect(seen).toEqual(dropped(0, "NO_AUTH_OK", "failed BLOCKED_USER customer"))
  })

  effect(
    "that is refused, or somebody else's, costs a warning, not the task nor a second request",
    function* () {
      const foreign = [{ customer_id: anId("c-2") }, { engine_reference: anId("tax") }]
      for (const [answer, why] of [
        [{ _tag: "Refused" } as const, "REFUSED"],
        [unexpected, "REFUSED"],
        ...foreign.map((context) => [{ ...exchanged, context }, "FOREIGN_CONTEXT"] as const),
      ] as const)
        expect((yield* after({ exchange: () => answer })).seen).toEqual(dropped(1, why))
    },
  )

  effect("whose answer was lost is sent once more, and never a third time", function* () {
    const healed = yield* after({ exchange: (_, times) => (times === 1 ? lost : exchanged) })
    expect(healed.seen).toEqual(sentOnly(2))
    expect((yield* after({ exchange: () => lost })).seen).toEqual(dropped(2, "ANSWER_LOST"))
  })

  effect("that never reached the service waits for the next poll, and is not used up", function* () {
    const refused = new SecretRefused({ http_status: 401, message: "" })
    const away = [notSent, throttled(429), throttled(503), refused]
    const late = yield* after({
      state: (_, times) => (times < 8 ? working : completed),
      exchange: (_, times) => away[times - 1] ?? exchanged,
    })
    expect(late.seen).toEqual(sentOnly(5))
    const never = yield* after({ state: () => completed, exchange: () => notSent })
    expect(never.seen).toEqual(dropped(4, "UNREACHABLE"))
  })

  effect("that still waits when the run is cut off is exchanged by the next run of its task", function* () {
    const place = placeWithStore()
    const script: Script = { ...good, exchange: () => throttled(429, 20 * second) }
    const cut = yield* run(place, { script, rules: { deadlineAt: 10 * second } })
    expect([cut.verdict("c-1"), cut.countOf("results"), ofTokens(cut)]).toEqual([
      "unfinished RESULTS_PARTIAL service",
      0,
      ["issued"],
    ])
    const next = yield* run(place, { script: good })
    expect([next.verdict("c-1"), next.countOf("start"), ofTokens(next), yield* content(place)]).toEqual([
      "succeeded COMPLETED nobody",
      1,
      ["issued", "stored"],
      stored,
    ])
  })

  effect("that was requested and not issued is reported; one not requested is not kept", function* () {
    const place = placeWithStore()
    const end = yield* run(place, { script: { ...good, start: () => accepted("c-1-1") } })
    expect(ofTokens(end)).toEqual(["TicketDropped NOT_ISSUED"])
    const unasked = placeWithStore()
    const plain = yield* run(unasked, { script: good }, () => ready("login-1"))
    expect([ofTokens(plain), yield* content(unasked)]).toEqual([[], nothing])
  })

  effect("depends on reads: HEAD cannot show the login", function* () {
    const place = placeWithStore()
    const script: Script = {
      ...good,
      state: (_, times) => (times < 60 ? queued : completed),
      poll: () => "working",
    }
    const end = yield* run(place, { script })
    const plain = yield* run(placeWithStore(), { script }, () => ready("login-1"))
    expect([end.countOf("poll"), plain.countOf("poll") > 10]).toEqual([0, true])
    expect(yield* content(place)).toEqual(stored)
  })
})

describe("a crash", () => {
  const resumed = (place: Place, script: Script, killAfter: number) =>
    Effect.gen(function* () {
      yield* run(place, { script, killAfter })
      return yield* run(place, { script })
    })

  effect("at any moment costs at most the token, and the ticket is sent at most twice", function* () {
    const ends = new Map<string, number>()
    for (let killAfter = 50; killAfter < 12_000; killAfter += 400) {
      const place = placeWithStore()
      // Like the service: a request does what it does, whether or not anybody lives to read the answer.
      const asked = (verb: string) => place.calls.filter(([, what]) => what === verb).length
      const script: Script = {
        ...good,
        exchange: () => (asked("exchange") === 1 ? exchanged : { _tag: "Refused" }),
        start: (call) =>
          asked("start") === 1 ? issuing("c-1-1") : conflict("c-1-1", call.external_execution_id),
      }
      const end = yield* resumed(place, script, killAfter)
      const { tokens, tickets } = yield* content(place)
      const spent = asked("exchange")
      expect([killAfter, end.verdict("c-1"), tickets, spent <= 2]).toEqual([
        killAfter,
        "succeeded COMPLETED nobody",
        0,
        true,
      ])
      const key = `${tokens.length} tokens, ${spent} exchanges`
      ends.set(key, (ends.get(key) ?? 0) + 1)
    }
    // No exchange: the start's answer died with its ticket. Two: the first one's answer died with its token.
    expect([...ends.keys()].toSorted()).toEqual([
      "0 tokens, 0 exchanges",
      "0 tokens, 2 exchanges",
      "1 tokens, 1 exchanges",
    ])
    expect(ends.get("1 tokens, 1 exchanges")).toBeGreaterThan(25)
  })

  effect("after an exchange whose answer was lost leaves one more try, not two", function* () {
    const place = placeWithStore()
    const script: Script = { ...good, exchange: () => lost }
    const first = yield* run(place, { script, killAfter: 5_000 })
    const before = first.countOf("exchange")
    const end = yield* run(place, { script })
    expect([before, end.countOf("exchange"), yield* content(place)]).toEqual([1, 2, nothing])
  })
})

describe("a token", () => {
  const withStored = Effect.suspend(() => {
    const place = placeWithStore()
    const keep = (store: OpenTokenStore) =>
      keepPlain(store, { ...byToken, fingerprint: "login-1" }, token_key)
    return Effect.as(inStore(place, keep), place)
  })
  const after = (script: Script) =>
    Effect.gen(function* () {
      const place = yield* withStored
      const end = yield* run(place, { script }, withToken)
      const [token] = (yield* content(place)).tokens
      return { end, token, starts: end.countOf("start"), verdict: end.verdict("c-1") }
    })
  const kept = ["c-1/bank", "kept", token_key]
  const rejectedLogins = ({ facts }: NightEnd) =>
    facts.flatMap((fact) => (fact._tag === "CredentialRejected" ? [fact.fingerprint] : []))

  effect("logs in, is named in the start's intent, and stays for the next run", function* () {
    const calls: Array<StartCall> = []
    const { end, token, verdict } = yield* after({
      ...good,
      start: (call) => (calls.push(call), accepted("c-1-1")),
    })
    const intents = end.facts.flatMap((fact) => (fact._tag === "StartIntended" ? [fact.token_id] : []))
    expect([intents, token, verdict]).toEqual([["t-1"], kept, "succeeded COMPLETED nobody"])
    expect(calls.map(({ login }) => login._tag)).toEqual(["Token"])
    expect(JSON.stringify(end.facts)).not.toContain(token_key)
  })

  const closedWith = (code: string, reason: string, authentication_status?: string) =>
    state(code, reason, authentication_status === undefined ? {} : { authentication_status })
  const ends = [
    ["T10N_REJECTED", closedWith("CONFIGURATION_ERROR", "T10N_REJECTED"), "T10N_REJECTED", []],
    ["a refused login", closedWith("FAILED", "FAILED", "CHANGE_PASSWORD"), "LOCKED", ["login-1"]],
  ] as const
  effect.each(ends)("is dropped after %s, without a second try", function* ([, closed, reason, rejected]) {
    const { end, token, starts } = yield* after({ state: () => closed })
    expect([token, starts, rejectedLogins(end), ofTokens(end)]).toEqual([
      ["c-1/bank", reason, "no key"],
      1,
      rejected,
      [`TokenDropped ${reason}`],
    ])
  })

  effect("is dropped by the next process if the last one died after recording the end", function* () {
    const place = yield* withStored
    const about = { run_id, task_id: idOf("c-1"), attempt: 1 }
    const refusal = { status_code: "AUTH_ERROR", status_reason: "BLOCKED_USER" }
    const end = yield* run(
      place,
      {
        facts: [
          aFact("StartIntended", { ...about, fingerprint: "login-1", token_id: "t-1" }),
          { _tag: "StartAnswered", ...about, answer: "accepted", execution_id: anId(execution) },
          { _tag: "AttemptClosed", ...about, execution_id: anId(execution), ...refusal },
        ],
      },
      withToken,
    )
    expect([ofTokens(end), (yield* content(place)).tokens, end.calls]).toEqual([
      ["TokenDropped LOCKED"],
      [["c-1/bank", "LOCKED", "no key"]],
      [],
    ])
  })
})

describe("one step of a ticket", () => {
  const order: TicketOrder = {
    run_id,
    task_id: anId(`${run_id}/c-1/bank`),
    attempt: 1,
    customer_id: anId("c-1"),
    engine_reference: anId("bank"),
    fingerprint: "login-1",
    polling: { min: Duration.seconds(1), max: Duration.seconds(10) },
  }
  const asked = asking()
  const call = asked._tag === "Ready" ? { ...asked.call, external_execution_id: "x-1" } : undefined
  const waiting = {
    ...accessOf(order),
    execution_id: execution,
    fingerprint: undefined,
    features: [],
    issued_at: 0,
  }
  const opened = { execution_id: execution, answer: "adopted" } as const
  const keep = Effect.suspend(() =>
    call === undefined ? Effect.die("not ready") : keepTicket(order, call, lost, opened),
  )

  effect("records what an earlier process kept, and otherwise that its answer is lost", function* () {
    const place = placeWithStore()
    const inPlace = <A, E>(work: Effect.Effect<A, E>) => Effect.provide(work, place.tokens)
    const about = { run_id, task_id: order.task_id, attempt: 1, execution_id: execution }
    expect(yield* inPlace(keep)).toEqual([{ _tag: "TicketDropped", ...about, reason: "ANSWER_LOST" }])
    yield* inStore(place, (store) => store.keepTicket(waiting, Redacted.make(ticket)))
    expect(yield* inPlace(keep)).toEqual([{ _tag: "TicketIssued", ...about }])
  })
})
