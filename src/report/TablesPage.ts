/**
 * The published tables as one HTML file that needs nothing else: what each table and column means, how the
 * tables belong together, how full and how fresh they are. It holds counts, never a value of a record, so
 * that it can be passed on. Pure.
 */
import { counted } from "../base/Text.ts"
import { Html, dataTable, html, nothing, pageHead, scrollable } from "./Html.ts"
import type { Heading, Value } from "./Html.ts"
import { reportStyle } from "./RenderReport.ts"
import { clockIn, share } from "./TextTable.ts"

// How the published tables belong together, as SVG: what a table belongs to stands on its left. The order is
// that of the relations, so that the rows of one parent stand together.

/** Rows of `table` belong to a row of `of` with the same values in these columns. */
export interface PageRelation {
  readonly table: string
  readonly of: string
  readonly columns: ReadonlyArray<string>
}

const boxWidth = 185
const boxHeight = 24
const rowHeight = 32
const columnWidth = 228

interface Place {
  readonly name: string
  readonly column: number
  readonly y: number
}

/** Leaves stand below each other; a parent stands in the middle of its children. */
const placesOf = (relations: ReadonlyArray<PageRelation>): ReadonlyMap<string, Place> => {
  const childrenOf = Map.groupBy(relations, ({ of }) => of)
  const places = new Map<string, Place>()
  let rows = 0
  const put = (name: string, column: number): number => {
    const below = (childrenOf.get(name) ?? []).map(({ table }) => put(table, column + 1))
    const [first = rows++ * rowHeight] = below
    const y = (first + (below.at(-1) ?? first)) / 2
    places.set(name, { name, column, y })
    return y
  }
  const named = new Set(relations.map(({ table }) => table))
  for (const root of new Set(relations.map(({ of }) => of))) if (!named.has(root)) put(root, 0)
  return places
}

const boxOf = ({ name, column, y }: Place): Html =>
  html`<a href="#${name}"
    ><rect
      class="box"
      x="${column * columnWidth + 1}"
      y="${y + 1}"
      width="${boxWidth}"
      height="${boxHeight}"
      rx="4"
    /><text class="name" x="${column * columnWidth + 9}" y="${y + 17}">${name}</text></a
  >`

const lineOf = (from: Place, to: Place): Html => {
  const x = to.column * columnWidth + boxWidth + 1
  const middle = (from.column * columnWidth + x) / 2
  const [y, end] = [from.y + boxHeight / 2 + 1, to.y + boxHeight / 2 + 1]
  return html`<path
    class="relation"
    d="M${from.column * columnWidth + 1} ${y}C${middle} ${y} ${middle} ${end} ${x} ${end}"
  />`
}

export const relationsChart = (relations: ReadonlyArray<PageRelation>): Html => {
  const places = placesOf(relations)
  const all = [...places.values()]
  const height = Math.max(0, ...all.map(({ y }) => y)) + boxHeight + 2
  const width = Math.max(0, ...all.map(({ column }) => column)) * columnWidth + boxWidth + 2
  const lines = relations.flatMap(({ table, of }) => {
    const [from, to] = [places.get(table), places.get(of)]
    return from === undefined || to === undefined ? [] : [lineOf(from, to)]
  })
  return html`<svg
    class="relations"
    width="${width}"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label="Which table belongs to which; the tables below say it in words."
  >
    ${lines}${all.map(boxOf)}
  </svg>`
}

export interface PageColumn {
  readonly name: string
  readonly type: string
  readonly comment: string
}

/** What the published database holds of a table. */
export interface TableFigures {
  readonly rows: number
  /** Newest first. */
  readonly nights: ReadonlyArray<{ readonly run_date: string; readonly rows: number }>
  /** Of the newest night with rows, by column: how many rows have a value, about how many differ. */
  readonly columns: ReadonlyMap<string, { readonly filled: number; readonly distinct: number }>
}

export interface PageTable {
  readonly name: string
  readonly comment: string
  readonly key: ReadonlyArray<string>
  readonly columns: ReadonlyArray<PageColumn>
  /** Undefined while it is not published. */
  readonly figures: TableFigures | undefined
}

