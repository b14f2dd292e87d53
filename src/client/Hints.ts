/**
 * Hints: somebody says that there is news about an execution or a session (section 6). Whoever follows one
 * watches here and polls sooner; the state itself is only read through the authenticated API, so a forged
 * hint costs one poll and nothing else. Each watch has one slot: a thousand hints count as one, and hints
 * that nobody watches for leave no trace. Without webhooks there are no hints, and nothing changes.
 */
import { Clock, Context, Effect, Queue, type Scope } from "effect"
import type { EventView } from "./Views.ts"
import type { EngineReference } from "../service/Ids.ts"

// A hint makes a poll come sooner, never more often than the job's shortest interval. Once hints are seen to
// arrive, polls without one become rare; an execution that ends without one undoes that.

/** How far the hints of one engine are trusted: engines differ in the events they raise (section 2.2). */
export interface HintTrust {
  /** Hints that led to news, since the last execution that ended without one. */
  readonly useful: number
  /** How many create trust: doubled by every end that no hint announced. */
  readonly needed: number
}
const neededMax = 64

export const noTrust: HintTrust = { useful: 0, needed: 1 }

export const isTrusted = ({ useful, needed }: HintTrust): boolean => useful >= needed

/** The result of one poll. */
export interface LookResult {
  readonly hinted: boolean
  /** The first poll of an execution: it always shows something, and its hint may have come too early. */
  readonly first: boolean
  readonly told: "nothing" | "news" | "end"
}

export const trustAfter = (trust: HintTrust, { hinted, first, told }: LookResult): HintTrust => {
  if (hinted && (told === "end" || (told === "news" && !first)))
    return { ...trust, useful: Math.min(neededMax, trust.useful + 1) }
  if (!hinted && told === "end" && !first && isTrusted(trust))
    return { useful: 0, needed: Math.min(neededMax, trust.needed * 2) }
  return trust
}

/** A date further in the future than clocks differ means nothing: it is forged, or from another clock. */
export const aheadMaxMs = 5 * 60_000

/** Times that show the order of deliveries; milliseconds since the epoch. */
export interface HintTimes {
  /** The newest event whose poll showed something. */
  readonly confirmedAt: number
  /** When the last poll began. */
  readonly lookedAt: number
}

/** The date of an event, if it can be one. */
export const plausibleDate = (dateMs: number | undefined, now: number): number | undefined =>
  dateMs === undefined || dateMs > now + aheadMaxMs ? undefined : dateMs

/**
 * Section 6.1: deliveries arrive out of order, and late ones are repeated. An event older than the newest
 * means nothing if the state was read after it; if it was not, it may be true, whatever the others say.
 */
export const isOutdated = (dateMs: number | undefined, { confirmedAt, lookedAt }: HintTimes): boolean =>
  dateMs !== undefined && dateMs < confirmedAt && dateMs <= lookedAt

/** The hints about one execution or session, for whoever polls it. */
export interface HintWatch {
  /** Another id that may name it. */
  readonly learn: (id: string) => void
  /** Whether a hint is waiting for a poll. */
  readonly isHinted: () => boolean
  /** Whether polls without a hint may be rare. */
  readonly isTrusted: () => boolean
  /** Sleeps, but only until a hint arrives or trust changes. */
  readonly rest: (ms: number) => Effect.Effect<void>
  /** Is called whenever that happens, for whoever rests without sleeping. */
  readonly onStir: (wake: () => void) => void
  /** A poll begins, which answers every hint so far; returns true if there was one. */
  readonly beginLook: (now: number) => boolean
  readonly endLook: (result: LookResult) => void
}

export interface Watched {
  readonly ids: ReadonlyArray<string | undefined>
  /** Watches whose hints are trusted together; a session alone has none. */
  readonly engine_reference: EngineReference | undefined
}

export interface HintSource {
  /** Whether hints may arrive at all. */
  readonly on: boolean
  readonly watch: (watched: Watched) => Effect.Effect<HintWatch, never, Scope.Scope>
}

const silence: HintWatch = {
  learn: () => undefined,
  isHinted: () => false,
  isTrusted: () => false,
  rest: (ms) => Effect.sleep(ms),
  onStir: () => undefined,
  beginLook: () => false,
  endLook: () => undefined,
}

/** There are no hints unless webhooks are on. */
export const Hints = Context.Reference<HintSource>("nightjar/client/Hints", {
  defaultValue: () => ({ on: false, watch: () => Effect.succeed(silence) }),
})

/** Section 4.1: makes every delivery name its execution, whatever else it contains. */
const hintPair = { nightjar_execution: "{external_execution_id}" }

