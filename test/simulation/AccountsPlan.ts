/**
 * Thirty nights drawn from a seed: sources and channels, accounts that customers, channels and jobs share in
 * several spellings, passwords that are wrong, change or come encrypted, and every way in which starts go
 * wrong. The last nights are calm, so that whoever is held by then can be seen.
 */
import { Duration } from "effect"
import { calm, type FaultRates } from "./FaultyNetwork.ts"
import { hour, nightMs, type AccountsPlan, type Command, type Accident, type Use } from "./AccountNights.ts"
import { accountOf, type Channel, type Page, type Storm } from "./HostileService.ts"
import { seeded } from "./NightPlan.ts"
import { pick } from "./SimulatedJob.ts"
import { startAnswers, type StartAnswerName } from "./StartAnswers.ts"

type Random = () => number
const minute = 60_000
const calmNightsOf = (nights: number): number => (nights < 20 ? 2 : 3)
const alternatives = ["website", "mobile", "api"]

interface Source {
  readonly code: string
  readonly channels: ReadonlyArray<Channel>
  /** A channel of it names no locking field: an account is all of its parameters there. */
  readonly isUnlocked: boolean
}

const channelOf = (reference: string, style: number, index: number): Channel => {
  const usual = { reference, fields: ["username", "password"], locking: ["username"] }
  if (style < 0.5) return usual
  if (style < 0.6) return { reference, fields: ["user", "pin"], locking: ["user"] }
  if (style < 0.8)
    return index === 0
      ? { reference, fields: ["username", "document", "password"], locking: ["username", "document"] }
      : { ...usual, fields: ["login", "secret"], locking: ["login"] }
  return style < 0.9 || index === 0 ? { ...usual, locking: [] } : usual
}

/** Its channels ask for the same values, and each locks another of them. */
const lockingOthers = ({ reference }: Channel, index: number): Channel =>
  index === 0
    ? { reference, fields: ["username", "document", "password"], locking: ["username"] }
    : { reference, fields: ["login", "id", "secret"], locking: ["id"] }

const drawSource = (random: Random, place: number): Source => {
  const code = `es-${"abc"[place]}`
  const style = random()
  const channels = alternatives
    .slice(0, 1 + Math.floor(random() * 3))
    .map((alternative, index) => channelOf(`${code}:${alternative}`, style, index))
  return { code, channels, isUnlocked: channels.some(({ locking }) => locking.length === 0) }
}

const spelled = (random: Random, name: string): string =>
  pick(random, [name, name, name, `${name} `, name.toUpperCase(), name.toLowerCase()])

/** What the source takes, and what the job sends for it, in each night. */
interface Passwords {
  readonly right: (night: number) => string
  readonly sent: (random: Random) => (night: number) => string
}

const passwordsOf = (random: Random, name: string, isUnlocked: boolean): Passwords => {
  const kind = random()
  const constant = () => `right-${name}`
  const wrong = (number: number) => () => `wrong-${number}-${name}`
  if (isUnlocked) {
    const sent = kind < 0.15 ? wrong(1) : constant
    return { right: constant, sent: () => sent }
  }
  if (kind < 0.1) {
    const right = (night: number) => `right-${name}-${night}`
    return { right, sent: () => right }
  }
  if (kind < 0.2) {
    const changed = 2 + Math.floor(random() * 20)
    const late = changed + Math.floor(random() * 3)
    const right = (night: number) => (night < changed ? `old-${name}` : `new-${name}`)
    return { right, sent: () => (night) => (night < late ? `old-${name}` : `new-${name}`) }
  }
  if (kind < 0.26) {
    const corrected = 1 + Math.floor(random() * 15)
    return { right: constant, sent: () => (night) => (night < corrected ? wrong(1)() : constant()) }
  }
  return {
    right: constant,
    sent: (drawn) => (drawn() < 0.88 ? constant : wrong(1 + Math.floor(drawn() * 3))),
  }
}

