/**
 * Results sources from a job's folder: `<schemas>/results/NAME.yaml`, one row each. A file with the name of
 * a built-in row changes the keys that it sets; any other is a whole row. A mistake here may cost records,
 * so a rule that trusts the service's word for completeness gets a warning.
 */
import { join } from "node:path"
import { Effect, FileSystem, Result, Schema, Struct } from "effect"
import { ResultsSource, builtInSources, sourceNamePattern } from "../service/FlowResults.ts"
import { nearestName } from "../base/Text.ts"
import { missingKey } from "../base/Schemas.ts"
import { decodePart, readDocument, type Findings } from "./Problem.ts"
import { beside } from "./Scalars.ts"
import { readTextFile, topOf, type Place } from "../base/DurableFile.ts"

/** Far more than a service has; stops a wrong folder. */
const filesMax = 100
const bytesMax = 100_000

const { name: _, ...keys } = ResultsSource.fields
/** A file for an existing row contains only what it changes. */
const SourceFile = Schema.Struct(keys).mapFields(Struct.map(Schema.optionalKey))
type SourceFile = typeof SourceFile.Type

const rowDefaults = {
  enabled: true,
  api: "base_url",
  records: ["records", "data", "body"],
  counts: "sub_family",
  nothing: [404],
  attachments: false,
} as const satisfies SourceFile
const rowRequired = ["path", "families", "final"] as const

/** These statuses are about the caller or the moment, never about what an execution holds. */
const neverNothing: ReadonlySet<number> = new Set([401, 403, 408, 425, 429])

interface Surroundings {
  readonly findings: Findings
  /** The job file's. */
  readonly folder: string
  readonly environmentOf: (source: string) => Effect.Effect<ReadonlyMap<string, string>>
}

interface Row {
  readonly source: ResultsSource
  readonly placeOf: (key: keyof SourceFile) => Place
}

/** Undefined after its errors went to the findings. */
const rowOf = (
  findings: Findings,
  name: string,
  file: SourceFile,
  placeOf: Row["placeOf"],
): Row | undefined => {
  const builtIn = builtInSources.find((row) => row.name === name)
  if (builtIn !== undefined) return { source: { ...builtIn, ...file }, placeOf }
  const { path, families, final } = file
  if (path !== undefined && families !== undefined && final !== undefined) {
    return { source: { ...rowDefaults, ...file, name, path, families, final }, placeOf }
  }
  const near = nearestName(
    name,
    builtInSources.map((row) => row.name),
  )
  const meant = near === undefined ? "" : `; a file that changes the built-in row is named \`${near}.yaml\``
  for (const key of rowRequired) {
    if (file[key] === undefined) findings.error(placeOf(key), missingKey(key) + meant)
  }
  return undefined
}

/** Checks that a schema of single values cannot express. */
const checkRow = (findings: Findings, { source, placeOf }: Row): void => {
  const { name, path, families, records, nothing, counts, enabled } = source
  if (!path.includes("{")) {
    const message =
      "this path names neither {execution_id} nor {session_id}: every execution would get the same records"
    findings.error(placeOf("path"), message)
  }
  if (families.length === 0) findings.error(placeOf("families"), "name at least one family; `*` means any")
  if (records.length === 0) {
    findings.error(placeOf("records"), "name at least one field; `body` is the whole body")
  }
  for (const status of nothing.filter((one) => neverNothing.has(one))) {
    const message = `${status} never means that an execution has no records here: remove it`
    findings.error(placeOf("nothing"), message)
  }
  if (counts === "none" && enabled) {
    const message =
      `what \`${name}\` returns is not compared with a count: a final answer counts as complete, and ` +
      "executions are deleted without that check"
    findings.warn(placeOf("counts"), message)
  }
}

const readRow = Effect.fnUntraced(function* (around: Surroundings, file: string, name: string) {
  const { findings } = around
  const start = topOf(file)
  if (!sourceNamePattern.test(name)) {
    findings.error(
      start,
      "the file's name is the source's name: a-z, 0-9 and _, starting with a letter, at most 64 characters",
    )
    return undefined
  }
  const read = yield* Effect.result(readTextFile(file, bytesMax))
  if (Result.isFailure(read)) {
    findings.error(start, `this results source cannot be read (${read.failure})`)
    return undefined
  }
  const source = read.success
  const environment = yield* around.environmentOf(source)
  const document = readDocument({ file, source, schema: SourceFile.ast, environment, findings })
  if (document.root === undefined) return undefined
  // An empty file changes nothing, which is fine for a built-in row and an error for any other.
  const root = document.root === null ? {} : document.root
  const before = findings.errors().length
  const part = decodePart({ document, findings }, SourceFile, root, [])
  if (part === undefined || findings.errors().length > before) return undefined
  const row = rowOf(findings, name, part, (key) => document.place([key]))
  if (row !== undefined) checkRow(findings, row)
  return row
})

