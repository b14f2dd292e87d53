/**
 * The catalogue of messages: every entry can be understood alone, is told somewhere, and is told with its
 * values.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import {
  afterwards,
  catalogue,
  entryLines,
  happened,
  isMessageId,
  messageOf,
  problemOf,
  told,
  toldWhole,
} from "../../src/messages/Catalogue.ts"
import { commandMessages } from "../../src/messages/CommandMessages.ts"
import { findingMessages } from "../../src/messages/FindingMessages.ts"
import type { Message } from "../../src/messages/Message.ts"
import { nightMessages } from "../../src/messages/NightMessages.ts"

const src = fileURLToPath(new URL("../../src/", import.meta.url))
const ids = Object.keys(catalogue)
const entries: ReadonlyArray<readonly [string, Message]> = Object.entries(catalogue)

/** What is wrong with the way an entry is written. */
const flaws = ([id, { happened: what, kept, next, kind, exit_code }]: readonly [string, Message]) => [
  ...(/^[a-z]+(?:-[a-z]+)*$/.test(id) ? [] : [`${id}: the id is not a few words`]),
  ...(/^(?:[a-z-]|\{mistake\}|\{[a-z_]+\}.*[a-z])/.test(what) && !/^\{detail\}$|\.$/.test(what)
    ? []
    : [`${id}: what happened is no clause`]),
  ...[kept, next].flatMap((text) =>
    /^[A-Z`-].*\.$/.test(text) ? [] : [`${id}: not a whole sentence: ${text}`],
  ),
  ...(/\{\w+\}/.test(`${kept} ${next}`) ? [`${id}: only what happened is given values`] : []),
  ...((kind === "error") === (exit_code !== undefined) ? [] : [`${id}: only errors have an exit code`]),
]

describe("the catalogue", () => {
  it("rejects an entry that is not written like the others", () => {
    const wrong = { kind: "warning", exit_code: 2, happened: "It broke.", kept: "", next: "do {it}" } as const
    expect(flaws(["Not_Words", wrong])).toEqual([
      "Not_Words: the id is not a few words",
      "Not_Words: what happened is no clause",
      "Not_Words: not a whole sentence: ",
      "Not_Words: not a whole sentence: do {it}",
      "Not_Words: only what happened is given values",
      "Not_Words: only errors have an exit code",
    ])
  })

  it("says for every message what happened, what was kept and what to do next, in whole sentences", () => {
    expect(entries.flatMap(flaws)).toEqual([])
  })

  it("contains every id once", () => {
    const all = [commandMessages, nightMessages, findingMessages].flatMap((part) => Object.keys(part))
    expect(all.toSorted()).toEqual(ids.toSorted())
  })

  it("contains no unused message", () => {
    const sources = readdirSync(src, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && !path.startsWith("messages/"))
      .map((path) => readFileSync(join(src, path), "utf8"))
      .join("")
    expect(ids.filter((id) => !sources.includes(`"${id}"`))).toEqual([])
  })
})

describe("a message", () => {
  it("is printed with its values, each up to its first line, and its id", () => {
    expect(told("ledger-unusable", { detail: "disk full\n at x" })).toBe(
      "the ledger cannot be read or written: disk full [ledger-unusable]",
    )
    expect(happened("run-unknown", { suggestion: "" })).toBe("there is no such run")
    expect(afterwards("output-not-a-folder")).toBe(
      "Nothing was changed. Give --output a folder that is empty or does not exist yet.",
    )
    expect(toldWhole("interrupted")).toBe(
      "interrupted: the state is saved. Executions that were not deleted yet stay at the service. Run `nightjar run JOB` to resume. [interrupted]",
    )
  })

  it("never puts a value in another's place", () => {
    const values = { path: "{other}", other: "b.yaml", name: "x" }
    expect(happened("job-name-taken", values)).toBe("{other} and b.yaml both define the job `x`")
  })

  it("as a finding has its place", () => {
    expect(
      problemOf("tables", "rows-differ", { rows: "1 row", run_id: "a.2026-11-20", expected: 2 }),
    ).toEqual({
      id: "rows-differ",
      problem: "1 row of run a.2026-11-20 in the database, 2 in its files",
      where: "tables",
      next: messageOf("rows-differ").next,
    })
  })

  it("is explained in full by its id, and by nothing else", () => {
    expect(entryLines("output-locked")).toEqual([
      "output-locked: error, exit code 5",
      "What happened: another process is working in this output folder: {holder}",
      "What was kept: Nothing was started here.",
      "What to do next: Wait until it ends, as `nightjar run --wait DURATION` does. Another output folder would not know which logins were rejected here.",
    ])
    expect(["output-locked", "toString", "c-024"].map(isMessageId)).toEqual([true, false, false])
  })
})