const usesOf = (
  random: Random,
  source: Source,
  name: string,
  jobs: number,
): { readonly uses: ReadonlyArray<Use>; readonly right: (night: number) => string } => {
  const { right, sent } = passwordsOf(random, name, source.isUnlocked)
  const shares = random()
  const count = shares < 0.6 ? 1 : shares < 0.85 ? 2 : 3 + Math.floor(random() * 2)
  const encryption = source.isUnlocked ? 1 : random()
  const uses = Array.from({ length: count }, (_, index): Use => {
    const { reference } = pick(random, source.channels)
    return {
      job: Math.floor(random() * jobs),
      // Some customers use the login on several channels, or in several jobs.
      customer: random() < 0.3 ? `c-${name}` : `c-${name}-${index}`,
      engine: reference,
      username: spelled(random, name),
      password: sent(random),
      ...(encryption < 0.08 ? { encrypted: "password" as const } : {}),
      ...(encryption > 0.08 && encryption < 0.11 && count === 1 ? { encrypted: "all" as const } : {}),
    }
  })
  const keyOf = ({ job, customer, engine }: Use) => `${job} ${customer} ${engine}`
  return { uses: [...new Map(uses.map((use) => [keyOf(use), use])).values()], right }
}

const names = Object.keys(startAnswers) as ReadonlyArray<StartAnswerName>
/** What a whole engine does when it is down; the others concern single logins. */
const ofOutages = names.filter((name) => startAnswers[name].login !== "is" || name === "id too long")
const lasting = [10 * minute, 40 * minute, hour, 3 * hour, 12 * hour]

/** Pages that say that nothing was sent are not drawn with a login behind them: nobody could know. */
const pageOf = (random: Random, answer: StartAnswerName) => {
  const isAway = answer === "503"
  const page: Page = isAway
    ? pick(random, ["available", "detail", "offline", "gateway", "silent"])
    : "available"
  const listAway = isAway && random() < 0.2
  const mayMake = !(isAway && !listAway && (page === "detail" || page === "offline"))
  return { page, made: mayMake && random() < 0.6, ...(listAway ? { listAway } : {}) }
}

const drawStorm = (
  random: Random,
  { sources, accounts, nights }: Pick<World, "sources" | "accounts" | "nights">,
): ReadonlyArray<Storm> => {
  const last = nights - calmNightsOf(nights)
  const first = Math.floor(random() * last)
  const kind = random()
  const source = pick(random, sources)
  const channels = source.channels.map(({ reference }) => reference)
  if (kind < 0.45) {
    const answer = pick(random, ofOutages)
    const engines =
      random() < 0.4
        ? [pick(random, channels)]
        : random() < 0.7
          ? channels
          : sources.flatMap((one) => one.channels.map(({ reference }) => reference))
    const from = Math.floor((random() ** 2 - 0.1) * 40 * minute)
    const length = pick(random, lasting)
    const page = pageOf(random, answer)
    const inARow = Math.min(last - first, random() < 0.5 ? 1 : 1 + Math.floor(random() * 5))
    return Array.from({ length: inARow }, (_, further) => {
      const fromMs = nightMs(first + further) + from
      return { engines, fromMs, untilMs: fromMs + length, rate: 1, answer, ...page }
    })
  }
  const until = Math.min(last, first + 1 + Math.floor(random() ** 2 * 12))
  const span = { fromMs: nightMs(first) - hour, untilMs: nightMs(until) - hour, page: "available" as const }
  const made = random() < 0.6
  if (kind < 0.85) {
    const answer = pick(random, names)
    const rate = random() < 0.6 ? 1 : 0.3 + random() * 0.5
    return [{ engines: channels, accounts: [pick(random, accounts)], ...span, rate, answer, made }]
  }
  const answer = pick(random, ofOutages)
  return [{ engines: channels, ...span, rate: 0.05 + random() * 0.2, answer, made }]
}

interface World {
  readonly sources: ReadonlyArray<Source>
  readonly accounts: ReadonlyArray<string>
  readonly nights: number
  readonly jobs: number
}

const drawCommands = (
  random: Random,
  { nights, jobs }: World,
  uses: ReadonlyArray<Use>,
): ReadonlyArray<Command> => {
  const all = Array.from({ length: jobs }, (_, job) => job)
  const together = random() < 0.6
  return Array.from({ length: nights }, (_, night): ReadonlyArray<Command> => {
    const runs = together
      ? [{ night, afterMs: 0, jobs: all }]
      : all.map((job): Command => ({ night, afterMs: job === 0 ? 0 : job * 20 * minute, jobs: [job] }))
    const again = night < nights - calmNightsOf(nights) ? random() : 1
    const rerun = { night, jobs: all, isRerun: true } as const
    if (again < 0.12) return [...runs, rerun]
    if (again < 0.18) return [...runs, { ...rerun, afterMs: 8 * hour }]
    const customers = uses
      .slice(night % uses.length)
      .slice(0, 1)
      .map(({ customer }) => customer)
    return again < 0.3 ? [...runs, { night, jobs: all, customers, afterMs: 5 * hour }] : runs
  }).flat()
}