/** If one path were read twice, every record would be there twice. */
const refuseTwins = (findings: Findings, rows: ReadonlyArray<Row>): void => {
  const seen = new Map<string, string>()
  for (const { name, api, path, enabled } of builtInSources) {
    const changed = rows.some(({ source }) => source.name === name)
    if (enabled && !changed) seen.set(`${api} ${path}`, name)
  }
  for (const { source, placeOf } of rows) {
    if (!source.enabled) continue
    const address = `${source.api} ${source.path}`
    const other = seen.get(address)
    if (other === undefined) seen.set(address, source.name)
    else findings.error(placeOf("path"), `\`${other}\` already reads this path: keep one of the two`)
  }
}

/** The names of the files to read; undefined after an error. */
const listFiles = Effect.fnUntraced(function* (around: Surroundings, folder: string, place: Place) {
  const { findings } = around
  const files = yield* FileSystem.FileSystem
  const kind = (path: string) =>
    files.stat(path).pipe(
      Effect.map(({ type }) => type),
      Effect.orElseSucceed(() => undefined),
    )
  if ((yield* kind(folder)) !== "Directory") {
    findings.error(place, "there is no such folder beside the job file")
    return undefined
  }
  const results = join(folder, "results")
  const there = yield* kind(results)
  if (there === undefined) return []
  const names = yield* Effect.orElseSucceed(files.readDirectory(results), () => undefined)
  if (names === undefined || names.length > filesMax) {
    const why = names === undefined ? "cannot be read" : `contains more than ${filesMax} files`
    findings.error(place, `its folder \`results\` ${why}`)
    return undefined
  }
  for (const name of names.filter((one) => one.endsWith(".yml"))) {
    findings.error(
      topOf(join(results, name)),
      "a results source is a file whose name ends in .yaml: rename it",
    )
  }
  return names
    .filter((name) => name.endsWith(".yaml"))
    .toSorted()
    .map((name) => ({ file: join(results, name), name: name.slice(0, -".yaml".length) }))
})

/** The built-in ones first, as changed by files of the job's `schemas`, then its own by name. */
export const loadResultsSources = Effect.fnUntraced(function* (
  around: Surroundings,
  written: string | undefined,
  place: Place,
) {
  if (written === undefined) return builtInSources
  const folder = beside(around.folder, written)
  const listed = (yield* listFiles(around, folder, place)) ?? []
  const read = yield* Effect.forEach(listed, ({ file, name }) => readRow(around, file, name))
  const rows = read.filter((row) => row !== undefined)
  refuseTwins(around.findings, rows)
  const sources = rows.map(({ source }) => source)
  const isBuiltIn = ({ name }: ResultsSource) => builtInSources.some((row) => row.name === name)
  return [
    ...builtInSources.map((row) => sources.find(({ name }) => name === row.name) ?? row),
    ...sources.filter((row) => !isBuiltIn(row)),
  ]
})

/** How a row differs from the built-in one with its name, for people; a row of the job's own is new. */
const differenceOf = (source: ResultsSource): string | undefined => {
  const builtIn = builtInSources.find(({ name }) => name === source.name)
  const { name, ...said } = source
  const text = (value: unknown) => (Array.isArray(value) ? `[${value.join(", ")}]` : String(value))
  if (builtIn === undefined) {
    const off = source.enabled ? "" : ", never asked"
    return `${name} (of this job): ${source.api}${source.path} brings ${source.families.join(", ")}${off}`
  }
  const changes = Object.entries(said).filter(
    ([key, value]) => text(value) !== text(Reflect.get(builtIn, key)),
  )
  return changes.length === 0
    ? undefined
    : `${name}: ${changes.map(([key, value]) => `${key} ${text(value)}`).join(", ")}`
}

export const differences = (sources: ReadonlyArray<ResultsSource>): ReadonlyArray<string> =>
  sources.map(differenceOf).filter((difference) => difference !== undefined)
