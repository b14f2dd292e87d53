/**
 * The published tables as a page: what each table and column means, how the tables belong together, how full
 * and how fresh they are. It holds counts, never a value of a record, so that it can be passed on. Pure.
 */
import { counted } from "../base/Text.ts"
import type { Reference } from "../tables/Dimensions.ts"
import { fillPage } from "./Page.ts"
import type { Inline, Page, Part } from "./Page.ts"
import { clockIn, share } from "./TextTable.ts"

/** A table or view of the data dictionary, or a model of a job. */
export interface PageView {
  readonly name: string
  readonly kind: "table" | "view" | "macro"
  readonly comment: string
  readonly columns: ReadonlyArray<Readonly<Record<"name" | "type" | "comment", string>>>
}

/** What the published database holds of a table. */
export interface TableFigures {
  readonly rows: number
  /** Newest first. */
  readonly nights: ReadonlyArray<{ readonly run_date: string; readonly rows: number }>
  /** Of the newest night with rows, by column: how many rows have a value, about how many differ. */
  readonly columns: ReadonlyMap<string, { readonly filled: number; readonly distinct: number }>
}

export interface PageTable extends Omit<PageView, "kind"> {
  readonly key: ReadonlyArray<string>
  /** Undefined while it is not published. */
  readonly figures: TableFigures | undefined
}

export interface TablesPage {
  readonly toolVersion: string
  /** Milliseconds since the epoch. */
  readonly madeAt: number
  readonly timezone: string
  readonly tables: ReadonlyArray<PageTable>
  readonly views: ReadonlyArray<PageView>
  readonly relations: ReadonlyArray<Reference>
}

const number = new Intl.NumberFormat("en")

const separated = (parts: ReadonlyArray<Inline>): Inline =>
  parts.map((part, index) => [index === 0 ? "" : ", ", part])

/** `+12 against 2026-11-20`. */
const difference = ({ nights: [newest, before] }: TableFigures): Inline => {
  if (newest === undefined || before === undefined) return ""
  const more = newest.rows - before.rows
  const sign = more > 0 ? "+" : more < 0 ? "−" : "±"
  return { soft: ` (${sign}${number.format(Math.abs(more))} against ${before.run_date})` }
}

const overviewOf = (tables: ReadonlyArray<PageTable>): ReadonlyArray<Part> => {
  const rows = tables.map(({ name, figures }) => {
    const [newest] = figures?.nights ?? []
    return [
      { link: name },
      figures === undefined ? "–" : number.format(figures.rows),
      newest?.run_date ?? "–",
      newest === undefined ? "–" : number.format(newest.rows),
      figures === undefined ? "" : difference(figures),
    ]
  })
  const headings = ["Table", "#Rows", "Newest night", "#Its rows", "Difference"]
  return [{ table: "Tables", headings, rows, stacked: true }]
}

/** Rows per night, oldest first; the sentence before it has the newest figures. */
const nightsOf = ({ nights }: TableFigures): Inline =>
  nights.length < 2
    ? ""
    : {
        nights: nights.toReversed().map(({ run_date, rows }) => [run_date, rows]),
        label: `Rows of the last ${nights.length} nights with rows, oldest first.`,
      }

const stateOf = (figures: TableFigures | undefined): Inline => {
  const [newest] = figures?.nights ?? []
  if (figures === undefined) return "Not published yet."
  if (newest === undefined) return "No rows yet."
  const ofNewest = `newest night ${newest.run_date}: ${counted(newest.rows, "row")}`
  const told = `${counted(figures.rows, "row")}; ${ofNewest}`
  return [told, difference(figures), ". ", nightsOf(figures)]
}

const tableParts =
  (relations: ReadonlyArray<Reference>) =>
  ({ name, comment, key, columns, figures }: PageTable): ReadonlyArray<Part> => {
    const up = relations.filter((one) => one.table === name)
    const down = relations.filter(({ of }) => of === name)
    const newest = figures?.nights[0]?.rows ?? 0
    const rows = columns.map((column): ReadonlyArray<Inline> => {
      const seen = newest === 0 ? undefined : figures?.columns.get(column.name)
      return [
        [{ code: column.name }, key.includes(column.name) ? [" ", { key: "key" }] : ""],
        { code: column.type },
        column.comment,
        seen === undefined ? "–" : share(seen.filled, newest),
        seen === undefined ? "–" : number.format(seen.distinct),
      ]
    })
    const headings = ["Column", "Type", "Meaning", "#Filled", "#Different"]
    return [
      { h: { code: name }, id: name },
      { p: comment },
      { p: stateOf(figures) },
      ...up.map(({ of, columns: by }) => ({
        p: ["Belongs to ", { link: of }, " by ", separated(by.map((code) => ({ code }))), "."],
      })),
      ...(down.length === 0
        ? []
        : [{ p: ["Has ", separated(down.map(({ table }) => ({ link: table }))), "."] }]),
      { table: `Columns of ${name}`, headings, rows, stacked: true },
    ]
  }

const viewParts = ({ name, kind, comment, columns }: PageView): ReadonlyArray<Part> => [
  { h: [{ code: name }, kind === "macro" ? " (macro)" : ""], id: name },
  { p: comment },
  {
    details: counted(columns.length, "column"),
    terms: columns.map((one) => [[{ code: one.name }, " ", { soft: one.type }], one.comment]),
  },
]

const hasRows = ({ figures }: PageTable): boolean => figures !== undefined && figures.rows > 0

const pageOf = (all: TablesPage): Page => {
  const { tables, views, relations, madeAt, timezone, toolVersion } = all
  // Tables with rows first, each group in the order of the dictionary.
  const ordered = [...tables.filter(hasRows), ...tables.filter((table) => !hasRows(table))]
  const written = `Written ${clockIn(timezone).moment(madeAt)} (${timezone}) by Nightjar ${toolVersion}.`
  const about =
    `${counted(tables.length, "table")} in \`nightjar.duckdb\` and, as Parquet, in \`tables/\`: the rows ` +
    "of every run, in the schemas `nights` and `ops`. What is true now stands under the plain name, and " +
    "since when in `history`. The figures of a column are those of the newest night with rows; " +
    "“different” is an estimate. No value of a record is on this page."
  const label = "Which table belongs to which; the tables below say it in words."
  return {
    title: "Published tables",
    head: [{ p: written, look: "soft" }, { p: { prose: about } }],
    sections: [
      { id: "overview", title: "Overview", parts: overviewOf(ordered) },
      {
        id: "relations",
        title: "Relations",
        parts: [
          { p: "Each table belongs to the one on its left that a line leads to." },
          { relations: relations.map(({ table, of }) => [table, of]), label },
        ],
      },
      { id: "tables", title: "Tables", parts: ordered.flatMap(tableParts(relations)) },
      { id: "views", title: "Views", parts: views.flatMap(viewParts) },
    ],
    foot: [],
  }
}

/** `template`: the text of `page.html`. */
export const renderTablesPage = (template: string, all: TablesPage): string =>
  fillPage(template, pageOf(all), {
    summary: [
      `${counted(all.tables.length, "published table")}. This page needs JavaScript; ` +
        `\`nightjar tables\` tells the ` +
        "same in a terminal.",
    ],
  })
