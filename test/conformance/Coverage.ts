/**
 * Which tests show which rows of the inventory, and whether each row has the bug that they must notice. A
 * test points at a row by its id in square brackets in its title; a bracket or a bug that names no row, a row
 * without a test or a bug and two of one name are problems.
 */
import type { Bug } from "./Bugs.ts"
import type { Row } from "./Inventory.ts"

export interface CollectedTest {
  readonly file: string
  readonly title: string
}

export interface CoveredRow extends Row {
  readonly tests: ReadonlyArray<CollectedTest>
}

export interface Coverage {
  readonly rows: ReadonlyArray<CoveredRow>
  readonly problems: ReadonlyArray<string>
}

/** Brackets with a word, a space and more: `[move 3]` and `[startExecution 409]`, but neither `[]` nor `[1]`. */
const tag = /\[([A-Za-z][\w-]* [^[\]]+)\]/g

export const tagsOf = (title: string): ReadonlyArray<string> =>
  [...title.matchAll(tag)].flatMap(([, id]) => (id === undefined ? [] : [id]))

/** The title without its tags, as a reader wants it. */
export const plainTitle = (title: string): string =>
  title.replaceAll(tag, "").replaceAll(/ {2,}/g, " ").trim()

const grouped = (tests: ReadonlyArray<CollectedTest>) => {
  const byTag = new Map<string, Array<CollectedTest>>()
  for (const test of tests) {
    for (const id of new Set(tagsOf(test.title))) {
      const group = byTag.get(id)
      if (group === undefined) byTag.set(id, [test])
      else group.push(test)
    }
  }
  return byTag
}

const bugProblems = (
  rows: ReadonlyArray<Row>,
  bugs: ReadonlyArray<Pick<Bug, "id">>,
): ReadonlyArray<string> => {
  const ids = new Set(rows.map(({ id }) => id))
  const withBug = new Set(bugs.map(({ id }) => id))
  const twice = bugs.filter(({ id }, index) => bugs.findIndex((bug) => bug.id === id) !== index)
  return [
    ...rows
      .filter(({ id }) => !withBug.has(id))
      .map(({ id }) => `[${id}] has no bug that its tests must catch`),
    ...twice.map(({ id }) => `[${id}] has two bugs`),
    ...[...withBug].filter((id) => !ids.has(id)).map((id) => `the bug of [${id}] is for no row`),
  ]
}

export const coverageOf = (
  rows: ReadonlyArray<Row>,
  tests: ReadonlyArray<CollectedTest>,
  bugs: ReadonlyArray<Pick<Bug, "id">>,
): Coverage => {
  const byTag = grouped(tests)
  const ids = new Set(rows.map(({ id }) => id))
  const twice = rows.filter(({ id }, index) => rows.findIndex((row) => row.id === id) !== index)
  const untold = rows.filter(({ id }) => !byTag.has(id))
  const strangers = [...byTag].filter(([id]) => !ids.has(id))
  return {
    rows: rows.map((row) => ({ ...row, tests: byTag.get(row.id) ?? [] })),
    problems: [
      ...twice.map(({ id }) => `[${id}] is in the inventory twice`),
      ...untold.map(({ id, section }) => `[${id}] of section ${section} has no test`),
      ...strangers.map(([id, [first]]) => `[${id}] in a title of ${first?.file ?? "?"} names no row`),
      ...bugProblems(rows, bugs),
    ],
  }
}
