/**
 * What must hold after nights of shared accounts (promises 3 and 4), judged by what the sources saw and what
 * left by the door. Of the ledger it takes only which ends were read and how each task was settled. Where a
 * caller who knows only the answers could not know better, the judge does not ask for more. Pure.
 */
import { accountOf, isRefusal } from "./HostileService.ts"
import type { ExecutionAtSource, SourceLogin, StartSeen, Storm } from "./HostileService.ts"
import { firstNightMs, nightMs, type AccountsOutcome, type Use } from "./AccountNights.ts"
import { startAnswers } from "./StartAnswers.ts"

export const rules = [
  "above its bound",
  "refused login again",
  "two logins at once",
  "busy account",
  "held without cause",
  "held by an outage",
  "not read after an outage",
  "too many exposed",
  "twice a night",
] as const
export interface Complaint {
  readonly rule: (typeof rules)[number]
  readonly what: string
}

const minute = 60_000
/** Others passed here a short time ago: the design says ten minutes, and another reading may say more. */
const wellForMs = 30 * minute
const retryMaxMs = 15 * minute

/** What a caller can conclude of one start, once everything is over. */
type Meaning = "nothing sent" | "maybe" | "perhaps good" | "unproven" | "refused" | "good" | "neutral"

interface Strike {
  readonly start: StartSeen
  readonly meaning: Meaning
  /** When the good end or the refusal was in the ledger. */
  readonly knownAt: number | undefined
}

const nightOf = (at: number): number => Math.floor((at - firstNightMs) / (nightMs(1) - nightMs(0)))
const shown = (at: number): string => new Date(at).toISOString().slice(5, 19).replace("T", " ")

const groupBy = <T>(values: Iterable<T>, keyOf: (value: T) => string) => [...Map.groupBy(values, keyOf)]

class Case {
  readonly outcome: AccountsOutcome
  readonly strikes: ReadonlyMap<string, ReadonlyArray<Strike>>
  private readonly executions: ReadonlyMap<string, ExecutionAtSource>

  constructor(outcome: AccountsOutcome) {
    this.outcome = outcome
    this.executions = new Map(outcome.executions.map((one) => [one.execution_id, one]))
    const followed = Map.groupBy(
      outcome.starts.filter(({ execution_id }) => execution_id !== undefined),
      ({ external }) => external,
    )
    this.strikes = new Map(
      groupBy(outcome.starts, ({ account }) => account).map(([account, starts]) => [
        account,
        starts.map((start) => this.strikeOf(start, followed.get(start.external)?.at(-1) ?? start)),
      ]),
    )
  }

  /** `followed`: the start with the same id that told of an execution; its end speaks for both. */
  private strikeOf(start: StartSeen, followed: StartSeen): Strike {
    // Known at once, and whatever its execution says then.
    if (meaningOfAnswer(followed) === "refused")
      return { start, meaning: "refused", knownAt: followed.answeredAt }
    const execution = this.executions.get(followed.execution_id ?? "")
    if (execution === undefined) {
      const meaning = meaningOfAnswer(start)
      return { start, meaning, knownAt: meaning === "refused" ? start.answeredAt : undefined }
    }
    const isSilent = start !== followed && meaningOfAnswer(start) === "nothing sent"
    const closedAt = this.outcome.closed.get(execution.execution_id)
    if (isSilent) return { start, meaning: "nothing sent", knownAt: undefined }
    if (execution.isIdle) {
      // An earlier start with its id may have been another execution: a caller may count it or not.
      return { start, meaning: start === followed ? "neutral" : "maybe", knownAt: closedAt }
    }
    if (closedAt === undefined) {
      // Its login was seen, and its end was not.
      const isGood = execution.toldAt !== undefined && !isRefusal(execution.end)
      return isGood
        ? { start, meaning: "perhaps good", knownAt: execution.toldAt }
        : { start, meaning: "unproven", knownAt: undefined }
    }
    if (execution.loginAt > execution.closesAt) return { start, meaning: "neutral", knownAt: closedAt }
    return { start, meaning: isRefusal(execution.end) ? "refused" : "good", knownAt: closedAt }
  }
}

