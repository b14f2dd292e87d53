/**
 * Errors of wrong usage, job files and settings (exit code 2): found before anything is started. None of them
 * repeats an argument that may be a secret.
 */
import { nothing, refusal, warning } from "./Message.ts"

const emptyFolder = "Give --output a folder that is empty or does not exist yet."
const restoreLedger =
  "Restore a copy of ledger.sqlite. Without a copy, move the folder away and start with an empty one: " +
  "logins that a source rejected are then tried once more."

export const commandMessages = {
  "usage-wrong": refusal("{mistake}", "`nightjar COMMAND --help` lists the arguments and flags."),
  "run-not-held": nothing.changed("no gate holds {run_id} back", "`nightjar status` shows how a run ended."),
  "secret-unavailable": refusal(
    "a secret is not available: {detail}",
    "Set it where the reference points, then run the command again.",
  ),
  "service-settings-invalid": refusal(
    "the service's settings are wrong: {detail}",
    "Correct the service's settings in the job file or in the environment.",
    "Nothing was started and nothing was sent.",
  ),
  "service-not-named": refusal(
    "no service is named",
    "Give --job JOB, or --base-url with --app-secret, or set NIGHTJAR_BASE_URL.",
  ),
  "secret-not-a-reference": refusal(
    "--app-secret takes env:NAME, file:PATH or exec:COMMAND",
    "Store the secret in one of these places. On the command line, every user of the machine could read it.",
  ),
  "webhooks-address-invalid": refusal(
    "--webhooks takes [HOST:]PORT with a port from 0 to 65535",
    "Examples: 8080, 0.0.0.0:8080, [::1]:0.",
  ),
  "webhooks-unavailable": refusal(
    "events cannot be received: {detail}",
    "Give another port; 0 takes any free port.",
  ),
  "output-not-ours": nothing.changed(
    "{output} is not an output folder of nightjar: it contains {entries}",
    emptyFolder,
  ),
  "output-shared": nothing.changed("{output} is shared with others (mode {mode})", emptyFolder),
  "output-not-a-folder": nothing.changed("{output} is not a folder", emptyFolder),
  "output-refused": refusal(
    "the output folder {output} cannot be used ({why})",
    "Correct its permissions, or give --output another folder, where the file system has hard and symbolic " +
      "links.",
  ),
  "output-lost": refusal(
    "what the command printed could not be written ({why})",
    "Make room, and run the command again.",
    "Everything else that the command does was done.",
  ),
  "summary-lost": warning(
    "not everything could be printed ({why})",
    "Make room. `nightjar status` shows a run's summary, which is also in its `summary.json` below `runs/`.",
    "What the command did is recorded, and its exit code does not change.",
  ),
  "backup-not-empty": nothing.copied("{folder} is not an empty folder", "Name an empty folder or a new one."),
  "backup-inside": nothing.copied(
    "{folder} is inside the output folder",
    "Name a folder elsewhere, if possible on another disk.",
  ),
  "no-earlier-version": nothing.published(
    "no earlier version of the tables is kept in {output}",
    "`nightjar rebuild` derives all tables again from landing.",
  ),
  "version-not-kept": nothing.published(
    "version {version} of the tables is not kept in {output}; {kept}",
    "`nightjar rollback --list` lists the versions that can be put back.",
  ),
  "earlier-version-incomplete": nothing.published(
    "a file of version {version} is {state}: {path}",
    "Copy the file back from a backup, or put another version back: `nightjar rollback --list` shows them.",
  ),
  "retain-unset": nothing.removed(
    "no job has `retain`, which says how long files are kept",
    "Add it to the job, such as `retain: { landing: 90 days }`.",
  ),
  "prune-without-job": warning(
    "nothing of job {job} is removed by age: its file is no longer at {path}",
    "If the file was moved, `nightjar prune JOB` applies its `retain`.",
    "The rules of the other jobs apply to their runs.",
  ),
  "ledger-missing": refusal(
    "the ledger of {output} is missing, but the folder contains {found}",
    restoreLedger,
    "Nothing was started: only the ledger knows which logins were rejected and what is still at the service.",
  ),
  "ledger-damaged": refusal(
    "the ledger is damaged: {detail}",
    "Restore a copy of ledger.sqlite, with `ledger-archive/` if there is one. `nightjar verify` lists " +
      "everything that is damaged.",
    "Nothing more was started, and everything landed is kept.",
  ),
  "ledger-older": refusal(
    "the ledger of {output} is older than the folder: it does not know {runs}",
    "Restore the newer ledger.sqlite, with `ledger-archive/` if there is one. Without a copy of it: the " +
      "reports of these runs, runs/RUN/report.html, name the logins that were rejected, and those that " +
      "`nightjar credentials list` does not show would be tried once more, so take their customers out of " +
      "the job. Then move the folders landing/RUN of these runs out of the output folder, and run " +
      "`nightjar rebuild`: it takes their rows out of the tables. What they left at the service stays there.",
    "Nothing was started: which logins were rejected in these runs, and what they left at the service, is " +
      "no longer known.",
  ),
  "ledger-newer": refusal(
    "the ledger was written by a newer nightjar than this one, {version}: {detail}",
    "Use that version, or a newer one, with this output folder.",
    "Nothing was started, and the ledger was not changed.",
  ),
  "nothing-ran": refusal(
    "no run has been started in {output} yet",
    "Start one with `nightjar run JOB`, or name another folder with --output.",
  ),
  "night-not-running": nothing.changed(
    "no run is executing in {output}",
    "`nightjar runs` lists all runs; --output names another folder.",
  ),
  "night-silent": nothing.changed(
    "the run in {output} did not answer within 5 seconds",
    "Check whether its process is stopped or the machine is overloaded; then run the same command again.",
    "Nothing was changed: the run was not told, so it does not obey later either.",
  ),
  "night-not-executing": nothing.changed(
    "the run in {output} is not executing tasks: it is waiting, planning, publishing or deleting",
    "`nightjar status --watch` shows its tasks once they are executed.",
  ),
  "night-draining": nothing.changed(
    "{run_id} is draining: it starts nothing more",
    "Wait until it ends; `nightjar run JOB` then starts what is left.",
  ),
  "limit-above-job": nothing.changed(
    "the job allows {max_in_flight} in flight and {per_engine} per engine, and `limit` allows no more",
    "Give a lower number, or change `concurrency` in the job for the next run.",
  ),
  "limit-invalid": nothing.changed(
    "a limit is max_in_flight=N or per_engine=N, each at most once, with N from 1 to 100000",
    "Example: `nightjar limit max_in_flight=50 per_engine=5`.",
  ),
  "night-other-version": nothing.changed(
    "the run in {output} was started by another version of nightjar, which does not understand this command",
    "Use the version that started the run; ctrl-C ends the run, and `nightjar run JOB` resumes it.",
  ),
  "run-unknown": refusal("there is no such run{suggestion}", "`nightjar runs` lists all runs."),
  "run-incomplete": refusal(
    "the ledger does not contain the start of {run_id}",
    "Run `nightjar verify` to see what is damaged.",
  ),
  "id-unknown": refusal(
    "no task, customer, execution, session, receipt, reason or message has this id",
    "`nightjar status` lists tasks; schemas/ends.md lists reasons, and schemas/messages.md messages.",
  ),
  "topic-unknown": nothing.changed(
    "there is no such page{suggestion}",
    "`nightjar help` lists all pages; `nightjar COMMAND --help` describes a command.",
  ),
  "name-unknown": refusal("there is no such name: {detail}", "Correct the name."),
  "names-missing": refusal("{where} has no {what}", "Add one to the job, or name another job."),
  "names-ambiguous": refusal("{where} has {count} {what}s ({names})", "Give --customer or --engine."),
  "table-unknown": refusal("there is no such table{suggestion}", "`nightjar tables` lists all tables."),
  "page-of-all-tables": nothing.written(
    "--html writes a page of all tables",
    "Leave out TABLE and --format.",
  ),
  "page-unwritable": nothing.written(
    "{path} cannot be written ({why})",
    "Name a file outside the output folder, in a folder that exists and that you may write to.",
  ),
  "family-unknown": nothing.changed(
    "no record without a schema has this product and sub_family{suggestion}",
    "`nightjar infer` without --product and --sub-family drafts a schema for each family that has none.",
  ),
  "records-have-schema": warning(
    "{records} in `other_records`, although their family has a schema now",
    "`nightjar repair` derives earlier runs again, with the schemas of the newest publication.",
    "The records are in `other_records`, whole.",
  ),
  "nothing-published": refusal(
    "nothing is published in {output} yet",
    "`nightjar run JOB` publishes the tables; --output names another folder.",
  ),
  "query-failed": refusal(
    "the query failed: {detail}",
    "Correct the statement. `nightjar tables` describes every table and column.",
    "Nothing was changed: queries only read.",
  ),
  "database-in-use": nothing.read(
    "another program has opened the database for writing: {detail}",
    "End that program, or let it open the file read-only; then run the same command again.",
  ),
  "query-missing": nothing.read(
    "no query was given",
    'Give one statement in quotes, such as `nightjar query "SELECT * FROM ops.runs"`, or a saved query, ' +
      "such as `nightjar query @missing`. `nightjar query --list` lists the saved ones.",
  ),
  "query-several": nothing.read(
    "{given} were given, and a query is one statement",
    "Run `nightjar query` once for each of them.",
  ),
  "saved-query-unknown": nothing.read(
    "there is no such saved query{suggestion}",
    "`nightjar query --list` lists the saved queries.",
  ),
  "query-formats": nothing.written(
    "--json is --format json, and --format {format} was given too",
    "Leave one of the two out.",
  ),
  "excel-safe-without-csv": nothing.written(
    "--excel-safe is for --format csv, not for {format}",
    "Add --format csv, or leave out --excel-safe: other formats write every text as it is.",
  ),
  "workbook-too-wide": nothing.written(
    "the result has more than {columnsMax} columns, which no Excel sheet can hold",
    "Select fewer columns, or use --format parquet.",
  ),
  "cells-cut": warning(
    "{cells} cut to 32,767 characters, the most that Excel takes; the cut is marked with …",
    "Use --format csv or parquet for the whole texts.",
    "The published tables hold the whole texts.",
  ),
  "terminal-refused": nothing.written(
    "--format {format} writes binary data, which a terminal cannot show",
    "Write it to a file: add `> FILE` to the command.",
  ),
  "credentials-unknown": nothing.released(
    "argument {position} matches none of the listed credentials, or several of them",
    "`nightjar credentials list` shows them; give at least 6 characters of a fingerprint.",
  ),
  "csv-without-unproven": refusal(
    "--csv needs --unproven, and cannot be combined with --json",
    "Run `nightjar credentials list --unproven --csv`.",
  ),
  "release-unclear": nothing.released(
    "give either fingerprints, or --unproven with a filter",
    "`nightjar credentials list` shows fingerprints, and which accounts are held.",
  ),
  "release-because-missing": nothing.released(
    "--unproven needs --because TEXT, the reason for one more login to these accounts",
    "Describe what is known about the incident; the ledger records it.",
  ),
  "release-unconfirmed": nothing.released(
    "the release was not confirmed; it would allow one login each for {what}",
    "Add --yes. `nightjar credentials list --unproven` shows them.",
  ),
  "time-unreadable": nothing.changed(
    "{flag} is not a time",
    "Write it as 2026-11-20, 2026-11-20T22:31 or 2026-11-20T22:31:00+01:00; without a zone it is UTC.",
  ),
  "settle-file-unreadable": nothing.changed(
    "the file cannot be read ({why})",
    "Give the CSV file that the service's support filled in.",
  ),
  "settle-job-needed": nothing.changed(
    "executions of {jobs} have to be read, and the job file was not found or has mistakes",
    "Give it with --job FILE; `nightjar validate FILE` checks it.",
  ),
  "settle-refused": nothing.changed(
    "{problems} in the file",
    "Correct these lines. `nightjar credentials list --unproven --csv` prints what can be settled.",
  ),
  "engine-unknown": refusal(
    "the service does not know this engine{suggestion}",
    "`nightjar engines list` lists all engines.",
  ),
  "engine-unavailable": refusal(
    "the engine is not available, and its form has never been read",
    "Try again when the engine is online; `nightjar engines list` shows its status.",
  ),
  "engine-form-unusable": refusal(
    "the engine's form cannot be used ({why})",
    "Report the engine to the service.",
  ),
  "token-store-unset": refusal(
    "the job has no token store",
    "Add `tokens.key` to the job, such as env:NAME; `openssl rand -base64 32` generates a key.",
  ),
  "token-store-refused": refusal(
    "the token store cannot be opened: {detail}",
    "Check `tokens.key` of the job. `nightjar tokens list` shows what is stored.",
  ),
  "token-store-damaged": refusal(
    "the token store is damaged: {detail}",
    "Put a copy of tokens.sqlite back. Without one, move it away: the next run then logs in with " +
      "parameters and asks for new tokens, and `nightjar tokens exchange` stores one that a job names.",
    "Nothing more was started, and everything landed is kept.",
  ),
  "token-store-empty": refusal("no token is stored in {output}", "Name another folder with --output."),
  "token-unknown": refusal(
    "no stored token for this job's service has that name",
    "`nightjar tokens list` lists all tokens.",
    "Nothing was revoked.",
  ),
  "ticket-literal": nothing.sent(
    "--ticket takes env:NAME, file:PATH or - for stdin",
    "Put the ticket in one of these places: a command line can be read by other users and in the history.",
  ),
  "ticket-missing": nothing.sent("no ticket could be read from stdin", "Pipe the ticket into the command."),

  // `nightjar schedule`: a timer that would fail every night is not written, and nothing that somebody else
  // wrote is replaced.
  "timer-kind-missing": nothing.written(
    "no kind of timer was given, or more than one",
    "Give one of --systemd, --cron and --kubernetes.",
  ),
  "timer-time-missing": nothing.written(
    "the job `{name}` does not say when it runs",
    'Add `night: { starts: "22:30", until: "07:00" }` to the job, or give --at HH:MM.',
  ),
  "timer-time-twice": nothing.written(
    "the job `{name}` starts at {starts}, as its `night` says, and --at gives another time",
    "Leave --at out, or change the `night` of the job.",
  ),
  "timer-nights-differ": nothing.written(
    "the jobs `{name}` and `{other}` do not run at the same times",
    "Give each job its own timer: a run that finds the folder in use waits for it.",
  ),
  "timer-name-long": nothing.written(
    "the timer of {jobs} would have a name of more than {charactersMax} characters",
    "Give the timer fewer jobs, or the jobs shorter names.",
  ),
  "timer-text-unwritable": nothing.written(
    "no timer can hold {text}: it has a control character, or a space or backslash at its end",
    "Rename the file or folder, or correct the variable that names it.",
  ),
  "timer-variables-missing": nothing.written(
    "{file} lacks variables that the job needs: {names}",
    "Add a line NAME=value for each of them: a timer does not have the variables of your shell.",
  ),
  "timer-file-outside": nothing.written(
    "{path} is outside the job's folder, and a CronJob mounts only that folder",
    "Move it into the folder, and name it in the job relative to the job file.",
  ),
  "timer-not-installable": nothing.written(
    "nightjar does not install a CronJob itself",
    "Leave --install out, and pass what is printed to `kubectl apply -f -`.",
  ),
  "timer-not-ours": nothing.written(
    "{path} was not written by nightjar",
    "Move that file away, or write the timer by hand from what is printed without --install.",
  ),
  "timer-lines-damaged": refusal(
    "the lines of the job `{name}` in the crontab have no end mark",
    "Correct them with `crontab -e`: delete them, or restore the line that ends with `: end`.",
    "The crontab was not changed.",
  ),
  "timer-unwritable": refusal(
    "{path} cannot be written ({why})",
    "Check the folder's permissions and its free space.",
    "The timer is not installed.",
  ),
  "timer-not-enabled": refusal(
    "the command `{command}` did not succeed ({why})",
    "Run it yourself in a session of the user whose timer it is. Without systemd, use --cron.",
    "The units were written and are not enabled.",
  ),
  "crontab-unusable": refusal(
    "the command `{command}` did not succeed ({why})",
    "Run the command yourself to see why; where there is no cron, use --systemd.",
    "The crontab was not changed.",
  ),
  "timer-environment": warning(
    "the job was checked with the variables in {file} only, because a timer has none of this shell's",
    "Add the variables that the job needs to that file, one NAME=value per line, and run `chmod 600` on it.",
    "Nothing was written.",
  ),

  // `nightjar hooks`: what another program of the same application relies on is never changed by accident.
  "hooks-embedded": nothing.sent(
    "the job {path} uses the embedded service, which keeps no subscriptions between runs",
    "Give `nightjar run` the flag --webhooks: the embedded service then sends its events there.",
  ),
  "hooks-address-invalid": nothing.sent(
    "the address is not http or https, or has a user, a query or a fragment",
    "Give an address such as https://nightjar.example:8080/; the service removes any query.",
  ),
  "hooks-taken": nothing.subscribed(
    "another address receives these events already: {events}",
    "Remove that address first: `nightjar hooks list` shows it.",
  ),
  "hooks-unknown": nothing.subscribed(
    "no subscription sends events to that address",
    "`nightjar hooks list` shows all of them.",
  ),
  "hooks-refused": nothing.subscribed(
    "the service refuses the change ({detail})",
    "Correct the address or the events. `nightjar hooks list` shows what is subscribed.",
  ),
} as const
