/**
 * What became of each mutant, and what that means for the whole: a mutant is caught by the first test that fails, and
 * survives where all tests that reach it pass. Those that no test can notice are accepted, each with its reason; they
 * are written down by what stands there and not by number, so that they hold while the file moves on.
 */
import { readFileSync } from "node:fs"
import { Schema } from "effect"
import { parse } from "yaml"
import type { Mutant } from "./Mutant.ts"

export type End =
  | { readonly _tag: "Caught"; readonly by: string }
  /** Its tests did not end in time, which a mutant that runs for ever does and a busy machine may do. */
  | { readonly _tag: "Late"; readonly by: string }
  | { readonly _tag: "Survived" }
  | { readonly _tag: "Accepted" }

/** Survivors of a hundred, accepted ones aside; rounded up, so that a survivor is never nothing. */
export const figureLine = (ends: ReadonlyArray<End>): string => {
  const count = (tag: End["_tag"]) => ends.filter(({ _tag }) => _tag === tag).length
  const [late, accepted, survived] = [count("Late"), count("Accepted"), count("Survived")]
  const percent = Math.ceil((survived * 1000) / Math.max(1, ends.length - accepted)) / 10
  return (
    `${ends.length} mutants: ${count("Caught") + late} caught (${late} by the time limit alone), ` +
    `${accepted} accepted, ${survived} survived (${percent.toFixed(1)} %)`
  )
}

/** By file: on which line what gives way to what, and why nobody notices. */
const Entry = Schema.Struct({
  line: Schema.String,
  from: Schema.String,
  by: Schema.String,
  reason: Schema.String,
})
const Accepted = Schema.Record(Schema.String, Schema.Array(Entry))
export type Accepted = typeof Accepted.Type

export const readAccepted = (): Accepted =>
  Schema.decodeUnknownSync(Accepted, { onExcessProperty: "error" })(
    parse(readFileSync(new URL("accepted.yaml", import.meta.url), "utf8")),
  )

const isSame = (entry: typeof Entry.Type, { onLine, from, by }: Mutant): boolean =>
  entry.line === onLine && entry.from === from && entry.by === by

export const isAccepted = (mutant: Mutant, accepted: Accepted): boolean =>
  accepted[mutant.file]?.some((entry) => isSame(entry, mutant)) ?? false

/** Entries that name no mutant of today's source. */
export const strayEntries = (
  accepted: Accepted,
  mutantsIn: (file: string) => ReadonlyArray<Mutant>,
): ReadonlyArray<string> =>
  Object.entries(accepted).flatMap(([file, entries]) => {
    const mutants = mutantsIn(file)
    return entries
      .filter((entry) => !mutants.some((mutant) => isSame(entry, mutant)))
      .map(({ line }) => `accepted.yaml names no mutant of ${file}: ${line}`)
  })
