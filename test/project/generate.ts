/**
 * Writes every file of the repository that is derived from code, or with `--check` names those that are out
 * of date and exits 1. A generated file is one line of the list below; what it says is the business of its
 * room.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

export interface Generated {
  readonly path: string
  /**
   * The module and the export whose value, called if it is a function, is the content: text, or JSON to be.
   */
  readonly from: string
  readonly name: string
}

const generated: ReadonlyArray<Generated> = [
  { path: "schemas/job.schema.json", from: "test/project/settings.ts", name: "jobJsonSchema" },
  { path: "schemas/pages/settings.md", from: "test/project/settings.ts", name: "settingsDocument" },
  { path: "schemas/record.schema.json", from: "src/records/RecordSchema.ts", name: "recordJsonSchema" },
  { path: "schemas/service.openapi.json", from: "test/project/openapi.ts", name: "serviceOpenApi" },
  {
    path: "schemas/conformance.md",
    from: "test/conformance/ConformanceDocument.ts",
    name: "conformanceDocument",
  },
  { path: "schemas/ends.md", from: "test/project/ends.ts", name: "endsDocument" },
  { path: "schemas/metrics.md", from: "test/project/metrics.ts", name: "metricsDocument" },
  { path: "schemas/commands.md", from: "test/project/commands.ts", name: "commandsDocument" },
  { path: "schemas/messages.md", from: "test/project/messages.ts", name: "messagesDocument" },
]

const render = async (root: string, { from, name }: Generated): Promise<string> => {
  const module = (await import(pathToFileURL(join(root, from)).href)) as Readonly<Record<string, unknown>>
  if (!(name in module)) throw new Error(`${from} exports no ${name}`)
  const exported = module[name]
  const content: unknown = typeof exported === "function" ? await exported() : exported
  return typeof content === "string" ? content : `${JSON.stringify(content, null, 2)}\n`
}

const current = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** Returns one line per file that is stale or cannot be derived; writes the stale ones unless `check`. */
export const generate = async (
  root: string,
  list: ReadonlyArray<Generated>,
  check: boolean,
): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  for (const one of list) {
    const path = join(root, one.path)
    try {
      const content = await render(root, one)
      if (current(path) === content) continue
      if (check) {
        problems.push(`${one.path} is out of date: npm run generate`)
        continue
      }
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
    } catch (error) {
      const why = error instanceof Error ? error.message.split("\n")[0] : String(error)
      problems.push(`${one.path} cannot be derived: ${why?.replaceAll(root, "")}`)
    }
  }
  return problems
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL("../../", import.meta.url))
  const problems = await generate(root, generated, process.argv.includes("--check"))
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
  else console.error(`generated: ${generated.map((one) => relative(root, join(root, one.path))).join(", ")}`)
}
