/**
 * A tolerant reading of a webhook delivery (section 6): every string in it, and its date. The reference shows
 * only the payload of `auth_ended`, so nothing depends on a field's name except `date`: an event concerns
 * every id that it names, wherever it names it. Bounded in size, depth and count; nothing here throws.
 */

/** How much of an event is kept until it is known whom it concerns. */
export interface EventView {
  readonly texts: ReadonlySet<string>
  /** Section 6.1: UTC, milliseconds since the epoch; absent if the event has no valid date. */
  readonly dateMs: number | undefined
}

export const eventBytesMax = 1024 * 1024
/** More objects and lists than an event of this size has: it is not even parsed. */
const containersMax = 50_000
/** The strings examined, outermost first: events that carry data name their session outside of it. */
const depthMax = 32
const valuesMax = 10_000
/** Nothing longer is an id. */
const textLengthMax = 512

const utf8 = new TextDecoder("utf-8", { fatal: true })

const openingBrace = 0x7b
const openingBracket = 0x5b

const hasTooMany = (body: Uint8Array): boolean => {
  let containers = 0
  for (let index = 0; index < body.length && containers <= containersMax; index++)
    if (body[index] === openingBrace || body[index] === openingBracket) containers++
  return containers > containersMax
}

const parse = (body: Uint8Array): { readonly json: unknown } | undefined => {
  if (body.byteLength === 0) return { json: undefined }
  if (hasTooMany(body)) return undefined
  try {
    return { json: JSON.parse(utf8.decode(body)) }
  } catch {
    return undefined
  }
}

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null

/** Adds the strings of a value level by level, until there are enough. */
const gather = (root: unknown, texts: Set<string>): void => {
  let values = 0
  let level: ReadonlyArray<unknown> = [root]
  for (let depth = 0; depth <= depthMax && level.length > 0; depth++) {
    const inner: Array<unknown> = []
    for (const value of level) {
      if (++values > valuesMax) return
      if (typeof value === "string" && value.length <= textLengthMax) texts.add(value)
      // No more than could be examined: the rest is not even listed.
      if (isContainer(value) && inner.length < valuesMax)
        inner.push(...Object.values(value).slice(0, valuesMax))
    }
    level = inner
  }
}

const dateText = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?$/

/** Section 6.1: dates are UTC, even if they do not say so. */
const utcMillis = (date: unknown): number | undefined => {
  const parts = typeof date === "string" ? dateText.exec(date) : null
  if (parts === null) return undefined
  const ms = Date.parse(`${parts[1]}T${parts[2]}${parts[3] ?? "Z"}`)
  return Number.isNaN(ms) ? undefined : ms
}

/** Section 6; undefined for what is not an event: not JSON, or only brackets. */
export const readEvent = (query: URLSearchParams, body: Uint8Array): EventView | undefined => {
  const parsed = parse(body)
  if (parsed === undefined) return undefined
  const texts = new Set<string>()
  const { json } = parsed
  gather([...query.values()], texts)
  gather(json, texts)
  return { texts, dateMs: isContainer(json) && "date" in json ? utcMillis(json.date) : undefined }
}

const quoted = /"([^"\\]{1,512})"/g

/**
 * The same for an event larger than the part that is kept: the strings at its beginning, and no date, since
 * it is not clear whose date it would be. Events that carry data name their session before it or in their
 * URL.
 */
export const skimEvent = (query: URLSearchParams, beginning: Uint8Array): EventView => {
  const texts = new Set(query.values())
  for (const [, text = ""] of new TextDecoder().decode(beginning).matchAll(quoted)) {
    if (texts.size >= valuesMax) break
    texts.add(text)
  }
  return { texts, dateMs: undefined }
}
