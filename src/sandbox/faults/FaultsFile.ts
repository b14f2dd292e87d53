/**
 * Reads a file of faults: the result is its content, or everything that is wrong with it at once, each with
 * its line and column. A file that was only partly understood is never used.
 */
import { Effect, Predicate, Schema } from "effect"
import type { Result } from "effect"
import { endpointNames, Faults } from "./Faults.ts"
import { Problem } from "../../base/DurableFile.ts"
import { decodeYaml, problemLines, readYaml, suggest } from "../../base/YamlText.ts"
import type { YamlKind } from "../../base/YamlText.ts"

/** The file cannot be used; every problem at once, from top to bottom. */
export class FaultsInvalid extends Schema.TaggedError<FaultsInvalid>()("FaultsInvalid", {
  problems: Schema.Array(Problem),
}) {
  override get message(): string {
    return problemLines(this.problems)
  }
}

const faultsFile: YamlKind<Faults> = {
  named: "the faults file",
  schema: Faults,
  wordsFor: (path, value) =>
    path.includes("on") && Predicate.isString(value)
      ? `there is no endpoint \`${value}\`${suggest(value, endpointNames)}`
      : undefined,
}

/** Judges the text of a file of faults; `file` is only used as a name. */
export const decodeFaults = (file: string, source: string): Result.Result<Faults, ReadonlyArray<Problem>> =>
  decodeYaml(faultsFile, file, source)

/** Reads the file that `--faults` or a job's `service` names. */
export const readFaults = (path: string): Effect.Effect<Faults, FaultsInvalid> =>
  Effect.mapError(readYaml(faultsFile, path), (problems) => new FaultsInvalid({ problems }))
