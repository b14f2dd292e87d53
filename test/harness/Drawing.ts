/** Numbers and choices drawn from a seed: the same seed draws the same. */
export const drawing = (seed: number) => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    /** Both ends included. */
    int: (min: number, max: number): number => min + Math.floor(next() * (max - min + 1)),
    chance: (share: number): boolean => next() < share,
    pick: <A>(all: ReadonlyArray<A>): A => all[Math.floor(next() * all.length)]!,
    some: <A>(all: ReadonlyArray<A>, share: number): ReadonlyArray<A> => all.filter(() => next() < share),
  }
}
