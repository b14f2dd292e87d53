/**
 * Loads a job from a text, with whatever files and variables the case needs, in a folder of its own.
 */
import { dirname } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Duration, Effect, FileSystem, Redacted, Result } from "effect"
import { builtInSources } from "../../src/service/FlowResults.ts"
import { loadJob } from "../../src/jobs/LoadJob.ts"
import { renderProblem, type Problem } from "../../src/base/DurableFile.ts"

export interface Surroundings {
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  readonly environment?: Readonly<Record<string, string>>
  /** Of the files that do not have the machine's usual mode. */
  readonly modes?: Readonly<Record<string, number>>
}

/** What loading gave. Values of literals are opened, and paths are relative to the job's folder. */
export interface Loading {
  readonly job: unknown
  readonly errors: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
  /** Whatever left the loader, as logs would show it. */
  readonly shown: string
}

/** A copy to compare with: redacted values as `literal`, undefined left out. */
const open = (value: unknown, folder: string): unknown => {
  if (Redacted.isRedacted(value)) return { literal: Redacted.value(value) }
  if (typeof value === "string") return value.replaceAll(`${folder}/`, "")
  if (Array.isArray(value)) return value.map((item) => open(item, folder))
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return Object.fromEntries(entries.map(([key, inner]) => [key, open(inner, folder)]))
}

export const load = (source: string, surroundings: Surroundings = {}): Effect.Effect<Loading> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const folder = yield* files.makeTempDirectoryScoped()
    yield* files.writeFileString(`${folder}/job.yaml`, source)
    for (const [name, content] of Object.entries(surroundings.files ?? {})) {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content
      yield* files.makeDirectory(dirname(`${folder}/${name}`), { recursive: true })
      yield* files.writeFile(`${folder}/${name}`, bytes)
      const mode = surroundings.modes?.[name]
      if (mode !== undefined) yield* files.chmod(`${folder}/${name}`, mode)
    }
    const environment = ConfigProvider.fromEnvRecord({ ...surroundings.environment })
    const loaded = yield* loadJob(`${folder}/job.yaml`).pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, environment),
      Effect.result,
    )
    const show = (problems: ReadonlyArray<Problem>) =>
      problems.map((problem) => renderProblem(problem).replaceAll(`${folder}/`, ""))
    if (Result.isSuccess(loaded)) {
      const { job, warnings } = loaded.success
      const shown = `${JSON.stringify(loaded.success)} ${String(Object.values(job).flat())}`
      return { job: open(job, folder), errors: [], warnings: show(warnings), shown }
    }
    const { failure } = loaded
    return {
      job: undefined,
      errors: show(failure.problems),
      warnings: show(failure.warnings),
      shown: `${JSON.stringify(failure)} ${String(failure)} ${failure.message} ${failure.stack}`,
    }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.orDie)

/** The smallest job there is. */
export const smallJob = `name: small
service: sandbox
engines: [bank:website]
`

/** The same with customers from a file. */
export const jobFrom = (file: string, references?: string) =>
  `${smallJob}customers:\n  - from: ${file}\n${references === undefined ? "" : `    references: ${references}\n`}`

/** What a job is when it says nothing else. */
export const defaultsOfAJob = {
  execution: {
    execution_timeout: Duration.seconds(1200),
    unlock_protected_data: false,
    max_wait: Duration.millis(12_600_000),
  },
  concurrency: { max_in_flight: 100, per_engine: 20 },
  polling: { min: Duration.millis(2_000), max: Duration.millis(60_000) },
  retry: { max_attempts: 3, base: Duration.millis(30_000), max: Duration.millis(900_000) },
  flow_results: {
    enabled: true,
    min_interval: Duration.millis(5_000),
    wait_final: Duration.millis(600_000),
    attachments: true,
  },
  after_export: "delete",
  share: "none",
  documents: "by_hash",
  parquet: ["current", "history"],
  on_deadline: "carry",
  exit_on: "any",
  notify: [],
  sources: builtInSources,
}

/** What an assignment is when its engine says nothing. */
export const plainEngine = { features: [], configurations: {}, hooks_extra_data: {} }

export const parametersLogin = (parameters: Readonly<Record<string, unknown>>, tokenized_access = false) => ({
  _tag: "Parameters",
  parameters,
  tokenized_access,
})

export const literal = (value: unknown) => ({ _tag: "Literal", value: { literal: value } })
export const env = (name: string) => ({ _tag: "Reference", reference: { _tag: "Env", name } })

/** What is said of a cell that should be a reference. */
export const notWhole =
  "this is not a whole reference, and `references` lists this column: write env:NAME or file:PATH, in lower " +
  "case, or leave the cell empty"
