/**
 * A number with its noun, singular or plural. Every text for people that counts something uses this
 * function.
 */

/** `1 task`, `2 tasks`, `2 entries`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`

/** The first few names, and how many more there are. */
export const listed = (names: ReadonlyArray<string>, max: number): string => {
  const more = names.length > max ? ` and ${names.length - max} more` : ""
  return `${names.slice(0, max).join(", ")}${more}`
}
