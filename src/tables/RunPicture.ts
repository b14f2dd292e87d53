/**
 * What ledger and landing say about one run. Facts are read first, so that every body a fact refers to must
 * be there; a missing one is damage, and damage is never published over.
 */
import { Effect } from "effect"
import { isoDay } from "../base/Text.ts"
import type { ExecutionId, RunId, SessionId } from "../service/Ids.ts"
import { Landing, type LandedBody } from "../landing/Landing.ts"
import { sourceNameOf, type ResultsSource } from "../service/FlowResults.ts"
import type { LandedRef } from "../ledger/Fact.ts"
import { planTask } from "../ledger/FoldRun.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { CachedForm } from "../ledger/LedgerTables.ts"
import { isClosed, remainsAny } from "../ledger/RunState.ts"
import type { AttemptState, ClosedAttempt, RunState, TaskState } from "../ledger/RunState.ts"
import type { EngineSaid } from "../ledger/RunFacts.ts"
import { ledgerFailed, PublishFailed } from "./Publisher.ts"
import { engineFields } from "./SystemTables.ts"
import { isObject } from "../records/ExactNumber.ts"

/**
 * A session of a task; `bodies` are the newest of each endpoint that was read, in the order of the run's
 * sources, and `body` is the first of them.
 */
export interface SessionPicture {
  readonly task: TaskState
  readonly session_id: SessionId
  readonly execution_id: ExecutionId | undefined
  readonly body: LandedBody | undefined
  readonly bodies: ReadonlyArray<LandedBody>
  /** The newest read of this session, as the ledger knows it. Milliseconds. */
  readonly read_at: number | undefined
  readonly is_closed: boolean | undefined
}

export interface RunPicture {
  readonly state: RunState
  /** What the service last said about the engines of its tasks. */
  readonly engines: ReadonlyArray<EngineSaid>
  readonly frames: ReadonlyArray<LandedBody>
  readonly framesByTask: ReadonlyMap<string, ReadonlyArray<LandedBody>>
  /** By execution: the state body that was landed last. */
  readonly stateOf: ReadonlyMap<string, LandedBody>
  readonly sessions: ReadonlyArray<SessionPicture>
  /** Tasks of which nothing is derived, except that they are planned; absent if there are none. */
  readonly open?: ReadonlySet<string>
}

const place = (ref: LandedRef): string => `${ref.segment}:${ref.offset}:${ref.sha256}`

/** The bodies that facts refer to. */
const refsIn = ({ tasks }: RunState): ReadonlyArray<LandedRef> =>
  [...tasks.values()].flatMap(({ attempts, results, refused = [] }) =>
    [...attempts.map(({ closed }) => closed?.fact), ...results.map(({ fact }) => fact), ...refused].flatMap(
      (fact) => fact?.landed ?? [],
    ),
  )

/** Those that landing does not contain. */
const missingBodies = (state: RunState, frames: ReadonlyArray<LandedBody>): ReadonlyArray<LandedRef> => {
  const held = new Set(frames.map(({ ref }) => place(ref)))
  return refsIn(state).filter((ref) => !held.has(place(ref)))
}

/** The execution of a session, as its newest reading or its start named it. */
export const executionBehind = (
  { results, attempts }: TaskState,
  session_id: SessionId,
): ExecutionId | undefined =>
  results.findLast(({ fact }) => fact.session_id === session_id)?.fact.execution_id ??
  attempts.findLast((attempt) => attempt.session_id === session_id)?.execution_id

