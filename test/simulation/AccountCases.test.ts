/**
 * What the sources see in the cases by which the rule about accounts was decided: given → logins (`L`), and whether
 * the account is held at the end. Of a night everything is real but the service, which answers as the case says. Where
 * a case speaks of 30 nights, five tell the same; 5,000 accounts are 45 here.
 */
import { Duration } from "effect"
import { describe, expect, it } from "vitest"
import { hour, nightMs, runAccountNights } from "./AccountNights.ts"
import type { Accident, AccountsOutcome, AccountsPlan, Use } from "./AccountNights.ts"
import { complaintsOf, useKey } from "./AccountsJudge.ts"
import { calm } from "./FaultyNetwork.ts"
import { accountOf, type Storm } from "./HostileService.ts"

const minute = 60_000
const account = "es-a/ana"
const website = "es-a:website"
const right = () => "right-password"
const wrong = () => "wrong-password"

const channels = ["es-a:website", "es-a:mobile", "es-b:website"].map((reference) => ({
  reference,
  fields: ["username", "password"],
  locking: ["username"],
}))

const use = (more: Partial<Use> = {}): Use => ({
  job: 0,
  customer: "c-ana",
  engine: website,
  username: "ana",
  password: right,
  ...more,
})
/** Customers with whom nothing is wrong. */
const others = (count: number, engine = website): ReadonlyArray<Use> =>
  Array.from({ length: count }, (_, index) =>
    use({ customer: `c-${index}`, username: `other${index}`, engine }),
  )
const withOthers: ReadonlyArray<Use> = [use(), ...others(2)]

const always = { fromMs: 0, untilMs: Infinity }
const inNight = (night: number) => ({ fromMs: nightMs(night), untilMs: nightMs(night + 1) })
const storm = (answer: Storm["answer"], more: Partial<Storm> = {}): Storm => ({
  engines: channels.map(({ reference }) => reference),
  accounts: [account],
  ...always,
  rate: 1,
  answer,
  made: true,
  page: "available",
  ...more,
})
const lost = (night: number, nthStart: number): Accident => ({ night, nthStart, what: "answer lost" })

/** Executions that are over before anybody can ask for them, and those that go on for a while. */
const short = () => [0, 100] as const
const long = () => [1_000, 2 * minute] as const

const nightly = (nights: number): AccountsPlan["commands"] =>
  Array.from({ length: nights }, (_, night) => ({ night, jobs: [0] }))

const played = (nights: number, more: Partial<AccountsPlan>): AccountsOutcome =>
  runAccountNights({
    seed: 1,
    nights,
    channels,
    uses: withOthers,
    rightPassword: right,
    storms: [],
    commands: nightly(nights),
    accidents: [],
    rates: () => calm,
    job: {
      concurrency: { max_in_flight: 20, per_engine: 10 },
      after_export: "keep",
      night: undefined,
      deadline: undefined,
      retry: { max_attempts: 3, base: Duration.seconds(30), max: Duration.minutes(15) },
      maxWaitMs: 3.5 * hour,
    },
    lengths: short,
    ...more,
  })

const loginsOf = ({ logins }: AccountsOutcome, of = account) => logins.filter((login) => login.account === of)

/** How the tasks of an account ended, in the order of the runs. */
const endsOf = ({ plan, ends }: AccountsOutcome, of = account): ReadonlyArray<string> => {
  const keys = new Set(
    plan.uses.filter(({ engine, username }) => accountOf(engine, username) === of).map(useKey),
  )
  return ends
    .filter((end) => keys.has(useKey(end)))
    .map(({ outcome, reason }) => (outcome === "succeeded" ? outcome : reason))
}

/** What a case asks: the logins at the source, whether the account is held at the end, and what else is wrong. */
const seen = (outcome: AccountsOutcome) => ({
  L: loginsOf(outcome).length,
  held: endsOf(outcome).at(-1) === "LOGIN_UNPROVEN",
  complaints: complaintsOf(outcome).map(({ what }) => what),
})
const thrice = { L: 3, held: true, complaints: [] }
const fine = (L: number) => ({ L, held: false, complaints: [] })

