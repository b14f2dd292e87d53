/** What is known of an account over all runs, through the ledger's own projection, and whether a login may be sent. */
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { AccountBook, holdOf, strikesFor, strikesOf } from "../../src/ledger/Accounts.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { accountKeys, fingerprintLogin, keptKeys, type AccountKeys } from "../../src/privacy/Fingerprint.ts"
import { openLongestMs } from "../../src/service/Execution.ts"
import { anId } from "../harness/Id.ts"
import { withLayer } from "../harness/Steps.ts"
import { folder } from "../harness/Folder.ts"
import { aFact, runStarted } from "../harness/Facts.ts"

type Intent = Extract<Fact, { _tag: "StartIntended" }>
const hour = 3_600_000
const engine_reference = anId("bank:website")
const keys = (password = "p", more: Partial<AccountKeys> = {}): AccountKeys => ({
  account: "A",
  identity: ["ana"],
  password,
  former: [`print-${password}`],
  isByHand: true,
  ...more,
})
/** Of one night each: the task's only attempt. */
const of = (night: number) => ({
  run_id: anId(`job.2026-11-${10 + night}`),
  task_id: anId(`job.2026-11-${10 + night}/c-1/bank:website`),
  attempt: 1,
})
const sent = (night: number, login = keys(), probe = false): Fact =>
  aFact("StartIntended", {
    ...of(night),
    external_execution_id: `x-${night}`,
    customer_id: "c-1",
    engine_reference,
    fingerprint: `print-${login.password}`,
    login: keptKeys(login),
    probe,
    max_wait: hour,
  }) as Fact
const judged = (
  night: number,
  verdict: "not_sent" | "unproven" | "away" | "neutral" | "good",
  { account, password }: AccountKeys = keys(),
): Fact =>
  ({
    _tag: "LoginJudged",
    ...of(night),
    account,
    password,
    fingerprint: `print-${password}`,
    verdict,
    said: "502",
  }) as Fact
const rejected = (night: number, { password, account, identity }: AccountKeys = keys()): Fact =>
  aFact("CredentialRejected", {
    run_id: of(night).run_id,
    task_id: of(night).task_id,
    of_attempt: 1,
    fingerprint: `print-${password}`,
    login: { account, identity, password },
    customer_id: "c-1",
    engine_reference,
    reason: "INCORRECT_CREDENTIALS",
  }) as Fact

const inMemory = Ledger.layer({ path: ":memory:" })
const { effect } = withLayer(inMemory)

const lost = (night: number, login = keys()) => [sent(night, login), judged(night, "unproven", login)]
const thrice = [1, 2, 3].flatMap((night) => lost(night))
const oneMore: Fact = { _tag: "CredentialReleased", account: "A", logins: 1 }

