/** The page of published tables: what it says of each, and that it says it of every table. */
import { describe, expect, it } from "vitest"
import { renderTablesPage } from "../../src/report/TablesPage.ts"
import type { PageTable, TablesPage } from "../../src/report/TablesPage.ts"

const column = (name: string, comment = `What ${name} is.`) => ({ name, type: "VARCHAR", comment })

const table = (name: string, figures: PageTable["figures"]): PageTable => ({
  name,
  comment: `About ${name}.`,
  key: ["id"],
  columns: [column("id"), column("note", "<b>not</b> markup")],
  figures,
})

const page = (more: Partial<TablesPage>) =>
  renderTablesPage({
    toolVersion: "1.2.3",
    madeAt: Date.UTC(2026, 10, 22, 6, 30),
    timezone: "Europe/Madrid",
    tables: [],
    views: [],
    relations: [],
    ...more,
  })

/** The words of an element's content, without its markup. */
const wordsOf = (markup: string) =>
  markup
    .replace(/<svg[\s\S]*?<\/svg>/g, "")
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ")
    .trim()

const sectionOf = (text: string, id: string) =>
  wordsOf(new RegExp(`<section aria-labelledby="${id}">([\\s\\S]*?)</section>`).exec(text)?.[1] ?? "")

describe("the page of tables", () => {
  const full = table("full", {
    rows: 25,
    nights: [
      { run_date: "2026-11-21", rows: 12 },
      { run_date: "2026-11-20", rows: 13 },
    ],
    columns: new Map([
      ["id", { filled: 12, distinct: 12 }],
      ["note", { filled: 3, distinct: 2 }],
    ]),
  })
  const text = page({
    tables: [table("empty", { rows: 0, nights: [], columns: new Map() }), full, table("later", undefined)],
    relations: [{ table: "full", of: "empty", columns: ["id"] }],
    views: [{ name: "full_latest", kind: "view", comment: "The newest.", columns: [column("id")] }],
  })

  it("says how many rows a table has, and how many more or fewer its newest night has [tables page]", () => {
    expect(sectionOf(text, "overview")).toBe(
      "Overview Table Rows Newest night Its rows Difference " +
        "full 25 2026-11-21 12 (−1 against 2026-11-20) empty 0 – – later – – –",
    )
    expect(sectionOf(text, "full")).toBe(
      "full About full. 25 rows; newest night 2026-11-21: 12 rows (−1 against 2026-11-20) . " +
        "Belongs to empty by id . Column Type Meaning Filled Different " +
        "id key VARCHAR What id is. 100 % 12 note VARCHAR &lt;b&gt;not&lt;/b&gt; markup 25 % 2",
    )
    expect(sectionOf(text, "later")).toContain("Not published yet. Column Type")
    expect(sectionOf(text, "empty")).toContain("No rows yet. Has full . Column Type")
    expect(sectionOf(text, "full_latest")).toBe("full_latest The newest. 1 column id VARCHAR What id is.")
  })

  it("says when it was written, and loads nothing", () => {
    expect(wordsOf(text)).toContain("Written 2026-11-22 07:30 (Europe/Madrid) by Nightjar 1.2.3.")
    expect(text.match(/(?:src|href)="(?!#)[^"]*"/g)).toBe(null)
    expect(text).toContain("default-src 'none'")
  })

  it("draws a line from each table to the one that it belongs to", () => {
    const chart = /<svg\s+class="relations"[\s\S]*?<\/svg>/.exec(text)?.[0] ?? ""
    expect(chart.match(/class="relation"/g)).toHaveLength(1)
    expect(chart.match(/href="#\w+"/g)).toEqual(['href="#full"', 'href="#empty"'])
  })
})
