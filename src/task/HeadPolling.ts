/**
 * Whether a poll may be a HEAD (section 4.12) instead of a read: pure. What HEAD answers is not shown, so
 * it must first agree with a read, replaces only a few reads, and one contradiction ends its use. It never
 * ends an execution: anything other than "still working" is read.
 */

/** How far HEAD is trusted in one run. `trying`: the first one is under way, or its check is. */
export type HeadTrial = "untried" | "trying" | "proven" | "off"

/** The results of polling one execution so far. */
export interface LookedBefore {
  /** The last read said that the execution is still running, and named no future date to poll again. */
  readonly ongoing: boolean
  /** It has waited so long that most polls show nothing: otherwise a HEAD is one more request at the end. */
  readonly settled: boolean
  readonly headsInARow: number
}

/** A read at least every fourth poll: HEAD does not show changes of state. */
export const headsInARowMax = 3

export const mayHead = (trial: HeadTrial, before: LookedBefore): boolean =>
  (trial === "untried" || trial === "proven") &&
  before.ongoing &&
  before.settled &&
  before.headsInARow < headsInARowMax

export const beforeHead = (trial: HeadTrial): HeadTrial => (trial === "untried" ? "trying" : trial)

/** What follows a HEAD: nothing, or an immediate read, which then shows whether HEAD was right. */
export const afterHead = (
  trial: HeadTrial,
  answer: "working" | "changed" | "unanswered",
): { readonly trial: HeadTrial; readonly next: "rest" | "read" } => {
  if (answer === "unanswered") return { trial: "off", next: "read" }
  return answer === "working" && trial === "proven" ? { trial, next: "rest" } : { trial, next: "read" }
}

/** If a HEAD failed, or its read did, it says nothing: the next one is tried as if it were the first. */
export const afterNothing = (trial: HeadTrial): HeadTrial => (trial === "trying" ? "untried" : trial)

/** A read right after a HEAD that the service answered: both must agree. */
export const afterRead = (
  trial: HeadTrial,
  head: "working" | "changed",
  read: "working" | "changed",
): HeadTrial => {
  if (trial === "off" || head !== read) return "off"
  return head === "working" ? "proven" : afterNothing(trial)
}