describe("an account", () => {
  effect("whose third login is followed waits for its end, and is held once it ended badly", function* () {
    const ledger = yield* Ledger
    const why = Effect.map(ledger.accountsOf(keys()), (accounts) =>
      [0, 2 * hour].map((now) => holdOf(accounts, keys("p", { isByHand: false }), { now })?.why),
    )
    yield* ledger.append([...lost(1), ...lost(2), sent(3)])
    expect(yield* why).toEqual(["busy", "unproven"])
    yield* ledger.append([judged(3, "unproven")])
    expect(yield* why).toEqual(["unproven", "unproven"])
  })

  effect.each<readonly [string, ReadonlyArray<Fact>, AccountKeys, ReadonlyArray<unknown>]>([
    ["nothing was ever sent to", [], keys(), [0, undefined]],
    ["whose process was killed before any answer counts that login", [sent(1)], keys(), [1, undefined]],
    ["counts start and probe", [...lost(1), sent(1, keys(), true)], keys(), [2, "third"]],
    [
      "keeps the strike of a lost start if its probe created nothing",
      [...lost(1), sent(1, keys(), true), judged(1, "not_sent")],
      keys(),
      [1, undefined],
    ],
    [
      "counts a lost start whose probe was rejected as two logins [promise 4 refused probe]",
      [...lost(1), sent(1, keys(), true), rejected(1)],
      keys("q"),
      [2, "third"],
    ],
    [
      "does so still once the end of the probe says it again [promise 4 refused twice]",
      [...lost(1), sent(1, keys(), true), rejected(1), rejected(1)],
      keys("q"),
      [2, "third"],
    ],
    [
      "is held after three, over any number of nights [promise 4 unproven]",
      [...lost(1), ...lost(2), ...lost(9)],
      keys("p", { isByHand: false }),
      [3, "unproven"],
    ],
    [
      "forgets all strikes after a good login [promise 4 good]",
      [...lost(1), ...lost(2), sent(3), judged(3, "good")],
      keys(),
      [0, undefined],
    ],
    [
      "loses only the own strike of a neutral end",
      [...lost(1), ...lost(2), sent(3), judged(3, "neutral")],
      keys(),
      [2, "third"],
    ],
    [
      "keeps the strike of a lost start whose probe ended without a login [promise 4 neutral]",
      [1, 2, 3].flatMap((night) => [...lost(night), sent(night, keys(), true), judged(night, "neutral")]),
      keys("p", { isByHand: false }),
      [3, "unproven"],
    ],
    ["takes back what was not sent", [sent(1), judged(1, "not_sent")], keys(), [0, undefined]],
    ["is not sent a rejected password again", [sent(1), rejected(1)], keys(), [1, "rejected"]],
    ["is sent another password after one rejection", [sent(1), rejected(1)], keys("q"), [1, undefined]],
    [
      "is sent none after two rejected in a row [promise 4 accounts]",
      [sent(1), rejected(1), sent(2, keys("q")), rejected(2, keys("q"))],
      keys("r"),
      [2, "rejections"],
    ],
    [
      "is sent another one after two that were rejected with a good one in between",
      [
        sent(1),
        rejected(1),
        sent(2, keys("q")),
        judged(2, "good", keys("q")),
        sent(3, keys("r")),
        rejected(3, keys("r")),
      ],
      keys("s"),
      [1, undefined],
    ],
    [
      "adds up rejections and what nobody read",
      [sent(1), rejected(1), ...lost(2, keys("q")), ...lost(3, keys("q"))],
      keys("q"),
      [3, "unproven"],
    ],
    [
      "that is held gets one login with a password that a person changed",
      thrice,
      keys("new"),
      [3, undefined],
    ],
    [
      "and no second one [promise 4 unproven]",
      [...thrice, ...lost(4, keys("new"))],
      keys("newer"),
      [4, "unproven"],
    ],
    [
      "that is held gets none with a password that a command changed",
      thrice,
      keys("new", { isByHand: false }),
      [3, "unproven"],
    ],
    [
      "that is held gets none if a form calls another part of the same login its password [promise 4 renamed]",
      [1, 2, 3].flatMap((night) => lost(night, keys("p", { written: "w" }))),
      keys("q", { account: "B", identity: ["12X"], former: ["w"], written: "w" }),
      [3, "unproven"],
    ],
    [
      "is the same through a channel that locks more fields",
      thrice,
      keys("p", { account: "B", identity: ["ana", "phone"] }),
      [3, "unproven"],
    ],
    [
      "is another one for other values",
      thrice,
      keys("p", { account: "B", identity: ["eva"], former: [] }),
      [0, undefined],
    ],
    [
      "is free after a release",
      [...thrice, { _tag: "CredentialReleased", account: "A" }],
      keys(),
      [0, undefined],
    ],
    [
      "gets one login for a release of many, and keeps its strikes",
      [...thrice, oneMore],
      keys("p", { isByHand: false }),
      [3, undefined],
    ],
    ...(["not_sent", "neutral"] as const).flatMap((verdict) => [
      [
        `may have its password corrected again if that was ${verdict} [promise 4 unused correction]`,
        [...thrice, sent(4, keys("new")), judged(4, verdict, keys("new"))],
        keys("newer"),
        [3, undefined],
      ] as const,
      [
        `still has the login that a person allowed if that was ${verdict} [promise 4 unused release]`,
        [...thrice, oneMore, sent(4), judged(4, verdict)],
        keys("p", { isByHand: false }),
        [3, undefined],
      ] as const,
    ]),
    [
      "has used up a correction whose start was lost, although its probe created nothing",
      [...thrice, ...lost(4, keys("new")), sent(4, keys("new"), true), judged(4, "not_sent", keys("new"))],
      keys("newer"),
      [4, "unproven"],
    ],
    [
      "has used up a release whose start was lost, although its probe created nothing",
      [...thrice, oneMore, ...lost(4), sent(4, keys(), true), judged(4, "not_sent")],
      keys("p", { isByHand: false }),
      [4, "unproven"],
    ],
    [
      "is held again once that is sent",
      [...thrice, oneMore, ...lost(4)],
      keys("p", { isByHand: false }),
      [4, "unproven"],
    ],
  ])("%s", function* ([, facts, login, expected]) {
    const ledger = yield* Ledger
    for (const fact of facts) yield* ledger.append([fact])
    const accounts = yield* ledger.accountsOf(login)
    // Strikes after these facts, and what holds a login long after them.
    const hold = holdOf(accounts, login, { now: 100 * hour })
    expect([strikesOf(accounts), hold?.why]).toEqual(expected)
  })

  effect(
    "is busy while the run of a login would wait for it, and not for itself; a clock set back adds no time " +
      "[promise 3 account wait] [promise 6 tried again] [promise 4 away waits]",
    function* () {
      const ledger = yield* Ledger
      yield* ledger.append([sent(1)])
      const accounts = yield* ledger.accountsOf(keys())
      const at = (now: number, self = of(9)) => holdOf(accounts, keys(), { now, self })
      expect([at(0), at(hour - 1)?.why, at(hour), at(0, of(1)), at(-48 * hour)]).toEqual([
        { why: "busy", until: hour, isUnknown: false },
        "busy",
        undefined,
        undefined,
        { why: "busy", until: -47 * hour, isUnknown: false },
      ])
      yield* ledger.append([judged(1, "unproven")])
      const unknown = { why: "busy", until: hour, isUnknown: true }
      expect(holdOf(yield* ledger.accountsOf(keys()), keys(), { now: 0 })).toEqual(unknown)
      // A lost start is over with the execution of its probe: a temporary error is tried again at once.
      yield* ledger.append([sent(1, keys(), true), judged(1, "neutral")])
      expect(holdOf(yield* ledger.accountsOf(keys()), keys(), { now: 0 })).toBeUndefined()
      // Where the engine said that it was away, nobody waits; but it counts.
      yield* ledger.append([sent(2), judged(2, "away")])
      expect(holdOf(yield* ledger.accountsOf(keys()), keys(), { now: 0 })).toMatchObject({ why: "third" })
      // A ledger from before it was recorded: as long as the service lets an execution last.
      const { max_wait: _, ...untold } = sent(2, keys("q", { account: "B", identity: ["eva"] })) as Intent
      yield* ledger.append([untold])
      const other = keys("q", { account: "B", identity: ["eva"] })
      expect(holdOf(yield* ledger.accountsOf(other), other, { now: 0 })).toMatchObject({
        until: openLongestMs,
      })
    },
  )

  effect(
    "is busy until the end of an execution that is known to be open is read, and not much longer than one can " +
      "last [promise 3 account open]",
    function* () {
      const ledger = yield* Ledger
      const opened: Fact = aFact("StartAnswered", { ...of(1), execution_id: "e-1", account: "A" })
      yield* ledger.append([sent(1), opened])
      const at = (now: number) =>
        Effect.map(ledger.accountsOf(keys()), (accounts) => holdOf(accounts, keys(), { now }))
      const busy = { why: "busy", until: openLongestMs, isUnknown: false }
      expect(yield* Effect.forEach([0, hour, openLongestMs - 1, openLongestMs], at)).toEqual([
        busy,
        busy,
        busy,
        undefined,
      ])
      // Its service no longer knows it: then it counts as one that nobody knows.
      yield* ledger.append([judged(1, "unproven")])
      expect(yield* at(hour)).toBeUndefined()
      yield* ledger.append([sent(2), { ...opened, ...of(2) } as Fact, judged(2, "good")])
      expect(yield* at(0)).toBeUndefined()
      // Nobody is made to wait shorter than its own run would.
      yield* ledger.append([{ ...sent(3), max_wait: 9 * hour } as Fact, { ...opened, ...of(3) } as Fact])
      expect(yield* at(hour)).toMatchObject({ until: 9 * hour })
    },
  )

  effect(
    "is not sent a set of values again that was rejected, whatever the next form locks of it [promise 4 written]",
    function* () {
      const key = new Uint8Array(32)
      const values = { username: "ana", birth_date: "1980-01-01", password: "wrong" }
      const on = (locking: ReadonlyArray<string>, sent: Readonly<Record<string, string>> = values) => {
        const roles = { locking, selectors: new Set<string>(), secret: new Set(["password"]) }
        return accountKeys(key, { customer_id: "c-1", engine_reference }, { sent, roles, isByHand: true })
      }
      const ledger = yield* Ledger
      const login = on(["username"])
      const { former: _, ...fact } = rejected(1, login) as Fact & { former?: unknown }
      yield* ledger.append([{ ...fact, login: keptKeys(login) } as Fact])
      const why = (asked: AccountKeys) =>
        Effect.map(ledger.accountsOf(asked), (found) => holdOf(found, asked, { now: 100 * hour })?.why)
      const asked = [
        on(["username", "birth_date"]),
        on(["birth_date"]),
        on([]),
        on(["birth_date"], { ...values, password: "right" }),
      ]
      expect(yield* Effect.forEach(asked, why)).toEqual(["rejected", "rejected", "rejected", undefined])
    },
  )

  effect("keeps what was sent after a good login, whenever that is read [promise 4 late good]", function* () {
    const ledger = yield* Ledger
    const known = Effect.map(ledger.accountsOf(keys()), (accounts) =>
      accounts.map(({ sent: all, good }) => [all.map(({ at }) => at), good?.at]),
    )
    yield* ledger.append([...lost(1), ...lost(2)])
    yield* TestClock.adjust(hour)
    yield* ledger.append([...lost(3), sent(4, keys("q")), rejected(4, keys("q"))])
    yield* TestClock.adjust(hour)
    yield* ledger.append([judged(2, "good")])
    expect(yield* known).toEqual([[[hour], 0]])
    expect(strikesOf(yield* ledger.accountsOf(keys()))).toBe(2)
  })

  const ofCustomer = (customer: string, facts: ReadonlyArray<Fact>) =>
    facts.map((fact): Fact => ("customer_id" in fact ? { ...fact, customer_id: anId(customer) } : fact))
  const wide = keys("p", { account: "B", identity: ["ana", "phone"], former: [] })

  effect.each([
    [
      "keeps its strikes at a good login of another customer [promise 4 joined] [promise 4 joined good]",
      "c-2",
      "q",
      2,
    ],
    ["has none left after a good login of its customer", "c-1", "q", 0],
    ["has none left after a good login with the same password", "c-2", "p", 0],
  ] as const)("that a channel with other fields shares %s", function* ([, customer, password, strikes]) {
    const ledger = yield* Ledger
    yield* ledger.append([...lost(1), ...lost(2)])
    const other = { ...wide, password }
    yield* ledger.append([...ofCustomer(customer, [sent(3, other)]), judged(3, "good", other)])
    const accounts = yield* ledger.accountsOf(keys())
    // Whoever has just logged in is not held by what others sent before, unless it is the same password.
    const another = { ...wide, password: "another" }
    const counted = [keys(), another, { ...another, password: "p" }].map((login) =>
      strikesFor(accounts, login),
    )
    expect(counted).toEqual([strikes, 0, strikes])
  })

  effect(
    "is one with that of another field that was sent with it, to a later version as well [promise 4 fields kept][promise 4 fields good]",
    function* () {
      const ledger = yield* Ledger
      const document = keys("q", { account: "D", identity: ["document"], former: [] })
      const strikes = (login: AccountKeys) =>
        Effect.map(ledger.accountsOf(login), (accounts) => strikesFor(accounts, login))
      yield* ledger.append(lost(1))
      expect(yield* strikes(document)).toBe(0)
      yield* ledger.append(lost(2, keys("p", { plain: ["ana", "document"] })))
      yield* ledger.append(lost(3))
      expect(yield* strikes(document)).toBe(3)
      expect(new AccountBook(yield* ledger.accountsOf(keys())).of(document)).toHaveLength(1)
      // Nor is it somebody else's who sends one of the two values.
      expect(yield* strikes(keys("q", { account: "B", identity: ["bea"], plain: ["bea", "document"] }))).toBe(
        0,
      )
      yield* ledger.append([sent(4, document), judged(4, "good", document)])
      expect([yield* strikes(document), yield* strikes(keys())]).toEqual([0, 0])
      expect(yield* ledger.problems).toEqual([])
    },
  )

  effect(
    "counts what was lost on another channel with the same secret, after somebody's good login [promise 4 elsewhere counted]",
    function* () {
      const ledger = yield* Ledger
      const lostOnes = [1, 2].flatMap((night) => lost(night, keys("p", { secret: "s" })))
      const good = { ...wide, password: "q" }
      yield* ledger.append([...lostOnes, ...ofCustomer("c-2", [sent(3, good)]), judged(3, "good", good)])
      const accounts = yield* ledger.accountsOf(keys())
      const counted = ["s", "t"].map((secret) => strikesFor(accounts, { ...wide, password: "r", secret }))
      expect(counted).toEqual([2, 0])
    },
  )

  effect("keeps its strikes at a good login that only shares its row [promise 4 row good]", function* () {
    const ledger = yield* Ledger
    const ofRow = (password: string) =>
      keys(password, { account: password, identity: [password], row: "R", former: [] })
    const withRow = (night: number, login: AccountKeys) => ({
      ...sent(night, login),
      login: { account: login.account, identity: login.identity, password: login.password, row: "R" },
    })
    const refused = (night: number) => {
      const login = ofRow(`wrong-${night}`)
      return [withRow(night, login), rejected(night, login)] as ReadonlyArray<Fact>
    }
    const right = ofRow("right")
    const holds = (login: AccountKeys) =>
      Effect.map(ledger.accountsOf(login), (accounts) => [
        strikesOf(accounts.filter(({ account }) => account === login.account)),
        holdOf(accounts, login, { now: 100 * hour })?.why,
      ])
    const p = ofRow("p")
    yield* ledger.append([
      ...refused(1),
      withRow(2, p) as Fact,
      judged(2, "unproven", p),
      withRow(3, right) as Fact,
      judged(3, "good", right),
    ])
    expect(yield* holds(p)).toEqual([1, undefined])
    yield* TestClock.adjust(hour)
    // One rejection before the good login and one after it are not two in a row; two after it are.
    yield* ledger.append(refused(4))
    expect(yield* holds(ofRow("next"))).toEqual([0, undefined])
    yield* ledger.append(refused(5))
    expect(yield* holds(ofRow("next"))).toEqual([0, "rejections"])
  })
})

