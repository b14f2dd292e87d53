/**
 * A job file's text, read along the schema of a job, its `${NAME}` replaced from the environment; what is
 * wrong with it goes to the findings.
 */
import type { SchemaAST } from "effect"
import { readYamlText } from "../foundation/YamlText.ts"
import type { Replace, YamlDocument } from "../foundation/YamlText.ts"
import type { Findings } from "./Problem.ts"

/** Far above any honest file; a further one is told as if the environment did not have it. */
const variablesMax = 1_000

const variable = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The variables a text asks the environment for. */
export const variablesIn = (source: string): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const [, name = ""] of source.matchAll(variable)) {
    names.add(name)
    if (names.size >= variablesMax) break
  }
  return names
}

/** A command keeps its `${NAME}`: the shell replaces it, and the value never stands in the command's text. */
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
