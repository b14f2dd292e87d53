/**
 * Reads the records of a session from the endpoints that may return them, one after the other (sections 2.7,
 * 3.4, 4.10 and 4.12): first flow results, then any other that may hold what was counted and is not here yet.
 * Each is read until it is final or its time is up, at growing intervals or after a hint; every new body is
 * landed before it counts, and every answer without results is a fact.
 */
import { Clock, Data, Duration, Effect, Stream } from "effect"
import { sha256Hex } from "../base/Hashes.ts"
import { given } from "../base/Schemas.ts"
import { isSendable } from "../client/CallFailures.ts"
import { Hints, type HintWatch } from "../client/Hints.ts"
import { askedWait, retryCall } from "../client/Pacing.ts"
import { nextLookInMs } from "../client/Polling.ts"
import { Service, type Body, type CallFailure, type ResultsAnswer } from "../client/Service.ts"
import { Landing, LandingFailed } from "../landing/Landing.ts"
import type { AnswerRefused, AttachmentRead, LandedRef, ResultsRead } from "../ledger/Fact.ts"
import { taskKeys, type TaskKeys } from "../ledger/FactKeys.ts"
import { append } from "../ledger/Ledger.ts"
import { attachmentIds, type AttachmentIds } from "../records/ExactNumber.ts"
import { isAddressable, isFinal, recordsIn } from "../service/FlowResults.ts"
import type { ProductsCount, ResultsSource } from "../service/FlowResults.ts"
import type { CustomerId, EngineReference, ExecutionId, SessionId } from "../service/Ids.ts"
import { findingOf, isWanted, type SourceFinding } from "./DrainProof.ts"
import { answeredBy, answerOf } from "./Ending.ts"
import { handleAnswer, refuseUnusable } from "./Quarantine.ts"

/** The session of an execution, or one that a customer ran alone. */
interface ReadOrder extends TaskKeys {
  readonly session_id: SessionId
  /** What the service is asked for: the session's id, or one that it had before. */
  readonly asked_as: SessionId
  readonly attempt: number | undefined
  readonly execution_id: ExecutionId | undefined
  readonly customer_id: CustomerId | undefined
  readonly engine_reference: EngineReference | undefined
  /** An earlier process may have read this session a moment ago, on whatever clock. */
  readonly mayHaveBeenRead: boolean
  /** The newest answer of each source for this session in the ledger, by the source's name. */
  readonly readBefore: ReadonlyMap<string, typeof ResultsRead.Type>
  /** What became of the session's documents before. */
  readonly attachmentsBefore: ReadonlyMap<string, DocumentStatus>
  /** Answers that this task could not use before. */
  readonly refused: ReadonlyArray<typeof AnswerRefused.Type>
  readonly min_interval: Duration.Duration
  /** How long to wait for final results, from the first read; zero for a single read. */
  readonly wait_final: Duration.Duration
  readonly attachments: boolean
  /** Clock time after which this run reads nothing more. */
  readonly lastAnswerAt: number
}

/** The result of reading one endpoint. */
export type SourceReading =
  /** `lacksDocuments`: not every document that they name is here, and the service may have it. */
  | { readonly _tag: "Final"; readonly finding: SourceFinding; readonly lacksDocuments?: true }
  /** Still partial when its time was up, or the service did not answer; then with its last answer. */
  | { readonly _tag: "Unfinished"; readonly message?: string }
  /** A status that its row lists as "nothing here". */
  | { readonly _tag: "Nothing"; readonly http_status: number }
  /** Any other 4xx; no status if these ids cannot even be requested. */
  | { readonly _tag: "Refused"; readonly http_status: number | undefined }

interface PullOrder extends Omit<ReadOrder, "asked_as"> {
  /** What the service called the session before, newest first. */
  readonly sessionsBefore: ReadonlyArray<SessionId>
  /** What the last state counted; for a session that its customer ran alone, there is no count. */
  readonly count: ProductsCount
  /** The rows of the endpoints, in the order in which they are read. */
  readonly sources: ReadonlyArray<ResultsSource>
}