describe("the ledger of a version that knew no accounts", () => {
  const key = new Uint8Array(32)
  const sentTo = (username: string) => ({ username, password: "p" })
  /** A refused login on one channel of source a, and a lost start on one of source b whose run has not ended. */
  const older = Effect.fnUntraced(function* (path: string, ...more: ReadonlyArray<Fact>) {
    const database = openLedger({ path })
    const { run_id } = of(1)
    const task = (name: string, engine: string, username: string) => ({
      ids: { run_id, task_id: anId(name) },
      access: { customer_id: anId(name), engine_reference: anId(engine) },
      fingerprint: fingerprintLogin(key, engine, sentTo(username)),
    })
    const refused = task("c-1", "a:website", "ana")
    const lostOne = task("c-2", "b:website", "eva")
    const planned = [refused, lostOne].map(({ ids, access }) => ({ ...ids, ...access, features: [] }))
    yield* Effect.provide(
      Effect.flatMap(Ledger, (ledger) =>
        ledger.append([
          runStarted(run_id),
          ...planned.map((one) => ({ _tag: "TaskPlanned" as const, ...one })),
          aFact("CredentialRejected", {
            ...refused.ids,
            ...refused.access,
            fingerprint: refused.fingerprint,
            reason: "INCORRECT_CREDENTIALS",
          }),
          aFact("StartIntended", { ...lostOne.ids, fingerprint: lostOne.fingerprint }),
          ...more,
        ]),
      ),
      Ledger.layerOver(database),
    )
    database.exec("DROP TABLE accounts; DROP TABLE account_names; PRAGMA user_version = 2")
    database.close()
  })

  effect(
    "counts a lost start whatever became of its probe, and none that certainly made no login",
    function* () {
      const attempt = { run_id: of(1).run_id, task_id: anId("c-2"), attempt: 1 }
      const answer = (is: Extract<Fact, { _tag: "StartAnswered" }>["answer"]): Fact =>
        aFact("StartAnswered", { ...attempt, answer: is })
      const probe: Fact = aFact("StartIntended", {
        ...attempt,
        fingerprint: fingerprintLogin(key, "b:website", sentTo("eva")),
        probe: true,
      })
      const cases: ReadonlyArray<readonly [number, ...ReadonlyArray<Fact>]> = [
        [1],
        [1, answer("lost")],
        [1, answer("taken")],
        [1, answer("unusable")],
        [1, answer("lost"), probe],
        [1, answer("lost"), probe, answer("not_created")],
        [1, probe, answer("foreign")],
        // An answer to a probe that was held back: nothing was sent.
        [1, answer("lost"), answer("not_created")],
        [0, answer("not_created")],
        [0, answer("accepted")],
        [0, answer("lost"), probe, answer("adopted")],
      ]
      for (const [strikes, ...more] of cases) {
        const path = join(yield* folder, "ledger.sqlite")
        yield* older(path, ...more)
        const all = yield* Effect.provide(
          Effect.flatMap(Ledger, (ledger) => ledger.accounts),
          Ledger.layer({ path }),
        )
        expect({ more, strikes: all.reduce((sum, { sent: own }) => sum + own.length, 0) }).toEqual({
          more,
          strikes,
        })
      }
    },
  )

  effect("counts for every channel of the source, whoever uses the login", function* () {
    const path = join(yield* folder, "ledger.sqlite")
    yield* older(path)
    const all = yield* Effect.provide(
      Effect.flatMap(Ledger, (ledger) => ledger.accounts),
      Ledger.layer({ path }),
    )
    const book = new AccountBook(all)
    const seen = (engine_reference: string, username: string) => {
      const place = { customer_id: "c-9", engine_reference }
      const roles = { locking: ["username"], selectors: new Set<string>(), secret: new Set(["password"]) }
      const login = { sent: sentTo(username), roles, isByHand: true }
      const found = accountKeys(key, place, login, book.formerEngines(engine_reference))
      const accounts = book.of(found)
      return [strikesOf(accounts), holdOf(accounts, found, { now: 100 * hour })?.why]
    }
    const channels = ["a:website", "a:mobile", "b:website", "b:mobile", "c:website"]
    expect(channels.map((engine) => [engine, ...seen(engine, "ana"), ...seen(engine, "eva")])).toEqual([
      ["a:website", 1, "rejected", 0, undefined],
      ["a:mobile", 1, "rejected", 0, undefined],
      ["b:website", 0, undefined, 1, undefined],
      ["b:mobile", 0, undefined, 1, undefined],
      ["c:website", 0, undefined, 0, undefined],
    ])
  })
})
