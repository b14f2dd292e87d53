/**
 * The table of ends, the only one: every reason a task or a feature can end with, the service's own words and
 * ours, each with its row. Outcome, who acts, retry, breaker, exit code, what people are told and
 * `schemas/ends.md` follow from it. Most rows are one of a few kinds, and each kind has its name here.
 */
import type { FeatureStatusReason, StatusCode, statusReasonsByCode } from "./Vocabulary.ts"

export const outcomes = ["succeeded", "partial", "failed", "skipped", "unfinished"] as const
export type Outcome = (typeof outcomes)[number]
export const actors = ["customer", "engineer", "service", "nobody"] as const
export type WhoActs = (typeof actors)[number]

/**
 * Who acts next, as people are told, in the order in which they are shown it: where this program itself
 * stopped, or is not over, no text says that somebody else has to act.
 */
export const actings = ["customer", "engineer", "service", "next run", "this run", "nobody"] as const
export type Acting = (typeof actings)[number]
export const actionNeeded: Readonly<Record<Acting, string>> = {
  customer: "action needed from the customer",
  engineer: "action needed from an engineer",
  service: "action needed from the service",
  "next run": "left for the next run",
  "this run": "not finished yet",
  nobody: "no action needed",
}

interface End {
  readonly outcome: Outcome
  readonly who_acts: WhoActs
  /** Another execution in the same run may succeed. */
  readonly retry: boolean
  /** These credentials are not sent again until they change or are released. */
  readonly opensBreaker: boolean
}

/** `means` and `next` are for people: what happened, and what to do about it. */
export interface EndRow extends End {
  readonly means: string
  readonly next: string
  /** Absent if people are told what `who_acts` says. */
  readonly acting?: Extract<Acting, "next run" | "this run">
  /** The same reason for a task that is never started, if it means something else. */
  readonly unstarted?: Pick<End, "outcome" | "who_acts">
  /** The results are not all in the tables, whatever the execution said. */
  readonly results?: "incomplete" | "unusable"
  /** Not started again: the next run of the job reads it at the service once more. */
  readonly isCollected?: true
  /** What a preview says of a task that would wait for this reason. */
  readonly preview?: string
}

/** Cells that few rows have. */
type Rare = Pick<EndRow, "results" | "isCollected" | "preview">

/** What a task with this outcome contributes to its run's exit code; the highest of all tasks counts. */
export const exitOf = (outcome: Outcome): 0 | 3 | 4 =>
  outcome === "succeeded" ? 0 : outcome === "unfinished" ? 4 : 3

const kind =
  (outcome: Outcome, who_acts: WhoActs, more: Partial<Pick<EndRow, "acting"> & End> = {}) =>
  (means: string, next: string, rare: Rare = {}): EndRow => ({
    outcome,
    who_acts,
    retry: false,
    opensBreaker: false,
    ...more,
    means,
    next,
    ...rare,
  })

const succeeded = kind("succeeded", "nobody")
const partial = kind("partial", "engineer")
const skipped = kind("skipped", "engineer")
const customerActs = kind("failed", "customer")
const engineerActs = kind("failed", "engineer")
const serviceActs = kind("unfinished", "service")
/** The service must act, and may have done so before the run ends. */
const temporary = kind("unfinished", "service", { retry: true })
/** Nothing was sent; once it is corrected, the same run sends it. */
const correctable = kind("unfinished", "engineer")
/** This program stopped it, or did not come to it: nobody else has to act before the next run. */
const stopped = { acting: "next run" } as const
const stoppedByTime = kind("unfinished", "service", stopped)
const stoppedByHand = kind("unfinished", "engineer", stopped)
const notOver = kind("unfinished", "nobody", { acting: "this run" })
/** It is not known whether anything ran. */
const unknown = kind("unfinished", "engineer")
/** The source refused the login. */
const rejected = kind("failed", "customer", { opensBreaker: true })
/** The source may have refused the login. */
const unclear = kind("failed", "engineer", { opensBreaker: true })