const meaningOfAnswer = ({ answer, isListed, status_reason }: StartSeen): Meaning => {
  if (answer === "refused connection" || answer === 429 || answer === 409 || isListed) return "nothing sent"
  if (status_reason === "INCORRECT_CREDENTIALS") return "refused"
  return answer === 503 || answer === 401 || answer === 403 ? "maybe" : "unproven"
}

/** At the source: logins in a row of which none had a good end that could be read. */
const aboveBound = ({ outcome }: Case): ReadonlyArray<Complaint> =>
  groupBy(outcome.logins, ({ account }) => account).flatMap(([account, logins]) => {
    let row: Array<SourceLogin> = []
    let longest: ReadonlyArray<SourceLogin> = []
    const complaints: Array<Complaint> = []
    for (const login of logins) {
      row = login.verdict === "good" && login.execution.toldAt !== undefined ? [] : [...row, login]
      if (row.length > longest.length) longest = row
    }
    const passwords = new Set(longest.map(({ password }) => password)).size
    const isSteady = outcome.plan.uses
      .filter(({ engine, username }) => accountOf(engine, username) === account)
      .every(({ password }) => password(0) === password(outcome.plan.nights - 1))
    const onlyRefused = longest.every(({ verdict }) => verdict === "refused")
    // Whoever read no answer cannot know that the login was refused: it counts, and its password may be sent.
    const unseen = longest.filter(({ execution }) => execution.toldAt === undefined).length
    const bound = passwords > 1 ? (isSteady && onlyRefused ? Math.min(4, 2 + unseen) : 4) : 3
    if (longest.length > bound) {
      const when = longest.map(({ at, verdict }) => `${shown(at)} ${verdict}`).join(", ")
      const what =
        `${account}: ${longest.length} logins in a row without a good end that was read, ` +
        `and ${bound} may be: ${when}`
      complaints.push({ rule: "above its bound", what })
    }
    return complaints
  })

/** A refusal that is in the ledger is the last time that this password was sent, by whomever. */
const refusedAgain = ({ strikes }: Case): ReadonlyArray<Complaint> =>
  [...strikes].flatMap(([account, all]) =>
    groupBy(all, ({ start }) => start.password).flatMap(([, same]) => {
      const refused = same.find(({ meaning, knownAt }) => meaning === "refused" && knownAt !== undefined)
      const again = same.find(({ start }) => start.at > (refused?.knownAt ?? Infinity))
      if (refused === undefined || again === undefined) return []
      const { customer, engine, at } = again.start
      const what =
        `${account}: refused to ${refused.start.customer} on ${refused.start.engine}, ` +
        `sent again by ${customer} on ${engine} at ${shown(at)}`
      return [{ rule: "refused login again", what } as const]
    }),
  )

const atOnce = ({ outcome }: Case): ReadonlyArray<Complaint> =>
  groupBy(outcome.executions, ({ account }) => account).flatMap(([account, executions]) => {
    const sorted = executions.toSorted((a, b) => a.acceptedAt - b.acceptedAt)
    const index = sorted.findIndex((one, place) => {
      const next = sorted[place + 1]
      return next !== undefined && next.acceptedAt < one.closesAt
    })
    const [one, other] = [sorted[index], sorted[index + 1]]
    if (one === undefined || other === undefined) return []
    const what =
      `${account}: ${other.customer} on ${other.engine} at ${shown(other.acceptedAt)} ` +
      `while ${one.customer} on ${one.engine} was open`
    return [{ rule: "two logins at once", what } as const]
  })

/** While a login may be open, only its own id is sent. */
const whileBusy = ({ strikes, outcome }: Case): ReadonlyArray<Complaint> =>
  [...strikes].flatMap(([account, all]) => {
    const broken = all.flatMap(({ start: lost }, index) => {
      if (meaningOfAnswer(lost) !== "unproven" || lost.execution_id !== undefined) return []
      const next = all.slice(index + 1).find(({ start }) => start.external !== lost.external)
      if (next === undefined || next.start.at >= lost.at + outcome.plan.job.maxWaitMs) return []
      const known = all
        .slice(index + 1)
        .some(({ start, knownAt = Infinity }) => start.external === lost.external && knownAt <= next.start.at)
      return known ? [] : [`lost at ${shown(lost.at)}, another id at ${shown(next.start.at)}`]
    })
    return broken.slice(0, 1).map((why) => ({ rule: "busy account", what: `${account}: ${why}` }) as const)
  })

