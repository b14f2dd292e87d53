/**
 * The body of a state read (section 2.4) and of a pending challenge (423), from an execution at one moment.
 * It contains nothing of the login except the echo of wrong parameters while the service still remembers
 * them.
 */
import { challengeForm } from "../engines/EngineForms.ts"
import { endHookOf } from "./EndHook.ts"
import type { HookState } from "../state/HookState.ts"
import { featuresAt, messagesAt, statusMessage } from "./Messages.ts"
import { countProducts } from "./PlanResults.ts"
import { retrievedAt } from "./Progress.ts"
import { momentAt } from "../state/SandboxState.ts"
import type { Execution } from "../state/SandboxState.ts"
import { isJudged } from "../state/Timeline.ts"

const iso = (at: number): string => new Date(at).toISOString()
const secondsOf = (ms: number): number => ms / 1000

/** What 2.5 and 2.4 share. */
export const acceptanceBody = (execution: Execution) => {
  const { started } = execution
  return {
    app_id: started.application,
    customer_id: started.customer_id,
    auth_origin: "app-secret" as const,
    engine_reference: started.engine_reference,
    execution_id: started.execution_id,
    session_id: started.session_id,
    ...(started.external_execution_id === undefined
      ? {}
      : { external_execution_id: started.external_execution_id }),
  }
}

/** 7: `input` and `ctx` are optional, and this service echoes what it was sent, as real ones do. */
const echo = (errors: Execution["started"]["parameters_errors"], inputs: ReadonlyArray<unknown>) =>
  errors.map((error, index) => {
    const input = inputs[index]
    return input === undefined
      ? error
      : { ...error, msg: `${JSON.stringify(input)} ${error.msg}`, input, ctx: { given: input } }
  })

const datesAt = (execution: Execution, at: number) => {
  const { phase, closed, engineStartedAt } = momentAt(execution, at)
  return {
    date_created: iso(execution.started.at),
    ...(engineStartedAt === undefined ? {} : { date_started: iso(engineStartedAt) }),
    ...(closed ? { date_ended: iso(phase.from) } : {}),
    ...(phase.challenge === undefined ? {} : { action_required_expires: iso(phase.challenge.expires) }),
    ...(phase.kicks === undefined ? {} : { next_kick_date: iso(phase.kicks) }),
  }
}

export const stateBody = (
  execution: Execution,
  at: number,
  inputs: ReadonlyArray<unknown>,
  hooks: HookState,
) => {
  const { started } = execution
  const { phase, closed, activeMs, personMs } = momentAt(execution, at)
  const messages = messagesAt(execution, at)
  // A source that finds fault with the request says so when it ends the run because of it.
  const rejected = closed && phase.status_reason === started.timeline.end
  const parameters_errors = parametersErrors(execution, rejected)
  const configurations_errors = rejected ? started.configurations_errors : []
  return {
    ...acceptanceBody(execution),
    status_code: phase.status_code,
    status_reason: phase.status_reason,
    status_message: statusMessage(phase.status_reason),
    authentication_status: phase.authentication_status,
    is_closed: closed,
    products_count: countProducts(started.results, retrievedAt(execution, at)),
    end_hook: endHookOf(hooks, execution, at),
    warnings_count: messages.filter(({ type }) => type === "warning").length,
    errors_count: messages.filter(({ type }) => type === "error").length,
    ...(isJudged(phase) ? { locking_hash: started.locking_hash } : {}),
    ...datesAt(execution, at),
    execution_time: secondsOf(activeMs),
    running_time: secondsOf(activeMs + personMs),
    total_elapsed_time: secondsOf((closed ? phase.from : at) - started.at),
    features: featuresAt(execution, at),
    ...(parameters_errors.length === 0 ? {} : { parameters_errors: echo(parameters_errors, inputs) }),
    ...(configurations_errors.length === 0
      ? {}
      : { configurations_errors: echo(configurations_errors, inputs) }),
    messages,
  }
}

/** A resume that could not be decrypted names its fields, as a start does. */
const parametersErrors = ({ started, answers }: Execution, rejected: boolean) => {
  const last = answers.at(-1)
  if (last?.fault === "encryption") return last.payload_errors
  return rejected ? started.parameters_errors : []
}

/** 423 (2.4): the form to fill in, until when, who asks, and what was wrong with the last answer. */
export const challengeBody = (execution: Execution, expires: number) => {
  const refused = execution.answers.at(-1)
  const { challenge } = execution.started.timeline
  return {
    form_schema: challengeForm(challenge?.reason ?? "MFA_REQUIRED"),
    action_required_expires: iso(expires),
    producer: challenge?.producer ?? "engine",
    ...(refused === undefined ? {} : { payload_errors: refused.payload_errors }),
  }
}
