/**
 * A source that holds all of its mutants at once, so that a test loads it once and asks for one after another: each
 * function runs its own text, or that of its mutant while the number of one is switched on. What a module does while
 * it loads has happened by then: mutants outside of functions are not among these.
 */
import { mutatedText, type Mutant } from "./Mutant.ts"
import { functionBodies, parseSource, type Node } from "./Syntax.ts"

/** What the running test and its sources share: which mutant is on, and which functions were reached. */
export interface Switch {
  /** -1 while none is. */
  on: number
  readonly reached: Set<string>
}

const prelude =
  "const nightjarSwitch = (globalThis.nightjarSwitch ??= { on: -1, reached: new Set() }); " +
  "const reached = (id) => { nightjarSwitch.reached.add(id); return nightjarSwitch.on }; "

export interface Numbered {
  readonly number: number
  readonly mutant: Mutant
}

/** Whether a mutant can be one of many in its source: it stands in a function, and the parser takes it. */
export const isSwitchable = (mutant: Mutant, text: string): boolean => {
  if (mutant.inFunction.endsWith("#0")) return false
  try {
    parseSource(mutatedText(mutant, text))
    return true
  } catch {
    return false
  }
}

export const switchedSource = (file: string, text: string, mutants: ReadonlyArray<Numbered>): string => {
  const bodies = functionBodies(parseSource(text))
  const outerOf = (body: Node | undefined, index: number): number =>
    bodies.findLastIndex(
      (outer, other) =>
        body !== undefined && other < index && outer.start <= body.start && body.end <= outer.end,
    )
  const within = Map.groupBy(bodies.keys(), (index) => outerOf(bodies[index], index))
  const own = Map.groupBy(mutants, ({ mutant }) => mutant.inFunction)

  /** The text between two places, with the functions that stand there switched. */
  const between = (from: number, to: number, outer: number): string => {
    let put = ""
    let at = from
    for (const index of within.get(outer) ?? []) {
      const body = bodies[index]
      if (body === undefined) continue
      put += text.slice(at, body.start) + switched(body, index)
      at = body.end
    }
    return put + text.slice(at, to)
  }

  const switched = ({ type, start, end }: Node, index: number): string => {
    const original = between(start, end, index)
    const name = `${file}#${index + 1}`
    const mutated = (own.get(name) ?? []).map(({ number, mutant }) => ({
      number,
      text: text.slice(start, mutant.start) + mutant.by + text.slice(mutant.end, end),
    }))
    const call = `reached(${JSON.stringify(name)})`
    if (type === "BlockStatement") {
      const cases = mutated.map((one) => `case ${one.number}: ${one.text} return; `).join("")
      return `{ switch (${call}) { ${cases}} ${original.slice(1)}`
    }
    const choices = mutated.map((one) => `nightjarSwitch.on === ${one.number} ? (${one.text}) : `).join("")
    return `(${call}, ${choices}(${original}))`
  }

  return `${prelude}reached(${JSON.stringify(`${file}#0`)}); ${between(0, text.length, -1)}`
}
