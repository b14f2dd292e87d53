/**
 * The contract's own table of what happens with each end (`contract-ends.md`), read cell by cell: what the tests expect
 * of the table of ends comes from here, and nothing of it from the code.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { statusReasonsByCode } from "../../src/service/Vocabulary.ts"

/** What the contract promises of an end. */
export interface Promised {
  readonly outcome: string
  readonly who_acts: string
  readonly exit: number
  readonly retry: boolean
  readonly opensBreaker: boolean
}

/** One line of the table. */
export interface ContractEnd {
  /** The first cell, in words. */
  readonly end: string
  readonly promised: Promised
  /** The service's own words in the first cell, each with the family and the reasons that it means. */
  readonly said: ReadonlyArray<readonly [word: string, family: string, reasons: ReadonlyArray<string>]>
  /** Reasons of that family that end otherwise. */
  readonly exceptions: ReadonlyArray<readonly [reason: string, promised: Promised]>
  /** Reasons that the third cell names: ours. */
  readonly own: ReadonlyArray<string>
  readonly neverStarted: boolean
}

const outcomeWord = /`(succeeded|partial|failed|skipped|unfinished)`/
const actorWord = /\b(nobody|customer|engineer|service)\b/
const exception = /\(`([A-Z_0-9]+)`: (\w+), `(\w+)`, (\d)\)/
const capitals = (cell: string) => [...cell.matchAll(/`([A-Z][A-Z_0-9]+)`/g)].map(([, word = ""]) => word)
const one = (pattern: RegExp, cell: string): string => {
  const word = pattern.exec(cell)?.[1]
  if (word === undefined) throw new Error(`the contract's table says nothing like ${pattern} in: ${cell}`)
  return word
}

const families: Readonly<Record<string, ReadonlyArray<string>>> = statusReasonsByCode

const meant = (word: string, without: ReadonlyArray<string>) => {
  const family =
    word in families ? word : Object.keys(families).find((code) => families[code]?.includes(word))
  const reasons = families[word] ?? [word]
  return [word, family ?? "", reasons.filter((reason) => !without.includes(reason))] as const
}

const read = (line: string): ContractEnd => {
  const [end = "", again = "", told = "", exit = ""] = line
    .split("|")
    .map((cell) => cell.trim())
    .slice(1)
  const [, reason, who_acts = "", outcome = "", otherExit] = exception.exec(told) ?? []
  const plain = told.replace(exception, "")
  const decided = { retry: again.startsWith("yes"), opensBreaker: again.includes("the breaker opens") }
  const exceptions =
    reason === undefined
      ? []
      : [[reason, { outcome, who_acts, exit: Number(otherExit), retry: false, opensBreaker: false }] as const]
  return {
    end,
    promised: {
      outcome: one(outcomeWord, plain),
      who_acts: one(actorWord, plain),
      exit: Number(one(/^(\d)$/, exit)),
      ...decided,
    },
    said: capitals(end).map((word) => meant(word, reason === undefined ? [] : [reason])),
    exceptions,
    own: capitals(plain),
    neverStarted: again === "never started",
  }
}

const text = readFileSync(fileURLToPath(new URL("./contract-ends.md", import.meta.url)), "utf8")
export const contractEnds: ReadonlyArray<ContractEnd> = text
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .slice(2)
  .map(read)
