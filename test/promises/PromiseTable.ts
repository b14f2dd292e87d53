/**
 * What the campaigns' figures and the tests say of each promise, as the table that is printed. Pure. A promise is kept
 * where something was tried and nothing failed; one that nothing tries is not built yet, and one whose campaigns
 * could not run here was not tried.
 */
import type { Count, Figure } from "./Figure.ts"
import type { Promised } from "./PromiseSource.ts"

/** What a campaign came to: its figures, or why it gave none, or the tests that try a sample of it. */
export type CampaignEnd =
  | { readonly sampledBy: string }
  | { readonly figures: ReadonlyArray<Figure>; readonly seconds: number }
  | { readonly broken: string; readonly seconds: number }

export interface Evidence {
  /** By the campaign's name. */
  readonly campaigns: Readonly<Record<string, CampaignEnd>>
  /** Which campaign has a figure, by the figure's name. */
  readonly campaignOf: Readonly<Record<string, string>>
  /** Tests that carry a promise's number, by the number. */
  readonly tests: Readonly<Record<string, Count>>
  /** How many files hold tests of the promise that are left to whoever runs all tests. */
  readonly filesLeft?: number
}

export type State = "kept" | "violated" | "broken" | "not tried" | "not built yet"

interface Line {
  readonly text: string
  readonly tried: number
  readonly failed: number
  readonly broken: boolean
}

export interface Row {
  readonly number: number
  readonly promise: string
  readonly state: State
  readonly tried: number
  readonly failed: number
  readonly lines: ReadonlyArray<string>
}

const plural = (count: number, noun: string): string =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`
const nothing = { tried: 0, failed: 0, broken: false }

const lineOf = (name: string, number: number, { campaigns, campaignOf }: Evidence): Line => {
  const end = campaigns[campaignOf[name] ?? ""]
  if (end === undefined) return { ...nothing, text: `${name}: not run` }
  if ("sampledBy" in end) return { ...nothing, text: `${name}: a sample is in ${end.sampledBy}` }
  if ("broken" in end) return { ...nothing, broken: true, text: `${name}: no figure, ${end.broken}` }
  const figure = end.figures.find(({ of }) => of === name)
  if (figure === undefined)
    return { ...nothing, broken: true, text: `${name}: the campaign gave no such figure` }
  if (figure.leftOut !== undefined) return { ...nothing, text: `${name}: left out (${figure.leftOut})` }
  const { tried, failed } = figure.byPromise === undefined ? figure : (figure.byPromise[number] ?? nothing)
  if (tried === 0) return { ...nothing, text: `${name}: none in this sample` }
  const text = `${name}: ${tried.toLocaleString("en")} tried, ${plural(failed, "violation")}`
  return { tried, failed, broken: false, text: `${text} (${Math.round(end.seconds)} s)` }
}

const stateOf = (lines: ReadonlyArray<Line>): State => {
  if (lines.length === 0) return "not built yet"
  if (lines.some(({ failed }) => failed > 0)) return "violated"
  if (lines.some(({ broken }) => broken)) return "broken"
  return lines.some(({ tried }) => tried > 0) ? "kept" : "not tried"
}

export const rowOf = ({ number, promise, tried }: Promised, evidence: Evidence): Row => {
  const { filesLeft = 0 } = evidence
  const tests = evidence.tests[number]
  const lines: ReadonlyArray<Line> = [
    ...tried.map((name) => lineOf(name, number, evidence)),
    ...(tests === undefined
      ? []
      : [{ ...tests, broken: false, text: `tests: ${tests.tried - tests.failed} of ${tests.tried} pass` }]),
    ...(filesLeft > 0 ? [{ ...nothing, text: `tests: in ${plural(filesLeft, "file")}, not run here` }] : []),
  ]
  const sum = (field: "tried" | "failed") => lines.reduce((total, line) => total + line[field], 0)
  return {
    number,
    promise,
    state: stateOf(lines),
    tried: sum("tried"),
    failed: sum("failed"),
    lines: lines.map(({ text }) => text),
  }
}

const width = 104
const wrapped = (text: string, indent: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last !== undefined && `${last} ${word}`.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(`${indent}${word}`)
  }
  return lines
}

export const renderRows = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  rows.flatMap(({ number, promise, state, lines }) => [
    `${String(number).padStart(2)}  ${state}`,
    ...wrapped(promise, "    "),
    ...lines.map((line) => `      ${line}`),
  ])

/** Whether the command succeeds: nothing violated, nothing broken. */
export const isSound = (rows: ReadonlyArray<Row>): boolean =>
  rows.every(({ state }) => state !== "violated" && state !== "broken")

export const summaryOf = (rows: ReadonlyArray<Row>): string => {
  const states: ReadonlyArray<State> = ["kept", "violated", "broken", "not tried", "not built yet"]
  const counts = states.flatMap((state) => {
    const count = rows.filter((row) => row.state === state).length
    return count === 0 ? [] : [`${count} ${state}`]
  })
  return `${rows.length} promises: ${counts.join(", ")}`
}