/** The result of each endpoint that was read, in that order. */
export type Pulled = ReadonlyArray<{ readonly source: ResultsSource; readonly reading: SourceReading }>

/** Always reads the first endpoint, and every other one while something is missing that it may return. */
export const pullResults = Effect.fn("PullResults.pull")(function* (order: PullOrder) {
  const { count } = order
  const sources = order.sources.filter((source) => source.enabled && isAddressable(source, order))
  const pulled: Array<Pulled[number]> = []
  for (const source of sources) {
    const findings = pulled.flatMap(({ reading }) => (reading._tag === "Final" ? [reading.finding] : []))
    const wanted = isWanted(source, count, findings)
    if (pulled.length > 0 && !wanted) continue
    const reading = yield* readCalled(order, source, wanted)
    pulled.push({ source, reading })
    // Results that are not final yet may still become complete: no other endpoint is read before that.
    if (reading._tag === "Unfinished") break
  }
  return pulled satisfies Pulled as Pulled
})

/** First by the id that brought results before, else by the newest. */
const namesOf = ({ session_id, sessionsBefore, readBefore }: PullOrder, { name, path }: ResultsSource) => {
  if (!path.includes("{session_id}")) return [session_id]
  const { landed, asked_as = session_id } = readBefore.get(name) ?? {}
  const names = [session_id, ...sessionsBefore]
  return landed === undefined ? names : [asked_as, ...names.filter((id) => id !== asked_as)]
}

/** An id of before counts only with results: that nothing is there is said of the newest id. */
const readCalled = Effect.fnUntraced(function* (order: PullOrder, source: ResultsSource, wanted: boolean) {
  let said: SourceReading = { _tag: "Refused", http_status: undefined }
  for (const [index, asked_as] of namesOf(order, source).entries()) {
    // To the service it may be the same session, which is asked for once per interval.
    const mayHaveBeenRead = order.mayHaveBeenRead || index > 0
    const reading = yield* readSource({ ...order, asked_as, mayHaveBeenRead }, source)
    const isNewest = asked_as === order.session_id
    if (reading._tag === "Final") return reading
    if (reading._tag === "Unfinished" && (isNewest || reading.message === undefined)) return reading
    if (isNewest && reading._tag === "Nothing" && !wanted) return reading
    if (isNewest) said = reading
  }
  return said
})

// One endpoint: one request per `min_interval` and session.

/** Intervals between reads of a partial session grow to this. */
const intervalMax = Duration.minutes(1)
/** A 404 and a refusal that may pass get this many reads, also if nothing was counted: counts can be late. */
const absentReadsMin = 3

/** One endpoint, and what is remembered between its reads. */
interface Reads {
  readonly order: ReadOrder
  readonly source: ResultsSource
  /** For the newest results only; the bytes themselves would stay in memory as long as they are partial. */
  sha256: string | undefined
  landed: LandedRef | undefined
  /** Answers in a row that say that there is nothing, or that refuse. */
  empty: number
}

/** Lands a body, unless an earlier process landed the same one last. */
const landBody = Effect.fnUntraced(function* ({ order, source }: Reads, { bytes }: Body) {
  const landing = yield* Landing
  const before = order.readBefore.get(source.name)?.landed
  if (before !== undefined && before.sha256 === sha256Hex(bytes)) return before
  const { run_id, task_id, session_id, attempt, execution_id, customer_id, engine_reference } = order
  return yield* landing.land(
    {
      kind: kindOf(source),
      source: source.name,
      run_id,
      task_id,
      session_id,
      http_status: 200,
      received_at: Math.trunc(yield* Clock.currentTimeMillis),
      ...given({ attempt, execution_id, customer_id, engine_reference }),
    },
    bytes,
  )
})

const kindOf = ({ name }: ResultsSource) => (name === "profile" ? "profile" : "results")

