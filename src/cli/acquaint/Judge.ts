/**
 * Everything that a recorded run shows about a service, as one picture: what fits the reference, what a
 * reading of it explains, what goes beyond it, and with which results sources a run would lose nothing. Pure.
 */
import { dirname, join, relative, resolve } from "node:path"
import { Predicate, Struct } from "effect"
import { counted } from "../../base/Text.ts"
import { compareCalls, jsonOf, shapeOf, type Finding, type RecordedCall } from "./Compare.ts"
import { countsIn, lastAnswer, meetsCounts, observeReading, proofOf, shareOf } from "./Observe.ts"
import type { Observed } from "./Observe.ts"
import type { Job } from "../../jobs/Job.ts"
import type { Deletion } from "../../ledger/RunState.ts"
import { plain, span, wrap } from "../../report/TextTable.ts"
import { readingChoices } from "../../sandbox/state/Reading.ts"
import { rowOf } from "../../service/Ends.ts"
import { ResultsSource, builtInSources, countedTotal } from "../../service/FlowResults.ts"
import type { Access, ExecutionId, RunId } from "../../service/Ids.ts"
import { ownField } from "../../service/ReadJson.ts"
import type { DrainProof } from "../../task/DrainProof.ts"

// Results sources that fit what a run showed, for a job's `schemas` folder: built-in rows are changed if they
// do not hold here, the job's own are kept if they answered. What could lose records is a comment, for an
// engineer to decide.

interface FitInput {
  readonly sources: ReadonlyArray<ResultsSource>
  readonly calls: ReadonlyArray<RecordedCall>
  readonly observed: ReadonlyArray<Observed>
}

interface Proposal {
  readonly change: Partial<Pick<ResultsSource, "enabled" | "counts" | "final">>
  readonly says: string
  /** A line such as `counts: none`, and the finding that asks for it. */
  readonly decisions: ReadonlyArray<Readonly<Record<"line" | "why", string>>>
}

const unchanged = (says: string): Proposal => ({ change: {}, says, decisions: [] })
/** Why the flow API cannot be used here; undefined if it may be. */
const refusal = (call: RecordedCall, observed: ReadonlyArray<Observed>): string | undefined => {
  const flowApi = observed.find(({ key }) => key === "flow_api")?.value
  if (flowApi === "forbidden") return "this account has no access to the flow API (403)"
  if (flowApi === "absent")
    return "there is no flow API at this address (404, with a page instead of an error of the API)"
  return call.http_status === 422 ? "the flow API refuses this service's session ids (422)" : undefined
}

const onItsWordAlone = "a final answer counts as complete, and executions are deleted without a count"

/** Without a count, only a source that may return everything can be trusted to be complete. */
const proposeUncounted = (source: ResultsSource, why: string): Proposal => {
  const says = `${why}, so the number of records is not known`
  const mayDecide = source.families.includes("*")
  return { change: {}, says, decisions: mayDecide ? [{ line: "counts: none", why: says }] : [] }
}

const proposeCounts = (source: ResultsSource, { calls }: FitInput): Proposal => {
  const counts = countsIn(calls)
  if (counts._tag === "Unknown") return proposeUncounted(source, counts.why)
  const ways = (["sub_family", "product"] as const).filter((way) =>
    meetsCounts(source, calls, counts.counts, way),
  )
  const [way] = ways
  if (ways.some((one) => one === source.counts)) return unchanged("its records meet products_count")
  if (way !== undefined)
    return { change: { counts: way }, says: `its records meet products_count by ${way}`, decisions: [] }
  const { read, counted } = shareOf(source, calls, counts.counts)
  return unchanged(`it brings ${read} of the ${counted} records counted for it`)
}

/** A closed execution whose answer does not say that it is final would never count as complete. */
const proposeFinal = (source: ResultsSource, call: RecordedCall): Proposal["decisions"] => {
  const json = jsonOf(call)
  const { final } = source
  if (final === "always" || !Predicate.isObject(json) || ownField(json, final) !== undefined) return []
  const closed = "although the execution is closed, so a run treats it as partial"
  const why = `the answer has no \`${final}\`, ${closed}`
  return [{ line: "final: always", why }]
}

