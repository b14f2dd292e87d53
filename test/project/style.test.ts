/**
 * The part of the style that no linter knows: every module says why it exists, lines stay readable, nothing
 * is put off, and no cast silences the compiler.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** A rule answers whether a module breaks it, or for a line rule, whether that line does. */
const moduleRules = {
  "begins with a comment of two to six lines that says why it exists": (text: string) => {
    const comment = /^(?:#!.*\n)?\/\*\*\n((?: \*.*\n)+?) \*\//.exec(text)?.[1]
    const lines = (comment?.split("\n").length ?? 1) - 1
    return lines < 2 || lines > 6
  },
  "names no file that is gone": (text: string) =>
    [...text.matchAll(/`([A-Za-z]+\.ts)`/g)].some(([, name]) => !names().has(String(name))),
} as const

const silencers = [
  "as any",
  "as unknown as",
  "@ts-ignore",
  "@ts-expect-error",
  "@ts-nocheck",
  "oxlint-disable",
]
const putOff = ["TODO", "FIXME", "XXX", "HACK", "for now"]
const word = (words: ReadonlyArray<string>) =>
  new RegExp(words.map((one) => (one.startsWith("@") ? one : `\\b${one}\\b`)).join("|"))

const lineRules = {
  "has no line over 110 characters": (line: string) => line.length > 110,
  "puts nothing off": (line: string) => word(putOff).test(line),
  "silences no check": (line: string) => word(silencers).test(line),
  "calls a layer Thing.layer": (line: string) => /^export const \w*layer\w* =/i.test(line),
  "asks no machine for the date": (line: string) => /\bnew Date\(\)/.test(line),
} as const

/** Each rule with the one file that may spell it out; everybody else imports it. */
const onePlace = {
  "src/base/DurableFile.ts":
    /\b(?:(?:append|write|writev|writeFile|fsync|fdatasync|ftruncate|rename|copyFile|link|mkdtemp)Sync|createWriteStream)\b/,
  "src/base/Hashes.ts": /\bcreateHash\b/,
  "src/base/Text.ts": /127\\\./,
  "src/ledger/RunState.ts": /\[a-z0-9\.-\]\{0,199\}/,
  "src/service/BodyBounds.ts": /\[cut: /,
  "src/base/YamlText.ts": /\bnew LineCounter\b|\bparseDocument\b/,
  "Predicate.isObject of effect": /!== null && !Array\.isArray\(/,
} as const

const spelledIn = (rule: RegExp) => (path: string) => rule.test(readFileSync(join(root, path), "utf8"))

const breaks = (path: string, text: string) => [
  ...Object.entries(moduleRules)
    .filter(([, broken]) => broken(text))
    .map(([rule]) => `${path}: ${rule}`),
  ...text.split("\n").flatMap((line, index) =>
    Object.entries(lineRules)
      .filter(([, broken]) => broken(line))
      .map(([rule]) => `${path}:${index + 1}: ${rule}`),
  ),
]

/** What modules are called, wherever they are. */
const names = () => new Set(modules("src").map((path) => path.split("/").at(-1)))

const modules = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => join(folder, path))
    .toSorted()

describe("style", () => {
  it("every rule finds the one module that breaks it", () => {
    const good = "/**\n * Why this exists,\n * and what it promises.\n */\nexport const a = 1\n"
    const put = ["TO", "DO"].join("")
    const silent = ["as", "unknown", "as", "string"].join(" ")
    expect(breaks("good.ts", good)).toEqual([])
    const wordy = good.replace(" * and", `${" * more\n".repeat(5)} * and`)
    expect(breaks("wordy.ts", wordy)).toEqual([
      "wordy.ts: begins with a comment of two to six lines that says why it exists",
    ])
    expect(breaks("lost.ts", good.replace("exists", "exists: see `Nowhere.ts`"))).toEqual([
      "lost.ts: names no file that is gone",
    ])
    expect(breaks("bare.ts", "export const a = 1\n")).toEqual([
      "bare.ts: begins with a comment of two to six lines that says why it exists",
    ])
    const bad = `${good}// ${put}: later\nconst b = 1 ${silent}\n${"x".repeat(111)}\nnew Date${"()"}\nexport const clockLayer = 1\n`
    expect(breaks("bad.ts", bad)).toEqual([
      "bad.ts:6: puts nothing off",
      "bad.ts:7: silences no check",
      "bad.ts:8: has no line over 110 characters",
      "bad.ts:9: asks no machine for the date",
      "bad.ts:10: calls a layer Thing.layer",
    ])
  })

  it("every module of src keeps every rule", () => {
    expect(modules("src").flatMap((path) => breaks(path, readFileSync(join(root, path), "utf8")))).toEqual([])
  })

  it.each(Object.entries(onePlace))("a rule that exists once is only in %s", (place, rule) => {
    expect(modules("src").filter(spelledIn(rule))).toEqual(place.startsWith("src/") ? [place] : [])
  })

  it("no file has an empty name: utils, common, helpers, manager, index", () => {
    const vague = /^(?:utils?|common|helpers?|.*manager|index)\.ts$/i
    expect(modules("src").filter((path) => vague.test(path.split("/").at(-1) ?? ""))).toEqual([])
  })
})
