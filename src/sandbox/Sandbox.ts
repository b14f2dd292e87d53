/**
 * The embedded service: the remote service itself in small, seeded and event-sourced, on whatever Clock it
 * is given. Every call decides purely on the state at its moment and records what it brought about; no
 * timer runs, so that virtual time, a scaled clock and the machine's own drive it alike. `truth` tells
 * observers what really happened.
 */
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import * as Executions from "./AnswerExecutions.ts"
import { downloadAttachment, readFlowResults } from "./AnswerFlows.ts"
import { openJournal } from "./Journal.ts"
import type { JournalFailed } from "./Journal.ts"
import type { SandboxCore } from "./SandboxCore.ts"
import { applyEvent, emptyState } from "./SandboxState.ts"
import { truthOf } from "./Truth.ts"
import type { Truth } from "./Truth.ts"

export interface SandboxOptions {
  readonly seed: number
  /** A file that keeps the events; without it the service forgets everything when it stops. */
  readonly journal?: string
}

const openCore = Effect.fnUntraced(function* (
  options: SandboxOptions,
): Effect.fn.Return<SandboxCore, JournalFailed, Scope.Scope> {
  const state = emptyState()
  const journal = options.journal === undefined ? undefined : yield* openJournal(options.journal)
  for (const event of journal?.events ?? []) applyEvent(state, event)
  return { seed: options.seed, state, journal, inputs: new Map() }
})

const serviceOf = (core: SandboxCore) => ({
  startExecution: Executions.startExecution.bind(undefined, core),
  readExecution: Executions.readExecution.bind(undefined, core),
  pollExecution: Executions.pollExecution.bind(undefined, core),
  resumeExecution: Executions.resumeExecution.bind(undefined, core),
  abortExecution: Executions.abortExecution.bind(undefined, core),
  deleteExecution: Executions.deleteExecution.bind(undefined, core),
  readProfile: Executions.readProfile.bind(undefined, core),
  readFlowResults: readFlowResults.bind(undefined, core),
  downloadAttachment: downloadAttachment.bind(undefined, core),
  truth: Effect.sync((): Truth => truthOf(core.state)),
})

export class Sandbox extends Context.Service<Sandbox, ReturnType<typeof serviceOf>>()(
  "nightjar/sandbox/Sandbox",
) {
  static readonly layer = (options: SandboxOptions): Layer.Layer<Sandbox, JournalFailed> =>
    Layer.effect(Sandbox, Effect.map(openCore(options), serviceOf))
}