/** A start and its probe; a good end in between allows two more. */
const twiceANight = ({ strikes }: Case): ReadonlyArray<Complaint> =>
  [...strikes].flatMap(([account, all]) =>
    groupBy(all, ({ start }) => String(nightOf(start.at))).flatMap(([night, ofNight]) => {
      const rows = ofNight.reduce<ReadonlyArray<number>>(
        ([now = 0, ...before], { meaning, start }) =>
          meaning === "good" || meaning === "perhaps good"
            ? [0, now, ...before]
            : [now + (meaning === "unproven" && start.execution_id === undefined ? 1 : 0), ...before],
        [0],
      )
      const most = Math.max(...rows)
      if (most <= 2) return []
      return [
        { rule: "twice a night" as const, what: `${account}: ${most} unproven starts in night ${night}` },
      ]
    }),
  )

/** The most strikes that a caller can have counted at a moment, and the passwords that were refused. */
const mostStrikes = (all: ReadonlyArray<Strike>, at: number) => {
  let strikes = 0
  let refused = new Set<string>()
  const goods = all.filter(({ meaning, knownAt = Infinity }) => meaning === "good" && knownAt <= at)
  // Of a good login that is read late, what was sent after it knows nothing.
  const lastGood = Math.max(-Infinity, ...goods.map(({ start }) => start.at))
  for (const { start, meaning } of all) {
    if (start.at > at || start.at < lastGood) continue
    if (meaning === "nothing sent" || meaning === "neutral" || meaning === "good") continue
    strikes += 1
    if (meaning === "refused") refused = new Set([...refused, start.password])
  }
  return { strikes, refused, lastGood }
}

/** A good login of another customer takes nothing off a channel that locks other fields: it may be another user. */
const seenFrom = (
  { outcome: { plan } }: Pick<Case, "outcome">,
  { engine, customer }: Pick<Use, "engine" | "customer">,
  all: ReadonlyArray<Strike>,
): ReadonlyArray<Strike> => {
  const locked = (of: string) => {
    const { fields = [], locking = [] } = plan.channels.find(({ reference }) => reference === of) ?? {}
    return locking.map((field) => fields.indexOf(field)).join()
  }
  return all.filter(
    ({ meaning, start }) =>
      meaning !== "good" || start.customer === customer || locked(start.engine) === locked(engine),
  )
}

/** Of which a caller knows for certain, whatever it makes of a 503. */
const certainStrikes = (all: ReadonlyArray<Strike>, at: number): ReadonlyArray<Strike> => {
  const before = all.filter(({ start }) => start.at < at)
  const good = before.findLastIndex(
    ({ meaning, start }) => meaning === "good" || meaning === "perhaps good" || start.answer === 409,
  )
  return before.slice(good + 1).filter(({ meaning }) => meaning === "unproven")
}

export const useKey = ({ customer, engine }: Pick<Use, "customer" | "engine">): string =>
  `${customer} ${engine}`

const heldTasks = ({ outcome }: Case) => {
  const accounts = new Map(outcome.plan.uses.map((use) => [useKey(use), accountOf(use.engine, use.username)]))
  return outcome.ends.flatMap((end) => {
    const account = accounts.get(useKey(end))
    return end.reason === "LOGIN_UNPROVEN" && account !== undefined ? [{ ...end, account }] : []
  })
}

