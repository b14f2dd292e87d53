/**
 * What the program tells V8 before a night begins, read off it: work that a benchmark does in a
 * process of its own has the memory of a night only with the same.
 */
import { readFileSync } from "node:fs"

const program = readFileSync(new URL("../../src/cli/Nightjar.ts", import.meta.url), "utf8")

export const commandFlags: ReadonlyArray<string> = [
  ...program.matchAll(/setFlagsFromString\("(--[^"]+)"\)/g),
].flatMap(([, flag = ""]) => flag)
if (commandFlags.length === 0) throw new Error("the program sets no flags that could be read off it")