export interface PageView {
  readonly name: string
  readonly kind: "table" | "view" | "macro"
  readonly comment: string
  readonly columns: ReadonlyArray<PageColumn>
}

export interface TablesPage {
  readonly toolVersion: string
  /** Milliseconds since the epoch. */
  readonly madeAt: number
  readonly timezone: string
  readonly tables: ReadonlyArray<PageTable>
  readonly views: ReadonlyArray<PageView>
  readonly relations: ReadonlyArray<PageRelation>
}

const tablesStyle = `${reportStyle}
.relations{display:block;max-width:none}.relations .box{fill:var(--panel);stroke:var(--line)}
.relations .name{fill:var(--link);font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.relations .relation{fill:none;stroke:var(--soft)}
.nights{vertical-align:middle}.key{font-size:.8rem;color:var(--soft);border:1px solid;border-radius:.3rem;
padding:0 .25rem}
dt{margin-top:.4rem}dd{margin:0 0 0 1rem}summary{cursor:pointer;min-height:1.75rem}`

const number = new Intl.NumberFormat("en")

const code = (text: string): Html => html`<code>${text}</code>`

const separated = (parts: ReadonlyArray<Html>): ReadonlyArray<Html> =>
  parts.map((part, index) => html`${index === 0 ? "" : ", "}${part}`)

const link = (name: string): Html => html`<a href="#${name}"><code>${name}</code></a>`

const hasRows = ({ figures }: PageTable): boolean => figures !== undefined && figures.rows > 0

/** `+12 against 2026-11-20`. */
const difference = ({ nights }: TableFigures): Html => {
  const [newest, before] = nights
  if (newest === undefined || before === undefined) return nothing
  const more = newest.rows - before.rows
  const sign = more > 0 ? "+" : more < 0 ? "−" : "±"
  return html` <span class="soft">(${sign}${number.format(Math.abs(more))} against ${before.run_date})</span>`
}

const overviewHeadings: ReadonlyArray<Heading> = [
  "Table",
  { number: "Rows" },
  "Newest night",
  { number: "Its rows" },
  "Difference",
]

const overview = (tables: ReadonlyArray<PageTable>): Html => {
  const rows = tables.map(({ name, figures }) => {
    const [newest] = figures?.nights ?? []
    return [
      link(name),
      figures === undefined ? "–" : number.format(figures.rows),
      newest?.run_date ?? "–",
      newest === undefined ? "–" : number.format(newest.rows),
      figures === undefined ? nothing : difference(figures),
    ]
  })
  return html`<section aria-labelledby="overview">
    <h2 id="overview">Overview</h2>
    ${scrollable("Tables", dataTable({ headings: overviewHeadings, rows, isStacked: true }))}
  </section>`
}

/** Rows per night, oldest first, as bars; the table's text has the newest figures. */
const nightsChart = ({ nights }: TableFigures): Html => {
  if (nights.length < 2) return nothing
  const most = Math.max(1, ...nights.map(({ rows }) => rows))
  const bars = nights.toReversed().map(
    ({ run_date, rows }, index) =>
      html`<g>
        <title>${run_date}: ${counted(rows, "row")}</title>
        <rect
          class="running"
          x="${index * 12}"
          y="${36 - Math.round((34 * rows) / most)}"
          width="9"
          height="${Math.max(1, Math.round((34 * rows) / most))}"
        />
      </g>`,
  )
  const label = `Rows of the last ${nights.length} nights with rows, oldest first.`
  return html`<svg class="nights" width="${nights.length * 12}" height="36" role="img" aria-label="${label}">
    ${bars}
  </svg>`
}

const columnHeadings: ReadonlyArray<Heading> = [
  "Column",
  "Type",
  "Meaning",
  { number: "Filled" },
  { number: "Different" },
]

