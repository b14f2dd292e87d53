/**
 * Publishes finished tasks while a run continues, if its job asks for it (`publish: { every: … }`). It
 * decides nothing about the run: whatever goes wrong here costs one version and one line. It is interrupted
 * at the end of the run, which waits until a version is either in place or gone.
 */
import { Cause, Clock, Duration, Effect, Record, Struct } from "effect"
import { given } from "../base/Schemas.ts"
import type { Fact } from "../ledger/Fact.ts"
import { Ledger, append } from "../ledger/Ledger.ts"
import type { LeftOutBody, RunPublished } from "../ledger/RunFacts.ts"
import { isToDelete, type RunState } from "../ledger/RunState.ts"
import type { RunId } from "../service/Ids.ts"
import { Publisher, type Released } from "../tables/Publisher.ts"
import { tell } from "../task/Progress.ts"
import { attemptsToReadAgain, next } from "../task/Next.ts"

/** Between two versions lies this many times as long as the last one took: most of the time is the run's. */
const restFactor = 4

interface Pace {
  readonly every: Duration.Duration
  /** When the last one was begun, and when it was done; milliseconds. */
  readonly begunAt: number
  readonly doneAt: number
}

/** The earliest time at which the next version may begin, in milliseconds. */
export const nextInterimAt = ({ every, begunAt, doneAt }: Pace): number =>
  Math.max(begunAt + Duration.toMillis(every), doneAt + restFactor * (doneAt - begunAt))

/** A run that was published with what it did, or is held back, changes in the tables only as a whole. */
export const mayHaveInterims = ({ held, accepted, published, tasks }: RunState): boolean =>
  held === undefined &&
  accepted === undefined &&
  (published === undefined ||
    [...tasks.values()].every(
      ({ attempts, settled }) => attempts.length === 0 && (settled?.seq ?? Infinity) > published.seq,
    ))

/**
 * Settled since this process took the run up, or before and left alone by it. One whose kept executions are
 * read again may still change.
 */
export const tasksOver = (before: RunState, now: RunState): ReadonlySet<string> => {
  const over = new Set<string>()
  for (const [task_id, { settled }] of now.tasks) {
    if (settled === undefined) continue
    const known = before.tasks.get(task_id)
    if (attemptsToReadAgain(known).length > 0) continue
    const isLeftAlone = known !== undefined && next(known, "night")._tag === "Done"
    if (isLeftAlone || settled.seq > before.newest) over.add(task_id)
  }
  return over
}

/** The place of the newest verdict among these tasks: a further version needs a later one. */
const newestVerdict = ({ tasks }: RunState, over: ReadonlySet<string>): number =>
  Math.max(0, ...[...over].map((task_id) => tasks.get(task_id)?.settled?.seq ?? 0))

/** What an attempt to publish came to; undefined if there was nothing to publish. */
const publishOnce = Effect.fnUntraced(function* (before: RunState, verdict: number) {
  const { run_id } = before.started
  const ledger = yield* Ledger
  const publisher = yield* Publisher
  const now = yield* ledger.state(run_id)
  if (now === undefined) return undefined
  const over = tasksOver(before, now)
  const newest = newestVerdict(now, over)
  // The end of the run publishes all of it.
  if (newest <= verdict || over.size === now.tasks.size) return undefined
  return { newest, news: yield* publisher.publishInterim(run_id, over) }
})

/** What it was, for people: a defect only by its kind, because its message may quote a record. */
const whyOf = (cause: Cause.Cause<{ readonly message: string }>): string => {
  const failure = Cause.findErrorOption(cause)
  if (failure._tag === "Some") return failure.value.message
  const defect = Cause.squash(cause)
  return `a defect in the program (${defect instanceof Error ? defect.name : typeof defect})`
}

