/**
 * The body of a state read (section 2.4) and of a pending challenge (423), from an execution at one moment.
 * It contains nothing of the login except the echo of wrong parameters while the service still remembers
 * them.
 */
import { given } from "../../base/Schemas.ts"
import { raisesEvent } from "../engines/EngineCatalogue.ts"
import { challengeForms } from "../engines/EngineDefinition.ts"
import { isOpenOutcome, openOutcomes } from "./Behaviour.ts"
import { countProducts, retrievedAt, retrievedByFeature } from "./PlanResults.ts"
import { findRecord, rulesFor, type DeliveryRecord, type HookState } from "../state/HookState.ts"
import type { FeaturePlan, Retrieval } from "../state/ResultsPlan.ts"
import { closesAt, momentAt, type Execution, type Started } from "../state/SandboxState.ts"
import { acceptedIn, isClosedPhase, isJudged, iso, statusCodeOf, type Phase } from "../state/Timeline.ts"
import type { ExecutionMessage } from "../../service/Execution.ts"
import type { FeatureStatusReason, StatusReason, endHooks } from "../../service/Vocabulary.ts"

// 2.4, `end_hook`: shown only for `skipped` and the background retries; the others are own choice.

type EndHook = (typeof endHooks)[number]

/** `doubtful` and `failed` are tried again, `ko` is given up. */
const outcomeOf = (record: DeliveryRecord): EndHook => {
  if (record.outcome === "delivered") return record.attempts === 1 ? "delivered" : "re_delivered"
  return record.nextAt === undefined ? "ko" : record.outcome
}

/**
 * The first rule bound to `ended` decides, an application's own before global ones (own choice). Once the
 * outcome is known it stays, whatever happens to the rule.
 */
const endHookOf = (hooks: HookState, execution: Execution, at: number): EndHook => {
  const { application, execution_id } = execution.started
  if (hooks.rules.size === 0 && hooks.deliveries.size === 0) return "skipped"
  if (!raisesEvent(execution.started.engine_reference, "ended")) return "skipped"
  const endedAt = closesAt(execution)
  const bound = rulesFor(hooks, application, "ended").find((rule) => endedAt > at || endedAt >= rule.since)
  if (bound === undefined) {
    const records = hooks.deliveries.get(execution_id) ?? []
    const settled = records.find(
      ({ event, nextAt, outcome }) => event === "ended" && (outcome === "delivered" || nextAt === undefined),
    )
    return settled === undefined ? "skipped" : outcomeOf(settled)
  }
  const record = findRecord(hooks, execution_id, { event: "ended", ordinal: 0, rule: bound.id })
  return record === undefined ? "pending" : outcomeOf(record)
}

const prose: Readonly<Partial<Record<StatusReason, string>>> = {
  ACCEPTED: "En cola.",
  WAITING: "Conectando con la fuente.",
  RUNNING: "Leyendo datos.",
  ASYNC_WAIT: "La fuente ha pedido esperar.",
  MFA_REQUIRED: "La entidad ha enviado un código.",
  INPUT_REQUIRED: "La fuente pide un dato más.",
  COMPLETED: "Terminado.",
  PARTIAL: "Terminado en parte.",
  FAILED: "No se ha podido leer nada.",
  INCORRECT_CREDENTIALS: "Usuario o contraseña incorrectos.",
  INCORRECT_MFA: "El código no es correcto.",
  BLOCKED_USER: "El acceso está bloqueado por la entidad.",
  FRIEZED_CREDENTIALS: "El acceso está congelado por la entidad.",
  CHANGE_PASSWORD: "La entidad exige cambiar la contraseña.",
  MANUAL_INTERVENTION: "Entre en la web de la entidad y acepte el aviso pendiente.",
  CUSTOMER_INTERVENTION_REQUIRED: "La fuente pide la intervención del cliente.",
  TIMEOUT: "Se ha superado el tiempo de ejecución.",
}
export const statusMessage = (reason: StatusReason): string =>
  prose[reason] ?? `Ejecución cerrada: ${reason.toLowerCase().replaceAll("_", " ")}.`

type Message = typeof ExecutionMessage.Type

/** Reasons that the end user is told about, besides the error. */
const notified: ReadonlySet<StatusReason> = new Set<StatusReason>([
  "BLOCKED_USER",
  "CHANGE_PASSWORD",
  "MANUAL_INTERVENTION",
])

const said = (
  date: string,
  type: Message["type"],
  id: string,
  message: string,
  ...loc: ReadonlyArray<string>
): Message => ({ date, type, id, loc, message })

const hidden = "Faltan datos protegidos: no se ha pedido desbloquearlos."
const incomplete = "La fuente no ha dado todos los datos."
const adjusted = "La fecha se ha ajustado a lo que guarda la fuente."

const closingMessages = ({ started }: Execution, phase: Phase): ReadonlyArray<Message> => {
  if (!isClosedPhase(phase)) return []
  const date = iso(phase.from)
  const reason = phase.status_reason
  const id = `${statusCodeOf(reason)}.${reason}`.toLowerCase()
  const isBad = reason !== "COMPLETED" && reason !== "PARTIAL"
  const failed = started.results.features.filter(({ outcome }) => outcome !== "FEATURE_COMPLETED")
  return [
    ...(isBad ? [said(date, "error", id, statusMessage(reason))] : []),
    ...(notified.has(reason) ? [said(date, "notification", `${id}.notice`, statusMessage(reason))] : []),
    ...failed.map(({ code }) => said(date, "warning", "feature.incomplete", incomplete, "features", code)),
  ]
}

