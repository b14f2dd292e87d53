/**
 * A reading as a file: the result is the reading, or everything that is wrong with the file at once; and
 * back to a file, with a comment for each key that says where the reference leaves room and which other
 * values there are.
 */
import { Effect, Predicate, Record, Schema, type Result } from "effect"
import { Problem } from "../../base/DurableFile.ts"
import { suggestion } from "../../base/Text.ts"
import { decodeYaml, problemLines, readYaml, type YamlKind } from "../../base/YamlText.ts"
import { Faults, endpointNames } from "../faults/Faults.ts"
import { Reading, readingChoices, wrapWords } from "../state/Reading.ts"

const problems = { problems: Schema.Array(Problem) }

/** The file cannot be used; every problem at once, from top to bottom. */
export class ReadingInvalid extends Schema.TaggedError<ReadingInvalid>()("ReadingInvalid", problems) {
  override readonly message = problemLines(this.problems)
}
export class FaultsInvalid extends Schema.TaggedError<FaultsInvalid>()("FaultsInvalid", problems) {
  override readonly message = problemLines(this.problems)
}

const choiceOf = (key: PropertyKey | undefined) => readingChoices.find((choice) => choice.key === key)

const readingFile: YamlKind<Reading> = {
  named: "the reading file",
  schema: Reading,
  wordsFor: (path, value) => {
    const choice = choiceOf(path[0])
    if (choice === undefined || !Predicate.isString(value)) return undefined
    return `\`${choice.key}\` cannot be \`${value}\`${suggestion(value, choice.values, Infinity)}`
  },
  /** YAML's own null is the word `null` of the keys that have one, and an empty file sets nothing. */
  prepare: (root) => {
    if (root === null) return {}
    if (!Predicate.isObject(root)) return root
    const word = (key: string, value: unknown) =>
      value === null && choiceOf(key)?.values.includes("null") === true ? "null" : value
    return Record.map({ ...root }, (value, key) => word(key, value))
  },
}

/** Judges the text of such a file; `file` is only used as a name. */
export const decodeReading = (file: string, source: string): Result.Result<Reading, ReadonlyArray<Problem>> =>
  decodeYaml(readingFile, file, source)

/** Reads the file that `--reading` or a job's `service` names. */
export const readReading = (path: string): Effect.Effect<Reading, ReadingInvalid> =>
  Effect.mapError(readYaml(readingFile, path), (problems) => new ReadingInvalid({ problems }))

/** The text of a file that sets exactly this; `decodeReading` gives the same reading again. */
export const encodeReading = (reading: Reading): string =>
  readingChoices
    .flatMap(({ key, about, values }) => {
      const value: unknown = Reflect.get(reading, key)
      if (!Predicate.isString(value)) return []
      const comment = wrapWords(`${about} (${values.join(" | ")})`, "# ")
      return [[...comment, `${key}: ${value === "null" ? '"null"' : value}`, ""].join("\n")]
    })
    .join("\n")

const faultsFile: YamlKind<Faults> = {
  named: "the faults file",
  schema: Faults,
  wordsFor: (path, value) =>
    path.includes("on") && Predicate.isString(value)
      ? `there is no endpoint \`${value}\`${suggestion(value, endpointNames, Infinity)}`
      : undefined,
}

/** Judges the text of a file of faults; `file` is only used as a name. */
export const decodeFaults = (file: string, source: string): Result.Result<Faults, ReadonlyArray<Problem>> =>
  decodeYaml(faultsFile, file, source)

/** Reads the file that `--faults` or a job's `service` names. */
export const readFaults = (path: string): Effect.Effect<Faults, FaultsInvalid> =>
  Effect.mapError(readYaml(faultsFile, path), (problems) => new FaultsInvalid({ problems }))
