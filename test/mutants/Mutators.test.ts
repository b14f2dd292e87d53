/** What the mutators change and what they leave alone, on sources small enough to read. */
import { describe, expect, it } from "vitest"
import { editsOf } from "./Mutators.ts"
import { mutantsOf } from "./Mutant.ts"
import { parseSource } from "./Syntax.ts"

/** Every source with one change made, beside the mutator that made it. */
const changed = (text: string): ReadonlyArray<string> =>
  editsOf(parseSource(text), text).map(
    ({ mutator, start, end, by }) => `${mutator}: ${text.slice(0, start)}${by}${text.slice(end)}`,
  )

describe("a mutator", () => {
  it("forces and negates conditions, and moves their limits", () => {
    expect(changed("if (a < b) f")).toEqual([
      "forced: if (false) f",
      "forced: if (true) f",
      "compared: if (a <= b) f",
      "compared: if (a >= b) f",
      "removed: if (a < b) ;",
    ])
    expect(changed("x = !a && b !== c")).toEqual([
      "removed: ;",
      "negated: x = a && b !== c",
      "combined: x = !a || b !== c",
      "compared: x = !a && b === c",
    ])
    expect(changed("while (a) {}")).toEqual(["forced: while (false) {}"])
  })

  it("changes sums, counters, literals and lists, but leaves joined strings alone", () => {
    expect(changed("const a = b + 1, c = 'x' + d")).toEqual([
      "calculated: const a = b - 1, c = 'x' + d",
      "literal: const a = b + 2, c = 'x' + d",
      'literal: const a = b + 1, c = "" + d',
    ])
    expect(changed("const a = [...b, true], c = [], d = { ...e }, f = ``")).toEqual([
      "list: const a = [], c = [], d = { ...e }, f = ``",
      "spread: const a = [...[], true], c = [], d = { ...e }, f = ``",
      "literal: const a = [...b, false], c = [], d = { ...e }, f = ``",
      'list: const a = [...b, true], c = ["mutant"], d = { ...e }, f = ``',
      "spread: const a = [...b, true], c = [], d = { ...{} }, f = ``",
    ])
    expect(changed("for (;;) n++")).toEqual(["removed: for (;;) ;", "calculated: for (;;) n--"])
  })

  it("empties functions and return values, removes chains and defaults, swaps methods", () => {
    expect(changed("const f = (a) => a?.b ?? c")).toEqual([
      "combined: const f = (a) => a?.b",
      "combined: const f = (a) => c",
      "returned: const f = (a) => undefined",
      "unchained: const f = (a) => a.b ?? c",
    ])
    expect(changed("function f() { return a.some(g).b?.[0] }")).toEqual([
      "returned: function f() {}",
      "returned: function f() { return undefined }",
      "method: function f() { return a.every(g).b?.[0] }",
      "unchained: function f() { return a.some(g).b[0] }",
      "literal: function f() { return a.some(g).b?.[1] }",
    ])
    expect(changed("const a = b.filter(c), d = Array.filter(e)")).toEqual([
      "method: const a = b, d = Array.filter(e)",
    ])
  })

  it("removes the guards of an effect, wherever they are", () => {
    expect(changed("const a = Effect.catch(b, c), d = Effect.orDie(e)")).toEqual([
      "unguarded: const a = b, d = Effect.orDie(e)",
      "unguarded: const a = Effect.catch(b, c), d = e",
    ])
    expect(changed("const a = b.pipe(Effect.map(c), Effect.orDie, Effect.retry(d))")).toEqual([
      "unguarded: const a = b.pipe(Effect.map(c), Effect.retry(d))",
      "unguarded: const a = b.pipe(Effect.map(c), Effect.orDie)",
    ])
    expect(changed('const a = Effect.fn("Room.verb")(b, Effect.uninterruptible)')).toEqual([
      'unguarded: const a = Effect.fn("Room.verb")(b)',
    ])
  })

  it("leaves types, imports, names of keys and names of services alone", () => {
    expect(
      changed(
        [
          'import { a } from "a"',
          'type A = "b" | 1',
          'export { b } from "b"',
          'const c = { "x-y": d } as { readonly e: "f" }',
          'class G extends Service<G, "H">()("nightjar/G") {}',
          "const i = <T extends 1>(k: 2) => k satisfies 3",
        ].join("\n"),
      ),
    ).toEqual([expect.stringMatching(/^returned: [\s\S]*const i = <T extends 1>\(k: 2\) => undefined$/)])
  })
})

describe("a mutant", () => {
  const text =
    "const a = (x) => {\n  f(x)\n  return 1\n}\nconst b = (x) => {\n  f(x)\n  return [() => 1]\n}\n"
  const mutants = mutantsOf("src/a.ts", text)

  it("is identified by its place: its number, its line and the innermost function around it", () => {
    expect(
      mutants.map(({ id, line, inFunction, from, by }) => [id, line, Number(inFunction.at(-1)), from, by]),
    ).toEqual([
      ["src/a.ts#1", 1, 1, "{\n  f(x)\n  return 1\n}", "{}"],
      ["src/a.ts#2", 2, 1, "f(x)", ";"],
      ["src/a.ts#3", 3, 1, "1", "2"],
      ["src/a.ts#4", 3, 1, "1", "undefined"],
      ["src/a.ts#5", 5, 2, "{\n  f(x)\n  return [() => 1]\n}", "{}"],
      ["src/a.ts#6", 6, 2, "f(x)", ";"],
      ["src/a.ts#7", 7, 2, "[() => 1]", "[]"],
      ["src/a.ts#8", 7, 2, "[() => 1]", "undefined"],
      ["src/a.ts#9", 7, 3, "1", "2"],
      ["src/a.ts#10", 7, 3, "1", "undefined"],
    ])
  })
})
