/**
 * SHA-256, which identifies bodies, files, facts and keys. It hashes data that is complete, or that arrives
 * in pieces.
 */
import { createHash } from "node:crypto"

/** For data that arrives in pieces. */
export const beginSha256 = () => createHash("sha256")

/** Its 32 bytes. */
export const sha256 = (content: Uint8Array | string) => beginSha256().update(content).digest()

/** For UUIDs made of names, whose standard wants it; nothing is proved with it. */
export const sha1 = (content: Uint8Array) => createHash("sha1").update(content).digest()

export const sha256Hex = (content: Uint8Array | string): string => sha256(content).toString("hex")
