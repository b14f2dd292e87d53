/**
 * How a row of the table of ends is written: what the end means for the run, what it means in a sentence,
 * and what to do next. Most rows are one of a few kinds, and each kind has its name here.
 */

export const outcomes = ["succeeded", "partial", "failed", "skipped", "unfinished"] as const
export type Outcome = (typeof outcomes)[number]
export const actors = ["customer", "engineer", "service", "nobody"] as const
export type WhoActs = (typeof actors)[number]

/**
 * Who acts next, as people are told, in the order in which they are shown it: where this program itself
 * stopped, or is not over, no text says that somebody else has to act.
 */
export const actings = ["customer", "engineer", "service", "next run", "this run", "nobody"] as const
export type Acting = (typeof actings)[number]
export const actionNeeded: Readonly<Record<Acting, string>> = {
  customer: "action needed from the customer",
  engineer: "action needed from an engineer",
  service: "action needed from the service",
  "next run": "left for the next run",
  "this run": "not finished yet",
  nobody: "no action needed",
}

export interface End {
  readonly outcome: Outcome
  readonly who_acts: WhoActs
  /** Another execution in the same run may succeed. */
  readonly retry: boolean
  /** These credentials are not sent again until they change or are released. */
  readonly opensBreaker: boolean
}

/** `means` and `next` are for people: what happened, and what to do about it. */
export interface EndRow extends End {
  readonly means: string
  readonly next: string
  /** Absent if people are told what `who_acts` says. */
  readonly acting?: Extract<Acting, "next run" | "this run">
  /** The same reason for a task that is never started, if it means something else. */
  readonly unstarted?: Pick<End, "outcome" | "who_acts">
}

/** What a task with this outcome contributes to its run's exit code; the highest of all tasks counts. */
export const exitOf = (outcome: Outcome): 0 | 3 | 4 =>
  outcome === "succeeded" ? 0 : outcome === "unfinished" ? 4 : 3

const kind =
  (outcome: Outcome, who_acts: WhoActs, more: Partial<Pick<EndRow, "acting"> & End> = {}) =>
  (means: string, next: string): EndRow => ({
    outcome,
    who_acts,
    retry: false,
    opensBreaker: false,
    ...more,
    means,
    next,
  })

export const succeeded = kind("succeeded", "nobody")
export const partial = kind("partial", "engineer")
export const skipped = kind("skipped", "engineer")
export const customerActs = kind("failed", "customer")
export const engineerActs = kind("failed", "engineer")
export const serviceActs = kind("unfinished", "service")
/** The service must act, and may have done so before the run ends. */
export const temporary = kind("unfinished", "service", { retry: true })
/** Nothing was sent; once it is corrected, the same run sends it. */
export const correctable = kind("unfinished", "engineer")
/** This program stopped it, or did not come to it: nobody else has to act before the next run. */
const stopped = { acting: "next run" } as const
export const stoppedByTime = kind("unfinished", "service", stopped)
export const stoppedByHand = kind("unfinished", "engineer", stopped)
export const notOver = kind("unfinished", "nobody", { acting: "this run" })
/** It is not known whether anything ran. */
export const unknown = kind("unfinished", "engineer")
/** The source refused the login. */
export const rejected = kind("failed", "customer", { opensBreaker: true })
/** The source may have refused the login. */
export const unclear = kind("failed", "engineer", { opensBreaker: true })
