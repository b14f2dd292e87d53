/**
 * The service's own words for the end of an execution (section 3.1), each with its row. The table is
 * complete: if the contract gains a reason, it does not compile until the reason has a row. The reasons of
 * `ONGOING` and `ACTION_REQUIRED` are not ends.
 */
import type { StatusCode, statusReasonsByCode } from "./Vocabulary.ts"
import * as Row from "./EndRow.ts"

type ClosedCode = Exclude<StatusCode, "ONGOING" | "ACTION_REQUIRED">
export type ServiceReason = (typeof statusReasonsByCode)[ClosedCode][number]

const later = "`nightjar run JOB` tries again."
const sameLogin = "The login is not sent again until it changes or `nightjar credentials release` allows it."
const nextLogin = "The next run logs in with the job's parameters; if it has none, exchange a new ticket."
const interactive = "Run it in an interactive session with the customer."

export const serviceEnds: { readonly [R in ServiceReason]: Row.EndRow } = {
  COMPLETED: Row.succeeded("Everything was read.", "Nothing to do."),
  PARTIAL: Row.partial(
    "Some features returned no data.",
    "`nightjar query @missing` shows which; report the engine.",
  ),
  FAILED: Row.engineerActs(
    "The engine read nothing from the source.",
    "Report it with the execution's id; one rerun may help.",
  ),
  CLIENT_CANCELLED: Row.stoppedByTime(
    "It was aborted: at `max_wait`, at the deadline, or by somebody else who has the application secret.",
    "The next run tries again, `nightjar rerun` tries now.",
  ),
  USER_CANCELLED: Row.customerActs("The customer cancelled it.", "Ask the customer before you rerun it."),
  ACTION_TIMEOUT: Row.customerActs(
    "The source asked the customer for something and got no answer in time.",
    interactive,
  ),
  TIMEOUT: Row.engineerActs(
    "The execution took longer than `execution_timeout`.",
    "Raise `execution_timeout` or ask for fewer features, then rerun.",
  ),
  CUSTOMER_INTERVENTION_REQUIRED: {
    ...Row.customerActs(
      "The source asks for the customer in person, or the engine needs a person in every run.",
      interactive,
    ),
    unstarted: { outcome: "skipped", who_acts: "engineer" },
  },
  SYSTEM_CANCELLED: Row.temporary("The service cancelled the execution.", later),
  INCORRECT_CREDENTIALS: Row.rejected(
    "The source refused the credentials.",
    `Ask the customer for the correct ones. ${sameLogin}`,
  ),
  INCORRECT_MFA: Row.rejected(
    "The source refused the second factor.",
    `Ask the customer to log in there once. ${sameLogin}`,
  ),
  BLOCKED_USER: Row.rejected(
    "The source blocked the user.",
    `Ask the customer to have it unblocked there. ${sameLogin}`,
  ),
  FRIEZED_CREDENTIALS: Row.rejected(
    "The source froze the credentials.",
    `Ask the customer to reactivate them there. ${sameLogin}`,
  ),
  CHANGE_PASSWORD: Row.rejected(
    "The source demands a new password.",
    `Ask the customer to set one and tell you. ${sameLogin}`,
  ),
  MANUAL_INTERVENTION: Row.rejected(
    "The source wants the customer to confirm something.",
    `Ask the customer to log in there once and confirm it. ${sameLogin}`,
  ),
  INCOMPATIBLE_ACCESS: Row.rejected(
    "The source does not support this kind of access.",
    `Ask the customer for another kind. ${sameLogin}`,
  ),
  DUPLICATED_SESSION: Row.rejected(
    "The user already had a session open at the source.",
    "Agree on a time with the customer, then run `nightjar credentials release`.",
  ),
  UNHANDLED_AUTH_ERROR: Row.unclear(
    "The login failed in a way that the service does not classify.",
    "Report the engine, then run `nightjar credentials release` to allow the login again.",
  ),
  BAD_CONFIGURATIONS: Row.engineerActs(
    "The settings do not fit the engine's form.",
    "Correct them in the job; `nightjar plan` names the fields.",
  ),
  INCORRECT_PARAMETERS_FORMAT: Row.engineerActs(
    "The parameters do not fit the engine's form.",
    "Correct them; `nightjar plan` names the fields.",
  ),
  INCORRECT_RESUME_FORMAT: Row.engineerActs(
    "A challenge was answered in the wrong format.",
    "Report it with the execution's id.",
  ),
  ENCRYPTION_ERROR: Row.engineerActs(
    "The service cannot decrypt a value it was sent.",
    "Encrypt the value again with the service's newest key.",
  ),
  T10N_FORBIDDEN: Row.engineerActs(
    "The application is not allowed to tokenize.",
    "Turn `tokenized_access` off, or ask the service for permission.",
  ),
  T10N_NOT_AVAILABLE: Row.engineerActs("The engine cannot tokenize.", "Turn `tokenized_access` off."),
  T10N_REJECTED: Row.engineerActs("The token is revoked or invalid, and is no longer used.", nextLogin),
  T10N_EXCEPTION: Row.engineerActs(
    "The service cannot read the credentials behind the token, which is no longer used.",
    nextLogin,
  ),
  BAD_PROXY_CONFIGURATION: Row.serviceActs(
    "The service's proxy is misconfigured.",
    "Report it to the service; `nightjar run JOB` tries again.",
  ),
  OUT_OF_SERVICE: Row.temporary("The source is out of service.", later),
  ENGINE_UNAVAILABLE: Row.temporary("The engine is offline or in maintenance.", later),
  ALREADY_EXECUTING: Row.temporary(
    "Another execution of this customer or with this login was running.",
    later,
  ),
  ENGINE_BANNED: Row.temporary(
    "The source has banned the engine's address.",
    "`nightjar run JOB` tries again; report it if this continues.",
  ),
  AUTO_CAPTCHA_ERROR: Row.temporary("The engine did not solve a captcha.", later),
  PROXY_ERROR: Row.temporary("The service's proxy failed.", later),
  NETWORK_ERROR: Row.temporary("The service could not reach the source.", later),
  INTERNAL_ERROR: Row.temporary("The service had an internal error.", later),
}

/** An unlisted reason may be a refused login: no second try, and an engineer investigates. */
export const unlisted = Row.unclear(
  "The service's reference does not list this reason.",
  "Find out what it means; `nightjar credentials release` allows the login again.",
)