interface Row {
  readonly title: string
  readonly nights: number
  readonly given: Partial<AccountsPlan>
  readonly expected: {
    readonly L: number
    readonly held: boolean
    readonly complaints: ReadonlyArray<string>
  }
  readonly ends?: ReadonlyArray<string>
}
const heldFromThird = Array<string>(4).fill("LOGIN_UNPROVEN")

const fourCustomers = (password: () => string): ReadonlyArray<Use> =>
  [1, 2, 3, 4].flatMap((number) =>
    ["es-a:website", "es-a:mobile"].map((engine) => use({ customer: `c-ana-${number}`, engine, password })),
  )
/** Another job logs in with the token that the first one asked for, and for a second customer without it. */
const byToken: Partial<AccountsPlan> = {
  uses: [
    use({ tokenized: true }),
    use({ job: 1, isByToken: true }),
    use({ job: 1, customer: "c-two", engine: "es-a:mobile" }),
    ...others(2).map((other) => ({ ...other, job: 1 })),
  ],
  commands: [0, 1, 2, 3].flatMap((night) =>
    [0, 1].map((job) => ({ night, jobs: [job], afterMs: job * hour })),
  ),
}

const rows: ReadonlyArray<Row> = [
  {
    title:
      "1 every answer lost, while others pass: three logins, then held, as the third run says [promise 4 third]",
    nights: 5,
    given: { storms: [storm("lost: reset")] },
    expected: thrice,
    ends: ["START_UNKNOWN", ...heldFromThird],
  },
  {
    title: "3 503 while the page says available: three logins, then held",
    nights: 5,
    given: { storms: [storm("503")] },
    expected: thrice,
    ends: ["ENGINE_UNAVAILABLE", ...heldFromThird],
  },
  {
    title: "8 202 with an id and INCORRECT_CREDENTIALS: one login for ever",
    nights: 5,
    given: { uses: [use({ password: wrong }), ...others(2)], storms: [storm("accepted and refused")] },
    expected: fine(1),
  },
  {
    title:
      "8 400 INCORRECT_CREDENTIALS: over at once, and the right password is sent [promise 4 refused answer]",
    nights: 1,
    given: {
      uses: [use({ password: wrong }), use({ job: 1, engine: "es-a:mobile" })],
      commands: [{ night: 0, jobs: [0, 1] }],
      storms: [storm("incorrect credentials", { engines: [website] })],
      lengths: () => [20_000, minute],
    },
    expected: fine(2),
    ends: ["INCORRECT_CREDENTIALS", "succeeded"],
  },
  {
    title: "15 accepted, then 404 for ever: three logins, then held",
    nights: 5,
    given: { storms: [storm("never found")] },
    expected: thrice,
    ends: ["EXECUTION_GONE", "EXECUTION_GONE", ...heldFromThird.slice(1)],
  },
  {
    title: "20 four customers on two channels with one wrong login: one login",
    nights: 3,
    given: { uses: fourCustomers(wrong) },
    expected: fine(1),
  },
  {
    title: "21 four customers on two channels with one good login: all are read, never two at once",
    nights: 2,
    given: { uses: fourCustomers(right), lengths: long },
    expected: fine(16),
  },
  {
    title: "23 a wrong and the right password for one username: one refusal, and one good login a night",
    nights: 5,
    given: { uses: [use({ password: wrong }), use({ customer: "c-ana-2", username: "Ana" })] },
    expected: fine(6),
  },
  {
    title: "26 another password every night, every answer lost: three logins",
    nights: 5,
    given: {
      uses: [use({ password: (night) => `password-${night}` }), ...others(2)],
      storms: [storm("lost: reset")],
      rightPassword: (of, night) => (of === account ? `password-${night}` : right()),
    },
    expected: thrice,
  },
  {
    title: "29 a token whose logins are always lost: the good one that made it, and three",
    nights: 5,
    given: {
      uses: [use({ tokenized: true }), ...others(2)],
      storms: [storm("lost: reset", { fromMs: nightMs(1) })],
    },
    expected: { L: 4, held: true, complaints: [] },
  },
  {
    title:
      "30 a token refused on one channel: the parameters that made it are sent to no other [promise 4 token]",
    nights: 4,
    given: {
      uses: [use({ tokenized: true }), use({ engine: "es-a:mobile", fromNight: 2 })],
      rightPassword: (_, night) => (night < 1 ? right() : "changed"),
    },
    expected: fine(2),
  },
  {
    title: "30 parameters refused on one channel: nor is the token that was made with them on another",
    nights: 4,
    given: {
      uses: [use({ job: 1, tokenized: true }), use({ engine: "es-a:mobile" })],
      commands: [
        { night: 0, jobs: [1] },
        ...[1, 2, 3].flatMap((night) => [0, 1].map((job) => ({ night, jobs: [job], afterMs: job * hour }))),
      ],
      rightPassword: (_, night) => (night < 1 ? right() : "changed"),
    },
    expected: fine(2),
  },
  {
    title: "32 a token that a job names beside its parameters elsewhere: never two at once [promise 3 token]",
    nights: 4,
    given: { ...byToken, lengths: long },
    expected: fine(12),
  },
  {
    title: "32 the same, always lost: the good ones of the first night, and three",
    nights: 4,
    given: { ...byToken, storms: [storm("lost: reset", { fromMs: nightMs(1) })] },
    expected: { L: 6, held: true, complaints: [] },
  },
]

