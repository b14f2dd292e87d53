/**
 * Every enumeration of the reference, in its own words and order (sections 2, 3 and 6). The words appear
 * only in these lists; schemas, tables of ends and the embedded service derive from them.
 */

/** 2.1 */
export const features = [
  "accounts_read",
  "cards_read",
  "deposits_read",
  "loans_read",
  "credits_read",
  "investment_accounts_read",
  "funds_read",
  "stocks_read",
  "pensions_read",
  "accounts_certificates",
  "direct_debits_read",
  "customer_information_read",
  "source_contracts_read",
  "cloud_resource_read",
  "supplier_invoices_read",
  "client_invoices_read",
  "labor_check",
  "public_pensions",
  "public_document_verification",
  "yearly_individual_tax",
  "vehicles_data",
  "driver_data",
  "academic_data",
  "properties_data",
  "credit_registry_data",
] as const
export type Feature = (typeof features)[number]

/** 2.2 */
export const engineAlternatives = ["website", "mobile", "api", "other"] as const
export const environments = ["sandbox", "production"] as const
export const engineStatuses = ["draft", "implementing", "published", "partial", "maintenance"] as const
export const mainCategories = ["financial", "public", "commercial", "cloud", "other"] as const
export const actionRequiredFrequencies = [
  "unknown",
  "never",
  "on_first_use",
  "rarely",
  "often",
  "always",
] as const
export const engineEvents = ["started", "action_required", "ended", "auth_ended"] as const
export const featuresModes = ["and", "or"] as const

/** 2.4 */
export const authOrigins = ["app-secret", "user-token", "session-token"] as const
export const endHooks = [
  "skipped",
  "pending",
  "delivered",
  "re_delivered",
  "doubtful",
  "failed",
  "ko",
] as const
export const messageTypes = ["error", "info", "warning", "notification"] as const
export const featureStatusReasons = [
  "FEATURE_ACCEPTED",
  "FEATURE_WAITING",
  "FEATURE_RUNNING",
  "FEATURE_ASYNC_WAIT",
  "FEATURE_ACTION_REQUIRED",
  "FEATURE_ACTION_REJECTED",
  "FEATURE_INCORRECT_PARAMETERS_FORMAT",
  "FEATURE_ABORTED",
  "FEATURE_TIMEOUT",
  "FEATURE_ACTION_TIMEOUT",
  "FEATURE_CUSTOMER_INTERVENTION_REQUIRED",
  "FEATURE_CONFIGURATION_ERROR",
  "FEATURE_COMPLETED",
  "FEATURE_PARTIAL",
  "FEATURE_FAILED",
  "FEATURE_DISABLED",
  "FEATURE_NOT_IMPLEMENTED",
  "FEATURE_TEMPORARY_ERROR",
  "FEATURE_INTERNAL_ERROR",
] as const
export type FeatureStatusReason = (typeof featureStatusReasons)[number]

/** 2.7 */
export const sessionStatusCodes = [
  "READY",
  "WAITING",
  "COMPLETED",
  "FAILED",
  "SYSTEM_CANCELLED",
  "CLIENT_CANCELLED",
  "CUSTOMER_CANCELLED",
  "TIMED_OUT",
  "CONFIGURATION_ERROR",
] as const
export const sessionCursors = [
  "es-public-administration:welcome:init",
  "es-public-administration:welcome:consent",
  "es-public-administration:connect:source",
  "es-public-administration:connect:wait",
  "es-public-administration:bye:completed",
  "es-public-administration:bye:failure",
] as const
/** 3.1: each family with its reasons. */
export const statusReasonsByCode = {
  ONGOING: ["ACCEPTED", "WAITING", "RUNNING", "ASYNC_WAIT"],
  ACTION_REQUIRED: ["MFA_REQUIRED", "INPUT_REQUIRED"],
  COMPLETED: ["COMPLETED"],
  PARTIAL: ["PARTIAL"],
  FAILED: ["FAILED"],
  ABORTED: [
    "CLIENT_CANCELLED",
    "USER_CANCELLED",
    "ACTION_TIMEOUT",
    "TIMEOUT",
    "CUSTOMER_INTERVENTION_REQUIRED",
    "SYSTEM_CANCELLED",
  ],
  AUTH_ERROR: [
    "INCORRECT_CREDENTIALS",
    "INCORRECT_MFA",
    "BLOCKED_USER",
    "FRIEZED_CREDENTIALS",
    "CHANGE_PASSWORD",
    "MANUAL_INTERVENTION",
    "INCOMPATIBLE_ACCESS",
    "DUPLICATED_SESSION",
  ],
  UNHANDLED_AUTH_ERROR: ["UNHANDLED_AUTH_ERROR"],
  CONFIGURATION_ERROR: [
    "BAD_CONFIGURATIONS",
    "INCORRECT_PARAMETERS_FORMAT",
    "INCORRECT_RESUME_FORMAT",
    "ENCRYPTION_ERROR",
    "T10N_FORBIDDEN",
    "T10N_NOT_AVAILABLE",
    "T10N_REJECTED",
    "T10N_EXCEPTION",
    "BAD_PROXY_CONFIGURATION",
  ],
  TEMPORARY_ERROR: [
    "OUT_OF_SERVICE",
    "ENGINE_UNAVAILABLE",
    "ALREADY_EXECUTING",
    "ENGINE_BANNED",
    "AUTO_CAPTCHA_ERROR",
    "PROXY_ERROR",
    "NETWORK_ERROR",
    "INTERNAL_ERROR",
  ],
} as const
export type StatusCode = keyof typeof statusReasonsByCode
export type StatusReason = (typeof statusReasonsByCode)[StatusCode][number]
export const statusCodes = Object.keys(statusReasonsByCode) as ReadonlyArray<StatusCode>
export const statusReasons = Object.values(statusReasonsByCode).flat() as ReadonlyArray<StatusReason>

/** 2.4: `not-performed`, `AUTH_OK`, or a refusal reason. */
export const authenticationStatuses = [
  "not-performed",
  "AUTH_OK",
  ...statusReasonsByCode.AUTH_ERROR,
  ...statusReasonsByCode.UNHANDLED_AUTH_ERROR,
] as const

/** 4.1 */
export const limitsBehaviours = ["error", "adapt"] as const
export const financialCardTypes = [
  "financial_card:debit",
  "financial_card:credit",
  "financial_card:prepaid",
  "financial_card:mixed",
] as const
export const creditRegistryTypes = [
  "credit_registry_data:es_cirbe_detailed",
  "credit_registry_data:es_cirbe_aggregated",
] as const

/** 6.2 */
export const flowEvents = [
  "es-public-administration:started",
  "es-public-administration:consent",
  "es-public-administration:partial",
  "es-public-administration:ended",
] as const
export type FlowEventName = (typeof flowEvents)[number]
