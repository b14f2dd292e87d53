/**
 * How a secret may be spelled when it is repeated: as it is, escaped for JSON or HTML, in a URL, in
 * hexadecimal, and in base64, from each of the three positions at which it may begin inside a longer text, as
 * a password does in `user:password`. The reader folds case, so one spelling also covers capitals.
 */

export interface Spelling {
  /** Folded. */
  readonly text: string
  /** Nobody writes it by chance, and a digit next to it is not part of the same number. */
  readonly isEncoded: boolean
  /** Base64 characters before and after it that contain bits of the secret's first and last byte. */
  readonly before: 0 | 1
  readonly behind: 0 | 1
}

/** In ASCII only, so that positions in the folded text are positions in the text. */
export const fold = (text: string): string => text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** Any text contains shorter ones: of four letters, three characters of base64 remain. */
const encodedMin = 6

const escapedJson = (value: string): ReadonlyArray<string> => {
  const escaped = JSON.stringify(value).slice(1, -1)
  const ascii = escaped.replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
  return [escaped, ascii, escaped.replaceAll("/", "\\/"), ascii.replaceAll("/", "\\/")]
}

/** Tools escape quotes in different ways. */
const escapedHtml = (value: string): ReadonlyArray<string> => {
  const escaped = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
  return ["&quot;", "&#34;"].flatMap((double) =>
    ["&#39;", "&#x27;", "&apos;"].map((single) => escaped.replaceAll('"', double).replaceAll("'", single)),
  )
}

const inAddresses = (value: string, bytes: Buffer): ReadonlyArray<string> => {
  const component = encodeURIComponent(value.toWellFormed())
  const strict = component.replaceAll(/[!'()*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
  const form = new URLSearchParams({ "": value }).toString().slice(1)
  const every = bytes.toString("hex").replaceAll(/../g, "%$&")
  return [component, component.replaceAll("%20", "+"), strict, strict.replaceAll("%20", "+"), form, every]
}

/** The characters that depend only on the secret if `skipped` other bytes come before it. */
const inBase64 = (bytes: Buffer, skipped: 0 | 1 | 2): Spelling => {
  const whole = Buffer.concat([Buffer.alloc(skipped), bytes])
  const from = Math.ceil((skipped * 4) / 3)
  const to = Math.floor((whole.length * 4) / 3)
  return {
    text: whole.toString("base64").slice(from, to),
    isEncoded: true,
    before: skipped === 0 ? 0 : 1,
    behind: whole.length % 3 === 0 ? 0 : 1,
  }
}

/** The text, and its UTF-8 bytes read one by one. */
const withBytes = (text: string): ReadonlyArray<string> => [text, Buffer.from(text).toString("latin1")]

const plain = (text: string): Spelling => ({ text, isEncoded: false, before: 0, behind: 0 })
const encoded = (text: string): Spelling => ({ text, isEncoded: true, before: 0, behind: 0 })

/** Each spelling once. */
export const spellingsOf = (value: string): ReadonlyArray<Spelling> => {
  const bytes = Buffer.from(value)
  const base64 = [
    ...([0, 1, 2] as const).map((skipped) => inBase64(bytes, skipped)),
    encoded(bytes.toString("base64").replace(/=+$/, "")),
  ]
  const url = base64.map((one) => ({ ...one, text: one.text.replaceAll("+", "-").replaceAll("/", "_") }))
  const texts = [...new Set([value, ...escapedJson(value), ...escapedHtml(value)])].flatMap(withBytes)
  const all = [
    ...[...texts, ...inAddresses(value, bytes)].map(plain),
    ...[...base64, ...url, encoded(bytes.toString("hex"))].filter(({ text }) => text.length >= encodedMin),
  ]
  const folded = all.map((one) => ({ ...one, text: fold(one.text) }))
  return [...new Map(folded.map((one) => [one.text, one])).values()]
}
