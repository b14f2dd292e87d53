/**
 * The embedded service: the remote service in miniature, seeded and event-sourced, on whatever Clock it is
 * given. Every call decides purely on the current state and records its effects; no timer runs, so virtual
 * time, a scaled clock and the machine's own clock drive it alike. `truth` shows observers what really
 * happened.
 */
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { adminView, type AdminFilter, type AdminView } from "../admin/AdminPage.ts"
import { ownerOf, truthOf, type Ids, type Owner, type Truth } from "../admin/Truth.ts"
import { Core, newCallWatch, recordEvents, type Listener, type SandboxCore } from "../core/SandboxCore.ts"
import type { Faults } from "../faults/Faults.ts"
import { decideStartHooks } from "../hooks/Hooks.ts"
import type { Webhook } from "../state/HookState.ts"
import { outboxOf } from "../hooks/Outbox.ts"
import { SeedChanged, openJournal, type JournalFailed } from "../state/Journal.ts"
import { resolveReading, type Reading } from "../state/Reading.ts"
import { applyEvent, emptyState } from "../state/SandboxState.ts"

// Reads create no event, but must not become untrue: the journal holds a time later than any shown.

/** How far ahead time is recorded, and the most that a quick restart skips. */
const aheadMs = 1_000

/** Writes at most one line for each second of the service's time; undefined without a journal. */
export const timeKeeperOf = ({ journal }: Pick<SandboxCore, "journal">): Effect.Effect<void> | undefined => {
  if (journal === undefined) return undefined
  let keptUntil = Number.NEGATIVE_INFINITY
  return Effect.map(Clock.currentTimeMillis, (now) => {
    if (now < keptUntil) return
    keptUntil = now + aheadMs
    journal.append([{ _tag: "TimeKept", at: keptUntil }])
  })
}

export interface SandboxOptions {
  /** Without it, the journal's own, else 1. */
  readonly seed?: number | undefined
  /** Whether the journal is of one seed for good; jobs of several seeds may share an output folder. */
  readonly keepsSeed?: boolean
  /** A file that keeps the events; without it, the service forgets everything when it stops. */
  readonly journal?: string | undefined
  /** Targets of all applications' events; `HookDispatcher` has to run for anything to be delivered. */
  readonly webhooks?: ReadonlyArray<Webhook> | undefined
  /** What goes wrong; without it, nothing does. */
  readonly faults?: Faults | undefined
  /** Where the reference leaves room: what it does not set is as today. */
  readonly reading?: Reading | undefined
}

const openCore = Effect.fnUntraced(function* (
  options: SandboxOptions,
): Effect.fn.Return<SandboxCore, JournalFailed | SeedChanged, Scope.Scope> {
  const at = yield* Clock.currentTimeMillis
  const state = emptyState()
  const journal = options.journal === undefined ? undefined : yield* openJournal(options.journal)
  for (const event of journal?.events ?? []) applyEvent(state, event)
  const known = journal?.events.find((event) => event._tag === "Seeded")?.seed
  const seed = options.seed ?? known ?? 1
  if (options.keepsSeed === true && known === undefined) journal?.append([{ _tag: "Seeded", at, seed }])
  else if (options.keepsSeed === true && known !== seed)
    return yield* new SeedChanged({ path: options.journal ?? "", seed: known ?? seed })
  // Only `append` is kept, so that the replayed events can be freed.
  const core = {
    seed,
    reading: resolveReading(options.reading),
    state,
    journal: journal && { append: journal.append },
    inputs: new Map(),
    listeners: new Set<Listener>(),
    watch: newCallWatch(seed, options.faults, at),
  }
  recordEvents(core, decideStartHooks(state.hooks, at, options.webhooks ?? []))
  return core
})

const serviceOf = (core: SandboxCore) => ({
  core,
  outbox: outboxOf(core),
  truth: Effect.sync((): Truth => truthOf(core.state, core.watch)),
  admin: (at: number, filter: AdminFilter): AdminView =>
    adminView(core.state, truthOf(core.state, core.watch), at, filter),
  keepTime: timeKeeperOf(core),
  owner: (ids: Ids): Owner => ownerOf(core.state, ids),
})

export class Sandbox extends Context.Service<Sandbox, ReturnType<typeof serviceOf>>()(
  "nightjar/sandbox/Sandbox",
) {
  static readonly layer = (options: SandboxOptions): Layer.Layer<Sandbox, JournalFailed | SeedChanged> =>
    Layer.effect(Sandbox, Effect.map(openCore(options), serviceOf))
}

/** What the handlers behind the routes work on. */
export const coreOfSandbox = Layer.effect(
  Core,
  Effect.map(Sandbox, ({ core }) => core),
)
