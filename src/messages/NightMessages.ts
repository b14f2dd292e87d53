/**
 * Job files that are refused, errors that stop a run or a command while it works (exit codes 1 and 3 to 6
 * and 130), and the warnings of a summary; of these only a gate changes the exit code.
 */
import {
  defect,
  interruption,
  locked,
  needsPerson,
  nothing,
  refusal,
  stopped,
  stoppedRun,
  unserved,
  warning,
} from "./Message.ts"

const freeSpace = {
  first: "Check the free space and the permissions of the output folder.",
  ofRun: "Then run `nightjar run JOB` to resume.",
}
const putBack = {
  first: "Run `nightjar verify` to see what is damaged, and restore copies of it.",
  ofRun:
    "Then `nightjar repair` derives tables that were published, and `nightjar run JOB` publishes the rest.",
}
const checkService =
  "`nightjar doctor JOB` checks the address, the secret and the network; then run the command again."
const notDeleted = "Executions that were not deleted yet stay at the service."
const explained = "`nightjar explain TASK` shows each attempt."
const readAgain = "The executions are kept at the service; the next run reads them again."
const documentsKept =
  "The records are in the tables; an execution whose documents are not here stays at the service. "
const signIn = "Ask the customer to sign in again, then run `nightjar tokens exchange`."

