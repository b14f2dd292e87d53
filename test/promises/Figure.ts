/**
 * What a campaign tells a program: with `--json` the last line of its output is its figures, so that nobody reads
 * numbers out of sentences. A figure without a split by promise counts for every promise that names it.
 */
import { Schema } from "effect"

const Count = Schema.Struct({ tried: Schema.Number, failed: Schema.Number })
export const Figure = Schema.Struct({
  /** As a row of `promises.yaml` names it: what was tried, in the plural. */
  of: Schema.String,
  ...Count.fields,
  byPromise: Schema.optionalKey(Schema.Record(Schema.String, Count)),
  /** Why it cannot be tried on this machine. */
  leftOut: Schema.optionalKey(Schema.String),
})
export type Figure = typeof Figure.Type
export type Count = typeof Count.Type

const Line = Schema.fromJsonString(Schema.Struct({ figures: Schema.Array(Figure) }))

export const figuresLine = (figures: ReadonlyArray<Figure>): string => JSON.stringify({ figures })

/** The figures in a campaign's output; undefined where its last line holds none. */
export const readFigures = (output: string): ReadonlyArray<Figure> | undefined => {
  const last = output.trimEnd().split("\n").at(-1) ?? ""
  const decoded = Schema.decodeUnknownOption(Line)(last)
  return decoded._tag === "Some" ? decoded.value.figures : undefined
}

/** Counts of several pieces, each of which belongs to one promise. */
export const countByPromise = (
  pieces: ReadonlyArray<{ readonly promise: number; readonly failed: boolean }>,
): Readonly<Record<string, Count>> => {
  const counts: Record<string, { tried: number; failed: number }> = {}
  for (const { promise, failed } of pieces) {
    const count = (counts[promise] ??= { tried: 0, failed: 0 })
    count.tried += 1
    if (failed) count.failed += 1
  }
  return counts
}
