/**
 * Ends that the service has no word for, in the same spelling: of starts and executions that it lost, of
 * results that are not all here, and of tasks that are not started. A reason that is not listed here does
 * not exist.
 */
import * as Row from "./EndRow.ts"

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
