/**
 * Official documents appear in results as identifiers under keys that are not documented. A string, or a
 * list of strings, under a key whose name contains `attachment` counts as one (architecture, decision 10).
 * Only identifiers from a harmless alphabet are ever requested; everything else is listed separately, never
 * dropped.
 */
import { BoundBroken, bodyBounds } from "../service/BodyBounds.ts"
import { cutText, idCharactersMax } from "../service/TextBounds.ts"
import { ExactNumber } from "./ExactNumber.ts"

export interface AttachmentIds {
  /** In the order of the body, each once. */
  readonly requestable: ReadonlyArray<string>
  /** Counted as identifiers, but never put into a URL. */
  readonly refused: ReadonlyArray<string>
}

const harmless = /^[A-Za-z0-9_-]{1,128}$/

export const attachmentIds = (data: unknown): AttachmentIds => {
  const requestable = new Set<string>()
  const refused = new Set<string>()
  const take = (id: string): void => {
    if (harmless.test(id)) requestable.add(id)
    else refused.add(cutText(id, idCharactersMax))
    if (requestable.size + refused.size > bodyBounds.documentsMax)
      throw new BoundBroken(`it names more than ${bodyBounds.documentsMax} documents`)
  }
  // Children are pushed in reverse so that they are visited in the order of the body.
  const pending: Array<unknown> = [data]
  while (pending.length > 0) {
    const value = pending.pop()
    if (typeof value !== "object" || value === null || value instanceof ExactNumber) continue
    if (Array.isArray(value)) {
      for (let i = value.length - 1; i >= 0; i--) pending.push(value[i])
      continue
    }
    const entries = Object.entries(value)
    for (const [key, child] of entries) {
      if (!key.toLowerCase().includes("attachment")) continue
      for (const id of Array.isArray(child) ? child : [child]) if (typeof id === "string") take(id)
    }
    for (let i = entries.length - 1; i >= 0; i--) pending.push(entries[i]![1])
  }
  return { requestable: [...requestable], refused: [...refused] }
}
