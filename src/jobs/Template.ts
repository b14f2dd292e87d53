/**
 * The table of settings as rows, and the job file that `nightjar init` writes from them: what a job needs
 * first, then every other setting, commented out, with its default or an example. It loads as it is.
 */
import { SchemaAST } from "effect"
import { used, type Sample } from "./Scalars.ts"
import { JobFile } from "./Settings.ts"

export interface Setting {
  readonly name: string
  readonly description: string
  readonly isRequired: boolean
  /** Undefined if there is none. */
  readonly default: unknown
  readonly sample: Sample | undefined
  /** What a file has at the key. */
  readonly ast: SchemaAST.AST
  /** `list`: `inner` is what one of its items has; `record`: what each of its values has. */
  readonly shape: "value" | "mapping" | "list" | "record"
  readonly inner: ReadonlyArray<Setting>
}

const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]

const keysOf = (ast: SchemaAST.AST): ReadonlyArray<Setting> =>
  membersOf(ast)
    .filter(SchemaAST.isObjects)
    .flatMap(({ propertySignatures }) => propertySignatures)
    .map(({ name, type }) => settingOf(String(name), type))

const settingOf = (name: string, ast: SchemaAST.AST): Setting => {
  const { description = "", default: absent, sample } = ast.context?.annotations ?? {}
  const members = membersOf(ast)
  const own = keysOf(ast)
  const items = members.filter(SchemaAST.isArrays).flatMap(({ rest }) => rest.flatMap(keysOf))
  const values = members
    .filter(SchemaAST.isObjects)
    .flatMap(({ indexSignatures }) => indexSignatures.flatMap(({ type }) => keysOf(type)))
  const [shape, inner] = (
    [
      ["mapping", own],
      ["list", items],
      ["record", values],
    ] as const
  ).find(([, keys]) => keys.length > 0) ?? ["value", []]
  return {
    name,
    description: String(description),
    isRequired: ast.context?.isOptional !== true,
    default: absent,
    sample: sample as Sample | undefined,
    ast,
    shape,
    inner,
  }
}

export const jobSettings: ReadonlyArray<Setting> = keysOf(SchemaAST.toEncoded(JobFile.ast))

const commentAt = 40
const lineMax = 110

/** Prose begins with `# `, so that a setting, which begins with `#` alone, is told from it. */
const prose = (text: string, indent: string): ReadonlyArray<string> => {
  const lines = [""]
  for (const word of text.split(" ")) {
    const line = lines.at(-1) ?? ""
    if (line !== "" && indent.length + line.length + word.length + 3 > lineMax) lines.push(word)
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`
  }
  return lines.map((line) => `${indent}# ${line}`)
}

const explained = (line: string, { description }: Setting, indent: string): ReadonlyArray<string> => {
  const beside = `${line.padEnd(commentAt - 1)} # ${description}`
  return beside.length <= lineMax ? [beside] : [...prose(description, indent), line]
}

/** Whether a new job says it. */
const isUsed = ({ sample, inner }: Setting): boolean =>
  sample === undefined ? inner.some(isUsed) : sample.as === "used"

const asYaml = (value: unknown): string => (Array.isArray(value) ? `[${value.join(", ")}]` : String(value))

/** The key begins behind `indent`; from column `off` on, the part around it is commented out. */
const linesOf = (setting: Setting, indent: string, off?: number): ReadonlyArray<string> => {
  const { name, sample, inner, shape } = setting
  if (sample?.as === "gone") return []
  const at = off ?? (isUsed(setting) ? undefined : indent.length)
  const marked = (text: string) => (at === undefined ? text : `${text.slice(0, at)}#${text.slice(at)}`)
  const blank = indent.replace("-", " ")
  const instead = sample?.as === "alternative" && off !== undefined ? "#" : ""
  const text = sample?.text ?? (inner.length > 0 ? undefined : asYaml(setting.default))
  const head = `${marked(indent)}${instead}${name}:${text === undefined ? "" : ` ${text}`}`
  const lines = explained(head, setting, at === indent.length ? indent : marked(blank))
  if (text !== undefined) return lines
  const under = inner.flatMap((one, index) =>
    linesOf(one, `${blank}  ${shape === "list" ? (index === 0 ? "- " : "  ") : ""}`, at),
  )
  return [...lines, ...under]
}

const written = (settings: ReadonlyArray<Setting>): string =>
  settings.map((one) => `${linesOf(one, "").join("\n")}\n`).join("\n")

const neededBy = (job: string): ReadonlyArray<Setting> =>
  jobSettings.filter(isUsed).map((one) => (one.name === "name" ? { ...one, sample: used(job) } : one))

export const jobTemplate = (
  name: string,
): string => `# yaml-language-server: $schema=../schemas/job.schema.json
# A job names the customers, engines and features to extract, and the service to use.
# \`nightjar validate\` checks it, \`nightjar plan\` shows what it would do, \`nightjar run\` does it.
# In a text, \${NAME} is replaced with that environment variable; a number or a boolean is written as it is.

${written(neededBy(name))}
# All other settings, each with its default or an example: it is used once its \`#\` is deleted. A second
# \`#\` marks an alternative to what stands above it.

${written(jobSettings.filter((one) => !isUsed(one)))}`
