/**
 * Compressed content with a checksum, as files here hold it and `zstdcat` prints it: landed segments and
 * archived facts.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib"

/** Longer than anything that is compressed here: a damaged file asks for no more memory. */
export const contentBytesMax = 2 ** 30

export const pack = (content: Uint8Array): Uint8Array =>
  zstdCompressSync(content, { params: { [constants.ZSTD_c_checksumFlag]: true } })

/** Throws if it is damaged. */
export const unpack = (packed: Uint8Array): Buffer =>
  zstdDecompressSync(packed, { maxOutputLength: contentBytesMax })
