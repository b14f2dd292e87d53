/**
 * What each reason of a task's end asks of the person who reads the summary: one sentence, as data. Complete
 * over the reasons of section 3.1 that end an execution and over our own; a reason that nobody listed has an
 * answer too.
 */
import type { statusReasonsByCode } from "../contract/Vocabulary.ts"
import type { OwnReason } from "../ends/Ends.ts"
import type { TokenRefusal } from "../tokens/TokenLogin.ts"

type Ended = (typeof statusReasonsByCode)[Exclude<
  keyof typeof statusReasonsByCode,
  "ONGOING" | "ACTION_REQUIRED"
>][number]
/** Reasons that planning gives before anything starts. */
type PlanningReason = TokenRefusal["reason"] | "TOKEN_FEATURES" | "TOKEN_UNREADABLE" | "SECRET_UNAVAILABLE"

const nextLogin = "With parameters the next run signs in anew; without, exchange a new ticket."
const sameLogin = "Until the credentials change, this login is not sent again."
const later = "`nightjar run` tries again."

export const advice: { readonly [R in Ended | OwnReason | PlanningReason]: string } = {
  COMPLETED: "Nothing to do.",
  PARTIAL: "Some features brought no data: see `nightjar explain` for which, and report the engine.",
  FAILED: "The engine failed at the source: report it with the execution's id; a rerun is worth one try.",
  TIMEOUT: "The work took longer than execution_timeout: raise it or ask for less, then rerun.",
  CLIENT_CANCELLED: "It waited longer than max_wait or the deadline: `nightjar run` tries again.",
  USER_CANCELLED: "The customer cancelled it: ask the customer before a rerun.",
  ACTION_TIMEOUT:
    "The source asked the customer for something and got no answer: the customer must be present.",
  CUSTOMER_INTERVENTION_REQUIRED:
    "The source wants the customer in person: run it in an interactive session.",
  SYSTEM_CANCELLED: `The service cancelled it: ${later}`,
  INCORRECT_CREDENTIALS: `Ask the customer for the right credentials. ${sameLogin}`,
  INCORRECT_MFA: `The second factor was wrong: the customer must log in once. ${sameLogin}`,
  BLOCKED_USER: `The source blocked the user: the customer must unblock it there. ${sameLogin}`,
  FRIEZED_CREDENTIALS: `The source froze the credentials: the customer must reactivate them. ${sameLogin}`,
  CHANGE_PASSWORD: `The source demands a new password: the customer sets one and tells you. ${sameLogin}`,
  MANUAL_INTERVENTION: `The customer must log in once by hand and confirm what the source asks. ${sameLogin}`,
  INCOMPATIBLE_ACCESS: `This kind of access is not supported: ask for another. ${sameLogin}`,
  DUPLICATED_SESSION: "Somebody else was logged in: agree on a time, then `nightjar credentials release`.",
  UNHANDLED_AUTH_ERROR:
    "The engine did not understand the login page: report it, then release the credentials.",
  BAD_CONFIGURATIONS:
    "Settings do not fit the engine's form: correct the job; `nightjar plan` shows the fields.",
  INCORRECT_PARAMETERS_FORMAT:
    "Parameters do not fit the engine's form: correct them; `nightjar plan` names them.",
  INCORRECT_RESUME_FORMAT: "A challenge was answered in the wrong form: report it with the execution's id.",
  ENCRYPTION_ERROR: "An encrypted value cannot be opened: encrypt it again with the service's newest key.",
  T10N_FORBIDDEN: "The application may not tokenize: turn tokenized_access off or ask for the right.",
  T10N_NOT_AVAILABLE: "The engine cannot tokenize: turn tokenized_access off.",
  T10N_REJECTED: `The token is revoked or broken and was dropped. ${nextLogin}`,
  T10N_EXCEPTION: `The credentials behind the token cannot be read; it was dropped. ${nextLogin}`,
  BAD_PROXY_CONFIGURATION: "The service's proxy is misconfigured: report it; `nightjar run` tries again.",
  OUT_OF_SERVICE: `The source is out of service: ${later}`,
  ENGINE_UNAVAILABLE: `The engine is offline or in maintenance: ${later}`,
  ALREADY_EXECUTING: `Another run of this customer and engine was in the way: ${later}`,
  ENGINE_BANNED: `The source bans the engine's address: ${later} If it stays so, report it.`,
  AUTO_CAPTCHA_ERROR: `A captcha was not solved: ${later}`,
  PROXY_ERROR: `The service's proxy failed: ${later}`,
  NETWORK_ERROR: `The service did not reach the source: ${later}`,
  INTERNAL_ERROR: `The service had an internal error: ${later}`,
  START_UNKNOWN:
    "Nobody knows whether it ran: the next night starts it anew, and `nightjar rerun` does so at once.",
  EXECUTION_GONE: "The service no longer knows the execution: `nightjar run` starts it again.",
  SERVICE_UNREACHABLE: "The service did not answer; what runs there stays: `nightjar run` goes on with it.",
  NOT_STOPPABLE: "The service would not stop it; it stays in flight: `nightjar run` collects it.",
  NOT_OURS:
    "The execution's id shows somebody else's run; it was left alone: report both ids to the service.",
  NIGHT_OVER: "Its night was over before it began: a new run has it again.",
  DEADLINE_REACHED: "The deadline came first: `nightjar run` tries again; or begin earlier.",
  RESULTS_PARTIAL: "Results were not final yet: published as they are; `nightjar run` reads them again.",
  RECORDS_UNREACHABLE:
    "Not all records can be read or counted: the execution is kept there, and the next run reads it again.",
  RECORDS_SHORT:
    "Fewer records came than were counted: the execution is kept there, and the next run reads it again.",
  ANSWER_UNUSABLE:
    "An answer cannot be used; an execution behind it is kept. `nightjar explain` says why: report it.",
  UNEXPECTED_ANSWER: "The service answered in a way that its reference does not list: report it.",
  ENGINE_UNKNOWN: "No such engine: correct its reference; `nightjar engines list` has them all.",
  SESSION_UNKNOWN: "The service does not know the session, or nobody started it: correct its id.",
  TOKENS_UNAVAILABLE: "The token store is not open: give the job `tokens: { key }`.",
  TOKEN_UNKNOWN: "No such token, here or at the service: `nightjar tokens list` shows what is stored.",
  TOKEN_MISMATCH: "The token belongs to another customer, engine or service: name the right one.",
  TOKEN_EXPIRED: "The token lived its 90 days: sign in anew, then `nightjar tokens exchange`.",
  TOKEN_DROPPED: "The token is not used any more: sign in anew, then `nightjar tokens exchange`.",
  TOKEN_FEATURES: "The token is good for none of the features: revoke it and sign in anew for a wider one.",
  TOKEN_UNREADABLE: "The stored token does not open: its entry was changed; exchange a new ticket.",
  SECRET_UNAVAILABLE: "A secret could not be resolved: set it; `nightjar doctor JOB` names what is missing.",
}

/** The sentence for any reason, listed or not. */
export const adviceOf = (reason: string): string =>
  Object.hasOwn(advice, reason)
    ? advice[reason as keyof typeof advice]
    : "The reference does not list this reason: an engineer should look; credentials are not sent again."
