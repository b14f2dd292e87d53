/**
 * Mutants that no test can notice, each with the reason: they behave as the source does, or differ in what nobody
 * is promised. Written down by what stands there and not by number, so that they hold while the file moves on.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { parse } from "yaml"
import type { Mutant } from "./Mutant.ts"

/** By file: on which line what gives way to what, and why nobody notices. */
const Entry = Schema.Struct({
  line: Schema.String,
  from: Schema.String,
  by: Schema.String,
  reason: Schema.String,
})
export const Accepted = Schema.Record(Schema.String, Schema.Array(Entry))
export type Accepted = typeof Accepted.Type

export const readAccepted = (): Accepted =>
  Schema.decodeUnknownSync(Accepted, { onExcessProperty: "error" })(
    parse(readFileSync(fileURLToPath(new URL("accepted.yaml", import.meta.url)), "utf8")) ?? {},
  )

export const reasonOf = (mutant: Mutant, accepted: Accepted): string | undefined =>
  accepted[mutant.file]?.find(
    ({ line, from, by }) => line === mutant.onLine && from === mutant.from && by === mutant.by,
  )?.reason

/** Entries that name no mutant of today's source. */
export const strayEntries = (
  accepted: Accepted,
  mutantsIn: (file: string) => ReadonlyArray<Mutant>,
): ReadonlyArray<string> =>
  Object.entries(accepted).flatMap(([file, entries]) => {
    const mutants = mutantsIn(file)
    return entries
      .filter((entry) => !mutants.some((mutant) => reasonOf(mutant, { [file]: [entry] }) !== undefined))
      .map(({ line }) => `accepted.yaml names no mutant of ${file}: ${line}`)
  })
