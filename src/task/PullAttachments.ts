/**
 * Downloads the documents that final results name (section 4.12), each once: a document that is missing at
 * the service, or that may not be requested, becomes a fact. If the disk does not accept a document, the
 * run ends; if the service does not deliver it, or not in time, it is only marked.
 */
import { Clock, Duration, Effect } from "effect"
import { taskKeys } from "../ledger/FactKeys.ts"
import type { TaskKeys } from "../ledger/FactKeys.ts"
import type { SessionId } from "../service/Ids.ts"
import { retryCall } from "../client/Pacing.ts"
import { Service } from "../client/Service.ts"
import type { CallFailure } from "../client/Service.ts"
import { Landing } from "../landing/Landing.ts"
import type { AttachmentIds } from "../records/ExactNumber.ts"
import { append } from "../ledger/Ledger.ts"
import { answeredBy } from "./Ending.ts"

const attachmentTriesMax = 6
/** A document that the results name and the service does not find is asked for this often. */
const absentReadsMin = 3
/** All documents of one session; those not downloaded by then are requested again by the next run. */
const attachmentsWithin = Duration.hours(1)

export interface AttachmentsOrder extends TaskKeys {
  readonly session_id: SessionId
  /** Documents that need no further request. */
  readonly attachmentsKnown: ReadonlySet<string>
  readonly min_interval: Duration.Duration
  /** Clock time after which this run reads nothing more. */
  readonly lastAnswerAt: number
}

/** False if a document could not be downloaded although the service has it. */
export const pullAttachments = Effect.fnUntraced(function* (
  order: AttachmentsOrder,
  { requestable, refused }: AttachmentIds,
) {
  const about = { ...taskKeys(order), session_id: order.session_id }
  for (const attachment_id of refused)
    if (!order.attachmentsKnown.has(attachment_id))
      yield* append({ _tag: "AttachmentRead", ...about, attachment_id, status: "refused" })
  const untilAt = Math.min(
    order.lastAnswerAt,
    (yield* Clock.currentTimeMillis) + Duration.toMillis(attachmentsWithin),
  )
  let all = true
  let left = requestable.filter((attachment_id) => !order.attachmentsKnown.has(attachment_id))
  for (let reads = 1; left.length > 0; reads++) {
    const nextAt = (yield* Clock.currentTimeMillis) + Duration.toMillis(order.min_interval)
    const absent: Array<string> = []
    for (const attachment_id of left) {
      const fact = yield* downloadAttachment(order, attachment_id, untilAt)
      // It may take a moment to make: what is believed to be missing is deleted with its execution.
      if (fact.status === "missing" && reads < absentReadsMin && nextAt < untilAt) absent.push(attachment_id)
      else yield* append({ _tag: "AttachmentRead", ...about, attachment_id, ...fact })
      if (fact.status === "failed") all = false
    }
    left = absent
    if (left.length > 0) yield* Effect.sleep(Math.max(0, nextAt - (yield* Clock.currentTimeMillis)))
  }
  return all
})

const downloadAttachment = Effect.fnUntraced(function* (
  order: AttachmentsOrder,
  attachment_id: string,
  untilAt: number,
) {
  const service = yield* Service
  const landing = yield* Landing
  const download = Effect.gen(function* () {
    const answer = yield* service.downloadAttachment(order.session_id, attachment_id)
    if (answer._tag === "Missing") return { status: "missing" } as const
    const stored = yield* landing.landAttachment(answer.bytes)
    const { media_type } = answer
    return { status: "downloaded", ...stored, ...(media_type === undefined ? {} : { media_type }) } as const
  })
  return yield* retryDownload(download, untilAt)
})

const retryDownload = <A, E extends { readonly _tag: string }, R>(
  download: Effect.Effect<A, E | CallFailure, R>,
  untilAt: number,
) =>
  Effect.suspend(() => {
    const split = Effect.matchEffect(download, {
      onSuccess: (stored) => Effect.succeed({ _tag: "Stored", stored } as const),
      onFailure: (failure) =>
        isCallFailure(failure)
          ? Effect.fail(failure)
          : Effect.succeed({ _tag: "Broken", failure: failure as Exclude<E, CallFailure> } as const),
    })
    return answeredBy(retryCall(split, { triesMax: attachmentTriesMax, untilAt }), untilAt)
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
