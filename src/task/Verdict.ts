/**
 * How a task ends: pure. The end of its last execution, the counts and the answers of its results endpoints
 * become one outcome with a reason and the one who must act, and decide whether the execution may be deleted.
 */
import { given } from "../base/Schemas.ts"
import { countedTotal, mayBring, type ProductsCount } from "../service/FlowResults.ts"
import { own, type Verdict } from "../service/Ends.ts"
import type { AttemptDrained, AttemptKept, ProofLine } from "../ledger/Fact.ts"
import { proveDrain, type DrainProof, type SourceFinding } from "./DrainProof.ts"
import type { Pulled } from "./PullResults.ts"

/** The result of reading the results of a closed execution. */
export type Reading =
  /** Everything in it is here: it may be deleted. */
  | ({ readonly _tag: "Drained" } & NonNullable<typeof AttemptDrained.Type.proof>)
  /** Still partial when the time was up, or the service did not answer; then with its last answer. */
  | { readonly _tag: "Partial"; readonly message?: string }
  /** The service no longer knows the execution: there is nothing to read and nothing to delete. */
  | { readonly _tag: "Gone" }
  /** Read to the end, but not proved to be complete: it stays at the service. */
  | ({ readonly _tag: "Kept" } & Pick<typeof AttemptKept.Type, "reason" | "families" | "message">)

/** The job asked for no results when it was started, so nothing has to be stored here. */
export const unwanted: Reading = { _tag: "Drained", basis: "unwanted", families: [] }

/** It was started for its results, which the job has switched off since: it stays as it is. */
export const unread: Reading = {
  _tag: "Partial",
  message: "`flow_results` was switched off after its start: the next run with results reads them",
}

/** How many families the message names. */
const familiesNamedMax = 3

const missingText = (families: ReadonlyArray<ProofLine>): string => {
  const short = families.filter(({ counted = 0, landed }) => landed < counted)
  const named = short
    .slice(0, familiesNamedMax)
    .map(({ family, counted, landed }) => `${family.slice(0, 80)} ${landed} of ${counted}`)
  const more = short.length > named.length ? ` and ${short.length - named.length} more families` : ""
  return `${named.join(", ")}${more}`
}

export const documentMissing = "a document that the results name is not here"

const answersText = (pulled: Pulled): string =>
  pulled
    .flatMap(({ source, reading }) => {
      if (reading._tag === "Final" || reading._tag === "Unfinished") return []
      const said = reading.http_status === undefined ? "cannot be read with this id" : reading.http_status
      return [`${source.name}: ${said}`]
    })
    .join(", ")

const kept = (
  reason: Extract<Reading, { _tag: "Kept" }>["reason"],
  { families }: DrainProof,
  parts: ReadonlyArray<string>,
): Reading => {
  const message = parts.filter((part) => part !== "").join("; ")
  return { _tag: "Kept", reason, families, message }
}

/** Something was counted of which nothing arrived, and no endpoint that may have it answered with results. */
const isUnreachable = ({ families }: DrainProof, findings: ReadonlyArray<SourceFinding>): boolean =>
  families.some(
    ({ family, counted = 0, landed }) =>
      counted > 0 && landed === 0 && !findings.some(({ source }) => mayBring(source, family)),
  )

export const judgeReadings = (count: ProductsCount, pulled: Pulled): Reading => {
  const unfinished = pulled.find(({ reading }) => reading._tag === "Unfinished")?.reading
  if (unfinished?._tag === "Unfinished") return { ...unfinished, _tag: "Partial" }
  const findings = pulled.flatMap(({ reading }) => (reading._tag === "Final" ? [reading.finding] : []))
  const proof = proveDrain(count, findings)
  const answers = answersText(pulled)
  // Nothing was counted, but an endpoint did not say that there is nothing: that proves nothing.
  const isRefused =
    count._tag === "Counted" &&
    countedTotal(count.counts) === 0 &&
    findings.length === 0 &&
    pulled.some(({ reading }) => reading._tag === "Refused")
  if (isRefused) return kept("RECORDS_UNREACHABLE", proof, [answers])
  const lacksDocuments = pulled.some(({ reading }) => reading._tag === "Final" && reading.lacksDocuments)
  if (proof.isWhole && lacksDocuments) return kept("DOCUMENTS_SHORT", proof, [documentMissing])
  if (proof.isWhole) {
    const isCounted = proof.isCounted && proof.families.every(({ counted = 0, landed }) => landed >= counted)
    return { _tag: "Drained", basis: isCounted ? "counted" : "final", families: proof.families }
  }
  if (count._tag === "Unknown") return kept("RECORDS_UNREACHABLE", proof, [count.why, answers])
  const reason = isUnreachable(proof, findings) ? "RECORDS_UNREACHABLE" : "RECORDS_SHORT"
  return kept(reason, proof, [missingText(proof.families), answers])
}

/** How the task ends once its results were read: by its records, whatever became of their documents. */
export const verdictOf = (end: Verdict, reading: Reading): Verdict => {
  if (reading._tag === "Partial") return partial(reading)
  const isShort = reading._tag === "Kept" && reading.reason !== "DOCUMENTS_SHORT"
  if (isShort && (end.outcome === "succeeded" || end.outcome === "partial"))
    return { ...own(reading.reason), message: reading.message }
  return end
}

const partial = ({ message }: { readonly message?: string }): Verdict => ({
  ...own("RESULTS_PARTIAL"),
  ...given({ message }),
})

const isSecretRefused = ({ reading }: Pulled[number]): boolean =>
  reading._tag === "Refused" && (reading.http_status === 401 || reading.http_status === 403)

/** Nothing is counted and nothing deleted. `wasRead`: the run has partial results of it. */
export const verdictOfSession = (pulled: Pulled, wasRead: boolean): Verdict => {
  const last = pulled.at(-1)?.reading
  if (last?._tag === "Final") return own("COMPLETED")
  if (last?._tag === "Unfinished") return partial(last)
  // That says nothing of the session.
  if (pulled.some(isSecretRefused)) return { ...own("SECRET_REFUSED"), message: answersText(pulled) }
  return own(wasRead ? "SESSION_GONE" : "SESSION_UNKNOWN")
}
