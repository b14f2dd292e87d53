/**
 * What a body may cost, measured before it is parsed: one pass over its bytes measures its nesting depth,
 * its longest string and the memory that its value would take. 22 MB of `{},` become half a gigabyte of
 * objects, so a limit on bytes alone protects nothing. The limits leave room for 60,000 customer profiles
 * in one body; whether the bytes are JSON at all is left to the parser.
 */

export const bodyBounds = {
  /** Objects and lists inside each other. */
  depthMax: 250_000,
  /** One JSON string, in bytes: a scanned document in base64 fits. */
  textBytesMax: 24 * 1024 * 1024,
  /** The value that parsing would create, estimated with `weights`. */
  valueBytesMax: 192 * 1024 * 1024,
  /** A body as dense as real ones takes about three times its bytes; only small ones may be denser. */
  valueBytesPerByteMax: 3,
  denseValueBytesMax: 64 * 1024 * 1024,
  /** Objects with `product` and `sub_family` in one body: each becomes one or more rows. */
  recordsMax: 500_000,
  /** Documents that the records of one body name: each needs its own request. */
  documentsMax: 10_000,
  /** Values in place of records that are not records: this many are reported one by one. */
  straysMax: 10_000,
} as const

/** A limit that shows only once a body is read; its message quotes nothing of it. */
export class BoundBroken extends Error {
  override readonly name = "BoundBroken"
}

/** Bytes of memory on a 64-bit machine, measured and rounded up. */
const weights = {
  container: 64,
  /** One entry of an object or a list, with a number or a word in it. */
  entry: 16,
  text: 24,
  /** A key that no earlier object had. */
  newKey: 110,
  /** An object whose keys are in an order that no earlier object had. */
  newShape: 300,
  /** A numeric key: such objects are dictionaries. */
  numberKey: 160,
} as const

/** Bodies up to this size cannot exceed a limit, whatever they contain, and take at most half a megabyte. */
export const harmlessBytes = 16 * 1024

interface BodyMeasure {
  readonly depth: number
  readonly textBytes: number
  readonly valueBytes: number
  /** The first limit that it exceeds, in words; counting stops there. */
  readonly broken: string | undefined
}

