/**
 * A number with its noun, singular or plural. Every text for people that counts something uses this
 * function.
 */

/** `1 task`, `2 tasks`, `2 entries`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`
