/**
 * The promises and the campaigns that try them, as `promises.yaml` holds them, and the tests that carry a promise's
 * number in their titles. A row that names a figure of no campaign is refused.
 */
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { parse } from "yaml"

const Campaign = Schema.Struct({
  /** The program, from the root of the repository, and words of the runtime before it. */
  command: Schema.String,
  figures: Schema.Array(Schema.String),
  /** Its words on the command line for a sample, or the file of the tests that try one. */
  sample: Schema.String,
  /** Its words for the whole; quoted where one holds blanks. */
  full: Schema.String,
})
export type Campaign = typeof Campaign.Type

const Promised = Schema.Struct({
  number: Schema.Number,
  promise: Schema.String,
  /** Figures of campaigns. */
  tried: Schema.Array(Schema.String),
})
export type Promised = typeof Promised.Type

const Table = Schema.Struct({
  campaigns: Schema.Record(Schema.String, Campaign),
  promises: Schema.Array(Promised),
})
export type Table = typeof Table.Type

export const decodeTable = (document: unknown): Table => {
  const table = Schema.decodeUnknownSync(Table, { onExcessProperty: "error" })(document)
  const known = new Set(Object.values(table.campaigns).flatMap(({ figures }) => figures))
  for (const { number, tried } of table.promises)
    for (const figure of tried)
      if (!known.has(figure))
        throw new Error(`promise ${number} is tried by ${figure}, which no campaign has`)
  return table
}

export const readTable = (): Table =>
  decodeTable(parse(readFileSync(fileURLToPath(new URL("promises.yaml", import.meta.url)), "utf8")))

/** `--rows "^promise " --sample 6` as words. */
export const wordsOf = (line: string): ReadonlyArray<string> =>
  [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "")

/** The tests that try a sample of the campaign, if it is tested so. */
export const testsOf = ({ sample }: Campaign): string | undefined =>
  sample.endsWith(".test.ts") ? sample : undefined

/** The campaigns that have a figure of one of these promises. */
export const campaignsFor = (
  table: Table,
  promises: ReadonlyArray<Promised>,
): ReadonlyArray<readonly [string, Campaign]> => {
  const wanted = new Set(promises.flatMap(({ tried }) => tried))
  return Object.entries(table.campaigns).filter(([, { figures }]) => figures.some((one) => wanted.has(one)))
}

/** The promises that a title names: `… [promise 5 counts] [promise 14]` gives 5 and 14. */
export const promisesIn = (title: string): ReadonlyArray<number> => [
  ...new Set([...title.matchAll(/\[promise (\d+)\b/g)].map(([, number]) => Number(number))),
]

/** Test files of which a title names one of these promises. */
export const filesNaming = (numbers: ReadonlyArray<number>, root: string): ReadonlyArray<string> =>
  globSync("test/**/*.test.ts", { cwd: root })
    .filter((file) => !file.startsWith("test/promises/"))
    .filter((file) =>
      promisesIn(readFileSync(`${root}${file}`, "utf8")).some((number) => numbers.includes(number)),
    )
    .toSorted()
