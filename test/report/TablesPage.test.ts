/** The page of published tables: what it says of each, and that it says it of every table. */
import { describe, expect, it } from "vitest"
import { renderTablesPage } from "../../src/report/TablesPage.ts"
import type { MainTable, TableRows, TablesPage } from "../../src/report/TablesPage.ts"
import { all, linesOf, readPage, template, type Element } from "./ReadPage.ts"
import { hostile } from "./NightSamples.ts"

const column = (name: string, comment = `What ${name} is.`) => ({ name, type: "VARCHAR", comment })

const night = (name: string) => ({
  name,
  kind: "table" as const,
  comment: `About ${name}.`,
  key: ["id"],
  columns: [column("id"), column("note", "<b>not</b> markup")],
})

const table = (name: string, rows: TableRows | undefined): MainTable => ({
  name,
  kind: "view",
  comment: `About ${name}. Key: record_id. Business key: type.`,
  key: ["record_id"],
  columns: (rows?.columns ?? ["record_id"]).map((one) => column(one)),
  rows,
})

const page = (more: Partial<TablesPage>) =>
  renderTablesPage(template, {
    toolVersion: "1.2.3",
    madeAt: Date.UTC(2026, 10, 22, 6, 30),
    timezone: "Europe/Madrid",
    hasPseudonyms: false,
    isPublished: true,
    main: [],
    history: [],
    nights: [],
    joins: [],
    ...more,
  })

const linesFrom = (body: Element, heading: string) => {
  const lines = linesOf(body)
  const from = lines.indexOf(heading)
  const size = lines.slice(from + 1).findIndex((line) => line.startsWith("#"))
  return lines.slice(from + 1, size < 0 ? undefined : from + 1 + size)
}

describe("what is true now, on the page of tables", () => {
  const people = table("people", {
    count: 1_085,
    columns: ["record_id", "name"],
    rows: [
      ["r-1", hostile],
      ["r-2", null],
    ],
  })
  const emails = table("emails", { count: 1, columns: ["record_id"], rows: [["r-1"]] })
  const joins = [
    { table: "emails", of: "people", columns: ["record_id"] },
    { table: "people", of: "customers", columns: ["customer_id"] },
    { table: "people", of: "engines", columns: ["engine_reference"] },
    { table: "emails", of: "customers", columns: ["customer_id"] },
  ]
  const told = page({ main: [people, emails], joins })

  it("says what each table is for, its keys, how it is joined, and shows the first of its rows", () => {
    const body = readPage(told)
    expect(linesFrom(body, "## main: what is true now").slice(1, 4)).toEqual([
      "Table | Rows | What it is for",
      "people | 1,085 | About people.",
      "emails | 1 | About emails.",
    ])
    expect(linesFrom(body, "### people")).toEqual([
      "About people. Key: record_id. Business key: type.",
      "Join it with customers by customer_id, engines by engine_reference.",
      "Lists of its records: emails.",
      "2 of 1,085 rows:",
      "record_id | name",
      `r-1 | ${hostile.replace("\u202e", "\\u202e")}`,
      "r-2 | NULL",
      "Column | Type | Meaning",
      "record_id key | VARCHAR | What record_id is.",
      "name | VARCHAR | What name is.",
    ])
    expect(linesFrom(body, "### emails").slice(1, 5)).toEqual([
      "Join it with people by record_id, customers by customer_id.",
      "1 row:",
      "record_id",
      "r-1",
    ])
  })

  it("takes no value and no comment for markup", () => {
    const name = "of"
    const comment = `${hostile}</script><script>alert(1)</script>`
    const text = page({
      main: [{ ...people, name, comment, columns: [column("x", hostile)] }],
      history: [{ ...people, comment, columns: [column(hostile, comment)] }],
    })
    expect([text.includes("<img"), text.split("</script>").length]).toEqual([false, 3])
    const tags = all(readPage(text), () => true).map(({ tag }) => tag)
    expect(tags.filter((tag) => tag === "img" || tag === "script")).toEqual([])
  })

  it("has a row of sixty columns in one part that scrolls", () => {
    const columns = Array.from({ length: 60 }, (_, n) => `c${n}`)
    const wide = table("wide", { count: 1, columns, rows: [columns.map((each) => `of ${each}`)] })
    const [rows] = all(
      readPage(page({ main: [wide] })),
      (one) => one.getAttribute("aria-label") === "Rows of wide",
    )
    expect(rows?.getAttribute("class")).toBe("scroll")
    expect(all(rows!, ({ tag }) => tag === "td").map(({ textContent }) => textContent)).toEqual(
      columns.map((each) => `of ${each}`),
    )
  })

  it("says of a table whether it has no rows, or none that can be read", () => {
    const empty = table("empty", { count: 0, columns: ["a"], rows: [] })
    const body = readPage(page({ main: [empty, table("broken", undefined)] }))
    expect(linesFrom(body, "### empty")[1]).toBe("No rows.")
    expect(linesFrom(body, "### broken")[1]).toBe("Its rows could not be read.")
    expect(linesFrom(body, "## main: what is true now").slice(2, 4)).toEqual([
      "empty | 0 | About empty.",
      "broken | – | About broken.",
    ])
  })

  it("says who may read it, by whether its rows have pseudonyms", () => {
    const headOf = (more: Partial<TablesPage>) => linesOf(readPage(page({ main: [people], ...more })))[2]
    expect([headOf({}), headOf({ hasPseudonyms: true }), headOf({ isPublished: false })]).toEqual([
      "This page has the first rows of each table of main: it is only for those who may read the database, " +
        "and nightjar forget does not change it.",
      "This page has the first rows of each table of main, with pseudonyms in place of customers.",
      "Nothing is published in this folder yet: the tables below have no rows.",
    ])
  })
})

describe("what each run read, on the page of tables", () => {
  const text = page({
    nights: [night("empty"), night("full")],
    joins: [{ table: "full", of: "empty", columns: ["record_id"] }],
    history: [
      { name: "history.full", kind: "view", comment: "Each version.", key: [], columns: [column("id")] },
    ],
  })

  const body = readPage(text)

  it("says what each table is for, how to join it, and what its columns mean", () => {
    expect(linesFrom(body, "### full")).toEqual([
      "About full.",
      "Join it with empty by record_id.",
      "2 columns",
      "Column | Type | Meaning",
      "id key | VARCHAR | What id is.",
      "note | VARCHAR | <b>not</b> markup",
    ])
    expect(linesFrom(body, "### empty").slice(0, 2)).toEqual(["About empty.", "Lists of its records: full."])
    expect(linesFrom(body, "### history.full")).toEqual([
      "Each version.",
      "1 column",
      "Column | Type | Meaning",
      "id | VARCHAR | What id is.",
    ])
  })

  it("says when it was written, and loads nothing", () => {
    expect(linesOf(body)).toContain("Written 2026-11-22 07:30 (Europe/Madrid) by Nightjar 1.2.3.")
    expect(text).toContain("default-src 'none'")
  })
})
