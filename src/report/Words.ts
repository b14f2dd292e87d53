/**
 * The words of a fact that may leave the machine. Each is from a closed list, a number, or a name that the
 * job gives to itself or an engine: a reason that no table lists is a word of the service, and that may be
 * anything.
 */
import { statusReasonsByCode } from "../service/Vocabulary.ts"
import { isReason } from "../service/Ends.ts"

const unlisted = "UNLISTED"

const statusReasons: ReadonlySet<string> = new Set(Object.values(statusReasonsByCode).flat())

export const listedReason = (reason: string): string =>
  isReason(reason) || statusReasons.has(reason) ? reason : unlisted
