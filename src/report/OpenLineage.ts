/**
 * A run as OpenLineage events: when it began and how it ended, the engines that it read and the tables that
 * it wrote. Pure, from the ledger and the manifest, so the same run gives the same events. Names of engines,
 * tables and gates, and counts: no customer, and nothing of a record.
 */
import { stableUuid } from "../base/Hashes.ts"
import { given } from "../base/Schemas.ts"
import { dayMs, isoTime } from "../base/Text.ts"
import type { RunState, TaskState } from "../ledger/RunState.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { placeOf } from "../tables/DataDictionary.ts"
import type { ManifestFile } from "../tables/Manifest.ts"
import type { TableSpec } from "../records/Columns.ts"

/** What the events of all runs share. */
export interface LineageSource {
  /** Absolute path of the output folder. */
  readonly output: string
  readonly toolVersion: string
  readonly tables: ReadonlyArray<TableSpec>
}

/** A run, the files that it has in the published tables, and whether a later run of its job began. */
export interface LineageRun {
  readonly state: RunState
  readonly files: ReadonlyArray<ManifestFile>
  readonly isSuperseded: boolean
  /** When something was last recorded of it. */
  readonly newest_at: number
}

/** Made once, for the ids of runs. */
const runs = "7d1c0b0e-6c53-4d0a-9b4e-5f6f0a6d2f11"
const spec = "https://openlineage.io/spec"
const eventSchema = `${spec}/2-0-2/OpenLineage.json#/$defs/RunEvent`

/** The facets that are used, by the name of their definition. */
const facetVersions = {
  ErrorMessageRunFacet: "1-0-1",
  JobTypeJobFacet: "2-0-3",
  NominalTimeRunFacet: "1-0-1",
  OutputStatisticsOutputDatasetFacet: "1-0-2",
  ProcessingEngineRunFacet: "1-1-1",
  SchemaDatasetFacet: "1-1-1",
}

const producerOf = ({ toolVersion }: LineageSource): string => `urn:nightjar:${toolVersion}`

const facet = <A extends object>(source: LineageSource, name: keyof typeof facetVersions, values: A) => ({
  _producer: producerOf(source),
  _schemaURL: `${spec}/facets/${facetVersions[name]}/${name}.json#/$defs/${name}`,
  ...values,
})

/** Run ids repeat from one output folder to another: the beginning tells those runs apart. */
const runUuid = ({ started, started_at }: RunState): string =>
  stableUuid(runs, `${started.run_id} ${isoTime(started_at)}`)

/**
 * Undefined while the run may still go on. Tasks that failed do not make a run fail: its tables say which. A
 * run fails if none of its tables became current.
 */
const endOf = ({ state, isSuperseded, newest_at }: LineageRun) => {
  const { ended, published, held, stages } = state
  if (ended === undefined)
    return isSuperseded ? { eventType: "ABORT" as const, at: newest_at, why: undefined } : undefined
  const failed = (why: string) => ({ eventType: "FAIL" as const, at: ended.at, why })
  if (held !== undefined) {
    const gates = held.fact.gates.map(
      ({ gate, expected, found }) => `${gate}: expected ${expected}, found ${found}`,
    )
    return failed(`A gate holds the tables back: ${gates.join("; ")}`)
  }
  if (ended.exit_code === exitCodes.refused)
    return failed("The service could not be used: nothing was started")
  if (published === undefined) return failed("No tables were published")
  // What was held back at its end became current later.
  const at = stages.published === undefined ? published.at : ended.at
  return { eventType: "COMPLETE" as const, at, why: undefined }
}

const wasRead = ({ attempts, results }: TaskState): boolean =>
  results.length > 0 || attempts.some(({ execution_id }) => execution_id !== undefined)

/** The ledger does not know the service's address. A session that was only read has no engine. */
const inputsOf = ({ tasks }: RunState) =>
  [
    ...new Set(
      [...tasks.values()].filter(wasRead).map(({ planned }) => planned.engine_reference ?? "sessions"),
    ),
  ]
    .toSorted()
    .map((name) => ({ namespace: "extraction-service", name }))

const outputsOf = (source: LineageSource, files: ReadonlyArray<ManifestFile>) =>
  source.tables.flatMap(({ name, columns }) => {
    const own = files.filter(({ table }) => table === name)
    if (own.length === 0) return []
    const fields = columns.map(({ name, type, comment }) => ({ name, type, description: comment }))
    const sum = (of: (file: ManifestFile) => number) => own.reduce((total, file) => total + of(file), 0)
    const written = { rowCount: sum(({ rows }) => rows), size: sum(({ bytes }) => bytes) }
    return [
      {
        namespace: `duckdb://${source.output}/nightjar.duckdb`,
        name: `nightjar.${placeOf(name)}`,
        facets: { schema: facet(source, "SchemaDatasetFacet", { fields }) },
        outputFacets: {
          outputStatistics: facet(source, "OutputStatisticsOutputDatasetFacet", written),
        },
      },
    ]
  })

/** The beginning, and the end if there is one. */
export const lineageEvents = (source: LineageSource, run: LineageRun) => {
  const { state, files } = run
  const { started, started_at } = state
  const night = Date.parse(`${started.run_date}T00:00:00Z`)
  const facets = {
    nominalTime: facet(source, "NominalTimeRunFacet", {
      nominalStartTime: isoTime(night),
      nominalEndTime: isoTime(night + dayMs),
    }),
    processing_engine: facet(source, "ProcessingEngineRunFacet", {
      name: "nightjar",
      version: started.tool_version,
    }),
  }
  const common = {
    job: {
      namespace: "nightjar",
      name: started.job,
      facets: {
        jobType: facet(source, "JobTypeJobFacet", { processingType: "BATCH", integration: "NIGHTJAR" }),
      },
    },
    inputs: inputsOf(state),
    producer: producerOf(source),
    schemaURL: eventSchema,
  }
  const runId = runUuid(state)
  const start = { eventType: "START", eventTime: isoTime(started_at), run: { runId, facets }, ...common }
  const end = endOf(run)
  if (end === undefined) return [{ ...start, outputs: [] }]
  const { eventType, at, why } = end
  const told = { message: why, programmingLanguage: "TypeScript" }
  const errorMessage = why === undefined ? undefined : facet(source, "ErrorMessageRunFacet", told)
  const outputs = eventType === "COMPLETE" ? outputsOf(source, files) : []
  const ended = {
    eventType,
    eventTime: isoTime(at),
    run: { runId, facets: { ...facets, ...given({ errorMessage }) } },
    ...common,
    outputs,
  }
  return [{ ...start, outputs: [] }, ended]
}
