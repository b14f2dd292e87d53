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

/** Section 4.1: makes every delivery name its execution, whatever else it contains. */
const hintPair = { nightjar_execution: "{external_execution_id}" }

/** The pairs for a start; if the job has a pair with that name, the job's pair is kept. */
export const withHintPair = (
  hooks_extra_data: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> => ({ ...hintPair, ...hooks_extra_data })

/** Watches whose hints are trusted together. */
interface Group {
  trust: HintTrust
  readonly watchers: Set<Watcher>
}
type Watcher = ReturnType<typeof makeWatcher>

/** What one watch has heard, and which of it its polls have answered. */
const makeWatcher = (clock: Clock.Clock, stirred: Queue.Queue<void>, group: Group | undefined) => {
  let wake = (): void => undefined
  let hinted = false
  /** The newest plausible date among the waiting hints, and among those that the current poll answers. */
  let [waitingAt, answeredAt] = [-Infinity, -Infinity]
  let [confirmedAt, lookedAt] = [-Infinity, -Infinity]
  const stir = (): void => {
    Queue.offerUnsafe(stirred, undefined)
    wake()
  }
  return {
    stir,
    hear: (dateMs: number | undefined): void => {
      const date = plausibleDate(dateMs, clock.currentTimeMillisUnsafe())
      if (isOutdated(date, { confirmedAt, lookedAt })) return
      waitingAt = Math.max(waitingAt, date ?? -Infinity)
      if (hinted) return
      hinted = true
      stir()
    },
    isHinted: () => hinted,
    isTrusted: () => group !== undefined && isTrusted(group.trust),
    rest: (ms: number) => Effect.asVoid(Effect.timeoutOption(Queue.take(stirred), ms)),
    onStir: (act: () => void) => void (wake = act),
    beginLook: (now: number) => {
      const isAnswered = hinted
      hinted = false
      answeredAt = waitingAt
      waitingAt = -Infinity
      lookedAt = now
      return isAnswered
    },
    endLook: (result: LookResult) => {
      if (result.told !== "nothing") confirmedAt = Math.max(confirmedAt, answeredAt)
      if (group === undefined) return
      const before = isTrusted(group.trust)
      group.trust = trustAfter(group.trust, result)
      // A watch that sleeps long because of a trust that is gone has to poll now.
      if (before && !isTrusted(group.trust)) for (const one of group.watchers) one.stir()
    },
  }
}

/** A board that receives events from a receiver and passes them on as hints. */
export const makeHintBoard = () => {
  const watchers = new Map<string, Set<Watcher>>()
  const byEngine = new Map<string, Group>()
  const watch = Effect.fnUntraced(function* ({ ids, engine_reference: engine }: Watched) {
    const group = engine === undefined ? undefined : (byEngine.get(engine) ?? newGroup())
    if (engine !== undefined && group !== undefined) byEngine.set(engine, group)
    const watcher = makeWatcher(yield* Clock.Clock, yield* Queue.sliding<void>(1), group)
    const learnt = new Set<string>()
    const learn = (id: string): void => {
      // An empty string names nothing, and is in many bodies.
      if (id === "") return
      learnt.add(id)
      watchers.set(id, (watchers.get(id) ?? new Set()).add(watcher))
    }
    for (const id of ids) if (id !== undefined) learn(id)
    group?.watchers.add(watcher)
    const forget = (): void => {
      for (const id of learnt) {
        const same = watchers.get(id)
        same?.delete(watcher)
        if (same?.size === 0) watchers.delete(id)
      }
      group?.watchers.delete(watcher)
    }
    yield* Effect.addFinalizer(() => Effect.sync(forget))
    return { ...watcher, learn } satisfies HintWatch
  }, Effect.uninterruptible)
  return {
    source: { on: true, watch } satisfies HintSource as HintSource,
    offer: ({ texts, dateMs }: EventView): void => {
      if (watchers.size === 0) return
      for (const text of texts) for (const watcher of watchers.get(text) ?? []) watcher.hear(dateMs)
    },
  }
}

export type HintBoard = ReturnType<typeof makeHintBoard>

const newGroup = (): Group => ({ trust: noTrust, watchers: new Set() })

/** Unless webhooks are on, nobody offers anything, and there are no hints. */
export const Hints = Context.Reference<HintSource>("nightjar/client/Hints", {
  defaultValue: () => ({ ...makeHintBoard().source, on: false }),
})
