/**
 * Reads what a session holds until it is final or the time for it is over (sections 2.7, 3.4 and 4.10): one
 * request per `min_interval` and session, at growing intervals or after a hint; every new body is landed
 * before it counts. Where flow results are missing, the profile endpoint of section 4.12 is asked. Documents
 * are downloaded once the results are final.
 */
import { Clock, Effect } from "effect"
import { retryCall } from "../client/Backoff.ts"
import { Hints } from "../client/Hints.ts"
import type { HintWatch } from "../client/Hints.ts"
import { Service } from "../client/Service.ts"
import type { Body, CallFailure, ResultsAnswer } from "../client/Service.ts"
import { Landing } from "../landing/Landing.ts"
import { blank } from "../landing/Blanking.ts"
import type { Fact, LandedRef } from "../ledger/Fact.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { attachmentIds } from "../records/AttachmentIds.ts"
import { findRecords } from "../records/FindRecords.ts"
import { nextLookInMs } from "../scheduling/Polling.ts"
import { countedTotal, isReachable } from "./Verdict.ts"
import type { Reading } from "./Verdict.ts"

/** The session of an execution, or one that a customer ran alone. Times are milliseconds. */
export interface PullOrder {
  readonly run_id: string
  readonly task_id: string
  readonly session_id: string
  readonly attempt: number | undefined
  readonly execution_id: string | undefined
  readonly customer_id: string | undefined
  readonly engine_reference: string | undefined
  readonly products_count: Readonly<Record<string, number>>
  /** An earlier process may have asked for this session a moment ago, by whatever clock. */
  readonly mayHaveBeenRead: boolean
  /** Documents that need no further request. */
  readonly attachmentsKnown: ReadonlySet<string>
  readonly secrets: ReadonlyArray<string>
  readonly min_interval_ms: number
  readonly wait_final_ms: number
  readonly attachments: boolean
}

/** Intervals between reads of a partial session grow to this. */
const intervalMaxMs = 60_000
/** Counted products and an unknown session: the service gets this many reads to know it. */
const absentReadsMin = 3
const profileTriesMax = 6
const attachmentTriesMax = 6

const append = (fact: Fact) => Effect.flatMap(Ledger, (ledger) => ledger.append([fact]))

const landBody = Effect.fnUntraced(function* (order: PullOrder, kind: "results" | "profile", body: Body) {
  const landing = yield* Landing
  const { run_id, task_id, session_id, attempt, execution_id, customer_id, engine_reference } = order
  return yield* landing.land(
    {
      kind,
      run_id,
      task_id,
      session_id,
      http_status: 200,
      received_at: Math.trunc(yield* Clock.currentTimeMillis),
      ...(attempt === undefined ? {} : { attempt }),
      ...(execution_id === undefined ? {} : { execution_id }),
      ...(customer_id === undefined ? {} : { customer_id }),
      ...(engine_reference === undefined ? {} : { engine_reference }),
    },
    blank(body.bytes, kind, order.secrets),
  )
})

const resultsRead = (
  order: PullOrder,
  kind: "results" | "profile",
  http_status: number,
  is_closed: boolean,
  landed: LandedRef | undefined,
): Fact => ({
  _tag: "ResultsRead",
  run_id: order.run_id,
  task_id: order.task_id,
  session_id: order.session_id,
  ...(order.execution_id === undefined ? {} : { execution_id: order.execution_id }),
  http_status,
  kind,
  is_closed,
  ...(landed === undefined ? {} : { landed }),
})

/** Pulls one session; `Final`, `Partial` or `Absent` as `Verdict.ts` reads them. */
export const pullResults = Effect.fn("PullResults.pull")(function* (order: PullOrder) {
  const source = yield* Hints
  const hints = yield* source.watch({ ids: [order.session_id], engine_reference: undefined })
  const counted = countedTotal(order.products_count)
  const startedAt = yield* Clock.currentTimeMillis
  const until = startedAt + order.wait_final_ms
  const pace = { min_ms: order.min_interval_ms, max_ms: Math.max(intervalMaxMs, order.min_interval_ms) }
  let readAt = order.mayHaveBeenRead ? startedAt : -Infinity
  let landedBytes: Uint8Array | undefined
  let landed: LandedRef | undefined
  let absentReads = 0
  for (;;) {
    const now = yield* Clock.currentTimeMillis
    if (now - readAt < order.min_interval_ms) yield* Effect.sleep(order.min_interval_ms - (now - readAt))
    const hinted = hints.beginLook(yield* Clock.currentTimeMillis)
    const answer = yield* readOnce(order)
    readAt = yield* Clock.currentTimeMillis
    if (answer._tag === "Results") {
      const isNew = landedBytes === undefined || !equalBytes(landedBytes, answer.body.bytes)
      hints.endLook({ hinted, first: true, told: isNew ? "news" : "nothing" })
      if (isNew) {
        landed = yield* landBody(order, "results", answer.body)
        landedBytes = answer.body.bytes
        yield* append(resultsRead(order, "results", 200, answer.is_closed, landed))
      } else if (answer.is_closed) yield* append(resultsRead(order, "results", 200, true, landed))
      if (answer.is_closed) {
        const all = order.attachments ? yield* pullAttachments(order, dataOf(answer.body)) : true
        return (all ? { _tag: "Final" } : { _tag: "Partial" }) satisfies Reading as Reading
      }
    } else if (answer._tag === "SessionNotFound" || answer._tag === "NeverStarted") {
      absentReads += 1
      if (answer._tag === "NeverStarted") return yield* readWithoutSession(order, counted, 412)
      if (counted === 0 || absentReads >= absentReadsMin)
        return yield* readWithoutSession(order, counted, 404)
    }
    const later = yield* Clock.currentTimeMillis
    const asked = answer._tag === "Throttled" ? (answer.retry_after_ms ?? 0) : 0
    const wait = Math.max(asked, nextLookInMs(pace, later - startedAt))
    if (later + wait > until) {
      // There is no time for a further read: what the last one said is believed.
      if (answer._tag === "SessionNotFound") return yield* readWithoutSession(order, counted, 404)
      return { _tag: "Partial" } satisfies Reading as Reading
    }
    yield* awaitRead(hints, { later, wait, soonest: Math.max(asked, readAt + order.min_interval_ms - later) })
  }
}, Effect.scoped)