const sessionsOf = (state: RunState, frames: ReadonlyArray<LandedBody>): ReadonlyArray<SessionPicture> => {
  const byTask = Map.groupBy(
    frames.filter(
      ({ meta }) =>
        (meta.kind === "results" || meta.kind === "profile") &&
        meta.session_id !== undefined &&
        meta.http_status === 200,
    ),
    ({ meta }) => meta.task_id,
  )
  return [...state.tasks.values()].flatMap((task) => {
    const landed = byTask.get(task.planned.task_id) ?? []
    const ids = new Set([
      ...landed.flatMap(({ meta }) => meta.session_id ?? []),
      ...task.results.map(({ fact }) => fact.session_id),
      ...(task.planned.session_id === undefined ? [] : [task.planned.session_id]),
    ])
    return [...ids].map((session_id): SessionPicture => {
      const own = landed.filter(({ meta }) => meta.session_id === session_id)
      const bodies = newestBySource(state.sources, own)
      const [body] = bodies
      const read = task.results.findLast(({ fact }) => fact.session_id === session_id)
      const execution_id = body?.meta.execution_id ?? executionBehind(task, session_id)
      // An answer without results, which ends the reading, does not say so of the session.
      const is_closed = read?.fact.landed === undefined ? undefined : read.fact.is_closed
      const known = { read_at: read?.at, is_closed }
      return { task, session_id, execution_id, body, bodies, ...known }
    })
  })
}

const newestBySource = (
  sources: ReadonlyArray<ResultsSource>,
  bodies: ReadonlyArray<LandedBody>,
): ReadonlyArray<LandedBody> => {
  const newest = new Map(bodies.map((body) => [sourceNameOf(body.meta), body]))
  return sources.flatMap(({ name }) => newest.get(name) ?? [])
}

const pictureOf = (
  state: RunState,
  frames: ReadonlyArray<LandedBody>,
  engines: ReadonlyArray<EngineSaid>,
): RunPicture => {
  const stateOf = new Map<string, LandedBody>()
  for (const frame of frames) {
    // Landed when a run is over, which a service may also say in a 202 (4.2): `is_closed` decides.
    const { kind, execution_id } = frame.meta
    if (kind === "state" && execution_id !== undefined) stateOf.set(execution_id, frame)
  }
  const framesByTask = Map.groupBy(frames, ({ meta }) => meta.task_id)
  return { state, engines, frames, framesByTask, stateOf, sessions: sessionsOf(state, frames) }
}

/** All frames about one attempt: its start, states, challenges, and its session's results. */
export const framesOf = (
  picture: RunPicture,
  task: TaskState,
  { attempt, execution_id, session_id }: AttemptState,
): ReadonlyArray<LandedBody> =>
  (picture.framesByTask.get(task.planned.task_id) ?? []).filter(({ meta }) =>
    meta.execution_id === undefined
      ? meta.attempt === attempt || (session_id !== undefined && meta.session_id === session_id)
      : meta.execution_id === execution_id,
  )

/**
 * The picture of a run that goes on, with whole tasks only: those that are settled and over. Of any other it
 * shows that it is planned, as if nothing had been done for it yet.
 */
export const onlyOver = (picture: RunPicture, over: ReadonlySet<string>): RunPicture => {
  const open = new Set<string>()
  const tasks = new Map<string, TaskState>()
  for (const [task_id, task] of picture.state.tasks) {
    const isOver = task.settled !== undefined && over.has(task_id)
    if (!isOver) open.add(task_id)
    tasks.set(task_id, isOver ? task : planTask(undefined, task.planned, task.planned_at))
  }
  return { ...picture, state: { ...picture.state, tasks }, open }
}

export const loadPicture = Effect.fn("Publishing.loadPicture")(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const landing = yield* Landing
  const failed = ({ message }: { readonly message: string }) => new PublishFailed({ message, damaged: true })
  const state = yield* Effect.mapError(ledger.state(run_id), ledgerFailed)
  if (state === undefined) return yield* failed({ message: `the ledger has no run ${run_id}` })
  const { landing: pruned } = yield* Effect.mapError(ledger.pruned, ledgerFailed)
  const prunedAt = pruned.get(run_id)
  if (prunedAt !== undefined) {
    return yield* failed({ message: `its landed bodies were pruned on ${isoDay(prunedAt)}` })
  }
  const listed = landing.list(run_id)
  const frames = withoutLost(
    state,
    yield* Effect.mapError(listed, ({ path, message }) => failed({ message: `${path}: ${message}` })),
  )
  const [missing] = missingBodies(state, frames)
  if (missing !== undefined) {
    const where = `landing/${run_id}/${missing.segment}`
    return yield* failed({
      message: `${where}: no body at offset ${missing.offset}, which the ledger refers to`,
    })
  }
  return pictureOf(state, frames, yield* Effect.mapError(enginesOf(state), ledgerFailed))
})

