/**
 * What keeps large bodies small: compressed content with a checksum, as files here hold it and `zstdcat`
 * prints it (landed segments and archived facts), and the garbage collection to ask for after a large one.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib"

/** Longer than anything that is compressed here: a damaged file asks for no more memory. */
export const contentBytesMax = 2 ** 30

export const pack = (content: Uint8Array): Uint8Array =>
  zstdCompressSync(content, { params: { [constants.ZSTD_c_checksumFlag]: true } })

/** Throws if it is damaged. */
export const unpack = (packed: Uint8Array): Buffer =>
  zstdDecompressSync(packed, { maxOutputLength: contentBytesMax })

// Asks V8 to collect garbage now and to give the memory back, in about 50 ms. Left alone it waits too long
// after huge texts: a run under attack exceeded its gigabyte (`npm run attack`). A usual collection keeps
// 150 MB of its heap, beside which DuckDB would fill its own limit.

const findCollector = (): (() => void) => {
  setFlagsFromString("--expose-gc")
  const found: unknown = runInNewContext("globalThis.gc")
  if (typeof found !== "function") return () => undefined
  return () => void found({ type: "major", flavor: "last-resort", execution: "sync" })
}

let collect: (() => void) | undefined

export const collectGarbage = (): void => {
  collect ??= findCollector()
  collect()
}