// The service's own words (3.1), each with its row: a new reason of the contract does not compile without
// one. The reasons of `ONGOING` and `ACTION_REQUIRED` are not ends.

type ClosedCode = Exclude<StatusCode, "ONGOING" | "ACTION_REQUIRED">
export type ServiceReason = (typeof statusReasonsByCode)[ClosedCode][number]

/** Past the deadline of its run, `nightjar run JOB` of the same night starts nothing: a rerun does. */
const later = "The next run tries again, `nightjar rerun` tries now."
const sameLogin =
  "The same login, or any after two rejections, is sent only after `nightjar credentials release`."
/** An unclear end closes no login that the source accepted. */
const ifClosed = "If `nightjar credentials list` names the login, `release` allows it again."
const nextLogin = "The next run logs in with the job's parameters; if it has none, exchange a new ticket."
const interactive = "Run it in an interactive session with the customer."
const answeredTooLate = "The source asked the customer for something and got no answer in time."
const longer = "Raise `execution_timeout` or ask for fewer features, then rerun."
const planNames = "the message or `nightjar plan` names the fields."

export const serviceEnds: { readonly [R in ServiceReason]: EndRow } = {
  COMPLETED: succeeded("Everything was read.", "Nothing to do."),
  PARTIAL: partial(
    "Some features returned no data.",
    "`nightjar query @missing` shows which; report the engine.",
  ),
  FAILED: engineerActs(
    "The engine read nothing from the source.",
    "Report it with the execution's id; one rerun may help.",
  ),
  CLIENT_CANCELLED: stoppedByTime(
    "It was aborted: at `max_wait`, at the deadline, or by somebody else who has the application secret.",
    later,
  ),
  USER_CANCELLED: customerActs("The customer cancelled it.", "Ask the customer before you rerun it."),
  ACTION_TIMEOUT: customerActs(answeredTooLate, interactive),
  TIMEOUT: engineerActs("The execution took longer than `execution_timeout`.", longer),
  CUSTOMER_INTERVENTION_REQUIRED: {
    ...customerActs(
      "The source asks for the customer in person, or the engine needs a person in every run.",
      interactive,
    ),
    unstarted: { outcome: "skipped", who_acts: "engineer" },
  },
  SYSTEM_CANCELLED: temporary("The service cancelled the execution.", later),
  INCORRECT_CREDENTIALS: rejected(
    "The source refused the credentials.",
    `Ask the customer for the correct ones. ${sameLogin}`,
  ),
  INCORRECT_MFA: rejected(
    "The source refused the second factor.",
    `Ask the customer to log in there once. ${sameLogin}`,
  ),
  BLOCKED_USER: rejected(
    "The source blocked the user.",
    `Ask the customer to have it unblocked there. ${sameLogin}`,
  ),
  FRIEZED_CREDENTIALS: rejected(
    "The source froze the credentials.",
    `Ask the customer to reactivate them there. ${sameLogin}`,
  ),
  CHANGE_PASSWORD: rejected(
    "The source demands a new password.",
    `Ask the customer to set one and tell you. ${sameLogin}`,
  ),
  MANUAL_INTERVENTION: rejected(
    "The source wants the customer to confirm something.",
    `Ask the customer to log in there once and confirm it. ${sameLogin}`,
  ),
  INCOMPATIBLE_ACCESS: rejected(
    "The source does not support this kind of access.",
    `Ask the customer for another kind. ${sameLogin}`,
  ),
  DUPLICATED_SESSION: rejected(
    "The user already had a session open at the source.",
    "Agree on a time with the customer, then run `nightjar credentials release`.",
  ),
  UNHANDLED_AUTH_ERROR: unclear(
    "The login failed in a way that the service does not classify.",
    `Report the engine. ${ifClosed}`,
  ),
  BAD_CONFIGURATIONS: engineerActs(
    "The settings do not fit the engine's form.",
    `Correct them in the job; ${planNames}`,
  ),
  INCORRECT_PARAMETERS_FORMAT: engineerActs(
    "The parameters do not fit the engine's form.",
    `Correct them; ${planNames}`,
  ),
  INCORRECT_RESUME_FORMAT: engineerActs(
    "A challenge was answered in the wrong format.",
    "Report it with the execution's id.",
  ),
  ENCRYPTION_ERROR: engineerActs(
    "The service cannot decrypt a value it was sent.",
    "Encrypt the value again with the service's newest key.",
  ),
  T10N_FORBIDDEN: engineerActs(
    "The application is not allowed to tokenize.",
    "Turn `tokenized_access` off, or ask the service for permission.",
  ),
  T10N_NOT_AVAILABLE: engineerActs("The engine cannot tokenize.", "Turn `tokenized_access` off."),
  T10N_REJECTED: engineerActs("The token is revoked or invalid, and is no longer used.", nextLogin),
  T10N_EXCEPTION: engineerActs(
    "The service cannot read the credentials behind the token, which is no longer used.",
    nextLogin,
  ),
  BAD_PROXY_CONFIGURATION: serviceActs(
    "The service's proxy is misconfigured.",
    `Report it to the service. ${later}`,
  ),
  OUT_OF_SERVICE: temporary("The source is out of service.", later),
  ENGINE_UNAVAILABLE: temporary(
    "The engine is offline or in maintenance, or its form cannot be read.",
    later,
    {
      preview: "the engine is not available now; it starts once it is, if that is in time",
    },
  ),
  ALREADY_EXECUTING: temporary(
    "Another execution of this customer or with this login was running, or may have been.",
    later,
    { preview: "another run has an execution open with this customer or this login" },
  ),
  ENGINE_BANNED: temporary(
    "The source has banned the engine's address.",
    `${later} Report it if this continues.`,
  ),
  AUTO_CAPTCHA_ERROR: temporary("The engine did not solve a captcha.", later),
  PROXY_ERROR: temporary("The service's proxy failed.", later),
  NETWORK_ERROR: temporary("The service could not reach the source.", later),
  INTERNAL_ERROR: temporary("The service had an internal error.", later),
}

