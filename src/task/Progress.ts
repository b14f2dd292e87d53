/**
 * The progress that a run reports while it runs, for any display. No decision depends on it, and without a
 * display it goes nowhere.
 */
import { Context, Effect } from "effect"
import type { RunId, TaskId } from "../service/Ids.ts"
import type { RunNews } from "../ledger/Fact.ts"

export const stages = ["executing", "publishing", "deleting", "ended"] as const
type RunStage = (typeof stages)[number]

export type ProgressEvent =
  | {
      readonly _tag: "Planned"
      readonly run_id: RunId
      /** How many secrets of logins are written out in files; absent if none. */
      readonly writtenOut?: number
    }
  /** Before anything starts: the service is tried again until this moment. */
  | { readonly _tag: "ServiceAway"; readonly message: string; readonly until: number }
  | { readonly _tag: "Waiting"; readonly task_id: TaskId; readonly why: string; readonly until: number }
  /** What the operator asked for, what became known about the service, and what was published meanwhile. */
  | { readonly _tag: "Noted"; readonly fact: RunNews }
  | { readonly _tag: "Stage"; readonly run_id: RunId; readonly stage: RunStage }
  /** While the tables are built anew from every run: how many are in them. */
  | { readonly _tag: "Building"; readonly done: number; readonly runs: number }

export const Progress = Context.Reference<{ readonly tell: (event: ProgressEvent) => Effect.Effect<void> }>(
  "nightjar/execution/Progress",
  { defaultValue: () => ({ tell: () => Effect.void }) },
)

export const tell = (event: ProgressEvent) => Effect.flatMap(Progress, (progress) => progress.tell(event))
