/**
 * What is wrong with a job: every problem has a file, a line and a column, and says what to do without ever
 * repeating a value; names of keys, engines and features are not values.
 */
import { Predicate, Result, Schema } from "effect"
import { Problem, renderProblem, type Place } from "../base/DurableFile.ts"
import { findingsOf, type Path } from "../base/Schemas.ts"
import { nearestName, suggestion } from "../base/Text.ts"
import { readYamlText, type Replace, type YamlDocument, type YamlText } from "../base/YamlText.ts"
import { looksLikeReference } from "./Scalars.ts"

/** The job cannot be run as it is written: every error at once, in the order of the files. */
export class JobInvalid extends Schema.TaggedError<JobInvalid>()("JobInvalid", {
  problems: Schema.Array(Problem),
  warnings: Schema.Array(Problem),
}) {
  override get message(): string {
    return this.problems.map(renderProblem).join("\n")
  }
}

const byPlace = (a: Problem, b: Problem): number => a.line - b.line || a.column - b.column

/** More of them help nobody, and a file may have a million errors. */
const problemsMax = 1_000

const makeList = () => {
  const found: Array<{ readonly first: Problem; further: number }> = []
  const groups = new Map<string, { further: number }>()
  const add = (place: Place, message: string, group?: string): void => {
    const key = group === undefined ? undefined : JSON.stringify([place.file, group])
    const seen = key === undefined ? undefined : groups.get(key)
    if (seen !== undefined) {
      seen.further += 1
      return
    }
    if (found.length > problemsMax) return
    const more = "more problems may be reported once these are corrected"
    const entry = { first: { ...place, message: found.length === problemsMax ? more : message }, further: 0 }
    found.push(entry)
    if (key !== undefined) groups.set(key, entry)
  }
  const all = (): ReadonlyArray<Problem> =>
    inOrder(
      found.map(({ first, further }) =>
        further === 0 ? first : { ...first, message: `${first.message} (and ${further} more in this file)` },
      ),
    )
  return { add, all, isFull: () => found.length > problemsMax }
}

/** Findings of one `group` in one file are reported once, with a count: a file may have 100,000 rows. */
export const makeFindings = () => {
  const errors = makeList()
  const warnings = makeList()
  return {
    error: errors.add,
    warn: warnings.add,
    errors: errors.all,
    /** Whether looking for more errors is pointless. */
    isFull: errors.isFull,
    warnings: warnings.all,
  }
}
export type Findings = ReturnType<typeof makeFindings>

const inOrder = (problems: ReadonlyArray<Problem>): ReadonlyArray<Problem> =>
  [...Map.groupBy(problems, ({ file }) => file).values()].flatMap((same) => same.sort(byPlace))

export interface Context {
  readonly document: YamlDocument
  readonly findings: Findings
}

/** A key is quoted only if it looks like one: without a space, `{ password:secret }` is a key too. */
export const unknownKey = (key: string, known: ReadonlyArray<string>): string => {
  if (/[:\s]/.test(key)) return "this key is unknown; is a space missing after its colon?"
  const near = nearestName(key, known) !== undefined
  if (!near && !/^[A-Za-z_-]+$/.test(key)) return `this key is unknown${suggestion("", known)}`
  return `unknown key \`${key}\`${suggestion(key, known)}`
}

/** Without these keys an item is a different one, and what is found about it may be wrong. */
const essential = new Set<PropertyKey>(
  "id from engines reference base_url flows_url app_secret sandbox".split(" "),
)

/** What is left of a mapping without its wrong keys, to check for other problems. */
const withoutKeys = (value: unknown, wrong: ReadonlySet<PropertyKey | undefined>): object | undefined => {
  if (!Predicate.isObject(value)) return undefined
  if ([...wrong].some((key) => !Predicate.isString(key) || essential.has(key))) return undefined
  return Object.fromEntries(Object.entries(value).filter(([key]) => !wrong.has(key)))
}

/** Without its wrong keys once its errors went to the findings; undefined if too little would be left. */
export const decodePart = <S extends Schema.ConstraintDecoder<unknown>>(
  context: Context,
  schema: S,
  value: unknown,
  path: Path,
): S["Type"] | undefined => {
  const decode = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  const decoded = decode(value)
  if (Result.isSuccess(decoded)) return decoded.success
  const found = findingsOf(decoded.failure.issue, [], value, { unknownKey, missingAt: "key" })
  for (const { path: where, at, message } of found)
    context.findings.error(context.document.place([...path, ...where], at), message)
  const rest = withoutKeys(value, new Set(found.map(({ path: where }) => where[0])))
  return rest === undefined ? undefined : Result.getOrUndefined(decode(rest))
}

/** Far more than a real file has; any beyond that are reported as missing from the environment. */
const variablesMax = 1_000

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** Nothing of the value stands in the file. */
export const isVariable = (written: string): boolean => /^\$\{[A-Za-z_][A-Za-z0-9_]*\}$/.test(written)

export const variablesIn = (source: string): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const [, name = ""] of source.matchAll(variable)) {
    names.add(name)
    if (names.size >= variablesMax) break
  }
  return names
}

/** Why a value is not what was meant: sent like this, a password would be another one, and rejected. */
export const lostBytes = (value: string): string | undefined =>
  value.includes("\uFFFD") ? "it has U+FFFD in the place of bytes that are not UTF-8" : undefined

/** A customer may choose a password that begins so: it must name no file, other secret or command. */
const madeReference =
  "the value of a variable would make this a reference: write env:NAME for what NAME has, not ${NAME}"

/** A command keeps its `${NAME}`: the shell replaces it, so the value is never in the command's text. */
const replaceFrom =
  (environment: ReadonlyMap<string, string>): Replace =>
  (source, complain) => {
    if (!source.includes("${") || source.startsWith("exec:")) return source
    const replaced = source.replace(variable, (whole, name: string) => {
      const value = environment.get(name)
      if (value === undefined) complain(`the environment has no variable ${name}, or an empty one`)
      const lost = lostBytes(value ?? "")
      if (lost !== undefined) complain(`the variable ${name} cannot be used: ${lost}`)
      return value ?? whole
    })
    if (looksLikeReference(replaced) && !looksLikeReference(source)) complain(madeReference)
    return replaced
  }

interface Source extends Pick<YamlText, "file" | "source" | "schema"> {
  readonly environment: ReadonlyMap<string, string>
  readonly findings: Findings
}

export const readDocument = ({ environment, findings, ...text }: Source): YamlDocument =>
  readYamlText({ ...text, replace: replaceFrom(environment), complain: findings.error })