const propose = (source: ResultsSource, input: FitInput): Proposal => {
  if (!source.enabled) return unchanged("switched off in the job, so not read")
  const call = lastAnswer(source, input.calls)
  if (call === undefined) return unchanged("not read in this run, or never answered")
  if (source.api === "flows_url") {
    const why = refusal(call, input.observed)
    if (why !== undefined) return { ...unchanged(why), change: { enabled: false } }
  }
  if (call.http_status !== 200) {
    const nothing = source.nothing.includes(call.http_status ?? 0) ? ": no data here" : ""
    return unchanged(`answered ${call.http_status}${nothing}`)
  }
  const { change, says, decisions } = proposeCounts(source, input)
  return { change, says: `answered 200; ${says}`, decisions: [...decisions, ...proposeFinal(source, call)] }
}

const lineMax = 100

const comment = (text: string): string => wrap(text, lineMax, "# ", "# ")

/** In the order in which a person reads a row. */
const rowKeys = Struct.keys(Struct.omit(ResultsSource.fields, ["name"]))

const yamlLine = ([key, value]: readonly [string, unknown]): string => `${key}: ${JSON.stringify(value)}`

/** The row as a run would use it, and what was found, in one sentence for people. */
const fit = (source: ResultsSource, input: FitInput) => {
  const { name } = source
  const { change, says, decisions } = propose(source, input)
  const builtIn = builtInSources.find((row) => row.name === name)
  const call = lastAnswer(source, input.calls)
  if (builtIn === undefined && call?.http_status !== 200) {
    return { name, says: `not usable: ${says}`, decisions: [], source: undefined, text: undefined }
  }
  const fitted: ResultsSource = { ...source, ...change }
  const said = rowKeys
    .map((key) => [key, fitted[key]] as const)
    .filter(([key, value]) => builtIn === undefined || JSON.stringify(value) !== JSON.stringify(builtIn[key]))
  const evidence = call === undefined ? "" : ` (call ${call.number})`
  const text = [
    comment(`${name}: ${says}${evidence}.`),
    ...said.map(yamlLine),
    ...decisions.flatMap(({ line, why }) => [
      "",
      comment(`An engineer must decide: ${why}. With the next line ${onItsWordAlone}.`),
      `# ${line}`,
    ]),
    "",
  ].join("\n")
  return {
    name,
    source: fitted,
    /** Of `results/<name>.yaml`; undefined if there is nothing to write. */
    text: said.length > 0 || decisions.length > 0 ? text : undefined,
    says,
    decisions,
  }
}
export type FittedSource = ReturnType<typeof fit>

const isFlowError = ({ route, http_status }: Finding): boolean =>
  route === "readFlowResults" && http_status >= 400

