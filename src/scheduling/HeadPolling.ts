/**
 * Whether a look may be a HEAD (section 4.12) instead of a read: pure. What HEAD answers is not shown, so it
 * proves itself against a read first, stands for a few looks only, and one contradiction ends it. It never
 * says that an execution is over: whatever is not "still working" is read.
 */

/** How far HEAD is believed in one run. `trying`: the first one is on its way, or its check is. */
export type HeadTrial = "untried" | "trying" | "proven" | "off"

/** What came of looking at one execution so far. */
export interface LookedBefore {
  /** The last read said that the run goes on, and named no date in the future to come back at. */
  readonly ongoing: boolean
  /** It has waited for so long that most looks tell nothing: else a HEAD is one request more at the end. */
  readonly settled: boolean
  readonly headsInARow: number
}

/** A read at least at every fourth look: states pass unseen under HEAD. */
export const headsInARowMax = 3

export const mayHead = (trial: HeadTrial, before: LookedBefore): boolean =>
  (trial === "untried" || trial === "proven") &&
  before.ongoing &&
  before.settled &&
  before.headsInARow < headsInARowMax

export const beforeHead = (trial: HeadTrial): HeadTrial => (trial === "untried" ? "trying" : trial)

/** What a HEAD leaves to do: nothing, or a read at once, which then tells whether HEAD was right. */
export const afterHead = (
  trial: HeadTrial,
  answer: "working" | "changed" | "unanswered",
): { readonly trial: HeadTrial; readonly next: "rest" | "read" } => {
  if (answer === "unanswered") return { trial: "off", next: "read" }
  return answer === "working" && trial === "proven" ? { trial, next: "rest" } : { trial, next: "read" }
}

/** A HEAD that failed, or whose read did, says nothing: the next one is tried as if it were the first. */
export const afterNothing = (trial: HeadTrial): HeadTrial => (trial === "trying" ? "untried" : trial)

/** A read right after a HEAD, where the service answered it: both must say the same. */
export const afterRead = (
  trial: HeadTrial,
  head: "working" | "changed",
  read: "working" | "changed",
): HeadTrial => {
  if (trial === "off" || head !== read) return "off"
  return head === "working" ? "proven" : afterNothing(trial)
}