const columnRow = (
  { key, figures }: PageTable,
  { name, type, comment }: PageColumn,
): ReadonlyArray<Value> => {
  const newest = figures?.nights[0]?.rows ?? 0
  const seen = newest === 0 ? undefined : figures?.columns.get(name)
  return [
    html`${code(name)}${key.includes(name) ? html` <span class="key">key</span>` : nothing}`,
    code(type),
    comment,
    seen === undefined ? "–" : share(seen.filled, newest),
    seen === undefined ? "–" : number.format(seen.distinct),
  ]
}

const tableSection =
  (relations: ReadonlyArray<PageRelation>) =>
  (table: PageTable): Html => {
    const { name, comment, columns, figures } = table
    const [newest] = figures?.nights ?? []
    const up = relations.filter((one) => one.table === name)
    const down = relations.filter(({ of }) => of === name)
    const state =
      figures === undefined
        ? html`Not published yet.`
        : newest === undefined
          ? html`No rows yet.`
          : html`${counted(figures.rows, "row")}; newest night ${newest.run_date}:
            ${counted(newest.rows, "row")}${difference(figures)}. ${nightsChart(figures)}`
    const rows = columns.map((column) => columnRow(table, column))
    return html`<section aria-labelledby="${name}">
      <h3 id="${name}"><code>${name}</code></h3>
      <p>${comment}</p>
      <p>${state}</p>
      ${up.map(({ of, columns: by }) => html`<p>Belongs to ${link(of)} by ${separated(by.map(code))}.</p>`)}
      ${down.length === 0 ? nothing : html`<p>Has ${separated(down.map((one) => link(one.table)))}.</p>`}
      ${scrollable(`Columns of ${name}`, dataTable({ headings: columnHeadings, rows, isStacked: true }))}
    </section>`
  }

const viewSection = ({ name, kind, comment, columns }: PageView): Html =>
  html`<section aria-labelledby="${name}">
    <h3 id="${name}"><code>${name}</code>${kind === "macro" ? " (macro)" : ""}</h3>
    <p>${comment}</p>
    <details>
      <summary>${counted(columns.length, "column")}</summary>
      <dl>
        ${columns.map(
          (one) =>
            html`<dt><code>${one.name}</code> <span class="soft">${one.type}</span></dt>
              <dd>${one.comment}</dd>`,
        )}
      </dl>
    </details>
  </section>`

/** Tables with rows first, each group in the order of the dictionary. */
const inOrder = (tables: ReadonlyArray<PageTable>): ReadonlyArray<PageTable> => [
  ...tables.filter(hasRows),
  ...tables.filter((table) => !hasRows(table)),
]

export const renderTablesPage = ({
  tables,
  views,
  relations,
  madeAt,
  timezone,
  toolVersion,
}: TablesPage): string => {
  const ordered = inOrder(tables)
  const page = html`<!doctype html>
    <html lang="en">
      ${pageHead({ title: "Published tables", style: tablesStyle })}
      <body>
        <a class="skip" href="#overview">Skip to the overview</a>
        <header>
          <h1>Published tables</h1>
          <p class="soft">
            Written ${clockIn(timezone).moment(madeAt)} (${timezone}) by Nightjar ${toolVersion}.
          </p>
          <p>
            ${counted(tables.length, "table")} in <code>nightjar.duckdb</code> and, as Parquet, in
            <code>tables/</code>. A table has the rows of every run, <code>TABLE_latest</code> only the
            current ones, and <code>TABLE_history</code> says since when each is valid. The figures of a
            column are those of the newest night with rows; <em>different</em> is an estimate. No value of a
            record is on this page.
          </p>
        </header>
        <nav aria-label="Sections">
          <a href="#overview">Overview</a><a href="#relations">Relations</a><a href="#tables">Tables</a
          ><a href="#views">Views</a>
        </nav>
        <main>
          ${overview(ordered)}
          <section aria-labelledby="relations">
            <h2 id="relations">Relations</h2>
            <p>Each table belongs to the one on its left that a line leads to.</p>
            <div class="scroll">${relationsChart(relations)}</div>
          </section>
          <h2 id="tables">Tables</h2>
          ${ordered.map(tableSection(relations))}
          <h2 id="views">Views</h2>
          ${views.map(viewSection)}
        </main>
      </body>
    </html> `
  return `${page.text.trim()}\n`
}