export const nightMessages = {
  // Of a job's files, of its receivers before anything starts, and of several jobs that are given together.
  "job-invalid": refusal(
    "{problems} in the job files",
    "Correct the job files. `nightjar validate` checks them offline, `nightjar plan` with their secrets.",
  ),
  "customers-missing": refusal(
    "the job names {customers}; `min_customers` requires {share} of the {before} in {run_id}",
    "Check the customers of the job. If they are right, lower `of_last_night` for one run.",
  ),
  "job-replaced-elsewhere": refusal(
    "{job}, which `replaces` names, was last run at another service: {run_id} at {there}, not at {here}",
    "Remove it from `replaces`: what its runs left can only be collected at their own service. If it is " +
      "the same service under a new address, run that job once with the new address.",
  ),
  "job-name-taken": refusal(
    "{path} and {other} both define the job `{name}`",
    "Rename one of them: a job's name is the first part of its run ids.",
  ),
  "job-name-invalid": nothing.written(
    "a job's name may contain a-z, 0-9 and hyphens, at most 64 characters",
    "Give another name.",
  ),
  "job-file-exists": refusal("{path} already exists", "Give another name.", "The file was not changed."),
  "job-file-unwritable": nothing.written(
    "{path} cannot be written ({why})",
    "Check the folder's permissions and its free space.",
  ),
  "job-moved": refusal(
    "{path} no longer defines the job `{name}`",
    "Restore the job to that file, or start it with `nightjar run JOB`.",
  ),
  "job-file-gone": refusal(
    "{path}, the job file of {run_id}, does not exist",
    "Give --job FILE: where it is now. A path that is not absolute is relative to the current folder.",
  ),
  "faults-invalid": refusal(
    "{problems} in the faults file",
    "Correct the file. `nightjar sandbox --help` describes its keys.",
  ),
  "reading-invalid": refusal(
    "{problems} in the reading file",
    "Correct the file. `nightjar sandbox --help` lists its keys.",
  ),
  "record-schema-invalid": refusal("{problems} in the record schemas", "Correct the record schema."),
  "job-given-twice": warning(
    "the job file {first} is given more than once",
    "Name each job file once.",
    "It is used once.",
  ),
  "job-turn-late": stopped(
    "the job `{job}` waited for {others} until its own deadline",
    "Run it now with `nightjar run JOB`, or start the night earlier. `nightjar plan JOB…` says which " +
      "jobs wait for each other, and why.",
    "Nothing of this job was started.",
  ),
  "alarms-unreachable": refusal(
    "{problems} in `notify` and `telemetry` of the job files: an alarm would not arrive",
    "Set each variable, file or command that a reference names, or remove the receiver; " +
      "then try it with `nightjar notify test JOB`.",
  ),
  "receivers-absent": nothing.sent(
    "the job {path} has no `notify`, so there is nobody to notify",
    "Name a receiver in `notify` of the job: an address, an e-mail, a ping or a command.",
  ),

  // Of a run.
  defect: defect("a defect in the program ({kind})", {
    first: "Please report it with the output of --log-level debug.",
    ofRun: "Run `nightjar run JOB` to resume.",
  }),
  interrupted: interruption(
    "interrupted: the state is saved",
    "Run `nightjar run JOB` to resume.",
    notDeleted,
  ),
  "interrupted-part": interruption(
    "interrupted: the state is saved",
    "A part of a job is not resumed: the job's next run collects what it left.",
    notDeleted,
  ),
  "interrupted-waiting": interruption(
    "interrupted while waiting for another process in the output folder",
    "Run the same command again.",
    "Nothing was started.",
  ),
  "command-interrupted": interruption("interrupted before it was finished", "Run the same command again."),
  "stop-forced": interruption(
    "stopped: something was still running {seconds} seconds after the signal",
    "Run the same command again to resume.",
    "Everything written so far is kept.",
  ),
  "acquaint-not-started": needsPerson(
    "{customer_id} on {engine_reference} was not started: {reason}: {message}",
    "`nightjar plan` shows the same; correct what it names, then run the command again.",
    "Nothing was started. Only the catalogue was read.",
  ),
  "ticket-not-exchanged": needsPerson(
    "the ticket was not exchanged: {detail}",
    "Start an execution with tokenized_access to get a new ticket.",
    "No token was stored.",
  ),
  "token-perhaps-revoked": unserved(
    "the answer of the service was lost, so the token may be revoked",
    "Run the same command again: of a token that is gone, the service says so.",
    "The token is still stored here.",
  ),
  "output-unwritable": stoppedRun("the output folder cannot be written: {detail}", freeSpace),
  "lock-unusable": stoppedRun("the lock of the output folder cannot be used: {detail}", freeSpace),
  "ledger-unusable": stoppedRun("the ledger cannot be read or written: {detail}", freeSpace),
  "token-store-unusable": stoppedRun(
    "the token store cannot be used: {detail}",
    {
      first: "Check the free space, and the permissions of the output folder and of its tokens.sqlite.",
      ofRun: "Then run the same command again: `nightjar run JOB` resumes.",
    },
    "Everything landed and recorded is kept, and so are the tokens that were stored. One that was issued " +
      "just now may be lost: the next run logs in with the job's parameters, and asks for another.",
  ),
  "landing-failed": stoppedRun("an answer could not be landed: {detail} ({path})", freeSpace),
  "landing-damaged": stoppedRun("a landed body is damaged: {detail} ({path})", putBack),
  "publishing-damaged": stoppedRun("damaged data prevents publishing: {detail}", putBack),
  "publishing-failed": stoppedRun("the tables could not be published: {detail}", {
    first: "Check the free space and the permissions of the output folder, and the machine's free memory.",
    ofRun: freeSpace.ofRun,
  }),
  "backup-failed": stopped(
    "the output folder could not be copied: {detail}",
    "Check the free space and the permissions of both folders; then run the command again.",
    "Nothing in the output folder was changed, and the unfinished copy was removed.",
  ),
  "backup-unsettled": stopped(
    "tables were being published throughout the copy",
    "Run the command again; if no run is in progress, run `nightjar repair` first.",
    "Nothing in the output folder was changed, and the unfinished copy was removed.",
  ),
  "prune-stopped": stopped(
    "data older than `retain` allows could not be removed: {why}",
    "Check the permissions of the output folder; then run the command again.",
    "What was removed is recorded in the ledger.",
  ),
  "night-unanswered": stopped(
    "the run in {output} was told, and did not answer within 5 seconds",
    "Run the same command again: once the run answers, it says whether that was already so.",
    "It is not known whether the run obeys.",
  ),
  "output-locked": locked(
    "another process is working in this output folder: {holder}",
    "Wait until it ends, as `nightjar run --wait DURATION` does. Another output folder would not know " +
      "which logins were rejected here.",
    "Nothing was started here.",
  ),
  "journal-locked": locked(
    "another process is using the state file {path}",
    "Wait until it ends, or give --state another file.",
  ),
  "journal-seed": refusal(
    "the state file {path} was begun with seed {seed}: another one would change its records",
    "Leave --seed out, or give --state another file.",
  ),
  "service-unavailable": unserved("the service cannot be used: {detail}", checkService),
  "journal-unusable": unserved(
    "the journal of the embedded service cannot be used: {detail}",
    "Make the file readable and writable; if it is damaged, move it away.",
  ),
  "port-unavailable": unserved(
    "the server cannot listen on this address and port",
    "Give --port another number; 0 takes any free port.",
  ),
  "run-unpublished": warning(
    "{run_id} could not be published: {why}",
    "Restore a copy of what `nightjar verify` names: the job's next run then publishes and deletes what is " +
      "left of that older run. Without a copy its results stay at the service, which did not show enough " +
      "of them to read them again.",
    "Nothing of it was deleted at the service. The run continues, and its exit code is 4.",
  ),
  "prune-failed": warning(
    "data older than `retain` allows was not removed: {why}",
    "The next run tries again, and so does `nightjar prune`.",
  ),
  "ledger-still-large": warning(
    "the ledger's file could not be made smaller after facts of old runs were archived: {why}",
    "Make room on the disk. The next run tries again, and so does `nightjar prune`.",
    "No fact is lost: each is in the ledger or in `ledger-archive/`, and all commands read both.",
  ),
  "demo-unexpected": warning(
    "the demo run did not end as expected",
    "Report it with the summary above.",
    "All tables and landed bodies of the run are kept.",
  ),
  "night-unwatched": warning(
    "the run cannot be followed or controlled: {detail}",
    "No action needed. `nightjar status` shows what is recorded; ctrl-C ends the run, and `run` resumes it.",
  ),
  "webhooks-exposed": warning(
    "anyone who can reach {host} can send events to it: senders are not authenticated",
    "Bind --webhooks to 127.0.0.1, or let only the service reach it.",
    "Events are only hints: every state is read again from the service.",
  ),
  "tokens-expiring": warning("{tokens} will expire within 14 days, the first on {day}", signIn),
  "tokens-expired": warning(
    "{tokens} not used: more than 90 days old by this machine's clock",
    "If the clock was wrong, set it. Otherwise new tokens take their place: a job with parameters asks for " +
      "them, and `nightjar tokens exchange` stores one by hand.",
    "They stay in the store, to be used again if the clock was wrong.",
  ),
  "token-dropped": warning("{tokens} no longer used: {reason}", signIn),
  "token-outside": warning(
    "{tasks} without features that the stored token does not cover: {features}",
    "Revoke it with `nightjar tokens revoke NAME`: the next run then logs in with the job's parameters.",
    "Records of those features from earlier nights stay current.",
  ),
  "ticket-dropped": warning("{tickets} not exchanged for a token: {reason}", explained),
  "token-start-refused": warning(
    "the service refused {starts} with a stored token",
    "No action needed if the job has parameters: they were sent instead. Otherwise, exchange a new ticket.",
  ),
  "notice-undelivered": warning(
    "{receiver} of the job was not notified: {why}",
    "Check the address or the command, and its receiver. `nightjar status` shows how the run ended.",
    "The run and its exit code are not affected.",
  ),
  "telemetry-incomplete": warning(
    "the telemetry of the run is incomplete: {why}",
    "Check `telemetry` in the job, and the collector. `log.ndjson` of the run has every fact.",
    "The run and its exit code are not affected.",
  ),
  "report-unwritten": warning(
    "{path} could not be written: {why}",
    "`nightjar report` writes it again.",
    "The run and its exit code are not affected; its other files are written.",
  ),
  "executions-in-flight": warning(
    "{executions} still in flight at the service",
    "`nightjar run JOB` collects, publishes and deletes them.",
  ),
  "nights-missed": warning(
    "{nights} before this one had no run: {dates}",
    "Check that the machine was on and that the schedule fires. This run reads what the sources still have.",
  ),
  "run-ahead": warning(
    "the run {run} began after this one, by this machine's clock: it was wrong then, or is now",
    "Check the clock with `date`, and set it if it is wrong now. If it was wrong then, what changes has " +
      "the date of that run in `valid_from` and `valid_to` until that day. `nightjar rebuild` corrects " +
      "these, once as many runs have begun with the right time as with the wrong one.",
    "Records, their order and `as_of` of all that is read again are right; the exit code does not change.",
  ),
  "start-repeated": warning(
    "{starts} sent again because the answer was lost: the first may have run at the service",
    explained,
  ),
  "executions-kept": warning(
    "{executions} kept at the service, because {what} may be missing here{missing}",
    readAgain,
  ),
  "executions-kept-before": warning(
    "{executions} of earlier nights kept at the service, as data may be missing here; oldest: {oldest}",
    "For 30 days after its own run, each run of the job reads such an execution again. `nightjar status " +
      "RUN` says what is missing there: report it to the service.",
  ),
  "executions-unread": warning(
    "{executions} kept at the service and not read, as `flow_results` is off in the job",
    "Set `enabled: true` in `flow_results`: the next run reads them, for 30 days after their own run, and " +
      "those with partial results for longer. Only what is started while it is off is deleted unread.",
  ),
  "executions-elsewhere": warning(
    "not found at the service that the job names now: {executions} of {runs}, started at {service}",
    "Run the job once with its former `base_url` (`NIGHTJAR_BASE_URL` overrides the file): that reads and " +
      "deletes what is left there. If the service only moved, ask its support where it is.",
    "Nothing was read, aborted or deleted in its place.",
  ),
  "runs-stuck": warning(
    "{runs} left something at the service that later runs could not finish for days; oldest: {oldest}",
    "`nightjar query \"FROM ops.deletions WHERE outcome = 'pending'\"` lists what the service did not " +
      "delete (409: it says that an execution still runs), and `nightjar status RUN` what is open there: " +
      "ask its support.",
    "Each run of the job tries again. Nothing that is not safely stored here was deleted.",
  ),
  "records-surplus": warning(
    "{executions} returned {records} more than counted",
    "No action needed: all of them are published.",
  ),
  "attachments-missing": warning("{attachments} missing at the service", "Ask the service for them."),
  "attachments-refused": warning(
    "{attachments} not requested: the identifier is not a text, or is not safe to use",
    "Report the identifiers to the service; they are in the landed results.",
  ),
  "attachments-not-delivered": warning(
    "{attachments} not delivered: the service answers, but not with the document",
    "Ask the service for them: `ops.attachments` names them. Runs of the next 30 days request them again.",
    documentsKept + "The exit code does not change.",
  ),
  "attachments-failed": warning(
    "{attachments} could not be downloaded: there was no usable answer in time",
    "`nightjar run JOB` requests them again.",
    documentsKept + "The exit code is 4.",
  ),
  "gate-failed": warning(
    "the gate {gate} did not pass: {found}; expected: {expected}",
    "Look at the version that was set aside. If it is right, `nightjar accept` publishes it; " +
      "if the bound is wrong, change `gates` in the job.",
    "The previous version is still current; the exit code is 3.",
  ),
  "version-held": warning(
    "the new tables were not made current: they are in {database} in the output folder",
    "Check the file with any DuckDB client, then run `nightjar accept`, or wait for the next run: its " +
      "version contains this run too.",
    "The previous version is still current, and nothing of this run is deleted at the service.",
  ),
  "data-old": warning(
    "{features} without new data for more than {age}: {examples}",
    "`nightjar query @missing` says who must act; the limit is `freshness.warn_after` in the job.",
  ),
  "data-too-old": warning(
    "{features} without new data for more than {age}: {examples}",
    "`nightjar query @missing` says who must act; the limit is `freshness.error_after` in the job.",
    "The tables keep what succeeded last; the exit code is not 0.",
  ),
  "freshness-unknown": warning(
    "the age of the data could not be compared with `freshness` of the job: {why}",
    "`nightjar query @missing` shows the age; report the error if it happens again.",
  ),
  "tables-incomplete": warning(
    "files of {runs} were missing or changed and are not in the tables",
    "`nightjar repair` derives them again where landed bodies still exist; otherwise copy the files back " +
      "from a backup.",
    "The run was published without them.",
  ),
  "tables-restored": warning(
    "files of {runs} were missing or changed, and were written again with the same rows",
    "Check the disk, and that nothing changes or removes files below `tables/`.",
    "No row is lost: they were still in the database.",
  ),
  "answers-garbled": warning(
    "{answers} with results in another encoding than UTF-8",
    "Tell the service. Search the text columns for U+FFFD to find the values.",
    "The records are in the tables, with U+FFFD in place of what cannot be read; landing has the " +
      "answers as they arrived.",
  ),
  "values-misfit": warning(
    "{values} did not fit the record schema: {columns}",
    "Look at the rows whose `misfits` is not NULL; if the source has changed, change the record schema.",
    "The records are in their tables: the column is NULL, and `extra` has the value as it arrived, or the " +
      "field that the schema does not have.",
  ),
  "records-rejected": warning(
    "{records} rejected by the record schema of {tables}",
    "Look at `reason` and `path` in `ops.rejected_records`; if the source has changed, change the record " +
      "schema.",
    "The records are in `ops.rejected_records`, whole.",
  ),
  "records-without-schema": warning(
    "{records} of {families} without a schema, in `other_records`: {names}; `nightjar infer` drafts a schema",
    "Run `nightjar infer`, check its drafts, and name their folder as `schemas` in the job.",
    "The records are in `other_records`, whole.",
  ),
  "features-left": warning(
    "in tasks that succeeded, {features} did not: {names}",
    "`nightjar query @missing` says for whom, and who must act.",
    "What earlier nights read of them stays in `main`; the exit code does not change.",
  ),
  "values-stray": warning(
    "{values} in the results that are not records or cannot be read",
    "Look at the rows of `ops.rejected_records` whose product or sub_family is NULL.",
    "The values are in `ops.rejected_records`, and the answers are landed as they arrived.",
  ),
  "sessions-shared": warning(
    "the tables have {sessions} of this run for another customer, too",
    "List each session in one job, with its own customer. `coverage` shows its rows by `session_id`; those " +
      "of the other customer stay until `nightjar forget CUSTOMER`.",
    "The records of both are in the tables; the exit code does not change.",
  ),
  "values-unfit": warning(
    "{values} of earlier runs do not fit the type that the column has now: {columns}",
    "`nightjar repair` derives the tables of earlier runs again from landing.",
    "The column is NULL in these rows, and `extra` has the values.",
  ),
  "model-failed": warning(
    "the model {name} is not in the tables: {why}",
    "Correct its file in the folder that the job names as `models`.",
    "The run was published without it; the next publication makes it again.",
  ),
  "schemas-gone": warning(
    "no record schema for {tables} in the program or beside the job",
    "Put the file back, or add one to `records/` in the folder that the job names as `schemas`.",
    "The schema kept in the output folder was used: no record is missing.",
  ),
  "lists-gone": warning(
    "the record schema no longer has the list {tables}, so it has no table",
    "If that is a mistake, put the list back; with pseudonyms, run `nightjar rebuild` after that.",
    "Nothing is lost: the items of all nights are in `extra` of their records, with pseudonyms in landing.",
  ),
  "parquet-taken": warning(
    "the published Parquet files are not in `{name}/`, because something else has that name",
    "Move it elsewhere: the next publication, or `nightjar repair`, puts them there.",
    "They are in `published/parquet/`, and their rows are in the database.",
  ),
  "answers-left-out": warning(
    "{answers} not in the tables: {where}: {reason}",
    "Report it: the tables need a newer version or another record schema, then `nightjar repair`.",
    "The answers are landed, and their executions are kept at the service.",
  ),
} as const
