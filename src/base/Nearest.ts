/**
 * The known name nearest to a misspelt one, so that an error can say what was probably meant. Distance is
 * Damerau-Levenshtein (insert, delete, replace, swap neighbours); a name too far away is not suggested.
 */

/** Edits between two words, a swap of two neighbours counting once. */
export const editDistance = (left: string, right: string): number => {
  let beforeLast: Array<number> = []
  let last = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (let row = 1; row <= left.length; row++) {
    const current = [row]
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1]
      let best = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      )
      const swapped =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1]
      if (swapped) best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1)
      current.push(best)
    }
    beforeLast = last
    last = current
  }
  return last[right.length] ?? 0
}

/** A name that is half wrong is not a misspelling, and nobody misspells a name of a thousand letters. */
const lettersMax = 64

/** The nearest of `known`, the first of equals; undefined if none is near enough. */
export const nearestName = (name: string, known: ReadonlyArray<string>): string | undefined => {
  if (name.length > lettersMax) return undefined
  const lower = name.toLowerCase()
  let nearest: { readonly name: string; readonly distance: number } | undefined
  for (const candidate of known) {
    const allowed = Math.max(1, Math.floor(Math.max(name.length, candidate.length) * 0.4))
    // At least this many letters are missing or extra; names from outside may be of any length.
    if (Math.abs(name.length - candidate.length) > allowed) continue
    const distance = editDistance(lower, candidate.toLowerCase())
    if (distance <= allowed && (nearest === undefined || distance < nearest.distance)) {
      nearest = { name: candidate, distance }
    }
  }
  return nearest?.name
}

/** `; did you mean \`x\`?`, or the known names if they are few, or nothing. */
export const suggestion = (name: string, known: ReadonlyArray<string>): string => {
  const nearest = nearestName(name, known)
  if (nearest !== undefined) return `; did you mean \`${nearest}\`?`
  return known.length > 0 && known.length <= 20 ? `; known names: ${known.join(", ")}` : ""
}
