/**
 * The service's own words for the end of an execution (section 3.1), each with its row. The table is
 * complete: if the contract gains a reason, it does not compile until the reason has a row. The reasons of
 * `ONGOING` and `ACTION_REQUIRED` are not ends.
 */
import * as Row from "./EndRow.ts"
import type { StatusCode, statusReasonsByCode } from "./Vocabulary.ts"

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

// Ends that the service has no word for, in the same spelling: of starts and executions that it lost, of
// results that are not all here, and of tasks that are not started. A reason that is not listed here does
// not exist.

const isKept = "The execution is kept at the service; the next run reads it again."
const newTicket = "Log in with parameters, then run `nightjar tokens exchange`."

export const ownEnds = {
  /** For a task that is not settled yet; never a fact. */
  IN_PROGRESS: Row.notOver(
    "The task has not finished yet.",
    "If its run was interrupted, `nightjar run JOB` resumes it.",
  ),
  /** An older run was collected; this task had not begun in it. */
  NIGHT_OVER: Row.stoppedByTime(
    "The run was already over when the task would have begun.",
    "The next run starts it.",
  ),
  DEADLINE_REACHED: Row.stoppedByTime(
    "The deadline passed before the task could finish.",
    "The next run tries it first, `nightjar rerun` tries it now; start earlier if it happens often.",
  ),
  /** The operator asked the run to start nothing more. */
  RUN_DRAINED: Row.stoppedByHand(
    "The run was drained (`nightjar drain`) before the task could start or be tried again.",
    "`nightjar run JOB` starts it.",
  ),
  START_UNKNOWN: Row.unknown(
    "The answer to the start was lost twice, so it is not known whether it ran.",
    "The next night's run starts it again, once it cannot be open any more.",
  ),
  /** Decision 3: sources lock an account after a few logins that fail. */
  LOGIN_UNPROVEN: Row.engineerActs(
    "Several logins to this account were sent and nobody knows how they ended, so no further one is sent.",
    "`nightjar credentials list` names them; ask the service's support, then `nightjar credentials settle` " +
      "or `release`. A corrected password is sent once.",
  ),
  /** The start was refused in a way that the reference does not list. */
  UNEXPECTED_ANSWER: Row.engineerActs(
    "The service gave an answer that its reference does not list.",
    "Report it to the service.",
  ),
  /** The service did not answer for as long as the task could wait. */
  SERVICE_UNREACHABLE: Row.serviceActs(
    "The service did not answer in time; an execution that is running there continues.",
    "`nightjar run JOB` resumes it.",
  ),
  /** The service did not abort an execution whose time was up. */
  NOT_STOPPABLE: Row.serviceActs(
    "The service did not stop the execution when its time was up.",
    "`nightjar run JOB` resumes it.",
  ),
  /** The id of the execution shows another external id, customer or engine. */
  NOT_OURS: Row.engineerActs(
    "The execution's id belongs to somebody else's run, which was not touched.",
    "Report the id and the task to the service.",
  ),
  /** A read of the state answers 404. */
  EXECUTION_GONE: Row.serviceActs(
    "The service no longer knows the execution.",
    "The next run starts it again; `nightjar rerun` starts it now.",
  ),
  RESULTS_PARTIAL: Row.serviceActs(
    "The results did not become final in time; they are published as they are.",
    "`nightjar run JOB` reads them again.",
  ),
  RECORDS_UNREACHABLE: Row.partial(
    "Some records cannot be read, or it is not known how many there are.",
    isKept,
  ),
  /** Final results contain fewer records of a family than were counted. */
  RECORDS_SHORT: Row.partial("The final results contain fewer records than the service counted.", isKept),
  /**
   * An answer exceeds a limit, or our code failed on it: its execution stays at the service. If it was an
   * engine's form, nothing was started.
   */
  ANSWER_UNUSABLE: Row.engineerActs(
    "An answer cannot be used; an execution that it was about is kept at the service.",
    "Report it; `nightjar explain TASK` says why and what was kept.",
  ),
  ENGINE_UNKNOWN: Row.skipped(
    "The service has no such engine.",
    "Correct the reference; `nightjar engines list` lists all engines.",
  ),
  /** A listed flow session that the service does not know, or that its customer never started (404, 412). */
  SESSION_UNKNOWN: Row.engineerActs(
    "The service does not know the session, or the customer never started it.",
    "Correct the session's id in the job.",
  ),
  /** Nothing was sent: the run is unfinished, so that it begins once the secret is there. */
  SECRET_UNAVAILABLE: Row.correctable(
    "A secret of the login could not be resolved.",
    "Set it (`nightjar doctor JOB` names what is missing), then `nightjar run JOB` starts the task.",
  ),
  /** The job was changed while its run was unfinished. */
  NOT_IN_JOB: Row.skipped(
    "The job no longer names the task.",
    "If that is a mistake, name it in the job again, then run `nightjar rerun`.",
  ),
  TOKENS_UNAVAILABLE: Row.engineerActs(
    "The task needs the token store, but the job names no key for it.",
    "Add `tokens: { key: env:NAME }` to the job.",
  ),
  /** Also for a start with a stored token that answers 404: another application's token, or none (4.7). */
  TOKEN_UNKNOWN: Row.engineerActs(
    "There is no such token, either here or at the service.",
    "`nightjar tokens list` shows what is stored.",
  ),
  TOKEN_MISMATCH: Row.engineerActs(
    "The token belongs to another customer, engine or service.",
    "Name the right token in the job.",
  ),
  TOKEN_EXPIRED: Row.engineerActs("The token is older than 90 days.", newTicket),
  TOKEN_DROPPED: Row.engineerActs("The token was rejected or revoked, and is no longer used.", newTicket),
  TOKEN_FEATURES: Row.engineerActs(
    "The token covers none of the features that the task requests.",
    "Revoke it with `nightjar tokens revoke`, then log in with parameters for a new one.",
  ),
  TOKEN_UNREADABLE: Row.engineerActs(
    "The stored token cannot be decrypted: its entry was changed.",
    newTicket,
  ),
} satisfies Readonly<Record<string, Row.EndRow>>
