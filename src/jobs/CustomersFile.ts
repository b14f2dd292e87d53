/**
 * Customers from files: CSV, NDJSON or Parquet with a `customer_id`, an optional `engine_reference` and one
 * column per login parameter. Ids are the text of the source (`007`, `65e0`), values are redacted as they are
 * read, empty cells and nulls are absent parameters, and problems are reported with line and column.
 */
import { Effect, Predicate, Redacted, Result, Stream } from "effect"
import { checkFile, noSuchFile, streamFile, topOf, type Place } from "../base/DurableFile.ts"
import { counted, nearestName } from "../base/Text.ts"
import { CsvReader, cellsMax, type CsvRow } from "./Csv.ts"
import type { Findings } from "./Problem.ts"
import { looksLikeReference, parseReference, type ParameterSource } from "./Scalars.ts"
import { CustomerId, EngineReference } from "../service/Ids.ts"
import { repeatsKey } from "../service/ReadJson.ts"

/** Columns that the job names, and where problems go. */
interface NamedColumns {
  readonly features_column?: string | undefined
  readonly token_column?: string | undefined
  readonly findings: Findings
}

const idColumn = "customer_id"
const engineColumn = "engine_reference"

const checkColumns = (
  source: NamedColumns,
  columns: ReadonlyArray<string>,
  placeOf: (index: number) => Place,
): boolean => {
  const twice = columns.findIndex((column, index) => columns.indexOf(column) !== index)
  if (twice >= 0) source.findings.error(placeOf(twice), "a column of this name already exists")
  const unnamed = columns.indexOf("")
  if (unnamed >= 0) source.findings.error(placeOf(unnamed), "this column has no name")
  const { features_column, token_column } = source
  const taken = [idColumn, engineColumn]
  for (const column of [features_column, token_column].filter((name) => name !== undefined)) {
    const index = columns.indexOf(column)
    if (index < 0) source.findings.error(placeOf(0), `there is no column \`${column}\`, which the job names`)
    else if (taken.includes(column))
      source.findings.error(placeOf(index), "the job already uses this column for something else")
    taken.push(column)
  }
  const known = columns.includes(idColumn)
  if (!known) {
    const near = nearestName(idColumn, columns)
    const hint = near === undefined ? "" : `; is it \`${near}\`?`
    source.findings.error(placeOf(0), `there is no column \`${idColumn}\`${hint}`)
  }
  return known && twice < 0 && unnamed < 0
}

/** As it would stand in a CSV file, whatever its type in this one: the engine's form decides what it is. */
const plainText = (value: unknown): unknown =>
  Predicate.isNumber(value) || Predicate.isBoolean(value) ? String(value) : value

/** `a b`, `a, b`, `a;b` or a list of strings. */
const codesIn = (findings: Findings, value: unknown, place: Place): ReadonlyArray<string> => {
  if (Predicate.isNullish(value)) return []
  const texts = Array.isArray(value) ? value : [value]
  if (texts.every(Predicate.isString)) return texts.flatMap((text) => text.split(/[\s,;]+/).filter(Boolean))
  findings.error(place, "expected a text, or a list of texts")
  return []
}

/** The name of a stored token, which may have any characters; undefined if the cell is empty. */
const tokenIn = (findings: Findings, value: unknown, place: Place): string | undefined => {
  if (Predicate.isNullish(value) || value === "") return undefined
  if (Predicate.isString(value)) return value
  findings.error(place, "expected a text")
  return undefined
}

export interface CustomerRow {
  readonly place: Place
  readonly customer_id: CustomerId
  readonly engine_reference: EngineReference | undefined
  readonly parameters: Readonly<Record<string, ParameterSource>>
  /** The row's own features; undefined: those of the job. */
  readonly features?: ReadonlyArray<string>
  readonly token?: string
}

interface CustomersSource extends NamedColumns {
  /** The path to open, and the path to show. */
  readonly path: string
  /** Columns that hold references; undefined if the job does not list any. */
  readonly references: ReadonlyArray<string> | undefined
  /** The job file's folder: references to files are relative to it. */
  readonly folder: string
  readonly onRow: (row: CustomerRow) => void
}

interface Reading extends CustomersSource {
  readonly cells: Cells
}

/** Far more than a million customers need, and less than a mistake that fills a disk. */
const bytesMax = 500_000_000

/** What a row may contain; a larger one belongs to a different kind of file. */
const rowsMax = 1_000_000
const lineMax = 1_000_000
const depthMax = 64

const repeatedHeader =
  "this row repeats the header, as if two exports had been put together: remove it if both belong in this " +
  "file"

