/**
 * The help of every command: all of it fits a terminal of 80 columns. `npm run generated` compares every page whole
 * with `schemas/commands.md`, and `test/project/startup.test.ts` with what the program prints.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { stripVTControlCharacters } from "node:util"
import { assert, describe, expect, it } from "@effect/vitest"
import { readPages, renderPage } from "../../src/cli/commands/Help.ts"
import { helpPages } from "../project/helpPages.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const widthMax = 80

it("the help of every command fits 80 columns", async () => {
  const pages = Object.entries((await helpPages(root)) ?? {})
  expect(pages.length).toBeGreaterThan(40)
  const lines = pages.flatMap(([asked, page]) =>
    stripVTControlCharacters(page)
      .split("\n")
      .map((line) => [asked, line] as const),
  )
  expect(lines.filter(([, line]) => line.length > widthMax)).toEqual([])
})

// The pages of `nightjar help`: how they are laid out, and that each fits a terminal and leads somewhere.

const pages = readPages(root)
const plain = (width: number) => ({ width, colour: false })

const sample = `# Title

A [page](jobs.md) of **some** words
that stand on two lines.

## Below

1. first
   goes on
2. second

| key     | what                 |
| ------- | -------------------- |
| \`one\` | a longer explanation |
| \`two\` |                      |

\`\`\`yaml
key: value

other: 1 # a comment that is wider than the terminal
\`\`\`
`

describe("a page", () => {
  it("is wrapped, with its tables in columns and its examples as they are", () => {
    assert.deepStrictEqual(renderPage(sample, plain(24)).split("\n"), [
      "Title",
      "",
      "A page of some words",
      "that stand on two lines.",
      "",
      "Below",
      "",
      "1. first goes on",
      "2. second",
      "",
      "key    what",
      "`one`  a longer",
      "       explanation",
      "`two`",
      "",
      "  key: value",
      "",
      "  other: 1 # a comment that is wider than the terminal",
    ])
  })

  it("lists the rows of a table whose words do not fit beside each other", () => {
    assert.deepStrictEqual(renderPage(sample, plain(16)).split("\n").slice(11, 15), [
      "- `one`",
      "  a longer",
      "  explanation",
      "- `two`",
    ])
  })

  it("has bold headings in a terminal with colours", () => {
    assert.strictEqual(
      renderPage("# Title\n\nText", { width: 80, colour: true }),
      "\u001b[1mTitle\u001b[0m\n\nText",
    )
  })
})

describe("every page", () => {
  it("says in one line what it is about", () => {
    const long = pages.filter(({ about }) => !/^[A-Z][^\n]{20,90}\.$/.test(about))
    assert.deepStrictEqual(long, [])
  })

  it("fits 80 columns, but for what commands print", () => {
    const wide = pages.flatMap(({ topic, markdown }) =>
      renderPage(markdown.replaceAll(/```console[\s\S]*?```/g, ""), plain(80))
        .split("\n")
        .filter(({ length }) => length > 80)
        .map((line) => `${topic}: ${line}`),
    )
    assert.deepStrictEqual(wide, [])
  })

  it("links to pages, files and headings that exist", () => {
    const slugs = (markdown: string) =>
      [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
        title
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, "")
          .replaceAll(" ", "-"),
      )
    const folders = { "schemas/pages": pages.map(({ topic }) => `${topic}.md`), ".": ["README.md"] }
    const broken = Object.entries(folders).flatMap(([folder, files]) =>
      files.flatMap((file) =>
        [
          ...readFileSync(join(root, folder, file), "utf8").matchAll(
            /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g,
          ),
        ]
          .filter(([, path = "", heading]) => {
            const target = path === "" ? join(root, folder, file) : join(root, folder, path)
            return (
              !existsSync(target) ||
              (heading !== undefined && !slugs(readFileSync(target, "utf8")).includes(heading))
            )
          })
          .map(([link]) => `${folder}/${file}: ${link}`),
      ),
    )
    assert.deepStrictEqual(broken, [])
  })
})
