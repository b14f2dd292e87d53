/**
 * Many strings -> one UTF-8 buffer and its offsets. One native call per column instead of one per string:
 * the joined text is encoded at once and the offsets follow from the strings' lengths, which for ASCII are
 * already byte lengths.
 */

/** Bytes of a string in UTF-8; a lone surrogate counts as the three bytes of U+FFFD, which replaces it. */
const utf8Length = (text: string): number => {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else {
      bytes += 2
      if (unit >= 0xd800 && unit < 0xdc00) {
        const next = text.charCodeAt(i + 1)
        // A pair is four bytes for two units; the second unit is skipped.
        if (next >= 0xdc00 && next < 0xe000) i++
      }
    }
  }
  return bytes
}

/**
 * Offsets have one more entry than there are strings. A column stays under 2 GB: its writer flushes long
 * before.
 */
export const encodeTexts = (
  texts: ReadonlyArray<string>,
): { readonly bytes: Uint8Array; readonly offsets: Int32Array } => {
  const offsets = new Int32Array(texts.length + 1)
  let units = 0
  for (let i = 0; i < texts.length; i++) {
    units += texts[i]!.length
    offsets[i + 1] = units
  }
  const joined = texts.join("")
  let bytes: Uint8Array = Buffer.from(joined, "utf8")
  if (bytes.length === units) return { bytes, offsets }
  let position = 0
  for (let i = 0; i < texts.length; i++) {
    position += utf8Length(texts[i]!)
    offsets[i + 1] = position
  }
  // Two halves of a pair in neighbouring strings must not be joined into one character.
  if (bytes.length !== position)
    bytes = Buffer.from(texts.map((text) => text.toWellFormed()).join(""), "utf8")
  return { bytes, offsets }
}
