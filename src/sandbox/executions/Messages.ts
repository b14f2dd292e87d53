/**
 * The text parts of a state: prose and messages in the source market's language, and the outcome of each
 * feature (section 2.4). Automation uses `id` and the reasons; the texts are for people.
 */
import type { ExecutionMessage } from "../../service/Execution.ts"
import type { FeatureStatusReason, StatusReason } from "../../service/Vocabulary.ts"
import { isOpenOutcome } from "./Behaviour.ts"
import { retrievedByFeature } from "./PlanResults.ts"
import { retrievedAt } from "./Progress.ts"
import type { FeaturePlan, Retrieval } from "../state/ResultsPlan.ts"
import { momentAt } from "../state/SandboxState.ts"
import type { Execution } from "../state/SandboxState.ts"
import { isClosedPhase, statusCodeOf } from "../state/Timeline.ts"
import type { Phase } from "../state/Timeline.ts"

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

const closingMessages = (phase: Phase): ReadonlyArray<Message> => {
  const reason = phase.status_reason
  if (!isClosedPhase(phase) || reason === "COMPLETED" || reason === "PARTIAL") return []
  const message = { date: new Date(phase.from).toISOString(), loc: [], message: statusMessage(reason) }
  const id = `${statusCodeOf(reason)}.${reason}`.toLowerCase()
  return [
    { ...message, type: "error", id },
    ...(notified.has(reason) ? [{ ...message, type: "notification" as const, id: `${id}.notice` }] : []),
  ]
}

const incomplete = "La fuente no ha dado todos los datos."

/** What the platform reports once the login was accepted, with that date. */
const readingMessages = (execution: Execution, at: number, phase: Phase): ReadonlyArray<Message> => {
  if (phase.authentication_status !== "AUTH_OK") return []
  const { results } = execution.started
  const accepted = execution.phases.find(({ authentication_status }) => authentication_status === "AUTH_OK")
  const date = new Date((accepted ?? phase).from).toISOString()
  const counts = retrievedByFeature(results, retrievedAt(execution, at))
  return [
    { date, type: "info", id: "login.accepted", loc: [], message: "Acceso correcto." },
    ...results.features.flatMap(({ code, adapted = [], shielded = false }, index): ReadonlyArray<Message> => [
      ...adapted.map((name): Message => ({
        date,
        type: "warning",
        id: "feature.dates_adapted",
        loc: ["features", code, "configurations", name],
        message: "La fecha se ha ajustado a lo que guarda la fuente.",
      })),
      ...(shielded && (counts[index] ?? 0) > 0
        ? [
            {
              date,
              type: "info" as const,
              id: "feature.protected_data",
              loc: ["features", code],
              message: "Faltan datos protegidos: no se ha pedido desbloquearlos.",
            },
          ]
        : []),
    ]),
  ]
}

export const messagesAt = (execution: Execution, at: number): ReadonlyArray<Message> => {
  const { phase } = momentAt(execution, at)
  const failed = isClosedPhase(phase)
    ? execution.started.results.features.filter(({ outcome }) => outcome !== "FEATURE_COMPLETED")
    : []
  const date = new Date(phase.from).toISOString()
  return [
    ...readingMessages(execution, at, phase),
    ...closingMessages(phase),
    ...failed.map(({ code }): Message => ({
      date,
      type: "warning",
      id: "feature.incomplete",
      loc: ["features", code],
      message: incomplete,
    })),
  ]
}

const openOutcomes: Readonly<Partial<Record<StatusReason, FeatureStatusReason>>> = {
  ACCEPTED: "FEATURE_ACCEPTED",
  WAITING: "FEATURE_WAITING",
  RUNNING: "FEATURE_RUNNING",
  ASYNC_WAIT: "FEATURE_ASYNC_WAIT",
  MFA_REQUIRED: "FEATURE_ACTION_REQUIRED",
  INPUT_REQUIRED: "FEATURE_ACTION_REQUIRED",
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
const saidAt = (phase: Phase, said: FeatureStatusReason | undefined): FeatureStatusReason | undefined => {
  if (said === undefined || phase.authentication_status !== "AUTH_OK") return undefined
  const shown = isClosedPhase(phase) ? !isOpenOutcome(said) : phase.status_reason === "RUNNING"
  return shown && (isClosedPhase(phase) || isOpenOutcome(said)) ? said : undefined
}

/** A feature that had all its records before a run broke off is still complete. */
const outcomeAt = (phase: Phase, feature: FeaturePlan, retrieved: number): FeatureStatusReason => {
  const reason = phase.status_reason
  if (reason === "COMPLETED" || reason === "PARTIAL" || reason === "FAILED") return feature.outcome
  const said = saidAt(phase, feature.said)
  if (said !== undefined) return said
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