/** An unlisted end may be a refused login: no second try, and an engineer investigates. */
export const unlisted = unclear(
  "The service's reference does not list this reason, or lists it only for other ends.",
  `Find out what it means. ${ifClosed}`,
)

// Ends that the service has no word for, in the same spelling. A reason that is not listed here does not
// exist.

const isKept = "The execution is kept at the service; the next run reads it again."
const newTicket = "Log in with parameters, then run `nightjar tokens exchange`."

export const ownEnds = {
  /** For a task that is not settled yet; never a fact. */
  IN_PROGRESS: notOver(
    "The task has not finished yet.",
    "If its run was interrupted, the job's next run resumes or collects it.",
  ),
  /** An older run was collected; this task had not begun in it. */
  NIGHT_OVER: stoppedByTime(
    "The run was already over when the task would have begun.",
    "The next run starts it.",
  ),
  DEADLINE_REACHED: stoppedByTime(
    "The deadline passed before the task could finish.",
    "The next run tries it first, `nightjar rerun` tries it now; start earlier if it happens often.",
    { preview: "it takes longer than the time that is left before the deadline" },
  ),
  RUN_DRAINED: stoppedByHand(
    "The run was drained (`nightjar drain`) before the task could start or be tried again.",
    "The next run starts it, `nightjar rerun` starts it now.",
  ),
  START_UNKNOWN: unknown(
    "No answer says whether a start of this customer or with this login ran.",
    "The next night's run starts it again, once it cannot be open any more.",
    {
      preview:
        "an earlier start of this customer or with this login may be open; no answer says whether it ran",
    },
  ),
  /** Decision 3: sources lock an account after a few logins that fail. */
  LOGIN_UNPROVEN: engineerActs(
    "Several logins to this account failed or nobody knows how they ended, so no further one is sent.",
    "`nightjar credentials list` names them; ask the service's support, then `nightjar credentials settle` " +
      "or `release`. A corrected password is sent once.",
  ),
  UNEXPECTED_ANSWER: engineerActs(
    "The service gave an answer that its reference does not list.",
    "Report it to the service.",
  ),
  SERVICE_UNREACHABLE: serviceActs(
    "The service did not answer in time; an execution that is running there continues.",
    "`nightjar run JOB` resumes it.",
    { isCollected: true },
  ),
  /** Also for reads (401, 403). The run goes on from its facts once the secret is right. */
  SECRET_REFUSED: correctable(
    "The service refuses the application's secret; an execution that is running there continues.",
    "Set the right one (`nightjar doctor JOB` checks it), then `nightjar run JOB` goes on with the task.",
    { isCollected: true },
  ),
  /** No state that was read at the present `base_url` has shown the execution as ours. */
  SERVICE_MOVED: correctable(
    "The execution was started at another service, and the one that the job names now does not show it.",
    "Run the job once with its former `base_url`, which goes on with the task there.",
    { isCollected: true },
  ),
  NOT_STOPPABLE: serviceActs(
    "The service did not stop the execution when its time was up.",
    "`nightjar run JOB` resumes it.",
    { isCollected: true },
  ),
  /** The id of the execution shows another external id, customer or engine. */
  NOT_OURS: engineerActs(
    "The execution's id belongs to somebody else's run, which was not touched.",
    "Report the id and the task to the service.",
  ),
  /** A read of the state answers 404. */
  EXECUTION_GONE: serviceActs(
    "The service no longer knows the execution.",
    "The next run starts it again; `nightjar rerun` starts it now.",
  ),
  RESULTS_PARTIAL: serviceActs(
    "The results could not be read, or did not become final in time: `nights` has what was read of them, " +
      "and so has `main` where it has no final ones.",
    "`nightjar run JOB` reads them again.",
    { results: "incomplete", isCollected: true },
  ),
  RECORDS_UNREACHABLE: partial(
    "Some records cannot be read, or it is not known how many there are.",
    isKept,
    { results: "incomplete" },
  ),
  RECORDS_SHORT: partial("The final results contain fewer records than the service counted.", isKept, {
    results: "incomplete",
  }),
  /** Only of an execution: its task ends as its records say. */
  DOCUMENTS_SHORT: succeeded("The records are here, but not all the documents that they name.", isKept),
  /** Only of a feature, in `coverage`: its records of earlier nights stay as they were. */
  FEATURE_NOT_RETRIEVED: engineerActs(
    "The service neither returned the feature nor says why.",
    "Check with `nightjar engines show ENGINE` that the engine has it; if it does, report the engine.",
  ),
  /** Beyond a limit, or our code failed on it: the execution stays. If it was a form, nothing was started. */
  ANSWER_UNUSABLE: engineerActs(
    "An answer cannot be used; an execution that it was about is kept at the service.",
    "Report it; `nightjar explain TASK` says why and what was kept.",
    { results: "unusable" },
  ),
  ENGINE_UNKNOWN: skipped(
    "The service has no such engine.",
    "Correct the reference; `nightjar engines list` lists all engines.",
  ),
  /** A listed flow session that the service does not know, or that its customer never started (404, 412). */
  SESSION_UNKNOWN: engineerActs(
    "The service does not have the session, or no longer has it, or the customer never started it. " +
      "What earlier runs read of it is kept.",
    "If it was never read, correct its id in the job; otherwise remove it from the job.",
  ),
  /** The same of one of which this run has read results that were not final yet. */
  SESSION_GONE: partial(
    "The service no longer has the session. What was read of it before it was final is kept: " +
      "in `nights`, and in `main` unless that has something final.",
    "Remove the session from the job; its rows stay.",
    { results: "incomplete" },
  ),
  SECRET_UNAVAILABLE: correctable(
    "A secret of the login could not be resolved.",
    "Set it (`nightjar doctor JOB` names what is missing), then `nightjar rerun` starts the task.",
  ),
  NOT_IN_JOB: skipped(
    "The job no longer names the task.",
    "If that is a mistake, name it in the job again, then run `nightjar rerun`.",
  ),
  TOKENS_UNAVAILABLE: engineerActs(
    "The task needs the token store, but the job names no key for it.",
    "Add `tokens: { key: env:NAME }` to the job.",
  ),
  /** Also for a start with a stored token that answers 404: another application's token, or none (4.7). */
  TOKEN_UNKNOWN: engineerActs(
    "There is no such token, either here or at the service.",
    "`nightjar tokens list` shows what is stored.",
  ),
  TOKEN_MISMATCH: engineerActs(
    "The token belongs to another customer, engine or service.",
    "Name the right token in the job.",
  ),
  TOKEN_EXPIRED: engineerActs(
    "The token is older than 90 days by this machine's clock, and was not used.",
    newTicket,
  ),
  TOKEN_DROPPED: engineerActs("The token was rejected or revoked, and is no longer used.", newTicket),
  TOKEN_FEATURES: engineerActs(
    "The token does not cover the feature, or any of those that the task requests.",
    "Revoke it with `nightjar tokens revoke`, then log in with parameters for a new one.",
  ),
  TOKEN_UNREADABLE: engineerActs("The stored token cannot be decrypted: its entry was changed.", newTicket),
} satisfies Readonly<Record<string, EndRow>>

