/**
 * What a body may cost before anybody parses it: one pass over its bytes counts how deep it is nested, how
 * long its longest text is and what its value would weigh in memory. 22 MB of `{},` become half a gigabyte of
 * objects, so that a bound on bytes alone protects nobody. The bounds leave room for 60,000 customer
 * profiles in one body; whether the bytes are JSON at all is for the parser to say.
 */

export const bodyBounds = {
  /** Objects and lists within each other. */
  depthMax: 250_000,
  /** One JSON text, in bytes: a scanned document in base64 fits. */
  textBytesMax: 24 * 1024 * 1024,
  /** The value that parsing would make, as `weights` reckon it. */
  valueBytesMax: 192 * 1024 * 1024,
  /** A body as dense as real ones weighs some three times its bytes; only small ones may be denser. */
  valueBytesPerByteMax: 3,
  denseValueBytesMax: 64 * 1024 * 1024,
  /** Objects with `product` and `sub_family` in one body: each becomes rows. */
  recordsMax: 500_000,
  /** Documents that the records of one body name: each is a request of its own. */
  documentsMax: 10_000,
  /** Values where records stand and that are none: so many are told one by one. */
  straysMax: 10_000,
} as const

/** A bound that shows only once a body is read; its message quotes nothing of it. */
export class BoundBroken extends Error {
  override readonly name = "BoundBroken"
}

/** Bytes of memory on a 64-bit machine, measured and rounded up. */
const weights = {
  container: 64,
  /** One entry of an object or a list, a number or a word with it. */
  entry: 16,
  text: 24,
  /** A key that no object before it had. */
  newKey: 110,
  /** An object whose keys stand in an order that none before it had. */
  newShape: 300,
  /** A key that is a number: such objects are dictionaries. */
  numberKey: 160,
} as const

/** Bodies up to this size cannot break a bound, whatever they hold, and take half a megabyte at most. */
const harmlessBytes = 16 * 1024

export interface BodyMeasure {
  readonly depth: number
  readonly textBytes: number
  readonly valueBytes: number
  /** The first bound that it breaks, in words; counting ends there. */
  readonly broken: string | undefined
}

/** Which hashes were seen: a set that never grows and, once it is full, counts too little. */
class Seen {
  readonly #bits: Int32Array
  /** So many words for so many bytes of body: a power of two. */
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

  /** A text from its first byte to the one behind its last. */
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

/** Where the text that begins at `from` ends: at its closing quote, or where the bytes do. */
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

/** One pass over the bytes, with a stack of its own; ends early at the first bound that is broken. */
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

/** The same, without a look at bodies that are too small to break anything. */
export const measureLargeBody = (bytes: Uint8Array): BodyMeasure =>
  bytes.length <= harmlessBytes ? harmless : measureBody(bytes)
