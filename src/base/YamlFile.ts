/**
 * Reads small YAML files (faults, readings, record schemas): the result is their content, or everything
 * that is wrong with them at once, each with its line and column and the nearest known word. A file that
 * was only partly understood is never used.
 */
import { Effect, Result, Schema } from "effect"
import { Problem, renderProblem } from "./FileProblem.ts"
import type { Place } from "./FileProblem.ts"
import { nearestName } from "./Nearest.ts"
import { readTextFile } from "./RegularFile.ts"
import { findingsOf } from "./SchemaFindings.ts"
import type { Finding, WordsFor } from "./SchemaFindings.ts"
import { readYamlText } from "./YamlText.ts"

/** One line each, as `file:line:column: message`. */
export const problemLines = (problems: ReadonlyArray<Problem>): string =>
  problems.map(renderProblem).join("\n")

/** `; did you mean …?`, or all known names. */
export const suggest = (word: string, known: ReadonlyArray<string>): string => {
  const near = nearestName(word, known)
  return near === undefined ? `; known names: ${known.join(", ")}` : `; did you mean \`${near}\`?`
}

const unknownKey = (key: string, known: ReadonlyArray<string>): string =>
  `unknown key \`${key}\`${suggest(key, known)}`

/** A kind of file: what it may contain, and the words for what it may not. */
export interface YamlKind<A> {
  /** `the faults file` */
  readonly named: string
  readonly schema: Schema.ConstraintDecoder<A>
  readonly wordsFor?: WordsFor
  /** Checks that a schema of single values cannot express. */
  readonly check?: (value: A) => ReadonlyArray<Finding>
  /** What the schema is given for the value that YAML reads. */
  readonly prepare?: (root: unknown) => unknown
}

/** Judges the text of a file; `file` is only used as a name. */
export const decodeYaml = <A>(
  { schema, wordsFor, check = () => [], prepare = (root) => root }: YamlKind<A>,
  file: string,
  source: string,
): Result.Result<A, ReadonlyArray<Problem>> => {
  const problems: Array<Problem> = []
  const complain = (place: Place, message: string) => problems.push({ ...place, message })
  const document = readYamlText({ file, source, complain })
  if (problems.length === 0) {
    const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
    const decoded = decode(prepare(document.root))
    const words = { ...(wordsFor === undefined ? {} : { wordsFor }), unknownKey, missingAt: "value" } as const
    const found = Result.isSuccess(decoded)
      ? check(decoded.success)
      : findingsOf(decoded.failure.issue, [], document.root, words)
    if (Result.isSuccess(decoded) && found.length === 0) return Result.succeed(decoded.success)
    for (const { path, at, message } of found) complain(document.place(path, at), message)
  }
  return Result.fail(problems.toSorted((a, b) => a.line - b.line || a.column - b.column))
}

/** Larger than any honest file. */
const bytesMax = 1_000_000

/** Reads a regular file of this kind. */
export const readYaml = <A>(kind: YamlKind<A>, path: string): Effect.Effect<A, ReadonlyArray<Problem>> => {
  const unreadable = (message: string): ReadonlyArray<Problem> => [
    { file: path, line: 1, column: 1, message },
  ]
  return readTextFile(path, bytesMax).pipe(
    Effect.mapError((reason) => unreadable(`${kind.named} cannot be read (${reason})`)),
    Effect.flatMap((source) => Effect.fromResult(decodeYaml(kind, path, source))),
  )
}
