/**
 * What the launcher tells V8 before it starts the command, read off the launcher: work that a benchmark does in a
 * process of its own has the memory of a night only with the same.
 */
import { readFileSync } from "node:fs"

const launcher = readFileSync(new URL("../project/launcher.js", import.meta.url), "utf8")

export const commandFlags: ReadonlyArray<string> = [
  ...launcher.matchAll(/setFlagsFromString\("(--[^"]+)"\)/g),
].flatMap(([, flag = ""]) => flag)
if (commandFlags.length === 0) throw new Error("the launcher sets no flags that could be read off it")
