/**
 * An order that a seed alone decides: the first so many of it are a sample, and the next so many go on where that
 * one ended. The same seed gives the same order on every machine.
 */

/** A number in [0, 2³²) for an id under a seed: FNV-1a, mixed once more so that neighbours do not stay together. */
const place = (seed: string, id: string): number => {
  let hash = 2166136261
  for (const letter of `${seed}/${id}`) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 16777619)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

export const drawn = <A>(all: ReadonlyArray<A>, idOf: (one: A) => string, seed: string): ReadonlyArray<A> =>
  all
    .map((one) => ({ one, at: place(seed, idOf(one)) }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one)