/** Meant to be sent by a process that was killed before: nobody but the source could tell. */
const neverLeft = (
  { outcome: { plan, intended, starts } }: Case,
  account: string,
  [from, until]: readonly [number, number],
): number => {
  const uses = new Set(
    plan.uses.flatMap((use) => (accountOf(use.engine, use.username) === account ? [useKey(use)] : [])),
  )
  return groupBy(
    intended.filter((one) => uses.has(useKey(one))),
    ({ external }) => external,
  )
    .flatMap(([external, meant]) => {
      const sent = starts.filter((one) => one.external === external)
      // Between this intent and the next of its id, nothing reached the service.
      return meant.filter(({ at }, place) => {
        const nextAt = meant[place + 1]?.at ?? Infinity
        return !sent.some((one) => one.at >= at && one.at < nextAt)
      })
    })
    .filter(({ at }) => at >= from && at <= until).length
}

const withoutCause = (all: Case): ReadonlyArray<Complaint> =>
  heldTasks(all).flatMap(({ account, at, engine, customer }) => {
    const known = seenFrom(all, { engine, customer }, all.strikes.get(account) ?? [])
    const { strikes, refused, lastGood } = mostStrikes(known, at)
    if (strikes + neverLeft(all, account, [lastGood, at]) >= 3 || refused.size >= 2) return []
    const what = `${account}: LOGIN_UNPROVEN at ${shown(at)} after ${strikes} logins that may have failed`
    return [{ rule: "held without cause" as const, what }]
  })

/** The third strike only where others pass, or where nobody else is left to show it. */
const byOutage = (all: Case): ReadonlyArray<Complaint> =>
  [...all.strikes].flatMap(([account, strikes]) =>
    strikes.flatMap((strike) => {
      if (strike.meaning !== "unproven") return []
      const { start } = strike
      const before = certainStrikes(strikes, start.at)
      const second = before.at(-1)
      if (before.length !== 2 || second === undefined || second.start.external === start.external) return []
      // A refusal is a strike too: after it a corrected password is a login that somebody bought, not the third.
      if (mostStrikes(strikes, start.at).refused.size > 0) return []
      if (isWell(all, start) || !hadOthers(all, start, nightOf(second.start.at))) return []
      const what =
        `${account}: third strike at ${shown(start.at)} on ${start.engine}, ` + "where nobody else had passed"
      return [{ rule: "held by an outage" as const, what }]
    }),
  )

const isWell = ({ outcome }: Case, { account, engine, at }: StartSeen): boolean =>
  outcome.starts.some(
    (other) =>
      other.engine === engine &&
      other.account !== account &&
      other.execution_id !== undefined &&
      (other.answeredAt ?? Infinity) <= at &&
      other.at >= at - wellForMs,
  )

/** Accounts of its run, which is of one job, that could have gone first: without strikes, not yet tried. */
const hadOthers = (
  { outcome, strikes }: Case,
  { account, customer, engine, at }: StartSeen,
  night: number,
): boolean => {
  if (night === nightOf(at)) return true
  const { uses } = outcome.plan
  const jobs = uses.flatMap((use) => (use.customer === customer && use.engine === engine ? [use.job] : []))
  // Of several jobs with this login, it is not known whose start it was.
  return jobs.every((job) =>
    uses.some((use) => {
      const other = accountOf(use.engine, use.username)
      if (use.engine !== engine || other === account || use.job !== job || (use.fromNight ?? 0) > nightOf(at))
        return false
      const all = strikes.get(other) ?? []
      const before = all.filter(({ start }) => start.at < at)
      const wasTried = before.some(({ start }) => nightOf(start.at) === nightOf(at))
      const known = mostStrikes(seenFrom({ outcome }, use, all), at)
      return !wasTried && !isClosedTo(use, before, nightOf(at)) && known.strikes === 0
    }),
  )
}

/** Whether its login was refused, and is not sent again. */
const isClosedTo = (use: Use, all: ReadonlyArray<Strike>, night: number): boolean =>
  all.some(
    ({ start, meaning }) =>
      meaning === "refused" &&
      (start.password === use.password(night) || start.isEncrypted || use.encrypted !== undefined),
  )

