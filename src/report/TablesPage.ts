/**
 * The published tables as a page: what each table and column means, how the tables are joined, the first rows
 * of what is true now, and how full and how fresh the rows of the nights are. Rows are those of the published
 * database, so that pseudonyms are pseudonyms here; without them, the page has no value of a record. Pure.
 */
import { counted } from "../base/Text.ts"
import type { DictionaryTable } from "../tables/DataDictionary.ts"
import type { Reference } from "../tables/Dimensions.ts"
import { fillPage, momentIn, type Inline, type Page, type Part } from "./Page.ts"
import { share } from "./TextTable.ts"

/** The first rows of a table of `main`. */
export interface TableRows {
  /** Of the whole table. */
  readonly count: number
  readonly columns: ReadonlyArray<string>
  /** As text, long ones cut. */
  readonly rows: ReadonlyArray<ReadonlyArray<string | null>>
}

/** A table or view of the data dictionary, or a model of a job, by the name that SQL has for it. */
type PageView = Omit<DictionaryTable, "schema"> & { readonly key: ReadonlyArray<string> }

/** `rows` is undefined if they cannot be read. */
export interface MainTable extends PageView {
  readonly rows: TableRows | undefined
}

/** What the published database holds of a table. */
export interface TableFigures {
  readonly rows: number
  /** Newest first. */
  readonly nights: ReadonlyArray<{ readonly run_date: string; readonly rows: number }>
  /** Of the newest night with rows, by column: how many rows have a value, about how many differ. */
  readonly columns: ReadonlyMap<string, { readonly filled: number; readonly distinct: number }>
}

/** A table with rows of every run. */
export interface NightTable extends Omit<PageView, "kind"> {
  /** Undefined while it is not published. */
  readonly figures: TableFigures | undefined
}

export interface TablesPage {
  readonly toolVersion: string
  /** Milliseconds since the epoch. */
  readonly madeAt: number
  readonly timezone: string
  /** Whether rows of `main` are on the page. */
  readonly shows: "rows" | "pseudonyms" | "no rows"
  readonly isPublished: boolean
  readonly main: ReadonlyArray<MainTable>
  readonly history: ReadonlyArray<PageView>
  /** Of the schemas `nights` and `ops`. */
  readonly nights: ReadonlyArray<NightTable>
  /** How tables of `main` are joined, and which table of the nights belongs to which. */
  readonly joins: ReadonlyArray<Reference>
  readonly relations: ReadonlyArray<Reference>
}

const number = new Intl.NumberFormat("en")

const separated = (parts: ReadonlyArray<Inline>): Inline =>
  parts.map((part, index) => [index === 0 ? "" : ", ", part])
const codes = (names: ReadonlyArray<string>): Inline => separated(names.map((code) => ({ code })))

const links = (names: ReadonlyArray<string>): Inline => separated(names.map((link) => ({ link })))

/** Which table of the nights a table belongs to, and which ones belong to it. */
const belongingOf = (name: string, relations: ReadonlyArray<Reference>): ReadonlyArray<Part> => {
  const up = relations.filter(({ table }) => table === name)
  const down = relations.filter(({ of }) => of === name).map(({ table }) => table)
  return [
    ...up.map(({ of, columns }) => ({ p: ["Belongs to ", { link: of }, " by ", codes(columns), "."] })),
    ...(down.length === 0 ? [] : [{ p: ["Has ", links(down), "."] }]),
  ]
}

const isOfRecord = ({ columns }: Reference): boolean => columns.includes("record_id")

const joinsOf = (name: string, joins: ReadonlyArray<Reference>): ReadonlyArray<Part> => {
  const up = joins.filter(({ table }) => table === name)
  const lists = joins.filter((join) => join.of === name && isOfRecord(join)).map(({ table }) => table)
  const told = up.map(({ of, columns }): Inline => [{ link: of }, " by ", codes(columns)])
  return [
    ...(up.length === 0 ? [] : [{ p: ["Join it with ", separated(told), "."] }]),
    ...(lists.length === 0 ? [] : [{ p: ["Lists of its records: ", links(lists), "."] }]),
  ]
}

const nameOf = (name: string, key: ReadonlyArray<string>): Inline => [
  { code: name },
  key.includes(name) ? [" ", { key: "key" }] : "",
]

const columnsOf = ({ name, key, columns }: PageView): Part => ({
  table: `Columns of ${name}`,
  headings: ["Column", "Type", "Meaning"],
  rows: columns.map((each) => [nameOf(each.name, key), { code: each.type }, each.comment]),
  stacked: true,
})

/** The whole comment is below. */
const firstSentence = (comment: string): string => {
  const [, first = comment] = /^(.*?)[.;:](?= |$)/.exec(comment) ?? []
  return `${first}.`
}

const mainOverview = (tables: ReadonlyArray<MainTable>): Part => ({
  table: "Tables of main",
  headings: ["Table", "#Rows", "What it is for"],
  rows: tables.map(({ name, kind, rows, comment }) => [
    { link: name },
    kind === "macro" || rows === undefined ? "–" : number.format(rows.count),
    firstSentence(comment),
  ]),
  stacked: true,
})