/** Never ends by itself, and never fails. */
export const publishMeanwhile = Effect.fn("Nightly.publishMeanwhile")(function* (
  before: RunState,
  every: Duration.Duration,
) {
  const { run_id } = before.started
  let begunAt = yield* Clock.currentTimeMillis
  let doneAt = begunAt
  let verdict = 0
  let refusal: string | undefined
  for (;;) {
    const dueAt = nextInterimAt({ every, begunAt, doneAt })
    yield* Effect.sleep(Math.max(1, dueAt - (yield* Clock.currentTimeMillis)))
    begunAt = yield* Clock.currentTimeMillis
    const tried = yield* publishOnce(before, verdict).pipe(
      Effect.catchCause((cause) =>
        Cause.hasInterrupts(cause)
          ? Effect.interrupt
          : Effect.as(Effect.logDebug(cause), {
              newest: verdict,
              news: { _tag: "InterimRefused", run_id, message: whyOf(cause) } as const,
            }),
      ),
    )
    doneAt = yield* Clock.currentTimeMillis
    if (tried === undefined) continue
    verdict = tried.newest
    const { news } = tried
    const why = news._tag === "InterimRefused" ? news.message : undefined
    // The same reason again and again is one line.
    if (why === undefined || why !== refusal) {
      yield* Effect.ignore(append(news))
      yield* tell({ _tag: "Noted", fact: news })
    }
    refusal = why
  }
})

// The stage in which a run's landed bodies become tables: what was published, what had to be left out of it,
// and what a gate held back, are facts; an execution whose body was left out stays at the service.

/** The state of a run that must be in the ledger. */
export const runIn = Effect.fnUntraced(function* (ledger: Ledger["Service"], run_id: RunId) {
  const state = yield* ledger.state(run_id)
  return state ?? (yield* Effect.die(new Error(`the ledger has no run ${run_id}`)))
})

/** Returns earlier runs that were held back until this version: they are still to be deleted and ended. */
export const publishStage = Effect.fnUntraced(function* (run_id: RunId) {
  const ledger = yield* Ledger
  const publisher = yield* Publisher
  yield* tell({ _tag: "Stage", run_id, stage: "publishing" })
  const published = yield* publisher
    .publish(run_id)
    .pipe(
      Effect.catchTag("PublicationHeld", ({ database, gates }) =>
        Effect.as(ledger.append([{ _tag: "RunHeld", run_id, database, gates }]), undefined),
      ),
    )
  if (published === undefined) return []
  const { version, without, restored, unfit, models, gone, lists, taken } = published
  const { stale, shared_sessions, released = [] } = published
  const own: Fact = {
    ...publishedFact(run_id, version, published),
    ...filled({ without, restored, unfit, models, gone, lists, taken }),
    ...given({ stale, shared_sessions }),
  }
  const facts: Array<Fact> = [own, ...keptFacts(yield* runIn(ledger, run_id), published.left_out)]
  for (const one of released)
    facts.push(
      publishedFact(one.run_id, version, one),
      ...keptFacts(yield* runIn(ledger, one.run_id), one.left_out),
    )
  // Together: a run of which this is recorded never lacks the runs that became current with it.
  yield* ledger.append(facts)
  return released.map((one) => one.run_id)
})

const publishedFact = (
  run_id: RunId,
  version: number,
  published: Omit<Released, "run_id">,
): typeof RunPublished.Type => ({
  _tag: "RunPublished",
  run_id,
  version,
  receipts: published.receipts,
  ...filled(Struct.pick(published, ["left_out", "delivered", "misfits", "rejected"])),
  ...given(Struct.pick(published, ["engines", "garbled", "features_left"])),
  other: published.other,
})

/** The lists with something in them. */
const filled = <Lists extends Readonly<Record<string, ReadonlyArray<unknown> | undefined>>>(lists: Lists) =>
  Record.filter(lists, (list) => list !== undefined && list.length > 0) as Partial<Lists>

/** An execution with a body that could not be published stays at the service, whatever was proved before. */
const keptFacts = (
  { started: { run_id }, tasks }: RunState,
  left_out: ReadonlyArray<LeftOutBody>,
): ReadonlyArray<Fact> =>
  [...new Map(left_out.map((one) => [one.execution_id, one])).values()].flatMap(
    (one): ReadonlyArray<Fact> => {
      const { task_id, execution_id, where, reason } = one
      const of = tasks.get(task_id)?.attempts.find((one) => one.execution_id === execution_id)
      if (of === undefined || execution_id === undefined || !isToDelete(of)) return []
      const message = `landing/${run_id}/${where} is not in the tables: ${reason}`
      const ids = { run_id, task_id, attempt: of.attempt, execution_id }
      return [{ _tag: "AttemptKept", ...ids, reason: "ANSWER_UNUSABLE", families: [], message }]
    },
  )
