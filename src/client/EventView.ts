/**
 * A tolerant reading of what a webhook delivery carries (section 6): every text in it, and its date. Of the
 * payloads only that of `auth_ended` is shown, so that nothing rests on a field's name but `date`: an event
 * concerns what it names, wherever it names it. Bounded in size, depth and count; nothing here throws.
 */

/** What is kept of an event, until it is known whom it concerns. */
export interface EventView {
  readonly texts: ReadonlySet<string>
  /** Section 6.1: UTC, milliseconds since the epoch; absent where the event has none that is a date. */
  readonly dateMs: number | undefined
}

export const eventBytesMax = 1024 * 1024
/** More objects and lists than an event has in so few bytes: it is not even parsed. */
const containersMax = 50_000
/** What is looked at, the outermost first: events that carry data name their session outside of it. */
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

/** Adds the texts of a value level by level, until that is enough. */
const gather = (root: unknown, texts: Set<string>): void => {
  let values = 0
  let level: ReadonlyArray<unknown> = [root]
  for (let depth = 0; depth <= depthMax && level.length > 0; depth++) {
    const inner: Array<unknown> = []
    for (const value of level) {
      if (++values > valuesMax) return
      if (typeof value === "string" && value.length <= textLengthMax) texts.add(value)
      // No more than could be looked at: the rest is not even listed.
      if (isContainer(value) && inner.length < valuesMax)
        inner.push(...Object.values(value).slice(0, valuesMax))
    }
    level = inner
  }
}

const dateText = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d)?$/

/** Section 6.1: dates are UTC, also where they do not say so. */
const utcMillis = (date: unknown): number | undefined => {
  const parts = typeof date === "string" ? dateText.exec(date) : null
  if (parts === null) return undefined
  const ms = Date.parse(`${parts[1]}T${parts[2]}${parts[3] ?? "Z"}`)
  return Number.isNaN(ms) ? undefined : ms
}

/** Section 6; undefined for what is no event: no JSON, or nothing but brackets. */
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
 * The same of an event that is larger than what is kept of it: the texts in its beginning, and no date, as
 * nothing tells whose that would be. Events that carry data name their session before it or in their address.
 */
export const skimEvent = (query: URLSearchParams, beginning: Uint8Array): EventView => {
  const texts = new Set(query.values())
  for (const [, text = ""] of new TextDecoder().decode(beginning).matchAll(quoted)) {
    if (texts.size >= valuesMax) break
    texts.add(text)
  }
  return { texts, dateMs: undefined }
}
