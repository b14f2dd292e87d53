/**
 * A number with its noun, singular or plural: every text for people that counts something uses this.
 */

/** `1 task`, `2 tasks`, `2 entries`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`
