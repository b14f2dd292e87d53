/**
 * Hints: somebody says that an execution or a session has something to tell (section 6). Whoever follows one
 * watches here and looks sooner; the state itself is only ever read through the authenticated API, so that a
 * forged hint costs a look and nothing else. One slot per watch: a thousand hints are as one, and what nobody
 * watches leaves no trace. Without webhooks there are no hints, and nothing changes.
 */
import { Clock, Context, Effect, Queue } from "effect"
import type { Scope } from "effect"
import type { EngineReference } from "../contract/Ids.ts"
import { isOutdated, isTrusted, noTrust, plausibleDate, trustAfter } from "../scheduling/Hinting.ts"
import type { HintTrust, LookResult } from "../scheduling/Hinting.ts"
import type { EventView } from "./EventView.ts"

/** The hints about one execution or session, for whoever looks at it. */
export interface HintWatch {
  /** A further id under which it may be named. */
  readonly learn: (id: string) => void
  /** A hint waits for a look. */
  readonly isHinted: () => boolean
  /** Whether looks without a hint may be rare. */
  readonly isTrusted: () => boolean
  /** Sleeps, but no longer than until a hint comes or trust changes. */
  readonly rest: (ms: number) => Effect.Effect<void>
  /** A look begins, which answers every hint up to now; true where there was one. */
  readonly beginLook: (now: number) => boolean
  readonly endLook: (result: LookResult) => void
}

export interface Watched {
  readonly ids: ReadonlyArray<string | undefined>
  /** Whose hints are trusted together; a session alone has none. */
  readonly engine_reference: EngineReference | undefined
}

export interface HintSource {
  /** Whether hints may come at all. */
  readonly on: boolean
  readonly watch: (watched: Watched) => Effect.Effect<HintWatch, never, Scope.Scope>
}

const silence: HintWatch = {
  learn: () => undefined,
  isHinted: () => false,
  isTrusted: () => false,
  rest: (ms) => Effect.sleep(ms),
  beginLook: () => false,
  endLook: () => undefined,
}

/** Nobody hints at anything unless webhooks are on. */
export const Hints = Context.Reference<HintSource>("nightjar/client/Hints", {
  defaultValue: () => ({ on: false, watch: () => Effect.succeed(silence) }),
})

/** Section 4.1: what makes every delivery name its execution, whatever else it holds. */
const hintPair = { nightjar_execution: "{external_execution_id}" }

/** The pairs of a start; a pair of that name in the job is the job's business. */
export const withHintPair = (
  hooks_extra_data: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> => ({ ...hintPair, ...hooks_extra_data })

interface Watcher {
  readonly clock: Clock.Clock
  readonly engine_reference: EngineReference | undefined
  readonly ids: Set<string>
  readonly stir: Queue.Queue<void>
  hinted: boolean
  /** The newest plausible date among the hints that wait, and among those that the present look answers. */
  waitingAt: number
  answeredAt: number
  confirmedAt: number
  lookedAt: number
}

/** A board that takes events from a receiver and hands them on as hints. */
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
    // An empty text names nothing, and is in many bodies.
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
    const stir = yield* Queue.sliding<void>(1)
    const watcher: Watcher = { clock, engine_reference, ids: new Set(), stir, hinted: false, ...never }
    for (const id of ids) if (id !== undefined) learn(watcher, id)
    if (engine_reference !== undefined) ofEngine(engine_reference).watchers.add(watcher)
    return watcher
  })
  const settleTrust = (engine: string, result: LookResult): void => {
    const group = ofEngine(engine)
    const before = isTrusted(group.trust)
    group.trust = trustAfter(group.trust, result)
    // Who sleeps for long because of a trust that is gone has to look now.
    if (before && !isTrusted(group.trust))
      for (const watcher of group.watchers) Queue.offerUnsafe(watcher.stir, undefined)
  }
  const watchOf = (watcher: Watcher): HintWatch => ({
    learn: (id) => learn(watcher, id),
    isHinted: () => watcher.hinted,
    isTrusted: () =>
      watcher.engine_reference !== undefined && isTrusted(ofEngine(watcher.engine_reference).trust),
    rest: (ms) => Effect.asVoid(Effect.timeoutOption(Queue.take(watcher.stir), ms)),
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
      Queue.offerUnsafe(watcher.stir, undefined)
    }
}
