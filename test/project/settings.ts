/** What follows from the table of settings: `schemas/job.schema.json`, for editors, and `schemas/pages/settings.md`. */
import { SchemaAST } from "effect"
import { jsonSchemaOf } from "../../src/base/Schemas.ts"
import { JobFile } from "../../src/jobs/Settings.ts"
import { jobSettings, type Setting } from "../../src/jobs/Template.ts"

export const jobJsonSchema = () => jsonSchemaOf(JobFile)

const code = (text: string): string => `\`${text}\``

/** A rule in words where there is one. What a duration is, the page says at its beginning. */
const takes = (ast: SchemaAST.AST): string => {
  const rule = (ast.checks ?? []).map(({ annotations }) => annotations?.["expected"]).at(-1)
  if (typeof rule === "string") return rule.replace(/^(a duration [^:]*):.*$/, "$1")
  if (SchemaAST.isUnion(ast)) return [...new Set(ast.types.map(takes))].join(" or ")
  if (SchemaAST.isLiteral(ast)) return code(String(ast.literal))
  if (SchemaAST.isArrays(ast)) return `a list of: ${ast.rest.map(takes).join(" or ")}`
  if (SchemaAST.isBoolean(ast)) return "`true` or `false`"
  if (SchemaAST.isString(ast)) return "a string"
  return SchemaAST.isObjects(ast) ? "a mapping" : "any value"
}

const absentOf = ({ isRequired, default: absent }: Setting): string => {
  if (isRequired) return " (required)"
  return absent === undefined ? "" : ` (default: ${code(JSON.stringify(absent).replaceAll('"', ""))})`
}

const within = { value: "", mapping: ".", list: "[].", record: ".*." } as const

const linesOf = (setting: Setting, above = ""): ReadonlyArray<string> => {
  const path = `${above}${setting.name}`
  return [
    setting.inner.length > 0 && setting.shape === "mapping"
      ? `- ${code(path)}: ${setting.description}`
      : `- ${code(path)}: ${takes(setting.ast)}${absentOf(setting)}. ${setting.description}`,
    ...setting.inner.flatMap((one) => linesOf(one, `${path}${within[setting.shape]}`)),
  ]
}

export const settingsDocument = (): string =>
  "# Settings of a job file\n\n" +
  "Every setting of a job file: what it takes, its default, and what it does.\n\n" +
  "Generated from `src/jobs/Settings.ts` by `npm run generate`; `nightjar init` writes a job with them. `[]` stands for each\n" +
  "item of a list, `*` for each key of a mapping. A duration is a number and a unit: millis, seconds, minutes, hours or days.\n\n" +
  jobSettings.map((one) => `## ${one.name}\n\n${linesOf(one).join("\n")}\n`).join("\n")