/** The pairs for a start; if the job has a pair with that name, the job's pair is kept. */
export const withHintPair = (
  hooks_extra_data: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> => ({ ...hintPair, ...hooks_extra_data })

interface Watcher {
  readonly clock: Clock.Clock
  readonly engine_reference: EngineReference | undefined
  readonly ids: Set<string>
  readonly stirred: Queue.Queue<void>
  wake: () => void
  hinted: boolean
  /** The newest plausible date among the waiting hints and those that the current poll answers. */
  waitingAt: number
  answeredAt: number
  confirmedAt: number
  lookedAt: number
}

/** A board that receives events from a receiver and passes them on as hints. */
export interface HintBoard {
  readonly source: HintSource
  readonly offer: (event: EventView) => void
}

export const makeHintBoard = (): HintBoard => {
  const watchers = new Map<string, Set<Watcher>>()
  const byEngine = new Map<string, { trust: HintTrust; readonly watchers: Set<Watcher> }>()
  const ofEngine = (engine: string) => {
    const known = byEngine.get(engine)
    if (known !== undefined) return known
    const made = { trust: noTrust, watchers: new Set<Watcher>() }
    byEngine.set(engine, made)
    return made
  }
  const learn = (watcher: Watcher, id: string): void => {
    // An empty string names nothing, and is in many bodies.
    if (id === "") return
    watcher.ids.add(id)
    const same = watchers.get(id) ?? new Set()
    watchers.set(id, same.add(watcher))
  }
  const forget = (watcher: Watcher): void => {
    for (const id of watcher.ids) {
      const same = watchers.get(id)
      same?.delete(watcher)
      if (same?.size === 0) watchers.delete(id)
    }
    if (watcher.engine_reference !== undefined) ofEngine(watcher.engine_reference).watchers.delete(watcher)
  }
  const enter = Effect.fnUntraced(function* ({ ids, engine_reference }: Watched) {
    const clock = yield* Clock.Clock
    const never = { waitingAt: -Infinity, answeredAt: -Infinity, confirmedAt: -Infinity, lookedAt: -Infinity }
    const stirred = yield* Queue.sliding<void>(1)
    const idle = { hinted: false, wake: () => undefined }
    const watcher: Watcher = { clock, engine_reference, ids: new Set(), stirred, ...idle, ...never }
    for (const id of ids) if (id !== undefined) learn(watcher, id)
    if (engine_reference !== undefined) ofEngine(engine_reference).watchers.add(watcher)
    return watcher
  })
  const settleTrust = (engine: string, result: LookResult): void => {
    const group = ofEngine(engine)
    const before = isTrusted(group.trust)
    group.trust = trustAfter(group.trust, result)
    // A watch that sleeps long because of a trust that is gone has to poll now.
    if (before && !isTrusted(group.trust)) for (const watcher of group.watchers) stir(watcher)
  }
  const watchOf = (watcher: Watcher): HintWatch => ({
    learn: (id) => learn(watcher, id),
    isHinted: () => watcher.hinted,
    isTrusted: () =>
      watcher.engine_reference !== undefined && isTrusted(ofEngine(watcher.engine_reference).trust),
    rest: (ms) => Effect.asVoid(Effect.timeoutOption(Queue.take(watcher.stirred), ms)),
    onStir: (wake) => void (watcher.wake = wake),
    beginLook: (now) => {
      const { hinted, waitingAt } = watcher
      Object.assign(watcher, { hinted: false, waitingAt: -Infinity, answeredAt: waitingAt, lookedAt: now })
      return hinted
    },
    endLook: (result) => {
      if (result.told !== "nothing") watcher.confirmedAt = Math.max(watcher.confirmedAt, watcher.answeredAt)
      if (watcher.engine_reference !== undefined) settleTrust(watcher.engine_reference, result)
    },
  })
  return {
    source: { on: true, watch: (watched) => watchScoped(enter(watched), forget, watchOf) },
    offer: (event) => offerTo(watchers, event),
  }
}

const stir = ({ stirred, wake }: Watcher): void => {
  Queue.offerUnsafe(stirred, undefined)
  wake()
}

const watchScoped = (
  enter: Effect.Effect<Watcher>,
  forget: (watcher: Watcher) => void,
  watchOf: (watcher: Watcher) => HintWatch,
) =>
  Effect.map(
    Effect.acquireRelease(enter, (watcher) => Effect.sync(() => forget(watcher))),
    watchOf,
  )

const offerTo = (watchers: ReadonlyMap<string, ReadonlySet<Watcher>>, { texts, dateMs }: EventView): void => {
  if (watchers.size === 0) return
  for (const text of texts)
    for (const watcher of watchers.get(text) ?? []) {
      const date = plausibleDate(dateMs, watcher.clock.currentTimeMillisUnsafe())
      if (isOutdated(date, watcher)) continue
      watcher.waitingAt = Math.max(watcher.waitingAt, date ?? -Infinity)
      if (watcher.hinted) continue
      watcher.hinted = true
      stir(watcher)
    }
}