/** In the place of one that was removed, the same body may stand again. */
const withoutLost = (state: RunState, frames: ReadonlyArray<LandedBody>): ReadonlyArray<LandedBody> => {
  const lost = new Set([...state.tasks.values()].flatMap((task) => task.lost ?? []).map(place))
  if (lost.size === 0) return frames
  for (const ref of refsIn(state)) lost.delete(place(ref))
  return frames.filter(({ ref }) => !lost.has(place(ref)))
}

/** Which bodies of closed executions and of sessions are damaged or gone, and may still be at the service. */
export const findLostBodies = Effect.fn("Publishing.findLostBodies")(function* (state: RunState) {
  const landing = yield* Landing
  const { run_id } = state.started
  const frames = withoutLost(state, yield* Effect.orElseSucceed(landing.list(run_id), () => []))
  const bad = new Set(missingBodies(state, frames).map(place))
  for (const { ref } of frames)
    if ((yield* Effect.result(landing.read(run_id, ref)))._tag === "Failure") bad.add(place(ref))
  const picture = pictureOf(state, frames, [])
  return [...state.tasks.values()].flatMap((task) => {
    const facts = [...task.results.map(({ fact }) => fact), ...(task.refused ?? [])]
    const lostOf = (
      attempt: ClosedAttempt | undefined,
      told: ReadonlyArray<{ readonly landed?: LandedRef | undefined }>,
      landed: ReadonlyArray<LandedBody>,
    ) => {
      const refs = [...told.flatMap((fact) => fact.landed ?? []), ...landed.map(({ ref }) => ref)]
      const bodies = refs.filter((ref) => bad.has(place(ref)))
      return bodies.length === 0 ? [] : [{ task, attempt, bodies }]
    }
    const { task_id, session_id } = task.planned
    if (session_id !== undefined) return lostOf(undefined, facts, picture.framesByTask.get(task_id) ?? [])
    return task.attempts.filter(isClosed).flatMap((attempt) => {
      if (!remainsAny(attempt, "unread", "kept", "due", "asked")) return []
      const own = facts.filter(({ execution_id }) => execution_id === attempt.execution_id)
      return lostOf(attempt, [attempt.closed.fact, ...own], framesOf(picture, task, attempt))
    })
  })
})

/**
 * What the catalogue last said before the run was published: derived again later, its rows are the same. A
 * run that was resumed after that is published as a new one.
 */
const enginesOf = Effect.fnUntraced(function* ({ tasks, published, stages }: RunState) {
  const said = published?.fact.engines
  if (said !== undefined && (stages.resumed ?? 0) <= (published?.at ?? 0)) return said
  const ledger = yield* Ledger
  const references = new Set([...tasks.values()].flatMap(({ planned }) => planned.engine_reference ?? []))
  const forms = yield* Effect.forEach(references, (reference) => ledger.cachedForm(reference))
  return forms.flatMap((form) => (form === undefined ? [] : [saidIn(form)]))
})

const columns = new Set(engineFields.map(({ name }) => name))

const saidIn = ({ body, ...form }: CachedForm): EngineSaid => {
  const details: unknown = JSON.parse(body)
  const known = Object.entries(isObject(details) ? details : {})
  const said = Object.fromEntries(known.filter(([name]) => columns.has(name)))
  return { ...form, body: JSON.stringify(said) }
}