const takeRow = (
  source: Reading,
  placeOf: (column: string) => Place,
  entries: Iterable<readonly [string, unknown]>,
): void => {
  const { findings } = source
  const parameters: Array<readonly [string, ParameterSource]> = []
  let features: ReadonlyArray<string> = []
  let token: string | undefined
  const named: Record<typeof idColumn | typeof engineColumn, string | undefined> = {
    customer_id: undefined,
    engine_reference: undefined,
  }
  for (const [column, cell] of entries) {
    const value = plainText(cell)
    if (column === idColumn || column === engineColumn) {
      if (Predicate.isNullish(value)) continue
      if (Predicate.isString(value)) named[column] = value === "" ? undefined : value
      else findings.error(placeOf(column), `\`${column}\` must be a string`)
      continue
    }
    if (column === source.features_column) {
      features = codesIn(findings, value, placeOf(column))
      continue
    }
    if (column === source.token_column) {
      token = tokenIn(findings, value, placeOf(column))
      continue
    }
    const parameter = source.cells.read(column, value, placeOf(column))
    if (parameter !== undefined) parameters.push([column, parameter])
  }
  if (named.customer_id === undefined) {
    findings.error(placeOf(idColumn), `\`${idColumn}\` is empty or missing`)
    return
  }
  if (named.customer_id.trim() === idColumn) {
    findings.error(placeOf(idColumn), repeatedHeader, "header")
    return
  }
  source.onRow({
    place: placeOf(idColumn),
    customer_id: CustomerId.make(named.customer_id),
    engine_reference:
      named.engine_reference === undefined ? undefined : EngineReference.make(named.engine_reference),
    parameters: Object.fromEntries(parameters),
    ...(features.length === 0 ? {} : { features }),
    ...(token === undefined ? {} : { token }),
  })
}

/** The text of a UTF-8 file; an invalid byte is one error and ends the reading. */
const readTexts = (source: CustomersSource, onText: (text: string) => void) =>
  Effect.gen(function* () {
    const decoder = new TextDecoder("utf-8", { fatal: true })
    const decode = (bytes?: Uint8Array) =>
      Effect.try({
        try: () => (bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })),
        catch: () => "the file is not UTF-8; export it again as UTF-8",
      }).pipe(Effect.map(onText))
    const reading = streamFile(source.path, bytesMax).pipe(
      Stream.mapError((reason) => `the file cannot be read (${reason})`),
      Stream.runForEach(decode),
    )
    const read = yield* Effect.result(Effect.andThen(reading, decode()))
    if (Result.isFailure(read)) {
      source.findings.error(topOf(source.path), read.failure)
    }
    return Result.isSuccess(read)
  })

const readCsv = (source: Reading) => {
  const { findings, path } = source
  let header: ReadonlyArray<string> | undefined
  let usable = false
  const onRow = (row: CsvRow): void => {
    const placeAt = (index: number): Place => ({
      file: path,
      line: row.line,
      column: row.columns[index] ?? 1,
    })
    if (header === undefined) {
      header = row.cells.map((name) => name.trim())
      usable = checkColumns(source, header, placeAt)
      return
    }
    if (!usable) return
    if (row.cells.length !== header.length) {
      const counts = `${counted(row.cells.length, "cell")}, but the header has ${header.length}`
      return findings.error(placeAt(0), `this row has ${counts}`)
    }
    const names = header
    let index = -1
    // A row's columns are read in order, except the id's, which is read again.
    const placeOf = (column: string) => placeAt(names[index] === column ? index : names.indexOf(column))
    takeRow(
      source,
      placeOf,
      (function* () {
        for (index = 0; index < names.length; index++) {
          const cell = row.cells[index]
          yield [names[index] ?? "", cell === "" ? undefined : cell] as const
        }
      })(),
    )
  }
  let told = false
  const onError = (at: { readonly line: number; readonly column: number }, message: string): void => {
    told = true
    findings.error({ file: path, ...at }, message)
  }
  const reader = new CsvReader(onRow, onError)
  return readTexts(source, (text) => reader.push(text)).pipe(
    Effect.map((whole) => {
      if (!whole) return
      reader.end()
      if (header === undefined && !told) findings.error(topOf(path), "the file is empty")
    }),
  )
}

/** A number keeps its spelling. */
const keepSpelling = (_: string, value: unknown, context?: { readonly source?: string }): unknown => {
  const spelling = context?.source
  if (!Predicate.isNumber(value) || spelling === undefined) return value
  return String(value) === spelling ? value : spelling
}

const longLine = `a line is longer than ${lineMax} characters`

/** `JSON.parse` quotes what it cannot read, so its own words never leave this function. */
const parseLine = (line: string): object | string => {
  try {
    const value: unknown = JSON.parse(line, keepSpelling)
    if (!Predicate.isObject(value)) return "this line is not a JSON object"
    if (repeatsKey(line)) return "this line names one of its fields twice, with different values"
    return isTooDeep(value, depthMax) ? "this line is nested too deeply" : value
  } catch {
    return "this line is not a JSON object"
  }
}

const isTooDeep = (value: unknown, levels: number): boolean =>
  typeof value === "object" &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isTooDeep(inner, levels - 1)))

