/**
 * The mutants of the rooms that carry the promises. A mutant is known by its file and its number there, counted in
 * the order of the text, so that the same source always has the same ones and any of them can be planted again.
 */
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { editsOf, type FoundEdit } from "./Mutators.ts"
import { functionBodies, parseSource } from "./Syntax.ts"

export interface Mutant extends FoundEdit {
  /** `src/task/Verdict.ts#41` */
  readonly id: string
  readonly file: string
  /** From 1. */
  readonly line: number
  /** The line it stands on, without its indentation. */
  readonly onLine: string
  readonly from: string
  /** The function whose body it stands in: `file#1`, `file#2` … in the order of the text; `file#0` is the module. */
  readonly inFunction: string
}

/** The rooms that are tried, by the files that belong to each. A file may belong to two. */
export const rooms: Readonly<Record<string, ReadonlyArray<string>>> = {
  task: ["src/task/*.ts"],
  timers: ["src/cli/Timers.ts"],
  ledger: ["src/ledger/*.ts"],
  landing: ["src/landing/*.ts"],
  records: ["src/records/*.ts"],
  tables: ["src/tables/*.ts"],
  folder: ["src/folder/*.ts"],
  service: ["src/service/*.ts"],
  run: ["src/run/*.ts"],
  tokens: ["src/tokens/*.ts", "src/ledger/LoginFacts.ts"],
  privacy: ["src/privacy/*.ts", "src/jobs/Secret*.ts"],
}

export const root = fileURLToPath(new URL("../../", import.meta.url))

export const filesIn = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  globSync(
    names.flatMap((name) => rooms[name] ?? []),
    { cwd: root },
  ).toSorted()

const lineAt = (text: string, at: number) => {
  const start = text.lastIndexOf("\n", at - 1) + 1
  const end = text.indexOf("\n", at)
  return text.slice(start, end < 0 ? undefined : end).trim()
}

export const mutantsOf = (file: string, text: string): ReadonlyArray<Mutant> => {
  const program = parseSource(text)
  const bodies = functionBodies(program)
  return editsOf(program, text).map((edit, index) => ({
    ...edit,
    id: `${file}#${index + 1}`,
    file,
    line: text.slice(0, edit.start).split("\n").length,
    onLine: lineAt(text, edit.start),
    from: text.slice(edit.start, edit.end),
    // The innermost one: bodies are in the order of the text, so the last that holds it.
    inFunction: `${file}#${bodies.findLastIndex(({ start, end }) => start <= edit.start && edit.end <= end) + 1}`,
  }))
}

export const textOf = (file: string): string => readFileSync(`${root}${file}`, "utf8")

export const mutatedText = ({ start, end, by }: Mutant, text: string): string =>
  text.slice(0, start) + by + text.slice(end)

/** `- what stands there` and `+ what takes its place`, on one line each. */
export const describe = ({ id, line, mutator, from, by }: Mutant): string => {
  const short = (text: string) => {
    const one = text.replaceAll(/\s+/g, " ")
    return one.length > 90 ? `${one.slice(0, 60)} … ${one.slice(-27)}` : one
  }
  return `${id} (line ${line}, ${mutator})\n  - ${short(from)}\n  + ${by === "" ? "nothing" : short(by)}`
}