/** What the platform reports once the login was accepted, with that date. */
const readingMessages = (execution: Execution, at: number, phase: Phase): ReadonlyArray<Message> => {
  if (phase.authentication_status !== "AUTH_OK") return []
  const { results } = execution.started
  const date = iso((acceptedIn(execution.phases) ?? phase).from)
  const counts = retrievedByFeature(results, retrievedAt(execution, at))
  const ofFeature = ({ code, adapted = [], shielded = false }: FeaturePlan, index: number) => {
    const loc = ["features", code]
    const moved = adapted.map((name) =>
      said(date, "warning", "feature.dates_adapted", adjusted, ...loc, "configurations", name),
    )
    const isHidden = shielded && (counts[index] ?? 0) > 0
    return isHidden ? [...moved, said(date, "info", "feature.protected_data", hidden, ...loc)] : moved
  }
  return [said(date, "info", "login.accepted", "Acceso correcto."), ...results.features.flatMap(ofFeature)]
}

const messagesAt = (execution: Execution, at: number): ReadonlyArray<Message> => {
  const { phase } = momentAt(execution, at)
  return [...readingMessages(execution, at, phase), ...closingMessages(execution, phase)]
}

const closedOutcomes: Readonly<Partial<Record<StatusReason, FeatureStatusReason>>> = {
  TIMEOUT: "FEATURE_TIMEOUT",
  ACTION_TIMEOUT: "FEATURE_ACTION_TIMEOUT",
  CUSTOMER_INTERVENTION_REQUIRED: "FEATURE_CUSTOMER_INTERVENTION_REQUIRED",
  INCORRECT_MFA: "FEATURE_ACTION_REJECTED",
  INCORRECT_PARAMETERS_FORMAT: "FEATURE_INCORRECT_PARAMETERS_FORMAT",
  INTERNAL_ERROR: "FEATURE_INTERNAL_ERROR",
}

const brokenOff = (reason: StatusReason): FeatureStatusReason => {
  const known = closedOutcomes[reason]
  if (known !== undefined) return known
  const code = statusCodeOf(reason)
  if (code === "CONFIGURATION_ERROR") return "FEATURE_CONFIGURATION_ERROR"
  return code === "TEMPORARY_ERROR" ? "FEATURE_TEMPORARY_ERROR" : "FEATURE_ABORTED"
}

/** Ends that one feature's challenge causes; the other features are only broken off by it. */
const challengeEnds: ReadonlySet<StatusReason> = new Set<StatusReason>([
  "ACTION_TIMEOUT",
  "CUSTOMER_INTERVENTION_REQUIRED",
  "INCORRECT_MFA",
  "INCORRECT_RESUME_FORMAT",
  "ENCRYPTION_ERROR",
])

/** The outcome that a behaviour word sets, once the run is far enough to have one. */
const wordAt = (phase: Phase, word: FeatureStatusReason | undefined): FeatureStatusReason | undefined => {
  if (word === undefined || phase.authentication_status !== "AUTH_OK") return undefined
  const isShown = isOpenOutcome(word) ? phase.status_reason === "RUNNING" : isClosedPhase(phase)
  return isShown ? word : undefined
}

/** A feature that had all its records before a run broke off is still complete. */
const outcomeAt = (phase: Phase, feature: FeaturePlan, retrieved: number): FeatureStatusReason => {
  const reason = phase.status_reason
  if (reason === "COMPLETED" || reason === "PARTIAL" || reason === "FAILED") return feature.outcome
  const word = wordAt(phase, feature.said)
  if (word !== undefined) return word
  if (retrieved > 0 && retrieved === feature.records) return "FEATURE_COMPLETED"
  const others = phase.heldBy !== undefined && phase.heldBy !== feature.code
  if (!isClosedPhase(phase)) return others ? "FEATURE_RUNNING" : (openOutcomes[reason] ?? "FEATURE_RUNNING")
  if (retrieved > 0) return "FEATURE_PARTIAL"
  return others && challengeEnds.has(reason) ? "FEATURE_ABORTED" : brokenOff(reason)
}

export const featuresAt = (execution: Retrieval, at: number) => {
  const { phase } = momentAt(execution, at)
  const { results } = execution.started
  const counts = retrievedByFeature(results, retrievedAt(execution, at))
  return results.features.map((feature, index) => {
    const status_reason = outcomeAt(phase, feature, counts[index] ?? 0)
    const { code } = feature
    return isClosedPhase(phase) && status_reason !== "FEATURE_COMPLETED"
      ? { code, status_reason, status_message: incomplete }
      : { code, status_reason }
  })
}

const secondsOf = (ms: number): number => ms / 1000

/** What 2.5 and 2.4 share. */
export const acceptanceBody = (started: Started) => ({
  app_id: started.application,
  customer_id: started.customer_id,
  auth_origin: "app-secret" as const,
  engine_reference: started.engine_reference,
  execution_id: started.execution_id,
  session_id: started.session_id,
  ...given({ external_execution_id: started.external_execution_id }),
})

/** 7: `input` and `ctx` are optional, and this service echoes what it was sent, as real ones do. */
const echo = (errors: Started["parameters_errors"], inputs: ReadonlyArray<unknown>) => {
  if (errors.length === 0) return undefined
  return errors.map((error, index) => {
    const input = inputs[index]
    if (input === undefined) return error
    return { ...error, msg: `${JSON.stringify(input)} ${error.msg}`, input, ctx: { given: input } }
  })
}

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
  return {
    ...acceptanceBody(started),
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
    ...given({
      parameters_errors: echo(parametersErrors(execution, rejected), inputs),
      configurations_errors: echo(rejected ? started.configurations_errors : [], inputs),
    }),
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
    form_schema: challengeForms[challenge?.reason ?? "MFA_REQUIRED"],
    action_required_expires: iso(expires),
    producer: challenge?.producer ?? "engine",
    ...(refused === undefined ? {} : { payload_errors: refused.payload_errors }),
  }
}
