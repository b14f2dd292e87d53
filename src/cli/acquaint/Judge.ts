/**
 * Everything that a recorded run shows about a service, as one picture: what fits the reference, what a
 * reading of it explains, what goes beyond it, what does not fit, and with which results sources a run
 * would lose nothing. Pure: the same calls give the same picture.
 */
import type { ProductsCount } from "../../service/ProductsCount.ts"
import type { ResultsSource } from "../../service/ResultsSource.ts"
import type { DrainProof } from "../../task/DrainProof.ts"
import type { RecordedCall } from "./Calls.ts"
import { compareCalls } from "./Compare.ts"
import type { Finding } from "./Compare.ts"
import { fitSources, onItsWordAlone } from "./FitSources.ts"
import type { FittedSource } from "./FitSources.ts"
import { observableKeys, observeReading } from "./Observe.ts"
import type { Observed } from "./Observe.ts"
import { countsIn, proofOf } from "./Evidence.ts"

export interface Picture {
  readonly observed: ReadonlyArray<Observed>
  /** Keys for which several values were seen. */
  readonly changing: ReadonlyArray<string>
  readonly unobserved: ReadonlyArray<string>
  readonly misfits: ReadonlyArray<Finding>
  /** Fields that the reference does not name; a run keeps them. */
  readonly beyond: ReadonlyArray<Finding>
  readonly fitted: ReadonlyArray<FittedSource>
  readonly counts: ProductsCount
  /** What a run with the fitted sources would find complete. */
  readonly proof: DrainProof
  /** What an engineer has to decide before a run deletes anything: one sentence each. */
  readonly decisions: ReadonlyArray<string>
}

interface Explanation {
  readonly key: string
  readonly explains: (finding: Finding) => boolean
}

/** Deviations that are another way to read the reference, once that way was observed. */
const explanations: ReadonlyArray<Explanation> = [
  {
    key: "products_count",
    explains: ({ route, path }) => route === "readExecution" && /^products_count(?:$|\.|\[)/.test(path),
  },
  { key: "flow_error_body", explains: ({ route, http_status }) => isFlowError(route, http_status) },
  { key: "flow_api", explains: ({ route, http_status }) => isFlowError(route, http_status) },
  // A 422 of the flow API is one of its own errors, and the reference does not show their body (section 7).
  { key: "flow_session_ids", explains: ({ route, http_status }) => isFlowError(route, http_status) },
  { key: "head", explains: ({ route, http_status }) => route === "pollExecution" && http_status === 405 },
  {
    key: "tokenized_body",
    explains: ({ route, http_status }) => route === "startTokenized" && http_status === 405,
  },
]

const isFlowError = (route: string, http_status: number): boolean =>
  route === "readFlowResults" && http_status >= 400

/** 4.1: a matching run answers 409 and nothing is created. */
const probeFindings = (calls: ReadonlyArray<RecordedCall>): ReadonlyArray<Finding> => {
  const probe = calls.find((call) => call.probe && call.route.name === "startExecution")
  if (probe === undefined || probe.http_status === undefined || probe.http_status === 409) return []
  const aborted = calls.find((call) => call.probe && call.route.name === "abortExecution")
  const stopped =
    aborted === undefined
      ? ""
      : `; the second execution was stopped (answer: ${aborted.http_status ?? "none"})`
  return [
    {
      kind: "value",
      route: "startExecution",
      http_status: probe.http_status,
      path: "",
      says: `the same start, sent again while its execution was open, was not refused with 409${stopped}`,
      calls: [probe.number],
    },
  ]
}

/** One sentence per line, whatever sources it applies to. */
const decisionsOf = (fitted: ReadonlyArray<FittedSource>): ReadonlyArray<string> => {
  const all = fitted.flatMap(({ name, decisions }) => decisions.map((decision) => ({ name, ...decision })))
  const texts = [...new Set(all.map(({ line, why }) => `${line}\n${why}`))]
  return texts.map((text) => {
    const [line = "", why = ""] = text.split("\n")
    const names = all.filter((one) => one.line === line && one.why === why).map(({ name }) => name)
    return (
      `\`${line}\` for ${names.join(" and ")}: ${why}. With it ${onItsWordAlone}. ` +
      "It is in the files as a comment."
    )
  })
}

export const judge = (input: {
  readonly calls: ReadonlyArray<RecordedCall>
  readonly sources: ReadonlyArray<ResultsSource>
  readonly acceptUncounted: boolean
}): Picture => {
  const { observed, changing } = observeReading(input.calls)
  const seen = new Set(observed.map(({ key }) => key))
  const isExplained = (finding: Finding) =>
    explanations.some(({ key, explains }) => seen.has(key) && explains(finding))
  const findings = [...probeFindings(input.calls), ...compareCalls(input.calls)]
  const fitted = fitSources({ ...input, observed })
  const counts = countsIn(input.calls)
  const sources = fitted.flatMap(({ source }) => source ?? [])
  return {
    observed,
    changing,
    unobserved: observableKeys.filter((key) => !seen.has(key) && !changing.includes(key)),
    misfits: findings.filter((finding) => finding.kind !== "unknown" && !isExplained(finding)),
    beyond: findings.filter(({ kind }) => kind === "unknown"),
    fitted,
    counts,
    proof: proofOf(sources, input.calls),
    decisions: decisionsOf(fitted),
  }
}