/** Sleeps until the next read: `wait` milliseconds from `later`, after a hint only the `soonest` of them. */
const awaitRead = Effect.fnUntraced(function* (
  hints: HintWatch,
  { later, wait, soonest }: { readonly later: number; readonly wait: number; readonly soonest: number },
) {
  for (let now = later; ; now = yield* Clock.currentTimeMillis) {
    const due = later + (hints.isHinted() ? Math.min(wait, soonest) : wait)
    if (due <= now) return
    yield* hints.rest(due - now)
  }
})

const readWithoutSession = Effect.fnUntraced(function* (
  order: PullOrder,
  counted: number,
  http_status: 404 | 412,
) {
  yield* append(resultsRead(order, "results", http_status, true, undefined))
  return yield* readProfile(order, counted)
})

const readOnce = Effect.fnUntraced(function* (order: PullOrder) {
  const service = yield* Service
  return yield* Effect.catch(
    service.readFlowResults(order.session_id),
    (failure): Effect.Effect<ResultsAnswer | CallFailure> => Effect.succeed(failure),
  )
})

const equalBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0

const dataOf = (body: Body): unknown =>
  typeof body.json === "object" && body.json !== null && "data" in body.json ? body.json.data : undefined

/** Section 4.12: landed as it comes, if there is one. */
const readProfile = Effect.fnUntraced(function* (order: PullOrder, counted: number) {
  const { execution_id } = order
  if (execution_id === undefined) return absent(counted, counted === 0)
  const service = yield* Service
  const answer = yield* Effect.catch(
    retryCall(service.readProfile(execution_id), { triesMax: profileTriesMax }),
    (failure: CallFailure) => Effect.succeed(failure),
  )
  if (answer._tag === "Profile") {
    const landed = yield* landBody(order, "profile", answer.body)
    yield* append(resultsRead(order, "profile", 200, true, landed))
    const found = new Set(findRecords(answer.body.json).records.map((record) => record.sub_family))
    return absent(counted, isReachable(order.products_count, found))
  }
  // An endpoint whose answer is not shown may answer anything; what is not a body is no body.
  if (answer._tag === "Missing" || answer._tag === "UnexpectedAnswer") return absent(counted, counted === 0)
  return { _tag: "Partial" } satisfies Reading as Reading
})

const absent = (counted: number, reachable: boolean): Reading => ({ _tag: "Absent", counted, reachable })

/**
 * Downloads every document that the data names; false when one could not be had although the service has it.
 */
const pullAttachments = Effect.fnUntraced(function* (order: PullOrder, data: unknown) {
  const { requestable, refused } = attachmentIds(data)
  const about = { run_id: order.run_id, task_id: order.task_id, session_id: order.session_id }
  for (const attachment_id of refused)
    if (!order.attachmentsKnown.has(attachment_id))
      yield* append({ _tag: "AttachmentRead", ...about, attachment_id, status: "refused" })
  let all = true
  for (const attachment_id of requestable) {
    if (order.attachmentsKnown.has(attachment_id)) continue
    const fact = yield* downloadAttachment(order, attachment_id)
    yield* append({ _tag: "AttachmentRead", ...about, attachment_id, ...fact })
    if (fact.status === "failed") all = false
  }
  return all
})

const downloadAttachment = Effect.fnUntraced(function* (order: PullOrder, attachment_id: string) {
  const service = yield* Service
  const landing = yield* Landing
  const download = Effect.gen(function* () {
    const answer = yield* service.downloadAttachment(order.session_id, attachment_id)
    if (answer._tag === "Missing") return { status: "missing" } as const
    const stored = yield* landing.landAttachment(answer.bytes)
    const { media_type } = answer
    return { status: "downloaded", ...stored, ...(media_type === undefined ? {} : { media_type }) } as const
  })
  // A disk that does not take the document ends the night; a service that does not give it only marks it.
  return yield* retryDownload(download)
})

const retryDownload = <A, E extends { readonly _tag: string }, R>(
  download: Effect.Effect<A, E | CallFailure, R>,
) =>
  Effect.suspend(() => {
    const split = Effect.matchEffect(download, {
      onSuccess: (stored) => Effect.succeed({ _tag: "Stored", stored } as const),
      onFailure: (failure) =>
        isCallFailure(failure)
          ? Effect.fail(failure)
          : Effect.succeed({ _tag: "Broken", failure: failure as Exclude<E, CallFailure> } as const),
    })
    return retryCall(split, { triesMax: attachmentTriesMax })
  }).pipe(
    Effect.matchEffect({
      onSuccess: (result) =>
        result._tag === "Stored" ? Effect.succeed(result.stored) : Effect.fail(result.failure),
      onFailure: () => Effect.succeed({ status: "failed" } as const),
    }),
  )

const callFailureTags: ReadonlySet<string> = new Set([
  "NotSent",
  "AnswerLost",
  "Throttled",
  "SecretRefused",
  "UnexpectedAnswer",
])
const isCallFailure = (failure: { readonly _tag: string }): failure is CallFailure =>
  callFailureTags.has(failure._tag)