const happenings = [
  "killed before the answer",
  "killed before the answer",
  "killed before it leaves",
  "answer lost",
] as const

const drawAccidents = (random: Random, nights: number): ReadonlyArray<Accident> =>
  Array.from({ length: Math.floor(random() ** 2 * 6) }, () => ({
    night: Math.floor(random() * (nights - calmNightsOf(nights))),
    nthStart: 1 + Math.floor(random() ** 2 * 8),
    what: pick(random, happenings),
    ...(random() < 0.7 ? { awayMs: Math.floor(random() ** 2 * 40 * minute) } : {}),
  }))

const noise = (random: Random): FaultRates => {
  const rate = () => random() ** 2 * 0.04
  return {
    ...calm,
    refused: rate(),
    lostBefore: rate(),
    lostAfter: rate(),
    throttled: rate(),
    unavailable: rate(),
    errorBefore: rate(),
    errorAfter: rate(),
  }
}

/** Executions are short: what matters happens at their beginnings. */
const lengths = (random: Random) =>
  random() < 0.3
    ? ([0, Math.floor(random() * 500)] as const)
    : ([Math.floor(random() ** 2 * 60_000), 500 + Math.floor(random() ** 2 * 90_000)] as const)

export const planAccounts = (seed: number, nights = 30): AccountsPlan => {
  const random = seeded(seed ^ 0x1f123bb5)
  const drawn = Array.from({ length: 1 + Math.floor(random() ** 2 * 3) }, (_, place) =>
    drawSource(random, place),
  )
  const sources =
    seed % 30 === 29
      ? drawn.map((one) => ({ ...one, channels: one.channels.map(lockingOthers), isUnlocked: false }))
      : drawn
  const jobs = random() < 0.5 ? 1 : 2 + Math.floor(random() * 2)
  // From numbers of their own.
  const byToken = seeded(seed ^ 0x70ce45)
  const tokenized = byToken() < 0.3 ? byToken() : 0
  const count = seed % 25 === 0 ? 25 + Math.floor(random() * 16) : 3 + Math.floor(random() ** 2 * 8)
  const right = new Map<string, (night: number) => string>()
  const uses = Array.from({ length: count }, (_, number) => {
    const drawn = usesOf(random, pick(random, sources), `Ana${number}`, jobs)
    for (const { engine, username } of drawn.uses) right.set(accountOf(engine, username), drawn.right)
    return drawn.uses.map((use): Use => (byToken() < tokenized ? { ...use, tokenized: true } : use))
  }).flat()
  const world: World = { sources, accounts: [...right.keys()], nights, jobs }
  const storms = Array.from({ length: 2 + Math.floor(random() * 10) }, () => drawStorm(random, world)).flat()
  const noisy = random() < 0.5 ? calm : noise(random)
  const isNoisy = Array.from(
    { length: nights },
    (_, night) => night < nights - calmNightsOf(nights) && random() < 0.3,
  )
  return {
    seed,
    nights,
    channels: sources.flatMap(({ channels }) => channels),
    uses,
    rightPassword: (account, night) => right.get(account)?.(night) ?? "",
    storms,
    commands: drawCommands(random, world, uses),
    accidents: random() < 0.5 ? [] : drawAccidents(random, nights),
    rates: (night) => (isNoisy[night] === true ? noisy : calm),
    job: {
      concurrency: { max_in_flight: pick(random, [5, 20, 100]), per_engine: pick(random, [3, 20]) },
      after_export: random() < 0.3 ? "delete" : "keep",
      night: random() < 0.3 ? { starts: "21:00", until: "07:00" } : undefined,
      deadline: random() < 0.3 ? "07:00" : undefined,
      retry: { max_attempts: 3, base: Duration.seconds(30), max: Duration.minutes(15) },
      maxWaitMs: pick(random, [hour, 2 * hour, 3.5 * hour]),
    },
    lengths,
  }
}
