/**
 * Removes repeated characters at the end of a text without a pattern: a pattern such as `/x+$/` starts
 * again at each place of a run that does not reach the end, and needs an hour for a megabyte of them.
 */

/** The text without any of these characters at its end. */
export const withoutEnd = (text: string, characters: string): string => {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}
