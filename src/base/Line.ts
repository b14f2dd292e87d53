/**
 * A line: first in, first out, with a way back to the front for what was called too early. Taking is constant
 * in time, and a line never outgrows what waits in it.
 */

export interface Line<A> {
  /** What came back, the next one last. */
  readonly front: Array<A>
  readonly rest: Array<A>
  /** How many at the beginning of `rest` are already gone. */
  gone: number
}

export const newLine = <A>(): Line<A> => ({ front: [], rest: [], gone: 0 })

/** Fewer than this are not worth moving the others. */
const forgottenMin = 1_000

export const inLine = <A>({ front, rest, gone }: Line<A>): ReadonlyArray<A> => [...front, ...rest.slice(gone)]

export const lengthOf = <A>({ front, rest, gone }: Line<A>): number => front.length + rest.length - gone

export const hasNext = <A>(line: Line<A>): boolean => line.front.length > 0 || line.gone < line.rest.length

export const shift = <A>(line: Line<A>): A | undefined => {
  const back = line.front.pop()
  if (back !== undefined) return back
  const next = line.rest[line.gone]
  if (next === undefined) return undefined
  line.gone += 1
  // What is gone is removed once it is the greater part.
  if (line.gone * 2 > line.rest.length + forgottenMin) {
    line.rest.splice(0, line.gone)
    line.gone = 0
  }
  return next
}

/** From now on in this order. */
export const sortLine = <A>(line: Line<A>, order: (one: A, other: A) => number): void => {
  const all = inLine(line).toSorted(order)
  line.front.length = 0
  line.rest.length = 0
  for (const one of all) line.rest.push(one)
  line.gone = 0
}