/** Which hashes were seen: a set that never grows and, once full, counts too few. */
class Seen {
  readonly #bits: Int32Array
  /** This many words for this many bytes of body: a power of two. */
  constructor(bodyBytes: number) {
    this.#bits = new Int32Array(1 << Math.max(5, Math.min(17, Math.ceil(Math.log2(bodyBytes + 1)) - 5)))
  }
  isNew(hash: number): boolean {
    const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
    const at = (mixed >>> 5) & (this.#bits.length - 1)
    const bit = 1 << (mixed & 31)
    if ((this.#bits[at]! & bit) !== 0) return false
    this.#bits[at]! |= bit
    return true
  }
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const isOpening = (byte: number): boolean => byte === 0x7b || byte === 0x5b
const isClosing = (byte: number): boolean => byte === 0x7d || byte === 0x5d
const list = -1
/** No shape's hash is `list`. */
const positive = (hash: number): number => hash & 0x7fff_ffff

class Meter {
  depth = 0
  deepest = 0
  textBytes = 0
  valueBytes = 0
  /** Per open object the hash of its keys so far, per open list -1. */
  #levels = new Int32Array(1_024)
  #awaitsKey = false
  readonly #keys: Seen
  readonly #shapes: Seen

  readonly #valueBytesMax: number

  constructor(bodyBytes: number) {
    const { valueBytesMax, valueBytesPerByteMax, denseValueBytesMax } = bodyBounds
    this.#valueBytesMax = Math.min(valueBytesMax, denseValueBytesMax + valueBytesPerByteMax * bodyBytes)
    this.#keys = new Seen(bodyBytes)
    this.#shapes = new Seen(bodyBytes)
  }

  open(byte: number): void {
    if (this.depth === this.#levels.length) {
      const wider = new Int32Array(2 * this.depth)
      wider.set(this.#levels)
      this.#levels = wider
    }
    this.#awaitsKey = byte === 0x7b
    this.#levels[this.depth++] = this.#awaitsKey ? 0 : list
    if (this.depth > this.deepest) this.deepest = this.depth
    this.valueBytes += weights.container + weights.entry
  }

  close(): void {
    this.#awaitsKey = false
    if (this.depth === 0) return
    const shape = this.#levels[--this.depth]!
    if (shape > 0 && this.#shapes.isNew(shape)) this.valueBytes += weights.newShape
  }

  next(): void {
    this.valueBytes += weights.entry
    this.#awaitsKey = this.depth > 0 && this.#levels[this.depth - 1] !== list
  }

  /** A string from its first byte to the byte after its last. */
  text(bytes: Uint8Array, from: number, to: number): void {
    const length = to - from
    if (length > this.textBytes) this.textBytes = length
    if (this.#awaitsKey) this.#key(bytes, from, to)
    else this.valueBytes += weights.text + length
  }

  #key(bytes: Uint8Array, from: number, to: number): void {
    this.#awaitsKey = false
    let hash = 0
    let isNumber = to > from
    for (let at = from; at < to; at++) {
      const byte = bytes[at]!
      hash = (Math.imul(hash, 31) + byte) | 0
      if (byte < 0x30 || byte > 0x39) isNumber = false
    }
    const level = this.depth - 1
    this.#levels[level] = positive(Math.imul(this.#levels[level]!, 1_000_003) + hash + 1)
    if (isNumber) this.valueBytes += weights.numberKey
    else if (this.#keys.isNew(hash)) this.valueBytes += weights.newKey + to - from
  }

  get broken(): string | undefined {
    const { depthMax, textBytesMax } = bodyBounds
    const valueBytesMax = this.#valueBytesMax
    if (this.deepest > depthMax) return `it is nested deeper than ${depthMax} levels`
    if (this.textBytes > textBytesMax) return `one of its texts is longer than ${textBytesMax} bytes`
    return this.valueBytes > valueBytesMax
      ? `its values would take more than ${valueBytesMax} bytes of memory`
      : undefined
  }
}

/** Where the string that begins at `from` ends: at its closing quote, or at the end of the bytes. */
const textEnd = (bytes: Uint8Array, from: number): number => {
  let at = from
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === backslash) at++
    else if (byte === quote) return at
  }
  return bytes.length
}

const boundsCheckedEvery = 65_536

/** One pass over the bytes, with its own stack; stops at the first limit exceeded. */
export const measureBody = (bytes: Uint8Array): BodyMeasure => {
  const meter = new Meter(bytes.length)
  let checkAt = boundsCheckedEvery
  for (let at = 0; at < bytes.length && meter.deepest <= bodyBounds.depthMax; at++) {
    const byte = bytes[at]!
    if (byte === quote) {
      const end = textEnd(bytes, at + 1)
      meter.text(bytes, at + 1, end)
      at = end
    } else if (isOpening(byte)) meter.open(byte)
    else if (isClosing(byte)) meter.close()
    else if (byte === comma) meter.next()
    if (at < checkAt) continue
    if (meter.broken !== undefined) break
    checkAt = at + boundsCheckedEvery
  }
  const { deepest, textBytes, valueBytes, broken } = meter
  return { depth: deepest, textBytes, valueBytes, broken }
}

const harmless: BodyMeasure = { depth: 0, textBytes: 0, valueBytes: 0, broken: undefined }

/** The same, but skips bodies that are too small to exceed anything. */
export const measureLargeBody = (bytes: Uint8Array): BodyMeasure =>
  bytes.length <= harmlessBytes ? harmless : measureBody(bytes)

// How long the values of an answer may be outside its landed body. A cut id would be another id, so such an
// id cannot be used; messages are cut with a mark that gives their length.

/** Ids, of executions and sessions as of customers and engines, in UTF-16 units. */
export const idCharactersMax = 512
/** A ticket or the key of a token. */
export const secretCharactersMax = 16_384
/** Codes, reasons and messages of the service in ledger, tables and summary. */
const textCharactersMax = 2_000

/** Stands after what is left of a text; in SQL, `characters` may be an expression between quotes. */
export const cutMark = (characters: number | string): string => `… [cut: ${characters} characters]`

/** The text itself, or its beginning and a mark, together as long as the limit. */
export const cutText = (text: string, charactersMax = textCharactersMax): string => {
  if (text.length <= charactersMax) return text
  const mark = cutMark(text.length)
  return `${text.slice(0, Math.max(0, charactersMax - mark.length))}${mark}`.toWellFormed()
}

// Removes repeated characters at the end of a text without a pattern: a pattern such as `/x+$/` starts
// again at each place of a run that does not reach the end, and needs an hour for a megabyte of them.

/** The text without any of these characters at its end. */
export const withoutEnd = (text: string, characters: string): string => {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}