/** Writes what was answered; an answer that repeats the last one is not news, and not a fact. */
const note = Effect.fnUntraced(function* (
  { order, source }: Reads,
  http_status: number,
  is_closed: boolean,
  landed?: LandedRef,
) {
  const { run_id, task_id, session_id, asked_as, execution_id } = order
  const before = order.readBefore.get(source.name)
  const isKnown =
    before?.http_status === http_status &&
    before.is_closed === is_closed &&
    before.landed?.sha256 === landed?.sha256
  if (isKnown) return
  yield* append({
    _tag: "ResultsRead",
    run_id,
    task_id,
    session_id,
    ...given({ asked_as: asked_as === session_id ? undefined : asked_as, execution_id }),
    http_status,
    kind: kindOf(source),
    source: source.name,
    is_closed,
    ...given({ landed }),
  })
})

type Answered = ResultsAnswer | CallFailure

const readSource = Effect.fn("ReadSource.read")(function* (order: ReadOrder, source: ResultsSource) {
  if (!isSendable(source, idsIn(order))) return refusedUnasked
  const hintsOf = yield* Hints
  const hints = yield* hintsOf.watch({ ids: [order.session_id, order.asked_as], engine_reference: undefined })
  const startedAt = yield* Clock.currentTimeMillis
  const pace = { min: order.min_interval, max: Duration.max(intervalMax, order.min_interval) }
  const intervalMs = Duration.toMillis(order.min_interval)
  const waitFinalUntil = startedAt + Duration.toMillis(order.wait_final)
  const reads: Reads = { order, source, sha256: undefined, landed: undefined, empty: 0 }
  let readAt = order.mayHaveBeenRead ? startedAt : -Infinity
  for (;;) {
    const now = yield* Clock.currentTimeMillis
    if (now - readAt < intervalMs) yield* Effect.sleep(intervalMs - (now - readAt))
    const hinted = hints.beginLook(yield* Clock.currentTimeMillis)
    const look = yield* handleAnswer(
      { what: source.name, ...order },
      lookOnce(reads, (isNew) => hints.endLook({ hinted, first: true, told: isNew ? "news" : "nothing" })),
    )
    readAt = look.readAt
    const { reading, documents } = look
    const isHere = documents === undefined || (yield* pullAttachments(order, documents))
    if (reading?._tag === "Final" && !isHere) return { ...reading, lacksDocuments: true } as const
    if (reading !== undefined) return reading
    const later = yield* Clock.currentTimeMillis
    const wait = Math.max(look.askedMs, nextLookInMs(pace, later - startedAt))
    // There is no time for another read: the last answer is believed.
    if (later + wait > Math.min(waitFinalUntil, order.lastAnswerAt)) return yield* giveUp(reads, look.said)
    yield* awaitRead(hints, { later, wait, soonest: Math.max(look.askedMs, readAt + intervalMs - later) })
  }
}, Effect.scoped)

/** Only a small result remains: a task that waits for another read holds no body. */
const lookOnce = Effect.fnUntraced(function* (reads: Reads, endLook: (isNew: boolean) => void) {
  const { order, source } = reads
  const service = yield* Service
  const answer = yield* answerOf(service.readResults(source, idsIn(order)))
  const readAt = yield* Clock.currentTimeMillis
  yield* refuseUnusable({ what: source.name, ...order }, answer, 200)
  const sha256 = answer._tag === "Results" ? sha256Hex(answer.body.bytes) : undefined
  const isNew = sha256 !== undefined && sha256 !== reads.sha256
  if (sha256 !== undefined) endLook(isNew)
  const reading = yield* takeAnswer(reads, answer, isNew)
  if (isNew) reads.sha256 = sha256
  const askedMs = "message" in answer ? Duration.toMillis(askedWait(answer)) : 0
  const hasDocuments = order.attachments && source.attachments && reading?._tag === "Final"
  const documents =
    hasDocuments && answer._tag === "Results" ? attachmentIds(recordsIn(source, answer.body.json)) : undefined
  return { reading, readAt, askedMs, documents, said: saidOf(answer) }
})

/** What the last answer means once there is no time for another. */
interface Said {
  readonly empty: Empty | undefined
  readonly http_status: number | undefined
  readonly message: string | undefined
}