const rowsOf = ({ name, kind, rows }: MainTable, { shows, isPublished }: TablesPage): ReadonlyArray<Part> => {
  if (kind === "macro" || !isPublished) return []
  if (rows === undefined) return [{ p: "Its rows could not be read." }]
  const { count, columns } = rows
  if (count === 0) return [{ p: "No rows." }]
  if (shows === "no rows") return [{ p: `${counted(count, "row")}.` }]
  const isPart = rows.rows.length < count
  const cells = rows.rows.map((row) => row.map((cell): Inline => (cell === null ? { soft: "NULL" } : cell)))
  return [
    { p: isPart ? `${rows.rows.length} of ${number.format(count)} rows:` : `${counted(count, "row")}:` },
    { table: `Rows of ${name}`, headings: columns, rows: cells, wide: true },
  ]
}

const titleOf = ({ name, kind }: PageView): Part => ({
  h: [{ code: name }, kind === "macro" ? " (macro)" : ""],
  id: name,
})

const mainParts =
  (all: TablesPage) =>
  (table: MainTable): ReadonlyArray<Part> => [
    titleOf(table),
    { p: table.comment },
    ...joinsOf(table.name, all.joins),
    ...rowsOf(table, all),
    columnsOf(table),
  ]

const historyParts = (view: PageView): ReadonlyArray<Part> => [
  titleOf(view),
  { p: view.comment },
  { details: counted(view.columns.length, "column"), parts: [columnsOf(view)] },
]

/** `+12 against 2026-11-20`. */
const difference = ({ nights: [newest, before] }: TableFigures): Inline => {
  if (newest === undefined || before === undefined) return ""
  const more = newest.rows - before.rows
  const sign = more > 0 ? "+" : more < 0 ? "−" : "±"
  return { soft: ` (${sign}${number.format(Math.abs(more))} against ${before.run_date})` }
}

const nightsOverview = (tables: ReadonlyArray<NightTable>): Part => {
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
  return { table: "Tables of nights and ops", headings, rows, stacked: true }
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

const nightParts =
  (relations: ReadonlyArray<Reference>) =>
  ({ name, comment, key, columns, figures }: NightTable): ReadonlyArray<Part> => {
    const newest = figures?.nights[0]?.rows ?? 0
    const rows = columns.map((column): ReadonlyArray<Inline> => {
      const seen = newest === 0 ? undefined : figures?.columns.get(column.name)
      return [
        nameOf(column.name, key),
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
      ...belongingOf(name, relations),
      {
        details: counted(columns.length, "column"),
        parts: [{ table: `Columns of ${name}`, headings, rows, stacked: true }],
      },
    ]
  }

const hasRows = ({ figures }: NightTable): boolean => figures !== undefined && figures.rows > 0

/** What may be on the page, for whoever passes it on. */
const warnings = {
  rows:
    "This page has the first rows of each table of `main`: it is only for those who may read the database, " +
    "and `nightjar forget` does not change it. With `--no-rows` it has none.",
  pseudonyms:
    "This page has the first rows of each table of `main`, with pseudonyms in place of customers. With " +
    "`--no-rows` it has none.",
  "no rows": "No value of a record is on this page.",
} as const

/** Ids of sections have a hyphen, which no name of a table has. */
const sectionsOf = (all: TablesPage): Page["sections"] => {
  const { main, history, nights, relations } = all
  // Tables with rows first, each group in the order of the dictionary.
  const ordered = [...nights.filter(hasRows), ...nights.filter((table) => !hasRows(table))]
  return [
    {
      id: "schema-main",
      title: "main: what is true now",
      parts: [
        {
          p: {
            prose:
              "One row for each record, under the plain name: `SELECT * FROM customer_profiles`. " +
              "`LEFT JOIN` keeps rows of sessions that were only read, which have no engine.",
          },
        },
        mainOverview(main),
        ...main.flatMap(mainParts(all)),
      ],
    },
    {
      id: "schema-history",
      title: "history: since when",
      parts: [
        { p: { prose: "Each version of each record of `main`, joined by `record_id`." } },
        ...history.flatMap(historyParts),
      ],
    },
    {
      id: "schema-nights",
      title: "nights and ops: every run",
      parts: [
        {
          p: {
            prose:
              "What each run read (`nights`) and what happened in it (`ops`), also as Parquet in " +
              "`tables/`. The figures of a column are those of the newest night with rows; “different” " +
              "is an estimate.",
          },
        },
        nightsOverview(ordered),
        ...ordered.flatMap(nightParts(relations)),
      ],
    },
  ]
}

/** `template`: the text of `page.html`. */
export const renderTablesPage = (template: string, all: TablesPage): string => {
  const { madeAt, timezone, toolVersion, shows, isPublished } = all
  const written = `Written ${momentIn(timezone, madeAt)} (${timezone}) by Nightjar ${toolVersion}.`
  const nothingYet = "Nothing is published in this folder yet: the tables below have no rows."
  const page: Page = {
    title: "Published tables",
    head: [{ p: written, look: "soft" }, { p: isPublished ? { prose: warnings[shows] } : nothingYet }],
    sections: sectionsOf(all),
    foot: [],
  }
  const tables = counted(all.main.length + all.history.length + all.nights.length, "published table")
  const summary = [`${tables}. This page needs JavaScript; \`nightjar tables\` tells the same in a terminal.`]
  return fillPage(template, page, { summary })
}