/** Deviations that are another way to read the reference, once it was observed: by the key of the reading. */
const explanations: Readonly<Record<string, (finding: Finding) => boolean>> = {
  products_count: ({ route, path }) => route === "readExecution" && /^products_count(?:$|\.|\[)/.test(path),
  flow_error_body: isFlowError,
  flow_api: isFlowError,
  // A 422 of the flow API is one of its own errors, and the reference does not show their body (section 7).
  flow_session_ids: isFlowError,
  head: ({ route, http_status }) => route === "pollExecution" && http_status === 405,
  tokenized_body: ({ route, http_status }) => route === "startTokenized" && http_status === 405,
}

/** What an engineer has to decide before a run deletes anything: one sentence each, for all its sources. */
const decisionsOf = (fitted: ReadonlyArray<FittedSource>): ReadonlyArray<string> => {
  const all = fitted.flatMap(({ name, decisions }) => decisions.map((decision) => ({ name, ...decision })))
  const byText = Map.groupBy(all, ({ line, why }) => `${line}\n${why}`)
  return [...byText].map(([text, same]) => {
    const [line, why] = text.split("\n")
    const names = same.map(({ name }) => name).join(" and ")
    return `\`${line}\` for ${names}: ${why}. With it ${onItsWordAlone}. It is in the files as a comment.`
  })
}

export const judge = (input: Omit<FitInput, "observed">) => {
  const { observed, changing, unobserved } = observeReading(input.calls)
  const isExplained = (finding: Finding) => observed.some(({ key }) => explanations[key]?.(finding) === true)
  const findings = compareCalls(input.calls)
  const fitted = input.sources.map((source) => fit(source, { ...input, observed }))
  const counts = countsIn(input.calls)
  const sources = fitted.flatMap(({ source }) => source ?? [])
  return {
    observed,
    /** Keys for which several values were seen. */
    changing,
    unobserved,
    misfits: findings.filter((finding) => finding.kind !== "unknown" && !isExplained(finding)),
    /** Fields that the reference does not name; a run keeps them. */
    beyond: findings.filter(({ kind }) => kind === "unknown"),
    fitted,
    counts,
    /** What a run with the fitted sources would find complete. */
    proof: proofOf(sources, input.calls),
    decisions: decisionsOf(fitted),
  }
}
export type Picture = ReturnType<typeof judge>

// The report, for a terminal of any width and as Markdown. It quotes no value of a record, and no complete id
// except the execution's.

export interface About extends Access {
  readonly run_id: RunId
  readonly outcome: string
  readonly reason: string
  readonly execution_id: ExecutionId | undefined
  readonly calls: number
  /** Whether the execution is still at the service. */
  readonly kept: boolean
  /** How its deletion ended, if the service was asked for it. */
  readonly deletion: Deletion["outcome"] | undefined
  readonly took_ms: number
}

/** A deletion that is pending may not have been done. */
export const isStillThere = (deletion: About["deletion"]): boolean =>
  deletion === undefined || deletion === "pending"

export interface Section {
  readonly title: string
  readonly lines: ReadonlyArray<string>
}

const callsOf = ({ calls }: Finding): string =>
  calls.length === 1 ? `call ${calls[0]}` : `calls ${calls.join(", ")}`

const findingLine = (finding: Finding): string => {
  const where = finding.kind === "status" ? finding.route : `${finding.route} ${finding.http_status}`
  return `${where}: ${finding.says} (${callsOf(finding)})`
}

/** More lines of one kind add nothing on a screen; the files have all of them. */
const linesMax = 30

const atMost = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length <= linesMax
    ? lines
    : [...lines.slice(0, linesMax), `and ${lines.length - linesMax} more of this kind`]

/** Families with missing records, as `account:checking 1 of 2`. */
export const missingFamilies = ({ families }: DrainProof): ReadonlyArray<string> =>
  families.flatMap(({ family, counted: wanted, landed }) =>
    wanted !== undefined && landed < wanted ? [`${family} ${landed} of ${wanted}`] : [],
  )

const keeps = "A run keeps such executions at the service."

const countLine = ({ counts, proof }: Picture): string => {
  if (counts._tag === "Unknown") {
    const then = proof.isWhole ? "A run treats a final answer as complete." : keeps
    return `Records are not counted: ${counts.why}. ${then}`
  }
  const total = counted(countedTotal(counts.counts), "record")
  if (proof.isWhole) return `${total} counted, and all of them can be read.`
  const missing = missingFamilies(proof)
  return missing.length === 0
    ? `${total} counted and read, but no answer says that it is final. ${keeps}`
    : `${total} counted, but not all can be read: ${missing.join(", ")}. ${keeps}`
}

/** The sections of the report, in the order in which a person needs them. */
export const reportSections = (about: About, picture: Picture): ReadonlyArray<Section> => {
  const { misfits, observed, changing, unobserved, beyond, fitted, decisions } = picture
  const placed = (key: string) => {
    const choice = readingChoices.find((one) => one.key === key)
    return choice === undefined ? key : `${key} (section ${choice.section})`
  }
  const reason = about.reason === "" ? "" : `, ${about.reason}`
  // Other results sources may change such an end.
  const ownSources =
    rowOf(about.reason).results === "incomplete" ? ", with the job's current results sources" : ""
  const ended = `Ended as ${about.outcome}${reason}${ownSources}`
  const toDelete = "With `--delete` it is deleted once everything in it has been proved to be read."
  const away =
    about.deletion === "gone"
      ? "is no longer at the service, which answered its deletion with 404"
      : "was deleted at the service"
  const kept = about.kept
    ? `Execution ${about.execution_id} and its data stay at the service. ${toDelete}`
    : `Execution ${about.execution_id} ${away}: everything in it was read.`
  return [
    {
      title: `${about.customer_id} on ${about.engine_reference}`,
      lines: [
        `${ended}, after ${span(about.took_ms)} and ${counted(about.calls, "recorded call")}.`,
        countLine(picture),
        ...(about.execution_id === undefined ? [] : [kept]),
      ],
    },
    misfits.length === 0
      ? { title: "Every answer fits the reference", lines: ["or one of the readings observed below."] }
      : { title: "Does not fit the reference", lines: atMost(misfits.map(findingLine)) },
    {
      title: "Observed where the reference leaves room",
      lines: observed.map(({ key, value, call }) => `${placed(key)}: ${value}, see call ${call}`),
    },
    { title: "Answered in several ways, so not part of the reading", lines: changing.map(placed) },
    {
      title: "Not observed in this run",
      lines: unobserved.length === 0 ? [] : [`${unobserved.join(", ")}.`],
    },
    {
      title: "Beyond the reference: fields that it does not name; a run keeps them",
      lines: atMost(beyond.map(findingLine)),
    },
    { title: "Results sources", lines: fitted.map(({ name, says }) => `${name}: ${says}`) },
    { title: "An engineer must decide", lines: decisions },
  ].filter(({ lines }) => lines.length > 0)
}

/** What to do about results sources; `schemas` is their folder, and `files` are those that were written. */
export const sourcesLine = (
  { path: job, schemas: own }: Pick<Job, "path" | "schemas">,
  schemas: string,
  { proof, decisions }: Pick<Picture, "proof" | "decisions">,
  files: ReadonlyArray<string>,
): string => {
  const beside = relative(dirname(job), schemas)
  const path = beside.startsWith(".") ? beside : `./${beside}`
  const [from, to] = [schemas, own].map((folder) => join(folder ?? "", "results"))
  const put =
    own === undefined
      ? `put \`schemas: ${path}\` into ${job}; \`nightjar plan\` then names the results sources.`
      : resolve(own) === resolve(schemas)
        ? `run \`nightjar plan ${job}\`, which names the results sources.`
        : `move the files in ${from} to ${to}; \`nightjar plan\` then names the results sources.`
  const missing = missingFamilies(proof)
  if (missing.length > 0) {
    const rest = files.length === 0 ? "" : ` For the others ${put}`
    return `Ask the service how ${missing.join(", ")} can be read, and add a results source.${rest}`
  }
  if (!proof.isWhole && decisions.length === 0)
    return (
      "Ask the service how to tell that all records have been read; until then, a run keeps every " +
      "execution."
    )
  if (files.length === 0) return "The job's results sources fit as they are."
  return decisions.length === 0
    ? `${put.slice(0, 1).toUpperCase()}${put.slice(1)}`
    : `Decide, and remove the comment in ${files.join(" and ")}; then ${put}`
}

export const renderSections = (sections: ReadonlyArray<Section>, width: number): string =>
  sections
    .map(({ title, lines }) =>
      [wrap(title, width), ...lines.map((line) => wrap(line, width, "  ", "    "))].join("\n"),
    )
    .join("\n\n")

/** Text from a service must not be read as mark-up. */
const escaped = (text: string): string => plain(text).replaceAll(/[\\<>*[\]#|]|(?<!\w)_|_(?!\w)/g, "\\$&")

/** Text in backquotes is ours, and Markdown does not interpret it. */
const item = (line: string): string => {
  const parts = line.split("`").map((part, index) => (index % 2 === 1 ? plain(part) : escaped(part)))
  return `- ${parts.join("`")}`
}

export const renderMarkdown = (sections: ReadonlyArray<Section>): string => {
  const texts = sections.map(({ title, lines }, index) =>
    [`${index === 0 ? "#" : "##"} ${escaped(title)}`, "", ...lines.map(item)].join("\n"),
  )
  return `${texts.join("\n\n")}\n`
}

/** Enough of an id to tell two apart. */
const shortened = (id: string): string => (id.length <= 12 ? id : `${id.slice(0, 8)}…`)

/** One call as a line of `calls.ndjson`: shapes, never values. */
export const callLine = (call: RecordedCall): string => {
  const { route, ids, body } = call
  const shown = body._tag === "Json" ? { shape: shapeOf(body.json) } : {}
  return JSON.stringify({
    call: call.number,
    at_ms: call.sentAtMs,
    took_ms: call.tookMs,
    name: route.name,
    method: route.method,
    path: route.path,
    ids: Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, shortened(id)])),
    http_status: call.http_status ?? null,
    headers: call.headers,
    body: body._tag === "Text" ? `text of ${body.bytes} bytes` : body._tag.toLowerCase(),
    ...shown,
  })
}
