/**
 * The file of variables that belongs to a job: `.env` beside it, or the one that `--env-file` names. A timer
 * starts without the variables of anybody's shell, so a job may keep them in a file that only its owner can
 * read. Where the environment has a variable too, the environment's value counts.
 */
import type { Stats } from "node:fs"
import { stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { parseEnv } from "node:util"
import { ConfigProvider, Effect, Redacted } from "effect"
import { codeOf, readTextFile, topOf } from "../base/DurableFile.ts"
import type { Findings } from "./Problem.ts"
import type { Job } from "./Job.ts"
import type { SecretReference } from "./Scalars.ts"

/** As much as a job file. */
const bytesMax = 64_000_000
const othersMask = 0o077

/** The variables among `names` that the environment of this process has. */
export const readProcess = Effect.fnUntraced(function* (names: Iterable<string>) {
  const provider = yield* ConfigProvider.ConfigProvider
  const values = new Map<string, string>()
  for (const name of names) {
    const node = yield* provider.load([name]).pipe(Effect.orElseSucceed(() => undefined))
    if (node?.value !== undefined) values.set(name, node.value)
  }
  return values
})

/** systemd closes that folder itself, and shows other modes for the files in it. */
const isCredential = Effect.fnUntraced(function* (path: string) {
  const name = "CREDENTIALS_DIRECTORY"
  const folder = (yield* readProcess([name])).get(name)
  return folder !== undefined && dirname(resolve(path)) === resolve(folder)
})

/** The file's mode, such as `0644`, if other users can read or change it; fails with a reason. */
const openModeOf = Effect.fnUntraced(function* (path: string, isGranted: (found: Stats) => boolean) {
  const found = yield* Effect.tryPromise({ try: () => stat(path), catch: (cause) => codeOf(cause) })
  const mode = found.mode & 0o777
  const isOpen = (mode & othersMask) !== 0 && !isGranted(found) && !(yield* isCredential(path))
  return isOpen ? mode.toString(8).padStart(4, "0") : undefined
})

/** Somebody else's file that this process can read through its group alone, as Kubernetes mounts a Secret. */
const isOfOurGroup = ({ mode, uid, gid }: Stats): boolean =>
  (mode & 0o037) === 0 && uid !== process.geteuid?.() && gid === process.getegid?.()

/** Refuses a file of logins that other users can read. One that is gone by now has been read already. */
export const checkLoginsFile = Effect.fnUntraced(function* (path: string, findings: Findings) {
  const mode = yield* Effect.orElseSucceed(openModeOf(path, isOfOurGroup), () => undefined)
  if (mode === undefined) return
  findings.error(topOf(path), openToOthers(path, mode, "this file of logins"))
})

// What Node's `parseEnv` reads otherwise than it looks, without a word: found by name, and told only of a
// name that a job asks for. No text repeats a value.

interface EnvFault {
  readonly line: number
  readonly message: string
}

const faultTexts = {
  cut: "the value would end at its `#`: put it in quotes",
  unclosed:
    "the quote at the beginning of the value is never closed: put quotes of another kind around it all",
  lost: "what follows the closing quote would be lost: put quotes of another kind around the whole value",
  blank: "the white space behind its `=` makes the next line its value: remove it",
}

/** Where a value ends, and what is wrong with how it is written. */
const judgeValue = (text: string, from: number, lineEnd: number) => {
  const value = text.slice(from, lineEnd)
  const written = value.trimStart()
  if (written === "") return { end: lineEnd, fault: value === "" ? undefined : faultTexts.blank }
  const quote = written.charAt(0)
  if (!["'", '"', "`"].includes(quote)) {
    // A comment has a space before it.
    const isCut = /^[^#]*[^#\s]#|^#/.test(value)
    return { end: lineEnd, fault: isCut ? faultTexts.cut : undefined }
  }
  const closing = text.indexOf(quote, lineEnd - written.length + 1)
  if (closing < 0) return { end: lineEnd, fault: faultTexts.unclosed }
  const isWhole = /^[^\S\n]*(?:#|\n|$)/.test(text.slice(closing + 1))
  return { end: closing, fault: isWhole ? undefined : faultTexts.lost }
}

const faultsIn = (source: string): ReadonlyMap<string, EnvFault> => {
  const text = source.replaceAll("\r", "")
  const faults = new Map<string, EnvFault>()
  const firsts = new Map<string, { readonly line: number; readonly written: string }>()
  let [line, next, end] = [0, 0, -1]
  for (const written of text.split("\n")) {
    line += 1
    const from = next
    next += written.length + 1
    const equals = written.indexOf("=")
    // Within the quotes of an earlier line, nothing begins.
    if (from <= end || equals < 1 || written.trimStart().startsWith("#")) continue
    const name = written
      .slice(0, equals)
      .trim()
      .replace(/^export\s+/, "")
    const value = judgeValue(text, from + equals + 1, from + written.length)
    end = value.end
    const own = text.slice(from + equals + 1, end).trim()
    const first = firsts.get(name)
    if (first === undefined) firsts.set(name, { line, written: own })
    const isOther = first !== undefined && first.written !== own
    const twice = `line ${first?.line} has another value of the same name: remove one of the two`
    const message = value.fault ?? (isOther ? twice : undefined)
    if (message !== undefined && !faults.has(name)) faults.set(name, { line, message })
  }
  return faults
}

/** Its variables that are not empty. Fails with a reason that repeats nothing of the file. */
export const readEnvFile = Effect.fnUntraced(function* (path: string) {
  const text = yield* readTextFile(path, bytesMax)
  const openMode = yield* openModeOf(path, () => false)
  const written = Object.entries(parseEnv(text)).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value] as const],
  )
  const variables: ReadonlyMap<string, string> = new Map(written)
  return { path, variables, faults: faultsIn(text), openMode }
})
export type EnvFile = Effect.Success<ReturnType<typeof readEnvFile>>