const saidOf = (answer: Answered): Said => ({
  empty: answer._tag === "Results" ? undefined : emptyOf(answer),
  http_status: "http_status" in answer ? answer.http_status : undefined,
  message: "message" in answer ? answer.message : undefined,
})

const refusedUnasked: SourceReading = { _tag: "Refused", http_status: undefined }

/** The result that an answer makes certain; undefined while another read may show more. */
const takeAnswer = Effect.fnUntraced(function* (reads: Reads, answer: Answered, isNew: boolean) {
  const { source } = reads
  if (answer._tag !== "Results") {
    const empty = emptyOf(answer)
    reads.empty = empty === undefined ? 0 : reads.empty + 1
    // What was there a moment ago may come back: until the time is up, its absence proves nothing.
    if (empty === undefined || reads.sha256 !== undefined) return undefined
    return isBelieved(empty, reads.empty) ? yield* told(reads, empty) : undefined
  }
  const final = isFinal(source, answer.body.json)
  if (isNew) reads.landed = yield* landBody(reads, answer.body)
  if (isNew || final) yield* note(reads, 200, final, reads.landed)
  if (!final) return undefined
  const reading: SourceReading = { _tag: "Final", finding: findingOf(source, answer.body.json) }
  return reading
})

type Empty = Extract<SourceReading, { _tag: "Nothing" | "Refused" }> & { readonly http_status: number }

/** An answer that is not results and by itself needs no other try. */
const emptyOf = (answer: Exclude<Answered, { _tag: "Results" }>): Empty | undefined => {
  if (answer._tag === "NothingThere") return { _tag: "Nothing", http_status: answer.http_status }
  if (answer._tag !== "UnexpectedAnswer" && answer._tag !== "SecretRefused") return undefined
  const { http_status } = answer
  return http_status >= 400 && http_status < 500 ? { _tag: "Refused", http_status } : undefined
}

/** A service may need a moment to know a session or a secret; a 412 or a 422 will not change. */
const isBelieved = ({ http_status }: Empty, times: number): boolean =>
  http_status === 412 || http_status === 422 || times >= absentReadsMin

const told = (reads: Reads, reading: Empty) =>
  Effect.as(note(reads, reading.http_status, reading._tag === "Nothing"), reading as SourceReading)

/** The time is up. An answer with a status other than results is a fact too: `explain` shows it. */
const giveUp = Effect.fnUntraced(function* (reads: Reads, { empty, http_status, message }: Said) {
  if (empty !== undefined && reads.sha256 === undefined) return yield* told(reads, empty)
  if (http_status !== undefined) yield* note(reads, http_status, false)
  return { _tag: "Unfinished", ...given({ message }) } satisfies SourceReading as SourceReading
})

/** Sleeps until the next read: `wait` milliseconds from `later`, or after a hint only `soonest` of them. */
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

const idsIn = ({ execution_id, asked_as }: ReadOrder) => ({ execution_id, session_id: asked_as })

// Downloads the documents that final results name (section 4.12), each once: a document that is missing at
// the service, or that may not be requested, becomes a fact. If the disk does not accept a document, the
// run ends; if the service does not deliver it, or not in time, it is only marked, and its execution is kept.

const attachmentTriesMax = 6
/** A document that the service does not find, or sends something else for, is asked for this often. */
const absentFetchesMin = 3
/** All documents of one session; those not downloaded by then are requested again by the next run. */
const attachmentsWithin = Duration.hours(1)

type DocumentStatus = (typeof AttachmentRead.Type)["status"]

/** These may still come: they are requested again. */
const isOutstanding = (status: DocumentStatus | undefined): boolean =>
  status === undefined || status === "failed" || status === "not_delivered"

