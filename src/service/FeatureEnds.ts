/**
 * The service's words for the outcome of one feature (section 2.4), each with its row, for the table
 * `coverage`. A feature does not change its run's exit code; its task does.
 */
import type { FeatureStatusReason } from "./Vocabulary.ts"
import { unlisted } from "./ServiceEnds.ts"
import * as Row from "./EndRow.ts"

/** Open, or stopped with its execution: the outcome of its task counts. */
const ofTask = undefined
const report = "Report the engine."

export const featureEnds: { readonly [R in FeatureStatusReason]: Row.EndRow | undefined } = {
  FEATURE_ACCEPTED: ofTask,
  FEATURE_WAITING: ofTask,
  FEATURE_RUNNING: ofTask,
  FEATURE_ASYNC_WAIT: ofTask,
  FEATURE_ACTION_REQUIRED: ofTask,
  FEATURE_ACTION_REJECTED: Row.customerActs(
    "The source rejected the customer's answer.",
    "Ask the customer before you rerun it.",
  ),
  FEATURE_INCORRECT_PARAMETERS_FORMAT: Row.engineerActs(
    "The parameters do not fit the feature.",
    "Correct them; `nightjar plan` names the fields.",
  ),
  FEATURE_ABORTED: ofTask,
  FEATURE_TIMEOUT: Row.engineerActs(
    "The feature took too long.",
    "Raise `execution_timeout` or ask for fewer features, then rerun.",
  ),
  FEATURE_ACTION_TIMEOUT: Row.customerActs(
    "The source asked the customer for something and got no answer in time.",
    "Run it in an interactive session with the customer.",
  ),
  FEATURE_CUSTOMER_INTERVENTION_REQUIRED: Row.customerActs(
    "The source asks for the customer in person.",
    "Run it in an interactive session with the customer.",
  ),
  FEATURE_CONFIGURATION_ERROR: Row.engineerActs(
    "The settings do not fit the feature.",
    "Correct them in the job; `nightjar plan` names the fields.",
  ),
  FEATURE_COMPLETED: Row.succeeded("The feature was read.", "Nothing to do."),
  FEATURE_PARTIAL: Row.partial("The feature was partly read.", report),
  FEATURE_FAILED: Row.engineerActs("The engine failed to read the feature.", report),
  FEATURE_DISABLED: Row.engineerActs("The feature is disabled.", "Remove it from the job."),
  FEATURE_NOT_IMPLEMENTED: Row.engineerActs(
    "The engine does not have the feature.",
    "Remove it from the job.",
  ),
  FEATURE_TEMPORARY_ERROR: Row.serviceActs(
    "The feature could not be read at that time.",
    "`nightjar rerun` tries again.",
  ),
  FEATURE_INTERNAL_ERROR: Row.engineerActs(
    "The service had an internal error while reading the feature.",
    report,
  ),
}

/** Undefined if the end of its task counts. A value that the reference does not list is not a success. */
export const featureEnd = (reason: string | undefined): Row.EndRow | undefined => {
  if (reason === undefined) return undefined
  return Object.hasOwn(featureEnds, reason) ? featureEnds[reason as FeatureStatusReason] : unlisted
}
