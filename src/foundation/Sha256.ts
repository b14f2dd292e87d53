/**
 * SHA-256, by which bodies, files, facts and keys are known again: of what is at hand whole, or of what is
 * still arriving.
 */
import { createHash } from "node:crypto"

/** For what comes piece by piece. */
export const beginSha256 = () => createHash("sha256")

/** Its 32 bytes. */
export const sha256 = (content: Uint8Array | string) => beginSha256().update(content).digest()

export const sha256Hex = (content: Uint8Array | string): string => sha256(content).toString("hex")