/** Whether a use cannot succeed in a night, for reasons of its own. */
const isStopped = ({ outcome, strikes }: Case, use: Use, night: number): boolean => {
  const account = accountOf(use.engine, use.username)
  const all = strikes.get(account) ?? []
  const before = mostStrikes(seenFrom({ outcome }, use, all), nightMs(night))
  const password = use.password(night)
  // Another customer's wrong password in the same night may come first, twice.
  const wrongs = new Set(
    outcome.plan.uses
      .filter((other) => accountOf(other.engine, other.username) === account)
      .map((other) => other.password(night))
      .filter((sent) => sent !== outcome.plan.rightPassword(account, night)),
  )
  return (
    password !== outcome.plan.rightPassword(account, night) ||
    isClosedTo(use, all, night) ||
    before.strikes >= 3 ||
    before.refused.size >= 2 ||
    before.strikes + wrongs.size >= 2
  )
}

const isCalm = ({ plan }: AccountsOutcome, night: number): boolean => {
  const [from, until] = [nightMs(night), nightMs(night + 1)]
  return (
    plan.storms.every(({ fromMs, untilMs }) => untilMs <= from || fromMs >= until) &&
    plan.accidents.every((accident) => accident.night !== night) &&
    Object.values(plan.rates(night)).every((rate) => rate === 0)
  )
}

/** In a calm night everybody is read who has done nothing unproven. */
const notRead = (all: Case): ReadonlyArray<Complaint> => {
  const { outcome } = all
  const nights = Array.from({ length: outcome.plan.nights }, (_, night) => night)
  return nights
    .filter((night) => isCalm(outcome, night))
    .flatMap((night) =>
      outcome.plan.uses.flatMap((use) => {
        if ((use.fromNight ?? 0) > night || isStopped(all, use, night)) return []
        const ends = outcome.ends.filter(
          (end) => end.night === night && end.job === use.job && useKey(end) === useKey(use),
        )
        if (ends.some((end) => end.outcome === "succeeded")) return []
        // Without `night` a run has the calendar's date: one that began after midnight may be this night's.
        if (ends.length > 0 && ends.every(({ at }) => at < nightMs(night))) return []
        const said = ends.map((end) => `${end.outcome} ${end.reason}`).join(", ") || "no task"
        const what = `${use.customer} on ${use.engine} in the calm night ${night}: ${said}`
        return [{ rule: "not read after an outage" as const, what }]
      }),
    )
}

const isOutage = ({ accounts, rate, answer }: Storm): boolean =>
  accounts === undefined && rate === 1 && startAnswers[answer].login === "may be"

/** §4: dozens of accounts at most in an outage of hours, and not many more starts than accounts. */
const tooMany = ({ outcome }: Case): ReadonlyArray<Complaint> =>
  outcome.plan.storms.filter(isOutage).flatMap(({ engines, fromMs, untilMs, answer }) =>
    engines.flatMap((engine) => {
      const during = (at: number) => at >= fromMs && at < untilMs
      // A further storm may throttle or refuse on the same engine at the same time: those starts created nothing.
      const starts = outcome.starts.filter(
        (start) => start.engine === engine && during(start.at) && meaningOfAnswer(start) !== "nothing sent",
      )
      const processes = outcome.processes.filter((one) => one.fromMs < untilMs && one.untilMs > fromMs)
      const hereMs = processes.reduce(
        (sum, one) => sum + Math.min(one.untilMs, untilMs) - Math.max(one.fromMs, fromMs),
        0,
      )
      const most = 12 + 5 * processes.length + Math.ceil(hereMs / retryMaxMs)
      const accounts = new Set(starts.map(({ account }) => account)).size
      if (accounts <= most && starts.length <= 2 * most) return []
      const what =
        `${engine} answered ${answer} from ${shown(fromMs)}: ${starts.length} starts of ${accounts} accounts, ` +
        `and ${most} accounts may be`
      return [{ rule: "too many exposed" as const, what }]
    }),
  )

export const complaintsOf = (outcome: AccountsOutcome): ReadonlyArray<Complaint> => {
  const all = new Case(outcome)
  return [
    aboveBound,
    refusedAgain,
    atOnce,
    whileBusy,
    twiceANight,
    withoutCause,
    byOutage,
    notRead,
    tooMany,
  ].flatMap((rule) => rule(all))
}
