/**
 * SHA-256, which identifies bodies, files, facts and keys: of data that is complete, or of data that arrives
 * in pieces.
 */
import { createHash, hash } from "node:crypto"

export const beginSha256 = () => createHash("sha256")

/** Its 32 bytes. */
export const sha256 = (content: Uint8Array | string): Buffer => hash("sha256", content, "buffer")

export const sha256Hex = (content: Uint8Array | string): string => sha256(content).toString("hex")
