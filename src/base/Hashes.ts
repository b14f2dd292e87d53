/**
 * SHA-256, which identifies bodies, files, facts and keys, of data that is complete or arrives in pieces;
 * and ids of the form of a UUID that are the same whenever they are made of the same parts.
 */
import { createHash, hash } from "node:crypto"

export const beginSha256 = () => createHash("sha256")

/** Its 32 bytes. */
export const sha256 = (content: Uint8Array | string): Buffer => hash("sha256", content, "buffer")

/** For UUIDs made of names, whose standard wants it; nothing is proved with it. */
const sha1 = (content: Uint8Array) => createHash("sha1").update(content).digest()

export const sha256Hex = (content: Uint8Array | string): string => sha256(content).toString("hex")

/** RFC 9562, version 5: the same name in the same namespace is always the same UUID. */
export const stableUuid = (namespace: string, name: string): string => {
  const space = Buffer.from(namespace.replaceAll("-", ""), "hex")
  const bytes = sha1(Buffer.concat([space, Buffer.from(name, "utf8")])).subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString("hex")
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-")
}
