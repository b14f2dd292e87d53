/**
 * References to secrets as a job file spells them: `env:NAME`, `file:PATH`, `exec:COMMAND`. Parsing one
 * resolves nothing; a path is relative to the job file, so that a job works from any working directory.
 */
import { isAbsolute, join } from "node:path"
import { Redacted } from "effect"
import type { ParameterSource, SecretReference } from "./Job.ts"

const prefixes = /^(?:env|file|exec):/

/** Whether a text looks like a reference, valid or not. */
export const looksLikeReference = (text: string): boolean => prefixes.test(text)

const environmentName = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Undefined if the text is not a reference, or is an empty one. */
export const parseReference = (text: string, folder: string): SecretReference | undefined => {
  const colon = text.indexOf(":")
  const rest = text.slice(colon + 1).trim()
  if (rest === "") return undefined
  switch (text.slice(0, Math.max(colon, 0))) {
    case "env":
      return environmentName.test(rest) ? { _tag: "Env", name: rest } : undefined
    case "file":
      return { _tag: "File", path: isAbsolute(rest) ? rest : join(folder, rest) }
    case "exec":
      return { _tag: "Exec", command: rest }
    default:
      return undefined
  }
}

/** What every command of a reference finds in its environment; all else it has to name. */
export const commandVariables: ReadonlyArray<string> = ["PATH", "HOME", "LANG"]

/** The variables that a command names as a shell reads them: `$NAME` or `${NAME}`. */
export const namedIn = (command: string): ReadonlyArray<string> =>
  [...command.matchAll(/\$\{?([A-Za-z_][A-Za-z0-9_]*)/g)].flatMap(([, name]) => name ?? [])

/** How errors and reports name a reference. A command may contain anything, so it is not repeated. */
export const describeReference = (reference: SecretReference): string => {
  switch (reference._tag) {
    case "Env":
      return `env:${reference.name}`
    case "File":
      return `file:${reference.path}`
    case "Exec":
      return "exec:…"
  }
}

/** Tells references apart; never shown, for it repeats commands. */
export const keyOfReference = (reference: SecretReference): string => {
  if (reference._tag === "Exec") return `exec:${reference.command}`
  const from = reference._tag === "Env" && reference.file !== undefined ? ` in ${reference.file}` : ""
  return `${describeReference(reference)}${from}`
}

const holdsReference = (value: unknown): boolean => {
  if (typeof value === "string") return looksLikeReference(value)
  return typeof value === "object" && value !== null && Object.values(value).some(holdsReference)
}

/** One parameter of a file: redacted immediately, or a reference; a string says why it is neither. */
export const readParameter = (value: unknown, folder: string): ParameterSource | string => {
  if (typeof value === "string" && looksLikeReference(value)) {
    const reference = parseReference(value, folder)
    return reference === undefined
      ? "this reference is empty: write env:NAME, file:PATH or exec:COMMAND"
      : { _tag: "Reference", reference }
  }
  if (typeof value === "object" && holdsReference(value)) {
    return "a reference must be a parameter's whole value; it is not read inside lists and mappings"
  }
  return { _tag: "Literal", value: Redacted.make(value) }
}
