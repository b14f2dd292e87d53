/** The page of published tables: what it says of each, and that it says it of every table. */
import { describe, expect, it } from "vitest"
import { renderTablesPage } from "../../src/report/TablesPage.ts"
import type { PageTable, TablesPage } from "../../src/report/TablesPage.ts"
import { all, linesOf, readPage, template } from "./ReadPage.ts"
import type { Element } from "./ReadPage.ts"

const column = (name: string, comment = `What ${name} is.`) => ({ name, type: "VARCHAR", comment })

const table = (name: string, figures: PageTable["figures"]): PageTable => ({
  name,
  comment: `About ${name}.`,
  key: ["id"],
  columns: [column("id"), column("note", "<b>not</b> markup")],
  figures,
})

const page = (more: Partial<TablesPage>) =>
  renderTablesPage(template, {
    toolVersion: "1.2.3",
    madeAt: Date.UTC(2026, 10, 22, 6, 30),
    timezone: "Europe/Madrid",
    tables: [],
    views: [],
    relations: [],
    ...more,
  })

const linesFrom = (body: Element, heading: string) => {
  const lines = linesOf(body)
  const from = lines.indexOf(heading)
  const size = lines.slice(from + 1).findIndex((line) => line.startsWith("#"))
  return lines.slice(from + 1, size < 0 ? undefined : from + 1 + size)
}

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

  const body = readPage(text)

  it("says how many rows a table has, and how many more or fewer its newest night has [tables page]", () => {
    expect(linesFrom(body, "## Overview")).toEqual([
      "Table | Rows | Newest night | Its rows | Difference",
      "full | 25 | 2026-11-21 | 12 |  (−1 against 2026-11-20)",
      "empty | 0 | – | – | ",
      "later | – | – | – | ",
    ])
    expect(linesFrom(body, "### full")).toEqual([
      "About full.",
      "25 rows; newest night 2026-11-21: 12 rows (−1 against 2026-11-20). 2026-11-20: 132026-11-21: 12" +
        "[Rows of the last 2 nights with rows, oldest first.]",
      "Belongs to empty by id.",
      "Column | Type | Meaning | Filled | Different",
      "id key | VARCHAR | What id is. | 100 % | 12",
      "note | VARCHAR | <b>not</b> markup | 25 % | 2",
    ])
    expect(linesFrom(body, "### later")[1]).toBe("Not published yet.")
    expect(linesFrom(body, "### empty").slice(1, 3)).toEqual(["No rows yet.", "Has full."])
    expect(linesFrom(body, "### full_latest")).toEqual([
      "The newest.",
      "1 column",
      "id VARCHAR",
      "What id is.",
    ])
  })

  it("says when it was written, and loads nothing", () => {
    expect(linesOf(body)).toContain("Written 2026-11-22 07:30 (Europe/Madrid) by Nightjar 1.2.3.")
    expect(text).toContain("default-src 'none'")
  })

  it("draws a line from each table to the one that it belongs to", () => {
    const [chart] = all(body, (one) => one.getAttribute("class") === "relations")
    expect(all(chart!, (one) => one.getAttribute("class") === "relation")).toHaveLength(1)
    const links = all(chart!, ({ tag }) => tag === "a").map((one) => one.getAttribute("href"))
    expect(links.toSorted()).toEqual(["#empty", "#full"])
  })
})
