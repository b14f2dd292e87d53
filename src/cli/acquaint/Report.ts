/**
 * The report of `acquaint`, for a terminal of any width and as Markdown: what happened, what does not fit,
 * what was observed where the reference leaves room, which results sources fit, and what to do next. It
 * quotes no value of a record, and no complete id except the execution's.
 */
import type { Access, ExecutionId, RunId } from "../../service/Ids.ts"
import { rowOf } from "../../service/Ends.ts"
import { countedTotal } from "../../service/FlowResults.ts"
import type { DrainProof } from "../../task/DrainProof.ts"
import { counted } from "../../base/Text.ts"
import { plain, span, wrap } from "../../report/TextTable.ts"
import { shapeOf } from "./Compare.ts"
import type { Finding, RecordedCall } from "./Compare.ts"
import type { Picture } from "./Judge.ts"

export interface About extends Access {
  readonly run_id: RunId
  readonly outcome: string
  readonly reason: string
  readonly execution_id: ExecutionId | undefined
  /** Whether the execution is still at the service. */
  readonly isKept: boolean
  readonly calls: number
  readonly tookMs: number
}

export interface Section {
  readonly title: string
  readonly lines: ReadonlyArray<string>
}

/** The section of the reference for a reading's key. */
export type SectionOf = (key: string) => string | undefined

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
export const reportSections = (
  about: About,
  picture: Picture,
  sectionOf: SectionOf,
): ReadonlyArray<Section> => {
  const { misfits, observed, changing, unobserved, beyond, fitted, decisions } = picture
  const placed = (key: string) => {
    const section = sectionOf(key)
    return section === undefined ? key : `${key} (section ${section})`
  }
  const reason = about.reason === "" ? "" : `, ${about.reason}`
  // Other results sources may change such an end.
  const ownSources =
    rowOf(about.reason).results === "incomplete" ? ", with the job's current results sources" : ""
  const ended = `Ended as ${about.outcome}${reason}${ownSources}`
  const kept =
    about.execution_id === undefined
      ? []
      : [
          about.isKept
            ? `Execution ${about.execution_id} and its data stay at the service. With \`--delete\` it is ` +
              "deleted once everything in it has been proved to be read."
            : `Execution ${about.execution_id} was deleted at the service: everything in it was read.`,
        ]
  return [
    {
      title: `${about.customer_id} on ${about.engine_reference}`,
      lines: [
        `${ended}, after ${span(about.tookMs)} and ${counted(about.calls, "recorded call")}.`,
        countLine(picture),
        ...kept,
      ],
    },
    misfits.length === 0
      ? {
          title: "Every answer fits the reference",
          lines: ["or one of the readings observed below."],
        }
      : { title: "Does not fit the reference", lines: atMost(misfits.map(findingLine)) },
    {
      title: "Observed where the reference leaves room",
      lines: observed.map(({ key, value, call }) => `${placed(key)}: ${value}, see call ${call}`),
    },
    {
      title: "Answered in several ways, so not part of the reading",
      lines: changing.map(placed),
    },
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

export const renderSections = (sections: ReadonlyArray<Section>, width: number): string =>
  sections
    .map(({ title, lines }) =>
      [wrap(title, width), ...lines.map((line) => wrap(line, width, "  ", "    "))].join("\n"),
    )
    .join("\n\n")

/** Text from a service must not be read as mark-up. */
const escaped = (text: string): string => plain(text).replaceAll(/[\\<>*[\]#|]|(?<!\w)_|_(?!\w)/g, "\\$&")

export const renderMarkdown = (sections: ReadonlyArray<Section>): string =>
  `${sections
    .map(({ title, lines }, index) =>
      [
        `${index === 0 ? "#" : "##"} ${escaped(title)}`,
        "",
        // Text in backquotes is ours, and Markdown does not interpret it.
        ...lines.map(
          (line) =>
            `- ${line
              .split("`")
              .map((part, odd) => (odd % 2 === 1 ? plain(part) : escaped(part)))
              .join("`")}`,
        ),
      ].join("\n"),
    )
    .join("\n\n")}\n`

/** Enough of an id to tell two apart. */
const shortened = (id: string): string => (id.length <= 12 ? id : `${id.slice(0, 8)}…`)

/** One call as a line of `calls.ndjson`: shapes, never values. */
export const callLine = (call: RecordedCall): string => {
  const { route, ids, body, probe } = call
  const shown = body._tag === "Json" ? { shape: shapeOf(body.json) } : {}
  return JSON.stringify({
    call: call.number,
    at_ms: call.sentAtMs,
    took_ms: call.tookMs,
    name: route.name,
    method: route.method,
    path: route.path,
    ids: Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, shortened(id)])),
    ...(probe ? { probe } : {}),
    http_status: call.http_status ?? null,
    headers: call.headers,
    body: body._tag === "Text" ? `text of ${body.bytes} bytes` : body._tag.toLowerCase(),
    ...shown,
  })
}
