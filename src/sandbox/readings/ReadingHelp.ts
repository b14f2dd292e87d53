/**
 * The part of `nightjar sandbox --help` about files of readings, made from the very keys that the service
 * accepts, so that the two cannot differ.
 */
import { readingChoices } from "../state/Reading.ts"

const lineMax = 80

/** Whole words, wrapped, each line after `before`. */
export const wrapWords = (text: string, before: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length + 1 > lineMax) lines.push(`${before}${word}`)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

export const readingHelp = [
  "--reading FILE chooses in YAML how the service behaves where the reference leaves room, one line per key",
  "(`flow_api: absent`). Each key is listed with its section; the first value is the default:",
  "",
  ...readingChoices.flatMap(({ key, section, about, values }) => [
    `  ${key}: ${values.join(" | ")}`,
    ...wrapWords(`${section}: ${about}`, "    "),
  ]),
].join("\n")