// The service's words for the outcome of one feature (section 2.4), each with its row, for the table
// `coverage`. A feature does not change its run's exit code; its task does.

/** Open, or stopped with its execution: the outcome of its task counts. */
const ofTask = undefined
const report = "Report the engine."

export const featureEnds: { readonly [R in FeatureStatusReason]: EndRow | undefined } = {
  FEATURE_ACCEPTED: ofTask,
  FEATURE_WAITING: ofTask,
  FEATURE_RUNNING: ofTask,
  FEATURE_ASYNC_WAIT: ofTask,
  FEATURE_ACTION_REQUIRED: ofTask,
  FEATURE_ACTION_REJECTED: customerActs(
    "The source rejected the customer's answer.",
    "Ask the customer before you rerun it.",
  ),
  FEATURE_INCORRECT_PARAMETERS_FORMAT: engineerActs(
    "The parameters do not fit the feature.",
    `Correct them; ${planNames}`,
  ),
  FEATURE_ABORTED: ofTask,
  FEATURE_TIMEOUT: engineerActs("The feature took too long.", longer),
  FEATURE_ACTION_TIMEOUT: customerActs(answeredTooLate, interactive),
  FEATURE_CUSTOMER_INTERVENTION_REQUIRED: customerActs(
    "The source asks for the customer in person.",
    interactive,
  ),
  FEATURE_CONFIGURATION_ERROR: engineerActs(
    "The settings do not fit the feature.",
    `Correct them in the job; ${planNames}`,
  ),
  FEATURE_COMPLETED: succeeded("The feature was read.", "Nothing to do."),
  FEATURE_PARTIAL: partial(
    "The feature was partly read: `nights` has what was read, and so has `main` where it has nothing final.",
    report,
  ),
  FEATURE_FAILED: engineerActs("The engine failed to read the feature.", report),
  FEATURE_DISABLED: engineerActs("The feature is disabled.", "Remove it from the job."),
  FEATURE_NOT_IMPLEMENTED: engineerActs("The engine does not have the feature.", "Remove it from the job."),
  FEATURE_TEMPORARY_ERROR: serviceActs(
    "The feature could not be read at that time.",
    "The next night asks again; `nightjar run JOB --customer ID` asks now.",
  ),
  FEATURE_INTERNAL_ERROR: engineerActs(
    "The service had an internal error while reading the feature.",
    report,
  ),
}

/** Undefined if the end of its task counts. A value that the reference does not list is not a success. */
export const featureEnd = (reason: string | undefined): EndRow | undefined => {
  if (reason === undefined) return undefined
  return Object.hasOwn(featureEnds, reason) ? featureEnds[reason as FeatureStatusReason] : unlisted
}