/** False if a document is not here that the service may have. */
const pullAttachments = Effect.fnUntraced(function* (
  order: ReadOrder,
  { requestable, refused, textual }: AttachmentIds,
) {
  const about = { ...taskKeys(order), session_id: order.session_id }
  const before = order.attachmentsBefore
  for (const attachment_id of refused)
    if (!before.has(attachment_id))
      yield* append({ _tag: "AttachmentRead", ...about, attachment_id, status: "refused" })
  const untilAt = Math.min(
    order.lastAnswerAt,
    (yield* Clock.currentTimeMillis) + Duration.toMillis(attachmentsWithin),
  )
  let all = true
  let left = requestable.filter((attachment_id) => isOutstanding(before.get(attachment_id)))
  for (let reads = 1; left.length > 0; reads++) {
    const nextAt = (yield* Clock.currentTimeMillis) + Duration.toMillis(order.min_interval)
    const absent: Array<string> = []
    for (const attachment_id of left) {
      const fact = yield* downloadAttachment(order, attachment_id, textual.has(attachment_id), untilAt)
      const status = fact.status === "instead" ? "not_delivered" : fact.status
      // It may take a moment to make: what is believed to be missing is deleted with its execution.
      const isAbsent = fact.status === "missing" || fact.status === "instead"
      if (isAbsent && reads < absentFetchesMin && nextAt < untilAt) absent.push(attachment_id)
      else {
        // A repeated answer is not news.
        if (status !== before.get(attachment_id))
          yield* append({ _tag: "AttachmentRead", ...about, attachment_id, ...fact, status })
        if (isOutstanding(status)) all = false
      }
    }
    left = absent
    if (left.length > 0) yield* Effect.sleep(Math.max(0, nextAt - (yield* Clock.currentTimeMillis)))
  }
  return all
})

/** What a gateway answers in the place of a document: HTML or JSON, by its type and by its first byte. */
const pageTypes = /^\s*(?:text\/html|application\/(?:[\w.-]+\+)?(?:json|xhtml\+xml))\b/i
const pageBegins = /^\s*[<{[]/

class PageInstead extends Data.TaggedError("PageInstead") {}

/** Fails before its first bytes if they are those of a page. */
const refusePage = <E>(bytes: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E | PageInstead> => {
  let isFirst = true
  return Stream.mapEffect(bytes, (chunk) => {
    const isPage = isFirst && pageBegins.test(Buffer.from(chunk.subarray(0, 100)).toString("latin1"))
    isFirst = false
    return isPage ? Effect.fail(new PageInstead()) : Effect.succeed(chunk)
  })
}

const downloadAttachment = Effect.fnUntraced(function* (
  order: ReadOrder,
  attachment_id: string,
  mayBeText: boolean,
  untilAt: number,
) {
  const service = yield* Service
  const landing = yield* Landing
  const download = Effect.gen(function* () {
    const answer = yield* service.downloadAttachment(order.asked_as, attachment_id)
    if (answer._tag === "Missing") return { status: "missing" } as const
    const isDoubtful = !mayBeText && pageTypes.test(answer.media_type ?? "")
    const stored = yield* landing.landAttachment(isDoubtful ? refusePage(answer.bytes) : answer.bytes)
    // No document has no bytes: it is not made yet, or was not sent.
    if (stored.bytes === 0) return { status: "instead" } as const
    return { status: "downloaded", ...stored, ...given({ media_type: answer.media_type }) } as const
  }).pipe(
    Effect.catchTag("PageInstead", () => Effect.succeed({ status: "instead" } as const)),
    // What the disk does not accept is not asked for again.
    Effect.catchTag("LandingFailed", (failure) => Effect.succeed(failure)),
  )
  const tries = retryCall(download, { triesMax: attachmentTriesMax, untilAt })
  const stored = yield* Effect.catch(answeredBy(tries, untilAt), (failure) =>
    Effect.succeed({ status: isAnswered(failure) ? "not_delivered" : "failed" } as const),
  )
  return stored instanceof LandingFailed ? yield* stored : stored
})

/** Asking again in the same night changes nothing. Any other failure may pass. */
const isAnswered = ({ _tag }: CallFailure): boolean => _tag === "SecretRefused" || _tag === "UnexpectedAnswer"
