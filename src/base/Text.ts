/**
 * Small texts and sums that every room needs: bytes, counts, times, durations, one line of many, words for
 * HTML and for a shell, and the nearest known name to one that was mistyped.
 */
import { Duration, Option, Schema, SchemaTransformation } from "effect"

const units = ["bytes", "kB", "MB", "GB", "TB"] as const

/** `1 byte`, `999 bytes`, `1.5 kB`, `12.0 GB`; a kB is 1,000 bytes. */
export const bytesText = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  if (power === 0) return bytes === 1 ? "1 byte" : `${bytes} bytes`
  return `${(bytes / 1000 ** power).toFixed(1)} ${units[power]}`
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
}

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character] ?? "")

/** One word of a POSIX shell, for command lines that a person copies or a timer starts. */
export const shellWord = (word: string): string =>
  /^[A-Za-z0-9_\-.,:/@=+]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** `1 task`, `2 tasks`, `2 entries`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`

export const sumOf = (values: Iterable<number>): number => {
  let sum = 0
  for (const value of values) sum += value
  return sum
}

/** What went wrong, as it says itself. */
export const wordsOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** `2026-11-21T22:30:00.000Z` */
export const isoTime = (at: number): string => new Date(at).toISOString()
/** `2026-11-21`, in UTC. */
export const isoDay = (at: number): string => isoTime(at).slice(0, "2026-11-21".length)
export const dayMs = 24 * 60 * 60_000

export const listed = (names: ReadonlyArray<string>, max: number): string =>
  andMore(names.slice(0, max), names.length)

export const andMore = (names: ReadonlyArray<string>, count: number): string =>
  `${names.join(", ")}${count > names.length ? ` and ${count - names.length} more` : ""}`

/** Host names that mean this machine. Only these may use plain http; a server on one has no other name. */
export const isLoopback = (hostname: string): boolean =>
  ["localhost", "[::1]", "::1"].includes(hostname) || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname)

// Effect's parser also accepts what no file should contain: `Infinity`, negative values, nanoseconds.

export const durationPattern = "[0-9]+(?:\\.[0-9]+)? +(?:milli|second|minute|hour|day)s?"
const written = new RegExp(`^(?:${durationPattern})$`)

/** The duration that such a text describes; none if it is not a duration. */
export const readDuration = (text: string): Option.Option<Duration.Duration> =>
  written.test(text.trim()) ? Duration.fromInput(text.trim() as Duration.Input) : Option.none()

export const isDurationWithin =
  (bounds: { readonly minimum: Duration.Input; readonly maximum: Duration.Input }) =>
  (text: string): boolean =>
    Option.exists(
      readDuration(text),
      Duration.between({
        minimum: Duration.fromInputUnsafe(bounds.minimum),
        maximum: Duration.fromInputUnsafe(bounds.maximum),
      }),
    )

export const toDuration = (text: Schema.String) =>
  text.pipe(
    Schema.decodeTo(Schema.String, SchemaTransformation.trim()),
    Schema.decodeTo(Schema.Duration, SchemaTransformation.durationFromString),
  )

// A line: first in, first out, with a way back to the front for what was called too early. Taking is constant
// in time, and a line never outgrows what waits in it.

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

export const nextOf = <A>({ front, rest, gone }: Line<A>): A | undefined => front.at(-1) ?? rest[gone]

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

export const sortLine = <A>(line: Line<A>, order: (one: A, other: A) => number): void => {
  const all = inLine(line).toSorted(order)
  line.front.length = 0
  line.rest.length = 0
  for (const one of all) line.rest.push(one)
  line.gone = 0
}

/** Damerau-Levenshtein: edits between two words, a swap of two neighbours counting once. */
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
export const suggestion = (name: string, known: ReadonlyArray<string>, fewMax = 20): string => {
  const nearest = nearestName(name, known)
  if (nearest !== undefined) return `; did you mean \`${nearest}\`?`
  return known.length > 0 && known.length <= fewMax ? `; known names: ${known.join(", ")}` : ""
}

/** The number that a text is, with white space around it or not, unless it would lose digits. */
export const numberIn = (text: string): number | undefined => {
  const written = text.trim()
  if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?$/i.test(written)) return undefined
  const number = Number(written)
  return Number.isSafeInteger(number) || (Number.isFinite(number) && !Number.isInteger(number))
    ? number
    : undefined
}

export const jsonIn = (text: string): unknown => {
  const written = text.trim()
  try {
    const value: unknown = /^[[{]/.test(written) ? JSON.parse(written) : undefined
    return value
  } catch {
    return undefined
  }
}

/** A safe name of a folder, whatever the text contains; several texts may have the same. */
export const folderName = (text: string): string => text.replaceAll(/[^A-Za-z0-9.-]/g, "_")
