/**
 * A job file's text, read with the schema of a job, with its `${NAME}` replaced from the environment;
 * problems go to the findings.
 */
import type { SchemaAST } from "effect"
import { readYamlText } from "../base/YamlText.ts"
import type { Replace, YamlDocument } from "../base/YamlText.ts"
import type { Findings } from "./Problem.ts"

/** Far more than a real file has; any beyond that are reported as missing from the environment. */
const variablesMax = 1_000

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The environment variables that a text uses. */
export const variablesIn = (source: string): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const [, name = ""] of source.matchAll(variable)) {
    names.add(name)
    if (names.size >= variablesMax) break
  }
  return names
}

/** A command keeps its `${NAME}`: the shell replaces it, so the value is never in the command's text. */
const replaceFrom =
  (environment: ReadonlyMap<string, string>): Replace =>
  (source, complain) => {
    if (!source.includes("${") || source.startsWith("exec:")) return source
    return source.replace(variable, (whole, name: string) => {
      const value = environment.get(name)
      if (value === undefined) complain(`the environment has no variable ${name}, or an empty one`)
      return value ?? whole
    })
  }

export const readDocument = ({
  file,
  source,
  schema,
  environment,
  findings,
}: {
  readonly file: string
  readonly source: string
  readonly schema: SchemaAST.AST
  readonly environment: ReadonlyMap<string, string>
  readonly findings: Findings
}): YamlDocument =>
  readYamlText({ file, source, schema, replace: replaceFrom(environment), complain: findings.error })