describe("the sources see", () => {
  it.each(rows.map((row) => [row.title, row] as const))("%s", (_, { nights, given, expected, ends }) => {
    const outcome = played(nights, given)
    expect({ ...seen(outcome), ends: ends && endsOf(outcome) }).toEqual({ ...expected, ends })
  })

  it("4 dozens of starts at most, and no login, in three hours of a maintenance that says so", () => {
    const span = { fromMs: nightMs(0), untilMs: nightMs(0) + 3 * hour }
    const outcome = played(1, {
      uses: [...others(5), ...others(1, "es-b:website")],
      storms: [
        storm("503", { ...span, engines: [website], accounts: undefined, made: false, page: "detail" }),
      ],
    })
    const ofEngine = outcome.starts.filter(({ engine }) => engine === website)
    expect(ofEngine.filter(({ at }) => at < span.untilMs).length).toBeLessThanOrEqual(36)
    expect(
      outcome.logins.filter(({ at, account: of }) => of.startsWith("es-a") && at < span.untilMs),
    ).toEqual([])
    expect(allEndsOf(outcome)).toEqual(Array.from({ length: 6 }, () => "succeeded"))
  })

  it.each([
    { page: "detail", starts: 0, each: 0, ends: "succeeded" },
    { page: "once tried", starts: 9, each: 3, ends: "LOGIN_UNPROVEN" },
  ] as const)(
    "5 $starts starts of three accounts in a week of 503s that logged in, where the page says `$page` [promise 4 away]",
    ({ page, starts, each, ends }) => {
      const week = { fromMs: nightMs(0) - hour, untilMs: nightMs(7) - hour }
      const outcome = played(8, { storms: [storm("503", { ...week, accounts: undefined, page })] })
      const before = outcome.starts.filter(({ at }) => at < week.untilMs)
      const counts = outcome.plan.uses.map(({ customer }) =>
        before.filter((one) => one.customer === customer),
      )
      expect([before.length, ...counts.map(({ length }) => length)]).toEqual([starts, each, each, each])
      expect(outcome.plan.uses.map(({ username }) => endsOf(outcome, `es-a/${username}`).at(-1))).toEqual(
        outcome.plan.uses.map(() => ends),
      )
      expect(complaintsOf(outcome)).toEqual([])
    },
  )

  it("a third login follows others that passed also where `max_wait` is under a minute [promise 4 third wait]", () => {
    const { job } = played(0, {}).plan
    const outcome = played(2, {
      job: { ...job, maxWaitMs: 30_000 },
      storms: [storm("lost: reset", inNight(0))],
    })
    expect(endsOf(outcome)).toEqual(["START_UNKNOWN", "succeeded"])
    expect(seen(outcome)).toEqual(fine(3))
  })

  it("a third login that a night declined is not sent by a part of it, where the rest is not seen [promise 4 lead]", () => {
    const lostFor = (night: number, accounts?: ReadonlyArray<string>) =>
      storm("lost: reset", { ...inNight(night), accounts })
    const outcome = played(3, {
      storms: [lostFor(0, [account]), lostFor(1)],
      commands: [
        { night: 0, jobs: [0] },
        { night: 1, afterMs: 0, jobs: [0] },
        { night: 1, afterMs: 5 * hour, jobs: [0], customers: ["c-ana"] },
        { night: 2, jobs: [0] },
      ],
    })
    expect(endsOf(outcome)).toEqual(["START_UNKNOWN", "START_UNKNOWN", "START_UNKNOWN", "succeeded"])
    expect(seen(outcome)).toEqual(fine(3))
  })

  it("13 one login while the execution of a lost start may be open, also by a rerun at once", () => {
    const outcome = played(1, {
      uses: [use()],
      lengths: () => [1_000, 20 * minute],
      accidents: [lost(0, 1), lost(0, 2)],
      commands: [
        { night: 0, jobs: [0] },
        { night: 0, jobs: [0], isRerun: true },
      ],
    })
    const first = loginsOf(outcome)[0]?.execution.acceptedAt ?? Number.NaN
    const { maxWaitMs } = outcome.plan.job
    expect(loginsOf(outcome).filter(({ at }) => at < first + maxWaitMs)).toHaveLength(1)
    expect(seen(outcome).complaints).toEqual([])
  })

  it("31 everybody read the night after an outage that lost every start, nobody held [promise 4 outage]", () => {
    const outage = storm("408", { accounts: undefined, ...inNight(0) } as Partial<Storm>)
    const outcome = played(3, { storms: [outage], rates: () => calm })
    expect(outcome.plan.uses.map(({ username }) => endsOf(outcome, `es-a/${username}`))).toEqual(
      outcome.plan.uses.map(() => ["START_UNKNOWN", "succeeded", "succeeded"]),
    )
    expect(complaintsOf(outcome)).toEqual([])
  })

  it("32 an account read again after a lost night, beside one that is held for good", () => {
    const uses = [use(), use({ customer: "c-bea", username: "bea", password: wrong })]
    const outcome = played(4, { uses, storms: [storm("408", inNight(1))] })
    expect(endsOf(outcome)).toEqual(["succeeded", "START_UNKNOWN", "succeeded", "succeeded"])
    expect(endsOf(outcome, "es-a/bea")).toEqual(Array(4).fill("INCORRECT_CREDENTIALS"))
    expect(complaintsOf(outcome)).toEqual([])
  })

  it("33 one of two accounts tried in each night of an outage, and the other one left", () => {
    const outage = storm("408", {
      accounts: undefined,
      fromMs: nightMs(0),
      untilMs: nightMs(2),
    } as Partial<Storm>)
    const uses = [use(), use({ customer: "c-bea", username: "bea" })]
    const outcome = played(4, { uses, storms: [outage] })
    const ends = [endsOf(outcome), endsOf(outcome, "es-a/bea")].toSorted((one, other) =>
      one.join() < other.join() ? -1 : 1,
    )
    expect(ends).toEqual([
      ["START_UNKNOWN", "LOGIN_UNPROVEN", "LOGIN_UNPROVEN", "LOGIN_UNPROVEN"],
      ["START_UNKNOWN", "START_UNKNOWN", "succeeded", "succeeded"],
    ])
    expect(complaintsOf(outcome)).toEqual([])
  })

  it("22 two refusals of three wrong passwords for one username in three spellings, and no third", () => {
    const outcome = played(3, {
      uses: ["Ana", "ana ", "ANA"].map((username, index) =>
        use({ username, customer: `c-${index}`, password: () => `wrong-password-${index}` }),
      ),
    })
    expect(loginsOf(outcome).map(({ verdict }) => verdict)).toEqual(["refused", "refused"])
    expect(complaintsOf(outcome)).toEqual([])
  })

  it("22 two refusals where two channels lock different fields of one user [promise 4 fields]", () => {
    const outcome = played(5, {
      channels: [
        { reference: website, fields: ["username", "document", "password"], locking: ["username"] },
        { reference: "es-a:mobile", fields: ["login", "id", "secret"], locking: ["id"] },
      ],
      uses: [website, "es-a:mobile"].map((engine) =>
        use({ engine, password: (night) => `wrong-password-${night}` }),
      ),
    })
    expect(loginsOf(outcome).map(({ verdict }) => verdict)).toEqual(["refused", "refused"])
    expect(complaintsOf(outcome)).toEqual([])
  })

  it("22 one refusal, or three lost logins, of one password on channels that ask for other fields [promise 4 elsewhere][promise 4 elsewhere third][promise 4 elsewhere good]", () => {
    const more = [
      { reference: website, fields: ["username", "document", "password"], locking: ["username"] },
      { reference: "es-a:mobile", fields: ["login", "secret"], locking: ["login"] },
    ]
    const on = (password: () => string) => [website, "es-a:mobile"].map((engine) => use({ engine, password }))
    const refused = played(4, { channels: more, uses: [...on(wrong), ...others(2)] })
    expect(seen(refused)).toEqual(fine(1))
    const unproven = played(6, {
      channels: more,
      uses: [
        use(),
        use({ engine: "es-a:mobile", fromNight: 3 }),
        ...others(2),
        ...others(2, "es-a:mobile").map((one) => ({
          ...one,
          customer: `${one.customer}-2`,
          username: one.customer,
        })),
      ],
      storms: [storm("lost: reset")],
    })
    expect(seen(unproven)).toEqual(thrice)
    // A good login of another customer on the one channel ends what was lost on the other.
    const later = played(3, {
      channels: [
        ...more.slice(0, 1),
        { reference: "es-a:mobile", fields: ["login", "id", "secret"], locking: ["id"] },
      ],
      uses: [
        ...on(right).map((one, job) => ({ ...one, job, customer: `c-ana-${job}` })),
        ...others(2).map((one) => ({ ...one, job: 0 })),
      ],
      commands: [0, 1, 0].map((job, night) => ({ night, jobs: [job] })),
      storms: [storm("lost: reset", { engines: [website] })],
    })
    expect(endsOf(later)).toEqual(["START_UNKNOWN", "succeeded", "START_UNKNOWN"])
    expect(seen(later).complaints).toEqual([])
  })

  it("25 two refusals of a password that is wrong anew each night, where no field is locking", () => {
    const outcome = played(6, {
      channels: channels.map((channel) => ({ ...channel, locking: [] })),
      uses: [use({ password: (night) => `wrong-password-${night}` }), ...others(2)],
    })
    expect(loginsOf(outcome).map(({ verdict }) => verdict)).toEqual(["refused", "refused"])
  })

  it.each([2, -2])("30 three logins, with a clock that is %s days wrong in the second night", (days) => {
    const commands = nightly(6).map((one) => (one.night === 1 ? { ...one, offsetMs: days * 24 * hour } : one))
    const outcome = played(6, { commands, storms: [storm("lost: reset")] })
    expect(loginsOf(outcome)).toHaveLength(3)
  })
})

const allEndsOf = (outcome: AccountsOutcome): ReadonlyArray<string> =>
  outcome.plan.uses.flatMap(({ engine, username }) => endsOf(outcome, accountOf(engine, username)))
