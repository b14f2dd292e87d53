/**
 * The words that people read: no wording that was banned once comes back into a message, a help text, the
 * README or a generated page, and a number is never told with a noun of the wrong number.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { counted } from "../../src/base/Text.ts"
import { isNode, parseSource, type Node } from "../mutants/Syntax.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** Pictures, inverted sentences and translated idioms; each with what says the same in plain words. */
const banned: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bthings? that do(?:es)? not agree\b/, "N disagreements"],
  [/\bnobody must act\b/, "no action needed"],
  [/\bmust mend it\b/, "retry later"],
  [/\bcannot be listened\b/, "the server cannot listen"],
  [/\blets? one go\b/, "releases"],
  [/\bover already\b/, "already finished"],
  [/\b(?:brings?|brought) (?:\w+ )?home\b/, "retrieves"],
  [/\bastray\b/, "a stray, or not a record"],
  [/\bread on\b/i, "continue, or documentation"],
  [/\bis told (?:that|so|apart|by|as|with)\b/, "is reported, learns or gets"],
  [/\bis said\b/, "without the passive: says"],
  [/\bfor ever\b/, "forever"],
  [/\bnot (?:\w+ )?any more\b/, "no longer"],
  [/\bends? soon\b/, "expires soon"],
  [/\bstands? there already\b/, "already exists"],
  [/\bin the clear\b/, "in clear text"],
  [/\btakes? (?:it|them) for\b/, "treats it as"],
  [/\bwins over\b/, "takes precedence over"],
  [/^Nothing(?::|, where)/, "No action needed"],
  [/\blook(?:ed|s)? at\b/, "checked, read or polled"],
  [/\bmay look into\b/, "can read"],
  [/\bis there already\b/, "already exists"],
  [/\bis not there yet\b/, "does not exist yet"],
  [/\bmakes? it good\b/, "repairs"],
  [/\bin vain\b/, "without success"],
  [/\bword alone\b/, "without a count"],
  [/\bof no help\b/, "not usable"],
  [/\bsees to it\b/, "corrects it"],
  [/\b(?:that|it|is) (?:is )?no (?:address|day|end|event|feature|JSON|regular|setting)\b/, "is not a"],
  [/\b1 (?:\w+ )?(?:runs|tasks|tokens|records|executions|attempts|problems|files)\b/, "1 run"],
]

/** Nouns that are counted; `counted` gives each its number. */
const nouns =
  "run|task|attempt|execution|record|token|ticket|session|attachment|engine|customer|feature|problem|answer|start|" +
  "file|row|login|secret|reference|warning|document|body|fact|table|cell|column|field"
const numbered = new RegExp(`^ (?:${nouns})(?:e?s)?\\b`)

interface Text {
  readonly where: string
  readonly text: string
}

/** Every text of a module that is more than a name, but for imports; values stand in it as `…`. */
const textsOf = (path: string, source: string): ReadonlyArray<Text> => {
  const found: Array<Text> = []
  const where = (node: Node) => `${path}:${source.slice(0, node.start).split("\n").length}`
  const walk = (node: Node): void => {
    if (node.type === "ImportDeclaration" || node.type === "ExportAllDeclaration") return
    if (node.type === "Literal" && typeof node["value"] === "string" && node["value"].includes(" "))
      found.push({ where: where(node), text: node["value"] })
    if (node.type === "TemplateLiteral") found.push({ where: where(node), text: templateText(node) })
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child)
  }
  walk(parseSource(source))
  return found
}

const partsOf = (node: Node): ReadonlyArray<string> =>
  (node["quasis"] as ReadonlyArray<{ readonly value: { readonly cooked: string } }>).map(
    ({ value }) => value.cooked,
  )
const templateText = (node: Node): string => partsOf(node).join("…")

const wordsIn = ({ where, text }: Text): ReadonlyArray<string> =>
  banned.flatMap(([pattern, better]) => {
    const hit = pattern.exec(text)
    return hit === null ? [] : [`${where}: “${hit[0]}”: say “${better}”`]
  })

/** A value that is no constant, told with a noun that `counted` did not choose. */
const numbersIn = (path: string, source: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const walk = (node: Node): void => {
    if (node.type === "TemplateLiteral") {
      const values = node["expressions"] as ReadonlyArray<Node>
      const parts = partsOf(node)
      for (const [index, value] of values.entries()) {
        const noun = numbered.exec(parts[index + 1] ?? "")
        const text = source.slice(value.start, value.end)
        const isNumber = /(?:length|size|count|rows|sum|\.n)$/i.test(text)
        if (noun !== null && isNumber)
          found.push(`${path}:${source.slice(0, node.start).split("\n").length}: ${text}${noun[0]}`)
      }
    }
    for (const value of Object.values(node))
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child)
  }
  walk(parseSource(source))
  return found
}

const filesIn = (folder: string, ending: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(ending))
    .map((path) => join(folder, path))
    .toSorted()
const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The reference's own words are quoted there, not ours. */
const markdown =
  "README.md jobs/README.md src/README.md src/sandbox/README.md output/README.md .github/CONTRIBUTING.md " +
  "CHANGELOG.md schemas/messages.md schemas/ends.md"
const pages = [...markdown.split(" "), ...filesIn("schemas/pages", ".md"), ...filesIn("jobs", ".yaml")]

describe("words", () => {
  it("a banned wording and a wrong number are reported with their place", () => {
    const source =
      'import a from "of no help"\nexport const b = [`${found.length} tasks`, `${counted(2, "task")} left`]\n' +
      'export const c = "the file is there already"\n'
    expect([...textsOf("x.ts", source).flatMap(wordsIn), ...numbersIn("x.ts", source)]).toEqual([
      "x.ts:3: “is there already”: say “already exists”",
      "x.ts:2: found.length tasks",
    ])
  })

  it("of src, the pages, the messages and the example jobs are plain", () => {
    const sources = filesIn("src", ".ts").flatMap((path) => textsOf(path, read(path)))
    const lines = pages.flatMap((path) =>
      read(path)
        .split("\n")
        .map((text, index) => ({ where: `${path}:${index + 1}`, text })),
    )
    expect([...sources, ...lines].flatMap(wordsIn)).toEqual([])
  })

  it("after a number are singular or plural, matching the number", () => {
    expect([counted(0, "task"), counted(1, "task"), counted(2, "body", "bodies")]).toEqual([
      "0 tasks",
      "1 task",
      "2 bodies",
    ])
    expect(filesIn("src", ".ts").flatMap((path) => numbersIn(path, read(path)))).toEqual([])
  })
})
