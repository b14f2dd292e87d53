/**
 * The known word nearest to a misspelt one, so that an error can say what was probably meant. A word of which
 * more than two fifths are wrong is no suggestion at all.
 */

/** Letters to insert, delete or replace between two words. */
const distance = (left: string, right: string): number => {
  let last = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = (last[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1)
      current.push(Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, replaced))
    }
    last = current
  }
  return last[right.length] ?? 0
}

/** Nobody misspells a word of more letters. */
const lettersMax = 64

export const nearestWord = (word: string, known: ReadonlyArray<string>): string | undefined => {
  if (word.length > lettersMax) return undefined
  const near = known
    .map((candidate) => ({ candidate, edits: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= Math.max(word.length, candidate.length) * 0.4)
    .toSorted((a, b) => a.edits - b.edits)
  return near[0]?.candidate
}