export const openToOthers = (path: string, mode: string, what = "this file"): string =>
  `other users can read or change ${what} (mode ${mode}), so it is not used: run \`chmod 600 ${path}\``

/** A folder of that name holds a Python environment, as a rule. */
const isThere = (path: string) =>
  Effect.promise(() =>
    stat(path).then(
      (found) => !found.isDirectory(),
      (cause) => codeOf(cause) !== "ENOENT" && codeOf(cause) !== "ENOTDIR",
    ),
  )

/** Nothing if there is no such file, or if it cannot be read, which then is among the findings. */
export const readVariables = Effect.fnUntraced(function* (
  { folder, given }: { readonly folder: string; readonly given: string | undefined },
  findings: Findings,
) {
  const path = given ?? join(folder, ".env")
  if (given === undefined && !(yield* isThere(path))) return undefined
  return yield* readEnvFile(path).pipe(
    Effect.catch((reason) => {
      findings.error(topOf(path), `this file of variables cannot be read (${reason})`)
      return Effect.succeed(undefined)
    }),
  )
})

/** What a job finds when it asks for variables: the environment's, else the file's. */
export const makeEnvironment = (file: EnvFile | undefined) => {
  /** Names whose value came from the file. */
  const taken = new Set<string>()
  const lookUp = Effect.fnUntraced(function* (names: Iterable<string>) {
    const wanted = [...names]
    const values = yield* readProcess(wanted)
    for (const name of wanted) {
      if (values.has(name)) continue
      const written = file?.variables.get(name)
      if (written !== undefined || file?.faults.has(name) === true) taken.add(name)
      if (written !== undefined) values.set(name, written)
    }
    return values
  })
  /** For the text of a file: of what is wrong in the file of variables, the findings hear at once. */
  const lookUpTexts = Effect.fnUntraced(function* (names: Iterable<string>, findings: Findings) {
    const values = yield* lookUp(names)
    for (const name of names) {
      const fault = taken.has(name) ? file?.faults.get(name) : undefined
      if (fault === undefined || file === undefined) continue
      findings.error({ ...topOf(file.path), line: fault.line }, `${name}: ${fault.message}`, name)
    }
    return values
  })
  return { file, lookUp, lookUpTexts, taken }
}

export type Environment = ReturnType<typeof makeEnvironment>

type Referring = Partial<
  Pick<Job, "service" | "tokens_key" | "pseudonyms" | "assignments" | "notify" | "telemetry">
>

const referenceTags: ReadonlySet<unknown> = new Set<SecretReference["_tag"]>(["Env", "File", "Exec"])

/** Every reference in a part of a job changed. Literals are redacted, and not opened. */
const changeIn = <A>(part: A, change: (one: SecretReference) => SecretReference): A => {
  if (Array.isArray(part)) return part.map((one) => changeIn<unknown>(one, change)) as A
  if (typeof part !== "object" || part === null || Redacted.isRedacted(part)) return part
  if ("_tag" in part && referenceTags.has(part._tag)) return change(part as never) as A
  return Object.fromEntries(
    Object.entries(part).map(([key, value]: [string, unknown]) => [key, changeIn(value, change)]),
  ) as A
}

/** Of an assignment, only the login has references; the rest is sent as it is. */
const mapReferences = <J extends Referring>(job: J, change: (one: SecretReference) => SecretReference): J => {
  const { service, tokens_key, pseudonyms, assignments, notify, telemetry } = job
  return {
    ...job,
    ...changeIn({ service, tokens_key, pseudonyms }, change),
    ...(assignments && {
      assignments: assignments.map((one) => ({ ...one, login: changeIn(one.login, change) })),
    }),
    ...changeIn({ notify, telemetry }, change),
  }
}

/** Every reference of a job, repeated ones included. */
export const referencesOf = (job: Referring): ReadonlyArray<SecretReference> => {
  const found: Array<SecretReference> = []
  mapReferences(job, (one) => (found.push(one), one))
  return found
}

export const variablesOf = (job: Referring): ReadonlySet<string> => variableNames(referencesOf(job))

export const variableNames = (references: ReadonlyArray<SecretReference>): ReadonlySet<string> =>
  new Set(references.flatMap((one) => (one._tag === "Env" ? [one.name] : [])))

const inFile = (job: Job, path: string, names: ReadonlySet<string>): Job => ({
  ...mapReferences(job, (one) => (one._tag === "Env" && names.has(one.name) ? { ...one, file: path } : one)),
  env_file: path,
})

/** A file that others can read is refused if the job takes anything from it, or if it was named. */
export const bindVariables = Effect.fnUntraced(function* (
  job: Job,
  { file, lookUp, taken }: Environment,
  isNamed: boolean,
) {
  if (file === undefined) return job
  yield* lookUp(variablesOf(job))
  const { path, openMode } = file
  if (openMode === undefined || (taken.size === 0 && !isNamed)) return inFile(job, path, taken)
  return yield* Effect.fail({ ...topOf(path), message: openToOthers(path, openMode) })
})