const readNdjson = (source: Reading) => {
  let rest = ""
  let lineNumber = 0
  const onLine = (line: string): void => {
    lineNumber += 1
    if (line.trim() === "") return
    const place: Place = { file: source.path, line: lineNumber, column: 1 }
    const value = parseLine(line)
    if (Predicate.isString(value)) return source.findings.error(place, value)
    const entries = Object.entries(value)
    if (entries.length > cellsMax)
      return source.findings.error(place, `this line has more than ${cellsMax} fields`)
    takeRow(source, () => place, entries)
  }
  let isEndless = false
  const push = (text: string): void => {
    if (isEndless) return
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    lines.forEach(onLine)
    if (rest.length <= lineMax) return
    source.findings.error({ file: source.path, line: lineNumber + 1, column: 1 }, longLine)
    isEndless = true
  }
  return readTexts(source, push).pipe(
    Effect.map((whole) => {
      if (whole && !isEndless && rest !== "") onLine(rest)
    }),
  )
}

const noText = (column: string): string =>
  `in this row, \`${column}\` is a list, a structure or bytes that are not UTF-8: write it as text`

/** DuckDB is loaded only for Parquet: a job without such a file starts without it. */
const readParquet = (source: Reading) =>
  Effect.gen(function* () {
    const { readParquetRows } = yield* Effect.promise(() => import("./ParquetRows.ts"))
    const read = yield* Effect.result(
      readParquetRows(source.path, { rowsMax, columnsMax: cellsMax, bytesMax }),
    )
    if (Result.isFailure(read)) {
      return source.findings.error(topOf(source.path), read.failure)
    }
    const { columns, rows } = read.success
    const placeOf = (line: number) => (column: string) => ({
      file: source.path,
      line,
      column: columns.indexOf(column) + 1,
    })
    if (!checkColumns(source, columns, (column) => ({ ...topOf(source.path), column: column + 1 }))) return
    rows.forEach((cells, index) => {
      const entries = columns.map((name, column) => [name, cells[column]] as const)
      const nested = entries.find(
        ([name, cell]) => name !== source.features_column && typeof cell === "object" && cell !== null,
      )
      if (nested === undefined) return takeRow(source, placeOf(index + 1), entries)
      const [name] = nested
      source.findings.error(placeOf(index + 1)(name), noText(name), `nested ${name}`)
    })
  })

const readerOf = (path: string) => {
  switch (/\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase()) {
    case "csv":
      return readCsv
    case "ndjson":
    case "jsonl":
      return readNdjson
    case "parquet":
      return readParquet
    default:
      return undefined
  }
}

/**
 * Calls `onRow` for every usable row; anything else in the file is a finding. `from` and `listed`: where the
 * job names the file and its references. Returns whether the file itself has values of logins.
 */
export const readCustomersFile = Effect.fn("CustomersFile.read")(function* (
  source: CustomersSource,
  from: Place,
  listed: Place,
) {
  const { findings, path } = source
  const refuse = (message: string): boolean => (findings.error(from, message), false)
  const read = readerOf(path)
  if (read === undefined) return refuse("expected a file that ends in .csv, .ndjson, .jsonl or .parquet")
  // A file that cannot be opened has no lines: the job file is what to correct.
  const checked = yield* Effect.result(checkFile(path, bytesMax))
  if (Result.isFailure(checked)) {
    const missing = checked.failure === noSuchFile
    return refuse(
      missing ? `there is no file \`${path}\`` : `\`${path}\` cannot be read (${checked.failure})`,
    )
  }
  const cells = makeCells(source, listed)
  yield* read({ ...source, cells })
  cells.end()
  return cells.hasLogins()
})

// Somebody else may have typed a cell, so it is the value that it shows: only a column that the job lists
// under `references` is read for `env:` and `file:`, and no cell ever names a command to run.

interface ColumnSeen {
  cells: number
  /** Cells that would be references in another column, and the first of them. */
  alike: number
  place: Place | undefined
}

const exec = /^\s*exec:/i
const isAlike = (value: unknown): boolean => typeof value === "string" && looksLikeReference(value)

const noReference =
  "this is not a whole reference, and `references` lists this column: write env:NAME or file:PATH, in " +
  "lower case, or leave the cell empty"

const literal = (value: unknown): ParameterSource => ({ _tag: "Literal", value: Redacted.make(value) })

/** One file's cells; `end` reports what only the whole file shows. */
const makeCells = ({ references, folder, findings }: CustomersSource, listed: Place) => {
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
    findings.error(place, noReference, `empty ${column}`)
    return undefined
  }

  /** Undefined for a cell that is empty or has an error. */
  const read = (column: string, value: unknown, place: Place): ParameterSource | undefined => {
    const seen = columns.get(column) ?? { cells: 0, alike: 0, place: undefined }
    columns.set(column, seen)
    if (value === undefined || value === null || (value === "" && declared.has(column))) return undefined
    seen.cells += 1
    // Anything else there was meant as a reference too, and would be sent as a wrong password.
    if (declared.has(column)) return readReference(column, Predicate.isString(value) ? value : "", place)
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
      findings.error(listed, `the file has no parameter column \`${column}\`${hint}`)
    }
  }

  const hasLogins = (): boolean => literals > 0

  return { read, end, hasLogins }
}

type Cells = ReturnType<typeof makeCells>
