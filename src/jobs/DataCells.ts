/**
 * What the cells of a customers file mean. Somebody else may have typed them, so a cell is the value that
 * it shows and nothing else: only a column that the job lists under `references` is read for `env:` and
 * `file:`, and no cell ever names a command to run.
 */
import { Redacted } from "effect"
import type { ParameterSource } from "./Job.ts"
import { nearestName } from "../base/Nearest.ts"
import type { Place } from "../base/FileProblem.ts"
import type { Findings } from "./Problem.ts"
import { looksLikeReference, parseReference } from "./Reference.ts"

export interface CellRules {
  /** Columns that hold references; undefined if the job does not list any. */
  readonly references: ReadonlyArray<string> | undefined
  /** The job file's folder: references to files are relative to it. */
  readonly folder: string
  readonly findings: Findings
  /** Where the job lists the columns, or names the file. */
  readonly from: Place
}

interface ColumnSeen {
  cells: number
  /** Cells that would be references in another column, and the first of them. */
  alike: number
  place: Place | undefined
}

const exec = /^exec:/
const isAlike = (value: unknown): boolean => typeof value === "string" && looksLikeReference(value)

const literal = (value: unknown): ParameterSource => ({ _tag: "Literal", value: Redacted.make(value) })

/** One file's cells; `end` reports what only the whole file shows. */
export const makeCells = ({ references, folder, findings, from }: CellRules) => {
  const declared = new Set(references)
  let literals = 0
  const columns = new Map<string, ColumnSeen>()

  const readReference = (column: string, text: string, place: Place): ParameterSource | undefined => {
    if (exec.test(text)) {
      const message = "a command is never read from a file of customers: write env:NAME or file:PATH"
      findings.error(place, message, `exec ${column}`)
      return undefined
    }
    const reference = parseReference(text, folder)
    if (reference !== undefined) return { _tag: "Reference", reference }
    findings.error(place, "this reference is empty: write env:NAME or file:PATH", `empty ${column}`)
    return undefined
  }

  /** Undefined for a cell that is empty or has an error. */
  const read = (column: string, value: unknown, place: Place): ParameterSource | undefined => {
    const seen = columns.get(column) ?? { cells: 0, alike: 0, place: undefined }
    columns.set(column, seen)
    if (value === undefined || value === null) return undefined
    seen.cells += 1
    if (isAlike(value) && declared.has(column)) return readReference(column, String(value), place)
    literals += 1
    if (!isAlike(value)) return literal(value)
    seen.alike += 1
    seen.place ??= place
    return literal(value)
  }

  const tellAlike = (column: string, { cells, alike, place }: ColumnSeen): void => {
    if (place === undefined) return
    const how = `\`references: [${column}]\` beside \`from\``
    // A login that was meant as a reference would be sent as a wrong password.
    if (references === undefined && alike === cells) {
      const literally = "`references: []` if they are to be sent as they are"
      const message = `every cell of \`${column}\` looks like a reference: write ${how}, or ${literally}`
      return findings.error(place, message)
    }
    const what = alike === 1 ? "one cell looks like a reference" : `${alike} cells look like references`
    const sent = alike === 1 ? "is sent as it is" : "are sent as they are"
    findings.warn(place, `${what} (env:, file: or exec:) and ${sent}; ${how} would change that`)
  }

  const end = (): void => {
    for (const [column, seen] of columns) tellAlike(column, seen)
    if (columns.size === 0) return
    for (const column of declared) {
      if (columns.has(column)) continue
      const near = nearestName(column, [...columns.keys()])
      const hint = near === undefined ? "" : `; is it \`${near}\`?`
      findings.error(from, `the file has no parameter column \`${column}\`${hint}`)
    }
  }

  /** Whether the file itself has values of logins. */
  const hasLogins = (): boolean => literals > 0

  return { read, end, hasLogins }
}

export type Cells = ReturnType<typeof makeCells>
