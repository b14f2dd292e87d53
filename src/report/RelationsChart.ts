/**
 * How the published tables belong together, as SVG: what a table belongs to stands on its left. The order is
 * that of the relations, so that the rows of one parent stand together.
 */
import { Html, html } from "./Html.ts"

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
