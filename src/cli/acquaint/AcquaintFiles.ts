/**
 * What `acquaint` writes to the output folder: the calls, the report, the reading and the results sources
 * that fit, readable by their owner only. The reading contains only what was observed.
 */
import { existsSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Effect, Result, Schema } from "effect"
import type { CustomerId, EngineReference } from "../../service/Ids.ts"
import type { RecordedCall } from "./Calls.ts"
import type { FittedSource } from "./FitSources.ts"
import type { Observed } from "./Observe.ts"
import { callLine } from "./Report.ts"
import { encodeReading } from "../../sandbox/readings/ReadingFile.ts"
import { Reading, readingChoices } from "../../sandbox/state/Reading.ts"
import { refuse } from "../Failures.ts"
import { makePrivate, writeWhole } from "../RunFolder.ts"

/** A safe folder name, whatever the ids contain. */
const folderName = (text: string): string => text.replaceAll(/[^A-Za-z0-9.-]/g, "_")

export const acquaintFolder = (
  output: string,
  customer_id: CustomerId,
  engine_reference: EngineReference,
): string => join(output, "acquaint", `${folderName(customer_id)}.${folderName(engine_reference)}`)

export const sectionOf = (key: string): string | undefined =>
  readingChoices.find((choice) => choice.key === key)?.section

const decodeReading = Schema.decodeUnknownResult(Reading)

/** Each key with the call that shows it; a value that no reading has appears only in the report. */
export const readingText = (observed: ReadonlyArray<Observed>): string => {
  const parts = observed.flatMap(({ key, value, call }) => {
    const decoded = decodeReading({ [key]: value })
    return Result.isSuccess(decoded) ? [`# Observed in call ${call}.\n${encodeReading(decoded.success)}`] : []
  })
  const head = "# A reading of the reference, as far as one run showed it: `nightjar sandbox --reading FILE`."
  return `${head}\n\n${parts.join("\n")}`
}

/** The user's own rows are never overwritten; our own folder is written afresh each time. */
export const claimSchemas = (folder: string, isOurs: boolean) => {
  const results = join(folder, "results")
  return Effect.suspend(() => {
    const names = existsSync(results) ? readdirSync(results) : []
    if (isOurs) rmSync(folder, { recursive: true, force: true })
    else if (names.length > 0) return Effect.fail(refuse("results-sources-exist", { folder: results }))
    return Effect.void
  })
}

/** Returns the results source files that were written. */
export const writeSources = Effect.fnUntraced(function* (
  folder: string,
  fitted: ReadonlyArray<FittedSource>,
) {
  const results = join(folder, "results")
  const written: Array<string> = []
  for (const { name, text } of fitted) {
    if (text === undefined) continue
    if (written.length === 0) yield* makePrivate(folder)
    yield* writeWhole(results, `${name}.yaml`, text, "none")
    written.push(join(results, `${name}.yaml`))
  }
  return written
})

export const writeCalls = Effect.fnUntraced(function* (folder: string, calls: ReadonlyArray<RecordedCall>) {
  // Each folder on the path is closed to others, whoever created it.
  yield* makePrivate(join(folder, ".."))
  yield* writeWhole(folder, "calls.ndjson", calls.map((call) => `${callLine(call)}\n`).join(""), "none")
})

export const writeRecord = Effect.fnUntraced(function* (input: {
  readonly folder: string
  readonly calls: ReadonlyArray<RecordedCall>
  readonly observed: ReadonlyArray<Observed>
  readonly report: string
}) {
  const { folder, calls } = input
  const files = {
    calls: join(folder, "calls.ndjson"),
    report: join(folder, "report.md"),
    reading: join(folder, "reading.yaml"),
  }
  yield* writeCalls(folder, calls)
  yield* writeWhole(folder, "reading.yaml", readingText(input.observed), "none")
  yield* writeWhole(folder, "report.md", input.report, "none")
  return files
})
