/**
 * The published tables as a page: what each table and column means, how the tables are joined, and the first
 * rows of what is true now. They are those of the published database, so that pseudonyms are pseudonyms here.
 * Pure.
 */
import { counted } from "../base/Text.ts"
import type { DictionaryTable } from "../tables/DataDictionary.ts"
import type { Reference } from "../tables/Dimensions.ts"
import { fillPage, momentIn, type Inline, type Page, type Part } from "./Page.ts"

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

export interface TablesPage {
  readonly toolVersion: string
  /** Milliseconds since the epoch. */
  readonly madeAt: number
  readonly timezone: string
  readonly hasPseudonyms: boolean
  readonly isPublished: boolean
  readonly main: ReadonlyArray<MainTable>
  readonly history: ReadonlyArray<PageView>
  /** Of the schemas `nights` and `ops`. */
  readonly nights: ReadonlyArray<PageView>
  /** How tables of one schema are joined. */
  readonly joins: ReadonlyArray<Reference>
}

const number = new Intl.NumberFormat("en")

const separated = (parts: ReadonlyArray<Inline>): Inline =>
  parts.map((part, index) => [index === 0 ? "" : ", ", part])
const codes = (names: ReadonlyArray<string>): Inline => separated(names.map((code) => ({ code })))

const links = (names: ReadonlyArray<string>): Inline => separated(names.map((link) => ({ link })))

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

const rowsOf = ({ name, kind, rows }: MainTable, { isPublished }: TablesPage): ReadonlyArray<Part> => {
  if (kind === "macro" || !isPublished) return []
  if (rows === undefined) return [{ p: "Its rows could not be read." }]
  const { count, columns } = rows
  if (count === 0) return [{ p: "No rows." }]
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

/** A table or view of which no rows are shown. */
const viewParts = (view: PageView, joins: ReadonlyArray<Reference> = []): ReadonlyArray<Part> => [
  titleOf(view),
  { p: view.comment },
  ...joinsOf(view.name, joins),
  { details: counted(view.columns.length, "column"), parts: [columnsOf(view)] },
]

/** For whoever passes the page on. */
const warningOf = (hasPseudonyms: boolean): string =>
  hasPseudonyms
    ? "This page has the first rows of each table of `main`, with pseudonyms in place of customers."
    : "This page has the first rows of each table of `main`: it is only for those who may read the " +
      "database, and `nightjar forget` does not change it."

/** Ids of sections have a hyphen, which no name of a table has. */
const sectionsOf = (all: TablesPage): Page["sections"] => {
  const { main, history, nights, joins } = all
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
        ...history.flatMap((view) => viewParts(view)),
      ],
    },
    {
      id: "schema-nights",
      title: "nights and ops: every run",
      parts: [
        {
          p: {
            prose:
              "What each run read (`nights`) and what happened in it (`ops`), also as Parquet in `tables/`.",
          },
        },
        { p: links(nights.map(({ name }) => name)) },
        ...nights.flatMap((view) => viewParts(view, joins)),
      ],
    },
  ]
}

/** `template`: the text of `page.html`. */
export const renderTablesPage = (template: string, all: TablesPage): string => {
  const { madeAt, timezone, toolVersion, hasPseudonyms, isPublished } = all
  const written = `Written ${momentIn(timezone, madeAt)} (${timezone}) by Nightjar ${toolVersion}.`
  const nothingYet = "Nothing is published in this folder yet: the tables below have no rows."
  const page: Page = {
    title: "Published tables",
    head: [
      { p: written, look: "soft" },
      { p: isPublished ? { prose: warningOf(hasPseudonyms) } : nothingYet },
    ],
    sections: sectionsOf(all),
    foot: [],
  }
  const tables = counted(all.main.length + all.history.length + all.nights.length, "published table")
  const summary = [`${tables}. This page needs JavaScript; \`nightjar tables\` tells the same in a terminal.`]
  return fillPage(template, page, { summary })
}
