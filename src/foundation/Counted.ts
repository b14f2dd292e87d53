/**
 * A number with its noun, singular or plural: whatever tells a person how many of something there are says it
 * with this.
 */

/** `1 task`, `2 tasks`, `2 entries`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`
